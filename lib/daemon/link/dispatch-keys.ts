// The keys that dispatch tokens may be signed with: the one that was configured here, or those of the hub.

import type { Log } from '../../log/log.ts'
import { pause } from '../../wait.ts'
import type { PublicKey } from '../../wire/protocol.ts'

/** The keys are fetched at most this often because of a token. */
const FETCH_MS = 1_000

interface Parts {
  /** CADRE_DISPATCH_PUBLIC_KEY: only this key is trusted. */
  pinnedKey: string | null
  log: Log
  signal: AbortSignal
  /** Fetches the keys of the hub, and passes them to `learn`. A hub that does not answer leaves them as they are. */
  fetchKeys(): Promise<void>
}

export class DispatchKeys {
  readonly #parts: Parts
  #keys: readonly PublicKey[] = []
  #renewing: Promise<void> | null = null
  /** By the monotonic clock. */
  #fetchedAt = Number.NEGATIVE_INFINITY

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** The keys to trust now. */
  get trusted(): readonly PublicKey[] {
    const { pinnedKey } = this.#parts
    if (pinnedKey) return [{ kid: this.#keys.find(key => samePem(key.pem, pinnedKey))?.kid ?? '', pem: pinnedKey }]
    return this.#keys.filter(key => key.not_after === undefined || key.not_after > Date.now())
  }

  /** Takes the keys that the hub sent. */
  learn(keys: readonly PublicKey[]): void {
    this.#keys = keys
    const { pinnedKey, log } = this.#parts
    if (pinnedKey && !keys.some(key => samePem(key.pem, pinnedKey))) {
      log.warn('CADRE_DISPATCH_PUBLIC_KEY differs from the hub’s dispatch key: tokens of the hub are refused')
    }
  }

  /** Fetches the keys of the hub, at most once a second, whatever keys the tokens of strangers name. */
  renew(): Promise<void> {
    if (this.#parts.pinnedKey) return Promise.resolve()
    this.#renewing ??= this.#fetchKeys().finally(() => {
      this.#renewing = null
    })
    return this.#renewing
  }

  async #fetchKeys(): Promise<void> {
    await pause(Math.max(0, this.#fetchedAt + FETCH_MS - performance.now()), this.#parts.signal)
    this.#fetchedAt = performance.now()
    await this.#parts.fetchKeys()
  }
}

const samePem = (a: string, b: string): boolean => a.replace(/\s/g, '') === b.replace(/\s/g, '')
