// The triggers of a home: people add, change, pause and remove them, and see what they did and will do.

import { CadreError } from '../../error.ts'
import {
  type Backfill,
  backfillRecord,
  filled,
  mustStartThem,
  slotsToFill,
  slotsToStart,
} from '../../firing/backfill.ts'
import {
  Changed,
  ENDED_BY,
  mayMend,
  mustBeAt,
  mustBeRefirable,
  mustCatchUp,
  variablesAgain,
} from '../../firing/changes.ts'
import { specOf, type TriggerFields } from '../../firing/check-trigger.ts'
import { declaredBy, kept, mustBeOwn, mustFitFile, nameTaken } from '../../firing/declared.ts'
import { familyOf } from '../../firing/family.ts'
import type { Secrets } from '../../firing/hook-secrets.ts'
import { kindOf } from '../../firing/kinds.ts'
import { firingRecord, scheduleIn, type Which, withDelivery } from '../../firing/shown.ts'
import type { Schedule } from '../../firing/slot-rows.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import type { There } from '../../firing/watch-rows.ts'
import type { Field, Team } from '../../team/team.ts'
import type { CatchUp } from '../../triggers/schedule/spec.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import type { BackfillRecord, FiringRecord, TriggerRecord } from '../../wire/records/triggers.ts'
import type { Daemon } from '../runs/daemon.ts'
import { loadTeam } from '../runs/start-run.ts'
import { type Changes, type Home, MAY_HAVE_STARTED, whichTeam } from './at-home.ts'
import { FILES_EVERY_MS, teamProblem } from './declared-at-home.ts'
import { fire, type Occasion } from './fire.ts'
import { atHome } from './kinds-at-home.ts'
import { Lanes } from './lanes.ts'
import { LOOK_MS } from './problem.ts'
import { TriggerView, zoneHere } from './trigger-view.ts'
import { warningsOf } from './warnings.ts'

/** How often an occasion is judged anew because of what happened meanwhile. */
const MOST_TRIES = 10

export class Triggers extends TriggerView {
  readonly #daemon: Daemon
  readonly #home: Home
  /** What looks do for each trigger. */
  readonly lanes: Lanes
  /** When files were last looked at. */
  #filesAt = 0

  /** `now`: the wall clock. `lookMs`: how long a look may wait for one team. */
  constructor(daemon: Daemon, now: () => number = Date.now, lookMs = LOOK_MS) {
    super(daemon.db, now, () => daemon.address)
    this.lanes = new Lanes(lookMs)
    this.#daemon = daemon
    this.#home = { daemon, tables: this.tables }
  }

  /** Whether files were looked at long enough ago; they are from now on. */
  filesAreDue(): boolean {
    const now = this.tables.now()
    if (Math.abs(now - this.#filesAt) < FILES_EVERY_MS) return false
    this.#filesAt = now
    return true
  }

  async add(
    { name, kind, ...fields }: TriggerFields & Secrets & { name: string; kind: TriggerKind },
    actor: string,
    source: Trigger['source'] = 'manual',
  ) {
    mustBeName(name)
    const now = this.tables.now()
    const spec = await this.#specOf(kind, fields, { now, isNew: true })
    const added: Trigger = {
      ...{ id: Bun.randomUUIDv7(), name, kind, spec, revision: 1, source, enabled: true, paused: null },
      ...{ problem: null, cursor: now, next_at: null, created_at: now, created_by: actor },
    }
    await this.#mustBeAbleTo(added)
    const there = await this.#there(added)
    const { home: most = Infinity } = kindOf(added).most ?? {}
    return this.#started(actor, 'triggers/add', () => {
      const { triggers } = this.tables
      const other = triggers.byName(name)
      if (other) throw nameTaken('home', other, source)
      if (triggers.list({ kind, limit: 1, offset: 0 }).total >= most) {
        throw new CadreError('conflict', `a home has at most ${most} ${kind}s: remove one first`)
      }
      const trigger = { ...added, next_at: nextOf(added) }
      triggers.insert(trigger)
      atHome(trigger).added?.(this.#home, trigger, fields, there)
      return trigger
    })
  }

  /** Changes what is given. A new rule is looked at from now on; other changes leave alone what is due. */
  async update(which: Which, given: Changes, revision: number | undefined, actor: string) {
    const was = this.find(which)
    mustBeAt(was, revision ?? was.revision)
    const now = this.tables.now()
    const { own, ...more } = was.spec
    const { name = was.name, keep, ...changes } = given
    if (name !== was.name) mustBeName(name)
    mustBeOwn(was, Object.keys(changes))
    const source = keep === undefined ? was.source : kept(was, keep)
    const kind = kindOf(was)
    const fields = { ...more, ...changes, ...kind.changed(own, changes) }
    const isSpec = Object.keys(changes).length > 0
    const spec = isSpec ? await this.#specOf(was.kind, fields, { now, isNew: false }) : was.spec
    if (was.enabled && isSpec) await this.#mustBeAbleTo({ ...was, name, spec })
    const isSame = kind.isSameRule(spec.own, own)
    const there = isSame ? undefined : await this.#there({ ...was, spec })
    const isMended = mayMend(was.problem, changes, { isSame, keep }) && (await this.#isMended({ ...was, source, spec }))
    return this.#started(actor, 'triggers/update', () => {
      const trigger = this.find(which)
      mustBeAt(trigger, was.revision)
      const other = this.tables.triggers.byName(name)
      if (other && other.id !== trigger.id) throw nameTaken('home', other, 'manual')
      const changed = { ...trigger, source, name, spec, revision: trigger.revision + 1 }
      if (isMended && trigger.problem?.reason === was.problem?.reason) changed.problem = null
      atHome(trigger).updated?.(this.#home, changed, changes)
      return this.#put(isSame ? changed : this.#fromNow(changed, now, there))
    })
  }

  remove(which: Which, actor: string): TriggerRecord {
    return this.#change(actor, 'triggers/remove', () => {
      const trigger = this.find(which)
      const { triggers, firings } = this.tables
      firings.settleWaiting(trigger.id, ENDED_BY.remove)
      triggers.remove(trigger.id, this.tables.now())
      return { ...trigger, enabled: false, next_at: null }
    })
  }

  async enable(which: Which, actor: string): Promise<TriggerRecord> {
    const was = this.find(which)
    const { source, spec } = was
    if (source !== 'manual') return this.enableDeclared({ team: spec.team, name: source.name }, actor)
    if (!was.enabled) await this.#mustBeAbleTo(was)
    const there = was.enabled ? undefined : await this.#there(was)
    return this.#started(actor, 'triggers/enable', () => {
      const trigger = this.find(which)
      if (trigger.enabled) return trigger
      const enabled = { ...trigger, enabled: true, revision: trigger.revision + 1 }
      return this.#put(this.#fromNow(enabled, this.tables.now(), there))
    })
  }

  /** Enables what a team declares, as its file says it now. `secret`: of a hook that is new here. */
  async enableDeclared(
    { team, name, secret }: { team: string; name: string; secret?: string | undefined },
    actor: string,
  ): Promise<TriggerRecord> {
    const { kind, fields, source } = declaredBy(await this.#teamOf(team), name)
    const known = this.tables.triggers.declared(source, team)
    if (known) mustFitFile(known, kind, secret)
    if (!known) return this.add({ ...fields, ...(secret !== undefined && { secret }), name, kind, team }, actor, source)
    const now = this.tables.now()
    const spec = await this.#specOf(kind, { ...fields, team }, { now, isNew: false })
    await this.#mustBeAbleTo({ ...known, spec })
    const there = await this.#there({ ...known, spec })
    return this.#started(actor, 'triggers/enable', () => {
      const trigger = this.find({ trigger_id: known.id })
      const isSame = kindOf(trigger).isSameRule(spec.own, trigger.spec.own)
      // The team is there, and what it says is what is enabled.
      const problem = mayMend(trigger.problem, spec, { isSame }) ? null : trigger.problem
      const changed = { ...trigger, spec, source, enabled: true, problem, revision: trigger.revision + 1 }
      return this.#put(trigger.enabled && isSame ? changed : this.#fromNow(changed, now, there))
    })
  }

  disable(which: Which, actor: string): TriggerRecord {
    return this.#change(actor, 'triggers/disable', () => {
      const trigger = this.find(which)
      if (!trigger.enabled) return trigger
      this.tables.firings.settleWaiting(trigger.id, ENDED_BY.disable)
      return this.#put({ ...trigger, enabled: false, revision: trigger.revision + 1 })
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

  /** Goes on from now. */
  async resume(which: Which, catchUp: CatchUp, actor: string): Promise<TriggerRecord> {
    const was = this.find(which)
    mustCatchUp(was, catchUp)
    const there = atHome(was).there && was.paused ? await this.#there(was) : undefined
    return this.#change(actor, 'triggers/resume', () => {
      const trigger = this.find(which)
      if (!trigger.paused) return trigger
      const now = this.tables.now()
      const copiedAt = this.#daemon.copied?.at ?? 0
      const revised = { ...trigger, revision: trigger.revision + 1 }
      this.#passOverCopied(revised, copiedAt)
      atHome(trigger).resumed?.(this.#home, revised, { catchUp, copiedAt, now, there })
      return this.#put(this.#fromNow({ ...revised, paused: null }, now))
    })
  }

  /** Starts a run now, as an occasion of its own. */
  async runNow(which: Which, { force, by }: { force: boolean; by: string }): Promise<FiringRecord> {
    const trigger = this.find(which)
    const now = this.tables.now()
    const manual = { by }
    const occasion: Occasion = {
      ...{ occasion: `now:${crypto.randomUUID()}`, at: now, late_ms: 0, manual, force },
      variables: { ...kindOf(trigger).variablesNow(now), ...atHome(trigger).newest?.(this.#home, trigger) },
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
    const more = atHome(trigger).recalled?.(this.#home, trigger, firing) ?? {}
    const manual = { by }
    const { at } = firing
    const now = this.tables.now()
    const late = { late_ms: now - at, manual }
    const occasion: Occasion = {
      ...{ occasion: familyOf(firing), another: { again }, at, ...late, end_id: firing.end_id ?? null },
      variables: variablesAgain(firing, now),
      isLater: true,
      more: () => more,
    }
    const audited = () => this.#daemon.audit.write({ actor: by, action: 'triggers/refire', target: trigger.name })
    return firingRecord(await this.#fired(trigger, occasion, audited), trigger.name)
  }

  /**
   * Starts slots of the past that have no firing or were missed, one after the other: those in [`from`, `to`), the oldest
   * `most` of them. Throws `conflict` where the home that this one was copied from may have started some, unless `yes`.
   */
  async backfill(which: Which, { by, ...asked }: Backfill & { by: string }): Promise<BackfillRecord> {
    const trigger = this.find(which)
    const schedule = scheduleIn(trigger)
    const { from, to, most, dryRun } = asked
    if (!dryRun) mustStartThem(trigger)
    const now = this.tables.now()
    const span = { from, to: Math.min(to, now), copiedAt: this.#daemon.copied?.at ?? 0 }
    const found = () => slotsToFill(trigger as Schedule, this.tables.firings.between(trigger.id, from, to), span)
    if (dryRun) return backfillRecord(schedule, found(), most)
    return this.#daemon.engine.commit(() => {
      mustBeAt(this.find({ trigger_id: trigger.id }), trigger.revision)
      const slots = found()
      const those = slotsToStart(slots, asked, MAY_HAVE_STARTED)
      const firings = those.map(slot => filled(trigger as Schedule, slot, { by, now }))
      for (const firing of firings) this.tables.firings.insert(firing)
      this.#daemon.audit.write({ actor: by, action: 'triggers/backfill', target: `${trigger.name}: ${firings.length}` })
      const records = firings.map(firing => firingRecord(firing, trigger.name))
      return backfillRecord(schedule, slots, most, records)
    })
  }

  /** With what hooks have stored of deliveries, where that is asked for. */
  override firingsFor(body: Parameters<TriggerView['firingsFor']>[0]): ReturnType<TriggerView['firingsFor']> {
    const found = super.firingsFor(body)
    if (!body.with_body) return found
    const { firings, hooks } = this.tables
    const shown = (record: FiringRecord): FiringRecord => {
      const firing = firings.get(record.id)
      const sent = hooks.sent(this.#daemon.seal, record.id)
      return firing ? withDelivery(record, firing, sent, value => this.#daemon.mask(value)) : record
    }
    return { ...found, firings: found.firings.map(shown) }
  }

  /** Asks once more where the trigger changed in between, or another occasion of it started. */
  async #fired(trigger: Trigger, occasion: Occasion, also: () => void): Promise<Firing> {
    for (let tries = 1; ; tries++) {
      try {
        return await fire(this.#daemon, this.tables, trigger, occasion, { also })
      } catch (error) {
        if (!(error instanceof Changed) || tries === MOST_TRIES) throw error
        trigger = this.find({ trigger_id: trigger.id })
      }
    }
  }

  protected override async declaredBy(team: string): Promise<readonly Field[]> {
    return (await this.#teamOf(team)).inputs
  }

  async #teamOf(team: string): Promise<Team> {
    const bundle = await loadTeam(this.#daemon, whichTeam(team))
    return bundle.team(bundle.root)
  }

  /** Throws `conflict` when the trigger cannot be an enabled one. */
  async #mustBeAbleTo(trigger: Trigger): Promise<void> {
    const { mayBeEnabled } = atHome(trigger)
    if (mayBeEnabled) await mayBeEnabled(this.#home, trigger, (await this.#teamOf(trigger.spec.team)).name)
  }

  /** Whether its problem is over. Only its team can be asked. */
  async #isMended(trigger: Trigger): Promise<boolean> {
    return trigger.problem?.reason !== 'team' || (await teamProblem(this.#daemon, trigger)) === null
  }

  async #there(trigger: Pick<Trigger, 'id' | 'kind' | 'spec'>): Promise<There | undefined> {
    return atHome(trigger).there?.(this.#home, trigger)
  }

  async #specOf(kind: TriggerKind, fields: TriggerFields, around: { now: number; isNew: boolean }) {
    return specOf(kind, fields, await this.declaredBy(fields.team), { tz: zoneHere(), ...around })
  }

  /** With the next time at which it is due. */
  #put(trigger: Trigger): Trigger {
    const put = { ...trigger, next_at: nextOf(trigger) }
    this.tables.triggers.update(put)
    return put
  }

  /** What waited when this home was found to be a copy is left to the home that it was made from. */
  #passOverCopied(trigger: Trigger, copiedAt: number): void {
    const passed = { state: 'skipped', reason: 'copy', detail: MAY_HAVE_STARTED } as const
    this.tables.firings.settleWaiting(trigger.id, passed, copiedAt)
  }

  /** Occasions are looked at from now on. */
  #fromNow(trigger: Trigger, now: number, there?: There): Trigger {
    atHome(trigger).beforeNow?.(this.#home, trigger, now, there)
    return { ...trigger, cursor: now }
  }

  /** The same for what makes it start runs, with what whoever does that should know. */
  async #started(actor: string, action: string, work: () => Trigger): Promise<TriggerRecord> {
    const record = this.#change(actor, action, work)
    const warnings = await warningsOf(this.#home, this.find({ trigger_id: record.id }))
    return warnings.length === 0 ? record : { ...record, warnings }
  }

  #change(actor: string, action: string, work: () => Trigger): TriggerRecord {
    return this.record(this.#daemon.audit.during(actor, action, work, ({ name, spec }) => `${name}: ${spec.team}`))
  }
}

function mustBeName(name: string): void {
  if (name === 'last') throw new CadreError('invalid_request', '`last` means the newest run: choose another name')
}

/** When it is due next. */
function nextOf(trigger: Trigger): number | null {
  return trigger.enabled && !trigger.paused ? (kindOf(trigger).nextAt?.(trigger) ?? null) : null
}
