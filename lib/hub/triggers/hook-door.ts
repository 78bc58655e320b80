// Where a hub has the hooks of all realms, and records what comes to them: a delivery, its firing and the run that it
// queues are one transaction.

import { type Db, isDuplicate, isRefusedValue } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'
import { holderOf } from '../../firing/family.ts'
import { HookDoor, type HookPlace, noHook, REJECTED_KEPT } from '../../firing/hook-door.ts'
import { type Arrived, judgingOf, keptUntil, occasionOf } from '../../firing/hook-firing.ts'
import type { Firing } from '../../firing/trigger.ts'
import type { Hook } from '../../triggers/hook/fields.ts'
import type { Hub } from '../core/hub.ts'
import { Batcher } from '../queue/batcher.ts'
import { maySoonBeACopy, wasJustFound } from './copied.ts'
import { fire } from './fire.ts'
import {
  countDelivery,
  familyIn,
  firingOf,
  firingWithId,
  insertFiring,
  keepRejected,
  newestFiringOf,
  settleFiring,
} from './firing-table.ts'
import { hookWith, keepBody, openedSecrets, secretRows } from './hook-table.ts'
import { asItsKind } from './in-realm.ts'
import { tellOfFiring } from './messages.ts'
import { breakTrigger } from './problem.ts'
import { type Look, takeTrigger } from './trigger-table.ts'

/** Most deliveries that one transaction records: one with all of a moment costs little more than one of each. */
const MOST = 20
/** How often a delivery is recorded anew because another one with its id was first. */
const MOST_TRIES = 10
const COPY_TEXT = 'it starts when daemons have said whether the database is an older copy'

interface Around {
  /** Why the realm may have no more runs now. */
  quota: string | null
  /** The hub has just started, and may be on an older copy. */
  isUnclear: boolean
}

type Work = (tx: Db) => Promise<unknown>
type Recorded = Awaited<ReturnType<HookPlace['deliver']>>

export function hookDoor(hub: Hub): HookDoor {
  const { store, log } = hub
  const batcher = new Batcher<Work, unknown>({
    maxSize: MOST,
    concurrency: 1,
    work: works =>
      store.write(async tx => {
        const results: unknown[] = []
        for (const work of works) results.push(await work(tx))
        return results
      }),
    isOfOne: error => (error instanceof CadreError && error.code !== 'unavailable') || isRefusedValue(error),
  })
  const write = <T>(work: (tx: Db) => Promise<T>) => batcher.do(work) as Promise<T>

  /** The hook in a transaction. Throws `not_found` when nobody may call it any more. */
  async function look(tx: Db, triggerId: string): Promise<Look<Hook>> {
    const taken = await takeTrigger(hub, tx, triggerId)
    if (!taken?.trigger.enabled) throw noHook()
    return { ...taken, hub, tx } as Look<Hook>
  }

  const place: HookPlace = {
    now: hub.now,
    hookOf: token => hookWith(store, token),

    async secretsOf({ id }) {
      const rows = await secretRows(store, store.db, id)
      const secrets = openedSecrets(
        hub.sealer,
        rows.filter(({ expires_at }) => expires_at === null),
      )
      if (secrets.length > 0) return secrets
      const text = 'the secret of the hook was sealed with another CADRE_HUB_KEY'
      await write(async tx => breakTrigger(await look(tx, id), 'internal', text))
      return null
    },

    reject: ({ id }, firing) =>
      write(async tx => {
        await insertFiring(store, tx, firing)
        await keepRejected(store, tx, id, REJECTED_KEPT)
      }),

    async deliver(arrived) {
      const { id, name } = arrived.trigger
      await hub.runIds.look()
      const around: Around = { quota: null, isUnclear: await maySoonBeACopy(hub) }
      for (let tries = 1; ; tries++) {
        try {
          const { realm, ...recorded } = await write(async tx => {
            const found = await look(tx, id)
            return { realm: found.realm.id, ...(await judge(found, arrived, around)) }
          })
          failpoint()
          const { firing, isKnown } = recorded
          if (!isKnown) hub.notifier.notify(`realm ${realm}`)
          else {
            const again = { trigger: name, delivery: firing.occasion, firing: firing.id, run: firing.run_id }
            log.info('a delivery came again, and starts no second run', again)
          }
          return recorded
        } catch (error) {
          if (tries === MOST_TRIES) throw error
          // The transaction that counted one run too many is undone. The firing waits until there is room.
          if (error instanceof CadreError && error.code === 'rate_limited') around.quota = error.message
          // Another request for the same delivery was first.
          else if (!isDuplicate(error)) throw error
        }
      }
    },

    warn: (trigger, problem) => log.warn('a delivery of a hook', { trigger: trigger?.name, problem }),
  }
  return new HookDoor(place)
}

async function judge(look: Look<Hook>, arrived: Arrived, { quota, isUnclear }: Around): Promise<Recorded> {
  const { hub, tx, trigger, now } = look
  const { store } = hub
  const { delivery, spec } = arrived
  const { id, within } = delivery
  const newest = id && (await (within === null ? firingOf : newestFiringOf)(store, tx, trigger.id, id))
  const { occasion, known } = occasionOf(delivery, newest || null, now)
  // One that was refused may have its run from a person who fired it again.
  const holder = known?.state === 'refused' ? holderOf(await familyIn(store, tx, trigger.id, occasion)) : known
  if (known && holder) {
    await countDelivery(store, tx, known.id)
    return { firing: (await firingWithId(store, tx, holder.id)) ?? known, isKnown: true }
  }
  const judging = judgingOf({ ...arrived, trigger }, occasion, known, now)
  const { firing, sent, values } = judging
  const recorded = async (settled: Firing) => {
    const until = keptUntil(settled, spec, sent, hub.clock.believed())
    if (until !== undefined) await keepBody(hub, tx, settled.id, sent, until)
  }
  const waits = { state: 'waiting', reason: 'copy', detail: COPY_TEXT } as const
  const halt = judging.halt ?? (isUnclear || (await wasJustFound(look)) ? waits : null)
  if (halt) {
    const halted: Firing = { ...firing, revision: trigger.revision, ...halt }
    await tellOfFiring(look, halted)
    if (known) await settleFiring(store, tx, halted, known.state)
    else await insertFiring(store, tx, halted)
    await recorded(halted)
    return { firing: halted, isKnown: false }
  }
  const { variables } = firing
  const fired = { occasion, at: now, late_ms: 0, manual: null, variables, deliveries: 1, more: async () => values }
  const full = quota !== null && { allowance: { queued: 0, most: 0, why: quota } }
  const more = { ...asItsKind(look), recorded, ...full, ...(known && { known: firing }) }
  return { firing: await fire(look, fired, more), isKnown: false }
}
