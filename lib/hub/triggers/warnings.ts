// What is said to whoever adds, changes or enables a trigger of a realm, and forbids nothing.

import type { Db, Store } from '../../../db/hub/store.ts'
import { sameSource } from '../../firing/changes.ts'
import { bareTeam } from '../../firing/trigger.ts'
import type { RealmTriggerRecord } from '../../wire/records/triggers.ts'
import { listTriggers, ofKind, ofRealm, ofTeam, type RealmTrigger, thoseThere } from './trigger-table.ts'

/** More triggers of one kind than a realm has. */
const MOST = 1_000
/** What makes a trigger start runs. */
const STARTS = ['triggers/add', 'triggers/update', 'triggers/enable']

export async function warningsFor(
  store: Store,
  tx: Db,
  action: string,
  trigger: RealmTrigger,
): Promise<Pick<RealmTriggerRecord, 'warnings'>> {
  if (!STARTS.includes(action)) return {}
  const { realm_id, kind, spec } = trigger
  const those = thoseThere(store, ofRealm(store, realm_id), ofKind(store, kind), ofTeam(store, bareTeam(spec.team)))
  const others = await listTriggers(store, tx, those, { limit: MOST, offset: 0 })
  const warnings = sameSource(
    trigger,
    others.map(each => each.trigger),
  )
  return warnings.length === 0 ? {} : { warnings }
}
