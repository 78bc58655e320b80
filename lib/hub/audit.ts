// The audit log: who changed what, in the transaction that changed it.

import type { Db } from '../../db/hub/store.ts'
import type { TokenFacts } from './callers.ts'
import type { Hub } from './hub.ts'

export interface Deed {
  /** The route: `orgs/add_member`. */
  action: string
  target?: string
  org_id?: number
  realm_id?: string
}

/** `by` is null for what happens without a token: sign-in, and accepting an invitation. */
export async function record({ store, now }: Hub, tx: Db, by: TokenFacts | null, deed: Deed): Promise<void> {
  const who = by ? { user_id: by.user.id, username: by.user.username, token_id: by.id } : {}
  await tx.insert(store.audit).values({ at: now(), ...who, ...deed })
}
