// The keys that dispatch tokens may be signed with: the one that was configured here, or those of the hub.

import type { Log } from '../../log/log.ts'
import { pause } from '../../wait.ts'
import type { PublicKey } from '../../wire/protocol.ts'

/** How often the hub is asked for its keys because of a token. */
const ASK_MS = 1_000

interface Parts {
  /** CADRE_DISPATCH_PUBLIC_KEY: only this key is trusted. */
  pinnedKey: string | null
  log: Log
  signal: AbortSignal
  /** Asks the hub for its keys, and has them learned. A hub that does not answer leaves them as they are. */
  ask(): Promise<void>
}

export class DispatchKeys {
  readonly #parts: Parts
  #keys: readonly PublicKey[] = []
  #renewing: Promise<void> | null = null
  #askedAt = 0

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The keys to trust now. */
  get trusted(): readonly PublicKey[] {
    const { pinnedKey } = this.#parts
    if (pinnedKey) return [{ kid: this.#keys.find(key => samePem(key.pem, pinnedKey))?.kid ?? '', pem: pinnedKey }]
    return this.#keys.filter(key => key.not_after === undefined || key.not_after > Date.now())
  }

  /** Takes the keys that the hub told. */
  learn(keys: readonly PublicKey[]): void {
    this.#keys = keys
    const { pinnedKey, log } = this.#parts
    if (pinnedKey && !keys.some(key => samePem(key.pem, pinnedKey))) {
      log.warn('CADRE_DISPATCH_PUBLIC_KEY differs from the hub’s dispatch key: tokens of the hub are refused')
    }
  }

  /** Asks the hub for its keys, at most once a second, whatever keys the tokens of strangers name. */
  renew(): Promise<void> {
    if (this.#parts.pinnedKey) return Promise.resolve()
    this.#renewing ??= this.#ask().finally(() => {
      this.#renewing = null
    })
    return this.#renewing
  }

  async #ask(): Promise<void> {
    await pause(Math.max(0, this.#askedAt + ASK_MS - Date.now()), this.#parts.signal)
    this.#askedAt = Date.now()
    await this.#parts.ask()
  }
}

const samePem = (a: string, b: string): boolean => a.replace(/\s/g, '') === b.replace(/\s/g, '')
