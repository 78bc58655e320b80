// Later looks. Where the absence of a write was concluded by time alone and the entry was, or could be, sent again, both
// may exist in the end. So the other system is asked once more when the run has ended, and one settling time later, which
// confirms it; and for the sake of searches that lag more than anybody said, three times after that. It holds no run: what
// is due is in the table `looks`, and the next process goes on with it.

import { AgentError } from '../../agent/core/agent-error.ts'
import type { Identity } from '../../agent/identity.ts'
import type { RunId } from '../../files/run-id.ts'
import type { JsonObject } from '../../json.ts'
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
import { type Call, handlerOf } from './calls.ts'
import { ASK_MS, foundBy, idempotencyKey } from './execute.ts'
import { withGrace } from './grace.ts'
import { holdFiles } from './held-files.ts'
import type { Copy, Found } from './ledger.ts'

/** What is kept of a call, so that its `find` can be called after its run has ended. */
export type LookCall = Pick<Call, 'kind' | 'entry'> & { agent: string; action?: string | undefined }

interface Parts {
  store: Store
  host: Pick<EngineHost, 'agent'>
  context: EngineHost['context']
  /** By what the vendor knows an entry. */
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

/** A look that failed for now is repeated after a minute, two, four …, and so often at most. */
const RETRY_MS = 60_000
const MOST_FAILURES = 8
/** The looks by themselves: at the end of the run, and after one, two, four and eight settling times more. */
const LOOKS = 5

export class LaterLooks {
  readonly #parts: Parts
  #any = false
  #pause: { end: () => void } | undefined
  #round: Promise<void> = Promise.resolve()
  #working = false
  /** Something may have become due since the round began. */
  #again = false

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Goes on with what an earlier process left. */
  start(): void {
    this.#any = this.#parts.store.looks.any
    if (this.#any) this.wake()
  }

  /** Something is to be looked for when its run has ended. */
  kept(): void {
    this.#any = true
  }

  /** Whether anything may have to be looked for. False where no reply was ever lost, and then nothing is read. */
  get any(): boolean {
    return this.#any
  }

  /** A run has ended. */
  wake(): void {
    if (!this.#any || this.#parts.stopping.aborted) return
    this.#again = true
    this.#pause?.end()
    if (this.#working) return
    this.#working = true
    this.#round = this.#rounds().catch(error => {
      if (!this.#parts.stopping.aborted) this.#parts.log.error('a later look failed', { error: textOf(error) })
    })
    void this.#round.finally(() => {
      this.#working = false
    })
  }

  stop(): void {
    this.#pause?.end()
  }

  /** Resolves when the look at the end of a run, and of those below it, is over. */
  async atEnd(run: Pick<RunRow, 'root_id' | 'tree_key'>): Promise<void> {
    if (!this.#any) return
    const due = this.#parts.store.looks.below(run.root_id, run.tree_key).map(row => entryKey(row))
    for (const row of this.#parts.store.looks.open()) {
      if (row.looked === 0 && due.includes(entryKey(row))) await this.#look(row)
    }
    this.wake()
  }

  /**
   * Asks at once about everything of a tree that is not certain, because a person wants to know. Returns what could not
   * be asked, each with the reason.
   */
  async ask(run: Pick<RunRow, 'root_id' | 'tree_key'>): Promise<Unasked[]> {
    const unasked: Unasked[] = []
    for (const row of this.#parts.store.looks.below(run.root_id, run.tree_key)) {
      const failed = await this.#look(row)
      if (failed !== null) unasked.push({ ...entryIdOf(row), reason: failed })
    }
    this.#any = true
    this.wake()
    return unasked
  }

  async #rounds(): Promise<void> {
    const { store, bootClock, stopping } = this.#parts
    while (!stopping.aborted) {
      this.#again = false
      let least = Number.POSITIVE_INFINITY
      for (const row of store.looks.open()) {
        const left = this.#leftOf(row)
        if (left > 0) least = Math.min(least, left)
        else {
          await this.#look(row)
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

  /** Milliseconds until a look is due. */
  #leftOf({ looked, failures, boot, since, settles }: LookRow): number {
    if (since === null) return 0
    const { bootClock, settle } = this.#parts
    const settling = looked === 0 ? 0 : (settle() ?? settles) * 2 ** (looked - 1)
    const wait = failures > 0 ? RETRY_MS * 2 ** (failures - 1) : settling
    // Since a moment of an earlier boot at least the time of this one has passed.
    return wait - (elapsedSince({ boot, at: since }, bootClock) ?? bootClock.now())
  }

  /** Returns why the other system could not be asked, or null. */
  async #look(row: LookRow): Promise<MaskedText | null> {
    const { store, bootClock, stopping, mask } = this.#parts
    const id = entryIdOf(row)
    const asked = bootClock.now()
    const at = { boot: bootClock.boot, since: asked }
    // A look that a person asks for is none of those that come by themselves, unless one is due.
    const isDue = row.looked < LOOKS && this.#leftOf(row) <= 0
    let found: Found | null
    try {
      found = await this.#find(row)
    } catch (thrown) {
      const reason = mask(store.runs.get(row.run_id)?.root_id, textOf(thrown))
      if (stopping.aborted || !isDue) return reason
      const failures = row.failures + 1
      const mayPass = thrown instanceof AgentError && thrown.retryable && failures < MOST_FAILURES
      // A look at the end of a run that fails is followed by the next one in any case.
      const looked = row.looked === 0 ? 1 : mayPass ? row.looked : LOOKS
      const next = { looked, failures: row.looked === 0 ? 0 : failures, confirmed: row.confirmed }
      await this.#record(id, () => store.looks.set(id, { ...next, ...at }))
      return reason
    }
    await this.#record(id, () => {
      const receipt = store.receipts.get(id)
      if (!receipt) return
      const run = store.runs.get(row.run_id)!
      if (found) this.#note(id, receipt, mask(run.root_id, found))
      else this.#absent(id, receipt, row, asked)
      // Looks of an open run are those of a person who asks; its own begin when it ends.
      if (run.completed_at === null || receipt.presumed_at === null) return
      const looked = isDue ? row.looked + 1 : row.looked
      // Whether one settling time has passed since the end: then the second look was due, now or before.
      const isSettled = row.looked > 1 || row.failures > 0 || (isDue && row.looked === 1)
      const confirmed = found && isSettled ? 1 : row.confirmed
      if (looked === LOOKS && confirmed === 1) store.looks.drop(id)
      else if (isDue) store.looks.set(id, { looked, failures: 0, confirmed, ...at })
      else if (confirmed !== row.confirmed) store.looks.setConfirmed(id)
    })
    return null
  }

  /** What the other system shows: the write itself, and whatever else carries its mark. */
  #note(entryId: EntryId, receipt: ReceiptRow, { result, copies }: Masked<Found>): void {
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

  /** It does not show what is in doubt, which counts after the settling time. */
  #absent(id: EntryId, receipt: ReceiptRow, { settles }: LookRow, asked: number): void {
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
    const { agent, action, kind, entry } = JSON.parse(text) as LookCall & { entry: JsonObject }
    const over = AbortSignal.timeout(ASK_MS)
    const signal = AbortSignal.any([stopping, over])
    const { definition, settings } = await host.agent(agent, signal, run.root_id)
    const handler = handlerOf(definition, action, kind)
    if (!handler?.find) throw new AgentError(`${agent} has no look-up any more`)
    const effect = 'once'
    const key = idempotencyKey(row.run_id, row.position, row.entry)
    const environment = { ...this.#parts.environment(run, row.position), log() {} }
    const files = holdFiles()
    const identity = this.#parts.identity(run.id, row.position, row.entry)
    const binding = { agent, action, definition, settings, effect, key, signal } as const
    const context = this.#parts.context(environment, binding, { ...files.hooks, identity })
    const asking = withGrace(files.during((async () => handler.find!(entry, context))()), signal, 0)
    try {
      return foundBy(await unlessAborted(asking, stopping), agent)
    } catch (thrown) {
      if (!over.aborted || stopping.aborted) throw thrown
      throw new AgentError(`${agent} did not answer`, { code: 'timeout', retryable: true, cause: thrown })
    }
  }

  #record(id: EntryId, change: () => void): Promise<void> {
    return this.#parts.write(() => {
      change()
      this.#parts.changed(id.runId, id.position, id.entry)
    })
  }

  /** Resolves when no look is going on, but for those that wait for their time. */
  async idle(): Promise<void> {
    while (this.#working && !this.#pause) await startPause(5).over
  }
}

/** What a call is sealed for. */
export const sealLabel = ({ run_id, position, entry }: Pick<LookRow, 'run_id' | 'position' | 'entry'>): string =>
  `${run_id}/looks/${position}/${entry}`

const entryIdOf = ({ run_id, position, entry }: LookRow): EntryId => ({ runId: run_id, position, entry })

const entryKey = ({ run_id, position, entry }: LookRow): string => `${run_id} ${position} ${entry}`

/** Vendors name what they have by an id, or at least by an address. What has neither cannot be told from the other. */
const sameAs = (a: Copy, b: Copy): boolean =>
  a.id !== null && b.id !== null ? a.id === b.id : a.url !== null && b.url !== null ? a.url === b.url : true
