// A folder of a git repository as the source of a pull request: its branch, and how changes are committed and pushed.
// Commits contain only files of the folder, and pushes never overwrite commits.
//
// It commits the list of changes that `git status` gives. `git commit -- FOLDER` would follow a link that
// stands where the last commit has a folder, and commit files of the folder that it leads to.

import { isUtf8 } from 'node:buffer'
import { copyFile, lstat } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { oneLine } from '../../text/one-line.ts'
import { type Checkout, openCheckout } from './checkout.ts'
import { answerOr, type Git, gitIn, refusal } from './git-command.ts'
import { headsOf, obtain, placeOf, type RemoteAccess, type RemotePlace } from './remote.ts'

export interface WorktreeRequest extends RemoteAccess {
  /** The path of the folder, as for `context.folder`. */
  folder: string
  /** The name of the remote. */
  remote: string
  /** The name of the remote of a fork, to which the branch is pushed; undefined for `remote` itself. */
  pushTo: string | undefined
  base: string | undefined
  branch: string | undefined
}

export interface Worktree extends RemotePlace, AsyncDisposable {
  checkout: Checkout
  /** The value of `context.callName`, for messages. */
  at: string
  git: Git
  /** Where the branch is pushed: the same repository, or a fork of it. */
  target: Repository
  base: string
  branch: string
  /** The branch that is checked out; empty for a detached HEAD. */
  current: string
  /** The branches of the remote, with their commits. */
  heads: Repository['heads']
  /** The changes of the folder; null if there are none. */
  changes: Changes | null
  /** Whether HEAD has commits that the base lacks. */
  ahead: boolean
}

/** Paths below the root, with a character for each byte and NUL behind each. */
interface Changes {
  removed: string
  present: string
}

export interface Repository extends RemotePlace {
  /** The branches, with their commits. */
  heads: ReadonlyMap<string, string>
}

/** Reads the state of the folder and of the remote, and changes nothing. Errors have `sent: 'no'`. */
export async function openWorktree(request: WorktreeRequest, context: AgentContext<unknown>): Promise<Worktree> {
  const at = context.callName
  if (/^(https?|ssh|git):\/\/|^git@/.test(request.folder)) {
    const hint = `clone it first (git clone ${request.folder}), and set project_dir to the folder`
    throw refusal(at, 'project_dir must be a folder on this machine, not an address', hint)
  }
  const checkout = await openCheckout(await context.folder(request.folder), request.trusted, context)
  try {
    return { ...(await read(checkout, request, context)), [Symbol.asyncDispose]: checkout[Symbol.asyncDispose] }
  } catch (error) {
    await checkout[Symbol.asyncDispose]()
    throw error
  }
}

async function read(checkout: Checkout, request: WorktreeRequest, context: AgentContext<unknown>) {
  const at = context.callName
  const git = gitIn(checkout, context)
  await checkSubmodules(at, git, checkout)
  const reached = async (remote: string) => {
    const place = await placeOf(remote, git, checkout, request, context)
    await checkCommit(at, git)
    return { ...place, ...(await headsOf(git, place.remote)) }
  }
  const { standard, ...place } = await reached(request.remote)
  const { heads } = place
  const isFork = request.pushTo !== undefined && request.pushTo !== request.remote
  const target = isFork ? await reached(request.pushTo!) : place
  const base = request.base ?? standard ?? 'main'
  const current = await git(['branch', '--show-current'])
  const own = `cadre/${context.phase.name}-${context.key.slice(0, 8)}`
  const branch = request.branch ?? (current && current !== base ? current : own)
  for (const name of [base, branch]) await checkName(at, git, name)
  if (branch === base)
    throw refusal(at, `\`branch\` must differ from the base branch, but both are ${base}`, 'choose another `branch`')
  const tip = heads.get(base)
  if (!tip) throw refusal(at, `the remote has no branch ${base}`, 'push that branch first, or set another base_branch')
  await obtain(git, place.remote, base, tip)
  const changes = await changesOf(at, git, checkout)
  return {
    ...place,
    at,
    git,
    checkout,
    target,
    base,
    branch,
    current,
    changes,
    ahead: await hasMore(git, [tip, 'HEAD']),
  }
}

/**
 * Commits the changes of the folder to the branch and pushes it. Returns the commit, or null when there was nothing to
 * push. A repeated call without new changes does nothing.
 */
export async function commitAndPush(tree: Worktree, message: string): Promise<string | null> {
  const { git, branch, changes, ahead, checkout } = tree
  const { remote, heads } = tree.target
  if (!changes && !ahead) return null
  if (branch !== tree.current) await checkOut(tree)
  const isNew = changes !== null && (await commit(tree, changes, message))
  if (!isNew && !ahead) return null
  const last = await headOf(tree)
  // A command may have committed in the meantime. Its commits are not pushed.
  await checkout.check()
  if (heads.get(branch) !== last) {
    await git(['push', '--quiet', '--', remote.address, `${last}:refs/heads/${branch}`], { remote })
  }
  return last
}

/** Commits the changes, on top of HEAD and of nothing else that the index has. False if that changes no content. */
async function commit({ at, git, checkout }: Worktree, changes: Changes, message: string): Promise<boolean> {
  const text = cleaned(message)
  if (text === '') throw refusal(at, 'the commit has an empty message', 'set `commit_message`')
  await stage(git, changes)
  // With the times of the files, so that git reads only those that changed.
  const index = join(checkout.scratch, 'index')
  await copyFile(join(checkout.gitDir, 'index'), index)
  const env = { GIT_INDEX_FILE: index }
  const head = await git(['rev-parse', 'HEAD'])
  await git(['read-tree', '--reset', head], { env })
  await stage(git, changes, env)
  const tree = await git(['write-tree'], { env })
  if (tree === (await git(['rev-parse', `${head}^{tree}`]))) return false
  const made = await git(['commit-tree', tree, '-p', head, '-F', '-'], { env: await identity(git), input: text })
  // Fails if HEAD has moved since.
  await git(['update-ref', '-m', `commit: ${oneLine(text)}`, 'HEAD', made, head])
  return true
}

/** Adds the changes to an index. git refuses a path behind a link, and adds links as links. */
async function stage(git: Git, { removed, present }: Changes, env: Record<string, string> = {}): Promise<void> {
  const update = (input: string, ...how: string[]) =>
    input === '' ? null : git(['update-index', '-z', ...how, '--stdin'], { env, input, bytes: true })
  await update(removed, '--force-remove')
  // Files that no longer exist are removed.
  await update(present, '--add', '--replace', '--remove')
}

/** The message as `git commit` cleans it: no blanks at the end of lines, and one blank line at most. */
function cleaned(message: string): string {
  const lines = message.split(/\r?\n/).map(line => line.trimEnd())
  const text = lines
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .replace(/^\n+|\n+$/g, '')
  return text && `${text}\n`
}

/** The changes of the folder, staged or not. A change inside a submodule belongs to the submodule and is left out. */
async function changesOf(at: string, git: Git, { path, gitDir }: Checkout): Promise<Changes | null> {
  const how = ['--porcelain', '-z', '--untracked-files=all', '--no-renames', '--ignore-submodules=dirty']
  const listed = await git(['status', ...how, '--', path], { bytes: true })
  const entries = listed.split('\0').filter(Boolean)
  if (entries.length === 0) return null
  const changes = { removed: '', present: '' }
  for (const entry of entries) {
    const [index, file, name] = [entry[0], entry[1], entry.slice(3)]
    const shown = oneLine(Buffer.from(name, 'latin1').toString())
    if (index === 'U' || file === 'U' || /^(AA|DD)/.test(entry))
      throw refusal(at, `${shown} has conflicts`, 'resolve them and finish the merge')
    // git would commit the folder as a link that nobody else can follow.
    if (name.endsWith('/'))
      throw refusal(at, `${shown} must not be a separate repository`, 'add it to .gitignore, or make it a submodule')
    const isGone = file === 'D' || (index === 'D' && file === ' ')
    changes[isGone ? 'removed' : 'present'] += `${name}\0`
  }
  for (const [name, what] of UNFINISHED) {
    if (await lstat(join(gitDir, name)).catch(() => null))
      throw refusal(at, `a ${what} has not been finished in the folder`, `finish it, or git ${what} --abort`)
  }
  return changes
}

/**
 * Operations that git may be in the middle of, by the file that exists then. Such a commit has a second parent, or
 * another author.
 */
const UNFINISHED = [
  ['MERGE_HEAD', 'merge'],
  ['CHERRY_PICK_HEAD', 'cherry-pick'],
  ['REVERT_HEAD', 'revert'],
] as const

export function headOf({ git }: Worktree): Promise<string> {
  return git(['rev-parse', 'HEAD'])
}

/**
 * Switches to the branch and keeps the changes of the folder. git refuses if that would overwrite files of the branch.
 */
async function checkOut({
  at,
  git,
  target: { remote, heads: pushed },
  base,
  branch,
  heads,
  ahead,
}: Worktree): Promise<void> {
  const local = await git(['for-each-ref', '--format=%(objectname)', `refs/heads/${branch}`])
  const target = local || pushed.get(branch)
  if (!local && target) await obtain(git, remote, branch, target)
  if (target && ahead && (await hasMore(git, [heads.get(base)!, target, 'HEAD']))) {
    const hint = 'merge these commits into the branch, or choose another `branch`'
    throw new AgentError(`[${at}] HEAD has commits that ${branch} lacks`, { code: 'conflict', hint, sent: 'no' })
  }
  const create = ['switch', '--quiet', '--no-track', '--create', branch, target ?? 'HEAD']
  await git(local ? ['switch', '--quiet', '--no-guess', branch] : create)
}

/** Whether the last of `commits` has ancestors that none of the others has. */
async function hasMore(git: Git, commits: readonly string[]): Promise<boolean> {
  const others = commits.slice(0, -1).map(commit => `^${commit}`)
  return (await git(['rev-list', '--max-count=1', commits.at(-1)!, ...others])) !== ''
}

async function checkCommit(at: string, git: Git): Promise<void> {
  const some = await answerOr(false, git(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']).then(isDone))
  if (!some)
    throw refusal(at, 'the repository has no commit', 'fetch and check out the branch that the changes are based on')
}

/** git reads the commits that submodules have, so their repositories are judged, too. */
async function checkSubmodules(at: string, git: Git, { path, checkBelow }: Checkout): Promise<void> {
  const entries = (await git(['ls-files', '--stage', '-z', '--', path], { bytes: true })).split('\0')
  for (const entry of entries) {
    if (!entry.startsWith('160000 ')) continue
    const name = Buffer.from(entry.slice(entry.indexOf('\t') + 1), 'latin1')
    if (!isUtf8(name)) throw refusal(at, 'the name of a submodule is not UTF-8', 'rename the submodule')
    await checkBelow(name.toString())
  }
}

async function checkName(at: string, git: Git, name: string): Promise<void> {
  const valid =
    !name.startsWith('-') && (await answerOr(false, git(['check-ref-format', `refs/heads/${name}`]).then(isDone)))
  if (!valid) throw refusal(at, `${JSON.stringify(name)} is not a valid branch name`, 'see: git help check-ref-format')
}

const isDone = () => true

/** The author and committer: from git's configuration, or else cadre itself. */
async function identity(git: Git): Promise<Record<string, string>> {
  const configured = (key: string) => answerOr('', git(['config', '--get', key]))
  const name = (await configured('user.name')) || 'cadre'
  const email = (await configured('user.email')) || 'cadre@localhost'
  return {
    GIT_AUTHOR_NAME: name,
    GIT_AUTHOR_EMAIL: email,
    GIT_COMMITTER_NAME: name,
    GIT_COMMITTER_EMAIL: email,
  }
}
