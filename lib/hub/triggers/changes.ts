// What operators of a realm do with its triggers. Each change and its entry in the audit log are one transaction.

import { and, count } from 'drizzle-orm'
import type { Static } from 'typebox'
import { type Db, isDuplicate } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { ENDED_BY, mayMend, mustBeAt, mustCatchUp } from '../../firing/changes.ts'
import { specOf, type TriggerFields } from '../../firing/check-trigger.ts'
import { declaredBy, kept, mustBeOwn, mustFitFile, nameTaken } from '../../firing/declared.ts'
import type { Secrets } from '../../firing/hook-secrets.ts'
import { kindOf } from '../../firing/kinds.ts'
import { refusal } from '../../firing/refusal.ts'
import { illFormedText } from '../../json.ts'
import type { CatchUp } from '../../triggers/schedule/spec.ts'
import type { AddRealmTrigger, UpdateRealmTrigger } from '../../wire/calls/triggers.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import type { RealmTriggerRecord } from '../../wire/records/triggers.ts'
import type { UserCaller } from '../access/callers.ts'
import type { Hub } from '../core/hub.ts'
import { durationOf, listedPackage } from '../queue/dispatch.ts'
import { teamProblem } from './check-triggers.ts'
import { passOverCopies } from './copied.ts'
import { settleWaiting } from './firing-table.ts'
import { inRealm } from './in-realm.ts'
import { auditTrigger, changeable, type RealmWhich, recordOf, ZONE } from './realm-view.ts'
import {
  byName,
  declaredIn,
  findTrigger,
  insertTrigger,
  type Look,
  nextOf,
  ofKind,
  ofRealm,
  putTrigger,
  type RealmTrigger,
  takeTrigger,
  thoseThere,
  timeNow,
} from './trigger-table.ts'
import { warningsFor } from './warnings.ts'

type RealmSpec = RealmTrigger['spec']
type Fields = TriggerFields & Partial<Pick<RealmSpec, 'requires' | 'priority' | 'queue_timeout'>>

/** A trigger that is not there yet. */
type NewTrigger = Fields & Secrets & Pick<RealmTrigger, 'name' | 'kind' | 'source'>

export class RealmTriggers {
  readonly #hub: Hub

  constructor(hub: Hub) {
    this.#hub = hub
  }

  async add(caller: UserCaller, body: Static<(typeof AddRealmTrigger)['body']>): Promise<RealmTriggerRecord> {
    const { realm_id, ...given } = body
    return this.#unique(() =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'operator', tx)
        return this.#insert(tx, caller, realm, 'triggers/add', { ...given, source: 'manual' })
      }),
    )
  }

  async #insert(
    tx: Db,
    caller: UserCaller,
    realm: Look['realm'],
    action: string,
    { name, kind, source, ...fields }: NewTrigger,
  ): Promise<RealmTriggerRecord> {
    const { store } = this.#hub
    const now = await timeNow(this.#hub, tx)
    const spec = await this.#specOf(tx, caller, realm, kind, fields, { now, isNew: true })
    const realm_id = realm.id
    const other = await findTrigger(store, tx, byName(store, realm_id, name))
    if (other) throw nameTaken('realm', other, source)
    const those = thoseThere(store, ofRealm(store, realm_id), ofKind(store, kind))
    const [{ many } = { many: 0 }] = await tx.select({ many: count() }).from(store.triggers).where(those)
    const { realm: most = Infinity } = kindOf({ kind }).most ?? {}
    if (Number(many) >= most) {
      throw new CadreError('conflict', `a realm has at most ${most} ${kind}s: remove one first`)
    }
    const added: RealmTrigger = {
      ...{ id: Bun.randomUUIDv7(), realm_id, name, kind, spec, revision: 1, source, enabled: true },
      ...{ paused: null, problem: null, cursor: now, next_at: null, removed_at: null },
      ...{ owner_id: caller.user.id, created_at: now, created_by: caller.user.username },
    }
    const trigger = { ...added, next_at: nextOf(added) }
    const look: Look = { hub: this.#hub, tx, trigger, realm, owner: caller.user, mayStart: true, now }
    await inRealm(trigger).mayBeEnabled?.(look)
    await insertTrigger(store, tx, trigger)
    await inRealm(trigger).added?.(look, fields)
    return this.#done(look, caller, action)
  }

  /** Changes what is given. A new rule is looked at from now on; other changes leave alone what is due. */
  async update(caller: UserCaller, body: Static<(typeof UpdateRealmTrigger)['body']>): Promise<RealmTriggerRecord> {
    const { trigger_id, realm_id, revision, owner, keep, name: renamed, ...changes } = body
    const { store } = this.#hub
    return this.#unique(() =>
      this.#change(caller, 'triggers/update', { trigger_id, realm_id }, async look => {
        const { trigger, tx, now } = look
        mustBeAt(trigger, revision ?? trigger.revision)
        mustBeOwn(trigger, Object.keys(changes))
        const { own, ...more } = trigger.spec
        const kind = kindOf(trigger)
        const fields = { ...more, ...changes, ...kind.changed(own, changes) }
        // Who only takes it over need not mend it.
        const isSpec = Object.keys(changes).length > 0
        const spec = isSpec
          ? await this.#specOf(tx, caller, look.realm, trigger.kind, fields, { now, isNew: false })
          : trigger.spec
        const name = renamed ?? trigger.name
        const other = await findTrigger(store, tx, byName(store, trigger.realm_id, name))
        if (other && other.id !== trigger.id) throw nameTaken('realm', other, 'manual')
        const owner_id = owner === 'me' ? caller.user.id : trigger.owner_id
        const source = keep === undefined ? trigger.source : kept(trigger, keep)
        const isSame = kind.isSameRule(spec.own, trigger.spec.own)
        const changed = { ...trigger, name, spec, source, owner_id, revision: trigger.revision + 1 }
        const isMended =
          mayMend(trigger.problem, changes, { isSame, keep, owner }) && (await this.#isMended(tx, look.realm, changed))
        if (isMended) changed.problem = null
        if (changed.enabled) await inRealm(trigger).mayBeEnabled?.({ ...look, trigger: changed })
        await inRealm(trigger).updated?.({ ...look, trigger: changed }, changes)
        return isSame && !isMended ? changed : this.#fromNow(look, changed)
      }),
    )
  }

  remove(caller: UserCaller, which: RealmWhich): Promise<RealmTriggerRecord> {
    return this.#change(caller, 'triggers/remove', which, async ({ trigger, tx, now }) => {
      await settleWaiting(this.#hub.store, tx, trigger.id, ENDED_BY.remove)
      return { ...trigger, enabled: false, removed_at: now }
    })
  }

  /** A trigger of a team becomes what the version that fits says now. */
  enable(caller: UserCaller, which: RealmWhich): Promise<RealmTriggerRecord> {
    return this.#change(caller, 'triggers/enable', which, async look => {
      const { trigger } = look
      if (trigger.source !== 'manual') {
        const { team } = trigger.spec
        return this.#asDeclared(
          look,
          caller,
          team,
          await this.#declared(look.tx, caller, look.realm, team, trigger.source.name),
        )
      }
      if (trigger.enabled) return trigger
      await inRealm(trigger).mayBeEnabled?.(look)
      return this.#fromNow(look, { ...trigger, enabled: true, revision: trigger.revision + 1 })
    })
  }

  /** Enables what a package declares, as the version that fits says it now. `secret`: of a hook that is new here. */
  enableDeclared(
    caller: UserCaller,
    { realm_id, team, name, secret }: { realm_id: string; team: string; name: string; secret?: string | undefined },
  ): Promise<RealmTriggerRecord> {
    const { store } = this.#hub
    return this.#unique(() =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'operator', tx)
        const declared = await this.#declared(tx, caller, realm, team, name)
        const { kind, fields, source } = declared
        const those = and(ofRealm(store, realm_id), declaredIn(store, source))!
        const known = await findTrigger(store, tx, those)
        if (!known) {
          const given = { ...fields, ...(secret !== undefined && { secret }) }
          return this.#insert(tx, caller, realm, 'triggers/enable', { ...given, name, kind, team, source })
        }
        mustFitFile(known, kind, secret)
        const look: Look = { ...(await takeTrigger(this.#hub, tx, known.id))!, hub: this.#hub, tx }
        const trigger = await putTrigger(store, tx, await this.#asDeclared(look, caller, team, declared))
        return this.#done({ ...look, trigger }, caller, 'triggers/enable')
      }),
    )
  }

  async #declared(tx: Db, caller: UserCaller, realm: Look['realm'], team: string, name: string) {
    const found = await listedPackage(this.#hub, tx, realm, team, caller)
    const declared = declaredBy({ name: found.name, version: found.version, triggers: found.triggers ?? [] }, name)
    if (declared.kind !== 'watch') return declared
    throw refusal([
      { path: '/name', message: `${name} watches a folder, which a hub has none of: enable it on a home` },
    ])
  }

  async #asDeclared(
    look: Look,
    caller: UserCaller,
    team: string,
    { kind, fields, source }: ReturnType<typeof declaredBy>,
  ): Promise<RealmTrigger> {
    const { trigger, tx, realm, now } = look
    mustFitFile(trigger, kind, undefined)
    const { requires, priority, queue_timeout } = trigger.spec
    const given = { ...fields, team, requires, priority, queue_timeout }
    const spec = await this.#specOf(tx, caller, realm, kind, given, { now, isNew: false })
    const isSame = kindOf(trigger).isSameRule(spec.own, trigger.spec.own)
    // The team is there, and what it says is what is enabled.
    const isMended = mayMend(trigger.problem, given, { isSame })
    const problem = isMended ? null : trigger.problem
    const changed = { ...trigger, spec, source, enabled: true, problem, revision: trigger.revision + 1 }
    await inRealm(trigger).mayBeEnabled?.({ ...look, trigger: changed })
    return trigger.enabled && isSame && !isMended ? changed : this.#fromNow(look, changed)
  }

  disable(caller: UserCaller, which: RealmWhich): Promise<RealmTriggerRecord> {
    return this.#change(caller, 'triggers/disable', which, async ({ trigger, tx }) => {
      if (!trigger.enabled) return trigger
      await settleWaiting(this.#hub.store, tx, trigger.id, ENDED_BY.disable)
      return { ...trigger, enabled: false, revision: trigger.revision + 1 }
    })
  }

  pause(caller: UserCaller, which: RealmWhich, reason: string | null): Promise<RealmTriggerRecord> {
    return this.#change(caller, 'triggers/pause', which, async ({ trigger, now }) => {
      if (trigger.paused) return trigger
      const paused = { since: now, by: caller.user.username, reason }
      return { ...trigger, paused, revision: trigger.revision + 1 }
    })
  }

  /** Goes on from now. */
  resume(caller: UserCaller, which: RealmWhich, catchUp: CatchUp): Promise<RealmTriggerRecord> {
    return this.#change(caller, 'triggers/resume', which, async given => {
      mustCatchUp(given.trigger, catchUp)
      if (!given.trigger.paused) return given.trigger
      const look = await passOverCopies(given)
      const trigger = { ...look.trigger, revision: look.trigger.revision + 1 }
      await inRealm(trigger).resumed?.({ ...look, trigger }, catchUp)
      return this.#fromNow(look, { ...trigger, paused: null })
    })
  }

  async #change(
    caller: UserCaller,
    action: string,
    which: RealmWhich,
    work: (look: Look) => Promise<RealmTrigger>,
  ): Promise<RealmTriggerRecord> {
    return caller.write(async tx => {
      const look = await changeable(this.#hub, caller, which, tx)
      const trigger = await putTrigger(this.#hub.store, tx, await work(look))
      const isTaken = trigger.owner_id !== look.owner.id && { owner: caller.user, mayStart: true }
      return this.#done({ ...look, ...isTaken, trigger }, caller, action)
    })
  }

  /** The entry of the audit log, and the answer. */
  async #done(look: Look, caller: UserCaller, action: string): Promise<RealmTriggerRecord> {
    const { tx, trigger, owner, mayStart } = look
    await auditTrigger(look, caller, action)
    const told = await warningsFor(this.#hub.store, tx, action, trigger)
    return { ...(await recordOf(this.#hub, { trigger, owner: owner.username, mayStart }, tx)), ...told }
  }

  /** The spec of a body. Throws `invalid_request` with every mistake. */
  async #specOf(
    tx: Db,
    caller: UserCaller,
    realm: Look['realm'],
    kind: TriggerKind,
    fields: Fields,
    around: { now: number; isNew: boolean },
  ): Promise<RealmSpec> {
    const { requires = null, priority = 0, queue_timeout = null } = fields
    const path = illFormedText(fields)
    if (path !== null) throw refusal([{ path, message: 'has a NUL or half a surrogate pair, which is no text' }])
    if (queue_timeout !== null) durationOf(queue_timeout)
    const found = await listedPackage(this.#hub, tx, realm, fields.team, caller)
    // A secret one belongs in the settings of the daemon.
    const declared = found.inputs.map(field => (field.secret ? { ...field, required: false } : field))
    return { ...specOf(kind, fields, declared, { tz: ZONE, ...around }), requires, priority, queue_timeout }
  }

  /** Whether its problem is over. Only its team can be asked. */
  async #isMended(tx: Db, realm: Look['realm'], trigger: RealmTrigger): Promise<boolean> {
    return trigger.problem?.reason !== 'team' || (await teamProblem(this.#hub, tx, realm, trigger)) === null
  }

  /** Occasions are looked at from now on. */
  async #fromNow(look: Look, trigger: RealmTrigger): Promise<RealmTrigger> {
    await inRealm(trigger).beforeNow?.({ ...look, trigger })
    return { ...trigger, cursor: look.now }
  }

  /** Two calls at the same moment: the one that violates the unique index finds the trigger of the other. */
  async #unique<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!isDuplicate(error)) throw error
      return work()
    }
  }
}
