// The phases of a run as people read them: rows that are small, and beside them as much of their texts and data as a
// reply holds. Whoever asks for one phase gets the whole of it.

import { and, asc, eq } from 'drizzle-orm'
import type { Static } from 'typebox'
import type { Db, Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { fitting, jsonBytes, REPLY_BYTES, within } from '../../wire/budget.ts'
import type { PhasesView } from '../../wire/records/run-records.ts'
import type { Hub } from '../core/hub.ts'
import { largeValuesOf, ownerOf } from './large-values.ts'
import { type ReportedRun, subRuns } from './runs.ts'

/** Files and sub-runs that are read of a run for one reply; few of them have more than 200 bytes. */
const MOST_ROWS = 10_000

/** The rows of the phases of a run, in file order, with their files: what is large is not in them. */
export async function phaseHeads(store: Store, db: Db, runId: string, phase?: string) {
  const { phases, artifacts } = store
  const ofRun = and(eq(phases.run_id, runId), phase === undefined ? undefined : eq(phases.name, phase))
  const rows = await db.select().from(phases).where(ofRun).orderBy(phases.index)
  if (rows.length === 0) return []
  const { path, name, bytes, sha256 } = artifacts
  const files = await db
    .select({ phase: artifacts.phase, name, path, bytes, sha256 })
    .from(artifacts)
    .where(and(eq(artifacts.run_id, runId), phase === undefined ? undefined : eq(artifacts.phase, phase)))
    .orderBy(asc(path))
    .limit(MOST_ROWS)
  const filesOf = Map.groupBy(within(files, jsonBytes, REPLY_BYTES / 4), file => file.phase)
  return rows.map(row => ({
    ...row,
    turns: row.turns ?? [],
    files: (filesOf.get(row.name) ?? []).map(({ phase: _, ...file }) => file),
  }))
}

type Head = Awaited<ReturnType<typeof phaseHeads>>[number]

type Phase = Static<typeof PhasesView>['phases'][number]

/** The columns that a reply leaves out when it has no room for them. */
const RESULT = ['data', 'text'] as const

/** The phases of `run`, or with `phase` the one of this name. Throws `not_found` when there is none. */
export async function runPhases(hub: Hub, run: ReportedRun, phase?: string): Promise<Phase[]> {
  const { store } = hub
  const heads = await phaseHeads(store, store.db, run.run_id, phase)
  if (phase !== undefined && heads.length === 0) {
    throw new CadreError('not_found', `run ${run.run_id} has no phase ${phase}`)
  }
  const below = await subRunsBelow(hub, run)
  const lastIndex = below.last === null ? Number.POSITIVE_INFINITY : heads.findIndex(({ name }) => name === below.last)
  const sizes = heads.flatMap(head => RESULT.map(name => head.beside?.[name] ?? jsonBytes(head[name])))
  const rest = heads.reduce((sum, { data: _, text: __, ...head }) => sum + jsonBytes(head) + restOf(head), 0)
  const fits = phase === undefined ? fitting(sizes, REPLY_BYTES - rest - below.bytes) : sizes.map(() => true)
  const readsRest = phase !== undefined || rest < REPLY_BYTES
  const wanted = heads.map(({ index, beside }, at) => {
    const isRead = (name: string) => {
      const place = RESULT.indexOf(name as 'data')
      return place === -1 ? readsRest : fits[at * RESULT.length + place]!
    }
    return { owner: ownerOf.phase(index), names: Object.keys(beside ?? {}).filter(isRead) }
  })
  const values = await largeValuesOf(store, store.db, run.run_id, wanted)
  return heads.map(({ run_id: _, index: __, beside: ___, ...head }, at) => {
    // Only its daemon knows what a phase waits for.
    const found = { ...head, waiting: null, ...values[at] } as Omit<Phase, 'sub_runs'>
    const left = RESULT.filter((_, place) => !fits[at * RESULT.length + place])
    const absent = left.flatMap(name => [
      [name, null],
      [`${name}_bytes`, sizes[at * RESULT.length + RESULT.indexOf(name)]],
    ])
    return {
      ...found,
      ...Object.fromEntries(absent),
      sub_runs: below.of(head.name),
      ...(at >= lastIndex && { sub_runs_more: true }),
    }
  })
}

/** The bytes that lie beside a phase apart from its result. */
function restOf({ beside }: Pick<Head, 'beside'>): number {
  const names = Object.keys(beside ?? {}).filter(name => !(RESULT as readonly string[]).includes(name))
  return names.reduce((sum, name) => sum + beside![name]!, 0)
}

/** The runs that each phase started, as many as there is room for. They come in the order of the phases. */
async function subRunsBelow(hub: Hub, run: ReportedRun) {
  const all = await subRuns(hub.store, run, hub.lived()).limit(MOST_ROWS + 1)
  const shown = within(all, jsonBytes, REPLY_BYTES / 4)
  const byPhase = Map.groupBy(shown, each => each.parent_phase)
  return {
    bytes: jsonBytes(shown),
    of: (phase: string): Phase['sub_runs'] =>
      (byPhase.get(phase) ?? []).map(({ run_id, run_name, state }) => ({ run_id, run_name, state })),
    /** The phase at which there was no more room. */
    last: shown.length < all.length ? shown.at(-1)!.parent_phase : null,
  }
}
