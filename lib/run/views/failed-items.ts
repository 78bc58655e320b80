// Why items of a map failed: their errors, each with the keys of its items.

import type { FailedItems } from '../../wire/records/run-records.ts'
import { parse, type RunError } from '../core/core.ts'
import type { Store } from '../store/store.ts'

/** Maximum numbers of items that are read, of causes, and of keys of each. */
const READ = 10_000
const CAUSES = 10
const KEYS = 10

type Cause = FailedItems['causes'][number]

/**
 * The errors of the failed items of a map, the most frequent first. Errors that differ only in the key of their item are
 * one cause, in which `…` stands for the key.
 */
export function causesOf(store: Store, runId: string, position: number): Cause[] {
  const causes: Cause[] = []
  const known = new Map<string, Cause>()
  for (const { run_name, error } of store.runs.failedChildren(runId, position, READ)) {
    const key = run_name ?? ''
    const message = parse<RunError>(error)?.message ?? 'failed'
    const common = withoutKey(message, key)
    const cause = known.get(message) ?? known.get(common) ?? { message, count: 0, keys: [] }
    if (cause.count === 0) causes.push(cause)
    else if (cause.message !== message) cause.message = common
    known.set(message, cause)
    if (common !== message) known.set(common, cause)
    cause.count++
    if (cause.keys.length < KEYS) cause.keys.push(key)
  }
  return causes.toSorted((a, b) => b.count - a.count).slice(0, CAUSES)
}

function withoutKey(message: string, key: string): string {
  if (key === '') return message
  return message.replaceAll(new RegExp(`(?<!\\w)${RegExp.escape(key)}(?!\\w)`, 'g'), '…')
}
