// The log of a run: one scroll of any length, followed while the run goes on, with search and the colours of terminals.

import { signal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { LogLine } from '../../wire/run-records.ts'
import { pieces } from './ansi.ts'
import { call } from './api.ts'
import type { Detail, Live } from './live.ts'
import { Empty, Failure } from './parts.tsx'
import { route, setQuery } from './route.ts'
import { Virtual } from './virtual.tsx'

const HEIGHT = 20
const PAGE = 1_000

/** The lines of a run, in order and each once, however they come. */
class Lines {
  readonly all: LogLine[] = []
  /** Changes with every new line. The array itself is only added to, because it may be large. */
  readonly count = signal(0)
  readonly error = signal<unknown>(null)

  add(lines: readonly LogLine[]): void {
    for (const line of lines) if (line.seq > (this.all.at(-1)?.seq ?? 0)) this.all.push(line)
    this.count.value = this.all.length
  }
}

export function Logs({ live, run: { run_id } }: { live: Live; run: Detail }) {
  const kept = useRef<Lines>(null)
  kept.current ??= new Lines()
  const lines = kept.current
  const follow = useSignal(live.run.peek()?.completed_at === null)
  const phase = route.value.query.get('phase') ?? ''
  const search = route.value.query.get('search') ?? ''
  const wanted = useSignal({ phase, search })
  if (wanted.peek().phase !== phase || wanted.peek().search !== search) wanted.value = { phase, search }

  useEffect(() => {
    let gone = false
    let reading = true
    /** Reads up to the end. Events may skip lines that were written before the page listened. */
    const read = async () => {
      try {
        for (;;) {
          const { lines: found } = await call('GetLogs', { run_id, after_seq: lines.all.at(-1)?.seq ?? 0, limit: PAGE })
          if (gone) return
          lines.add(found)
          if (found.length < PAGE) break
        }
        lines.error.value = null
      } catch (thrown) {
        lines.error.value = thrown
      }
      reading = false
    }
    const listener = (runId: string, found: readonly LogLine[]) => {
      if (runId !== run_id || reading) return
      const next = (lines.all.at(-1)?.seq ?? 0) + 1
      if (found.some(({ seq }) => seq === next)) return lines.add(found)
      if (found.every(({ seq }) => seq < next)) return
      reading = true
      void read()
    }
    live.listeners.add(listener)
    void read()
    // The last lines may come with the end of the run.
    const unsubscribe = live.run.subscribe(run => {
      if (run?.completed_at !== null && !reading) {
        reading = true
        void read()
      }
    })
    return () => {
      gone = true
      live.listeners.delete(listener)
      unsubscribe()
    }
  }, [run_id])

  const shown = useComputed(() => {
    const { phase, search } = wanted.value
    const needle = search.toLowerCase()
    // Reading the count makes this follow new lines.
    if (lines.count.value === 0 || (!phase && !needle)) return { lines: lines.all, count: lines.count.value }
    const found = lines.all.filter(
      line => (!phase || line.phase === phase) && (!needle || line.text.toLowerCase().includes(needle)),
    )
    return { lines: found, count: found.length }
  })
  const { count } = shown.value
  const set = (change: object) => setQuery({ phase, search, ...change })
  return (
    <section aria-label="Log">
      <search class="row filters">
        <label class="field">
          <span>Phase</span>
          <select value={phase} onChange={event => set({ phase: event.currentTarget.value })}>
            <option value="">all</option>
            {live.phases.value.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="field grow">
          <span>Search</span>
          <input type="search" value={search} onInput={event => set({ search: event.currentTarget.value })} />
        </label>
        <label class="check">
          <input
            type="checkbox"
            checked={follow}
            onChange={event => {
              follow.value = event.currentTarget.checked
            }}
          />{' '}
          Follow
        </label>
        <button type="button" class="plain" disabled={count === 0} onClick={() => download(run_id, shown.value.lines)}>
          Download
        </button>
      </search>
      <Failure of={lines.error.value} />
      {count === 0 ? (
        <Empty>
          <p>{search || phase ? 'No line fits.' : 'Nothing was logged yet.'}</p>
        </Empty>
      ) : (
        <Virtual
          count={count}
          height={HEIGHT}
          follow={follow.value}
          onFollow={value => {
            if (!value || live.run.peek()?.completed_at === null) follow.value = value
          }}
          box={{ class: 'log', tabIndex: 0, role: 'region', 'aria-label': `${count} lines` }}
          row={index => <Line key={index} line={shown.value.lines[index]} />}
        />
      )}
    </section>
  )
}

function Line({ line }: { line: LogLine | undefined }) {
  if (!line) return <div class="line" />
  const at = new Date(line.at)
  return (
    <div class={`line ${line.stream}`}>
      <time class="quiet" dateTime={at.toISOString()} title={at.toLocaleString()}>
        {at.toLocaleTimeString('en-GB')}
      </time>
      <span class="quiet phase-name" title={line.phase ?? ''}>
        {line.phase ?? ''}
      </span>
      <span class="text" title={line.text.length > 200 ? line.text.slice(0, 2_000) : undefined}>
        {pieces(line.text).map((piece, index) => (
          <span key={index} class={piece.class}>
            {piece.text}
          </span>
        ))}
        {line.stream === 'log' && line.fields && <span class="quiet"> {JSON.stringify(line.fields)}</span>}
      </span>
    </div>
  )
}

function download(runId: string, lines: readonly LogLine[]): void {
  const text = lines.map(({ at, phase, text }) => `${new Date(at).toISOString()} ${phase ?? '-'} ${text}\n`)
  save(new Blob(text, { type: 'text/plain' }), `${runId}.log`)
}

/** Hands bytes to the browser as a download. */
export function save(bytes: Blob, name: string): void {
  const url = URL.createObjectURL(bytes)
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), 10_000)
}
