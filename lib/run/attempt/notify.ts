// Listeners: the deliveries that a run sends about its events. A delivery is recorded with its event and sent
// afterwards, so a crash in between loses none. A delivery that may have been sent is never sent again. Deliveries do
// not change the state of a run.

import type { NotifyEvent } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import type { Json, JsonObject } from '../../json.ts'
import { limitSignal } from '../../lived-time.ts'
import { problems } from '../../schema/schema.ts'
import { type Masked, type MaskedText, maskedJson, maskedText, recordedText } from '../../secrets/masked.ts'
import type { EventName, Listener } from '../../team/team.ts'
import { oneLine } from '../../text/one-line.ts'
import { starterText } from '../../wire/records/words.ts'
import {
  type DeliveryRow,
  type EngineHost,
  type LiveRun,
  parse,
  type RunEnvironment,
  type RunError,
  startedBy,
} from '../core/core.ts'
import { type Machine, scopeOf, textOf } from '../steps/steps.ts'
import type { Store } from '../store/store.ts'
import { endWithSignal, keepFilesOpen, noteRequests } from './agent-call.ts'
import { idempotencyKey } from './execute.ts'

interface Payload {
  agent: string
  entry: JsonObject
  event: NotifyEvent
}

/** Records what the listeners of a run will send about an event, and returns how many deliveries. Inside a unit. */
export function recordEvent(machine: Machine, live: LiveRun, event: EventName, position: number | null): number {
  let count = 0
  for (const listener of live.team.listeners) {
    const on = listener.on[event]
    if (!on) continue
    const number = machine.store.deliveries.count(live.id)
    const [payload, error] = payloadOf(machine, live, listener, event, position)
    if (payload === null && error === null) continue
    const state = error === null ? 'pending' : 'failed'
    machine.store.deliveries.insert({
      run_id: live.id,
      number,
      listener: listener.name,
      event,
      payload: payload ?? maskedText`null`,
      state,
      error,
    })
    if (state === 'pending') count++
  }
  return count
}

/** The payload or the error of a delivery. Both are null when the listener's `when` is false for this event. */
function payloadOf(
  machine: Machine,
  live: LiveRun,
  listener: Listener,
  event: EventName,
  position: number | null,
): [MaskedText | null, MaskedText | null] {
  const { when, options } = listener.on[event]!
  const scope = scopeOf(machine, live)
  try {
    if (when && when.evaluate(scope) !== true) return [null, null]
    const entry = { ...(listener.fields.evaluate(scope) as JsonObject), ...(options.evaluate(scope) as JsonObject) }
    return [
      maskedJson(
        machine.world.mask<Payload>(live.root, {
          agent: listener.agent,
          entry,
          event: eventOf(machine, live, event, position),
        }),
      ),
      null,
    ]
  } catch (thrown) {
    return [null, machine.world.mask(live.root, textOf(thrown))]
  }
}

function eventOf(machine: Machine, live: LiveRun, event: EventName, position: number | null): NotifyEvent {
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
  const starter = by && starterText(by)
  const where = phase ? `, phase ${phase.name} ${phase.state.replace('_', ' ')}` : ''
  const why = error ? `: ${error.phase && !phase ? `phase ${error.phase}: ` : ''}${error.message}` : ''
  const name = run.name ? `${oneLine(run.name)} (${run.id})` : run.id
  return {
    name: event,
    team: row.team,
    run,
    ...(phase && { phase }),
    message: `${row.team}: run ${name} ${run.state.replace('_', ' ')}${where}${starter === null ? '' : `, started by ${oneLine(starter)}`}${why}`,
    outputs: parse<Json>(row.outputs),
  }
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
    const { agent, entry, event } = await this.#withCopies(row, parse<Payload>(row.payload)!)
    const requests = noteRequests()
    const files = keepFilesOpen()
    let mayBeSent = false
    try {
      const environment = this.#parts.environment(row)
      const { definition, settings } = await this.#parts.host.agent(agent, this.#stop.signal, environment.rootId)
      const handler = definition.notify
      if (!handler) throw new AgentError(`agent ${agent} handles no events`)
      const wrong = problems(handler.entry, entry)
      if (wrong.length > 0) {
        const list = wrong.map(({ path, message }) => `${path.slice(1)}: ${message}`).join('; ')
        throw new AgentError(`[${agent}] ${list}`)
      }
      const effect = typeof handler.effect === 'function' ? handler.effect(entry) : handler.effect
      if (effect === 'once') await this.#set(row, 'sent', null)
      mayBeSent = effect === 'once'
      const key = idempotencyKey(row.run_id, -1 - row.number, row.listener)
      using over = limitSignal(this.#parts.timeout)
      const signal = AbortSignal.any([this.#stop.signal, over.signal])
      const context = this.#parts.context(
        environment,
        { agent, definition, settings, effect, key, signal },
        { event, ...requests.hooks, ...files.hooks },
      )
      await endWithSignal(files.closeAfter((async () => handler.run(entry, context))()), signal, STOP_MS)
      await this.#set(row, 'delivered', null)
    } catch (thrown) {
      // The run may have been deleted in the meantime, and then there is no row to change.
      await this.#recordFailure(row, thrown, mayBeSent, requests.onlyRead()).catch(() => {})
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

  async #recordFailure(row: DeliveryRow, thrown: unknown, mayBeSent: boolean, onlyRead: boolean): Promise<void> {
    const { code, ...error } = agentErrorOf(thrown)
    const sent = onlyRead ? 'no' : error.sent
    if (this.#stop.signal.aborted) {
      // Interrupted, not failed: the next start sends what is `pending`, and marks what is `sent` as `unknown`.
      if (sent === 'no') await this.#set(row, 'pending', null)
      return
    }
    const isLate = code === 'aborted'
    const late = `it did not return within ${this.#parts.timeout / 1_000} s`
    const said = this.#parts.mask(row.run_id, isLate ? late : textOf(thrown))
    const isDoubtful = sent === 'unknown' || (isLate && mayBeSent && sent !== 'no')
    const what = isDoubtful ? maskedText`may not have been delivered` : maskedText`was not delivered`
    this.#parts.environment(row).log({ stream: 'log', text: maskedText`${recordedText(row.event)} ${what}: ${said}` })
    await this.#set(row, isDoubtful ? 'unknown' : 'failed', said)
  }

  #set({ run_id, number }: DeliveryRow, state: DeliveryRow['state'], error: MaskedText | null): Promise<void> {
    return this.#parts.write(() => {
      this.#store.deliveries.set(run_id, number, state, error)
      if (state !== 'sent' && state !== 'pending') this.#parts.settled(run_id)
    })
  }
}

/** The fields of an AgentError. Any other thrown value has none, and may throw when it is read. */
function agentErrorOf(thrown: unknown): Partial<Pick<AgentError, 'sent' | 'code'>> {
  try {
    return thrown instanceof AgentError ? { sent: thrown.sent, code: thrown.code } : {}
  } catch {
    return {}
  }
}

/** How long a listener has to stop after its time-out. */
const STOP_MS = 200
