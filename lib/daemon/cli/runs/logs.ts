// `logs RUN`: the log lines of a run and of all runs below it, in the order of time, each with the run and the phase that
// wrote it.

import type { Static } from 'typebox'
import { CadreError } from '../../../error.ts'
import type { LogLine } from '../../../run/engine.ts'
import { createPaint, line, lines, type Paint, type Printable, pad } from '../../../text/printable.ts'
import { didYouMean, listed } from '../../../text/spelling.ts'
import { print, printJsonLine, printMessage } from '../../../text/terminal.ts'
import { GetLogs, GetPhases, GetTree } from '../../../wire/calls/runs.ts'
import type { TreeView } from '../../../wire/records/run-records.ts'
import type { HubClient } from '../../link/hub-client.ts'
import { backendOf } from '../backend/home-backend.ts'
import type { BackendOptions, RunBackend } from '../backend/run-backend.ts'

/** A run of the tree, and the names between the run that was asked for and it. */
interface LoggedRun {
  entry: TreeEntry
  path: readonly string[]
}

type TreeEntry = Static<typeof TreeView>['runs'][number]

export interface LogOptions extends BackendOptions {
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
  const chosen = await backendOf(options)
  const run_id = await chosen.runId(typed)
  const backend = options.follow && chosen.hub ? await waitingForHub(chosen) : chosen
  const reader = new Reader(backend, options)
  const write = writer(options.json ?? false)
  let isSilent = true
  for (;;) {
    // The states are read before the lines, so that for an ended run the lines are complete.
    const { runs } = await backend.ask(all => all.call(GetTree, { run_id }))
    const logged = loggedRuns(runs, run_id)
    for await (const { line, run } of reader.next(logged)) {
      write(line, run)
      isSilent = false
    }
    const { state, completed_at } = logged[0]!.entry
    if (!options.follow || state === 'interrupted' || completed_at !== null) {
      const lacks = backend.hub ? await lacksOf(backend.hub, logged) : []
      for (const remark of lacks) printMessage(line`${remark}`)
      if (isSilent && options.phase !== undefined) await refuseUnknownPhase(backend, logged, options.phase)
      if (isSilent && lacks.length === 0) printMessage(line`no lines`)
      return
    }
    await Bun.sleep(FOLLOW_MS)
  }
}

/** The same backend, of which each call waits while the hub is away. */
async function waitingForHub(backend: RunBackend): Promise<RunBackend> {
  const { HubAbsence } = await import('../backend/hub-absence.ts')
  const absence = new HubAbsence(message => printMessage(line`${message}`))
  return { ...backend, ask: work => absence.outlast(() => backend.ask(work)) }
}

/** Throws `not_found` when no team of these runs has the phase, so that a misspelt name is not taken for a silent one. */
async function refuseUnknownPhase(backend: RunBackend, logged: readonly LoggedRun[], phase: string): Promise<void> {
  const names = new Set<string>()
  if (logged.some(({ path }) => path.includes(phase))) return
  const teams = new Map(logged.map(({ entry }) => [entry.call_path.join(' '), entry.run_id]))
  for (const run_id of teams.values()) {
    const { phases } = await backend.ask(all => all.call(GetPhases, { run_id }))
    for (const { name } of phases) names.add(name)
    if (names.has(phase)) return
  }
  const message = `there is no phase ${phase}${didYouMean(phase, names)}: there are ${listed([...names])}`
  throw new CadreError('not_found', message)
}

/** What the hub does not have of the lines, in words. */
async function lacksOf(hub: HubClient, logged: readonly LoggedRun[]): Promise<readonly string[]> {
  const { lacksOfLogs } = await import('./hub-logs.ts')
  const logs = logged.map(({ entry, path }) => ({ run_id: entry.run_id, name: path.join('/') }))
  return lacksOfLogs(hub, logs)
}

/** The run itself first. The entries of a tree come depth first. */
function loggedRuns(entries: readonly TreeEntry[], runId: string): LoggedRun[] {
  const start = entries.findIndex(({ run_id }) => run_id === runId)
  const top = entries[start]
  if (!top) throw new CadreError('not_found', `there is no readable record of run ${runId} in its tree`)
  const logged: LoggedRun[] = [{ entry: top, path: [] }]
  const above: string[][] = [[]]
  for (const entry of entries.slice(start + 1)) {
    const depth = entry.call_depth - top.call_depth
    if (depth <= 0) break
    const names = [entry.parent_phase, entry.run_name].filter(name => name !== null)
    above[depth] = [...(above[depth - 1] ?? []), ...names]
    logged.push({ entry, path: above[depth] })
  }
  return logged
}

interface LoggedLine {
  line: LogLine
  run: LoggedRun
}

/** Reads each line once, over any number of passes. */
class Reader {
  readonly #backend: RunBackend
  readonly #options: LogOptions
  /** The last line that was read, by run. */
  readonly #read = new Map<string, number>()
  /** Runs that had ended when their last line was read. */
  readonly #done = new Set<string>()

  constructor(backend: RunBackend, options: LogOptions) {
    this.#backend = backend
    this.#options = options
  }

  /**
   * What these runs said since the last pass, in the order of time. A run says nothing before it starts, so only runs
   * that overlap are read at the same time.
   */
  async *next(logged: readonly LoggedRun[]): AsyncGenerator<LoggedLine> {
    const since = this.#options.since ?? 0
    const waiting = logged
      .filter(({ entry }) => entry.started_at !== null && !this.#done.has(entry.run_id))
      .filter(({ entry }) => entry.completed_at === null || entry.completed_at >= since)
      .toSorted((a, b) => a.entry.started_at! - b.entry.started_at!)
    const open: { run: LoggedRun; lines: AsyncGenerator<LogLine>; head: LogLine }[] = []
    const advance = async (run: LoggedRun, lines: AsyncGenerator<LogLine>) => {
      const { value } = await lines.next()
      if (value) open.push({ run, lines, head: value })
    }
    for (let at = 0; at < waiting.length || open.length > 0; ) {
      const least = open.reduce((min, { head }) => Math.min(min, head.at), Number.POSITIVE_INFINITY)
      const run = waiting[at]
      if (run && run.entry.started_at! <= least) {
        at++
        await advance(run, this.#lines(run))
        continue
      }
      const index = open.findIndex(({ head }) => head.at === least)
      const [first] = open.splice(index, 1)
      yield { line: first!.head, run: first!.run }
      await advance(first!.run, first!.lines)
    }
  }

  async *#lines({ entry, path }: LoggedRun): AsyncGenerator<LogLine> {
    const { run_id, completed_at, state } = entry
    const { phase, failed, since = 0 } = this.#options
    const isBelow = phase !== undefined && path.includes(phase)
    const phases = failed ? await this.#failedPhases(entry) : null
    // A run that has not failed may still fail; its lines are read then.
    if (phases?.size === 0) return
    for (let after = this.#read.get(run_id) ?? 0; ; ) {
      const query = { run_id, after_seq: after, limit: PAGE, ...(phase !== undefined && !isBelow && { phase }) }
      const { lines, next } = await this.#backend.ask(all => all.call(GetLogs, query))
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
    const { phases } = await this.#backend.ask(all => all.call(GetPhases, { run_id }))
    return new Set(phases.flatMap(phase => (phase.state === 'failed' ? [phase.name] : [])))
  }
}

/** Lines as `docker compose logs` prints them: aligned, with a colour for each run and phase. */
function writer(json: boolean): (line: LogLine, run: LoggedRun) => void {
  const paint = createPaint(process.stdout)
  const colours = [paint.cyan, paint.yellow, paint.green, paint.magenta, paint.blue]
  const known = new Map<string, Paint['cyan']>()
  let width = 0
  return (message, { entry, path }) => {
    if (json) return printJsonLine({ run_id: entry.run_id, ...message })
    const name = [...path, message.phase ?? ''].filter(part => part !== '').join('/')
    const colour = known.get(name) ?? colours[known.size % colours.length]!
    known.set(name, colour)
    width = Math.min(WIDEST, Math.max(width, line`${name}`.width))
    const time = paint.dim(new Date(message.at).toTimeString().slice(0, 8))
    const head = line`${time}  ${colour(line`${pad(name, width)} |`)} `
    print(textOf(message, paint).map(text => line`${head}${text}`))
  }
}

function textOf({ stream, text, fields }: LogLine, paint: Paint): Printable[] {
  const all = lines(text)
  if (!fields || Object.keys(fields).length === 0 || stream !== 'log') return all
  return [...all.slice(0, -1), line`${all.at(-1) ?? ''}${paint.dim(` ${JSON.stringify(fields)}`)}`]
}
