// A folder of a work tree and the repository that it belongs to, as git is to see them. GIT_DIR and GIT_WORK_TREE are
// always set, so git never looks for a repository. It reads no configuration of the repository but a copy that was
// judged: GIT_COMMON_DIR is a folder of ours with that copy, and with links to the refs, logs and rules of the
// repository, as in the work trees that contrib/workdir/git-new-workdir of git makes.
//
// A whole repository of ours was the other choice. It would have to bring index, HEAD, branches and objects back into
// the folder by itself, and the person's own configuration could not tell by `includeIf "gitdir:"` where it works.
//
// Links and borrowed objects below the repository would lead git to other folders, so they need the trust of the
// operator. A trusted folder is not checked, except that its work tree must be the folder that contains `.git`.

import type { Dirent } from 'node:fs'
import { lstat, mkdir, mkdtemp, readdir, realpath, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative, resolve } from 'node:path'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { openPlain } from '../../agent/files/hashed-file.ts'
import { messageOf } from '../../error.ts'
import { answerOr, gitIn, type Place } from './git-command.ts'
import { isTrusted, judgedCopy, type Trust, untrusted } from './repository-config.ts'

export interface Checkout extends Place, AsyncDisposable {
  /** The folder below the root, as a path of git. */
  path: string
  gitDir: string
  trusted: boolean
  /** A temporary folder of ours, for files that git needs during the call. */
  scratch: string
  /** Throws an AgentError when something has come into the repository that leads git to another folder. */
  check(): Promise<void>
  /** The same for a submodule at a path of the work tree: `git` reads which commit it has. */
  checkBelow(path: string): Promise<void>
}

/** The parts of a repository of its own, all by their real paths. */
interface Repository {
  root: string
  gitDir: string
  /** What work trees of one repository share. */
  commonDir: string
  /** Whether its configuration must say that `root` is its work tree. */
  isModule: boolean
}

/** What git may read or write in a repository, without its configuration. */
const READ = ['HEAD', 'config', 'index', 'info', 'logs', 'objects', 'packed-refs', 'refs', 'shallow']
/** What git is to find in GIT_COMMON_DIR, besides the configuration and the objects. */
const SHARED = ['HEAD', 'info', 'logs', 'packed-refs', 'refs', 'shallow', 'worktrees']
const BORROWED = ['objects/info/alternates', 'objects/info/http-alternates']

/** Throws an AgentError for a folder without a repository, or with one that needs trust that it does not have. */
export async function openCheckout(folder: string, trust: Trust, context: AgentContext<unknown>): Promise<Checkout> {
  const root = await rootOf(folder, context)
  const trusted = await isTrusted(folder, trust.folders)
  const scratch = await mkdtemp(join(await realpath(tmpdir()), 'cadre-git-'))
  const dispose = () => rm(scratch, { recursive: true, force: true })
  const judge = async (root: string, copy: string): Promise<Repository> => {
    const fail = (what: string) => untrusted(context, trust, root, what)
    const repository = await repositoryOf(root, fail)
    await checkOwner(repository, fail, scratch, context)
    await checkPlain(repository, fail)
    const worktrees = await judgedCopy(repository, join(scratch, copy), trust, context)
    if (repository.isModule && worktrees.length === 0) throw fail(`${root}/.git names a repository of another folder`)
    return repository
  }
  const path = relative(root, folder) || '.'
  try {
    const common = { root, path, trusted, scratch, [Symbol.asyncDispose]: dispose }
    if (trusted) {
      const gitDir = await leadsTo(join(root, '.git'))
      const none = async () => {}
      return { ...common, gitDir, check: none, checkBelow: none, env: placeOf(root, gitDir) }
    }
    const repository = await judge(root, 'config')
    const { gitDir, commonDir } = repository
    await share(commonDir, scratch)
    return {
      ...{ ...common, gitDir },
      env: {
        ...placeOf(root, gitDir),
        GIT_COMMON_DIR: scratch,
        GIT_OBJECT_DIRECTORY: join(commonDir, 'objects'),
        // Replacements and grafts would substitute other commits for those that are pushed.
        GIT_NO_REPLACE_OBJECTS: '1',
        GIT_GRAFT_FILE: '/dev/null',
      },
      check: () => checkPlain(repository, what => untrusted(context, trust, root, what)),
      async checkBelow(path) {
        const below = join(root, path)
        if (await isThere(join(below, '.git'))) await judge(await realpath(below), 'module')
      },
    }
  } catch (error) {
    await dispose()
    if (error instanceof AgentError) throw error
    const hint = `see what git says: git -C ${JSON.stringify(root)} status`
    const options = { code: 'invalid_request', hint, sent: 'no', cause: error } as const
    throw new AgentError(
      `[${context.callName}] the git repository of ${root} cannot be read: ${messageOf(error)}`,
      options,
    )
  }
}

type Fail = (what: string) => AgentError

function placeOf(root: string, gitDir: string): Record<string, string> {
  return { GIT_DIR: gitDir, GIT_WORK_TREE: root, GIT_LITERAL_PATHSPECS: '1' }
}

/** The nearest folder with a `.git`, from the folder upward. */
async function rootOf(folder: string, { callName }: AgentContext<unknown>): Promise<string> {
  for (let root = folder; ; root = dirname(root)) {
    if (await isThere(join(root, '.git'))) return root
    if (root !== dirname(root)) continue
    const hint = 'check that project_dir is a git repository'
    throw new AgentError(`[${callName}] ${folder} is in no git repository`, {
      code: 'invalid_request',
      hint,
      sent: 'no',
    })
  }
}

/** The repository of a root, if it lies there, or points back to it. */
async function repositoryOf(root: string, fail: Fail): Promise<Repository> {
  const entry = join(root, '.git')
  const kind = await lstat(entry)
  if (kind.isDirectory()) {
    if (await isThere(join(entry, 'commondir'))) throw fail(`${entry} shares the repository of another folder`)
    return { root, gitDir: entry, commonDir: entry, isModule: false }
  }
  if (!kind.isFile()) throw fail(`${entry} is neither a folder nor a file`)
  const gitDir = await leadsTo(entry)
  const says = (name: string) =>
    lineOf(join(gitDir, name)).then(
      line => realpath(resolve(gitDir, line)),
      () => null,
    )
  if (basename(dirname(gitDir)) === 'worktrees') {
    const commonDir = dirname(dirname(gitDir))
    const pointsBack = (await says('gitdir').catch(() => null)) === entry
    if (pointsBack && (await says('commondir').catch(() => null)) === commonDir) {
      return { root, gitDir, commonDir, isModule: false }
    }
  } else if (gitDir.includes('/modules/') && !(await isThere(join(gitDir, 'commondir')))) {
    return { root, gitDir, commonDir: gitDir, isModule: true }
  }
  throw fail(`${entry} names a repository of another folder, which does not point back`)
}

/** The real path of the repository that `.git` is, links to or names. */
async function leadsTo(entry: string): Promise<string> {
  if ((await stat(entry)).isDirectory()) return realpath(entry)
  const named = /^gitdir: (.+)$/.exec(await lineOf(await realpath(entry)))?.[1]
  if (named === undefined) throw new Error(`${entry} does not name a folder`)
  return realpath(resolve(dirname(entry), named))
}

/** The first 4 KiB of a small file, without the line break at its end. */
async function lineOf(file: string): Promise<string> {
  await using handle = await openPlain(file)
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(4_096), 0, 4_096, 0)
  return buffer.toString('utf8', 0, bytesRead).replace(/[\r\n]+$/, '')
}

/** git asks for the owner only where it finds a repository by itself. */
async function checkOwner(
  { root, gitDir, commonDir }: Repository,
  fail: Fail,
  scratch: string,
  context: AgentContext<unknown>,
): Promise<void> {
  const owners = await Promise.all(
    [root, join(root, '.git'), gitDir, commonDir].map(async path => (await lstat(path)).uid),
  )
  const own = [process.geteuid?.(), process.geteuid?.() === 0 ? Number(process.env.SUDO_UID) : undefined]
  if (process.geteuid === undefined || owners.every(owner => own.includes(owner))) return
  const git = gitIn({ root: scratch, env: { GIT_DIR: '/dev/null' } }, context)
  const safe = (await answerOr('', git(['config', '--get-all', 'safe.directory']))).split('\n')
  if (!safe.includes('*') && !safe.includes(root)) throw fail(`${root} belongs to another user`)
}

/** Throws when the repository has a link, or objects of another one. */
async function checkPlain({ gitDir, commonDir }: Repository, fail: Fail): Promise<void> {
  for (const folder of new Set([gitDir, commonDir])) {
    for (const name of READ) {
      const odd = await oddIn(join(folder, name))
      if (odd !== null) throw fail(`${odd} must be a plain file or folder`)
    }
  }
  for (const name of BORROWED) {
    if (await isThere(join(commonDir, name))) throw fail(`${join(commonDir, name)} adds the objects of other folders`)
  }
}

/** The path of something at or below `path` that is neither a file nor a folder; null if there is nothing. */
async function oddIn(path: string): Promise<string | null> {
  const kind = await lstat(path).catch(() => null)
  if (kind === null || kind.isFile()) return null
  return kind.isDirectory() ? oddBelow(path) : path
}

async function oddBelow(folder: string): Promise<string | null> {
  const entries: Dirent[] = await readdir(folder, { withFileTypes: true }).catch(() => [])
  for (const entry of entries) {
    if (entry.isFile()) continue
    const path = join(folder, entry.name)
    // Some file systems do not report the kind of an entry.
    const odd = entry.isDirectory() ? await oddBelow(path) : await oddIn(path)
    if (odd !== null) return odd
  }
  return null
}

/** Links what git is to find in our folder. */
async function share(commonDir: string, scratch: string): Promise<void> {
  // git would write its logs into our folder otherwise.
  await mkdir(join(commonDir, 'logs'), { recursive: true })
  for (const name of SHARED) {
    if (await isThere(join(commonDir, name))) await symlink(join(commonDir, name), join(scratch, name))
  }
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => null)) !== null
}
