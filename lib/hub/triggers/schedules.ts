// Schedules of a realm: what becomes of slots that are due.

import { mustFitOverlap, pausedText } from '../../firing/changes.ts'
import { missedText, occasionOf, shortened, skippedSlots, variablesOf, withoutKnown } from '../../firing/slot-rows.ts'
import { type Due, due, nextAt, passedOver } from '../../triggers/schedule/due.ts'
import type { ScheduleSpec } from '../../triggers/schedule/spec.ts'
import { record } from '../access/audit.ts'
import { fire } from './fire.ts'
import { deleteFiring, firingOf, insertFiring, passedOverRow, settleFiring } from './firing-table.ts'
import { tellOfFiring } from './messages.ts'
import { noteSlots } from './problem.ts'
import type { RealmKind } from './realm-kind.ts'
import { forgetAfter, recordSkipped } from './slot-rows.ts'
import { type Look, setCursor, setProblem } from './trigger-table.ts'

type Schedule = Look<ScheduleSpec>

export const schedules: RealmKind<ScheduleSpec> = {
  async judge(look, allowance) {
    const { hub, tx, trigger, now } = look
    const { store } = hub
    const { id, spec } = trigger
    let judged: Due
    let next: number | null
    try {
      judged = due(spec.own, trigger.cursor, now, id)
      next = nextAt(spec.own, judged.cursor, id)
    } catch (error) {
      return noteSlots(look, error)
    }
    if (trigger.problem?.reason === 'internal') {
      await setProblem(store, tx, id, null)
      return setCursor(store, tx, id, now, nextAt(spec.own, now, id))
    }
    const { cursor, clock_behind, missed, starts } = judged
    if (clock_behind) await goBack(look)
    const skipped = { reason: 'missed', detail: missedText(missed?.count ?? 0), now } as const
    const row = await recordSkipped(store, tx, trigger, missed, skipped)
    if (row) await tellOfFiring(look, row)
    for (const { slot: at, late_ms, catch_up: isLater } of starts) {
      const occasion = occasionOf(at)
      // A slot that started before the clock was put back starts nothing, and has its row.
      if (await firingOf(store, tx, id, occasion)) continue
      await fire(look, { occasion, at, late_ms, manual: null, variables: variablesOf(at, now), isLater }, { allowance })
    }
    await setCursor(store, tx, id, cursor, next)
  },

  async beforeNow({ hub, tx, trigger, now }) {
    // The clock was ahead when slots were last looked at, and has been put back.
    if (now < trigger.cursor) await forgetAfter(hub.store, tx, trigger, now)
  },

  /** What was due meanwhile becomes one row, unless it is caught up. */
  async resumed(look, catchUp) {
    const { hub, tx, trigger, now } = look
    const { store } = hub
    const { id, spec, cursor } = trigger
    mustFitOverlap(catchUp, spec)
    if (catchUp === 'none') {
      const { row } = passedOver(spec.own, cursor, now, id)
      await recordSkipped(store, tx, trigger, row, { reason: 'paused', detail: pausedText(trigger), now })
      return
    }
    // They wait for the next look, which judges them like slots that are due then.
    const judged = due({ ...spec.own, catch_up: catchUp }, cursor, now, id)
    const detail = 'it was due while the trigger was paused'
    await recordSkipped(store, tx, trigger, judged.missed, { reason: 'missed', detail, now })
    for (const { slot, late_ms } of judged.starts) await keepForLater(look, slot, late_ms)
  },

  async passedOver({ hub, tx, trigger, now }, at, detail) {
    const { row } = passedOver(trigger.spec.own, trigger.cursor, at, trigger.id)
    await recordSkipped(hub.store, tx, trigger, row, { reason: 'copy', detail, now })
  },

  recalled(by) {
    if (by.kind !== 'schedule') return null
    const at = Date.parse(by.slot)
    if (Number.isNaN(at)) return null
    return { occasion: occasionOf(at), at, late_ms: by.late_ms, variables: variablesOf(at, at + by.late_ms) }
  },

  async withdraw({ hub, tx, trigger }, slot) {
    const { store } = hub
    const row = await passedOverRow(store, tx, trigger.id, slot)
    if (!row) return
    const { at, until, count } = row
    if (count === 1) return deleteFiring(store, tx, row.id)
    const rest = withoutKnown(trigger.spec.own, { at, until: until ?? at, count }, [slot])
    if (!rest) return deleteFiring(store, tx, row.id)
    const left = { ...row, occasion: occasionOf(rest.at), at: rest.at, ...shortened(rest, 0) }
    await settleFiring(store, tx, left, row.state)
  },
}

/** The clock was ahead when the trigger was last looked at. */
async function goBack({ hub, tx, trigger, realm, now }: Schedule): Promise<void> {
  hub.log.warn('the clock is behind the last slot of a schedule', { realm: realm.slug, trigger: trigger.name })
  await forgetAfter(hub.store, tx, trigger, now)
  const entry = { action: 'triggers/clock', target: trigger.name, org_id: realm.org_id, realm_id: realm.id }
  await record(hub, tx, null, entry)
}

async function keepForLater({ hub, tx, trigger, now }: Schedule, slot: number, late_ms: number): Promise<void> {
  if (await firingOf(hub.store, tx, trigger.id, occasionOf(slot))) return
  const skipped = { reason: 'paused', detail: 'it is caught up after a pause', now } as const
  const kept = skippedSlots(trigger, { at: slot, until: slot, count: 1 }, skipped)
  await insertFiring(hub.store, tx, { ...kept, state: 'waiting', late_ms })
}
