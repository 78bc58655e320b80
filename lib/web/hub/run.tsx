// One run: the parts of the daemon's own page, with the daemon and the realm that it runs in.

import { GetDaemon } from '../../wire/calls/daemons.ts'
import { CancelDispatched, ResumeDispatched } from '../../wire/calls/dispatch.ts'
import { GetLogs, GetRun } from '../../wire/calls/runs.ts'
import { Sure } from '../kit/actions.tsx'
import { Act, useLoaded } from '../kit/parts.tsx'
import { to } from '../kit/route.ts'
import type { Detail } from '../run/live.ts'
import { PARTS, RunHead, RunPage, type Shown } from '../run/run-page.tsx'
import { hub } from './kit/api.ts'
import { may, realmName, realms } from './kit/realm-choice.tsx'

const TABS = {
  ...PARTS,
  logs: {
    ...PARTS.logs,
    show: (shown: Shown) => (
      <>
        <LogState id={shown.run.run_id} ended={shown.run.completed_at !== null} />
        {PARTS.logs.show(shown)}
      </>
    ),
  },
}

export function OneRun({ id }: { id: string }) {
  return <RunPage id={id} server="hub" parts={TABS} head={shown => <Head {...shown} />} />
}

/** What the hub knows of a run besides what its daemon shows, too. */
function usePlace(run: Detail) {
  const { data } = useLoaded(`place ${run.run_id} ${run.state}`, async () => {
    const { realm_id = '', daemon_id = null } = await hub(GetRun, { run_id: run.run_id })
    const daemon = daemon_id === null ? null : await hub(GetDaemon, { daemon_id }).catch(() => null)
    return { realm_id, daemon_id, daemon }
  })
  return data
}

function Head({ live, run }: Shown) {
  const known = usePlace(run)
  const realm = realms.value?.find(({ id }) => id === known?.realm_id)
  const { run_id, state } = run
  const place = (
    <>
      {known && <a href={to('realms', known.realm_id)}>{realmName(known.realm_id)}</a>}
      {known?.daemon_id && (
        <span>
          on <a href={to('daemons', known.daemon_id)}>{known.daemon?.name ?? known.daemon_id}</a>
          {known.daemon && known.daemon.status !== 'online' && ` (${known.daemon.status})`}
        </span>
      )}
      <code>{run_id}</code>
    </>
  )
  return (
    <RunHead run={run} place={place}>
      {may(realm, 'operator') && run.root_run_id === run_id && (
        <div class="row actions">
          {run.completed_at === null && (
            <Sure
              question="What runs is stopped."
              work={async () => {
                await hub(CancelDispatched, { run_id })
                await live.again()
              }}
            >
              Cancel
            </Sure>
          )}
          {(state === 'failed' || state === 'cancelled') && (
            <Act
              work={async () => {
                await hub(ResumeDispatched, { run_id })
                await live.again()
              }}
            >
              Continue
            </Act>
          )}
          <a class="button plain" href={`${to('dispatch')}?like=${run_id}`}>
            Dispatch again
          </a>
        </div>
      )}
    </RunHead>
  )
}

/** How much of the log the hub has. */
function LogState({ id, ended }: { id: string; ended: boolean }) {
  const { data } = useLoaded(`log ${id}`, () => hub(GetLogs, { run_id: id, limit: 1 }), 5_000)
  if (!data || data.complete) return null
  if (data.kept) {
    return (
      <div class="notice">
        <p>
          The lines are on the machine of the daemon, whose setting <code>sync</code> is <code>status</code>.
        </p>
      </div>
    )
  }
  const ranges = (data.missing ?? []).map(({ from, to }) => (from === to ? `line ${from}` : `lines ${from} to ${to}`))
  return (
    <>
      {ranges.length > 0 && (
        <div class="notice failed">
          <p>{ranges.join(', ')} did not reach the hub, and will not.</p>
        </div>
      )}
      {ended && data.to_come && (
        <div class="notice">
          <p>Lines from {data.to_come.from} on are still to come.</p>
        </div>
      )}
    </>
  )
}
