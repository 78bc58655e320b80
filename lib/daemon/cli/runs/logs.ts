// `logs RUN`: the log lines of a run and of all runs below it, in the order of time, each with the place that said it.

import type { Static } from 'typebox'
import { CadreError } from '../../../error.ts'
import type { LogLine } from '../../../run/engine.ts'
import { createPaint, line, lines, type Paint, type Printable, pad } from '../../../text/printable.ts'
import { didYouMean, listed } from '../../../text/spelling.ts'
import { print, printJsonLine, tell } from '../../../text/terminal.ts'
import { GetLogs, GetPhases, GetTree } from '../../../wire/calls/runs.ts'
import type { ToldTree } from '../../../wire/records/run-records.ts'
import type { HubClient } from '../../link/link.ts'
import { placeOf } from '../kit/place-of.ts'
import type { PlaceOptions, RunPlace } from '../kit/run-place.ts'

/** A run of the tree, and the names between the run that was asked for and it. */
interface LogPlace {
  entry: TreeEntry
  path: readonly string[]
}

type TreeEntry = Static<typeof ToldTree>['runs'][number]

export interface LogOptions extends PlaceOptions {
  json?: boolean
  follow?: boolean
  /** Only what this phase said, or runs below it. */
  phase?: string
  /** Only what failed phases said. */
  failed?: boolean
  /** Epoch milliseconds. */
  since?: number
}

const PAGE = 500
const FOLLOW_MS = 300
const WIDEST = 32

export async function logs(typed: string, options: LogOptions): Promise<void> {
  const place = await placeOf(options)
  const run_id = await place.runId(typed)
  const where = options.follow && place.hub ? await outlasting(place) : place
  const reader = new Reader(where, options)
  const write = writer(options.json ?? false)
  let isSilent = true
  for (;;) {
    // The states are read before the lines, so that for an ended run the lines are complete.
    const { runs } = await where.ask(all => all.call(GetTree, { run_id }))
    const places = placesBelow(runs, run_id)
    for await (const { line, place } of reader.next(places)) {
      write(line, place)
      isSilent = false
    }
    const { state, completed_at } = places[0]!.entry
    if (!options.follow || state === 'interrupted' || completed_at !== null) {
      const lacks = where.hub ? await lacksOf(where.hub, places) : []
      for (const remark of lacks) tell(line`${remark}`)
      if (isSilent && options.phase !== undefined) await refuseUnknownPhase(where, places, options.phase)
      if (isSilent && lacks.length === 0) tell(line`no lines`)
      return
    }
    await Bun.sleep(FOLLOW_MS)
  }
}

/** The same place, where everything that is asked waits while the hub is away. */
async function outlasting(place: RunPlace): Promise<RunPlace> {
  const { HubAbsence } = await import('../../calls/hub-absence.ts')
  const absence = new HubAbsence(said => tell(line`${said}`))
  return { ...place, ask: work => absence.outlast(() => place.ask(work)) }
}

/** Throws `not_found` when no team of these runs has the phase, so that a misspelt name is not taken for a silent one. */
async function refuseUnknownPhase(where: RunPlace, places: readonly LogPlace[], phase: string): Promise<void> {
  const names = new Set<string>()
  if (places.some(({ path }) => path.includes(phase))) return
  const teams = new Map(places.map(({ entry }) => [entry.call_path.join(' '), entry.run_id]))
  for (const run_id of teams.values()) {
    const { phases } = await where.ask(all => all.call(GetPhases, { run_id }))
    for (const { name } of phases) names.add(name)
    if (names.has(phase)) return
  }
  const message = `there is no phase ${phase}${didYouMean(phase, names)}: there are ${listed([...names])}`
  throw new CadreError('not_found', message)
}

/** What the hub does not have of the lines, in words. */
async function lacksOf(hub: HubClient, places: readonly LogPlace[]): Promise<readonly string[]> {
  const { lacksOfLogs } = await import('./hub-logs.ts')
  const logs = places.map(({ entry, path }) => ({ run_id: entry.run_id, name: path.join('/') }))
  return lacksOfLogs(hub, logs)
}

/** The run itself first. The entries of a tree come depth first. */
function placesBelow(entries: readonly TreeEntry[], runId: string): LogPlace[] {
  const start = entries.findIndex(({ run_id }) => run_id === runId)
  const top = entries[start]
  if (!top) throw new CadreError('not_found', `there is no readable record of run ${runId} in its tree`)
  const places: LogPlace[] = [{ entry: top, path: [] }]
  const above: string[][] = [[]]
  for (const entry of entries.slice(start + 1)) {
    const depth = entry.call_depth - top.call_depth
    if (depth <= 0) break
    const names = [entry.parent_phase, entry.run_name].filter(name => name !== null)
    above[depth] = [...(above[depth - 1] ?? []), ...names]
    places.push({ entry, path: above[depth] })
  }
  return places
}

interface Said {
  line: LogLine
  place: LogPlace
}

/** Reads each line once, over any number of passes. */
class Reader {
  readonly #where: RunPlace
  readonly #options: LogOptions
  /** The last line that was read, by run. */
  readonly #read = new Map<string, number>()
  /** Runs that had ended when their last line was read. */
  readonly #done = new Set<string>()

  constructor(where: RunPlace, options: LogOptions) {
    this.#where = where
    this.#options = options
  }

  /**
   * What these runs said since the last pass, in the order of time. A run says nothing before it starts, so only runs
   * that overlap are read at the same time.
   */
  async *next(places: readonly LogPlace[]): AsyncGenerator<Said> {
    const since = this.#options.since ?? 0
    const waiting = places
      .filter(({ entry }) => entry.started_at !== null && !this.#done.has(entry.run_id))
      .filter(({ entry }) => entry.completed_at === null || entry.completed_at >= since)
      .toSorted((a, b) => a.entry.started_at! - b.entry.started_at!)
    const open: { place: LogPlace; lines: AsyncGenerator<LogLine>; head: LogLine }[] = []
    const advance = async (place: LogPlace, lines: AsyncGenerator<LogLine>) => {
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

  async *#lines({ entry, path }: LogPlace): AsyncGenerator<LogLine> {
    const { run_id, completed_at, state } = entry
    const { phase, failed, since = 0 } = this.#options
    const isBelow = phase !== undefined && path.includes(phase)
    const phases = failed ? await this.#failedPhases(entry) : null
    // A run that has not failed may still fail; its lines are read then.
    if (phases?.size === 0) return
    for (let after = this.#read.get(run_id) ?? 0; ; ) {
      const query = { run_id, after_seq: after, limit: PAGE, ...(phase !== undefined && !isBelow && { phase }) }
      const { lines, next } = await this.#where.ask(all => all.call(GetLogs, query))
      for (const line of lines) {
        if (line.at >= since && (!phases || phases.has(line.phase ?? ''))) yield line
      }
      this.#read.set(run_id, next)
      if (next === after) break
      after = next
    }
    if (completed_at !== null || state === 'interrupted') this.#done.add(run_id)
  }

  async #failedPhases({ run_id, state }: TreeEntry): Promise<Set<string>> {
    if (state === 'queued') return new Set()
    const { phases } = await this.#where.ask(all => all.call(GetPhases, { run_id }))
    return new Set(phases.flatMap(phase => (phase.state === 'failed' ? [phase.name] : [])))
  }
}

/** Lines as `docker compose logs` prints them: aligned, with a colour for each place. */
function writer(json: boolean): (line: LogLine, place: LogPlace) => void {
  const paint = createPaint(process.stdout)
  const colours = [paint.cyan, paint.yellow, paint.green, paint.magenta, paint.blue]
  const known = new Map<string, Paint['cyan']>()
  let width = 0
  return (said, { entry, path }) => {
    if (json) return printJsonLine({ run_id: entry.run_id, ...said })
    const name = [...path, said.phase ?? ''].filter(part => part !== '').join('/')
    const colour = known.get(name) ?? colours[known.size % colours.length]!
    known.set(name, colour)
    width = Math.min(WIDEST, Math.max(width, line`${name}`.width))
    const head = line`${paint.dim(new Date(said.at).toTimeString().slice(0, 8))}  ${colour(line`${pad(name, width)} |`)} `
    print(textOf(said, paint).map(text => line`${head}${text}`))
  }
}

function textOf({ stream, text, fields }: LogLine, paint: Paint): Printable[] {
  const all = lines(text)
  if (!fields || Object.keys(fields).length === 0 || stream !== 'log') return all
  return [...all.slice(0, -1), line`${all.at(-1) ?? ''}${paint.dim(` ${JSON.stringify(fields)}`)}`]
}
