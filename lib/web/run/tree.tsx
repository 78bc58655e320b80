// The tree of a run with all runs below it, as a treegrid, the worst first. Every row has a bar on the timeline. Only visible
// rows are drawn.

import { useComputed } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { serverNow } from '../kit/clock.ts'
import { useKeys } from '../kit/keys.tsx'
import { filters, go, to } from '../kit/route.ts'
import { State, Tolerated } from '../kit/state.tsx'
import { Duration } from '../kit/time.tsx'
import { Virtual } from '../kit/virtual.tsx'
import { countsOf, openRows, type Ranked } from './failures.ts'
import type { Live } from './live.ts'
import { Axis, Bar, type Scale, scaleOf, singlePart } from './timeline.tsx'

const HEIGHT = 40
const STEP = 16
/** Deeper levels are not indented further, so that names stay visible. */
const MOST_STEPS = 12

export function Tree({ live }: { live: Live }) {
  const { chosen, closed } = live
  const { filter } = filters('state')
  const state = filter('state')
  const rows = useComputed(() => openRows(live.ranked.value, closed.value, filters('state').chosen.state))
  const counts = useComputed(() => countsOf(live.ranked.value))
  const tree = rows.value
  const top = live.tree.value[0]
  const set = (id: string, close: boolean) => {
    const next = new Set(closed.value)
    if (close) next.add(id)
    else next.delete(id)
    closed.value = next
  }
  // The keys read the signals, because the last drawing may be older than the last key.
  const index = () =>
    Math.max(
      0,
      rows.value.findIndex(({ run }) => run.run_id === chosen.value),
    )
  const at = () => rows.value[index()]?.run.run_id
  const move = (by: number) => {
    chosen.value = rows.value[Math.max(0, Math.min(rows.value.length - 1, index() + by))]?.run.run_id ?? null
  }
  const fold = (close: boolean) => () => {
    const id = at()
    if (id) set(id, close)
  }
  const shown = index()
  const current = tree[shown]
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    ArrowLeft: fold(true),
    ArrowRight: fold(false),
    Enter: () => {
      const id = at()
      if (id) go(to('runs', id))
    },
  }
  useKeys(keys)
  if (!top) return <div class="virtual tree" aria-busy="true" />
  const { call_depth: depth, started_at: from, completed_at: until } = top
  const scale = scaleOf({ from: from ?? serverNow(), until })
  return (
    <>
      <StateFilter counts={counts.value} {...state} />
      <div class="branch scale">
        <Axis scale={scale} />
      </div>
      <Virtual
        count={tree.length}
        height={HEIGHT}
        show={shown}
        box={{
          class: 'tree',
          role: 'treegrid',
          tabIndex: 0,
          'aria-label': 'Runs of this tree',
          'aria-rowcount': tree.length,
          ...(current && { 'aria-activedescendant': `tree-${current.run.run_id}` }),
        }}
        row={index => {
          const row = tree[index]!
          const { run } = row
          const folded = closed.value.has(run.run_id)
          return (
            <Row
              key={run.run_id}
              row={row}
              index={index}
              level={run.call_depth - depth}
              folded={folded}
              chosen={row === current}
              scale={scale}
              fold={() => set(run.run_id, !closed.value.has(run.run_id))}
            />
          )
        }}
      />
    </>
  )
}

/** Buttons that show the runs in one state, and how many there are. */
function StateFilter({
  counts,
  value,
  set,
}: {
  counts: readonly (readonly [state: string, count: number])[]
  value: string
  set(value: string): void
}) {
  if (counts.length < 2 && value === '') return null
  // The chosen one stays when no run is in its state any more.
  const missing = value === '' || counts.some(([state]) => state === value) ? [] : [[value, 0] as const]
  return (
    <fieldset class="row filters states" aria-label="Show runs in one state">
      {[...counts, ...missing].map(([state, count]) => (
        <button
          key={state}
          type="button"
          class="plain small"
          aria-pressed={state === value}
          onClick={() => set(state === value ? '' : state)}
        >
          <State of={state} /> <span class="number">{count.toLocaleString('en')}</span>
        </button>
      ))}
    </fieldset>
  )
}

interface RowProps {
  row: Ranked
  index: number
  level: number
  folded: boolean
  chosen: boolean
  scale: Scale
  fold(): void
}

/** A row is drawn again only when it has changed, because scrolling needs many rows at once. */
function Row(props: RowProps) {
  const { row, index, level, folded, chosen, scale } = props
  const { run, parent } = row
  return useMemo(() => rowElement(props), [run, index, level, parent, folded, chosen, scale.from, scale.until])
}

function rowElement({ row: { run, parent }, index, level, folded, chosen, scale, fold }: RowProps) {
  return (
    <div
      id={`tree-${run.run_id}`}
      class={`branch ${chosen ? 'chosen' : ''}`}
      role="row"
      tabIndex={-1}
      aria-level={level + 1}
      aria-rowindex={index + 1}
      {...(parent ? { 'aria-expanded': !folded } : {})}
    >
      <span role="gridcell" class="name" style={{ paddingInlineStart: `${Math.min(MOST_STEPS, level) * STEP}px` }}>
        {parent ? (
          <button type="button" class="fold" tabIndex={-1} aria-label={folded ? 'open' : 'close'} onClick={fold}>
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <path d="m6 4 4 4-4 4" />
            </svg>
          </button>
        ) : (
          <span class="fold" />
        )}
        <State of={run.state} bare />
        <a href={to('runs', run.run_id)} tabIndex={-1}>
          {run.run_name ?? run.call_path.at(-1)}
        </a>
        <Tolerated count={run.tolerated} />
        {index > 0 && run.parent_phase !== null && <span class="quiet small">{run.parent_phase}</span>}
      </span>
      <span role="gridcell">
        <Bar parts={singlePart(run.started_at, run.completed_at, run.state)} scale={scale} />
      </span>
      <span role="gridcell" class="small took">
        <Duration from={run.started_at} until={run.completed_at} />
      </span>
    </div>
  )
}
