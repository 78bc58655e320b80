// What becomes of one occasion of a realm's trigger: whether it queues a run, waits for another, or why it starts nothing.
// All of it happens in the transaction that also moves the cursor, so that a kill leaves everything or nothing.

import { and, asc, eq } from 'drizzle-orm'
import { parseDuration } from '../../duration.ts'
import { CadreError, isLasting, messageOf } from '../../error.ts'
import { isFilled } from '../../firing/backfill.ts'
import { changedSince } from '../../firing/declared.ts'
import { type Another, anotherName } from '../../firing/family.ts'
import {
  type Facts,
  type Halt,
  haltOf,
  isUnjudged,
  isWorthAWord,
  mayWait,
  mostWaiting,
  superseded,
} from '../../firing/halt.ts'
import { judge } from '../../firing/judge.ts'
import { kindOf } from '../../firing/kinds.ts'
import type { Firing } from '../../firing/trigger.ts'
import type { Json, JsonObject } from '../../json.ts'
import { requestCancel } from '../queue/cancel-orders.ts'
import { listedPackage, planRun } from '../queue/dispatch.ts'
import { queueRun } from '../queue/queue-runs.ts'
import {
  countWaiting,
  familyIn,
  insertFiring,
  openRuns,
  settleFiring,
  startedWithin,
  waitingBeyond,
  waitingOf,
} from './firing-table.ts'
import { tellOfFiring } from './messages.ts'
import { noteWhatItSays, ownerText } from './problem.ts'
import type { Look } from './trigger-table.ts'

/** An occasion, as its firing has it before anything became of it. */
export type Occasion = Pick<Firing, 'occasion' | 'at' | 'late_ms' | 'manual' | 'variables' | 'end_id'> & {
  /** It is fired once more, as `<occasion>#<n>`. */
  another?: Another
  /** How often the delivery of a hook came. */
  deliveries?: number
  /** What expressions see beside the variables. Throws `invalid_state` when that is not there any more. */
  more?(): Promise<JsonObject>
  /** It does not start when the occasion came: it waited, or is caught up. */
  isLater?: boolean
  /** Starts whatever else runs. */
  force?: boolean
}

/** How many runs one transaction may queue for a trigger, which counts them: the quota of the realm has room for no more. */
export interface Allowance {
  queued: number
  most: number
  /** What is said of those that wait for the quota. */
  why: string
}

interface More {
  /** The firing that waited, or was refused and is judged once more. */
  known?: Firing
  /** Without one a run that is one too many is an error. */
  allowance?: Allowance
  /** Called after the firing is written. */
  recorded?(settled: Firing): Promise<void>
  /** Why the occasion starts nothing, whatever the trigger says of it. `variables`: all that expressions see. */
  forbids?(variables: JsonObject): Promise<Halt | null>
  /** Masks the secrets in what is said of it, and in the inputs of its run. */
  masked?<T extends Json>(value: T): Promise<T>
}

/**
 * Decides about an occasion and records it. Throws `conflict` for `another` of an occasion that has its run, and
 * `rate_limited` when the realm may have no more runs now, with which the transaction has to end; other errors are those of
 * the database.
 */
export async function fire(look: Look, occasion: Occasion, more: More = {}): Promise<Firing> {
  const { known, recorded, masked } = more
  const waits = known?.state === 'waiting' ? known : undefined
  const { hub, tx, trigger, now } = look
  const { another, occasion: family } = occasion
  const name = another ? anotherName(family, await familyIn(hub.store, tx, trigger.id, family), another) : family
  const firing: Firing = known ?? {
    ...{ id: Bun.randomUUIDv7(), trigger_id: trigger.id, revision: trigger.revision },
    ...{ occasion: name, at: occasion.at, until: null, seen_at: now, started_at: null },
    ...{ state: 'waiting', reason: null, detail: null, run_id: null, count: 1 },
    ...{ late_ms: occasion.late_ms, manual: occasion.manual, variables: occasion.variables },
    ...{ deliveries: occasion.deliveries ?? null, end_id: occasion.end_id ?? null },
  }
  // What nobody has judged may start nothing at all, and then holds no place of those that wait.
  const held = waits && !isUnjudged(waits) && (await haltNow(look, waits, more.allowance))
  if (held && !isWorthAWord(held, waits)) return waits
  const decided = held || (await decide(look, firing, occasion, { ...more, known: waits }))
  const detail = decided.detail && masked ? await masked(decided.detail) : decided.detail
  const settled = { ...firing, revision: trigger.revision, ...decided, detail }
  await tellOfFiring(look, settled)
  if (known) await settleFiring(hub.store, tx, settled, known.state)
  else await insertFiring(hub.store, tx, settled)
  await recorded?.(settled)
  await noteWhatItSays(look, settled)
  if (settled.state === 'waiting') await makeRoom(look, settled)
  return settled
}

/** What becomes of a firing, as the columns of its row. The run is queued. */
async function decide(
  look: Look,
  firing: Firing,
  occasion: Occasion,
  more: Omit<More, 'known'> & { known: Firing | undefined },
): Promise<Halt | Pick<Firing, 'state' | 'reason' | 'detail' | 'run_id' | 'started_at' | 'late_ms'>> {
  const { hub, tx, trigger, owner, now } = look
  const prepared = await prepare(look, occasion, more)
  if ('state' in prepared) return prepared
  const halt = occasion.force ? null : await haltNow(look, more.known, more.allowance)
  if (halt) return halt
  const { late_ms } = occasion
  const run = {
    ...{ ...prepared.planned, daemonId: null, once: null, action: 'triggers/fire' },
    caller: { token: { id: null, user: owner }, address: () => null },
    startedBy: kindOf(trigger).startedBy(
      trigger,
      { ...firing, late_ms, variables: prepared.variables },
      occasion.isLater ?? false,
    ),
  }
  const { job } = await queueRun(hub, tx, run)
  if (more.allowance) more.allowance.queued++
  return { state: 'started', reason: null, detail: null, run_id: job.run_id, started_at: now, late_ms }
}

/** The run of an occasion, or why it starts nothing. */
async function prepare(look: Look, { variables, more }: Occasion, { masked, forbids }: Omit<More, 'known'>) {
  const { hub, tx, trigger, realm, owner, mayStart } = look
  const { spec } = trigger
  if (!mayStart) return refused('owner', ownerText(owner.username))
  let all: JsonObject
  try {
    all = { ...variables, ...(await more?.()) }
  } catch (error) {
    if (!isLasting(error)) throw error
    return refused('internal', messageOf(error))
  }
  const forbidden = (await otherSpec(look)) ?? (await forbids?.(all))
  if (forbidden) return forbidden
  // The plan of the run says whether the inputs fit.
  const judged = judge(trigger, all, null)
  if ('state' in judged) return judged
  // A sender may write its secret into the body, as older Gitea does.
  const inputs = masked ? await masked(judged.inputs) : judged.inputs
  try {
    return { planned: await planRun(hub, tx, realm, { ...spec, inputs }), variables: all }
  } catch (error) {
    return refusedFor(error)
  }
}

const refused = (reason: Halt['reason'], detail: string): Halt => ({ state: 'refused', reason, detail })

/** Whether the version that would run says something else than what was enabled. */
async function otherSpec({ hub, tx, trigger, realm }: Look): Promise<Halt | null> {
  if (trigger.source === 'manual') return null
  try {
    const { name, version, triggers } = await listedPackage(hub, tx, realm, trigger.spec.team)
    return changedSince(trigger, { name, version, triggers: triggers ?? [] })
  } catch (error) {
    return refusedFor(error)
  }
}

function refusedFor(error: unknown): Halt {
  if (!(error instanceof CadreError) || error.code === 'unavailable') throw error
  const problems = error.details?.map(({ path, message }) => `${path.replace(/^\/(inputs\/)?/, '')}: ${message}`)
  return refused(
    error.code === 'invalid_request' ? 'inputs' : 'team',
    problems ? `${error.message}: ${problems.join('; ')}` : error.message,
  )
}

/** What keeps a firing from starting now. `known` waits already. */
async function haltNow(look: Look, known: Firing | undefined, allowance?: Allowance): Promise<Halt | null> {
  const { at_most } = look.trigger.spec
  const overlap = isFilled(known) ? 'queue' : look.trigger.spec.overlap
  const rule = { overlap, at_most }
  const halt = mayWait(rule) ? haltOf(rule, await factsFor(look, rule), known) : null
  if (halt || !allowance || allowance.queued < allowance.most) return halt
  return { state: 'waiting', reason: 'limit', detail: allowance.why }
}

async function factsFor(
  look: Look,
  { overlap, at_most: atMost }: Pick<Look['trigger']['spec'], 'overlap' | 'at_most'>,
): Promise<Facts> {
  const { hub, tx, trigger, now } = look
  const { store } = hub
  const { id } = trigger
  const [holder] = overlap === 'allow' ? [] : await openRuns(hub, tx, trigger)
  const [first = null] = await waitingOf(store, tx, id, 1)
  return {
    holder: holder ? await heldBy(look, holder.run_id) : null,
    first,
    waiting: atMost || first?.reason === 'limit' ? await countWaiting(store, tx, id) : 0,
    started: atMost ? await startedWithin(store, tx, id, now, parseDuration(atMost.per)!) : 0,
  }
}

/** Which run holds, and whom it waits for. */
async function heldBy({ hub, tx }: Look, runId: string): Promise<string> {
  const { reviews, runs } = hub.store
  const [asked] = await tx
    .select({ id: reviews.id, reviewers: reviews.reviewers, created_at: reviews.created_at })
    .from(reviews)
    .innerJoin(runs, eq(runs.run_id, reviews.run_id))
    .where(and(eq(runs.root_run_id, runId), eq(reviews.state, 'pending')))
    .orderBy(asc(reviews.created_at))
    .limit(1)
  const run = `run ${runId} has not ended`
  if (!asked) return run
  const { id, reviewers, created_at } = asked
  return `${run}: review ${id} asks ${reviewers.join(', ') || 'any'} since ${new Date(created_at).toISOString()}`
}

/** What a firing that waits does to others: older ones give way, and with `cancel_running` the runs before it end. */
async function makeRoom(look: Look, { reason, manual }: Firing): Promise<void> {
  const { hub, tx, trigger } = look
  const most = mostWaiting(trigger)
  const beyond = most === null ? [] : await waitingBeyond(hub.store, tx, trigger.id, most)
  for (const old of beyond) await settleFiring(hub.store, tx, superseded(old), old.state)
  const isCancelling = trigger.spec.overlap === 'cancel_running' && !isFilled({ manual })
  if (isCancelling && reason === 'overlap') await endBefore(look)
}

/** Asks the runs before to end, each once: a daemon takes a second order as one to leave out `always` phases. */
async function endBefore({ hub, tx, trigger, owner }: Look): Promise<void> {
  const { jobs } = hub.store
  for (const run of await openRuns(hub, tx, trigger)) {
    const orders = and(eq(jobs.run_id, run.run_id), eq(jobs.kind, 'cancel'))
    const [order] = await tx.select({ id: jobs.id }).from(jobs).where(orders).limit(1)
    if (!order) await requestCancel(hub, tx, run, owner.id, {})
  }
}
