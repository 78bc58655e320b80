// The runs of a tree in their order, depth first: that of their keys, each of which begins with its parent's. A key is as
// long as its run is deep. PostgreSQL's index holds the starts of keys, so there every condition is told of the starts too.

import { and, asc, gt, gte, lt, type SQL, sql } from 'drizzle-orm'
import { KEY_START } from '../../db/hub/columns.ts'
import type { Store } from '../../db/hub/store.ts'

/** Sorts after every character of keys. */
const END = '~'

export function treeOrder(store: Store): SQL[] {
  const whole = asc(store.runs.tree_key)
  return store.dialect === 'postgres' ? [asc(startOf(store)), whole] : [whole]
}

/** The runs that come after the one with this key. */
export function behind(store: Store, key: string): SQL {
  return and(gt(store.runs.tree_key, key), from(store, key))!
}

/** The runs below the one with this key; `itself`: and that run. */
export function below(store: Store, key: string, itself: boolean): SQL {
  const { tree_key } = store.runs
  const end = key + END
  const until = store.dialect === 'postgres' ? sql`${startOf(store)} <= ${end.slice(0, KEY_START)}` : undefined
  return and((itself ? gte : gt)(tree_key, key), lt(tree_key, end), from(store, key), until)!
}

/** Gives nothing away, and finds the place in PostgreSQL's index. */
function from(store: Store, key: string): SQL | undefined {
  return store.dialect === 'postgres' ? sql`${startOf(store)} >= ${key.slice(0, KEY_START)}` : undefined
}

/** As the index says it: a parameter in place of the number would be another expression. */
const startOf = ({ runs }: Store): SQL => sql`left(${runs.tree_key}, ${sql.raw(String(KEY_START))})`
