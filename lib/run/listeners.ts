// Listeners: what a run tells on its events. A delivery is recorded with the event that causes it and sent afterwards,
// so a crash in between loses none; one that may have been sent is never sent again. None changes the state of a run.

import type { NotifyEvent } from '../agent/define.ts'
import { AgentError } from '../agent/define.ts'
import { messageOf } from '../error.ts'
import type { Json, JsonObject } from '../json.ts'
import { problems } from '../schema.ts'
import type { EventName, Listener } from '../team/team.ts'
import { type Binding, idempotencyKey, type Surroundings } from './execute.ts'
import type { Journal } from './journal.ts'
import type { LiveRun } from './live.ts'
import type { Machine } from './machine.ts'
import { parse, type RunError } from './records.ts'
import { scopeOf } from './scope.ts'
import type { RunStore } from './store.ts'

export interface DeliveryRow {
  run_id: string
  number: number
  listener: string
  event: EventName
  payload: string
  state: 'pending' | 'sent' | 'delivered' | 'failed' | 'unknown'
  error: string | null
}

interface Payload {
  agent: string
  entry: JsonObject
  event: NotifyEvent
}

/** `deliveries` of `runs/get`. */
export interface DeliveryRecord {
  phase: string
  event: EventName
  state: DeliveryRow['state']
  error: string | null
}

export function deliveriesOf(store: RunStore, runId: string): DeliveryRecord[] {
  return allOf(store, runId).map(({ listener, event, state, error }) => ({ phase: listener, event, state, error }))
}

/** Records what the listeners of a run have to send about an event. Inside a journal change; gives how many. */
export function recordEvent(machine: Machine, live: LiveRun, event: EventName, position: number | null): number {
  let count = 0
  for (const listener of live.team.listeners) {
    const on = listener.on[event]
    if (!on) continue
    const number = countOf(machine.store, live.id)
    const [payload, error] = payloadOf(machine, live, listener, event, position)
    if (payload === null && error === null) continue
    const state = error === null ? 'pending' : 'failed'
    insertDelivery(machine.store, {
      run_id: live.id,
      number,
      listener: listener.name,
      event,
      payload: JSON.stringify(payload),
      state,
      error,
    })
    if (state === 'pending') count++
  }
  return count
}

/** Both null: the listener's `when` does not want this event. */
function payloadOf(
  machine: Machine,
  live: LiveRun,
  listener: Listener,
  event: EventName,
  position: number | null,
): [Payload | null, string | null] {
  const { when, options } = listener.on[event]!
  const scope = scopeOf(machine, live)
  try {
    if (when && when.evaluate(scope) !== true) return [null, null]
    const entry = { ...(listener.fields.evaluate(scope) as JsonObject), ...(options.evaluate(scope) as JsonObject) }
    return [machine.mask(live, { agent: listener.agent, entry, event: notice(machine, live, event, position) }), null]
  } catch (thrown) {
    return [null, machine.mask(live, messageOf(thrown))]
  }
}

function notice(machine: Machine, live: LiveRun, event: EventName, position: number | null): NotifyEvent {
  const row = machine.store.run(live.id)!
  const phaseRow = position === null ? null : machine.store.phase(live.id, position)
  const error = parse<RunError>(phaseRow?.error ?? row.error)
  const phase = phaseRow && {
    name: live.phase(position!).name,
    state: phaseRow.state,
    error: parse<RunError>(phaseRow.error)?.message ?? null,
  }
  const run = { id: row.id, name: row.run_name, state: row.state, reason: row.reason }
  const where = phase ? `, phase ${phase.name} ${phase.state.replace('_', ' ')}` : ''
  const why = error ? `: ${error.phase && !phase ? `phase ${error.phase}: ` : ''}${error.message}` : ''
  const name = run.name ? `${run.name} (${run.id})` : run.id
  return {
    name: event,
    team: row.team,
    run,
    ...(phase && { phase }),
    message: `${row.team}: run ${name} ${run.state.replace('_', ' ')}${where}${why}`,
    outputs: parse<Json>(row.outputs),
  }
}

export interface DeliveryHost {
  agent: Surroundings['agent']
  context(delivery: DeliveryRow, binding: Binding, event: NotifyEvent): ReturnType<Surroundings['context']>
  mask<T>(runId: string, value: T): T
}

export class Deliveries {
  readonly #journal: Journal
  readonly #store: RunStore
  readonly #host: DeliveryHost
  readonly #stop = new AbortController()
  readonly #sending = new Map<string, Promise<void>>()

  constructor(journal: Journal, store: RunStore, host: DeliveryHost) {
    this.#journal = journal
    this.#store = store
    this.#host = host
  }

  /** Sends what is pending, of one run in the order of its events. */
  send(runId: string): void {
    const before = this.#sending.get(runId) ?? Promise.resolve()
    const mine = before.then(() => this.#sendAll(runId))
    this.#sending.set(runId, mine)
    void mine.finally(() => this.#sending.get(runId) === mine && this.#sending.delete(runId))
  }

  /** After a start: what was pending is sent now; what may have been sent is in doubt and stays unsent. */
  recover(): void {
    doubtDeliveries(this.#store)
    for (const runId of runsWithDeliveries(this.#store)) this.send(runId)
  }

  /** Resolves when what is being sent has been, or was interrupted. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await this.settled()
  }

  /** Resolves when nothing that is being sent now is any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#sending.values())
  }

  /** Resolves when nothing is being sent for a run. */
  async idle(runId: string): Promise<void> {
    await this.#sending.get(runId)
  }

  async #sendAll(runId: string): Promise<void> {
    for (const row of pendingOf(this.#store, runId)) {
      if (this.#stop.signal.aborted) return
      await this.#deliver(row)
    }
  }

  async #deliver(row: DeliveryRow): Promise<void> {
    const { agent, entry, event } = parse<Payload>(row.payload)!
    try {
      const { definition, settings } = await this.#host.agent(agent, this.#stop.signal)
      const handler = definition.notify
      if (!handler) throw new AgentError(`agent ${agent} takes no events`)
      const wrong = problems(handler.entry, entry)
      if (wrong.length > 0) {
        throw new AgentError(
          `[${agent}] ${wrong.map(({ path, message }) => `${path.slice(1)}: ${message}`).join('; ')}`,
        )
      }
      const effect = typeof handler.effect === 'function' ? handler.effect(entry) : handler.effect
      if (effect === 'once') await this.#set(row, 'sent', null)
      const key = idempotencyKey(row.run_id, -1 - row.number, row.listener)
      const binding = { agent, definition, settings, effect, key, signal: this.#stop.signal }
      await handler.run(entry, this.#host.context(row, binding, event))
      await this.#set(row, 'delivered', null)
    } catch (thrown) {
      // Of a run that was deleted meanwhile there is nothing left to record.
      await this.#failed(row, thrown).catch(() => {})
    }
  }

  async #failed(row: DeliveryRow, thrown: unknown): Promise<void> {
    const sent = thrown instanceof AgentError ? thrown.sent : undefined
    if (!this.#stop.signal.aborted) {
      const error = this.#host.mask(row.run_id, messageOf(thrown))
      return this.#set(row, sent === 'unknown' ? 'unknown' : 'failed', error)
    }
    // Interrupted, not failed: the next start sends what is `pending`, and holds what is `sent` to be in doubt.
    if (sent === 'no') await this.#set(row, 'pending', null)
  }

  #set({ run_id, number }: DeliveryRow, state: DeliveryRow['state'], error: string | null): Promise<void> {
    return this.#journal.write(() => setDelivery(this.#store, run_id, number, state, error))
  }
}

function insertDelivery({ db }: RunStore, row: DeliveryRow): void {
  db.query(
    `INSERT INTO deliveries (run_id, number, listener, event, payload, state, error)
       VALUES ($run_id, $number, $listener, $event, $payload, $state, $error)`,
  ).run(row as unknown as Record<string, string | number | null>)
}

function allOf({ db }: RunStore, runId: string): DeliveryRow[] {
  return db.query<DeliveryRow, [string]>('SELECT * FROM deliveries WHERE run_id = ? ORDER BY number').all(runId)
}

function countOf({ db }: RunStore, runId: string): number {
  return db.query<{ count: number }, [string]>('SELECT count(*) AS count FROM deliveries WHERE run_id = ?').get(runId)!
    .count
}

function pendingOf({ db }: RunStore, runId: string): DeliveryRow[] {
  return db
    .query<DeliveryRow, [string]>("SELECT * FROM deliveries WHERE run_id = ? AND state = 'pending' ORDER BY number")
    .all(runId)
}

function runsWithDeliveries({ db }: RunStore): string[] {
  return db
    .query<{ run_id: string }, []>("SELECT DISTINCT run_id FROM deliveries WHERE state IN ('pending', 'sent')")
    .all()
    .map(row => row.run_id)
}

function setDelivery(
  { db }: RunStore,
  runId: string,
  number: number,
  state: DeliveryRow['state'],
  error: string | null,
): void {
  db.query('UPDATE deliveries SET state = ?3, error = ?4 WHERE run_id = ?1 AND number = ?2').run(
    runId,
    number,
    state,
    error,
  )
}

/** What this process may have sent before it died. */
function doubtDeliveries({ db }: RunStore): void {
  db.query(
    "UPDATE deliveries SET state = 'unknown', error = 'it may have been sent; the daemon ended before it knew' WHERE state = 'sent'",
  ).run()
}
