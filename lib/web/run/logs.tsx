// The log of a run, or of the run and all runs below it: one list of any length, with search and the colours of terminals.
// It follows the run while the run goes on. The log of a failure opens at its error, and each line has an address.

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo } from 'preact/hooks'
import { bound, Check, Field, nameChoices, Select } from '../kit/fields.tsx'
import { Empty, Failure } from '../kit/parts.tsx'
import { preference } from '../kit/preference.ts'
import { filters, type LineRange, route, to, withQuery } from '../kit/route.ts'
import { Virtual } from '../kit/virtual.tsx'
import type { Branch, Detail, Live, Phase } from './live.ts'
import { copyWritten } from './log/copied.ts'
import { GroupHead, STEP } from './log/group-head.tsx'
import { Groups, rowOf } from './log/groups.ts'
import { Line, type Paths } from './log/line.tsx'
import type { Lines, LoggedLine } from './log/lines.ts'
import { download } from './log/saved.ts'
import { Search } from './log/search.ts'
import { clockText, LineTimes } from './log/times.tsx'
import { LogFeed } from './log-feed.ts'

const HEIGHT = 20
/** Whether the lines of a phase stand together, below a head. */
const grouped = preference('log-groups', ['yes', 'no'])
/** Whether long lines are broken. */
const wrap = preference('log-wrap', ['no', 'yes'])
/** Grouping 100,000 lines takes about 10 ms each time that lines are added. A longer log stays in the order of time. */
const MOST_GROUPED = 250_000
/** Whose lines are shown. */
const RUNS = [
  ['', 'this and all below'],
  ['no', 'only this'],
] as const
/** Lines of a range above the middle of the list. */
const SEEN_OF_RANGE = 8

export function Logs({ live, run: { run_id, root_run_id, started_at } }: { live: Live; run: Detail }) {
  const { chosen, filter } = filters('phase', 'search', 'below', 'attempt', 'from')
  const { phase, search, below, attempt } = chosen
  const tree = live.tree.value
  const isTree = tree.length > 1
  // The tree arrives later than the run, and may grow. The lines must not be read again because of that.
  const withBelow = below !== 'no'
  const feed = useMemo(() => new LogFeed(live, run_id, withBelow), [live, run_id, withBelow])
  useEffect(() => () => feed.close(), [feed])
  const { lines } = feed
  const { from, until } = timesOf(live, chosen)
  const found = useMemo(
    () => (phase || search || from > 0 ? new Search(lines, phase, search, { from, until }) : null),
    [lines, phase, search, from, until],
  )
  useEffect(() => () => found?.stop(), [found])
  const range = route.value.lines
  const follow = useSignal(live.run.peek()?.completed_at === null)
  useLayoutEffect(() => {
    // The end of a log that goes on would take the line out of sight.
    if (range) follow.value = false
  }, [range?.from, range?.to])
  const phasesOfRun = live.phases.value
  const paths = useMemo(() => (isTree && withBelow ? pathsOf(tree) : null), [withBelow, tree])
  const phases = useMemo(() => namesOf(phasesOfRun, withBelow ? tree : []), [phasesOfRun, withBelow, tree])

  const count = (found ?? lines).count.value
  const indexOf = (index: number) => (found ? found.found[index]! : index)
  const isGrouped = grouped.value === 'yes' && search === '' && chosen.from === '' && count <= MOST_GROUPED
  const groups = useMemo(() => (isGrouped ? new Groups(lines) : null), [lines, found, isGrouped])
  groups?.read(count, indexOf)
  const rows = groups?.rows() ?? null
  const target = useTarget({
    live,
    lines,
    found,
    isComplete: feed.complete.value,
    isSearched: search !== '' || from > 0,
  })
  const targetLine = target < 0 ? -1 : indexOf(target)
  useLayoutEffect(() => {
    if (targetLine >= 0) groups?.reveal(targetLine)
  }, [groups, targetLine])
  const lineAt = (index: number) => lines.at(indexOf(index))
  return (
    <section aria-label="Log">
      <search class="row filters">
        {isTree && <Select label="Runs" {...filter('below')} of={RUNS} />}
        <Select label="Phase" {...filter('phase')} of={nameChoices('all', phases, phase)} />
        <Field label="Search" type="search" {...filter('search')} />
        <LineTimes />
        <Check {...bound(follow)}>Follow</Check>
        <Check value={wrap.value === 'yes'} set={value => wrap.set(value ? 'yes' : 'no')}>
          Wrap
        </Check>
        <Check value={grouped.value === 'yes'} set={value => grouped.set(value ? 'yes' : 'no')}>
          Groups
        </Check>
        {rows?.some(({ of }) => typeof of !== 'number') && (
          <>
            <button type="button" class="plain" onClick={() => groups?.setAll(false)}>
              Fold all
            </button>
            <button type="button" class="plain" onClick={() => groups?.setAll(true)}>
              Unfold all
            </button>
          </>
        )}
        <button
          type="button"
          class="plain"
          disabled={count === 0}
          onClick={() => download(run_id, count, lineAt, paths)}
        >
          Download
        </button>
      </search>
      <Failure of={feed.error.value} />
      {from > 0 && (
        <p class="row small">
          {attempt ? `Attempt ${attempt} of ${phase}` : `From ${clockText(from)} on`}
          <a href={withQuery(to('runs', run_id, 'logs'), { phase, search, below })}>all lines</a>
        </p>
      )}
      {range && (
        <Chosen
          range={range}
          linesOf={wanted => lines.ofRun(run_id, wanted)}
          top={isTree || root_run_id !== run_id ? root_run_id : null}
        />
      )}
      {count === 0 ? (
        <Empty>
          <p>{search || phase ? 'No line fits.' : feed.complete.value ? 'Nothing was logged yet.' : 'Reading …'}</p>
        </Empty>
      ) : (
        <Virtual
          count={rows?.length ?? count}
          height={HEIGHT}
          follow={follow.value}
          show={rows && targetLine >= 0 ? rowOf(rows, targetLine) : target}
          middle
          grows={wrap.value === 'yes'}
          onFollow={value => {
            if (!value || live.run.peek()?.completed_at === null) follow.value = value
          }}
          box={{
            class: `log ${wrap.value === 'yes' ? 'wrapped' : ''} ${paths ? 'with-below' : ''} ${groups && groups.phases.length > 1 ? 'grouped' : ''}`,
            tabIndex: 0,
            role: 'region',
            'aria-label': `${count.toLocaleString('en')} lines`,
            onCopy: event => copyWritten(event, at => lines.at(at)?.text ?? ''),
          }}
          row={index => {
            const { of, depth } = rows?.[index] ?? { of: indexOf(index), depth: 0 }
            const at = typeof of === 'number' ? of : of.kind === 'group' ? of.first : -1
            const isChosen = at >= 0 && (range ? isIn(lines, at, run_id, range) : at === targetLine)
            const common = { lines, paths, started: started_at ?? 0, chosen: isChosen }
            if (typeof of === 'number' || !groups)
              return <Line key={at} at={at} indent={depth * STEP} wraps={wrap.value === 'yes'} {...common} />
            return <GroupHead key={`${of.kind} ${of.first}`} group={of} depth={depth} groups={groups} {...common} />
          }}
        />
      )}
    </section>
  )
}

/** The lines that the address has, to copy. `top` is the top run of a tree of several runs. */
function Chosen({
  range,
  linesOf,
  top,
}: {
  range: LineRange
  linesOf(range: LineRange): LoggedLine[]
  top: string | null
}) {
  const { from, to: last } = range
  const copied = useSignal('')
  const [first] = linesOf({ from, to: from })
  const name = from === last ? `Line ${from}` : `Lines ${from} to ${last}`
  const copy = async () => {
    const texts = linesOf(range).map(({ text }) => text)
    await navigator.clipboard?.writeText(texts.join('\n')).catch(() => {})
    copied.value = name
  }
  return (
    <p class="row small">
      {name}
      <button type="button" class="plain" onClick={copy}>
        {copied.value === name ? 'Copied' : 'Copy'}
      </button>
      {top !== null && first && (
        <a href={withQuery(to('runs', top, 'logs'), { from: String(first.at) })}>From here in all sub-runs</a>
      )}
    </p>
  )
}

/** The times of the lines that the address asks for: of an attempt of a phase, or from a time on. */
function timesOf(live: Live, { phase, attempt, from }: Record<'phase' | 'attempt' | 'from', string>) {
  if (!attempt) return { from: Number(from) || 0, until: Number.POSITIVE_INFINITY }
  const last = live.phases.value.find(({ name }) => name === phase)
  const all = [...live.history.value.attempts.filter(each => each.phase === phase), ...(last ? [last] : [])]
  const startOf = (number: number) => all.find(each => each.attempt === number)?.started_at ?? null
  return { from: startOf(Number(attempt)) ?? 0, until: startOf(Number(attempt) + 1) ?? Number.POSITIVE_INFINITY }
}

/** Which of the shown lines is to be seen at first: the one of the address, or the error of what failed. -1 for none. */
function useTarget({
  live,
  lines,
  found,
  isComplete,
  isSearched,
}: {
  live: Live
  lines: Lines
  found: Search | null
  isComplete: boolean
  isSearched: boolean
}): number {
  const { lines: range } = route.value
  // Of a long range the beginning is seen.
  const line = range && range.from + Math.min(SEEN_OF_RANGE, Math.floor((range.to - range.from) / 2))
  const target = useSignal(-1)
  const count = (found ?? lines).count.value
  useLayoutEffect(() => {
    target.value = -1
  }, [lines, found, line])
  useLayoutEffect(() => {
    const run = live.run.peek()
    if (target.peek() >= 0 || !run) return
    const at = (index: number) => (found ? found.found[index]! : index)
    const last = (fits: (index: number) => boolean) => {
      for (let index = count - 1; index >= 0; index--) if (fits(at(index))) return index
      return -1
    }
    if (line !== null) {
      target.value = last(index => lines.isNumber(index, run.run_id, line))
      return
    }
    const isFailed =
      run.state === 'failed' || run.state === 'cancelled' || hasFailed(live, route.peek().query.get('phase'))
    if (!isComplete || isSearched || run.completed_at === null || !isFailed) return
    const first = run.error
      ? last(index => lines.isError(index, { run_id: run.error?.run_id, phase: run.error?.phase }))
      : -1
    target.value = first >= 0 ? first : last(index => lines.isError(index))
  }, [lines, found, line, count, isComplete, isSearched])
  return target.value
}

function isIn(lines: Lines, index: number, runId: string, { from, to: last }: LineRange): boolean {
  const { run_id, seq } = lines.placeOf(index)
  return run_id === runId && seq >= from && seq <= last
}

const hasFailed = (live: Live, phase: string | null): boolean =>
  live.phases.peek().some(({ name, state }) => name === phase && state === 'failed')

/** `runs` is in depth-first order and begins with the top run of the page. */
function pathsOf(runs: readonly Branch[]): Paths {
  const top = runs[0]?.call_depth ?? 0
  const above: string[] = ['']
  return new Map(
    runs.map(({ run_id, call_depth, parent_phase, run_name }) => {
      const depth = call_depth - top
      const names = depth === 0 ? [] : [parent_phase, run_name].filter(name => name !== null)
      above[depth] = [above[depth - 1] ?? '', ...names].filter(Boolean).join('/')
      return [run_id, above[depth]]
    }),
  )
}

/** The names of phases that filter the log: the phases of the run, and the phases that started the runs below it. */
function namesOf(phasesOfRun: readonly Phase[], runs: readonly Branch[]): string[] {
  const names = runs.flatMap(({ parent_phase: name }) => (name === null ? [] : [name]))
  return [...new Set([...phasesOfRun.map(({ name }) => name), ...names])]
}
