// Whether a trigger is broken: it cannot do what it says, because of its team or because nothing knows its slots. It starts
// nothing then, and is mended by the next look that finds the problem gone.

import { messageOf } from '../../error.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import type { Daemon } from '../runs/daemon.ts'
import type { TriggerTable } from './trigger-table.ts'

/** Notes what a firing says of its trigger. Called in the transaction of the firing. */
export function noteTeam(
  daemon: Daemon,
  triggers: TriggerTable,
  trigger: Trigger,
  { reason, detail }: Firing,
  now: number,
) {
  if (reason === 'team') setProblem(daemon, triggers, trigger, { reason, text: detail!, since: now })
  else if (triggers.get(trigger.id)!.problem) triggers.setProblem(trigger.id, null)
}

/** Nothing knows its slots: its zone, or a rule that a fault makes useless. The next look is a minute later. */
export function noteSlots(daemon: Daemon, triggers: TriggerTable, trigger: Trigger, error: unknown, now: number): void {
  setProblem(daemon, triggers, trigger, { reason: 'internal', text: messageOf(error), since: now })
  triggers.setCursor(trigger.id, trigger.cursor, now + PAUSE_MS)
}

const PAUSE_MS = 60_000

/** Says so once. */
function setProblem(
  { audit, log }: Daemon,
  triggers: TriggerTable,
  { id, name }: Trigger,
  problem: NonNullable<Trigger['problem']>,
): void {
  if (triggers.get(id)!.problem?.reason === problem.reason) return
  triggers.setProblem(id, problem)
  audit.write({ actor: 'system', action: 'triggers/broken', target: `${name}: ${problem.reason}` })
  log.error('a trigger is broken', { trigger: name, reason: problem.reason, problem: problem.text })
}
