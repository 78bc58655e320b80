// The page of one run, as far as daemon and hub have it in common: its header, the question that it waits for, and its tabs,
// which have addresses of their own.

import type { ComponentChildren } from 'preact'
import { useEffect, useMemo } from 'preact/hooks'
import { GetRun } from '../../wire/calls/runs.ts'
import { viewedStarter, waitText } from '../../wire/records/words.ts'
import { call } from '../kit/api.ts'
import { useKeys } from '../kit/keys.tsx'
import { later } from '../kit/later.tsx'
import { Failure, Json, useLoaded } from '../kit/parts.tsx'
import { go, route, setQuery, subject, to } from '../kit/route.ts'
import { State, Tolerated, wordOf } from '../kit/state.tsx'
import { Took, When } from '../kit/time.tsx'
import { FailureHead } from './failure-head.tsx'
import { failureAfter } from './failures.ts'
import { type Detail, Live } from './live.ts'
import { Phases } from './phases.tsx'
import { ReviewCard } from './reviews.tsx'
import { Why } from './why.tsx'

export interface RunProps {
  live: Live
  run: Detail
}

interface Tab {
  title: string
  show(props: RunProps): ComponentChildren
}

/** What a cancel of a run stops, and how much of that there is now. */
export function whatStops(live: Live): string {
  const counts = [
    [live.phases.value.filter(({ state }) => state === 'running').length, 'running phase'],
    [live.tree.value.filter(each => each.run_id !== live.id && each.completed_at === null).length, 'run below'],
    [pendingReviews(live).length, 'question'],
  ] as const
  const now = counts.flatMap(([count, what]) =>
    count === 0
      ? []
      : [`${count.toLocaleString('en')} ${count === 1 ? what : what.replace(/(phase|run|question)/, '$1s')}`],
  )
  const rule = 'Running phases and all runs below are stopped, and nobody is asked any more'
  return now.length === 0 ? `${rule}.` : `${rule}: now ${now.join(', ')}.`
}

const History = later('history', async () => (await import('../teams/history.tsx')).RunHistory, 'div')
const Tree = later('tree', async () => (await import('./tree.tsx')).Tree, 'div')
const Logs = later('logs', async () => (await import('./logs.tsx')).Logs, 'div')
const Files = later('files', async () => (await import('./files.tsx')).Files, 'div')

/** The tabs that daemon and hub have. */
export const TABS = {
  phases: {
    title: 'Phases',
    show: ({ live, run }) => (
      <>
        {pendingReviews(live).map(review => (
          <ReviewCard key={review.id} review={review} done={() => live.again()} />
        ))}
        <Phases live={live} run={run} />
        <JsonPart title="Inputs" of={run.inputs} />
        <JsonPart title="Outputs" of={run.outputs} />
      </>
    ),
  },
  tree: { title: 'Tree', show: ({ live }) => <Tree live={live} /> },
  logs: { title: 'Log', show: ({ live, run }) => <Logs live={live} run={run} /> },
  files: { title: 'Files', show: ({ run }) => <Files run={run} /> },
  why: { title: 'Why', show: ({ run }) => <Why run={run} /> },
} satisfies Record<string, Tab>

const pendingReviews = (live: Live) => live.reviews.value.filter(({ state }) => state === 'pending')

export function RunTabs({
  id,
  server,
  tabs,
  head,
}: {
  id: string
  server: 'daemon' | 'hub'
  /** The tabs in their order. An address without a tab shows `phases`. */
  tabs: Record<string, Tab> & Record<'phases', Tab>
  head(props: RunProps): ComponentChildren
}) {
  const live = useMemo(() => new Live(id), [id])
  useEffect(() => () => live.close(), [live])
  const chosen = route.value.parts[2]
  const tab = chosen !== undefined && Object.hasOwn(tabs, chosen) ? chosen : 'phases'
  const names = Object.keys(tabs)
  const next = () => toNextFailure(live, tab)
  useKeys({
    ...Object.fromEntries(names.map((name, index) => [String(index + 1), () => go(to('runs', id, name))])),
    f: next,
  })

  const run = live.run.value
  const title = run ? titleOf(run, tabs[tab]!.title) : ''
  useEffect(() => {
    subject.value = title
    return () => {
      subject.value = ''
    }
  }, [title])
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
  const pending = pendingReviews(live)
  return (
    <main>
      {head({ live, run })}
      {run.parent_run_id === null && <History run={run} />}
      <Failure of={live.error.value} />
      {!live.connected.value && (
        <div class="notice awaiting_input" role="status">
          The connection to the {server} was lost. The page tries again every second.
        </div>
      )}
      <FailureHead live={live} run={run} brief={tab !== 'phases'} next={next} />
      <nav class="tabs" aria-label="Parts of the run">
        {names.map(name => (
          <a key={name} href={to('runs', id, name)} aria-current={name === tab ? 'page' : undefined}>
            {tabs[name]!.title}
            {name === 'tree' && live.tree.value.length > 1 && (
              <span class="count">{live.tree.value.length.toLocaleString('en')}</span>
            )}
          </a>
        ))}
      </nav>
      {tab !== 'phases' && pending.length > 0 && (
        <div class="notice awaiting_input">
          <p>
            <a href={to('runs', id)}>{pending.map(({ phase }) => phase ?? 'The start').join(', ')}</a> waits for an
            answer.
          </p>
        </div>
      )}
      {tabs[tab]!.show({ live, run })}
      <p class="unseen" role="status">
        {run.completed_at === null ? '' : `The run is ${run.state}.`}
      </p>
    </main>
  )
}

/** The state comes first, because a tab has room for few letters. */
const titleOf = ({ state, run_name, team }: Detail, tab: string): string =>
  [wordOf(state), run_name ?? team, tab === TABS.phases.title ? '' : tab].filter(Boolean).join(' · ')

/** In the tree the next failure is chosen. Elsewhere the page of its run is opened. */
function toNextFailure(live: Live, tab: string): void {
  if (tab !== 'tree') {
    const next = failureAfter(live.rankedWhole.value, live.id)
    if (next !== null) go(to('runs', next))
    return
  }
  live.closed.value = new Set()
  document.querySelector<HTMLElement>('[role=treegrid]')?.focus()
  if (route.value.query.get('state') !== 'failed') setQuery({})
  live.chosen.value = failureAfter(live.ranked.value, live.chosen.value) ?? live.chosen.value
}

/** `origin` says where the run is executed, and `children` are the buttons. */
export function RunHeader({
  live,
  run,
  origin,
  children,
}: {
  live: Live
  run: Detail
  origin: ComponentChildren
  children: ComponentChildren
}) {
  const starter = viewedStarter(run.started_by)
  const trigger = run.started_by && 'trigger' in run.started_by ? run.started_by.trigger : null
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
            <Tolerated count={run.tolerated} />
            <WaitsFor live={live} run={run} />
            <span>
              {run.team} {run.version}
            </span>
            {starter !== null && (
              <span class="wrap">by {trigger ? <a href={to('triggers', trigger)}>{starter}</a> : starter}</span>
            )}
            {run.environment && <span>in {run.environment}</span>}
            {run.attempt > 1 && <span>attempt {run.attempt}</span>}
            <span>
              started <When at={run.started_at} />
            </span>
            <span>
              {run.completed_at === null ? 'for' : 'took'} <Took of={run} />
            </span>
          </p>
          <p class="facts quiet small">{origin}</p>
        </div>
        {children}
      </header>
    </>
  )
}

const REFRESH_MS = 2_000
const RUN_ID = /([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/

/** What keeps a run from beginning, or from going on. The runs that it names are links. */
function WaitsFor({ live, run: { run_id, state, waiting_for, reason } }: RunProps) {
  const isQueued = state === 'queued'
  // No event says that others have gone on.
  const found = useLoaded(
    `waits ${run_id} ${isQueued}`,
    async () => (isQueued ? await call(GetRun, { run_id }) : null),
    isQueued ? REFRESH_MS : 0,
  )
  const text = isQueued ? (found.data?.waiting_for ?? waiting_for ?? reason) : state === 'running' ? heldUp(live) : null
  if (!text) return null
  return (
    <span class="wrap">
      {text.startsWith('waits ') ? '' : 'waits for '}
      {text.split(RUN_ID).map((part, index) => (index % 2 === 0 ? part : <a href={to('runs', part)}>{part}</a>))}
    </span>
  )
}

/** What a phase waits for that could begin, in a run of which no phase is at work. */
function heldUp(live: Live): string | null {
  const phases = live.phases.value
  if (phases.some(({ state }) => state === 'running' || state === 'awaiting_input')) return null
  const isOpen = (name: string) => phases.some(each => each.name === name && each.completed_at === null)
  const held = phases.find(each => each.waiting && each.completed_at === null && !each.depends_on.some(isOpen))
  return held?.waiting ? `${waitText(held.waiting)}: ${held.name}` : null
}

function JsonPart({ title, of }: { title: string; of: object | null }) {
  if (of === null || Object.keys(of).length === 0) return null
  return (
    <details class="part">
      <summary>{title}</summary>
      <Json of={of} />
    </details>
  )
}
