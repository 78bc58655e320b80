// The audit log: who changed what, with which token and from which address. An entry is written in the transaction of
// the change, and sealed into the chain of its org afterwards (audit-chain.ts). Sign-ins with a wrong password are recorded
// too.

import { batchWriter } from '../../../db/hub/batch-writer.ts'
import { afterCommit, type Db } from '../../../db/hub/store.ts'
import type { Hub } from '../core/hub.ts'
import type { RealmCaller, Stranger, UserCaller } from './callers.ts'

export interface NewEntry {
  /**
   * The route, such as `orgs/add_member`, or a name for an event that a route's name does not describe:
   * `session/create_failed`, `daemons/takeover`.
   */
  action: string
  target?: string
  org_id?: number
  realm_id?: string
}

/** A caller, somebody who has just signed in, or an owner for whom the hub acts by itself. */
export type Doer =
  | UserCaller
  | RealmCaller
  | Stranger
  | (Pick<Stranger, 'address'> & { token: SignedIn })
  | ActsForOwner

interface SignedIn {
  id: number
  user: { id: number; username: string }
}

/** What a trigger starts has its owner, and neither a token nor an address. */
export interface ActsForOwner {
  token: { id: null; user: SignedIn['user'] }
  address(): null
}

/** `by` is null for a command on the hub’s machine. */
export function record(hub: Hub, tx: Db, by: Doer | null, ...entries: NewEntry[]): Promise<void> {
  return recordAll(
    hub,
    tx,
    entries.map(entry => ({ by, entry })),
  )
}

/** The same for entries of several callers. */
export function recordAll({ store, now, sealing }: Hub, tx: Db, done: readonly { by: Doer | null; entry: NewEntry }[]) {
  const at = now()
  afterCommit(tx, () => sealing.wake())
  return putEntries(
    store,
    tx,
    done.map(({ by, entry }) => {
      const token = by && 'token' in by ? by.token : null
      return {
        at,
        address: by?.address() ?? null,
        user_id: token?.user.id ?? null,
        username: token?.user.username ?? null,
        token_id: token?.id ?? null,
        org_id: entry.org_id ?? null,
        realm_id: entry.realm_id ?? null,
        action: entry.action,
        target: entry.target ?? null,
      }
    }),
  )
}

/** The columns that say where an entry was sealed, which audit-chain.ts fills. */
export const SEAL = ['position', 'seq', 'hash'] as const

const putEntries = batchWriter(({ audit }) => audit, { left: ['id', ...SEAL] })
