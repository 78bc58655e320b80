// The reply to `GET /metrics`, and what every program says there about its process: its version, how late its event loop is,
// and what the system says of it, under the names that Prometheus gives to processes
// (https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics).

import { readdir, readFile } from 'node:fs/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Telemetry } from '../log/telemetry.ts'
import { build } from '../program/version.ts'
import { METRICS_TYPE } from '../wire/calls/process.ts'
import { Counter, Gauge } from './metrics.ts'

const BUILD = new Gauge({ name: 'cadre_build_info', help: 'Version of the program, and its commit.' })
const DELAYS = (['p50', 'p99', 'max'] as const).map(which => {
  const name = `nodejs_eventloop_delay_${which}_seconds`
  return [which, new Gauge({ name, help: 'How late the event loop was since the last scrape.' })] as const
})
const STARTED = new Gauge({ name: 'process_start_time_seconds', help: 'When the process started.' })
const RESIDENT = new Gauge({ name: 'process_resident_memory_bytes', help: 'Memory of the process.' })
const OPEN_FILES = new Gauge({ name: 'process_open_fds', help: 'Open file descriptors of the process.' })
const MOST_FILES = new Gauge({ name: 'process_max_fds', help: 'How many file descriptors the process may open.' })

/** Linux lists them; elsewhere there are no series. */
const DESCRIPTORS = '/proc/self/fd'
const LIMITS = '/proc/self/limits'

/** `parts` and those of the process, as a reply. */
export async function metricsReply(parts: readonly string[], telemetry: Telemetry | null): Promise<Response> {
  const all = [await processMetrics(), droppedOf(telemetry), ...parts]
  return new Response(all.join(''), { headers: { 'content-type': METRICS_TYPE } })
}

function droppedOf(telemetry: Telemetry | null): string {
  const dropped = new Counter(
    { name: 'cadre_telemetry_dropped_total', help: 'Spans and log lines that could not be exported, by signal.' },
    [],
  )
  for (const [signal, count] of telemetry?.dropped() ?? []) dropped.add(count, { signal })
  return dropped.text()
}

async function processMetrics(): Promise<string> {
  const [open, limits] = await Promise.all([
    readdir(DESCRIPTORS).catch(() => null),
    readFile(LIMITS, 'utf8').catch(() => ''),
  ])
  const [, most] = /^Max open files\s+(\d+)/m.exec(limits) ?? []
  const { version, commit } = build()
  const { user, system } = process.cpuUsage()
  const cpu = new Counter({ name: 'process_cpu_seconds_total', help: 'Processor time that the process has used.' })
  cpu.add((user + system) / 1e6)
  return [
    // Prometheus takes an empty label for none.
    BUILD.text([[{ version, commit: commit ?? '' }, 1]]),
    eventLoopDelay(),
    cpu.text(),
    STARTED.text(performance.timeOrigin / 1_000),
    RESIDENT.text(process.memoryUsage.rss()),
    OPEN_FILES.text(open?.length),
    MOST_FILES.text(most === undefined ? null : Number(most)),
  ].join('')
}

let loop: ReturnType<typeof monitorEventLoopDelay> | null = null

/** How late the event loop was since the last call. Measuring begins with the first call. */
function eventLoopDelay(): string {
  const delay = loop
  loop ??= monitorEventLoopDelay({ resolution: 50 })
  loop.enable()
  const seconds = (nanoseconds: number) => nanoseconds / 1e9
  const isMeasured = delay !== null && delay.count > 0
  const text = DELAYS.map(([which, gauge]) => {
    if (!isMeasured) return gauge.text(0)
    return gauge.text(seconds(which === 'max' ? delay.max : delay.percentile(which === 'p50' ? 50 : 99)))
  })
  delay?.reset()
  return text.join('')
}
