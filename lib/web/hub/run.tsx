// One run: the parts of the daemon's own page, with the daemon and the realm that it runs in.

import { GetDaemon } from '../../wire/calls/daemons.ts'
import { CancelRun, GetLogs } from '../../wire/calls/runs.ts'
import { ActionButton } from '../kit/actions.tsx'
import { commandOf } from '../kit/api.ts'
import { useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import { Resume } from '../run/resume.tsx'
import { RunHeader, type RunProps, RunTabs, TABS, whatStops } from '../run/run-page.tsx'
import { hub } from './kit/api.ts'
import { forbids, may, realmName, realms } from './kit/realm-choice.tsx'

const OWN_TABS = {
  ...TABS,
  logs: {
    ...TABS.logs,
    show: (props: RunProps) => (
      <>
        <LogState id={props.run.run_id} ended={props.run.completed_at !== null} />
        {TABS.logs.show(props)}
      </>
    ),
  },
}

export function RunPage({ id }: { id: string }) {
  return <RunTabs id={id} server="hub" tabs={OWN_TABS} head={props => <Header {...props} />} />
}

/** The daemon that executes the run, where the user may see it. */
function useDaemon(daemon_id: string | null) {
  return useLoaded(`daemon ${daemon_id}`, async () =>
    daemon_id === null ? null : hub(GetDaemon, { daemon_id }).catch(() => null),
  ).data
}

function Header({ live, run }: RunProps) {
  const { run_id, state, realm_id = '', daemon_id = null } = run
  const daemon = useDaemon(daemon_id)
  const realm = realms.value?.find(({ id }) => id === realm_id)
  const origin = (
    <>
      <a href={to('realms', realm_id)}>{realmName(realm_id)}</a>
      {daemon_id !== null && (
        <span>
          on <a href={to('daemons', daemon_id)}>{daemon?.name ?? daemon_id}</a>
          {daemon && daemon.status !== 'online' && ` (${daemon.status})`}
        </span>
      )}
      <code>{run_id}</code>
    </>
  )
  return (
    <RunHeader live={live} run={run} origin={origin}>
      {run.root_run_id === run_id && (
        <div class="row">
          {run.completed_at === null && (
            <ActionButton
              forbidden={forbids(realm, 'operator')}
              command={commandOf('cancel', run_id)}
              question={`Cancel ${run.run_name ?? run_id}? ${whatStops(live)}`}
              send={send => send(CancelRun, { run_id })}
              done={() => live.again()}
            >
              Cancel
            </ActionButton>
          )}
          {(state === 'failed' || state === 'cancelled') && (
            <Resume live={live} forbidden={forbids(realm, 'operator')}>
              Continue
            </Resume>
          )}
          {run.reason === 'outputs' && (
            <Resume live={live} forbidden={forbids(realm, 'operator')} what={{ outputs: true }} plain>
              Make the outputs again
            </Resume>
          )}
          {state === 'completed' && run.tolerated !== 0 && (
            <Resume live={live} forbidden={forbids(realm, 'operator')} what={{ failed: true }} plain>
              Repeat what failed
            </Resume>
          )}
          {may(realm, 'operator') && (
            <a class="button plain" href={withQuery(to('dispatch'), { like: run_id })}>
              Dispatch again
            </a>
          )}
        </div>
      )}
    </RunHeader>
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
