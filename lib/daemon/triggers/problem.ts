// Whether a trigger is broken: it cannot do what it says, because of its team or because nothing knows its slots. It starts
// nothing then, and is mended by the next look that finds the problem gone. The accounts of the home are told of that once,
// and of each other occasion that was refused.

import { formatDuration } from '../../duration.ts'
import { messageOf } from '../../error.ts'
import { brokenText, isTold, refusedText } from '../../firing/news.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import type { Daemon } from '../runs/daemon.ts'
import type { TriggerTable } from './trigger-table.ts'

/**
 * Notes what a firing says of its trigger. Called in the transaction of the firing. `heard`: somebody waits for it and hears
 * that it was refused.
 */
export function noteFiring(
  daemon: Daemon,
  triggers: TriggerTable,
  trigger: Trigger,
  firing: Firing,
  { now, heard }: { now: number; heard: boolean },
): void {
  const { id, state, reason, detail } = firing
  if (reason === 'team') return setProblem(daemon, triggers, trigger, { reason, text: detail!, since: now })
  if (triggers.get(trigger.id)!.problem) triggers.setProblem(trigger.id, null)
  if (heard || !isTold(firing)) return
  tell(daemon, trigger, { id, state, reason, text: refusedText(trigger, firing) })
}

/** Notes what a look at the file of its team says of it. Null: that it says what was enabled. */
export function noteFile(daemon: Daemon, triggers: TriggerTable, trigger: Trigger, text: string | null, now: number) {
  if (text !== null) setProblem(daemon, triggers, trigger, { reason: 'team', text, since: now })
  else triggers.setProblem(trigger.id, null)
}

function tell(
  { tells }: Daemon,
  { id: subject, name, spec: { team } }: Trigger,
  { text, ...about }: { id: string; state: string; reason: string | null; text: string },
): void {
  tells.record({ subject, team, text, about: { ...about, name } })
}

/** Nothing knows its slots: its zone, or a rule that a fault makes useless. The next look is a minute later. */
export function noteSlots(daemon: Daemon, triggers: TriggerTable, trigger: Trigger, error: unknown, now: number): void {
  setProblem(daemon, triggers, trigger, { reason: 'internal', text: messageOf(error), since: now })
  triggers.setCursor(trigger.id, trigger.cursor, now + PAUSE_MS)
}

/**
 * Nothing can be checked that comes to a hook, or nothing can be seen of a folder. What comes next and can be judged mends
 * it.
 */
export function noteProblem(daemon: Daemon, triggers: TriggerTable, trigger: Trigger, text: string, now: number): void {
  setProblem(daemon, triggers, trigger, { reason: 'internal', text, since: now })
}

/** Its team is not there yet after the time that a look may take. It is mended when the team comes after all. */
export function noteLate(daemon: Daemon, triggers: TriggerTable, trigger: Trigger, now: number): void {
  setProblem(daemon, triggers, trigger, { reason: 'internal', text: LATE, since: now })
}

export const isLate = (trigger: Trigger | null): boolean => trigger?.problem?.text === LATE

export function noteInTime(triggers: TriggerTable, { id }: Trigger): void {
  if (isLate(triggers.get(id))) triggers.setProblem(id, null)
}

/** How long a look may wait for one team. */
export const LOOK_MS = 10_000
const LATE = `its team could not be read and made ready within ${formatDuration(LOOK_MS)}`
const PAUSE_MS = 60_000

/** Says so once. */
function setProblem(
  daemon: Daemon,
  triggers: TriggerTable,
  trigger: Trigger,
  problem: NonNullable<Trigger['problem']>,
): void {
  const { audit, log } = daemon
  const { id, name } = trigger
  const known = triggers.get(id)!.problem
  if (known?.reason === problem.reason) {
    // It is told once, and shown as it is now.
    if (known.text !== problem.text) triggers.setProblem(id, { ...problem, since: known.since })
    return
  }
  triggers.setProblem(id, problem)
  audit.write({ actor: 'system', action: 'triggers/broken', target: `${name}: ${problem.reason}` })
  log.error('a trigger is broken', { trigger: name, reason: problem.reason, problem: problem.text })
  tell(daemon, trigger, { id, state: 'broken', reason: problem.reason, text: brokenText(trigger, problem) })
}
