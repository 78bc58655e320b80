// The jobs that wait for a daemon, and what each waits for.

import { CancelDispatched, ListQueue } from '../../../wire/calls/dispatch.ts'
import { command } from '../kit/command.ts'
import { to } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { When } from '../kit/time.tsx'
import { hub } from './kit/api.ts'
import { Sure } from './kit/asking.tsx'
import { List, Table, useList } from './kit/lists.tsx'
import { may, NoRealm, RealmChoice, realms, useRealm } from './kit/realm-choice.tsx'
import { Until } from './kit/until.tsx'
import { OlderCopy } from './older-copy.tsx'

const LOOK_MS = 2_000
// A newer hub may have others, which are shown as they are.
const SHOWN: Record<string, string> = {
  blocked: 'interrupted',
  held: 'interrupted',
  waiting: 'queued',
  leased: 'running',
}
const WORDS: Record<string, string> = {
  blocked: 'waits for its key',
  held: 'is held',
  waiting: 'waits for a daemon',
  leased: 'is being taken',
}
const KINDS: Record<string, string> = { run: 'start', cancel: 'cancel', resume: 'resume', decide: 'answer' }

export function Queue() {
  const realm = useRealm()
  const found = useList(
    `queue ${realm?.id}`,
    page => (realm ? hub(ListQueue, { realm_id: realm.id, ...page }) : Promise.resolve({ jobs: [], total: 0 })),
    LOOK_MS,
  )
  return (
    <main>
      <header class="top">
        <h1>Queue</h1>
        {may(realm, 'operator') && (
          <a class="button" href={to('dispatch')}>
            Dispatch
          </a>
        )}
      </header>
      <RealmChoice />
      <OlderCopy realm={realm} />
      {realms.value?.length === 0 ? (
        <NoRealm />
      ) : (
        <List
          of={found}
          none={
            <>
              <p>Nothing waits in {realm?.name}.</p>
              <p>
                <a href={to('dispatch')}>Dispatch a team</a>, or at a terminal:{' '}
                <code>{command} dispatch @scope/name</code>
              </p>
            </>
          }
        >
          {jobs => (
            <Table head={['Job', 'State', 'Waits for', 'Since', 'Ends', '']}>
              {jobs.map(job => (
                <tr key={job.job_id}>
                  <td>
                    <a href={to('runs', job.run_id)}>{job.team ?? job.run_id}</a>
                    <br />
                    <span class="small quiet">
                      {KINDS[job.kind] ?? job.kind}
                      {job.priority !== 0 && ` · priority ${job.priority}`}
                      {job.deliveries > 1 && ` · delivery ${job.deliveries}`}
                    </span>
                  </td>
                  <td>
                    <State of={SHOWN[job.state] ?? 'queued'} word={WORDS[job.state] ?? job.state} />
                  </td>
                  <td class="wrap">{job.waiting_for ?? '–'}</td>
                  <td>
                    <When at={job.created_at} />
                  </td>
                  <td>
                    <Until at={job.expires_at} />
                  </td>
                  <td class="end">
                    {may(realm, 'operator') && job.kind === 'run' && (
                      <Sure
                        question="The run will not start."
                        work={async () => {
                          await hub(CancelDispatched, { run_id: job.run_id })
                          found.again()
                        }}
                      >
                        Cancel
                      </Sure>
                    )}
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </List>
      )}
    </main>
  )
}
