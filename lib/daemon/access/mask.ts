// The maskers of secrets: those of the settings, the daemon's own and those that agents concealed, optionally with the
// secret inputs of a tree. A value that was once known stays masked while runs may still use it.

import type { Log } from '../../log/log.ts'
import { Recent } from '../../recent.ts'
import { createRedactor, type KnownSecret, type Redactor } from '../../secrets/redact.ts'

/** The maximum number of trees with secret inputs whose maskers are kept. */
const MOST = 64
/**
 * The maximum number of concealed values. It is enough for a few of each account and the access tokens of some days.
 */
const MOST_CONCEALED = 256

export class Mask {
  readonly #secrets: () => readonly KnownSecret[]
  readonly #log: Log
  /** Maskers that are kept for reuse. */
  readonly #known = new Map<string, Redactor>()
  /** Every masker that may still be in use. */
  readonly #given = new Set<WeakRef<Redactor>>()
  readonly #concealed = new Recent<string, string>(MOST_CONCEALED)
  readonly #warned = new Set<string>()
  #current: readonly KnownSecret[]
  /** The number of values that were added to the maskers since they were created. */
  #added = 0

  constructor(secrets: () => readonly KnownSecret[], log: Log) {
    this.#secrets = secrets
    this.#log = log
    this.#current = secrets()
  }

  /** Masks the secrets of the settings, what was concealed, and `more`. */
  redactor(more: readonly (string | KnownSecret)[] = []): Redactor {
    const key = more.length === 0 ? '' : JSON.stringify(more)
    const known = this.#known.get(key)
    if (known) return known
    const redactor = createRedactor([...this.#current, ...more])
    this.#warn(redactor)
    for (const value of this.#concealed.values()) redactor.add(value)
    if (this.#known.size >= MOST) this.#known.clear()
    this.#known.set(key, redactor)
    this.#given.add(new WeakRef(redactor))
    return redactor
  }

  /**
   * Called when secrets were added or replaced: every masker then knows the new values, and still knows the old ones.
   */
  learn(): void {
    const before = this.#current
    this.#current = this.#secrets()
    const values = new Set(this.#current.map(({ value }) => value))
    for (const redactor of this.#inUse()) {
      for (const secret of this.#current) redactor.add(secret)
      this.#warn(redactor)
    }
    for (const { value } of before) if (!values.has(value)) this.conceal(value)
  }

  /** Adds a secret that is in no setting to every masker. */
  conceal(value: string): void {
    if (this.#concealed.get(value) !== undefined) return
    this.#concealed.set(value, value)
    // Maskers never forget a value, so from time to time new ones are created, which hold only what is still
    // remembered.
    if (++this.#added > MOST_CONCEALED) this.#renew()
    for (const redactor of this.#inUse()) redactor.add(value)
  }

  /** The daemon's own log, of which every line is masked. */
  log(): Log {
    const at =
      (level: keyof Log): Log['info'] =>
      (event, fields = {}) => {
        const masked = this.redactor().json({ event, fields })
        this.#log[level](masked.event, masked.fields)
      }
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }

  *#inUse(): Generator<Redactor> {
    for (const reference of this.#given) {
      const redactor = reference.deref()
      if (redactor) yield redactor
      else this.#given.delete(reference)
    }
  }

  #renew(): void {
    this.#known.clear()
    this.#added = 0
  }

  /** Warns once for each value that is too short to be masked. */
  #warn({ warnings }: Redactor): void {
    for (const warning of warnings) {
      if (this.#warned.has(warning)) continue
      this.#warned.add(warning)
      this.#log.warn('not masked', { warning })
    }
  }
}
