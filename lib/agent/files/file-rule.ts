// The rule for files: which paths a run may name. `files/…` is in the run's state folder, any other path in its
// workspace, and an absolute path names a file of a run of the same tree. Other places, and everything else in the home,
// are only for runs that were started on this machine from a path. Links are resolved before a path is judged.

import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { AgentError } from '../core/agent-error.ts'

export interface FileScope {
  stateDir: string
  workspace: string
  /**
   * Whether absolute paths and paths outside the workspace are allowed. True only for runs that were started on this
   * machine from a path.
   */
  outside: boolean
  /** Further files that may be named, as they are written: those that somebody who may name any has given to a package. */
  given?: ReadonlySet<string> | undefined
  /**
   * Whether a run belongs to the same tree. The files of such a run may be named by absolute path, as inputs of type
   * `file` are.
   */
  sameTree?: ((runId: string) => boolean) | undefined
  /** Where a file that is not in the workspace may lie. Null for a package. */
  teamFolder?: TeamFolder | null | undefined
}

/** The folder of a team.yml, and whether it is that of the top run, whose workspace all teams below share. */
export interface TeamFolder {
  path: string
  isTop: boolean
}

/** Where a path leads by its text: `root` is the folder that it must not leave; null when it may lead anywhere. */
interface Spot {
  full: string
  root: string | null
  ofRun: boolean
}

/** `whole`: the path may be written as an absolute one although it lies in the workspace. Null: it lies outside. */
function spotOf(path: string, scope: FileScope, whole = false): Spot | null {
  const { stateDir, workspace } = scope
  const outside = scope.outside || scope.given?.has(path) === true
  if (path.includes('\0')) return null
  const own = path.startsWith('files/')
  const lent = folderOfTree(path, scope)
  const full = resolve(own ? stateDir : workspace, path)
  const root = own ? join(stateDir, 'files') : (lent ?? (outside ? null : workspace))
  if (root !== null && !within(full, root)) return null
  if (root === workspace && isAbsolute(path) && !whole) return null
  return { full, root, ofRun: own || lent !== null }
}

/** Whether both, with links resolved, leave the rule intact. A workspace may contain the home, but does not lend it. */
function isInside(real: string, realRoot: string, { stateDir }: FileScope): boolean {
  const home = dirname(dirname(stateDir))
  return within(real, realRoot) && (within(realRoot, home) || !within(real, home))
}

/** The real path of an existing file or folder. Throws an AgentError when it is missing or lies outside. */
export async function locate(path: string, scope: FileScope): Promise<string> {
  const spot = spotOf(path, scope)
  if (!spot) throw refused(path)
  const { full, root, ofRun } = spot
  try {
    const [real, realRoot] = await Promise.all([realpath(full), root && realpath(root)])
    if (realRoot !== null && !isInside(real, realRoot, scope)) throw refused(path)
    return real
  } catch (error) {
    if (error instanceof AgentError) throw error
    throw new AgentError(`${path} does not exist`, {
      code: 'not_found',
      hint: ofRun ? 'check that `depends_on` lists the phase that writes it' : whereLooked(path, scope),
      cause: error,
    })
  }
}

/** Where a path of the workspace was looked for, and how the run finds it if it lies beside team.yml. */
export function whereLooked(
  path: string,
  { workspace, teamFolder }: Pick<FileScope, 'workspace' | 'teamFolder'>,
): string {
  const looked = `looked in ${workspace}`
  if (!teamFolder || isAbsolute(path) || !existsSync(join(teamFolder.path, path))) return looked
  return teamFolder.isTop
    ? `${looked}; a file of this name lies beside team.yml: run with --workspace ${teamFolder.path}`
    : `${looked}, which all teams of a run share; put the file there that lies beside this team.yml, in ${teamFolder.path}`
}

/** The absolute path for a command, which opens it by itself. It may name a file that is not there yet. */
export function wholePath(path: string, scope: FileScope): string {
  const spot = spotOf(path, scope, true)
  if (!spot) throw refused(path)
  if (spot.root !== null && !isInside(realNow(spot.full), realNow(spot.root), scope)) throw refused(path)
  return spot.full
}

/**
 * A path that a run begins with, as it is recorded: with the links in it resolved, so that it means the same place for
 * as long as the run lives. It may name a file that is not there yet.
 */
export function settledPath(path: string, scope: FileScope): string {
  const spot = spotOf(path, scope)
  if (!spot) throw refused(path)
  const [real, root] = [realNow(spot.full), realNow(spot.root ?? scope.workspace)]
  if (spot.root !== null && !isInside(real, root, scope)) throw refused(path)
  const plain = spot.ofRun ? scope.stateDir : scope.workspace
  if (real === resolve(realNow(plain), path)) return path
  // A sandbox shows this file only for as long as no link is on the way to it.
  if (!within(real, root)) return real
  const inside = relative(root, real)
  return spot.ofRun ? `files/${inside}` : inside.startsWith(`files${sep}`) ? `./${inside}` : inside
}

/** A path that a run hands to one below it, where `files/…` means other files. Judged by its text alone. */
export function handedPath(path: string, scope: FileScope): string {
  const spot = spotOf(path, scope)
  if (!spot) throw refused(path)
  return spot.ofRun ? spot.full : path
}

/** The `files` folder of another run of the tree, if `path` is absolute and lies in it. */
function folderOfTree(path: string, { stateDir, sameTree }: FileScope): string | null {
  const runs = dirname(stateDir)
  if (!sameTree || !isAbsolute(path) || !within(path, runs)) return null
  const [runId, files] = path.slice(runs.length + 1).split(sep)
  return runId && files === 'files' && sameTree(runId) ? join(runs, runId, 'files') : null
}

/** The real path, also of what is not there yet, unless a link that leads nowhere is in its place. */
function realNow(path: string): string {
  try {
    return realpathSync(path)
  } catch (error) {
    const parent = dirname(path)
    if (parent === path || lstatSync(path, { throwIfNoEntry: false })) throw error
    return join(realNow(parent), basename(path))
  }
}

function refused(path: string): AgentError {
  return new AgentError(`${JSON.stringify(path)} lies outside the run's files and its workspace`, {
    code: 'outside',
    hint: 'use a path in the workspace, or `files/<phase>/…` of an earlier phase',
  })
}

function within(path: string, base: string): boolean {
  return path === base || path.startsWith(base.endsWith(sep) ? base : base + sep)
}
