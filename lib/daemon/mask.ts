// One masker for each set of secrets: those of the settings, the daemon's own and what agents concealed, alone or with
// the secret inputs of a tree. Promises that a value which was once known stays masked while runs may still hold it.

import type { Log } from '../log.ts'
import { Recent } from '../recent.ts'
import { createRedactor, type KnownSecret, type Redactor } from '../redact.ts'

/** Trees with secret inputs whose maskers are kept ready. */
const MOST = 64
/** Concealed values that are remembered: a few of each account, and access tokens of some days. */
const MOST_CONCEALED = 256

export class Mask {
  readonly #secrets: () => readonly KnownSecret[]
  readonly #log: Log
  /** Maskers that are kept ready. */
  readonly #known = new Map<string, Redactor>()
  /** Every masker that somebody may still use. */
  readonly #given = new Set<WeakRef<Redactor>>()
  readonly #concealed = new Recent<string, string>(MOST_CONCEALED)
  readonly #warned = new Set<string>()
  #current: readonly KnownSecret[]
  /** Values that the maskers were told of since they were made. */
  #told = 0

  constructor(secrets: () => readonly KnownSecret[], log: Log) {
    this.#secrets = secrets
    this.#log = log
    this.#current = secrets()
  }

  /** Masks the secrets of the settings, what was concealed, and `more`. */
  redactor(more: readonly string[] = []): Redactor {
    const key = more.length === 0 ? '' : JSON.stringify(more)
    const known = this.#known.get(key)
    if (known) return known
    const inputs = more.map(value => ({ name: 'a secret input', value }))
    const redactor = createRedactor([...this.#current, ...inputs])
    this.#warn(redactor)
    for (const value of this.#concealed.values()) redactor.add(value)
    if (this.#known.size >= MOST) this.#known.clear()
    this.#known.set(key, redactor)
    this.#given.add(new WeakRef(redactor))
    return redactor
  }

  /** Secrets were added or replaced: every masker knows the new ones from now on, and the old ones too. */
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

  /** A secret that is in no setting: every masker knows it from now on. */
  conceal(value: string): void {
    if (this.#concealed.get(value) !== undefined) return
    this.#concealed.set(value, value)
    // Maskers never unlearn: new ones hold no more than what is remembered.
    if (++this.#told > MOST_CONCEALED) this.#renew()
    for (const redactor of this.#inUse()) redactor.add(value)
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
    this.#told = 0
  }

  /** Once for each value that is too short. */
  #warn({ warnings }: Redactor): void {
    for (const warning of warnings) {
      if (this.#warned.has(warning)) continue
      this.#warned.add(warning)
      this.#log.warn('not masked', { warning })
    }
  }
}
