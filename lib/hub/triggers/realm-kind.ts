// What one kind of trigger does in the database of a hub in its own way.

import type { Firing } from '../../firing/trigger.ts'
import type { CatchUp } from '../../triggers/schedule/spec.ts'
import type { StartedBy } from '../../wire/records/started-by.ts'
import type { Look } from './trigger-table.ts'

/** All are called in the transaction that changes the trigger. */
export interface RealmKind<Own = unknown> {
  /** A look found it due. `quota`: why the realm may have no more runs now. */
  judge?(look: Look<Own>, quota: string | null): Promise<void>
  /** The cursor is about to become now. */
  beforeNow?(look: Look<Own>): Promise<void>
  /** A person ended its pause, and the cursor is what it was before. */
  resumed?(look: Look<Own>, catchUp: CatchUp): Promise<void>
  /** What was due up to `at` may have been started by a hub whose commits were lost. The cursor becomes `at`. */
  passedOver?(look: Look<Own>, at: number, detail: string): Promise<void>
  /** The occasion of a run by what started it; null where that is of another kind. */
  recalled?(by: StartedBy): Pick<Firing, 'occasion' | 'at' | 'late_ms' | 'variables'> | null
  /** An occasion at `at` had started: it leaves the row of those that were passed over. */
  withdraw?(look: Pick<Look<Own>, 'hub' | 'tx' | 'trigger'>, at: number): Promise<void>
}
