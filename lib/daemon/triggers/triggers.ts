// The triggers of a home: people add, change, pause and remove them, and see what they did and will do.

import { CadreError } from '../../error.ts'
import {
  isSameRule,
  mustBeAt,
  mustBeRefirable,
  mustFitOverlap,
  pausedText,
  removed,
  scheduleWith,
  variablesAgain,
} from '../../firing/changes.ts'
import { specOf, type TriggerFields } from '../../firing/check-trigger.ts'
import { firingRecord, type Which } from '../../firing/shown.ts'
import { occasionOf, skippedSlots, starterOf, variablesOf } from '../../firing/slot-rows.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import { due, nextAt, passedOver } from '../../triggers/schedule/due.ts'
import type { ScheduleSpec } from '../../triggers/schedule/spec.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import type { FiringRecord, TriggerRecord } from '../../wire/records/triggers.ts'
import type { Daemon } from '../runs/daemon.ts'
import { loadTeam } from '../runs/start-run.ts'
import { Changed, fire, type Occasion, whichTeam } from './fire.ts'
import { forgetAfter, recordSkipped } from './slot-rows.ts'
import { TriggerView, zoneHere } from './trigger-view.ts'

/** Schedules of one home. */
const MOST_SCHEDULES = 200
const MAY_HAVE_STARTED = 'it was due before this home was found to be a copy, and the other home may have started it'

export class Triggers extends TriggerView {
  readonly #daemon: Daemon

  /** `now`: the wall clock. */
  constructor(daemon: Daemon, now: () => number = Date.now) {
    super(daemon.db, now)
    this.#daemon = daemon
  }

  async add({ name, kind, ...fields }: TriggerFields & { name: string; kind: TriggerKind }, actor: string) {
    const now = this.tables.now()
    const spec = await this.#specOf(fields, now)
    const id = Bun.randomUUIDv7()
    const trigger: Trigger = {
      ...{ id, name, kind, spec, revision: 1, source: 'manual', enabled: true, paused: null, problem: null },
      ...{ cursor: now, next_at: nextAt(spec.schedule, now, id), created_at: now, created_by: actor },
    }
    return this.#change(actor, 'triggers/add', () => {
      const { triggers } = this.tables
      if (triggers.byName(name))
        throw new CadreError('conflict', `there is a trigger ${name} already: choose another name`)
      if (triggers.list({ kind, limit: 1, offset: 0 }).total >= MOST_SCHEDULES) {
        throw new CadreError('conflict', `a home has at most ${MOST_SCHEDULES} schedules: remove one first`)
      }
      triggers.insert(trigger)
      return trigger
    })
  }

  /** Changes what is given. A new rule is looked at from now on; other changes leave alone what is due. */
  async update(
    which: Which,
    given: Partial<TriggerFields> & { name?: string },
    revision: number | undefined,
    actor: string,
  ) {
    const was = this.find(which)
    const now = this.tables.now()
    const { schedule, ...more } = was.spec
    const { name = was.name, ...changes } = given
    const spec = await this.#specOf({ ...more, ...scheduleWith(schedule, changes), ...changes }, now)
    return this.#change(actor, 'triggers/update', () => {
      const trigger = this.find(which)
      mustBeAt(trigger, revision ?? was.revision)
      const other = this.tables.triggers.byName(name)
      if (other && other.id !== trigger.id) throw new CadreError('conflict', `there is a trigger ${name} already`)
      const changed = { ...trigger, name, spec, revision: trigger.revision + 1, problem: null }
      return this.#put(isSameRule(spec, trigger.spec) ? changed : this.#fromNow(changed, now))
    })
  }

  remove(which: Which, actor: string): TriggerRecord {
    return this.#change(actor, 'triggers/remove', () => {
      const trigger = this.find(which)
      const { triggers, firings } = this.tables
      for (const firing of firings.waiting(trigger.id)) firings.settle(removed(firing))
      triggers.remove(trigger.id, this.tables.now())
      return { ...trigger, enabled: false, next_at: null }
    })
  }

  enable(which: Which, actor: string): TriggerRecord {
    return this.#change(actor, 'triggers/enable', () => {
      const trigger = this.find(which)
      if (trigger.enabled) return trigger
      const enabled = { ...trigger, enabled: true, revision: trigger.revision + 1 }
      return this.#put(this.#fromNow(enabled, this.tables.now()))
    })
  }

  disable(which: Which, actor: string): TriggerRecord {
    return this.#change(actor, 'triggers/disable', () => {
      const trigger = this.find(which)
      return trigger.enabled ? this.#put({ ...trigger, enabled: false, revision: trigger.revision + 1 }) : trigger
    })
  }

  pause(which: Which, reason: string | null, actor: string): TriggerRecord {
    return this.#change(actor, 'triggers/pause', () => {
      const trigger = this.find(which)
      if (trigger.paused) return trigger
      const paused = { since: this.tables.now(), by: actor, reason }
      return this.#put({ ...trigger, paused, revision: trigger.revision + 1 })
    })
  }

  /** Goes on from now. What was due meanwhile becomes one row, unless it is caught up. */
  resume(which: Which, catchUp: ScheduleSpec['catch_up'], actor: string): TriggerRecord {
    return this.#change(actor, 'triggers/resume', () => {
      const trigger = this.find(which)
      if (!trigger.paused) return trigger
      const { schedule } = trigger.spec
      mustFitOverlap(catchUp, trigger.spec)
      const now = this.tables.now()
      const { firings } = this.tables
      const active = this.#passOverCopied({ ...trigger, paused: null, revision: trigger.revision + 1 }, now)
      if (catchUp !== 'none') {
        // They wait for the next look, which judges them like slots that are due then.
        const judged = due({ ...schedule, catch_up: catchUp }, active.cursor, now, trigger.id)
        const detail = 'it was due while the trigger was paused'
        recordSkipped(firings, active, judged.missed, { reason: 'missed', detail, now })
        for (const { slot, late_ms } of judged.starts) this.#keepForLater(active, slot, late_ms)
      } else {
        const { row } = passedOver(schedule, active.cursor, now, trigger.id)
        recordSkipped(firings, active, row, { reason: 'paused', detail: pausedText(trigger), now })
      }
      return this.#put(this.#fromNow(active, now))
    })
  }

  /** Starts a run now, as an occasion of its own. */
  async runNow(which: Which, { force, by }: { force: boolean; by: string }): Promise<FiringRecord> {
    const trigger = this.find(which)
    const now = this.tables.now()
    const manual = { by }
    const occasion: Occasion = {
      ...{ occasion: `now:${crypto.randomUUID()}`, at: now, late_ms: 0, manual, force },
      variables: variablesOf(now, now),
      startedBy: firing => starterOf(trigger, firing, { slot: now, late_ms: 0, catch_up: false }, manual),
    }
    const audited = () => this.#daemon.audit.write({ actor: by, action: 'triggers/run_now', target: trigger.name })
    return firingRecord(await this.#fired(trigger, occasion, audited), trigger.name)
  }

  /** The same occasion again, as another firing. */
  async refire(firingId: string, { again, by }: { again: boolean; by: string }): Promise<FiringRecord> {
    const { firings, triggers } = this.tables
    const firing = firings.get(firingId)
    const trigger = firing && triggers.get(firing.trigger_id)
    if (!trigger) throw new CadreError('not_found', `there is no firing ${firingId} of a trigger that is here`)
    mustBeRefirable(firing, again, MAY_HAVE_STARTED)
    const manual = { by }
    const [first] = firing.occasion.split('#')
    let number = 2
    while (firings.of(trigger.id, `${first}#${number}`)) number++
    const { at } = firing
    const now = this.tables.now()
    const late = { late_ms: now - at, manual }
    const occasion: Occasion = {
      ...{ occasion: `${first}#${number}`, at, ...late },
      variables: variablesAgain(firing, now),
      startedBy: id => starterOf(trigger, id, { slot: at, late_ms: now - at, catch_up: true }, manual),
    }
    const audited = () => this.#daemon.audit.write({ actor: by, action: 'triggers/refire', target: trigger.name })
    return firingRecord(await this.#fired(trigger, occasion, audited), trigger.name)
  }

  /** Asks once more where the trigger changed in between. */
  async #fired(trigger: Trigger, occasion: Occasion, also: () => void): Promise<Firing> {
    try {
      return await fire(this.#daemon, this.tables, trigger, occasion, { also })
    } catch (error) {
      if (!(error instanceof Changed)) throw error
      return fire(this.#daemon, this.tables, this.find({ trigger_id: trigger.id }), occasion, { also })
    }
  }

  async #specOf(fields: TriggerFields, now: number) {
    const bundle = await loadTeam(this.#daemon, whichTeam(fields.team))
    return specOf(fields, bundle.team(bundle.root).inputs, { tz: zoneHere(), now })
  }

  /** With the next time at which it is due. */
  #put(trigger: Trigger): Trigger {
    const isLive = trigger.enabled && !trigger.paused
    const next_at = isLive ? nextAt(trigger.spec.schedule, trigger.cursor, trigger.id) : null
    const put = { ...trigger, next_at }
    this.tables.triggers.update(put)
    return put
  }

  /** What was due before this home was found to be a copy is left to the home that it was made from. */
  #passOverCopied(trigger: Trigger, now: number): Trigger {
    const found = this.#daemon.copied?.at ?? 0
    const { firings } = this.tables
    const isOld = { reason: 'copy', detail: MAY_HAVE_STARTED, now } as const
    for (const firing of firings.waiting(trigger.id)) {
      if (firing.seen_at <= found) firings.settle({ ...firing, ...isOld, state: 'skipped' })
    }
    if (found <= trigger.cursor || found > now) return trigger
    recordSkipped(firings, trigger, passedOver(trigger.spec.schedule, trigger.cursor, found, trigger.id).row, isOld)
    return { ...trigger, cursor: found }
  }

  /** Slots are looked at from now on. A clock that was ahead when they last were has been put back. */
  #fromNow(trigger: Trigger, now: number): Trigger {
    if (now < trigger.cursor) forgetAfter(this.tables.firings, trigger, now)
    return { ...trigger, cursor: now }
  }

  #keepForLater(trigger: Trigger, slot: number, lateMs: number): void {
    const { firings } = this.tables
    if (firings.of(trigger.id, occasionOf(slot))) return
    const row = { at: slot, until: slot, count: 1 }
    const skipped = { reason: 'paused', detail: 'it is caught up after a pause', now: this.tables.now() } as const
    const kept = skippedSlots(trigger, row, skipped)
    firings.insert({ ...kept, state: 'waiting', late_ms: lateMs })
  }

  #change(actor: string, action: string, work: () => Trigger): TriggerRecord {
    return this.record(this.#daemon.audit.during(actor, action, work, ({ name, spec }) => `${name}: ${spec.team}`))
  }
}
