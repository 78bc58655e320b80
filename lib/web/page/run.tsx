// One run: what it is, what it waits for, and its parts as tabs that have addresses of their own.

import { useEffect, useMemo } from 'preact/hooks'
import { call } from './api.ts'
import { Graph } from './drawing.tsx'
import { Files } from './files.tsx'
import { useKeys } from './keys.tsx'
import { type Detail, Live } from './live.ts'
import { Logs } from './logs.tsx'
import { Act, Failure, Json } from './parts.tsx'
import { Phases, workerOf } from './phases.tsx'
import { Resume } from './resume.tsx'
import { Review } from './reviews.tsx'
import { go, route, to } from './route.ts'
import { State } from './state.tsx'
import { Took, When } from './time.tsx'
import { Tree } from './tree.tsx'
import { Reasons } from './why.tsx'

const TABS = { phases: 'Phases', graph: 'Graph', tree: 'Tree', logs: 'Log', files: 'Files', why: 'Why' } as const
type Tab = keyof typeof TABS

export function Run({ id }: { id: string }) {
  const live = useMemo(() => new Live(id), [id])
  useEffect(() => () => live.close(), [live])
  const chosen = route.value.parts[2]
  const tab: Tab = chosen !== undefined && chosen in TABS ? (chosen as Tab) : 'phases'
  const names = Object.keys(TABS) as Tab[]
  useKeys(Object.fromEntries(names.map((name, index) => [String(index + 1), () => go(to('runs', id, name))])))

  const run = live.run.value
  if (!run) {
    return (
      <main>
        <p class="crumbs">
          <a href={to('runs')}>Runs</a>
        </p>
        <Failure of={live.error.value} />
      </main>
    )
  }
  const asked = live.reviews.value.filter(({ state }) => state === 'pending')
  return (
    <main>
      <Head run={run} live={live} />
      <Failure of={live.error.value} />
      {!live.connected.value && (
        <div class="notice awaiting_input" role="status">
          The connection to the daemon was lost. The page tries again every second.
        </div>
      )}
      {run.error && (
        <div class="notice failed">
          <p class="wrap">{run.error.message}</p>
          {run.error.hint && <p class="quiet wrap">{run.error.hint}</p>}
        </div>
      )}
      <nav class="tabs" aria-label="Parts of the run">
        {names.map(name => (
          <a key={name} href={to('runs', id, name)} aria-current={name === tab ? 'page' : undefined}>
            {TABS[name]}
            {name === 'tree' && live.tree.value.length > 1 && (
              <span class="count">{live.tree.value.length.toLocaleString('en')}</span>
            )}
          </a>
        ))}
      </nav>
      {tab !== 'phases' && asked.length > 0 && (
        <div class="notice awaiting_input">
          <p>
            <a href={to('runs', id)}>{asked.map(({ phase }) => phase).join(', ')}</a> waits for an answer.
          </p>
        </div>
      )}
      {tab === 'phases' && (
        <>
          {asked.map(review => (
            <Review key={review.id} review={review} done={() => live.again()} />
          ))}
          <Phases live={live} run={run} />
          <Values title="Inputs" of={run.inputs} />
          <Values title="Outputs" of={run.outputs} />
          <Deliveries of={run.deliveries} />
        </>
      )}
      {tab === 'graph' && <Team live={live} run={run} />}
      {tab === 'tree' && <Tree live={live} />}
      {tab === 'logs' && <Logs live={live} run={run} />}
      {tab === 'files' && <Files run={run} />}
      {tab === 'why' && <Reasons run={run} />}
      <p class="unseen" role="status">
        {run.completed_at === null ? '' : `The run is ${run.state}.`}
      </p>
    </main>
  )
}

function Head({ run, live }: { run: Detail; live: Live }) {
  const ended = run.completed_at !== null
  return (
    <>
      <p class="crumbs">
        <a href={to('runs')}>Runs</a>
        {run.root_run_id !== run.run_id && (
          <>
            {' / '}
            <a href={to('runs', run.root_run_id, 'tree')}>top run</a>
          </>
        )}
        {run.parent_run_id !== null && run.parent_run_id !== run.root_run_id && (
          <>
            {' / '}
            <a href={to('runs', run.parent_run_id)}>run above</a>
          </>
        )}
      </p>
      <header class="top">
        <div>
          <h1 class="wrap">{run.run_name ?? run.team}</h1>
          <p class="facts">
            <State of={run.state} />
            {run.state === 'queued' && run.reason !== null && <span class="wrap">{run.reason}</span>}
            <span>
              {run.team} {run.version}
            </span>
            {run.attempt > 1 && <span>attempt {run.attempt}</span>}
            <span>
              started <When at={run.started_at} />
            </span>
            <span>
              {ended ? 'took' : 'for'} <Took from={run.started_at} until={run.completed_at} />
            </span>
          </p>
          <p class="facts quiet small">
            <code>{run.run_id}</code>
            {run.workspace !== null && <span class="wrap">in {run.workspace}</span>}
          </p>
        </div>
        <div class="row actions">
          {!ended && run.state !== 'interrupted' && (
            <Act
              plain
              work={async () => {
                await call('CancelRun', { run_id: run.run_id })
                await live.again()
              }}
            >
              Cancel
            </Act>
          )}
          {(run.state === 'interrupted' || run.state === 'failed' || run.state === 'cancelled') &&
            run.parent_run_id === null && <Resume live={live}>Continue</Resume>}
          {run.state === 'completed' && run.parent_run_id === null && (
            <Resume live={live} what={{ failed: true }} plain>
              Repeat failed items
            </Resume>
          )}
          {run.parent_run_id === null && (
            <a class="button plain" href={`${to('start')}?like=${run.run_id}`}>
              Start again
            </a>
          )}
        </div>
      </header>
    </>
  )
}

/** The graph of its phases as they are now. */
function Team({ live, run: { run_id } }: { live: Live; run: Detail }) {
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
            <State of={SENT[state]} bare />
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

function Values({ title, of }: { title: string; of: object | null }) {
  if (of === null || Object.keys(of).length === 0) return null
  return (
    <details class="part">
      <summary>{title}</summary>
      <Json of={of} />
    </details>
  )
}
