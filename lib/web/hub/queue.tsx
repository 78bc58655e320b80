// The jobs that wait for a daemon, and what each waits for.

import type { Static } from 'typebox'
import { CancelDispatched, ListQueue } from '../../wire/calls/dispatch.ts'
import type { QueuedJob } from '../../wire/records/hub-records.ts'
import { ActionButton } from '../kit/actions.tsx'
import { command, commandOf } from '../kit/api.ts'
import { Rows, useList } from '../kit/lists.tsx'
import { to } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { UpcomingTime, When } from '../kit/time.tsx'
import { hub } from './kit/api.ts'
import { forbids, may, NoRealm, RealmChoice, realms, useRealm } from './kit/realm-choice.tsx'
import { OlderCopy } from './older-copy.tsx'

const REFRESH_MS = 2_000
// A newer hub may have more states. The page shows them by their names.
const STATES: Record<string, string> = {
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
    REFRESH_MS,
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
        <Rows
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
          name={job => job.job_id}
          columns={[
            { title: 'Job', cell: job => <Job of={job} /> },
            {
              title: 'State',
              cell: job => <State of={STATES[job.state] ?? 'queued'} word={WORDS[job.state] ?? job.state} />,
            },
            { title: 'Waits for', class: 'wrap', cell: job => job.waiting_for ?? '–' },
            { title: 'Since', cell: job => <When at={job.created_at} /> },
            { title: 'Ends', cell: job => <UpcomingTime at={job.expires_at} /> },
            {
              title: '',
              class: 'end',
              cell: job =>
                job.kind === 'run' && (
                  <ActionButton
                    forbidden={forbids(realm, 'operator')}
                    command={commandOf('cancel', job.run_id)}
                    question={`Cancel ${job.team ?? job.run_id}? The run will not start.`}
                    send={send => send(CancelDispatched, { run_id: job.run_id })}
                    done={found.again}
                  >
                    Cancel
                  </ActionButton>
                ),
            },
          ]}
        />
      )}
    </main>
  )
}

function Job({ of: job }: { of: Static<typeof QueuedJob> }) {
  return (
    <>
      <a href={to('runs', job.run_id)}>{job.team ?? job.run_id}</a>
      <br />
      <span class="small quiet">
        {KINDS[job.kind] ?? job.kind}
        {job.priority !== 0 && ` · priority ${job.priority}`}
        {job.deliveries > 1 && ` · delivery ${job.deliveries}`}
      </span>
    </>
  )
}
