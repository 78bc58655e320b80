// What the changes of a trigger do to it, as a home and a hub make them alike. Pure.

import { CadreError } from '../error.ts'
import type { CatchUp } from '../triggers/schedule/spec.ts'
import { kindOf } from './kinds.ts'
import { bareTeam, type Firing, type Trigger, type TriggerSpec } from './trigger.ts'

/** A trigger or a firing is not what it was when it was read: nothing was written, and the next look judges anew. */
export class Changed extends CadreError {
  constructor(message: string) {
    super('unavailable', message)
  }
}

/** Throws `conflict` when somebody has changed the trigger since it was read. */
export function mustBeAt({ name, revision }: Trigger, expected: number): void {
  if (revision === expected) return
  throw new CadreError('conflict', `trigger ${name} is at revision ${revision}: read it again`)
}

/** Throws `invalid_request` when a resumption may not catch up so. */
export function mustFitOverlap(catchUp: CatchUp, { overlap }: Pick<TriggerSpec, 'overlap'>): void {
  if (catchUp !== 'all' || ['queue', 'allow'].includes(overlap)) return
  throw new CadreError('invalid_request', `\`all\` needs \`overlap: queue\` or \`allow\`, not \`${overlap}\``, {
    details: [{ path: '/catch_up', message: 'all needs `overlap: queue` or `overlap: allow`' }],
  })
}

/** Throws `invalid_request` where nothing says which occasions passed: only the slots of a schedule are known afterwards. */
export function mustCatchUp({ name, kind }: Pick<Trigger, 'name' | 'kind'>, catchUp: CatchUp): void {
  if (catchUp === 'none' || kind === 'schedule') return
  const why = `what came to ${name} during the pause is recorded as skipped, and \`refire\` starts it`
  throw new CadreError('invalid_request', `a ${kind} has no slots to catch up: ${why}`, {
    details: [{ path: '/catch_up', message: 'belongs to schedules: leave it out' }],
  })
}

/**
 * Whether a change of a trigger may have ended its problem. A name mends nothing, and of its team one has to ask once more.
 * `isSame`: its rule is the one that it had.
 */
export function mayMend(
  problem: Trigger['problem'],
  changes: object,
  { isSame, keep, owner }: { isSame: boolean; keep?: boolean | undefined; owner?: string | undefined },
): boolean {
  if (problem === null) return false
  if (problem.reason === 'owner') return owner !== undefined
  if (problem.reason === 'team') return keep !== undefined || Object.keys(changes).length > 0
  return !isSame || 'add_secret' in changes || 'expire_secret' in changes
}

export const pausedText = ({ paused }: Pick<Trigger, 'paused'>): string =>
  `paused by ${paused!.by}${paused!.reason === null ? '' : `: ${paused!.reason}`}`

type Starter = Pick<Trigger, 'id' | 'name' | 'kind' | 'spec' | 'enabled'>

/**
 * What is said to whoever enables a trigger where others start the same team on the same occasions. Each hook has an
 * address of its own, so two of them are not the same source.
 */
export function sameSource(trigger: Starter, others: readonly Starter[]): string[] {
  const { id, kind, spec, enabled } = trigger
  const { meets } = kindOf(trigger)
  if (!enabled || !meets) return []
  const team = bareTeam(spec.team)
  return others
    .filter(each => each.id !== id && each.enabled && each.kind === kind && bareTeam(each.spec.team) === team)
    .filter(each => meets(spec.own, each.spec.own))
    .map(({ name }) => `${name} starts this team on the same occasions, too: each of them has a run of both`)
}

/** What becomes of what waits for its turn when the trigger goes, or is no longer looked at. */
export const ENDED_BY = {
  remove: { state: 'skipped', reason: 'removed', detail: 'the trigger was removed while it waited' },
  disable: { state: 'skipped', reason: 'removed', detail: 'the trigger was disabled while it waited' },
} as const

/** Throws `conflict` when an occasion may not be fired again. `copied`: what is said of one that another may have started. */
export function mustBeRefirable({ id, state, reason, run_id, occasion }: Firing, again: boolean, copied: string): void {
  if (state === 'waiting') throw new CadreError('conflict', `firing ${id} still waits`)
  if (again) return
  if (state === 'started') {
    throw new CadreError('conflict', `firing ${id} started run ${run_id}: \`again\` starts a second one`)
  }
  if (reason === 'copy') throw new CadreError('conflict', `${occasion}: ${copied}; \`again\` starts it here`)
}

/** The variables of an occasion that is fired once more. */
export const variablesAgain = ({ variables }: Firing, now: number) => ({
  ...variables,
  ...('now' in variables && { now: new Date(now).toISOString() }),
})
