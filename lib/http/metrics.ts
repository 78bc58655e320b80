// What a program does, in numbers, in Prometheus' text format
// (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format). Where OpenTelemetry's semantic
// conventions name a metric, it has that name in Prometheus' spelling, unless `promtool check metrics` refuses it. The
// usual client library was tried: it adds 70 ms to the start of every command and four packages for what is below.

import { wholeNumber } from '../whole-number.ts'

export type Labels = Readonly<Record<string, string>>
export type Sample = readonly [labels: Labels, value: number]

/** The only declaration of a metric. */
export interface Declared {
  name: string
  help: string
  /** Labels whose values users choose, such as names of agents. The values of all others are listed in the program. */
  open?: readonly string[]
  /** The name that it had in the last release, under which it is served once more. */
  was?: string
}

/** How metrics are served, as the environment says. */
export interface MetricsOptions {
  /** How many values of open labels each metric admits (`CADRE_METRICS_SERIES`). */
  series: number
  /** Whether metrics of runs have their teams as labels (`CADRE_METRICS_TEAMS`). */
  teams: boolean
}

const MOST_SERIES = 200

/** Throws `invalid_request` for a value that it cannot read. */
export function metricsOptions(env: Record<string, string | undefined>): MetricsOptions {
  const series = wholeNumber('CADRE_METRICS_SERIES', env.CADRE_METRICS_SERIES || String(MOST_SERIES), 100_000, 1)
  return { series, teams: ['1', 'true', 'yes'].includes(env.CADRE_METRICS_TEAMS ?? '') }
}

/** What replaces the values of open labels that come after the bound. */
const OTHER = 'other'

/**
 * Bounds what one metric costs whoever stores it. The values of its open labels that come first are admitted until the
 * process ends. All later ones are `other`, beside the labels that the program lists.
 */
class Admission {
  readonly #open: readonly string[]
  readonly #most: number
  readonly #admitted = new Set<string>()

  constructor({ open = [] }: Declared, most: number) {
    this.#open = open
    this.#most = most
  }

  labelsFor(labels: Labels): Labels {
    if (this.#open.length === 0) return labels
    const key = JSON.stringify(this.#open.map(name => labels[name]))
    if (this.#admitted.has(key)) return labels
    if (this.#admitted.size < this.#most) {
      this.#admitted.add(key)
      return labels
    }
    return Object.fromEntries(
      Object.entries(labels).map(([name, text]) => [name, this.#open.includes(name) ? OTHER : text]),
    )
  }
}

/** A value that goes up and down, as it is when it is asked for. */
export class Gauge {
  readonly #declared: Declared
  readonly #admission: Admission
  readonly #joined: (one: number, another: number) => number

  /** `joined` makes one value of those whose labels are `other`; the default is their sum. */
  constructor(declared: Declared, most = MOST_SERIES, joined = (one: number, another: number) => one + another) {
    this.#declared = declared
    this.#admission = new Admission(declared, most)
    this.#joined = joined
  }

  /** Without a value there is no series. */
  text(value: number | null | undefined | readonly Sample[]): string {
    if (typeof value === 'number') return this.text([[{}, value]])
    const samples = new Map<string, Sample>()
    for (const [given, each] of value ?? []) {
      const labels = this.#admission.labelsFor(given)
      const key = JSON.stringify(labels)
      const known = samples.get(key)
      samples.set(key, [labels, known ? this.#joined(known[1], each) : each])
    }
    return family(this.#declared, 'gauge', name => lines(name, [...samples.values()]))
  }
}

/** What a counter has counted for one set of labels. */
export interface Count {
  readonly labels: Labels
  sum: number
}

/** A sum since the start of the process, for each set of labels. */
export class Counter {
  readonly #sums = new Map<string, Count>()
  readonly #declared: Declared
  readonly #admission: Admission

  /** Series begin with 0 where their labels are known before, so that their first increase is seen. */
  constructor(declared: Declared, first: readonly Labels[] = [{}], most = MOST_SERIES) {
    this.#declared = declared
    this.#admission = new Admission(declared, most)
    for (const labels of first) this.add(0, labels)
  }

  add(by: number, labels: Labels = {}): void {
    this.of(labels).sum += by
  }

  /** The count of these labels, for those who keep it. */
  of(given: Labels): Count {
    const labels = this.#admission.labelsFor(given)
    const key = JSON.stringify(labels)
    const count = this.#sums.get(key) ?? { labels, sum: 0 }
    this.#sums.set(key, count)
    return count
  }

  text(): string {
    const samples = [...this.#sums.values()].map(({ labels, sum }): Sample => [labels, sum])
    return family(this.#declared, 'counter', name => lines(name, samples))
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
  readonly #declared: Declared
  readonly #admission: Admission
  readonly #bounds: readonly number[]

  constructor(declared: Declared, bounds: readonly number[], most = MOST_SERIES) {
    this.#declared = declared
    this.#admission = new Admission(declared, most)
    this.#bounds = [...bounds, Number.POSITIVE_INFINITY]
  }

  /** The series of these labels, for those who keep it. */
  series(given: Labels): Series {
    const labels = this.#admission.labelsFor(given)
    const key = JSON.stringify(labels)
    const series = this.#series.get(key) ?? new Series(labels, this.#bounds)
    this.#series.set(key, series)
    return series
  }

  observe(value: number, labels: Labels = {}): void {
    this.series(labels).observe(value)
  }

  text(): string {
    return family(this.#declared, 'histogram', name =>
      [...this.#series.values()].map(series => this.#lines(name, series)).join(''),
    )
  }

  #lines(name: string, { labels, counts, sum }: Series): string {
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
  }
}

/** The samples of a metric under its name, and under the one that it had. */
function family({ name, help, was }: Declared, type: string, samplesOf: (name: string) => string): string {
  const under = (name: string, help: string) => `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${samplesOf(name)}`
  return under(name, help) + (was ? under(was, `Renamed to ${name}. The next release has only that name.`) : '')
}

const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '"': '\\"', '\n': '\\n' }

function lines(name: string, samples: readonly Sample[]): string {
  const escaped = (text: string) => text.replace(/[\\"\n]/g, sign => ESCAPES[sign]!)
  return samples
    .map(([labels, value]) => {
      const pairs = Object.entries(labels).map(([key, text]) => `${key}="${escaped(text)}"`)
      return `${name}${pairs.length > 0 ? `{${pairs.join(',')}}` : ''} ${value}\n`
    })
    .join('')
}

/** The bounds that OpenTelemetry recommends for the duration of HTTP requests, in seconds. */
const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/** How long the requests of an API took until their reply began, long polls included. */
export const requestDurations = (): Histogram =>
  new Histogram(
    { name: 'http_server_request_duration_seconds', help: 'Time until the reply began, by route and status.' },
    SECONDS,
  )
