// Listeners: the deliveries that a run sends about its events. A delivery is recorded with its event and sent
// afterwards, so a crash in between loses none. A delivery that may have been sent is never sent again (deliver.ts).
// Deliveries do not change the state of a run.

import type { NotifyEvent } from '../../agent/agent-context.ts'
import type { Json, JsonObject } from '../../json.ts'
import { type Masked, type MaskedText, maskedJson, maskedText } from '../../secrets/masked.ts'
import { type EventName, type Listener, reviewOf } from '../../team/team.ts'
import type { ReviewShown } from '../../wire/records/review-records.ts'
import { ACCOUNT_OF_HOME, eventText } from '../../wire/records/words.ts'
import {
  type Account,
  type DeliveryRow,
  type EngineHost,
  type LiveRun,
  parse,
  type RunEnvironment,
  type RunError,
  startedBy,
} from '../core/core.ts'
import { type Asks, type Machine, scopeOf, textOf } from '../steps/steps.ts'
import type { Store } from '../store/store.ts'
import { deliver, type Payload } from './deliver.ts'
import { idempotencyKey } from './execute.ts'
import { tailOf } from './printed.ts'

/** What happens to a run, or to one of its phases. */
interface Happened {
  event: EventName
  position: number | null
  asks: Asks | undefined
}

/**
 * Records what the listeners of a run will send about an event, and returns how many deliveries. Of a top run that fails
 * without a listener for that, `accounts` are told. Inside a unit.
 */
export function recordEvent(machine: Machine, live: LiveRun, happened: Happened, accounts: readonly Account[]): number {
  const { event } = happened
  let count = 0
  const record = (name: string, [payload, error]: [MaskedText | null, MaskedText | null]) => {
    if (payload === null && error === null) return
    const state = error === null ? 'pending' : 'failed'
    const number = machine.store.deliveries.count(live.id)
    const common = { run_id: live.id, number, listener: name, event, error }
    machine.store.deliveries.insert({ ...common, payload: payload ?? maskedText`null`, state })
    if (state === 'pending') count++
  }
  const asked = live.team.listeners.filter(({ on }) => on[event])
  for (const listener of asked) record(listener.name, payloadOf(machine, live, listener, happened))
  if (event !== 'on_fail' || live.parent || asked.length > 0) return count
  for (const { agent, channel } of accounts) {
    const payload = { agent, entry: { channels: [channel] }, event: eventOf(machine, live, happened) }
    record(`${ACCOUNT_OF_HOME}${agent}:${channel}`, [maskedJson(machine.world.mask<Payload>(live.root, payload)), null])
  }
  return count
}

/** The payload or the error of a delivery. Both are null when the listener's `when` is false for this event. */
function payloadOf(
  machine: Machine,
  live: LiveRun,
  listener: Listener,
  happened: Happened,
): [MaskedText | null, MaskedText | null] {
  const { when, options } = listener.on[happened.event]!
  const scope = scopeOf(machine, live)
  try {
    if (when && when.evaluate(scope) !== true) return [null, null]
    const entry = { ...(listener.fields.evaluate(scope) as JsonObject), ...(options.evaluate(scope) as JsonObject) }
    return [
      maskedJson(
        machine.world.mask<Payload>(live.root, {
          agent: listener.agent,
          entry,
          event: eventOf(machine, live, happened),
        }),
      ),
      null,
    ]
  } catch (thrown) {
    return [null, machine.world.mask(live.root, textOf(thrown))]
  }
}

function eventOf(machine: Machine, live: LiveRun, { event, position, asks }: Happened): NotifyEvent {
  const row = machine.store.runs.get(live.id)!
  const phaseRow = position === null ? null : machine.store.phases.get(live.id, position)
  const error = parse<RunError>(phaseRow?.error ?? row.error)
  const by = startedBy(row)
  const phase = phaseRow && {
    name: live.phase(position!).name,
    state: phaseRow.state,
    error: parse<RunError>(phaseRow.error)?.message ?? null,
  }
  const run = { id: row.id, name: row.run_name, state: row.state, reason: row.reason, started_by: by as Json }
  return {
    name: event,
    team: row.team,
    run,
    ...(phase && { phase }),
    message: eventText({ ...row, run_id: row.id, started_by: by }, error, phase) + printedBy(machine, asks),
    outputs: parse<Json>(row.outputs),
  }
}

/** Maximum size of what a message has of the output of commands. */
const MOST_LINES = 20
const MOST_BYTES = 2 * 1024

/** The last lines that the commands of a gate printed, for the message that it asks, unless its team keeps them out. */
function printedBy({ store }: Machine, asks: Asks | undefined): string {
  if (!asks) return ''
  const review = reviewOf(asks.live.phase(asks.position))
  if (!review || review.share === false) return ''
  const shown = parse<ReviewShown>(store.reviews.pending(asks.live.id, asks.position)?.shown ?? null)
  const tail = tailOf(shown?.output ?? '', MOST_LINES, MOST_BYTES)
  return tail && `\n${tail}`
}

interface Parts {
  store: Store
  host: Pick<EngineHost, 'agent'>
  environment(delivery: DeliveryRow): RunEnvironment
  context: EngineHost['context']
  mask<T>(runId: string, value: T): Masked<T>
  /** Applies a change; the promise settles once it is on disk. */
  write<T>(change: () => T): Promise<T>
  /** Called in a change that ends a delivery of a run. */
  settled(runId: string): void
  /** Maximum number of milliseconds for one delivery. */
  timeout: number
  /** A text that names the writes of a run and its sub-runs that exist twice; empty when none is known. */
  copies(runId: string): Promise<string>
}

/** The events of the end of a run. */
const END_EVENTS: ReadonlySet<string> = new Set(['on_complete', 'on_fail', 'on_cancel'])

/**
 * Sends the deliveries of listeners: those of one run in the order of its events, those of different runs concurrently.
 */
export class DeliverySender {
  readonly #parts: Parts
  readonly #store: Store
  readonly #stop = new AbortController()
  readonly #sending = new Map<string, Promise<void>>()

  constructor(parts: Parts) {
    this.#parts = parts
    this.#store = parts.store
  }

  /** Sends the pending deliveries of a run. */
  send(runId: string): void {
    const before = this.#sending.get(runId) ?? Promise.resolve()
    const mine = before.then(() => this.#sendAll(runId)).catch(() => {})
    this.#sending.set(runId, mine)
    void mine.finally(() => this.#sending.get(runId) === mine && this.#sending.delete(runId))
  }

  /** Aborts the deliveries under way, and resolves when they have ended. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.settled()
  }

  /** Resolves when the deliveries under way have ended. */
  async settled(): Promise<void> {
    await Promise.all(this.#sending.values())
  }

  /** The runs with deliveries under way. */
  get busy(): string[] {
    return [...this.#sending.keys()]
  }

  isSending(runId: string): boolean {
    return this.#sending.has(runId)
  }

  /** Resolves when a run has no delivery under way. */
  async idle(runId: string): Promise<void> {
    await this.#sending.get(runId)
  }

  async #sendAll(runId: string): Promise<void> {
    for (const row of this.#store.deliveries.pending(runId)) {
      if (this.#stop.signal.aborted) return
      await this.#deliver(row)
    }
  }

  async #deliver(row: DeliveryRow): Promise<void> {
    const { environment, host, context, mask, timeout } = this.#parts
    try {
      const payload = await this.#withCopies(row, parse<Payload>(row.payload)!)
      const place = environment(row)
      await deliver({
        ...payload,
        key: idempotencyKey(row.run_id, -1 - row.number, row.listener),
        timeout,
        stop: this.#stop.signal,
        find: () => host.agent(payload.agent, this.#stop.signal, place),
        context: (binding, hooks) => context(place, binding, hooks),
        mask: value => mask(row.run_id, value),
        set: (state, error) => this.#set(row, state, error),
        failed: text => environment(row).log({ stream: 'log', text }),
      })
    } catch {
      // The run may have been deleted in the meantime, and then there is no row to change.
    }
  }

  /** Adds the writes that exist twice to the message of the end of a run, as far as other systems show them now. */
  async #withCopies(row: DeliveryRow, payload: Payload): Promise<Payload> {
    if (!END_EVENTS.has(row.event)) return payload
    const copies = await this.#parts.copies(row.run_id)
    if (copies === '') return payload
    const { entry, event } = payload
    const own = typeof entry.message === 'string' ? { message: `${entry.message}\n${copies}` } : {}
    return { ...payload, entry: { ...entry, ...own }, event: { ...event, message: `${event.message}\n${copies}` } }
  }

  #set({ run_id, number }: DeliveryRow, state: DeliveryRow['state'], error: MaskedText | null): Promise<void> {
    return this.#parts.write(() => {
      this.#store.deliveries.set(run_id, number, state, error)
      if (state !== 'sent' && state !== 'pending') this.#parts.settled(run_id)
    })
  }
}
