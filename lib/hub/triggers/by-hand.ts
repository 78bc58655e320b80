// What operators have a trigger of a realm start: now, or of an occasion that passed.

import { isDuplicate } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import {
  type Backfill,
  backfillRecord,
  filled,
  mustStartThem,
  slotsToFill,
  slotsToStart,
} from '../../firing/backfill.ts'
import { mustBeRefirable, variablesAgain } from '../../firing/changes.ts'
import { familyOf } from '../../firing/family.ts'
import { kindOf } from '../../firing/kinds.ts'
import { firingRecord, scheduleIn } from '../../firing/shown.ts'
import type { Schedule } from '../../firing/slot-rows.ts'
import type { BackfillRecord, FiringRecord } from '../../wire/records/triggers.ts'
import type { UserCaller } from '../access/callers.ts'
import { lastFoundAt, MAY_HAVE_STARTED } from '../core/found-copies.ts'
import type { Hub } from '../core/hub.ts'
import { fire, type Occasion } from './fire.ts'
import { firingsBetween, firingWithId, insertFiring } from './firing-table.ts'
import { asItsKind, inRealm } from './in-realm.ts'
import { auditTrigger, changeable, type RealmWhich } from './realm-view.ts'
import type { Look } from './trigger-table.ts'

/** How often an occasion is judged anew because of what happened meanwhile. */
const MOST_TRIES = 10

export class StartsByHand {
  readonly #hub: Hub

  constructor(hub: Hub) {
    this.#hub = hub
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
      const { end_id = null } = firing
      const occurs = { occasion: familyOf(firing), another: { again }, at, late_ms: now - at, manual, isLater: true }
      return { ...occurs, end_id, variables: variablesAgain(firing, now), more: async () => values }
    }).catch(error => {
      throw error instanceof CadreError && error.code === 'not_found' ? gone : error
    })
  }

  /**
   * Starts slots of the past that have no firing or were missed, one after the other. Throws `conflict` where a hub whose
   * commits were lost may have started some, unless `yes`.
   */
  async backfill(caller: UserCaller, which: RealmWhich, asked: Backfill): Promise<BackfillRecord> {
    const { store } = this.#hub
    const work = () =>
      caller.write(async tx => {
        const look = await changeable(this.#hub, caller, which, tx)
        const { trigger, now, realm } = look
        const schedule = scheduleIn(trigger)
        const { from, to, most, dryRun } = asked
        const span = { from, to: Math.min(to, now), copiedAt: (await lastFoundAt(store, tx, realm.id)) ?? 0 }
        const slots = slotsToFill(trigger as Schedule, await firingsBetween(store, tx, trigger.id, span), span)
        if (dryRun) return backfillRecord(schedule, slots, most)
        mustStartThem(trigger)
        const by = caller.user.username
        const those = slotsToStart(slots, asked, MAY_HAVE_STARTED)
        const firings = those.map(slot => filled(trigger, slot, { by, now }))
        for (const firing of firings) await insertFiring(store, tx, firing)
        await auditTrigger(look, caller, 'triggers/backfill', String(firings.length))
        const records = firings.map(firing => firingRecord(firing, trigger.name))
        return backfillRecord(schedule, slots, most, records)
      })
    return this.#whileDuplicate(work)
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
        const look = await changeable(hub, caller, which, tx)
        const firing = await fire(look, await occasionOf(look), asItsKind(look))
        await auditTrigger(look, caller, action)
        return { firing, trigger: look.trigger }
      })
    const fired = await this.#whileDuplicate(once)
    hub.notifier.notify(`realm ${fired.trigger.realm_id}`)
    return firingRecord(fired.firing, fired.trigger.name)
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
}
