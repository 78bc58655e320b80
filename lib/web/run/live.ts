// A run as it happens: its record, its phases, its tree, and new log lines. What the event stream tells is put into
// place; results and new sub-runs, which it does not carry, are read again, a moment later and together.

import { batch, signal } from '@preact/signals'
import type { Static } from 'typebox'
import { ListReviews } from '../../wire/calls/reviews.ts'
import { GetHistory, GetPhases, GetRun, GetTree } from '../../wire/calls/runs.ts'
import type {
  AskedReview,
  History,
  LogLine,
  RunEvent,
  ToldDetail,
  ToldPhases,
  ToldTree,
} from '../../wire/records/run-records.ts'
import { call, events, Refusal } from '../kit/api.ts'

export type Detail = Static<typeof ToldDetail>
export type Phase = Static<typeof ToldPhases>['phases'][number]
export type Branch = Static<typeof ToldTree>['runs'][number]

const SOON_MS = 150
const AGAIN_MS = 1_000
/** A large tree takes a while to be read. The page has other work, too. */
const REST = 4

/** Work that is asked for often and done once, at least `SOON_MS` apart; a slow one waits several times as long as it took. */
function together(work: () => Promise<void>) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let busy = false
  let wanted = false
  let pause = SOON_MS
  const run = async () => {
    timer = undefined
    busy = true
    const started = performance.now()
    await work()
    pause = Math.max(SOON_MS, REST * (performance.now() - started))
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
  /** Earlier attempts and outside writes of its phases. */
  readonly history = signal<History>({ attempts: [], written: [] })
  readonly tree = signal<readonly Branch[]>([])
  readonly reviews = signal<readonly AskedReview[]>([])
  readonly error = signal<unknown>(null)
  /** Whether the events of a run that goes on are being received. */
  readonly connected = signal(true)
  /** Called with new log lines of any run of the tree. */
  readonly listeners = new Set<(runId: string, lines: readonly LogLine[]) => void>()
  readonly #gone = new AbortController()
  readonly #places = new Map<string, number>()
  readonly #details = together(() => this.#read(() => this.#readDetails()))
  readonly #branches = together(() => this.#read(() => this.#readTree()))
  /** What events have told of runs in the tree, until it is put into place. */
  readonly #changes = new Map<string, Pick<Branch, 'state' | 'started_at' | 'completed_at'>>()
  readonly #change = together(async () => this.#putChanges())

  constructor(id: string) {
    this.id = id
    void this.#begin()
  }

  close(): void {
    this.#gone.abort()
    this.#details.stop()
    this.#branches.stop()
    this.#change.stop()
  }

  /** Reads everything again, and follows the run when it goes on. */
  async again(): Promise<void> {
    await this.#begin()
  }

  #following = false

  async #begin(): Promise<void> {
    await this.#read(async () => {
      await this.#readDetails()
      await this.#readTree()
    })
    if (this.run.value === null || this.run.value.completed_at !== null || this.#following) return
    this.#following = true
    await this.#follow()
    this.#following = false
  }

  async #read(work: () => Promise<void>): Promise<void> {
    try {
      await work()
      this.error.value = null
    } catch (thrown) {
      if (!this.#gone.signal.aborted) this.error.value = thrown
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
  }

  async #readTree(): Promise<void> {
    const { runs } = await call(GetTree, { run_id: this.id })
    const from = runs.findIndex(({ run_id }) => run_id === this.id)
    const depth = runs[from]?.call_depth ?? 0
    const end = runs.findIndex((each, index) => index > from && each.call_depth <= depth)
    const own = runs.slice(Math.max(0, from), end < 0 ? undefined : end)
    this.#places.clear()
    for (const [index, { run_id }] of own.entries()) this.#places.set(run_id, index)
    this.tree.value = own
  }

  async #follow(): Promise<void> {
    const { signal } = this.#gone
    for (let last: string | null = null; !signal.aborted; ) {
      try {
        for await (const { id, event } of events(this.id, last, signal)) {
          this.connected.value = true
          last = id ?? last
          this.#take(event)
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

  #take({ event, data }: RunEvent): void {
    if (event === 'log') {
      for (const listener of this.listeners) listener(data.run_id, data.lines)
      return
    }
    if (event === 'phase') {
      if (data.run_id === this.id) this.#details()
      return
    }
    if (data.run_id === this.id) this.#details()
    const place = this.#places.get(data.run_id)
    if (place === undefined) return this.#branches()
    const { state, started_at, completed_at } = data
    this.#changes.set(data.run_id, { state, started_at, completed_at })
    this.#change()
  }

  #putChanges(): void {
    const tree = [...this.tree.value]
    let changed = false
    for (const [id, now] of this.#changes) {
      const place = this.#places.get(id)
      const before = place === undefined ? undefined : tree[place]
      if (!before || (before.state === now.state && before.completed_at === now.completed_at)) continue
      tree[place!] = { ...before, ...now }
      changed = true
    }
    this.#changes.clear()
    if (changed) this.tree.value = tree
  }
}
