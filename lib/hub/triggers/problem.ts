// Whether a trigger is broken: it cannot do what it says, because of its team, its owner, or because nothing knows its slots.
// It starts nothing then, and is mended by the first look that finds the problem gone.

import { messageOf } from '../../error.ts'
import type { Firing } from '../../firing/trigger.ts'
import { record } from '../access/audit.ts'
import { tellOfProblem } from './messages.ts'
import { type Look, setCursor, setProblem } from './trigger-table.ts'

export const ownerText = (owner: string): string => `${owner}, who owns it, may not start runs in the realm any more`

/** How much later a trigger is looked at again whose slots nothing knows. */
const PAUSE_MS = 60_000

/** Notes what a firing says of its trigger. */
export async function noteWhatItSays(look: Look, { state, reason, detail }: Firing): Promise<void> {
  if (reason === 'team' || reason === 'owner') await breakTrigger(look, reason, detail!)
  else if (state === 'started' && look.trigger.problem) {
    await setProblem(look.hub.store, look.tx, look.trigger.id, null)
  }
}

/** Nothing knows its slots: its zone, or a rule that a fault makes useless. */
export async function noteSlots(look: Look, error: unknown): Promise<void> {
  const { hub, tx, trigger, now } = look
  await breakTrigger(look, 'internal', messageOf(error))
  await setCursor(hub.store, tx, trigger.id, trigger.cursor, now + PAUSE_MS)
}

/** Says so once. */
export async function breakTrigger(look: Look, reason: string, text: string): Promise<void> {
  const { hub, tx, trigger, realm, now } = look
  if (trigger.problem?.reason === reason) return
  const problem = { reason, text, since: now }
  await setProblem(hub.store, tx, trigger.id, problem)
  trigger.problem = problem
  await tellOfProblem(look, problem)
  const target = `${trigger.name}: ${reason}`
  await record(hub, tx, null, { action: 'triggers/broken', target, org_id: realm.org_id, realm_id: realm.id })
  hub.log.error('a trigger is broken', { realm: realm.slug, trigger: trigger.name, reason, problem: text })
}
