// Firings that an older copy of the database lacks, made again from what daemons report that started their runs.

import type { Db } from '../../../db/hub/store.ts'
import type { StartedBy } from '../../wire/records/started-by.ts'
import { lastFoundAt } from '../core/found-copies.ts'
import type { Hub } from '../core/hub.ts'
import { firingOf, firingWithId, insertFiring, settleFiring } from './firing-table.ts'
import { inRealm } from './in-realm.ts'
import { byId, findTrigger } from './trigger-table.ts'

/** A top run that a daemon reports and that the hub did not know. */
export interface UnknownRun {
  run_id: string
  started_by: StartedBy | null
  started_at: number | null
}

/**
 * Makes its firing again, so that its occasion starts no second run, and a run that goes on counts as one of its trigger. A
 * daemon is believed only about the time before the discovery of the copy.
 */
export async function recallFiring(hub: Hub, tx: Db, realmId: string, run: UnknownRun): Promise<void> {
  const { store } = hub
  const { started_by: by, run_id } = run
  if (!by || !('firing' in by)) return
  const foundAt = await lastFoundAt(store, tx, realmId)
  if (foundAt === null) return
  const trigger = await findTrigger(store, tx, byId(store, by.trigger))
  if (trigger?.realm_id !== realmId) return
  const recalled = inRealm(trigger).recalled?.(by, run.started_at ?? foundAt)
  if (!recalled || recalled.at > foundAt) return
  const { manual = null } = by
  if (!manual) await inRealm(trigger).withdraw?.({ hub, tx, trigger }, recalled.at)
  // Of an occasion that a person fired, only the firing is known.
  const occasion = manual ? `now:${by.firing}` : recalled.occasion
  const started_at = run.started_at ?? hub.now()
  const started = { state: 'started', reason: null, detail: null, run_id, started_at } as const
  const known = (await firingWithId(store, tx, by.firing)) ?? (await firingOf(store, tx, trigger.id, occasion))
  const isOpen = known?.trigger_id === trigger.id && (known.state === 'waiting' || known.reason === 'copy')
  if (isOpen) await settleFiring(store, tx, { ...known, ...started }, known.state)
  if (known) return
  const { id: trigger_id, revision } = trigger
  await insertFiring(store, tx, {
    ...{ id: by.firing, trigger_id, revision, manual, seen_at: started_at, until: null, count: 1 },
    ...{ ...recalled, ...started, occasion },
  })
}
