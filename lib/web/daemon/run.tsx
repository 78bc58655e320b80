// The page of one run of this daemon. It also has the graph of the team, and the notifications that listeners sent.

import { CancelRun } from '../../wire/calls/runs.ts'
import { ActionButton } from '../kit/actions.tsx'
import { commandOf } from '../kit/api.ts'
import { to, withQuery } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { Graph } from '../run/drawing.tsx'
import type { Detail } from '../run/live.ts'
import { workerName } from '../run/phases.tsx'
import { Resume } from '../run/resume.tsx'
import { RunHeader, type RunProps, RunTabs, TABS, whatStops } from '../run/run-page.tsx'

const OWN_TABS = {
  phases: {
    ...TABS.phases,
    show: (props: RunProps) => (
      <>
        {TABS.phases.show(props)}
        <Deliveries of={props.run.deliveries} />
      </>
    ),
  },
  graph: { title: 'Graph', show: (props: RunProps) => <RunGraph {...props} /> },
  tree: TABS.tree,
  logs: TABS.logs,
  files: TABS.files,
  why: TABS.why,
}

export function RunPage({ id }: { id: string }) {
  return <RunTabs id={id} server="daemon" tabs={OWN_TABS} head={props => <Header {...props} />} />
}

function Header({ live, run }: RunProps) {
  const { run_id, state, workspace } = run
  const top = run.parent_run_id === null
  const origin = (
    <>
      <code>{run_id}</code>
      {workspace !== null && <span class="wrap">in {workspace}</span>}
    </>
  )
  return (
    <RunHeader live={live} run={run} origin={origin}>
      <div class="row">
        {run.completed_at === null && state !== 'interrupted' && (
          <ActionButton
            command={commandOf('cancel', run_id)}
            question={`Cancel ${run.run_name ?? run_id}? ${whatStops(live)}`}
            send={send => send(CancelRun, { run_id })}
            done={() => live.again()}
          >
            Cancel
          </ActionButton>
        )}
        {top && (state === 'interrupted' || state === 'failed' || state === 'cancelled') && (
          <Resume live={live}>Continue</Resume>
        )}
        {top && run.reason === 'outputs' && (
          <Resume live={live} what={{ outputs: true }} plain>
            Make the outputs again
          </Resume>
        )}
        {top && state === 'completed' && run.tolerated !== 0 && (
          <Resume live={live} what={{ failed: true }} plain>
            Repeat what failed
          </Resume>
        )}
        {top && (
          <a class="button plain" href={withQuery(to('start'), { like: run_id })}>
            Start again
          </a>
        )}
      </div>
    </RunHeader>
  )
}

/** The graph of its phases as they are now. */
function RunGraph({ live, run: { run_id } }: RunProps) {
  return (
    <Graph
      of={live.phases.value.map(phase => ({
        name: phase.name,
        after: phase.depends_on,
        about: workerName(phase),
        state: phase.state,
        href: withQuery(to('runs', run_id), { phase: phase.name }),
      }))}
    />
  )
}

const STATES: Record<Detail['deliveries'][number]['state'], string> = {
  pending: 'pending',
  sent: 'running',
  delivered: 'completed',
  failed: 'failed',
  unknown: 'awaiting_input',
}

/** The notifications that listeners sent. */
function Deliveries({ of }: { of: Detail['deliveries'] }) {
  if (of.length === 0) return null
  return (
    <details class="part">
      <summary>Notifications</summary>
      <ul class="chain">
        {of.map(({ phase, event, state, error }, index) => (
          <li key={index}>
            <State of={STATES[state] ?? 'pending'} bare />
            <div>
              {phase}, {event} <span class="quiet small">{state}</span>
              {error !== null && <p class="quiet wrap">{error}</p>}
            </div>
          </li>
        ))}
      </ul>
    </details>
  )
}
