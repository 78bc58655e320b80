// A run as it happens: its record, its phases, its tree, and new log lines. The event stream changes the states of runs in
// the tree. It has no results and no new sub-runs, so an event about those reads them again, many events at once.

import { batch, computed, signal } from '@preact/signals'
import type { Static } from 'typebox'
import { ListReviews } from '../../wire/calls/reviews.ts'
import { GetHistory, GetPhases, GetRun, GetTree, GetWhy } from '../../wire/calls/runs.ts'
import type { AskedReview } from '../../wire/records/review-records.ts'
import type { History, LogLine, PhasesView, RunDetailView, RunEvent, Why } from '../../wire/records/run-records.ts'
import { call, Refusal } from '../kit/api.ts'
import { type Branch, type Ranked, ranked } from './failures.ts'
import { events } from './streams.ts'

export type Detail = Static<typeof RunDetailView>
export type Phase = Static<typeof PhasesView>['phases'][number]
export type { Branch }

type Explained = Static<typeof Why>

const PAUSE_MS = 150
const AGAIN_MS = 1_000
/** Reading a large tree takes long. The pause before the next time is this many times as long. */
const REST = 4

/** Runs `action` once for many calls, with a pause of at least `PAUSE_MS`, and a longer one when it is slow. */
function throttled(action: () => Promise<void>) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let busy = false
  let wanted = false
  let pause = PAUSE_MS
  const run = async () => {
    timer = undefined
    busy = true
    const started = performance.now()
    await action()
    pause = Math.max(PAUSE_MS, REST * (performance.now() - started))
    busy = false
    if (wanted) ask()
  }
  const ask = () => {
    wanted = busy
    if (!busy) timer ??= setTimeout(run, pause)
  }
  return Object.assign(ask, { stop: () => clearTimeout(timer) })
}

export class Live {
  readonly id: string
  readonly run = signal<Detail | null>(null)
  readonly phases = signal<readonly Phase[]>([])
  /** The earlier attempts of its phases, and their writes to other systems. */
  readonly history = signal<History>({ attempts: [], written: [] })
  /** Why it ended as it did; null before its end. */
  readonly why = signal<Explained | null>(null)
  /** The run and all runs below it. */
  readonly tree = signal<readonly Branch[]>([])
  /** The same runs, the worst first. */
  readonly ranked = computed<readonly Ranked[]>(() => ranked(this.tree.value))
  /** All runs of the top run, as they were read last. */
  readonly #whole = signal<readonly Branch[]>([])
  readonly rankedWhole = computed<readonly Ranked[]>(() => ranked(this.#whole.value))
  /** The run that is chosen in the tree, and the branches that are closed there. */
  readonly chosen = signal<string | null>(null)
  readonly closed = signal<ReadonlySet<string>>(new Set())
  readonly reviews = signal<readonly AskedReview[]>([])
  readonly error = signal<unknown>(null)
  /** Whether the connection for the events of the run is open. */
  readonly connected = signal(true)
  /** Called with new log lines of any run of the tree. */
  readonly listeners = new Set<(runId: string, lines: readonly LogLine[]) => void>()
  readonly #closed = new AbortController()
  readonly #treeIndex = new Map<string, number>()
  readonly #refreshDetails = throttled(() => this.#read(() => this.#readDetails()))
  readonly #refreshTree = throttled(() => this.#read(() => this.#readTree()))
  /** The changes of runs in the tree that events brought and that are not shown yet. */
  readonly #changes = new Map<string, Pick<Branch, 'state' | 'started_at' | 'completed_at' | 'tolerated'>>()
  readonly #applyChanges = throttled(async () => this.#writeChanges())

  constructor(id: string) {
    this.id = id
    void this.#start()
  }

  close(): void {
    this.#closed.abort()
    this.#refreshDetails.stop()
    this.#refreshTree.stop()
    this.#applyChanges.stop()
  }

  /** Reads everything again, and follows the run when it goes on. */
  async again(): Promise<void> {
    await this.#start()
  }

  #following = false

  async #start(): Promise<void> {
    await this.#read(async () => {
      await this.#readDetails()
      await this.#readTree()
    })
    if (this.run.value === null || this.run.value.completed_at !== null || this.#following) return
    this.#following = true
    await this.#follow()
    this.#following = false
  }

  async #read(action: () => Promise<void>): Promise<void> {
    try {
      await action()
      this.error.value = null
    } catch (thrown) {
      if (!this.#closed.signal.aborted) this.error.value = thrown
    }
  }

  async #readDetails(): Promise<void> {
    const of = { run_id: this.id }
    const [run, { phases }, history, { reviews }] = await Promise.all([
      call(GetRun, of),
      call(GetPhases, of),
      call(GetHistory, of),
      call(ListReviews, { ...of, limit: 100 }),
    ])
    batch(() => {
      this.run.value = run
      this.phases.value = phases
      this.history.value = history
      this.reviews.value = reviews
    })
    // What is shown besides does not wait for it, and does without it.
    const ended = run.completed_at === null ? null : call(GetWhy, of)
    this.why.value = (await ended?.catch(() => null)) ?? null
  }

  async #readTree(): Promise<void> {
    const { runs } = await call(GetTree, { run_id: this.id })
    const from = runs.findIndex(({ run_id }) => run_id === this.id)
    const depth = runs[from]?.call_depth ?? 0
    const end = runs.findIndex((each, index) => index > from && each.call_depth <= depth)
    const own = runs.slice(Math.max(0, from), end < 0 ? undefined : end)
    this.#treeIndex.clear()
    for (const [index, { run_id }] of own.entries()) this.#treeIndex.set(run_id, index)
    batch(() => {
      this.tree.value = own
      this.#whole.value = runs
    })
  }

  async #follow(): Promise<void> {
    const { signal } = this.#closed
    for (let last: string | null = null; !signal.aborted; ) {
      try {
        for await (const { id, event } of events(this.id, last, signal)) {
          this.connected.value = true
          last = id ?? last
          this.#apply(event)
          if (event.event === 'end') return
        }
      } catch (thrown) {
        if (signal.aborted) return
        if (thrown instanceof Refusal && thrown.code !== 'unreachable') {
          this.error.value = thrown
          return
        }
      }
      this.connected.value = false
      await new Promise(resolve => setTimeout(resolve, AGAIN_MS))
    }
  }

  #apply({ event, data }: RunEvent): void {
    if (event === 'log') {
      for (const listener of this.listeners) listener(data.run_id, data.lines)
      return
    }
    if (event === 'phase') {
      if (data.run_id === this.id) this.#refreshDetails()
      return
    }
    if (data.run_id === this.id) this.#refreshDetails()
    const index = this.#treeIndex.get(data.run_id)
    if (index === undefined) return this.#refreshTree()
    const { state, started_at, completed_at, tolerated = null } = data
    this.#changes.set(data.run_id, { state, started_at, completed_at, tolerated })
    this.#applyChanges()
  }

  #writeChanges(): void {
    const tree = [...this.tree.value]
    let changed = false
    for (const [id, now] of this.#changes) {
      const index = this.#treeIndex.get(id)
      const before = index === undefined ? undefined : tree[index]
      if (!before || (before.state === now.state && before.completed_at === now.completed_at)) continue
      tree[index!] = { ...before, ...now }
      changed = true
    }
    this.#changes.clear()
    if (changed) this.tree.value = tree
  }
}
