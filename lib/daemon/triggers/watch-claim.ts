// Files that a watch moves away before their run begins, so that it alone has them. Each step can be repeated: the claim
// is recorded first, and a kill in between leaves files that the next look takes on to the run, or back.

import { link, lstat, mkdir, open, realpath, rename, rmdir, unlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { CadreError } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'
import { filesIn } from '../../firing/watch-kind.ts'
import type { JsonObject } from '../../json.ts'
import { CLAIMED } from '../../triggers/watch/match.ts'
import { isGone, isStill, statOf, type WatchedFile } from '../../triggers/watch/scan.ts'
import type { Home } from './at-home.ts'
import type { Claim, ClaimedFile } from './watch-table.ts'

/** Where files of the folder `root` go for a run. */
export function claimFor(root: string, runId: string, files: readonly WatchedFile[]): ClaimedFile[] {
  return files.map(({ path, bytes, mtime }) => {
    const parts = relative(root, path).split('/')
    // A file of an earlier run keeps its place in the folder of the next one.
    const place = parts[0] === CLAIMED ? parts.slice(2) : parts
    return { from: path, to: join(root, CLAIMED, runId, ...place), bytes, mtime }
  })
}

/** Claims whose files are being moved: whoever comes meanwhile waits for the same. */
const taking = new Map<string, Promise<string | null>>()

/** Moves the files of a claim. Returns what is said of one that is gone; null when the run has all of them. */
export function takeFiles({ firing_id, files }: Pick<Claim, 'firing_id' | 'files'>): Promise<string | null> {
  const known = taking.get(firing_id)
  if (known) return known
  const moving = moveAll(files).finally(() => taking.delete(firing_id))
  taking.set(firing_id, moving)
  return moving
}

async function moveAll(files: readonly ClaimedFile[]): Promise<string | null> {
  for (const file of files) {
    const { from, to } = file
    failpoint()
    if ((await statOf(to)) !== null) continue
    const now = (await isInPlace(dirname(from))) ? await statOf(from) : null
    if (now === null) return `${from} is gone`
    if (!isStill(now, file)) return `${from} has changed since it was reported`
    await mkdir(dirname(to), { recursive: true })
    if (!(await isInPlace(dirname(to)))) throw new CadreError('unavailable', `${dirname(to)} leads elsewhere by a link`)
    failpoint()
    try {
      await rename(from, to)
    } catch (error) {
      if (isGone(error)) return `${from} is gone`
      throw error
    }
    failpoint()
    if ((await statOf(to)) !== now) return `${from} has changed since it was reported`
  }
  for (const folder of new Set(files.map(({ to }) => dirname(to)))) await sync(folder)
  return null
}

/** Moves files back of which the firing started nothing, and records that. */
export async function giveBack({ daemon, tables }: Home, { firing_id, files }: Claim): Promise<void> {
  await taking.get(firing_id)?.catch(() => {})
  for (const file of files) {
    failpoint()
    if (await moveBack(file)) continue
    daemon.log.warn('a claimed file stays where it is, because there is another one in its place', { ...file })
  }
  for (const folder of new Set(files.map(({ to }) => dirname(to)))) await rmdir(folder).catch(() => {})
  await daemon.engine.commit(() => {
    const { firings, watches } = tables
    const firing = firings.get(firing_id)
    if (firing) firings.settle({ ...firing, variables: unclaimed(firing.variables, files) }, firing.state)
    watches.unclaim(firing_id)
  })
}

/** The variables of a firing with its files in their own places again. */
function unclaimed(variables: JsonObject, claimed: readonly ClaimedFile[]): JsonObject {
  const from = new Map(claimed.map(file => [file.to, file.from]))
  return { ...variables, files: filesIn(variables).map(file => ({ ...file, path: from.get(file.path) ?? file.path })) }
}

/** False when something else is in its place. A link is made first, because a rename would replace that. */
async function moveBack({ from, to }: ClaimedFile): Promise<boolean> {
  if ((await statOf(to)) === null) return true
  try {
    await mkdir(dirname(from), { recursive: true })
    await link(to, from)
  } catch {
    const there = await inodeOf(from)
    if (there !== null && there !== (await inodeOf(to))) return false
    if (there === null) {
      // This disk has no links.
      await rename(to, from)
      return true
    }
  }
  failpoint()
  await unlink(to)
  return true
}

const inodeOf = (path: string): Promise<bigint | null> =>
  lstat(path, { bigint: true }).then(
    ({ ino }) => ino,
    () => null,
  )

/** Whether no part of the path of a folder is a link. */
async function isInPlace(folder: string): Promise<boolean> {
  try {
    return (await realpath(folder)) === folder
  } catch (error) {
    if (isGone(error)) return false
    throw error
  }
}

async function sync(folder: string): Promise<void> {
  await using opened = await open(folder)
  await opened.sync()
}
