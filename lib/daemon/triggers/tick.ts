// Looks at the schedules of a home that are due, and at firings whose turn has come. A serving daemon calls it every
// second; no timer is the truth, so that a sleep, a kill or a step of the clock loses nothing.

import { CadreError, messageOf } from '../../error.ts'
import { isFilled } from '../../firing/backfill.ts'
import { Changed } from '../../firing/changes.ts'
import { missedText, occasionOf, type Schedule, variablesOf } from '../../firing/slot-rows.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import { type Due, due, nextAt } from '../../triggers/schedule/due.ts'
import type { Daemon } from '../runs/daemon.ts'
import type { Home } from './at-home.ts'
import { lookAtFile } from './declared-at-home.ts'
import { fire, type Occasion } from './fire.ts'
import { atHome } from './kinds-at-home.ts'
import type { GetsOn } from './lanes.ts'
import { isLate, noteInTime, noteLate, noteSlots } from './problem.ts'
import { forgetAfter, recordSkipped } from './slot-rows.ts'
import type { Tables } from './tables.ts'
import type { Triggers } from './triggers.ts'

/** How many triggers are looked at at once: those of one minute share commits, because each commit waits for the disk. */
const TOGETHER = 20
/** How many firings of a trigger that wait are judged in one look. */
const MOST_JUDGED = 50

/** What a look has to do for a trigger, in this order. */
interface Work {
  waits?: boolean
  file?: Trigger
  due?: Schedule
}

/**
 * One look. Nothing that one trigger fails with or waits for keeps the others from their turn: what takes too long goes on
 * by itself.
 */
export async function tick(daemon: Daemon, triggers: Triggers): Promise<void> {
  const { tables } = triggers
  // Nothing can be recorded, which the engine has said, or the daemon drains. Slots stay due meanwhile.
  if (daemon.halted !== null) return
  const all = new Map<string, Work>()
  const add = (id: string, work: Work) => void all.set(id, { ...all.get(id), ...work })
  for (const id of tables.firings.triggersThatWait()) add(id, { waits: true })
  if (triggers.filesAreDue()) for (const file of tables.triggers.fromFolders()) add(file.id, { file })
  for (const due of tables.triggers.due(tables.now())) add(due.id, { due })
  if (all.size === 0) return
  const left = [...all]
  const next = async () => {
    for (let one = left.shift(); one; one = left.shift()) {
      const [id, work] = one
      await inLane(daemon, triggers, id, (trigger, getsOn) => lookAt(daemon, triggers, trigger, work, getsOn))
    }
  }
  await Promise.all(Array.from({ length: Math.min(TOGETHER, left.length) }, next))
}

/** Does `work` for a trigger, unless something else is done for it. What takes too long goes on by itself, and is said. */
export async function inLane(
  daemon: Daemon,
  triggers: Triggers,
  id: string,
  work: (trigger: Trigger, getsOn: GetsOn) => Promise<void>,
): Promise<void> {
  const { tables, lanes } = triggers
  const inTime = async (trigger: Trigger, getsOn: GetsOn) => {
    try {
      await work(trigger, getsOn)
    } finally {
      if (isLate(tables.triggers.get(trigger.id))) {
        await daemon.engine.commit(() => noteInTime(tables.triggers, trigger))
      }
    }
  }
  await lanes.take(
    id,
    getsOn => alone(daemon, tables, id, trigger => inTime(trigger, getsOn)),
    () => alone(daemon, tables, id, trigger => sayLate(triggers, daemon, trigger)),
  )
}

async function alone(
  { log }: Daemon,
  { triggers }: Tables,
  id: string,
  work: (trigger: Trigger) => Promise<void>,
): Promise<void> {
  let name = id
  try {
    const trigger = triggers.get(id)
    if (!trigger) return
    name = trigger.name
    await work(trigger)
  } catch (error) {
    if (error instanceof Changed) return
    log.warn('a trigger could not be looked at', { trigger: name, error: messageOf(error) })
  }
}

async function lookAt(
  daemon: Daemon,
  triggers: Triggers,
  trigger: Trigger,
  { waits, file, due }: Work,
  getsOn: GetsOn,
): Promise<void> {
  const { tables } = triggers
  // A watch that is broken starts nothing: its folder is gone, or what it starts feeds it.
  const isHeld = trigger.kind === 'watch' && trigger.problem?.reason === 'internal' && !isLate(trigger)
  const mayStart = waits && trigger.enabled && !trigger.paused && !isHeld
  // What waits comes before what is due, so that it is not overtaken.
  if (mayStart && !(await startWaiting(daemon, tables, trigger, getsOn))) return
  if (file) await lookAtFile(daemon, tables, file)
  getsOn()
  if (due) await judge(daemon, triggers, due, getsOn)
}

/** Its lane is taken for too long. Without a disk that takes writes that is no fault of its own. */
async function sayLate({ lanes, tables }: Triggers, daemon: Daemon, trigger: Trigger): Promise<void> {
  if (daemon.halted !== null) return
  await daemon.engine.commit(() => {
    if (lanes.isTaken(trigger.id)) noteLate(daemon, tables.triggers, trigger, tables.now())
  })
}

/** Decides about the slots that are due. */
async function judge(daemon: Daemon, { tables }: Triggers, trigger: Schedule, getsOn: GetsOn): Promise<void> {
  const { own: schedule } = trigger.spec
  const { triggers, firings } = tables
  const now = tables.now()
  const write = (change: () => void) =>
    daemon.engine.commit(() => {
      mustBeAsItWas(triggers.get(trigger.id), trigger)
      change()
    })
  let judged: Due
  let next: number | null
  try {
    judged = due(schedule, trigger.cursor, now, trigger.id)
    next = nextAt(schedule, judged.cursor, trigger.id)
  } catch (error) {
    await write(() => noteSlots(daemon, triggers, trigger, error, now))
    return
  }
  if (trigger.problem?.reason === 'internal') {
    await write(() => {
      triggers.setProblem(trigger.id, null)
      triggers.setCursor(trigger.id, now, nextAt(schedule, now, trigger.id))
    })
    return
  }
  const { cursor, clock_behind, missed, starts } = judged
  const proceed = () => triggers.setCursor(trigger.id, cursor, next)
  if (clock_behind) {
    daemon.log.warn('the clock is behind the last slot of a schedule', { trigger: trigger.name })
    await write(() => {
      forgetAfter(firings, trigger, now)
      daemon.audit.write({ actor: 'system', action: 'triggers/clock', target: trigger.name })
      proceed()
    })
    return
  }
  const recordMissed = () => {
    recordSkipped(firings, trigger, missed, { reason: 'missed', detail: missedText(missed?.count ?? 0), now })
  }
  // A slot that started before the clock was put back starts nothing, and has its row.
  const open = starts.filter(({ slot }) => !firings.of(trigger.id, occasionOf(slot)))
  if (open.length === 0) {
    await write(() => {
      recordMissed()
      proceed()
    })
    return
  }
  let seen = trigger
  for (const [index, { slot, late_ms, catch_up }] of open.entries()) {
    const occasion: Occasion = {
      ...{ occasion: occasionOf(slot), at: slot, late_ms, manual: null, variables: variablesOf(slot, now) },
      isLater: catch_up,
    }
    // Each start takes the cursor to its slot, so that what is left after a kill is judged as a whole.
    const reached = index === open.length - 1 ? cursor : now - late_ms
    const also = () => {
      if (index === 0) recordMissed()
      triggers.setCursor(trigger.id, reached, nextAt(schedule, reached, trigger.id))
    }
    const firing = await fire(daemon, tables, seen, occasion, { also })
    getsOn()
    seen = { ...seen, cursor: reached }
    if (firing.state === 'waiting') await cancelBefore(daemon, tables, trigger, firing)
  }
}

/** `cancel_running`: the runs before a firing that waits are asked to end, each once, because a second ask is harder. */
async function cancelBefore(
  { engine, log }: Daemon,
  { firings }: Triggers['tables'],
  { id, spec }: Trigger,
  { reason, manual }: Firing,
): Promise<void> {
  if (spec.overlap !== 'cancel_running' || reason !== 'overlap' || isFilled({ manual })) return
  for (const run of firings.openRuns(id)) {
    if (run.is_ending) continue
    await engine.cancel(run.id).catch(error => {
      if (!(error instanceof CadreError) || error.code !== 'invalid_state') throw error
      log.debug('a run had ended before it was cancelled', { run: run.id })
    })
  }
}

/**
 * Starts what waits, the oldest first, until one has to go on waiting; what nobody has judged before is judged all the same,
 * because it may have to give way. Returns false when the next look has to go on, because that many were judged.
 */
async function startWaiting(daemon: Daemon, tables: Tables, trigger: Trigger, getsOn: GetsOn): Promise<boolean> {
  const { firings } = tables
  const isHeld = async (known: Firing): Promise<boolean> => {
    const firing = await fire(daemon, tables, trigger, occasionAgain({ daemon, tables }, trigger, known), { known })
    getsOn()
    if (firing.state !== 'waiting') return false
    await cancelBefore(daemon, tables, trigger, firing)
    return true
  }
  for (let left = MOST_JUDGED; left > 0; left--) {
    const [first] = firings.waiting(trigger.id, 1)
    if (!first) return true
    if (!(await isHeld(first))) continue
    const behind = firings.unjudged(trigger.id, left)
    for (const known of behind) await isHeld(known)
    return behind.length < left
  }
  return false
}

/** A firing that waited, as it starts now. */
function occasionAgain(home: Home, trigger: Trigger, known: Firing): Occasion {
  const { occasion, at, late_ms, seen_at, manual, variables } = known
  // It was late by then already, or due with a delay of its own.
  const late = (late_ms ?? 0) + Math.max(0, home.tables.now() - seen_at)
  const more = () => atHome(trigger).recalled?.(home, trigger, known) ?? {}
  return { occasion, at, late_ms: late, manual, variables, isLater: true, more }
}

function mustBeAsItWas(now: Trigger | null, { revision, cursor }: Trigger): void {
  if (!now || now.revision !== revision || now.cursor !== cursor) throw new Changed('the trigger has changed')
}
