// The files of runs: which the daemons have reported, and which of them the store of `CADRE_ARTIFACTS` has. A file is
// recorded before a daemon gets the means to send it, so that everything in the store can be found and removed when its
// run is deleted, whoever is killed in between.

import { and, asc, eq, inArray, isNotNull, isNull, lt } from 'drizzle-orm'
import type { Static } from 'typebox'
import type { Tables } from '../../../db/hub/schema.ts'
import { afterCommit, type Db, type Store } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { sizeText } from '../../size.ts'
import type { OfferFile } from '../../wire/calls/hub-artifacts.ts'
import type { RealmCaller } from '../access/callers.ts'
import { awaitsApproval, type DaemonRow, findDaemon } from '../access/daemons.ts'
import { addBytes, countStoredFile } from '../access/quotas.ts'
import type { ArtifactStore } from '../core/artifact-store.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'
import { UPLOAD_URL_SECONDS } from './bucket.ts'

type KeptRow = Tables['keptFiles']['$inferSelect']
type Offered = Pick<Static<typeof OfferFile.body>, 'run_id' | 'sha256' | 'bytes'>

export type ReportedFile = Omit<Tables['artifacts']['$inferSelect'], 'run_id'>

/** A file is removed this much later than its URL ends, so that an upload that is under way leaves nothing behind. */
const SLACK_MS = 45 * 60_000
const BATCH = 100

/** The store. Throws `conflict` when this hub has none. */
export function storeOf({ artifacts }: Hub): ArtifactStore {
  if (artifacts) return artifacts
  throw new CadreError('conflict', 'this hub keeps no files of runs, because CADRE_ARTIFACTS is not set')
}

/**
 * The record of a file that this daemon may send, made if it is new. A file is taken only from a daemon that somebody
 * approved, and only if a phase of a run that it holds has recorded this content. Throws when the daemon may not send it.
 */
export async function admitFile(hub: Hub, caller: RealmCaller, daemon: DaemonRow, offered: Offered): Promise<KeptRow> {
  const { most } = storeOf(hub)
  const { keptFiles, runs } = hub.store
  const { run_id, sha256, bytes } = offered
  if (bytes > most) throw new CadreError('too_large', `this hub keeps files of at most ${sizeText(most)}`)
  return caller.write(async tx => {
    const held = and(eq(runs.run_id, run_id), eq(runs.daemon_id, daemon.id), eq(runs.realm_id, daemon.realm_id))
    const [run] = await tx.select({ root: runs.root_run_id }).from(runs).where(held)
    if (!run) throw new CadreError('not_found', `there is no run ${run_id} that this daemon holds`)
    if ((await findDaemon(hub, tx, daemon.id))?.approved_at == null) {
      throw new CadreError('forbidden', `the files of run ${run_id} wait for ${awaitsApproval(daemon.name)}`)
    }
    await refuseUnrecorded(hub, tx, offered)
    const one = and(eq(keptFiles.root_run_id, run.root), eq(keptFiles.sha256, sha256))
    const [known] = await tx.select().from(keptFiles).where(one)
    if (known && (known.bytes !== bytes || known.kept_for === null)) {
      throw new CadreError(
        'invalid_request',
        `the file ${sha256} of run ${run.root} is known with ${known.bytes} bytes`,
      )
    }
    if (known && known.stored_at !== null) return known
    if (!known) {
      await countStoredFile(hub, tx, daemon.realm_id, bytes)
      afterCommit(tx, () => hub.counts.files.add(1, { state: 'awaited' }))
    }
    const row = { realm_id: daemon.realm_id, root_run_id: run.root, sha256, bytes, kept_for: run.root }
    const asked = { asked_at: hub.lived() }
    await tx
      .insert(keptFiles)
      .values({ ...row, ...asked })
      .onConflictDoUpdate({ target: [keptFiles.root_run_id, keptFiles.sha256], set: asked })
    return { ...row, ...asked, stored_at: null }
  })
}

/** Throws unless a phase has recorded the content. The daemon may report it later, and then offers it again. */
async function refuseUnrecorded({ store }: Hub, tx: Db, { run_id, sha256, bytes }: Offered): Promise<void> {
  const { artifacts } = store
  const content = and(eq(artifacts.run_id, run_id), eq(artifacts.sha256, sha256), eq(artifacts.bytes, bytes))
  const [recorded] = await tx.select({ path: artifacts.path }).from(artifacts).where(content).limit(1)
  if (recorded) return
  throw new CadreError('conflict', `no phase of run ${run_id} has recorded a file ${sha256} of ${bytes} bytes`)
}

/** Records that the store has the file, if it does. */
export async function confirmStored(hub: Hub, caller: RealmCaller, file: KeptRow): Promise<boolean> {
  if (file.stored_at !== null) return true
  if (!(await storeOf(hub).has(file))) return false
  const { keptFiles } = hub.store
  const { root_run_id, sha256 } = file
  const one = and(eq(keptFiles.root_run_id, root_run_id), eq(keptFiles.sha256, sha256), isNull(keptFiles.stored_at))
  const stored = await caller.write(tx => tx.update(keptFiles).set({ stored_at: hub.now() }).where(one).returning())
  hub.counts.files.add(stored.length, { state: 'stored' })
  return true
}

/** The files that the phases of a run have recorded, by their paths. */
export async function reportedFiles({ store }: Hub, runId: string, at: { limit: number; offset: number }) {
  const { artifacts, db } = store
  const ofRun = eq(artifacts.run_id, runId)
  const files: ReportedFile[] = await db
    .select(COLUMNS(store))
    .from(artifacts)
    .where(ofRun)
    .orderBy(asc(artifacts.path))
    .limit(at.limit)
    .offset(at.offset)
  return { files, total: await countOf(db, artifacts, ofRun) }
}

/** The file with this path that a phase of the run has recorded. */
export async function reportedFile({ store }: Hub, runId: string, path: string): Promise<ReportedFile | undefined> {
  const { artifacts, db } = store
  const one = and(eq(artifacts.run_id, runId), eq(artifacts.path, path))
  return (await db.select(COLUMNS(store)).from(artifacts).where(one))[0]
}

const COLUMNS = ({ artifacts: { phase, name, path, bytes, sha256 } }: Store) => ({ phase, name, path, bytes, sha256 })

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
export async function* deleteFilesOfDeletedRuns(hub: Hub): AsyncGenerator<void> {
  const { artifacts: fileStore, store } = hub
  if (fileStore === null) return
  const { keptFiles } = store
  const before = hub.lived() - UPLOAD_URL_SECONDS * 1_000 - SLACK_MS
  for (;;) {
    const left = await store.db
      .select()
      .from(keptFiles)
      .where(and(isNull(keptFiles.kept_for), lt(keptFiles.asked_at, before)))
      .orderBy(asc(keptFiles.asked_at))
      .limit(BATCH)
    if (left.length === 0) return
    for (const file of left) {
      await fileStore.remove(file)
      yield
    }
    const gone = left.map(({ sha256 }) => sha256)
    const roots = left.map(({ root_run_id }) => root_run_id)
    const removed = and(
      isNull(keptFiles.kept_for),
      inArray(keptFiles.root_run_id, roots),
      inArray(keptFiles.sha256, gone),
      lt(keptFiles.asked_at, before),
    )
    await store.write(async tx => {
      const forgotten = await tx.delete(keptFiles).where(removed).returning()
      for (const { realm_id, bytes } of forgotten) await addBytes(hub, tx, realm_id, 'stored_bytes', -bytes)
      afterCommit(tx, () => hub.counts.files.add(forgotten.length, { state: 'removed' }))
    })
    yield
  }
}
