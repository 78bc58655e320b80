// `logs RUN`: the log lines of a run and of all runs below it, in the order of time, each with the place that said it.

import { GetLogs, GetPhases, GetTree } from '../../wire/daemon-calls.ts'
import { runIdOf } from '../calls/ids.ts'
import { askAboutRuns } from '../calls/run-answers.ts'
import { homeFolder } from '../home.ts'
import { createPaint, inline, type Paint, printable } from '../terminal/paint.ts'
import { pad } from '../terminal/table.ts'
import type { Entry, Line, LogSource, Place } from './log-source.ts'

export interface LogOptions {
  home?: string
  json?: boolean
  follow?: boolean
  /** Only what this phase said, or runs below it. */
  phase?: string
  /** Only what failed phases said. */
  failed?: boolean
  /** Epoch milliseconds. */
  since?: number
  /** Read what the hub has: at this address, or where the home is enrolled. */
  hub?: string | true
}

const PAGE = 500
const FOLLOW_MS = 300
const WIDEST = 32

export async function logs(typed: string, options: LogOptions): Promise<void> {
  const home = homeFolder(options.home)
  const { hub } = options
  const runId = hub === undefined ? await runIdOf(home, typed) : typed
  const source = hub === undefined ? inHome(home) : await (await import('./hub-logs.ts')).atHub(home, hub)
  const reader = new Reader(source, options)
  const write = writer(options.json ?? false)
  for (;;) {
    // The states are read before the lines, so that for an ended run the lines are complete.
    const places = placesBelow(await source.tree(runId), runId)
    for await (const { line, place } of reader.next(places)) write(line, place)
    const { state, completed_at } = places[0]!.entry
    if (!options.follow || state === 'interrupted' || completed_at !== null) {
      for (const remark of await source.remarks(places)) process.stderr.write(`${remark}\n`)
      return
    }
    await Bun.sleep(FOLLOW_MS)
  }
}

/** From the process that holds the home, or from its database. */
function inHome(home: string): LogSource {
  return {
    tree: async run_id => (await askAboutRuns(home, runs => runs.call(GetTree, { run_id }))).runs,
    lines: query => askAboutRuns(home, runs => runs.call(GetLogs, query)),
    async failedPhases(run_id) {
      const { phases } = await askAboutRuns(home, runs => runs.call(GetPhases, { run_id }))
      return phases.flatMap(phase => (phase.state === 'failed' ? [phase.name] : []))
    },
    remarks: async () => [],
  }
}

/** The run itself first. The entries of a tree come depth first. */
function placesBelow(entries: readonly Entry[], runId: string): Place[] {
  const start = entries.findIndex(({ run_id }) => run_id === runId)
  const top = entries[start]!
  const places: Place[] = [{ entry: top, path: [] }]
  const above: string[][] = [[]]
  for (const entry of entries.slice(start + 1)) {
    const depth = entry.call_depth - top.call_depth
    if (depth <= 0) break
    const names = [entry.parent_phase, entry.run_name].filter(name => name !== null)
    above[depth] = [...above[depth - 1]!, ...names]
    places.push({ entry, path: above[depth] })
  }
  return places
}

interface Said {
  line: Line
  place: Place
}

/** Reads each line once, over any number of passes. */
class Reader {
  readonly #source: LogSource
  readonly #options: LogOptions
  /** The last line that was read, by run. */
  readonly #read = new Map<string, number>()
  /** Runs that had ended when their last line was read. */
  readonly #done = new Set<string>()

  constructor(source: LogSource, options: LogOptions) {
    this.#source = source
    this.#options = options
  }

  /**
   * What these runs said since the last pass, in the order of time. A run says nothing before it starts, so only runs
   * that overlap are read at the same time.
   */
  async *next(places: readonly Place[]): AsyncGenerator<Said> {
    const since = this.#options.since ?? 0
    const waiting = places
      .filter(({ entry }) => entry.started_at !== null && !this.#done.has(entry.run_id))
      .filter(({ entry }) => entry.completed_at === null || entry.completed_at >= since)
      .toSorted((a, b) => a.entry.started_at! - b.entry.started_at!)
    const open: { place: Place; lines: AsyncGenerator<Line>; head: Line }[] = []
    const advance = async (place: Place, lines: AsyncGenerator<Line>) => {
      const { value } = await lines.next()
      if (value) open.push({ place, lines, head: value })
    }
    for (let at = 0; at < waiting.length || open.length > 0; ) {
      const least = open.reduce((min, { head }) => Math.min(min, head.at), Number.POSITIVE_INFINITY)
      const place = waiting[at]
      if (place && place.entry.started_at! <= least) {
        at++
        await advance(place, this.#lines(place))
        continue
      }
      const index = open.findIndex(({ head }) => head.at === least)
      const [first] = open.splice(index, 1)
      yield { line: first!.head, place: first!.place }
      await advance(first!.place, first!.lines)
    }
  }

  async *#lines({ entry, path }: Place): AsyncGenerator<Line> {
    const { run_id, completed_at, state } = entry
    const { phase, failed, since = 0 } = this.#options
    const isBelow = phase !== undefined && path.includes(phase)
    const phases = failed ? await this.#failedPhases(entry) : null
    // A run that has not failed may still fail; its lines are read then.
    if (phases?.size === 0) return
    for (let after = this.#read.get(run_id) ?? 0; ; ) {
      const query = { run_id, after_seq: after, limit: PAGE, ...(phase !== undefined && !isBelow && { phase }) }
      const { lines, next } = await this.#source.lines(query)
      for (const line of lines) {
        if (line.at >= since && (!phases || phases.has(line.phase ?? ''))) yield line
      }
      this.#read.set(run_id, next)
      if (next === after) break
      after = next
    }
    if (completed_at !== null || state === 'interrupted') this.#done.add(run_id)
  }

  async #failedPhases({ run_id, state }: Entry): Promise<Set<string>> {
    if (state === 'queued') return new Set()
    return new Set(await this.#source.failedPhases(run_id))
  }
}

/** Lines as `docker compose logs` prints them: aligned, with a colour for each place. */
function writer(json: boolean): (line: Line, place: Place) => void {
  const paint = createPaint(process.stdout)
  const colours = [paint.cyan, paint.yellow, paint.green, paint.magenta, paint.blue]
  const known = new Map<string, Paint['cyan']>()
  let width = 0
  return (line, { entry, path }) => {
    if (json) return void process.stdout.write(`${JSON.stringify({ run_id: entry.run_id, ...line })}\n`)
    const name = inline([...path, line.phase ?? ''].filter(part => part !== '').join('/'))
    const colour = known.get(name) ?? colours[known.size % colours.length]!
    known.set(name, colour)
    width = Math.min(WIDEST, Math.max(width, Bun.stringWidth(name)))
    const head = `${paint.dim(new Date(line.at).toTimeString().slice(0, 8))}  ${colour(`${pad(name, width)} |`)} `
    for (const text of textOf(line, paint)) process.stdout.write(`${head}${text}\n`)
  }
}

function textOf({ stream, text, fields }: Line, paint: Paint): string[] {
  const extra =
    fields && Object.keys(fields).length > 0 && stream === 'log' ? paint.dim(` ${JSON.stringify(fields)}`) : ''
  const lines = printable(text).split('\n')
  return lines.map((line, at) => (at === lines.length - 1 ? line + extra : line))
}
