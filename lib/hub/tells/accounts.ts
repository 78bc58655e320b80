// Which daemons can tell people something at an account (`agent:channel`), and which accounts of a realm none can now.

import { and, eq, isNotNull, isNull } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { TELL } from '../../wire/records/jobs.ts'
import { type DaemonRow, isOnline } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'

type Teller = Pick<DaemonRow, 'kinds' | 'accounts' | 'agents'>

/**
 * Whether the daemon tells people something at this account. One that does not say which accounts it has may have those of
 * its agents.
 */
export function hasAccount({ kinds, accounts, agents }: Teller, account: string): boolean {
  if (!kinds?.includes(TELL)) return false
  if (accounts !== null) return accounts.includes(account)
  const [agent = ''] = account.split(':', 1)
  const found = agents.find(({ name }) => name === agent) ?? agents.find(({ name }) => name === agent.split('@', 1)[0])
  return found !== undefined && found.doctor !== 'unset' && found.doctor !== 'wrong'
}

/** Those of the accounts at which no daemon that is online can tell people something. */
export async function unreached(
  { store, lived }: Hub,
  db: Db,
  realmId: string,
  accounts: readonly string[],
): Promise<string[]> {
  if (accounts.length === 0) return []
  const { daemons } = store
  const online = and(
    eq(daemons.realm_id, realmId),
    isNull(daemons.removed_at),
    isNotNull(daemons.approved_at),
    isOnline(store, lived()),
  )
  const all = await db
    .select({ kinds: daemons.kinds, accounts: daemons.accounts, agents: daemons.agents })
    .from(daemons)
    .where(online)
  return accounts.filter(account => !all.some(daemon => hasAccount(daemon, account)))
}
