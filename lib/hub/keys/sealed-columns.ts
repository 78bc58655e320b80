// Every column that holds sealed text. A sealed column that is missing here does not compile.

import type { Sealed } from '../../../db/hub/columns.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Store } from '../../../db/hub/store.ts'

type Row<T extends keyof Tables> = Tables[T]['$inferSelect']
type SealedOf<T extends keyof Tables> = {
  [C in keyof Row<T>]: Sealed extends Row<T>[C] ? (Row<T>[C] extends Sealed ? C : never) : never
}[keyof Row<T>]

type SealedColumns = {
  [T in keyof Tables as [SealedOf<T>] extends [never] ? never : T]: {
    /** The primary key of the table. */
    key: Exclude<keyof Row<T>, SealedOf<T>>
    sealed: SealedOf<T>
    /** What a row is, for people: one and many. */
    words: readonly [string, string]
  }
}

const SEALED_COLUMNS: SealedColumns = {
  dispatchKeys: { key: 'kid', sealed: 'private_key', words: ['dispatch key', 'dispatch keys'] },
  webhooks: { key: 'id', sealed: 'secret', words: ['secret of a webhook', 'secrets of webhooks'] },
  hookSecrets: { key: 'id', sealed: 'sealed', words: ['secret of a hook', 'secrets of hooks'] },
  hookBodies: { key: 'firing_id', sealed: 'sealed', words: ['delivery', 'deliveries'] },
}

/** The tables with a sealed column. All have the same shape, of which TypeScript knows only each table's own. */
export const sealedTables = (store: Store) =>
  (Object.keys(SEALED_COLUMNS) as (keyof SealedColumns)[]).map(name => {
    const { key, sealed, words } = SEALED_COLUMNS[name]
    const table = store[name] as Tables['webhooks']
    const set = (text: Sealed) => ({ [sealed]: text }) as { secret: Sealed }
    return { table, id: table[key as 'id'], sealed: table[sealed as 'secret'], set, words }
  })
