// One masker for each set of secrets: those of the settings, alone or with the secret inputs of a tree.

import type { Log } from '../log.ts'
import { createRedactor, type Redactor, type Secret } from '../redact.ts'

/** Trees with secret inputs whose maskers are kept ready. */
const MOST = 64

export class Mask {
  readonly #secrets: () => Secret[]
  readonly #log: Log
  readonly #known = new Map<string, Redactor>()

  constructor(secrets: () => Secret[], log: Log) {
    this.#secrets = secrets
    this.#log = log
  }

  /** Masks the secrets of the settings and `more`. */
  redactor(more: readonly string[] = []): Redactor {
    const key = more.length === 0 ? '' : JSON.stringify(more)
    const known = this.#known.get(key)
    if (known) return known
    const inputs = more.map(value => ({ name: 'a secret input', value }))
    const redactor = createRedactor([...this.#secrets(), ...inputs])
    for (const warning of redactor.warnings) this.#log.warn('not masked', { warning })
    if (this.#known.size >= MOST) this.#known.clear()
    this.#known.set(key, redactor)
    return redactor
  }

  forget(): void {
    this.#known.clear()
  }
}
