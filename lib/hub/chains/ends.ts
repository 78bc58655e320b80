// Ends of top runs as occasions of the chains of their realm. The firings stand in the transaction that ends the runs, and
// wait for a hub that looks at them.

import { and, eq, inArray, notExists, sql } from 'drizzle-orm'
import { inParts, isAmong, prepared, type Slot } from '../../../db/hub/prepared.ts'
import type { Tables } from '../../../db/hub/schema.ts'
import type { Db, Store } from '../../../db/hub/store.ts'
import { type ChainSpec, type EndedRun, follows, occasionOf } from '../../firing/chain-kind.ts'
import { pausedText } from '../../firing/changes.ts'
import type { Firing, Trigger } from '../../firing/trigger.ts'
import type { JsonObject } from '../../json.ts'
import { type StartedBy, UNKNOWN_STARTER } from '../../wire/records/started-by.ts'
import { isUuid } from '../core/bodies.ts'
import { lastFoundAt, MAY_HAVE_STARTED } from '../core/found-copies.ts'
import type { Hub } from '../core/hub.ts'

type RunRow = Tables['runs']['$inferSelect']
/** A top run as it is now. */
export type RunNow = Pick<RunRow, 'run_id' | 'team' | 'version' | 'state' | 'attempt' | 'outputs' | 'error'> &
  Pick<RunRow, 'completed_at'>

/** A chain that is enabled, with what its row has of it. */
export interface Chain extends Pick<Trigger<ChainSpec>, 'id' | 'name' | 'spec' | 'revision' | 'paused'> {}

/** How many rows one statement writes: their values are its parameters. */
const MOST_ROWS = 500

/** The enabled chains of a realm: one look into an index that has nothing else. */
export async function enabledChains({ store }: Hub, tx: Db, realmId: string): Promise<Chain[]> {
  return (await chainsOf(store, tx, { realmId })) as Chain[]
}

const chainsOf = prepared(({ triggers }, db, slot: Slot<'realmId'>) => {
  const { id, name, spec, revision, paused } = triggers
  const isChain = sql`${triggers.kind} = 'chain' AND ${triggers.removed_at} IS NULL`
  return db
    .select({ id, name, spec, revision, paused })
    .from(triggers)
    .where(and(eq(triggers.realm_id, slot('realmId')), isChain, sql`${triggers.enabled}`))
})

/** Records the ends among runs that have changed, for each chain that follows them. An end that is known is left alone. */
export async function recordEnds(hub: Hub, tx: Db, realmId: string, runs: readonly RunNow[]): Promise<void> {
  const ended = runs.filter(({ completed_at }) => completed_at !== null)
  if (ended.length === 0) return
  const chains = await enabledChains(hub, tx, realmId)
  const followed = chains.flatMap(chain =>
    ended
      .filter(run => follows(chain.spec.own, run.team) && chain.spec.own.on.some(end => end === run.state))
      .map(run => ({ chain, run, occasion: occasionOf(chain.spec.own, run.run_id, run.attempt) })),
  )
  if (followed.length === 0) return
  const { store } = hub
  const known = await knownOccasions(store, tx, followed)
  const found = followed.filter(({ chain, occasion }) => !known.has(`${chain.id} ${occasion}`))
  const starters = await startersOf(hub, tx, new Set(found.map(({ run }) => run.run_id)))
  const copiedAt = (await lastFoundAt(store, tx, realmId)) ?? Number.NEGATIVE_INFINITY
  const now = hub.now()
  const ends = new Map<RunNow, number>()
  for (const run of new Set(found.map(each => each.run))) {
    ends.set(run, await keepEnd(store, tx, realmId, endedRun(run, starters.get(run.run_id) ?? null)))
  }
  const firings = found.map(({ chain, run, occasion }) =>
    firingOf(chain, run, { occasion, end_id: ends.get(run)!, isOld: run.completed_at! <= copiedAt, now }),
  )
  for (let at = 0; at < firings.length; at += MOST_ROWS) {
    await tx
      .insert(store.firings)
      .values(firings.slice(at, at + MOST_ROWS))
      .onConflictDoNothing()
  }
}

/** Those of these occasions that have a firing, as the id of the chain and the occasion. */
async function knownOccasions(
  store: Store,
  tx: Db,
  all: readonly { chain: Chain; occasion: string }[],
): Promise<Set<string>> {
  const { trigger_id, occasion } = store.firings
  const known = new Set<string>()
  const chains = JSON.stringify([...new Set(all.map(each => each.chain.id))])
  for (const part of inParts([...new Set(all.map(each => each.occasion))])) {
    const those = and(isAmong(store, trigger_id, chains), isAmong(store, occasion, part))
    for (const row of await tx.select({ trigger_id, occasion }).from(store.firings).where(those)) {
      known.add(`${row.trigger_id} ${row.occasion}`)
    }
  }
  return known
}

/** Writes how a run has ended. It may be resumed, or deleted, before its firings are looked at. */
async function keepEnd({ runEnds }: Store, tx: Db, realm_id: string, run: EndedRun): Promise<number> {
  const [added] = await tx.insert(runEnds).values({ realm_id, run }).returning({ id: runEnds.id })
  return added!.id
}

/** A run as it ended. */
export async function endWithId({ runEnds }: Store, tx: Db, id: number): Promise<JsonObject> {
  const [row] = await tx.select({ run: runEnds.run }).from(runEnds).where(eq(runEnds.id, id))
  return row!.run
}

/** Deletes those of these ends of which no firing is left. */
export async function deleteEnds({ runEnds, firings }: Store, tx: Db, ids: readonly number[]): Promise<void> {
  const left = tx.select({ one: sql`1` }).from(firings).where(eq(firings.end_id, runEnds.id))
  await tx.delete(runEnds).where(and(inArray(runEnds.id, ids), notExists(left)))
}

function firingOf(
  { id, revision, paused }: Chain,
  { completed_at }: RunNow,
  { occasion, end_id, isOld, now }: { occasion: string; end_id: number; isOld: boolean; now: number },
): Firing {
  const copy = isOld && { state: 'skipped' as const, reason: 'copy' as const, detail: MAY_HAVE_STARTED }
  const pause = paused && { state: 'skipped' as const, reason: 'paused' as const, detail: pausedText({ paused }) }
  return {
    ...{ id: Bun.randomUUIDv7(), trigger_id: id, revision, occasion },
    ...{ at: Math.min(completed_at ?? now, now), until: null, seen_at: now, started_at: null, run_id: null, count: 1 },
    ...{ late_ms: null, manual: null, variables: {}, end_id },
    ...(copy || pause || { state: 'waiting', reason: null, detail: null }),
  }
}

/** What started each of these runs, as the hub has it: a daemon that reports them says it only once. */
async function startersOf({ store }: Hub, tx: Db, ids: ReadonlySet<string>): Promise<Map<string, StartedBy | null>> {
  const starters = new Map<string, StartedBy | null>()
  // What a daemon says may name anything.
  for (const part of inParts([...ids].filter(isUuid))) {
    for (const { run_id, started_by } of await starterRows(store, tx, { ids: part })) starters.set(run_id, started_by)
  }
  return starters
}

const starterRows = prepared((store, db, slot: Slot<'ids'>) => {
  const { run_id, started_by } = store.runs
  return db
    .select({ run_id, started_by })
    .from(store.runs)
    .where(isAmong(store, run_id, slot('ids')))
})

/** What started a run; null where it is not kept. */
export const starterOf = async (hub: Hub, tx: Db, runId: string): Promise<StartedBy | null> =>
  (await startersOf(hub, tx, new Set([runId]))).get(runId) ?? null

/** A run as expressions of a chain see it. */
export const endedRun = (
  { run_id, team, version, state, outputs, error }: Omit<RunNow, 'attempt' | 'completed_at'>,
  starter: StartedBy | null,
): EndedRun => ({
  ...{ run_id, team, version: version ?? '', state, outputs, error },
  started_by: starter ?? UNKNOWN_STARTER,
})
