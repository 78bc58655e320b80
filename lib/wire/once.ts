// A call that starts something may arrive twice: after a lost answer, or by a second click. With a key of its caller it
// starts that only once.

import { createHmac } from 'node:crypto'
import { CadreError } from '../error.ts'
import { canonicalJson } from '../json.ts'

export interface Once {
  /** The caller's. */
  key: string
  /** What was asked for. It is made with the key, so whoever does not know the key cannot try values that it may hold. */
  mark: string
}

/** What a call with a key asks for; null for one without. */
export function onceOf(body: object & { idempotency_key?: string | undefined }): Once | null {
  const { idempotency_key: key, ...asked } = body
  if (key === undefined) return null
  return { key, mark: createHmac('sha256', key).update(canonicalJson(asked)).digest('hex') }
}

/** Throws 409 when the key has started something else. `known`: the mark of what it started, if it was kept. */
export function mustBeSame({ key, mark }: Once, known: string | null): void {
  if (known === null || known === mark) return
  throw new CadreError('conflict', `the idempotency key ${key} was given with another request: choose a new key`)
}
