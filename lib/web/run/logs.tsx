// The log of a run, or of the run and all runs below it: one list of any length, with search and the colours of terminals.
// It follows the run while the run goes on. The log of a failure opens at its error, and each line has an address.

import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo } from 'preact/hooks'
import { bound, Check, Field, nameChoices, Select } from '../kit/fields.tsx'
import { Coloured, Empty, Failure } from '../kit/parts.tsx'
import { filters, go, type LineRange, route, toLines } from '../kit/route.ts'
import { save } from '../kit/save.ts'
import { exactly } from '../kit/time.tsx'
import { Virtual } from '../kit/virtual.tsx'
import { type Lines, type LoggedLine, Search } from './lines.ts'
import type { Branch, Detail, Live, Phase } from './live.ts'
import { copyWritten } from './log/copied.ts'
import { LogFeed } from './log-feed.ts'

const HEIGHT = 20
const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' })
/** Whose lines are shown. */
const RUNS = [
  ['', 'this and all below'],
  ['no', 'only this'],
] as const
/** Lines of a range above the middle of the list. */
const SEEN_OF_RANGE = 8
/** Lines that one piece of a download has. */
const PIECE = 2_000

export function Logs({ live, run: { run_id } }: { live: Live; run: Detail }) {
  const { chosen, filter } = filters('phase', 'search', 'below')
  const { phase, search, below } = chosen
  const tree = live.tree.value
  const isTree = tree.length > 1
  // The tree arrives later than the run, and may grow. The lines must not be read again because of that.
  const withBelow = below !== 'no'
  const feed = useMemo(() => new LogFeed(live, run_id, withBelow), [live, run_id, withBelow])
  useEffect(() => () => feed.close(), [feed])
  const { lines } = feed
  const found = useMemo(() => (phase || search ? new Search(lines, phase, search) : null), [lines, phase, search])
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
  const target = useTarget({ live, lines, found, isComplete: feed.complete.value, isSearched: search !== '' })
  const lineAt = (index: number) => lines.at(indexOf(index))
  return (
    <section aria-label="Log">
      <search class="row filters">
        {isTree && <Select label="Runs" {...filter('below')} of={RUNS} />}
        <Select label="Phase" {...filter('phase')} of={nameChoices('all', phases, phase)} />
        <Field label="Search" type="search" {...filter('search')} />
        <Check {...bound(follow)}>Follow</Check>
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
      {range && <Chosen range={range} linesOf={() => lines.ofRun(run_id, range)} />}
      {count === 0 ? (
        <Empty>
          <p>{search || phase ? 'No line fits.' : feed.complete.value ? 'Nothing was logged yet.' : 'Reading …'}</p>
        </Empty>
      ) : (
        <Virtual
          count={count}
          height={HEIGHT}
          follow={follow.value}
          show={target}
          middle
          onFollow={value => {
            if (!value || live.run.peek()?.completed_at === null) follow.value = value
          }}
          box={{
            class: `log ${paths ? 'with-below' : ''}`,
            tabIndex: 0,
            role: 'region',
            'aria-label': `${count.toLocaleString('en')} lines`,
            onCopy: event => copyWritten(event, at => lines.at(at)?.text ?? ''),
          }}
          row={index => (
            <Line
              key={index}
              lines={lines}
              at={indexOf(index)}
              paths={paths}
              chosen={range ? isIn(lines, indexOf(index), run_id, range) : index === target}
            />
          )}
        />
      )}
    </section>
  )
}

/** The lines that the address has, to copy. */
function Chosen({ range: { from, to: last }, linesOf }: { range: LineRange; linesOf(): LoggedLine[] }) {
  const copied = useSignal('')
  const name = from === last ? `Line ${from}` : `Lines ${from} to ${last}`
  const copy = async () => {
    const texts = linesOf().map(({ text }) => text)
    await navigator.clipboard?.writeText(texts.join('\n')).catch(() => {})
    copied.value = name
  }
  return (
    <p class="row small">
      {name}
      <button type="button" class="plain" onClick={copy}>
        {copied.value === name ? 'Copied' : 'Copy'}
      </button>
    </p>
  )
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

/** The phases and names that lead to a run, by the id of the run. */
type Paths = ReadonlyMap<string, string>

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

const pathOf = ({ run_id, phase }: LoggedLine, paths: Paths | null): string =>
  [paths?.get(run_id), phase].filter(Boolean).join('/')

/** A line never changes, so it is drawn once while it is visible. */
function Line({ lines, at, paths, chosen }: { lines: Lines; at: number; paths: Paths | null; chosen: boolean }) {
  return useMemo(() => lineElement(lines.at(at), at, paths, chosen), [lines, at, paths, chosen])
}

function lineElement(line: LoggedLine | undefined, index: number, paths: Paths | null, chosen: boolean) {
  if (!line) return <div class="line" />
  const at = new Date(line.at)
  const path = pathOf(line, paths)
  return (
    <div class={`line ${line.stream} ${chosen ? 'chosen' : ''}`} aria-current={chosen ? 'true' : undefined}>
      <a
        class="quiet seq"
        tabIndex={-1}
        href={toLines(line.run_id, line.seq)}
        onClick={event => event.shiftKey && extend(event, line)}
        aria-label={`Line ${line.seq}`}
      >
        {line.seq}
      </a>
      <time class="quiet" dateTime={at.toISOString()} title={exactly(at)}>
        {CLOCK.format(at)}
      </time>
      <span class="quiet phase-name" title={path}>
        {path}
      </span>
      <span class="text" data-at={index} title={line.text.length > 200 ? line.text.slice(0, 2_000) : undefined}>
        <Coloured text={line.text} />
        {line.stream === 'log' && line.fields && <span class="quiet"> {JSON.stringify(line.fields)}</span>}
      </span>
    </div>
  )
}

/** Shift and a click choose the lines from the one that the address has to this one. */
function extend(event: Event, { run_id, seq }: LoggedLine): void {
  const { parts, query, lines } = route.peek()
  // Otherwise the browser would open the link in another window.
  event.preventDefault()
  const isOfRun = parts[1] === run_id
  go(toLines(run_id, isOfRun && lines ? lines.from : seq, seq, isOfRun ? Object.fromEntries(query) : {}))
}

let lastTime = { at: 0, iso: '' }

/** Many lines are of the same millisecond. */
function isoOf(at: number): string {
  if (at !== lastTime.at) lastTime = { at, iso: new Date(at).toISOString() }
  return lastTime.iso
}

/** Saves the shown lines as a file, in pieces, so that a large log does not block the page. */
async function download(
  runId: string,
  count: number,
  lineAt: (index: number) => LoggedLine | undefined,
  paths: Paths | null,
) {
  const parts: Blob[] = []
  for (let from = 0; from < count; from += PIECE) {
    const texts: string[] = []
    for (let index = from; index < Math.min(count, from + PIECE); index++) {
      const line = lineAt(index)
      if (line) texts.push(`${isoOf(line.at)} ${pathOf(line, paths) || '-'} ${line.text}\n`)
    }
    // The browser keeps what is in a blob outside of the memory of the page.
    parts.push(new Blob(texts))
    await new Promise(resolve => setTimeout(resolve))
  }
  save(new Blob(parts, { type: 'text/plain' }), `${runId}.log`)
}
