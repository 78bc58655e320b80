// Why a run ended as it did, or what it waits for. A daemon explains its own runs, and the hub hands that on. The hub
// explains what only it knows (the queue, a silent daemon) and the runs of older daemons, which explain nothing. It has no
// definitions of teams: the error of a failed run names where the failure began, and what failed in a run that has
// completed was passed over.

import { and, asc, desc, eq, inArray } from 'drizzle-orm'
import { isObject, type Json } from '../../json.ts'
import { matches } from '../../schema/schema.ts'
import { Uuid } from '../../wire/parts.ts'
import { SAID, sayMore } from '../../wire/records/failed-line.ts'
import { DeliveryRecord, type Explanation, RunError, type Why } from '../../wire/records/run-records.ts'
import { approvalText } from '../../wire/records/words.ts'
import { ENDED_RUN_STATES, TREE_KEY_STEP } from '../../wire/states.ts'
import { explain, withStarter } from '../../wire/why/explain.ts'
import { NOTHING_BELOW, type PhaseFacts, type RunFacts } from '../../wire/why/facts.ts'
import { withCommandsOfNow } from '../../wire/why/next-commands.ts'
import type { Hub } from '../core/hub.ts'
import { readLinesAfter } from '../reports/log-lines.ts'
import { runPhases } from '../reports/phases.ts'
import { type ReportedRun, shownRun, starterOfRow, subRuns, wholeRecord } from '../reports/runs.ts'
import { isBelow } from '../reports/tree-order.ts'
import { turnOfJob } from './asked.ts'

interface Found {
  row: ReportedRun
  /** The state that is shown. */
  state: string
}

/** How many sub-runs are followed. */
const DEEPEST = 50

export async function whyOf(hub: Hub, found: Found): Promise<Why> {
  const { store } = hub
  const { row } = found
  const reported = await reportedBy(hub, found)
  const explanation = reported
    ? { ...reported, next: await commandsOf(hub, row, reported.next) }
    : await explainedHere(hub, found)
  const root = row.run_id === row.root_run_id ? found : await runOf(hub, row.root_run_id)
  const hasLines = async (runId: string, phase: string) => sayMore(await readLinesAfter(store, runId, 0, SAID, phase))
  const explained = await withCommandsOfNow({ ...explanation, run_id: row.run_id }, root?.state ?? row.state, hasLines)
  const now = withStarter(explained, starterOfRow(row))
  return { ...now, text: now.lines.join('\n') }
}

/** The explanation of the daemon, unless the run has gone on since. */
async function reportedBy({ store }: Hub, { row, state }: Found): Promise<Explanation | null> {
  const { explanations, db } = store
  if (state !== row.state) return null
  const [stored] = await db.select().from(explanations).where(eq(explanations.run_id, row.run_id))
  return stored && stored.attempt === row.attempt && stored.state === row.state ? stored.why : null
}

/** How many commands of an explanation are passed on. A daemon names fewer. */
const MOST_COMMANDS = 16
const PHASE = /^[a-z][a-z0-9_-]{0,199}$/

/**
 * The commands of `next` that a hub takes. A daemon may have reported anything, and people paste these lines: only commands
 * of the known forms are passed on, and only about runs and reviews of this tree.
 */
async function commandsOf(
  { store }: Hub,
  { root_run_id }: ReportedRun,
  next: readonly string[][],
): Promise<string[][]> {
  const known = next.slice(0, MOST_COMMANDS).filter(isForHubs)
  const ids = known.flatMap(([, id]) => (matches(Uuid, id) ? [id] : []))
  if (ids.length === 0) return known.filter(([, id]) => id === undefined)
  const { runs, reviews, db } = store
  const ofTree = eq(runs.root_run_id, root_run_id)
  const inTree = await db
    .select({ id: runs.run_id })
    .from(runs)
    .where(and(inArray(runs.run_id, ids), ofTree))
  const asked = await db
    .select({ id: reviews.id })
    .from(reviews)
    .innerJoin(runs, eq(runs.run_id, reviews.run_id))
    .where(and(inArray(reviews.id, ids), ofTree))
  const found = { run: new Set(inTree.map(({ id }) => id)), review: new Set(asked.map(({ id }) => id)) }
  return known.filter(([word, id]) => id === undefined || found[word === 'decide' ? 'review' : 'run'].has(id))
}

function isForHubs(args: readonly string[]): boolean {
  const [word = '', id, flag, name] = args
  if (word === 'reviews') return args.length === 1
  if (id === undefined) return false
  if (['show', 'tree', 'logs', 'why', 'watch', 'cancel', 'resume', 'decide'].includes(word) && args.length === 2)
    return true
  if (args.length === 3 && flag === { resume: '--outputs', tree: '--failed' }[word]) return true
  const named = { logs: '--phase', resume: '--from' }[word]
  return args.length === 4 && named !== undefined && flag === named && PHASE.test(name!)
}

async function explainedHere(hub: Hub, found: Found): Promise<Explanation> {
  const { row, state } = found
  const leafId = errorOf(row.error)?.run_id
  const leaf = leafId === undefined || leafId === row.run_id ? null : await runOf(hub, leafId)
  const chain: [RunFacts, ...RunFacts[]] = [await factsOf(hub, found, leaf)]
  let last = found
  for (let facts = chain[0]; facts.cause !== null && facts.cause.type !== 'standard' && chain.length < DEEPEST; ) {
    const next = await decidingBelow(hub, last.row, facts.cause, leaf)
    if (!next) break
    facts = await factsOf(hub, next, leaf)
    chain.push(facts)
    last = next
  }
  const began = row.daemon_id !== null
  const isKnown = (!began || ENDED_RUN_STATES.includes(row.state)) && !(await hasWritten(hub, row))
  return explain({
    root_run_id: row.root_run_id,
    chain,
    written: isKnown ? [] : null,
    unasked: [],
    mayAsk: false,
    review: state === 'awaiting_input' ? await reviewOf(hub, last.row) : null,
    holder: null,
    unfilled: null,
    below: NOTHING_BELOW,
    began,
  })
}

async function factsOf(hub: Hub, found: Found, leaf: Found | null): Promise<RunFacts> {
  const { row, state } = found
  const { deliveries } = await wholeRecord(hub.store, found)
  const phases = (await runPhases(hub, row)).map(({ error, data, ...phase }): PhaseFacts => {
    const { total, failed } = isObject(data) ? data : {}
    const isCounted =
      phase.type === 'map' && phase.state === 'completed' && typeof total === 'number' && typeof failed === 'number'
    const items = isCounted ? { total, failed, causes: [] } : null
    return {
      ...phase,
      error: errorOf(error),
      tolerated: state === 'completed',
      cleanup: false,
      waiting: null,
      turn: null,
      items,
    }
  })
  const error = errorOf(row.error)
  const onTheWay = leaf && (await towards(hub, row, leaf.row))
  const named = error?.run_id === row.run_id ? error.phase : onTheWay?.row.parent_phase
  const inState = ['failed', 'awaiting_input', 'running'].includes(state)
    ? phases.filter(each => each.state === state)
    : []
  return {
    ...{ run_id: row.run_id, run_name: row.run_name, team: row.team, call_depth: row.call_depth, state },
    environment: row.environment,
    ...{ reason: row.reason, error, phases },
    ...{ started_at: row.started_at, completed_at: row.completed_at, lived_ms: row.lived_ms },
    cause: inState.find(({ name }) => name === named) ?? inState[0] ?? null,
    turn: state === 'queued' ? await turnOf(hub, row) : state === 'awaiting_input' ? await approvalOf(hub, row) : null,
    deliveries: deliveries.filter(each => matches(DeliveryRecord, each)),
  }
}

const runOf = (hub: Hub, runId: string): Promise<Found | null> => shownRun(hub, eq(hub.store.runs.run_id, runId))

const errorOf = (error: Json): RunError | null => (matches(RunError, error) ? error : null)

/** What the job of a run waits for. */
async function turnOf(hub: Hub, { run_id }: ReportedRun): Promise<string | null> {
  const { jobs, db } = hub.store
  const [job] = await db.select().from(jobs).where(eq(jobs.run_id, run_id)).orderBy(desc(jobs.created_at)).limit(1)
  return job ? turnOfJob(hub, job) : null
}

/** The approval that a run waits for before it begins; null when it waits for something else. */
async function approvalOf({ store }: Hub, { run_id }: ReportedRun): Promise<string | null> {
  const { reviews, db } = store
  const asked = and(eq(reviews.run_id, run_id), eq(reviews.kind, 'start'), eq(reviews.state, 'pending'))
  const [review] = await db.select({ reviewers: reviews.reviewers }).from(reviews).where(asked).limit(1)
  return review ? approvalText(review.reviewers) : null
}

/** The run directly below `above` on the way to the leaf. */
async function towards(hub: Hub, above: ReportedRun, leaf: ReportedRun): Promise<Found | null> {
  if (!leaf.tree_key.startsWith(above.tree_key) || leaf.tree_key === above.tree_key) return null
  const key = leaf.tree_key.slice(0, above.tree_key.length + TREE_KEY_STEP)
  const { runs } = hub.store
  return shownRun(hub, and(eq(runs.root_run_id, above.root_run_id), eq(runs.tree_key, key))!)
}

/** The sub-run that is the reason why a phase failed or waits. */
async function decidingBelow(
  hub: Hub,
  above: ReportedRun,
  cause: PhaseFacts,
  leaf: Found | null,
): Promise<Found | null> {
  const onTheWay = leaf && (await towards(hub, above, leaf.row))
  if (onTheWay?.row.parent_phase === cause.name) return onTheWay
  const states = cause.state === 'failed' ? ['failed', 'cancelled'] : [cause.state]
  const all = await subRuns(hub.store, above, hub.lived())
  const first = all.find(each => each.parent_phase === cause.name && states.includes(each.state))
  return first ? runOf(hub, first.run_id) : null
}

async function reviewOf({ store }: Hub, { run_id }: ReportedRun): Promise<string | null> {
  const { reviews, db } = store
  const open = and(eq(reviews.run_id, run_id), eq(reviews.state, 'pending'))
  const [review] = await db
    .select({ id: reviews.id })
    .from(reviews)
    .where(open)
    .orderBy(asc(reviews.created_at))
    .limit(1)
  return review?.id ?? null
}

/** Whether a write of the run, or of a run below it, was reported. */
async function hasWritten({ store }: Hub, { root_run_id, tree_key }: ReportedRun): Promise<boolean> {
  const { receipts, runs, db } = store
  const some = await db
    .select({ id: receipts.run_id })
    .from(receipts)
    .innerJoin(runs, eq(runs.run_id, receipts.run_id))
    .where(and(eq(runs.root_run_id, root_run_id), isBelow(store, tree_key, true)))
    .limit(1)
  return some.length > 0
}
