// What an engine does with the rows of the process before it: the state of outside writes and files is settled once,
// then each tree that has not ended is read and continued.

import { bootId } from '../program/process.ts'
import { restoreSmallFiles } from './files/files.ts'
import { type EngineOptions, type Parts, WRITTEN_FACT } from './parts.ts'
import { continueTree, doubtSent, textOf } from './steps/steps.ts'

/** Called once, before anything is started. */
export async function openHome(parts: Parts, options: EngineOptions): Promise<void> {
  const { bootClock, disk, journal, looks, machine, smallFileSync, store } = parts
  await disk.measure()
  disk.watch()
  await restoreFiles(parts, options)
  const now = { boot: bootClock.boot, at: bootClock.now() }
  await journal.write({ root: null, apply: () => doubtSent(machine, now) })
  // Removes the secrets of runs that were being started or resumed when the process ended.
  const { secrets } = options
  const left = secrets.kept().filter(id => store.runs.get(id)?.settled !== 0)
  await Promise.all(left.map(id => secrets.forget(id)))
  smallFileSync.start()
  looks.start()
}

/**
 * Restores small files that the process before had not written, or that the file system lost. The file system loses
 * what was written only when the machine is rebooted.
 */
async function restoreFiles(
  { behind, journal, runFolders, sealer, store }: Parts,
  { log }: EngineOptions,
): Promise<void> {
  const boot = bootId()
  const isSameBoot = store.facts.get('boot') === boot
  await restoreSmallFiles(store.db, {
    stateDirOf: runId => runFolders.stateDir(runId),
    open: (label, sealed) => sealer.open(label, sealed),
    log,
    after: isSameBoot ? Number(store.facts.get(WRITTEN_FACT) ?? 0) : 0,
    failed: ({ seq, run_id, path, bytes }) =>
      behind.adopt(store.runs.get(run_id)!.root_id, run_id, { path, bytes }, seq),
  })
  if (!isSameBoot) await journal.write({ root: null, apply: () => store.facts.set('boot', boot) })
}

/** Continues the wanted trees that have not ended. A tree that cannot be read ends as `failed`; the others continue. */
export async function continueTrees(
  { afterRun, dueTimer, journal, machine, messenger, store }: Parts,
  { log }: EngineOptions,
  isWantedRoot: (rootId: string) => boolean,
): Promise<void> {
  const roots = store.runs.openRoots().filter(({ id }) => isWantedRoot(id))
  for (const { id, state } of roots) if (state === 'queued') machine.queued.add(id)
  await Promise.all(
    roots.map(({ id }) =>
      journal
        .write({ root: id, apply: () => continueTree(machine, id) })
        .catch(error => log.error('a run cannot be continued', { run: id, error: textOf(error) })),
    ),
  )
  const isWanted = (runId: string) => isWantedRoot(store.runs.get(runId)!.root_id)
  for (const runId of store.deliveries.runsWithPending()) if (isWanted(runId)) messenger.send(runId)
  for (const id of store.runs.unsettled()) if (isWanted(id)) afterRun.completeEnd(id, id, false)
  for (const { id, root_id } of store.runs.withOpenLog()) if (isWanted(id)) afterRun.completeEnd(id, root_id, false)
  dueTimer.wakeAt(machine.world.lived())
}
