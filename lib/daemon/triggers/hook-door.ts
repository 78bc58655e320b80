// Where a home has its hooks, and records what comes to them.

import { Changed } from '../../firing/changes.ts'
import { holderOf } from '../../firing/family.ts'
import { HookDoor, type HookPlace, noHook, REJECTED_KEPT } from '../../firing/hook-door.ts'
import { type Arrived, judgingOf, keptUntil, occasionOf } from '../../firing/hook-firing.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import type { Hook } from '../../triggers/hook/fields.ts'
import type { HookLimits } from '../../triggers/hook/limits.ts'
import type { Daemon } from '../runs/daemon.ts'
import { fire } from './fire.ts'
import { noteProblem } from './problem.ts'
import { tablesOf } from './tables.ts'

/** How often a delivery is judged anew because somebody changed its hook meanwhile. */
const MOST_TRIES = 10

export interface DoorOptions {
  now?: () => number
  limits?: HookLimits
}

/** `now`: the wall clock. */
export function hookDoor(daemon: Daemon, { now = Date.now, limits }: DoorOptions = {}): HookDoor {
  const { engine, log, seal, ages } = daemon
  const tables = tablesOf(daemon.db, now)
  const { triggers, firings, hooks } = tables

  const hookWith = (id: string | null): Trigger<Hook> | null => {
    const trigger = id === null ? null : triggers.get(id)
    return trigger?.enabled ? (trigger as Trigger<Hook>) : null
  }

  async function judge(arrived: Arrived): Promise<{ firing: Firing; isKnown: boolean }> {
    const { trigger, delivery, spec } = arrived
    const { id, within } = delivery
    const newest = id === null ? null : within === null ? firings.of(trigger.id, id) : firings.newestOf(trigger.id, id)
    const at = now()
    const { occasion, known } = occasionOf(delivery, newest, at)
    // One that was refused may have its run from a person who fired it again.
    const holder = known?.state === 'refused' ? holderOf(firings.family(trigger.id, occasion)) : known
    if (known && holder) {
      await engine.commit(() => firings.countDelivery(known.id))
      const again = { trigger: trigger.name, delivery: occasion, firing: holder.id, run: holder.run_id }
      log.info('a delivery came again, and starts no second run', again)
      return { firing: firings.get(holder.id) ?? known, isKnown: true }
    }
    const { firing, halt, sent, values } = judgingOf(arrived, occasion, known, at)
    const keepBody = (settled: Firing) => {
      const until = keptUntil(settled, spec, sent, ages.believed)
      if (until !== undefined) hooks.keep(seal, settled.id, sent, until)
    }
    if (halt) {
      const halted = { ...firing, ...halt, detail: daemon.mask(halt.detail) as string }
      await engine.commit(() => {
        if (!known && firings.of(trigger.id, occasion)) throw new Changed(`${occasion} has a firing`)
        if (known) firings.settle(halted, known.state)
        else firings.insert(halted)
        keepBody(halted)
      })
      return { firing: halted, isKnown: false }
    }
    const { variables } = firing
    const fired = { occasion, at, late_ms: 0, manual: null, variables, deliveries: 1, more: () => values }
    const besides = { recorded: keepBody, ...(known && { known: firing }) }
    return { firing: await fire(daemon, tables, trigger, fired, besides), isKnown: false }
  }

  const place: HookPlace = {
    now,
    hookOf: async token => hookWith(hooks.triggerOf(token)),

    async secretsOf(trigger) {
      const secrets = daemon.hookSecrets.values(trigger.id)
      const text = 'the secret of the hook was sealed with another key of this home'
      if (secrets === null) await engine.commit(() => noteProblem(daemon, triggers, trigger, text, now()))
      return secrets
    },

    reject: (trigger, firing) =>
      engine.commit(() => {
        firings.insert(firing)
        firings.keepRejected(trigger.id, REJECTED_KEPT)
      }),

    async deliver(arrived) {
      for (let tries = 1; ; tries++) {
        try {
          return await judge(arrived)
        } catch (error) {
          if (!(error instanceof Changed) || tries === MOST_TRIES) throw error
          // Another request for the same delivery was first, or somebody changed the hook.
          const trigger = hookWith(arrived.trigger.id)
          if (!trigger) throw noHook()
          arrived = { ...arrived, trigger }
        }
      }
    },

    warn: (trigger, problem) => log.warn('a delivery of a hook', { trigger: trigger?.name, problem }),
  }
  return new HookDoor(place, limits)
}
