// Later look-ups of writes. When only the passed time said that a write is absent and its entry may have been sent again,
// both writes may exist. So the engine asks the other system when the run has ended, and again one settling time later,
// which confirms the write. Searches may lag more than their action says, so three further look-ups follow. No run waits
// for them: the table `looks` has what is due, and the next process continues with it.

import { AgentError } from '../../agent/core/agent-error.ts'
import type { Identity } from '../../agent/identity.ts'
import type { RunId } from '../../files/run-id.ts'
import type { JsonObject } from '../../json.ts'
import { limitSignal } from '../../lived-time.ts'
import type { Log } from '../../log/log.ts'
import { type Masked, type MaskedText, maskedJson } from '../../secrets/masked.ts'
import { startPause, unlessAborted } from '../../wait.ts'
import {
  type BootClock,
  type EngineHost,
  elapsedSince,
  type ReceiptRow,
  type RunEnvironment,
  type RunRow,
} from '../core/core.ts'
import { textOf } from '../steps/steps.ts'
import type { EntryId, LookRow, Store, Unasked } from '../store/store.ts'
import { endWithSignal, keepFilesOpen } from './agent-call.ts'
import { type Call, handlerOf } from './calls.ts'
import { FIND_MS, foundBy, idempotencyKey } from './execute.ts'
import type { Copy, Found } from './ledger.ts'

/** The part of a call that calling its `find` needs after the run has ended. */
type KeptCall = Pick<Call, 'kind' | 'entry'> & { agent: string; action?: string | undefined }

interface Parts {
  store: Store
  host: Pick<EngineHost, 'agent'>
  context: EngineHost['context']
  /** The id by which the vendor knows an entry. */
  identity(runId: RunId, position: number, entry: string): Identity
  environment(run: RunRow, position: number): RunEnvironment
  open(label: string, sealed: Uint8Array): Uint8Array
  mask<T>(rootId: RunId | undefined, value: T): Masked<T>
  /** Applies a change; the promise settles once it is on disk. */
  write<T>(change: () => T): Promise<T>
  changed: (runId: string, position: number, entry: string) => void
  now: () => number
  bootClock: BootClock
  settle: () => number | undefined
  stopping: AbortSignal
  log: Log
}

/** A look-up that failed for now is repeated after one minute, two, four …, at most MOST_FAILURES times. */
const RETRY_MS = 60_000
const MOST_FAILURES = 8
/** The look-ups without a person: at the end of the run, and after one, two, four and eight further settling times. */
const LOOKUPS = 5

export class LaterLookups {
  readonly #parts: Parts
  #any = false
  #pause: { end: () => void } | undefined
  #round: Promise<void> = Promise.resolve()
  #isWorking = false
  /** Whether a look-up may have become due since the round began. */
  #again = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Continues with the look-ups that an earlier process left. */
  start(): void {
    this.#any = this.#parts.store.looks.any
    if (this.#any) this.wake()
  }

  /** To be called when an entry needs a look-up at the end of its run. */
  noteKept(): void {
    this.#any = true
  }

  /** Whether any look-up may be due. False in a home that never lost a reply, which then reads no table. */
  get any(): boolean {
    return this.#any
  }

  /** To be called when a run has ended: looks for what is due. */
  wake(): void {
    if (!this.#any || this.#parts.stopping.aborted) return
    this.#again = true
    this.#pause?.end()
    if (this.#isWorking) return
    this.#isWorking = true
    this.#round = this.#lookUpDue().catch(error => {
      if (!this.#parts.stopping.aborted) this.#parts.log.error('a later look failed', { error: textOf(error) })
    })
    void this.#round.finally(() => {
      this.#isWorking = false
    })
  }

  stop(): void {
    this.#pause?.end()
  }

  /** Resolves when the look-ups at the end of a run and of its sub-runs are over. */
  async lookUpEnded(run: Pick<RunRow, 'root_id' | 'tree_key'>): Promise<void> {
    if (!this.#any) return
    const due = this.#parts.store.looks.below(run.root_id, run.tree_key).map(row => entryKey(row))
    for (const row of this.#parts.store.looks.open()) {
      if (row.looked === 0 && due.includes(entryKey(row))) await this.#lookUp(row)
    }
    this.wake()
  }

  /**
   * Looks up every uncertain write of a tree at once, because a person asks. Returns the entries whose look-up failed,
   * each with the reason.
   */
  async lookUpTree(run: Pick<RunRow, 'root_id' | 'tree_key'>): Promise<Unasked[]> {
    const unasked: Unasked[] = []
    for (const row of this.#parts.store.looks.below(run.root_id, run.tree_key)) {
      const failed = await this.#lookUp(row)
      if (failed !== null) unasked.push({ ...entryIdOf(row), reason: failed })
    }
    this.#any = true
    this.wake()
    return unasked
  }

  async #lookUpDue(): Promise<void> {
    const { store, bootClock, stopping } = this.#parts
    while (!stopping.aborted) {
      this.#again = false
      let least = Number.POSITIVE_INFINITY
      for (const row of store.looks.open()) {
        const left = this.#msUntilDue(row)
        if (left > 0) least = Math.min(least, left)
        else {
          await this.#lookUp(row)
          this.#again = true
        }
        if (stopping.aborted) return
      }
      if (this.#again) continue
      if (least === Number.POSITIVE_INFINITY) return
      const ended = new AbortController()
      this.#pause = { end: () => ended.abort() }
      await bootClock.pause(least, ended.signal)
      this.#pause = undefined
    }
  }

  /** Milliseconds until a look-up is due. */
  #msUntilDue({ looked, failures, boot, since, settles }: LookRow): number {
    if (since === null) return 0
    const { bootClock, settle } = this.#parts
    const settling = looked === 0 ? 0 : (settle() ?? settles) * 2 ** (looked - 1)
    const wait = failures > 0 ? RETRY_MS * 2 ** (failures - 1) : settling
    // A time of an earlier boot is at least as long ago as this boot.
    return wait - (elapsedSince({ boot, at: since }, bootClock) ?? bootClock.now())
  }

  /** Returns the reason why the look-up failed, or null. */
  async #lookUp(row: LookRow): Promise<MaskedText | null> {
    const { store, bootClock, stopping, mask } = this.#parts
    const id = entryIdOf(row)
    const asked = bootClock.now()
    const at = { boot: bootClock.boot, since: asked }
    // A look-up for a person counts among the LOOKUPS only if one of those is due.
    const isDue = row.looked < LOOKUPS && this.#msUntilDue(row) <= 0
    let found: Found | null
    try {
      found = await this.#find(row)
    } catch (thrown) {
      const reason = mask(store.runs.get(row.run_id)?.root_id, textOf(thrown))
      if (stopping.aborted || !isDue) return reason
      const failures = row.failures + 1
      const mayPass = thrown instanceof AgentError && thrown.retryable && failures < MOST_FAILURES
      // When the look-up at the end of a run fails, the next one follows in any case.
      const looked = row.looked === 0 ? 1 : mayPass ? row.looked : LOOKUPS
      const next = { looked, failures: row.looked === 0 ? 0 : failures, confirmed: row.confirmed }
      await this.#record(id, () => store.looks.set(id, { ...next, ...at }))
      return reason
    }
    await this.#record(id, () => {
      const receipt = store.receipts.get(id)
      if (!receipt) return
      const run = store.runs.get(row.run_id)!
      if (found) this.#recordFound(id, receipt, mask(run.root_id, found))
      else this.#recordAbsence(id, receipt, row, asked)
      // While a run is open, only a person asks; the scheduled look-ups begin when the run ends.
      if (run.completed_at === null || receipt.presumed_at === null) return
      const looked = isDue ? row.looked + 1 : row.looked
      // Whether one settling time has passed since the end of the run: then the second look-up is or was due.
      const isSettled = row.looked > 1 || row.failures > 0 || (isDue && row.looked === 1)
      const confirmed = found && isSettled ? 1 : row.confirmed
      if (looked === LOOKUPS && confirmed === 1) store.looks.drop(id)
      else if (isDue) store.looks.set(id, { looked, failures: 0, confirmed, ...at })
      else if (confirmed !== row.confirmed) store.looks.setConfirmed(id)
    })
    return null
  }

  /** Records what the other system shows: the write itself, and all other objects that carry its mark. */
  #recordFound(entryId: EntryId, receipt: ReceiptRow, { result, copies }: Masked<Found>): void {
    const { store, now } = this.#parts
    const { id = null, url = null } = result.external ?? {}
    const shown: Masked<Copy>[] = [{ id, url }, ...copies]
    if (receipt.state === 'done') {
      const known: Masked<Copy>[] = JSON.parse(receipt.copies ?? '[]')
      const others = shown.filter(each => !sameAs(each, { id: receipt.external_id, url: receipt.external_url }))
      const more = others.filter(each => !known.some(one => sameAs(one, each)))
      if (more.length > 0) store.receipts.setCopies(entryId, maskedJson([...known, ...more]))
      return
    }
    store.receipts.confirm(entryId, { result, at: now(), copies: copies.length > 0 ? maskedJson(copies) : null })
  }

  /** Records that the other system does not show a write in doubt, once the settling time is over. */
  #recordAbsence(id: EntryId, receipt: ReceiptRow, { settles }: LookRow, asked: number): void {
    const { store, bootClock, settle, now } = this.#parts
    if (receipt.state !== 'unknown') return
    const passed = elapsedSince({ boot: receipt.boot, at: receipt.ended }, bootClock)
    if (passed === null || asked - receipt.ended! < (settle() ?? settles)) return
    store.receipts.presume(id, now())
  }

  async #find(row: LookRow): Promise<Found | null> {
    const { store, host, stopping, open } = this.#parts
    const run = store.runs.get(row.run_id)!
    const text = Buffer.from(open(sealLabel(row), row.call)).toString()
    const { agent, action, kind, entry } = JSON.parse(text) as KeptCall & { entry: JsonObject }
    using over = limitSignal(FIND_MS)
    const signal = AbortSignal.any([stopping, over.signal])
    const environment = { ...this.#parts.environment(run, row.position), log() {} }
    const { definition, settings } = await host.agent(agent, signal, environment)
    const handler = handlerOf(definition, action, kind)
    if (!handler?.find) throw new AgentError(`${agent} has no look-up any more`)
    const effect = 'once'
    const key = idempotencyKey(row.run_id, row.position, row.entry)
    const files = keepFilesOpen()
    const identity = this.#parts.identity(run.id, row.position, row.entry)
    const binding = { agent, action, definition, settings, effect, key, signal } as const
    const context = this.#parts.context(environment, binding, { ...files.hooks, identity })
    const asking = endWithSignal(
      files.closeAfter(() => handler.find!(entry, context)),
      signal,
      0,
    )
    try {
      return foundBy(await unlessAborted(asking, stopping), agent)
    } catch (thrown) {
      if (!over.signal.aborted || stopping.aborted) throw thrown
      throw new AgentError(`${agent} did not answer`, { code: 'timeout', retryable: true, cause: thrown })
    }
  }

  #record(id: EntryId, change: () => void): Promise<void> {
    return this.#parts.write(() => {
      change()
      this.#parts.changed(id.runId, id.position, id.entry)
    })
  }

  /** Resolves when no look-up is under way. Those that wait for their time do not count. */
  async idle(): Promise<void> {
    while (this.#isWorking && !this.#pause) await startPause(5).over
  }
}

/** The label with which a kept call is encrypted. */
export const sealLabel = ({ run_id, position, entry }: Pick<LookRow, 'run_id' | 'position' | 'entry'>): string =>
  `${run_id}/looks/${position}/${entry}`

const entryIdOf = ({ run_id, position, entry }: LookRow): EntryId => ({ runId: run_id, position, entry })

const entryKey = ({ run_id, position, entry }: LookRow): string => `${run_id} ${position} ${entry}`

/** Compares two objects of a vendor by id, or else by address. Two objects that share neither count as the same. */
const sameAs = (a: Copy, b: Copy): boolean =>
  a.id !== null && b.id !== null ? a.id === b.id : a.url !== null && b.url !== null ? a.url === b.url : true
