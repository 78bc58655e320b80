// What operators of a realm do with its triggers. Each change and its entry in the audit log are one transaction.

import { count } from 'drizzle-orm'
import type { Static } from 'typebox'
import { type Db, isDuplicate } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { mustBeAt, mustBeRefirable, removed, variablesAgain } from '../../firing/changes.ts'
import { specOf, type TriggerFields } from '../../firing/check-trigger.ts'
import { familyOf } from '../../firing/family.ts'
import { kindOf } from '../../firing/kinds.ts'
import { firingRecord } from '../../firing/shown.ts'
import type { CatchUp } from '../../triggers/schedule/spec.ts'
import type { AddRealmTrigger, UpdateRealmTrigger } from '../../wire/calls/triggers.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import type { FiringRecord, RealmTriggerRecord } from '../../wire/records/triggers.ts'
import { record } from '../access/audit.ts'
import type { UserCaller } from '../access/callers.ts'
import { MAY_HAVE_STARTED } from '../core/found-copies.ts'
import type { Hub } from '../core/hub.ts'
import { durationOf, listedPackage } from '../queue/dispatch.ts'
import { passOverCopies } from './copied.ts'
import { fire, type Occasion } from './fire.ts'
import { firingWithId, settleFiring, waitingOf } from './firing-table.ts'
import { asItsKind, inRealm } from './in-realm.ts'
import { isElsewhere, missing, type RealmWhich, recordOf, whichOf, ZONE } from './realm-view.ts'
import {
  byName,
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

/** How often an occasion is judged anew because of what happened meanwhile. */
const MOST_TRIES = 10

export class RealmTriggers {
  readonly #hub: Hub

  constructor(hub: Hub) {
    this.#hub = hub
  }

  async add(caller: UserCaller, body: Static<(typeof AddRealmTrigger)['body']>): Promise<RealmTriggerRecord> {
    const { realm_id, name, kind, ...fields } = body
    const { store } = this.#hub
    return this.#unique(name, () =>
      caller.write(async tx => {
        const realm = await caller.realm(realm_id, 'operator', tx)
        const now = await timeNow(this.#hub, tx)
        const spec = await this.#specOf(tx, caller, realm, kind, fields, { now, isNew: true })
        if (await findTrigger(store, tx, byName(store, realm_id, name))) throw taken(name)
        const those = thoseThere(store, ofRealm(store, realm_id), ofKind(store, kind))
        const [{ many } = { many: 0 }] = await tx.select({ many: count() }).from(store.triggers).where(those)
        const { realm: most = Infinity } = kindOf({ kind }).most ?? {}
        if (Number(many) >= most) {
          throw new CadreError('conflict', `a realm has at most ${most} ${kind}s: remove one first`)
        }
        const added: RealmTrigger = {
          ...{ id: Bun.randomUUIDv7(), realm_id, name, kind, spec, revision: 1, source: 'manual', enabled: true },
          ...{ paused: null, problem: null, cursor: now, next_at: null, removed_at: null },
          ...{ owner_id: caller.user.id, created_at: now, created_by: caller.user.username },
        }
        const trigger = { ...added, next_at: nextOf(added) }
        const look: Look = { hub: this.#hub, tx, trigger, realm, owner: caller.user, mayStart: true, now }
        await inRealm(trigger).mayBeEnabled?.(look)
        await insertTrigger(store, tx, trigger)
        await inRealm(trigger).added?.(look, fields)
        await this.#audit(tx, caller, 'triggers/add', trigger, realm.org_id)
        const told = await warningsFor(store, tx, 'triggers/add', trigger)
        return { ...(await recordOf(this.#hub, { trigger, owner: caller.user.username, mayStart: true }, tx)), ...told }
      }),
    )
  }

  /** Changes what is given. A new rule is looked at from now on; other changes leave alone what is due. */
  async update(caller: UserCaller, body: Static<(typeof UpdateRealmTrigger)['body']>): Promise<RealmTriggerRecord> {
    const { trigger_id, realm_id, revision, owner, name: renamed, ...changes } = body
    const { store } = this.#hub
    return this.#unique(renamed ?? '', () =>
      this.#change(caller, 'triggers/update', { trigger_id, realm_id }, async look => {
        const { trigger, tx, now } = look
        mustBeAt(trigger, revision ?? trigger.revision)
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
        if (other && other.id !== trigger.id) throw taken(name)
        const owner_id = owner === 'me' ? caller.user.id : trigger.owner_id
        const problem = isSpec || trigger.problem?.reason === 'owner' ? null : trigger.problem
        const changed = { ...trigger, name, spec, owner_id, revision: trigger.revision + 1, problem }
        if (changed.enabled) await inRealm(trigger).mayBeEnabled?.({ ...look, trigger: changed })
        await inRealm(trigger).updated?.({ ...look, trigger: changed }, changes)
        const isMended = trigger.problem !== null && problem === null
        if (kind.isSameRule(spec.own, trigger.spec.own) && !isMended) return changed
        return this.#fromNow(look, changed)
      }),
    )
  }

  remove(caller: UserCaller, which: RealmWhich): Promise<RealmTriggerRecord> {
    return this.#change(caller, 'triggers/remove', which, async ({ trigger, tx, now }) => {
      const { store } = this.#hub
      for (const firing of await waitingOf(store, tx, trigger.id)) {
        await settleFiring(store, tx, removed(firing), firing.state)
      }
      return { ...trigger, enabled: false, removed_at: now }
    })
  }

  enable(caller: UserCaller, which: RealmWhich): Promise<RealmTriggerRecord> {
    return this.#change(caller, 'triggers/enable', which, async look => {
      const { trigger } = look
      if (trigger.enabled) return trigger
      await inRealm(trigger).mayBeEnabled?.(look)
      return this.#fromNow(look, { ...trigger, enabled: true, revision: trigger.revision + 1 })
    })
  }

  disable(caller: UserCaller, which: RealmWhich): Promise<RealmTriggerRecord> {
    return this.#change(caller, 'triggers/disable', which, async ({ trigger }) =>
      trigger.enabled ? { ...trigger, enabled: false, revision: trigger.revision + 1 } : trigger,
    )
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
      if (!given.trigger.paused) return given.trigger
      const look = await passOverCopies(given)
      const trigger = { ...look.trigger, revision: look.trigger.revision + 1 }
      await inRealm(trigger).resumed?.({ ...look, trigger }, catchUp)
      return this.#fromNow(look, { ...trigger, paused: null })
    })
  }

  /** Starts a run now, as an occasion of its own. */
  runNow(caller: UserCaller, which: RealmWhich, force: boolean): Promise<FiringRecord> {
    const manual = { by: caller.user.username }
    return this.#fire(caller, 'triggers/run_now', which, async look => ({
      ...{ occasion: `now:${crypto.randomUUID()}`, at: look.now, late_ms: 0, manual, force },
      variables: { ...kindOf(look.trigger).variablesNow(look.now), ...(await inRealm(look.trigger).newest?.(look)) },
    }))
  }

  /** The same occasion again, as another firing. */
  async refire(caller: UserCaller, firingId: string, again: boolean): Promise<FiringRecord> {
    const { store } = this.#hub
    const gone = new CadreError('not_found', `no firing ${firingId} of a trigger that you may see`)
    const first = await firingWithId(store, store.db, firingId)
    if (!first) throw gone
    const manual = { by: caller.user.username }
    return this.#fire(caller, 'triggers/refire', { trigger_id: first.trigger_id }, async look => {
      const { trigger, tx, now } = look
      const firing = await firingWithId(store, tx, firingId)
      if (!firing) throw gone
      mustBeRefirable(firing, again, MAY_HAVE_STARTED)
      const { at } = firing
      const values = (await inRealm(trigger).values?.(look, firing)) ?? {}
      const occurs = { occasion: familyOf(firing), another: { again }, at, late_ms: now - at, manual, isLater: true }
      return { ...occurs, variables: variablesAgain(firing, now), more: async () => values }
    }).catch(error => {
      throw error instanceof CadreError && error.code === 'not_found' ? gone : error
    })
  }

  async #fire(
    caller: UserCaller,
    action: string,
    which: RealmWhich,
    occasionOf: (look: Look) => Promise<Occasion>,
  ): Promise<FiringRecord> {
    const hub = this.#hub
    await hub.runIds.look()
    const once = () =>
      caller.write(async tx => {
        const look = await this.#reach(caller, which, tx)
        const firing = await fire(look, await occasionOf(look), asItsKind(look))
        await this.#audit(tx, caller, action, look.trigger, look.realm.org_id)
        return { firing, trigger: look.trigger }
      })
    const fired = await this.#whileDuplicate(once)
    hub.notifier.notify(`realm ${fired.trigger.realm_id}`)
    return firingRecord(fired.firing, fired.trigger.name)
  }

  async #change(
    caller: UserCaller,
    action: string,
    which: RealmWhich,
    work: (look: Look) => Promise<RealmTrigger>,
  ): Promise<RealmTriggerRecord> {
    const { store } = this.#hub
    return caller.write(async tx => {
      const look = await this.#reach(caller, which, tx)
      const put = await putTrigger(store, tx, await work(look))
      await this.#audit(tx, caller, action, put, look.realm.org_id)
      const isTaken = put.owner_id !== look.owner.id
      const [owner, mayStart] = isTaken ? [caller.user.username, true] : [look.owner.username, look.mayStart]
      const told = await warningsFor(store, tx, action, put)
      return { ...(await recordOf(this.#hub, { trigger: put, owner, mayStart }, tx)), ...told }
    })
  }

  /** The trigger that a body names, which the caller may change. Throws `not_found` and `forbidden`. */
  async #reach(caller: UserCaller, which: RealmWhich, tx: Db): Promise<Look> {
    const hub = this.#hub
    if (which.realm_id !== undefined) await caller.realm(which.realm_id, 'operator', tx)
    const found = await findTrigger(hub.store, tx, whichOf(hub, which))
    if (!found || isElsewhere(found, which)) throw missing(which)
    await caller.realm(found.realm_id, 'operator', tx).catch(error => {
      throw error instanceof CadreError && error.code === 'not_found' ? missing(which) : error
    })
    return { ...(await takeTrigger(hub, tx, found.id))!, hub, tx }
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
    if (queue_timeout !== null) durationOf(queue_timeout)
    const found = await listedPackage(this.#hub, tx, realm, fields.team, caller)
    // A secret one belongs in the settings of the daemon.
    const declared = found.inputs.map(field => (field.secret ? { ...field, required: false } : field))
    return { ...specOf(kind, fields, declared, { tz: ZONE, ...around }), requires, priority, queue_timeout }
  }

  /** Occasions are looked at from now on. */
  async #fromNow(look: Look, trigger: RealmTrigger): Promise<RealmTrigger> {
    await inRealm(trigger).beforeNow?.({ ...look, trigger })
    return { ...trigger, cursor: look.now }
  }

  #audit(tx: Db, caller: UserCaller, action: string, { name, spec, realm_id }: RealmTrigger, org_id: number) {
    return record(this.#hub, tx, caller, { action, target: `${name}: ${spec.team}`, org_id, realm_id })
  }

  /** Another hub chose the same name for a firing at the same moment: it is judged anew. */
  async #whileDuplicate<T>(work: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await work()
      } catch (error) {
        if (!isDuplicate(error) || tries === MOST_TRIES) throw error
      }
    }
  }

  /** Two calls at the same moment: the one that violates the unique index is told so. */
  async #unique<T>(name: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw isDuplicate(error) ? taken(name) : error
    }
  }
}

const taken = (name: string) =>
  new CadreError('conflict', `the realm has a trigger ${name} already: choose another name`)
