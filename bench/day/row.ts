// One row of the table: a fault in a whole installation at work, when it is noticed and where, when work goes on, and what
// became of every run.

import { until } from '../../tests/support/bounded.ts'
import type { Load } from './load.ts'
import { type Prometheus, startPrometheus } from './prometheus.ts'
import { type Place, type Sight, Watch } from './watch.ts'
import { World, type WorldOptions } from './world.ts'

export interface Asked {
  /** The commit from which a rolling upgrade begins. */
  from: string
  /** The program of Prometheus; null where it cannot be had. */
  prometheus: string | null
}

export interface Row {
  name: string
  /** What this world has that others have not. What has to be removed afterwards is put onto the stack. */
  options?(stack: AsyncDisposableStack, asked: Asked): WorldOptions | Promise<WorldOptions>
  /** Brings the fault about and ends it, and marks both moments. What it returns is said beside the row. */
  run(world: World, mark: Mark, load: Load): Promise<string[] | undefined>
  /** Whether everything is as before. */
  isWell?(world: World): Promise<boolean>
  /** Whether the fault loses accepted dispatches that no daemon had, because the database has lost them. */
  losesCommits?: true
}

export interface Mark {
  fault(): void
  mended(): void
}

export interface Outcome {
  name: string
  /** Milliseconds from the fault until it was seen; null if it never was. */
  noticed: Record<Place, number | null>
  /** The alerts that fired, in their order. */
  alerts: string[] | null
  sights: (Sight & { afterMs: number })[]
  /** Milliseconds from the mending until the last refused call, and until a run that was dispatched since has worked. */
  callsMs: number
  runsMs: number
  refused: Map<string, number>
  runs: number
  lost: number
  doubled: number
  notes: string[]
}

/** How long a world works before its fault. */
const WARM_MS = 6_000
const QUIET_MS = 5_000
/** How long it is watched after its end, in which alerts still come. */
const AFTER_MS = 12_000
const RECOVERED_MS = 100_000

export async function runRow(row: Row, asked: Asked): Promise<Outcome> {
  await using stack = new AsyncDisposableStack()
  const { world, load } = await World.open(stack, (await row.options?.(stack, asked)) ?? {})
  const prometheus = await watched(world, asked.prometheus)
  stack.defer(() => prometheus?.stop())
  const watch = new Watch(world, prometheus)
  load.start()
  watch.start()
  await until(() => load.executed().size >= 8, 'the first runs', 60_000)
  await Bun.sleep(WARM_MS)
  watch.arm()
  const times = { fault: 0, mended: 0 }
  const mark: Mark = {
    fault() {
      times.fault = Date.now()
    },
    mended() {
      times.mended = Date.now()
    },
  }
  const notes = (await row.run(world, mark, load)) ?? []
  const first = () => firstAfter(load, times.mended)
  await until(() => first() !== null, `${row.name}: a run after the fault`, RECOVERED_MS)
  if (row.isWell) await until(() => row.isWell!(world), `${row.name}: everything as before`, RECOVERED_MS)
  await Bun.sleep(times.mended + AFTER_MS - Date.now())
  const isQuiet = () => Date.now() - (load.refused.at(-1)?.at ?? 0) > QUIET_MS
  await until(isQuiet, `${row.name}: no more refusals`, RECOVERED_MS)
  await load.stop()
  const lost = await lostOf(load)
  await watch.stop()
  const executed = load.executed()
  const dispatched = new Set(load.dispatched.map(({ text }) => text))
  const after = watch.sights
    .map(sight => ({ ...sight, afterMs: sight.at - times.fault }))
    .filter(({ afterMs }) => afterMs >= 0)
  const noticed = (place: Place) => after.find(sight => sight.place === place)?.afterMs ?? null
  const during = load.refused.filter(({ at }) => at >= times.fault)
  if (row.losesCommits && lost.length > 0) {
    notes.push(`${lost.length} dispatches were only in what the database lost, and no daemon had them`)
  }
  return {
    name: row.name,
    noticed: { '/ready': noticed('/ready'), status: noticed('status'), page: noticed('page'), alert: noticed('alert') },
    alerts: prometheus && [
      ...new Set(after.filter(({ place }) => place === 'alert').map(({ line }) => line.split(':')[0]!)),
    ],
    sights: after,
    callsMs: Math.max(0, (during.at(-1)?.at ?? 0) - times.mended),
    runsMs: first()! - times.mended,
    refused: counted(during.map(({ how }) => how)),
    runs: dispatched.size,
    lost: row.losesCommits ? 0 : lost.length,
    doubled: [...executed.values()].filter(({ length }) => length > 1).length,
    notes: [...notes, tookText(load, times)],
  }
}

function watched(world: World, program: string | null): Promise<Prometheus> | null {
  if (program === null) return null
  const at = ({ port }: { port: number }) => `127.0.0.1:${port}`
  return startPrometheus(program, { hubs: world.hubs.map(at), daemons: world.daemons.map(at) })
}

/** When the first run worked that was dispatched after `at`. */
function firstAfter(load: Load, at: number): number | null {
  const executed = load.executed()
  const since = load.dispatched
    .filter(({ acceptedAt }) => acceptedAt >= at)
    .flatMap(({ text }) => executed.get(text) ?? [])
  return since.length === 0 ? null : Math.min(...since)
}

/** Accepted runs that were not executed, although there was time. */
async function lostOf(load: Load): Promise<string[]> {
  const missing = () => {
    const executed = load.executed()
    return load.dispatched.filter(({ text }) => !executed.has(text)).map(({ text }) => text)
  }
  await until(() => missing().length === 0, 'every run', 45_000).catch(() => null)
  // Time for what would be executed twice.
  await Bun.sleep(3_000)
  return missing()
}

function counted(all: string[]): Map<string, number> {
  const found = new Map<string, number>()
  for (const each of all) found.set(each, (found.get(each) ?? 0) + 1)
  return found
}

function tookText({ took }: Load, times: { fault: number }): string {
  const during = took
    .filter(({ at }) => at >= times.fault)
    .map(({ ms }) => ms)
    .sort((a, b) => a - b)
  const part = (share: number) =>
    Math.round(during[Math.min(during.length - 1, Math.floor(share * during.length))] ?? 0)
  return `${during.length} calls, p50 ${part(0.5)} ms, p99 ${part(0.99)} ms, longest ${part(1)} ms`
}
