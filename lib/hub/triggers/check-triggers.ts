// Finds triggers that are broken before an occasion says so, and mends those whose problem is gone. What was due meanwhile is
// not made up for: a mended trigger goes on from now.

import { and, eq, isNotNull, isNull, not, or, type SQL } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { changedSince } from '../../firing/declared.ts'
import { hasRole } from '../access/owners.ts'
import type { Hub } from '../core/hub.ts'
import { listedPackage } from '../queue/dispatch.ts'
import { breakTrigger, ownerText } from './problem.ts'
import { declaredIn, type Look, putTrigger, type RealmTrigger, takeTrigger } from './trigger-table.ts'

export async function* checkTriggers(hub: Hub): AsyncGenerator<void> {
  const { triggers, db } = hub.store
  const isOrphan = not(hasRole(hub.store, triggers.owner_id, triggers.realm_id, 'operator'))
  const enabled = and(isNull(triggers.removed_at), eq(triggers.enabled, true))
  const doubtful = await db
    .select({ id: triggers.id })
    .from(triggers)
    .where(and(enabled, or(isNotNull(triggers.problem), isOrphan)))
  for (const id of new Set([...doubtful.map(({ id }) => id), ...(await changedOf(hub, enabled!))])) {
    await hub.store.write(async tx => {
      const taken = await takeTrigger(hub, tx, id, { claimed: true })
      if (taken) await check({ ...taken, hub, tx })
    })
    yield
  }
}

async function check(look: Look): Promise<void> {
  const { hub, tx, trigger, realm, owner, mayStart, now } = look
  if (!mayStart) return breakTrigger(look, 'owner', ownerText(owner.username))
  // Only a look at its slots knows whether something knows them.
  if (trigger.problem?.reason === 'internal') return
  const text = await teamProblem(hub, tx, realm, trigger)
  if (text !== null) return breakTrigger(look, 'team', text)
  if (trigger.problem === null) return
  const cursor = Math.max(trigger.cursor, now)
  await putTrigger(hub.store, tx, { ...trigger, problem: null, cursor })
}

/** What keeps the team of a trigger from being started; null: nothing does. */
export async function teamProblem(
  hub: Hub,
  db: Db,
  realm: Pick<Look['realm'], 'id' | 'slug'>,
  trigger: RealmTrigger,
): Promise<string | null> {
  try {
    const { name, version, triggers } = await listedPackage(hub, db, realm, trigger.spec.team)
    return changedSince(trigger, { name, version, triggers: triggers ?? [] })?.detail ?? null
  } catch (error) {
    if (!(error instanceof CadreError) || error.code === 'unavailable') throw error
    return error.message
  }
}

/** Those that a team declares, and of which it says something else now. They are read without a transaction each. */
async function changedOf(hub: Hub, enabled: SQL): Promise<string[]> {
  const { triggers, realms, db } = hub.store
  const declared = await db
    .select({ trigger: triggers, realm: { id: realms.id, slug: realms.slug } })
    .from(triggers)
    .innerJoin(realms, eq(realms.id, triggers.realm_id))
    .where(and(enabled, isNull(triggers.problem), declaredIn(hub.store)))
  const changed: string[] = []
  for (const { trigger, realm } of declared) {
    if ((await teamProblem(hub, db, realm, trigger)) !== null) changed.push(trigger.id)
  }
  return changed
}
