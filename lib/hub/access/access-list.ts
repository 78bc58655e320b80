// Who may call a realm's daemons, and which keys those daemons accept. Daemons get this from register, from every
// heartbeat and from auth/acl.

import { and, eq, inArray, isNull } from 'drizzle-orm'
import type { AccessList, PublicKey } from '../../wire/protocol.ts'
import type { Hub } from '../core/hub.ts'
import { publicKeys } from './dispatch-keys.ts'
import { listedTeams } from './team-list.ts'

export async function accessList(hub: Hub, realmId: string, daemonId: string): Promise<AccessList> {
  const { allowed, keys } = await realmFacts(hub, realmId)
  return { realm_id: realmId, allowed, dispatch_public_key: keys[0]!.pem, daemon_id: daemonId }
}

export interface RealmFacts {
  /** User names of all live members, sorted. Org owners and admins, who inherit their role, are included. */
  allowed: string[]
  /** A new value whenever `allowed` changes. */
  aclVersion: string
  /** The teams on the realm's list that it may run, as `@scope/name`, sorted. */
  teams: string[]
  teamsVersion: string
  keys: PublicKey[]
}

/** Everything about a realm that the hub sends to its daemons. */
export function realmFacts(hub: Hub, realmId: string): RealmFacts | Promise<RealmFacts> {
  return hub.memo.get(`realm ${realmId}`, async () => {
    const { db, realms, realmMembers, orgMembers, users } = hub.store
    const [realm] = await db.select().from(realms).where(eq(realms.id, realmId))
    const own = await db
      .select({ name: users.username })
      .from(realmMembers)
      .innerJoin(users, eq(users.id, realmMembers.user_id))
      .where(and(eq(realmMembers.realm_id, realmId), isNull(users.suspended_at)))
    const inherited = await db
      .select({ name: users.username })
      .from(orgMembers)
      .innerJoin(users, eq(users.id, orgMembers.user_id))
      .where(
        and(
          eq(orgMembers.org_id, realm!.org_id),
          inArray(orgMembers.role, ['owner', 'admin']),
          isNull(users.suspended_at),
        ),
      )
    const listed = await listedTeams(hub.store, db, realmId)
    const allowed = [...new Set([...own, ...inherited].map(({ name }) => name))].sort()
    const teams = listed
      .filter(({ lent }) => lent)
      .map(({ team }) => team)
      .sort()
    return {
      allowed,
      aclVersion: digest(allowed),
      teams,
      teamsVersion: digest(teams),
      keys: await publicKeys(hub, realm!.org_id),
    }
  })
}

function digest(names: string[]): string {
  return new Bun.CryptoHasher('sha256').update(names.join('\n')).digest('hex').slice(0, 16)
}
