// Finds triggers that are broken before an occasion says so, and mends those whose problem is gone. What was due meanwhile is
// not made up for: a mended trigger goes on from now.

import { and, eq, isNotNull, isNull, not, or } from 'drizzle-orm'
import { CadreError } from '../../error.ts'
import { hasRole } from '../access/owners.ts'
import type { Hub } from '../core/hub.ts'
import { listedPackage } from '../queue/dispatch.ts'
import { breakTrigger, ownerText } from './problem.ts'
import { type Look, putTrigger, takeTrigger } from './trigger-table.ts'

export async function checkTriggers(hub: Hub): Promise<void> {
  const { triggers, db } = hub.store
  const isOrphan = not(hasRole(hub.store, triggers.owner_id, triggers.realm_id, 'operator'))
  const enabled = and(isNull(triggers.removed_at), eq(triggers.enabled, true))
  const doubtful = await db
    .select({ id: triggers.id })
    .from(triggers)
    .where(and(enabled, or(isNotNull(triggers.problem), isOrphan)))
  for (const { id } of doubtful) {
    await hub.store.write(async tx => {
      const taken = await takeTrigger(hub, tx, id, { claimed: true })
      if (taken) await check({ ...taken, hub, tx })
    })
  }
}

async function check(look: Look): Promise<void> {
  const { hub, tx, trigger, realm, owner, mayStart, now } = look
  if (!mayStart) return breakTrigger(look, 'owner', ownerText(owner.username))
  // Only a look at its slots knows whether something knows them.
  if (trigger.problem === null || trigger.problem.reason === 'internal') return
  try {
    await listedPackage(hub, tx, realm, trigger.spec.team)
  } catch (error) {
    if (!(error instanceof CadreError) || error.code === 'unavailable') throw error
    return breakTrigger(look, 'team', error.message)
  }
  const cursor = Math.max(trigger.cursor, now)
  await putTrigger(hub.store, tx, { ...trigger, problem: null, cursor })
}
