// Why items of a map failed: their errors, each with the keys of its items.

import type { FailedItems } from '../../wire/records/run-records.ts'
import { parse, type RunError } from '../core/core.ts'
import type { Store } from '../store/store.ts'

/** Maximum numbers of items whose errors are read, of causes, and of keys of each. */
const READ = 10_000
const CAUSES = 10
const KEYS = 10

type Cause = FailedItems['causes'][number]

export function causesOf(store: Store, runId: string, position: number): Cause[] {
  const causes = new Causes()
  for (const { run_name, error } of store.runs.failedChildren(runId, position, READ)) causes.add(run_name ?? '', error)
  return causes.list()
}

/**
 * The errors of failed items. Errors that differ only in the key of their item are one cause, in which `…` stands for the
 * key.
 */
export class Causes {
  readonly #causes: Cause[] = []
  readonly #known = new Map<string, Cause>()
  /** How many items failed, also those whose errors are not read any more. */
  count = 0

  /** `error` is JSON. `shown` names the item where its own key does not. */
  add(key: string, error: string | null, shown = key): void {
    this.count++
    if (this.count > READ) return
    const message = parse<RunError>(error)?.message ?? 'failed'
    const common = withoutKey(message, key)
    const cause = this.#known.get(message) ?? this.#known.get(common) ?? { message, count: 0, keys: [] }
    if (cause.count === 0) this.#causes.push(cause)
    else if (cause.message !== message) cause.message = common
    this.#known.set(message, cause)
    if (common !== message) this.#known.set(common, cause)
    cause.count++
    if (cause.keys.length < KEYS) cause.keys.push(shown)
  }

  /** The most frequent first. */
  list(): Cause[] {
    return this.#causes.toSorted((a, b) => b.count - a.count).slice(0, CAUSES)
  }
}

/** A message without the key of its item, where that is not a part of a word. An expression for each key would be slow. */
function withoutKey(message: string, key: string): string {
  if (key === '') return message
  return message.replaceAll(key, (found, at: number) => {
    const around = [message[at - 1] ?? '', message[at + key.length] ?? '']
    return around.some(each => /\w/.test(each)) ? found : '…'
  })
}
