// One run of this daemon, with its graph and what listeners were asked to tell.

import { CancelRun } from '../../wire/calls/runs.ts'
import { ActionButton } from '../kit/actions.tsx'
import { call } from '../kit/api.ts'
import { to } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { Graph } from '../run/drawing.tsx'
import type { Detail } from '../run/live.ts'
import { workerOf } from '../run/phases.tsx'
import { Resume } from '../run/resume.tsx'
import { PARTS, RunHead, RunPage, type Shown } from '../run/run-page.tsx'

const TABS = {
  phases: {
    ...PARTS.phases,
    show: (shown: Shown) => (
      <>
        {PARTS.phases.show(shown)}
        <Deliveries of={shown.run.deliveries} />
      </>
    ),
  },
  graph: { title: 'Graph', show: (shown: Shown) => <Team {...shown} /> },
  tree: PARTS.tree,
  logs: PARTS.logs,
  files: PARTS.files,
  why: PARTS.why,
}

export function Run({ id }: { id: string }) {
  return <RunPage id={id} server="daemon" parts={TABS} head={shown => <Head {...shown} />} />
}

function Head({ live, run }: Shown) {
  const { run_id, state, workspace } = run
  const top = run.parent_run_id === null
  const place = (
    <>
      <code>{run_id}</code>
      {workspace !== null && <span class="wrap">in {workspace}</span>}
    </>
  )
  return (
    <RunHead run={run} place={place}>
      <div class="row actions">
        {run.completed_at === null && state !== 'interrupted' && (
          <ActionButton plain action={() => call(CancelRun, { run_id })} done={() => live.again()}>
            Cancel
          </ActionButton>
        )}
        {top && (state === 'interrupted' || state === 'failed' || state === 'cancelled') && (
          <Resume live={live}>Continue</Resume>
        )}
        {top && state === 'completed' && (
          <Resume live={live} what={{ failed: true }} plain>
            Repeat failed items
          </Resume>
        )}
        {top && (
          <a class="button plain" href={`${to('start')}?like=${run_id}`}>
            Start again
          </a>
        )}
      </div>
    </RunHead>
  )
}

/** The graph of its phases as they are now. */
function Team({ live, run: { run_id } }: Shown) {
  return (
    <Graph
      of={live.phases.value.map(phase => ({
        name: phase.name,
        after: phase.depends_on,
        about: workerOf(phase),
        state: phase.state,
        href: `${to('runs', run_id)}?phase=${encodeURIComponent(phase.name)}`,
      }))}
    />
  )
}

const SENT: Record<Detail['deliveries'][number]['state'], string> = {
  pending: 'pending',
  sent: 'running',
  delivered: 'completed',
  failed: 'failed',
  unknown: 'awaiting_input',
}

/** What listeners were asked to tell others. */
function Deliveries({ of }: { of: Detail['deliveries'] }) {
  if (of.length === 0) return null
  return (
    <details class="part">
      <summary>Notifications</summary>
      <ul class="chain">
        {of.map(({ phase, event, state, error }, index) => (
          <li key={index}>
            <State of={SENT[state] ?? 'pending'} bare />
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
