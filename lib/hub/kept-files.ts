// The files of runs: which the daemons have reported, and which of them the store of `CADRE_ARTIFACTS` has. A file is
// recorded before a daemon gets the means to send it, so that everything in the store can be found and removed when its
// run is deleted, whoever is killed in between.

import { and, asc, eq, inArray, isNotNull, isNull, lt } from 'drizzle-orm'
import type { Static } from 'typebox'
import type { Tables } from '../../db/hub/schema.ts'
import { CadreError } from '../error.ts'
import { matches } from '../schema.ts'
import { sizeText } from '../size.ts'
import { Type } from '../type.ts'
import { AnyText } from '../wire/parts.ts'
import type { OfferFile } from '../wire/protocol.ts'
import { type ArtifactStore, UPLOAD_URL_SECONDS } from './artifacts/artifacts.ts'
import type { RealmCaller } from './callers.ts'
import type { DaemonRow } from './daemons.ts'
import type { Hub } from './hub.ts'
import { refuseDispatched } from './sync.ts'

type KeptRow = Tables['keptFiles']['$inferSelect']
type Offered = Pick<Static<typeof OfferFile.body>, 'run_id' | 'sha256' | 'bytes'>

const FileRecord = Type.Object({ name: AnyText, path: AnyText, bytes: Type.Integer(), sha256: AnyText })
export type ReportedFile = Static<typeof FileRecord> & { phase: string }

/** A file is removed this much later than its URL ends, so that an upload that is under way leaves nothing behind. */
const SLACK_MS = 45 * 60_000
const BATCH = 100

/** The store. Throws `conflict` when this hub has none. */
export function storeOf({ artifacts }: Hub): ArtifactStore {
  if (artifacts) return artifacts
  throw new CadreError('conflict', 'this hub keeps no files of runs, because CADRE_ARTIFACTS is not set')
}

/** The record of a file that this daemon may send, made if it is new. Throws when the daemon may not send it. */
export async function admitFile(hub: Hub, caller: RealmCaller, daemon: DaemonRow, offered: Offered): Promise<KeptRow> {
  const { most } = storeOf(hub)
  const { keptFiles, runs } = hub.store
  const { run_id, sha256, bytes } = offered
  if (bytes > most) throw new CadreError('too_large', `this hub keeps files of at most ${sizeText(most)}`)
  return caller.write(async tx => {
    const held = and(eq(runs.run_id, run_id), eq(runs.daemon_id, daemon.id), eq(runs.realm_id, daemon.realm_id))
    const [run] = await tx.select({ root: runs.root_run_id }).from(runs).where(held)
    if (!run) throw new CadreError('not_found', `there is no run ${run_id} that this daemon holds`)
    if (daemon.approved_at === null) await refuseDispatched(hub, tx, daemon, run.root)
    const one = and(eq(keptFiles.root_run_id, run.root), eq(keptFiles.sha256, sha256))
    const [known] = await tx.select().from(keptFiles).where(one)
    if (known && (known.bytes !== bytes || known.kept_for === null)) {
      throw new CadreError(
        'invalid_request',
        `the file ${sha256} of run ${run.root} is known with ${known.bytes} bytes`,
      )
    }
    if (known && known.stored_at !== null) return known
    const row = { realm_id: daemon.realm_id, root_run_id: run.root, sha256, bytes, kept_for: run.root }
    const asked = { asked_at: hub.now() }
    await tx
      .insert(keptFiles)
      .values({ ...row, ...asked })
      .onConflictDoUpdate({ target: [keptFiles.root_run_id, keptFiles.sha256], set: asked })
    return { ...row, ...asked, stored_at: null }
  })
}

/** Records that the store has the file, if it does. */
export async function settleFile(hub: Hub, caller: RealmCaller, file: KeptRow): Promise<boolean> {
  if (file.stored_at !== null) return true
  if (!(await storeOf(hub).has(file))) return false
  const { keptFiles } = hub.store
  const one = and(eq(keptFiles.root_run_id, file.root_run_id), eq(keptFiles.sha256, file.sha256))
  await caller.write(tx => tx.update(keptFiles).set({ stored_at: hub.now() }).where(one))
  return true
}

/** The files that the phases of a run have recorded, by their paths. */
export async function reportedFiles({ store }: Hub, runId: string): Promise<ReportedFile[]> {
  const { artifacts, phases, db } = store
  const reported = await db
    .select({ name: phases.name, files: phases.files })
    .from(phases)
    .where(eq(phases.run_id, runId))
  // What a phase reports now comes before what was reported of it file by file.
  const whole = new Set(reported.filter(({ files }) => files.length > 0).map(({ name }) => name))
  const single = await db.select().from(artifacts).where(eq(artifacts.run_id, runId))
  const found = [
    ...reported.flatMap(({ name: phase, files }) =>
      files.flatMap(file => (matches(FileRecord, file) ? { ...file, phase } : [])),
    ),
    ...single.filter(({ phase }) => !whole.has(phase)),
  ]
  return found
    .map(({ phase, name, path, bytes, sha256 }) => ({ phase, name, path, bytes, sha256 }))
    .sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Those of `files` that the store has, by their SHA-256. */
export async function storedOf({ artifacts, store }: Hub, rootId: string, files: ReportedFile[]): Promise<Set<string>> {
  const { keptFiles, db } = store
  const wanted = artifacts === null ? [] : [...new Set(files.map(({ sha256 }) => sha256))]
  const stored = new Set<string>()
  for (let i = 0; i < wanted.length; i += 500) {
    const some = inArray(keptFiles.sha256, wanted.slice(i, i + 500))
    const there = and(eq(keptFiles.root_run_id, rootId), some, isNotNull(keptFiles.stored_at))
    for (const { sha256 } of await db.select({ sha256: keptFiles.sha256 }).from(keptFiles).where(there)) {
      stored.add(sha256)
    }
  }
  return stored
}

/** Removes the files of runs that were deleted. */
export async function removeLeftFiles(hub: Hub): Promise<void> {
  const { artifacts: place, store } = hub
  if (place === null) return
  const { keptFiles } = store
  const before = hub.now() - UPLOAD_URL_SECONDS * 1_000 - SLACK_MS
  for (;;) {
    const left = await store.db
      .select()
      .from(keptFiles)
      .where(and(isNull(keptFiles.kept_for), lt(keptFiles.asked_at, before)))
      .orderBy(asc(keptFiles.asked_at))
      .limit(BATCH)
    if (left.length === 0) break
    for (const file of left) await place.remove(file)
    const gone = left.map(({ sha256 }) => sha256)
    const roots = left.map(({ root_run_id }) => root_run_id)
    const removed = and(
      isNull(keptFiles.kept_for),
      inArray(keptFiles.root_run_id, roots),
      inArray(keptFiles.sha256, gone),
      lt(keptFiles.asked_at, before),
    )
    await store.write(tx => tx.delete(keptFiles).where(removed))
  }
  await place.tidy()
}
