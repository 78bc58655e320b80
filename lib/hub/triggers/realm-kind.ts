// What one kind of trigger does in the database of a hub in its own way.

import type { Db } from '../../../db/hub/store.ts'
import type { Halt } from '../../firing/halt.ts'
import type { Secrets } from '../../firing/hook-secrets.ts'
import type { Firing } from '../../firing/trigger.ts'
import type { JsonObject } from '../../json.ts'
import type { Redactor } from '../../secrets/redact.ts'
import type { CatchUp } from '../../triggers/schedule/spec.ts'
import type { StartedBy } from '../../wire/records/started-by.ts'
import type { TriggerRecord } from '../../wire/records/triggers.ts'
import type { Hub } from '../core/hub.ts'
import type { Allowance } from './fire.ts'
import type { Look, RealmTrigger } from './trigger-table.ts'

/** Those with a look are called in its transaction. */
export interface RealmKind<Own = unknown> {
  /** Called before the trigger is added, changed or enabled. Throws `conflict`. */
  mayBeEnabled?(look: Look<Own>): Promise<void>
  added?(look: Look<Own>, secrets: Secrets): Promise<void>
  updated?(look: Look<Own>, secrets: Secrets): Promise<void>
  /** It is known what became of a firing that waited. */
  settled?(look: Look<Own>, firing: Firing): Promise<void>
  /** What expressions see of a firing beside what it has. Throws `invalid_state` when that is not there. */
  values?(look: Look<Own>, firing: Firing): Promise<JsonObject>
  /** What the firing has where a person starts a run now. Throws `invalid_state` when there is nothing. */
  newest?(look: Look<Own>): Promise<JsonObject>
  /** Why an occasion starts nothing, whatever the trigger says of it. `variables`: all that expressions see. */
  forbids?(look: Look<Own>, variables: JsonObject): Promise<Halt | null>
  /** What masks its secrets in what is shown and stored of its firings. */
  mask?(hub: Hub, db: Db, trigger: Pick<RealmTrigger<Own>, 'id'>): Promise<Redactor['json']>
  /** What its record has beside the spec. */
  shown?(hub: Hub, db: Db, trigger: RealmTrigger<Own>): Promise<Partial<TriggerRecord>>
  /** A look found it due. */
  judge?(look: Look<Own>, allowance: Allowance): Promise<void>
  /** The cursor is about to become now. */
  beforeNow?(look: Look<Own>): Promise<void>
  /** A person ended its pause, and the cursor is what it was before. */
  resumed?(look: Look<Own>, catchUp: CatchUp): Promise<void>
  /** What was due up to `at` may have been started by a hub whose commits were lost. The cursor becomes `at`. */
  passedOver?(look: Look<Own>, at: number, detail: string): Promise<void>
  /** The occasion of a run by what started it, and when; null where that is of another kind. */
  recalled?(by: StartedBy, startedAt: number): Pick<Firing, 'occasion' | 'at' | 'late_ms' | 'variables'> | null
  /** An occasion at `at` had started: it leaves the row of those that were passed over. */
  withdraw?(look: Pick<Look<Own>, 'hub' | 'tx' | 'trigger'>, at: number): Promise<void>
}
