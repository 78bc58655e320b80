// What a program does, in numbers, in Prometheus' text format
// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format). Where OpenTelemetry's semantic
// conventions name a metric, it has that name in Prometheus' spelling. The usual client library was tried: it adds 70 ms
// to the start of every command and four packages for what is below.

import { monitorEventLoopDelay } from 'node:perf_hooks'
import { METRICS_TYPE } from '../wire/calls/process.ts'

export type Labels = Readonly<Record<string, string>>
export type Sample = readonly [labels: Labels, value: number]

/** A value that goes up and down, as it is now. */
export function gauge(name: string, help: string, samples: readonly Sample[]): string {
  return family(name, help, 'gauge', lines(name, samples))
}

/** What the program is. Prometheus takes an empty label for none. */
export function buildInfo({ version, commit }: { version: string; commit: string | null }): string {
  return gauge('cadre_build_info', 'Version of the program, and its commit.', [[{ version, commit: commit ?? '' }, 1]])
}

/** A sum since the start of the process, for each set of labels. */
export class Counter {
  readonly #sums = new Map<string, { labels: Labels; sum: number }>()
  readonly #name: string
  readonly #help: string

  /** A counter without labels begins with 0, so that its first increase is seen. */
  constructor(name: string, help: string, first: Labels | null = {}) {
    this.#name = name
    this.#help = help
    if (first) this.add(0, first)
  }

  add(by: number, labels: Labels = {}): void {
    const key = JSON.stringify(labels)
    const known = this.#sums.get(key)
    if (known) known.sum += by
    else this.#sums.set(key, { labels, sum: by })
  }

  text(): string {
    const samples = [...this.#sums.values()].map(({ labels, sum }): Sample => [labels, sum])
    return family(this.#name, this.#help, 'counter', lines(this.#name, samples))
  }
}

/** How often values came that were at most as great as each of `bounds`, for one set of labels. */
export class Series {
  readonly labels: Labels
  readonly counts: number[]
  sum = 0
  readonly #bounds: readonly number[]

  constructor(labels: Labels, bounds: readonly number[]) {
    this.labels = labels
    this.#bounds = bounds
    this.counts = bounds.map(() => 0)
  }

  observe(value: number): void {
    let at = 0
    while (value > this.#bounds[at]!) at++
    this.counts[at]! += 1
    this.sum += value
  }
}

/** The same, for each set of labels. */
export class Histogram {
  readonly #series = new Map<string, Series>()
  readonly #name: string
  readonly #help: string
  readonly #bounds: readonly number[]

  constructor(name: string, help: string, bounds: readonly number[]) {
    this.#name = name
    this.#help = help
    this.#bounds = [...bounds, Number.POSITIVE_INFINITY]
  }

  /** The series of these labels, for those who keep it. */
  series(labels: Labels): Series {
    const key = JSON.stringify(labels)
    const series = this.#series.get(key) ?? new Series(labels, this.#bounds)
    this.#series.set(key, series)
    return series
  }

  observe(value: number, labels: Labels = {}): void {
    this.series(labels).observe(value)
  }

  text(): string {
    const name = this.#name
    const parts = [...this.#series.values()].map(({ labels, counts, sum }) => {
      let total = 0
      const buckets = this.#bounds.map((bound, index): Sample => {
        total += counts[index]!
        return [{ ...labels, le: bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound) }, total]
      })
      return (
        lines(`${name}_bucket`, buckets) +
        lines(`${name}_sum`, [[labels, sum]]) +
        lines(`${name}_count`, [[labels, total]])
      )
    })
    return family(name, this.#help, 'histogram', parts.join(''))
  }
}

function family(name: string, help: string, type: string, text: string): string {
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${text}`
}

function lines(name: string, samples: readonly Sample[]): string {
  return samples
    .map(([labels, value]) => {
      const pairs = Object.entries(labels).map(([key, text]) => `${key}=${JSON.stringify(text)}`)
      return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`
    })
    .join('')
}

/** The bounds that OpenTelemetry recommends for the duration of HTTP requests, in seconds. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** How long the requests of an API took until their reply began, long polls included. */
export const requestDurations = (): Histogram =>
  new Histogram('http_server_request_duration_seconds', 'Time until the reply began, by route and status.', SECONDS)

let loop: ReturnType<typeof monitorEventLoopDelay> | null = null

/** How late the event loop was since the last call. Measuring begins with the first call. */
export function eventLoopDelay(): string {
  const delay = loop
  loop ??= monitorEventLoopDelay({ resolution: 50 })
  loop.enable()
  const seconds = (nanoseconds: number) => nanoseconds / 1e9
  const isMeasured = delay !== null && delay.count > 0
  const text = (['p50', 'p99', 'max'] as const).map(which => {
    const value = isMeasured ? seconds(which === 'max' ? delay.max : delay.percentile(which === 'p50' ? 50 : 99)) : 0
    return gauge(`nodejs_eventloop_delay_${which}_seconds`, 'How late the event loop was since the last scrape.', [
      [{}, value],
    ])
  })
  delay?.reset()
  return text.join('')
}

/** The reply to `GET /metrics`. */
export function metricsReply(parts: readonly string[]): Response {
  return new Response(parts.join(''), { headers: { 'content-type': METRICS_TYPE } })
}
