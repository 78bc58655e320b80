// The tree of a run with all runs below it, as a treegrid. Every row has a bar on the timeline. Only visible rows are drawn.

import { useComputed, useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { useKeys } from '../kit/keys.tsx'
import { go, to } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { Duration } from '../kit/time.tsx'
import { Virtual } from '../kit/virtual.tsx'
import type { Branch, Live } from './live.ts'
import { Axis, Bar, type Scale, scaleOf, singlePart } from './timeline.tsx'

const HEIGHT = 40
const STEP = 16
/** Deeper levels are not indented further, so that names stay visible. */
const MOST_STEPS = 12

export function Tree({ live }: { live: Live }) {
  const closed = useSignal<ReadonlySet<string>>(new Set())
  const chosen = useSignal(0)
  const rows = useComputed(() => openRows(live.tree.value, closed.value))
  const tree = rows.value
  const top = tree[0]?.run
  const set = (id: string, close: boolean) => {
    const next = new Set(closed.value)
    if (close) next.add(id)
    else next.delete(id)
    closed.value = next
  }
  // The keys read the signals, because the last drawing may be older than the last key.
  const move = (by: number) => {
    chosen.value = Math.max(0, Math.min(rows.value.length - 1, chosen.value + by))
  }
  const at = () => rows.value[Math.min(chosen.value, rows.value.length - 1)]?.run.run_id
  const fold = (close: boolean) => () => {
    const id = at()
    if (id) set(id, close)
  }
  const current = tree[Math.min(chosen.value, tree.length - 1)]
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
  if (!top || !current) return <div class="virtual tree" aria-busy="true" />
  const { call_depth: depth, started_at: from, completed_at: until } = top
  const scale = scaleOf({ from: from ?? Date.now(), until })
  return (
    <>
      <div class="branch scale">
        <Axis scale={scale} />
      </div>
      <Virtual
        count={tree.length}
        height={HEIGHT}
        show={chosen.value}
        box={{
          class: 'tree',
          role: 'treegrid',
          tabIndex: 0,
          'aria-label': 'Runs of this tree',
          'aria-rowcount': tree.length,
          'aria-activedescendant': `tree-${current.run.run_id}`,
        }}
        row={index => {
          const { run, parent } = tree[index]!
          const folded = closed.value.has(run.run_id)
          return (
            <Row
              key={run.run_id}
              run={run}
              index={index}
              level={run.call_depth - depth}
              parent={parent}
              folded={folded}
              chosen={run === current.run}
              scale={scale}
              fold={() => set(run.run_id, !closed.value.has(run.run_id))}
            />
          )
        }}
      />
    </>
  )
}

interface RowProps {
  run: Branch
  index: number
  level: number
  parent: boolean
  folded: boolean
  chosen: boolean
  scale: Scale
  fold(): void
}

/** A row is drawn again only when it has changed, because scrolling needs many rows at once. */
function Row(props: RowProps) {
  const { run, index, level, parent, folded, chosen, scale } = props
  return useMemo(() => rowElement(props), [run, index, level, parent, folded, chosen, scale.from, scale.until])
}

function rowElement({ run, index, level, parent, folded, chosen, scale, fold }: RowProps) {
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

/** The rows below open branches. `runs` is in depth-first order. */
function openRows(runs: readonly Branch[], closed: ReadonlySet<string>): { run: Branch; parent: boolean }[] {
  const rows: { run: Branch; parent: boolean }[] = []
  let hidden = Number.POSITIVE_INFINITY
  for (const [index, run] of runs.entries()) {
    if (run.call_depth > hidden) continue
    const parent = (runs[index + 1]?.call_depth ?? 0) > run.call_depth
    hidden = closed.has(run.run_id) ? run.call_depth : Number.POSITIVE_INFINITY
    rows.push({ run, parent })
  }
  return rows
}
