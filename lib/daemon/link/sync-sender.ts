// Brings what synced runs did to the hub, one batch after the other. A batch is small enough that the hub applies it
// within a fraction of a second, because on SQLite all other writes of the hub wait for it.

import { CadreError } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import type { Store } from '../../run/engine.ts'
import { Sync } from '../../wire/calls/daemon-link.ts'
import { ackedOf, PROTOCOL } from '../../wire/protocol.ts'
import type { HubClient } from './hub-client.ts'
import type { HubCopies } from './hub-copies.ts'
import type { SyncOutbox } from './outbox/outbox.ts'

/** How large a batch may be. The hub takes 4 MiB. */
const SMALLEST_BYTES = 100_000
const LARGEST_BYTES = 3_500_000
const FIRST_BYTES = 800_000
/**
 * Batches grow when one that was about as large as it may be took less than the first time. They shrink when one took
 * more than the second, or was not taken.
 */
const FAST_MS = 150
const SLOW_MS = 400

export interface SyncSenderOptions {
  client: HubClient
  store: Store
  outbox: SyncOutbox
  log: Log
  /** What the hub asks for. A command that reports its own run answers no recall. */
  hubCopies?: HubCopies
  /** Resolves when the hub has replied to the answers about jobs that are on their way. */
  answered?(): Promise<void>
}

/** A fact of the run database: the changes that the hub has refused since it last got everything. */
export const REFUSED = 'hub_refused'

/** They are kept with their runs, and sent again when the hub's database is another copy. */
export interface Refused {
  changes: number
  /** The code of the first refusal, by run: of some runs only. */
  runs: Record<string, string>
}
const MOST_REFUSED = 100

export class SyncSender {
  readonly #options: SyncSenderOptions
  #bytes = FIRST_BYTES
  /** What programs between daemon and hub were seen to take. */
  #most = LARGEST_BYTES
  /** The hub has to be asked whether it still has what it acknowledged. */
  #doubtful = false
  /** Settles when no answer is on its way that was given before the hub asked for everything. */
  #settled: Promise<void> = Promise.resolve()

  constructor(options: SyncSenderOptions) {
    this.#options = options
  }

  /**
   * Before the next batch, the hub is asked whether it still has what it acknowledged: it may have been restored from an
   * older copy, and so may this home.
   */
  doubt(): void {
    this.#doubtful = true
  }

  /** Sends the next batch. Returns false when nothing waits. Throws the hub's error, or `unavailable`. */
  async send(daemon_id: string, signal: AbortSignal): Promise<boolean> {
    const { outbox } = this.#options
    this.#beginRecall()
    if (this.#doubtful) {
      this.#doubtful = false
      try {
        await this.#deliver(daemon_id, outbox.sent.acked + 1, [], signal)
      } catch (error) {
        this.#doubtful = true
        throw error
      }
    }
    const batch = await outbox.take(this.#bytes)
    await this.#endRecall(daemon_id, signal)
    if (!batch) return false
    const { from_seq, changes, bytes } = batch
    const started = performance.now()
    try {
      if (!(await this.#deliver(daemon_id, from_seq, changes, signal))) return true
    } catch (error) {
      this.#shrink(bytes)
      if (error instanceof CadreError && error.code === 'too_large') this.#most = this.#bytes
      throw error
    }
    await outbox.acknowledge()
    const took = performance.now() - started
    if (took > SLOW_MS) this.#shrink(this.#bytes)
    else if (took < FAST_MS && bytes > this.#bytes / 2) this.#bytes = Math.min(this.#most, this.#bytes * 2)
    return true
  }

  /**
   * The hub is on an older copy. If that has everything that was acknowledged, the rest waits in the outbox; otherwise
   * everything is queued again, as it is where the hub has refused something.
   */
  #beginRecall(): void {
    const { log, hubCopies, answered, store } = this.#options
    if (hubCopies?.recall?.state !== 'asked') return
    this.#settled = answered?.() ?? Promise.resolve()
    this.#doubtful = true
    if (store.facts.get(REFUSED) !== null) this.#restart(log, 'the hub, which had refused changes, is on another copy')
    hubCopies.moveRecall('begun')
  }

  /** Tells the hub that it has everything. Logs may follow. */
  async #endRecall(daemon_id: string, signal: AbortSignal): Promise<void> {
    const { outbox, hubCopies } = this.#options
    const recall = hubCopies?.recall
    if (recall?.state !== 'begun' || outbox.lacksChanges) return
    await this.#settled
    if (await this.#deliver(daemon_id, outbox.sent.acked + 1, [], signal, recall.id)) hubCopies!.moveRecall('done')
  }

  #restart(log: Log, why: string): void {
    const { outbox, store } = this.#options
    store.facts.drop(REFUSED)
    outbox.restart(log, why)
  }

  #keepRefused(from: number, changes: readonly unknown[], rejected: readonly { seq: number; code: string }[]): void {
    const { facts } = this.#options.store
    const kept: Refused = JSON.parse(facts.get(REFUSED) ?? '{"changes":0,"runs":{}}')
    kept.changes += rejected.length
    for (const { seq, code } of rejected) {
      const run = (changes[seq - from] as { run_id?: string } | undefined)?.run_id
      if (run && (run in kept.runs || Object.keys(kept.runs).length < MOST_REFUSED)) kept.runs[run] ??= code
    }
    facts.set(REFUSED, JSON.stringify(kept))
  }

  /**
   * Sends changes. Returns false when hub and home do not agree on what was sent before; all runs are then sent again.
   */
  async #deliver(
    daemon_id: string,
    from_seq: number,
    changes: unknown[],
    signal: AbortSignal,
    reported?: string,
  ): Promise<boolean> {
    const { client, store, outbox, log } = this.#options
    const epoch = store.facts.once('epoch', () => crypto.randomUUID())
    const { last } = outbox.sent
    try {
      const body = { daemon_id, protocol: PROTOCOL, epoch, from_seq, changes, ...(reported && { reported }) }
      const { rejected, acked_seq, cut_lines: cut = 0 } = await client.call(Sync, body, { signal })
      if (cut > 0)
        log.warn('the hub left out log lines, because the realm has used up its quota of log bytes', { lines: cut })
      if (rejected.length > 0) {
        log.warn('the hub refused changes', { rejected })
        this.#keepRefused(from_seq, changes, rejected)
      }
      if (acked_seq <= last) return true
      this.#restart(log, 'the hub has changes that this home does not know, so the home is an older copy')
    } catch (error) {
      if (ackedOf(error) === null) throw error
      this.#restart(log, 'the hub lost changes that it had acknowledged')
    }
    return false
  }

  /** To half of the size that was too much. */
  #shrink(bytes: number): void {
    this.#bytes = Math.max(SMALLEST_BYTES, Math.min(this.#bytes, bytes) / 2)
  }
}
