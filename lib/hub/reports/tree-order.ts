// The order of the runs in a tree, depth first. It is the order of their keys, because each key begins with that of its
// parent. A key grows with the depth of its run. PostgreSQL indexes only the start of a key, so on PostgreSQL every
// condition also names the start.

import { and, asc, gt, gte, lt, type SQL, sql } from 'drizzle-orm'
import { KEY_START } from '../../../db/hub/columns.ts'
import type { Store } from '../../../db/hub/store.ts'

/** Sorts after every character that keys contain. */
const END = '~'

export function treeOrder(store: Store): SQL[] {
  const whole = asc(store.runs.tree_key)
  return store.dialect === 'postgres' ? [asc(startOf(store)), whole] : [whole]
}

/** The runs that come after the one with this key. */
export function isAfter(store: Store, key: string): SQL {
  return and(gt(store.runs.tree_key, key), startsAt(store, key))!
}

/** The runs below the one with this key. With `itself`, that run is included. */
export function isBelow(store: Store, key: string, itself: boolean): SQL {
  const { tree_key } = store.runs
  const end = key + END
  const until = store.dialect === 'postgres' ? sql`${startOf(store)} <= ${end.slice(0, KEY_START)}` : undefined
  return and((itself ? gte : gt)(tree_key, key), lt(tree_key, end), startsAt(store, key), until)!
}

/** A condition that excludes nothing, but lets PostgreSQL find the position in its index. */
function startsAt(store: Store, key: string): SQL | undefined {
  return store.dialect === 'postgres' ? sql`${startOf(store)} >= ${key.slice(0, KEY_START)}` : undefined
}

/**
 * The same expression as in the index. The number is written out, because a parameter would make it a different
 * expression.
 */
const startOf = ({ runs }: Store): SQL => sql`left(${runs.tree_key}, ${sql.raw(String(KEY_START))})`
