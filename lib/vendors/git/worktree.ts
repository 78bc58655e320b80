// A folder of a git repository as the source of a pull request: its remote, its branch, and how changes are committed
// and pushed. Commits contain only files of the folder, pushes never overwrite commits, and the credential is sent only
// to its own host.

import { isLoopback } from '../../agent/address.ts'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/agent-error.ts'
import { basicAuth } from '../../agent/json-api.ts'
import { answerOr, type Git, type GitRemote, gitIn } from './command.ts'
import { checkConfig, isTrusted, ownWay, type Trust } from './trust.ts'

export interface WorktreeRequest {
  /** The path of the folder, as for `context.folder`. */
  folder: string
  /** The name of the remote. */
  remote: string
  /** The name of the remote of a fork, to which the branch is pushed; undefined for `remote` itself. */
  pushTo: string | undefined
  /** The only host to which the login is sent. */
  host: string
  login: { user: string; password: string; setting: string }
  base: string | undefined
  branch: string | undefined
  /** Folders whose repositories may decide by their own configuration what git runs and where it connects to. */
  trusted: Trust
}

export interface Worktree {
  /** The value of `context.place`, for messages. */
  at: string
  git: Git
  remote: GitRemote
  /** The last two segments of the remote's address. */
  owner: string
  repo: string
  /** Where the branch is pushed: the same repository, or a fork of it. */
  target: Repository
  base: string
  branch: string
  /** The branch that is checked out; empty for a detached HEAD. */
  current: string
  /** The branches of the remote, with their commits. */
  heads: Repository['heads']
  changed: boolean
  /** Whether HEAD has commits that the base lacks. */
  ahead: boolean
}

export interface Repository {
  owner: string
  repo: string
  remote: GitRemote
  /** The branches, with their commits. */
  heads: ReadonlyMap<string, string>
}

/** Reads the state of the folder and of the remote, and changes nothing. Errors have `sent: 'no'`. */
export async function openWorktree(request: WorktreeRequest, context: AgentContext<unknown>): Promise<Worktree> {
  const at = context.place
  if (/^(https?|ssh|git):\/\/|^git@/.test(request.folder)) {
    const hint = `clone it first (git clone ${request.folder}), and set project_dir to the folder`
    throw refusal(at, 'project_dir must be a folder on this machine, not an address', hint)
  }
  const folder = await context.folder(request.folder)
  const trusted = await isTrusted(folder, request.trusted.folders)
  const git = gitIn(folder, context, { trusted })
  const reached = async (remote: string) => {
    const found = placeOf(at, await addressOf(at, git, remote), { ...request, remote })
    await checkCommit(at, git)
    if (!trusted) await checkConfig(folder, found.remote, request.trusted, context)
    const place = trusted ? found : { ...found, remote: await ownWay(folder, found.remote, context) }
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
  // Changes inside a submodule must be committed in the submodule's own repository.
  const status = ['status', '--porcelain', '--untracked-files=normal', '--ignore-submodules=dirty', '--', '.']
  const changed = (await git(status)) !== ''
  if (changed) await checkNested(at, git)
  return {
    ...place,
    at,
    git,
    target,
    base,
    branch,
    current,
    changed,
    ahead: await hasMore(git, [tip, 'HEAD']),
  }
}

/**
 * Commits the changes of the folder to the branch and pushes it. Returns the commit, or null when there was nothing to
 * push. A repeated call without new changes does nothing.
 */
export async function commitAndPush(tree: Worktree, message: string): Promise<string | null> {
  const { git, branch, changed, ahead } = tree
  const { remote, heads } = tree.target
  if (!changed && !ahead) return null
  if (branch !== tree.current) await checkOut(tree)
  if (changed) {
    await git(['add', '--all', '--', '.'])
    const env = await identity(git)
    await git(['commit', '--quiet', '--no-verify', `--message=${message}`, '--', '.'], { env })
  }
  const commit = await headOf(tree)
  if (heads.get(branch) !== commit) {
    await git(['push', '--quiet', '--', remote.address, `${commit}:refs/heads/${branch}`], { remote })
  }
  return commit
}

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

/** Fetches the commit of a remote branch unless it is already present. */
async function obtain(git: Git, remote: GitRemote, branch: string, commit: string): Promise<void> {
  const known = await answerOr(false, git(['cat-file', '-e', `${commit}^{commit}`]).then(isDone))
  const quiet = ['--quiet', '--no-tags', '--no-write-fetch-head']
  if (!known) await git(['fetch', ...quiet, '--', remote.address, `refs/heads/${branch}`], { remote })
}

async function headsOf(git: Git, remote: GitRemote) {
  const listed = await git(['ls-remote', '--symref', '--', remote.address, 'HEAD', 'refs/heads/*'], { remote })
  const heads = new Map<string, string>()
  let standard: string | undefined
  for (const line of listed.split('\n')) {
    const [value = '', ref = ''] = line.split('\t')
    if (ref.startsWith('refs/heads/')) heads.set(ref.slice('refs/heads/'.length), value)
    standard ??= ref === 'HEAD' ? /^ref: refs\/heads\/(.+)$/.exec(value)?.[1] : undefined
  }
  return { heads, standard }
}

async function checkCommit(at: string, git: Git): Promise<void> {
  const some = await answerOr(false, git(['rev-parse', '--verify', '--quiet', 'HEAD^{commit}']).then(isDone))
  if (!some)
    throw refusal(at, 'the repository has no commit', 'fetch and check out the branch that the changes are based on')
}

/** Refuses a nested repository, because git would commit it as a link that nobody else can follow. */
async function checkNested(at: string, git: Git): Promise<void> {
  const untracked = await git(['ls-files', '--others', '--exclude-standard', '-z', '--', '.'])
  const nested = untracked.split('\0').find(name => name.endsWith('/'))
  if (nested)
    throw refusal(at, `${nested} must not be a separate repository`, 'add it to .gitignore, or make it a submodule')
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

/** The address of a remote as it is configured, before `insteadOf` is applied. */
async function addressOf(at: string, git: Git, remote: string): Promise<string> {
  for (const key of ['pushurl', 'url']) {
    const address = await answerOr('', git(['config', '--get', `remote.${remote}.${key}`]))
    if (address) return address
  }
  throw refusal(
    at,
    `there is no remote ${remote}`,
    'check that project_dir is a git repository, and add the remote with `git remote add`',
  )
}

/** How the remote at `address` is reached, and the owner and name of its repository. */
function placeOf(at: string, address: string, { remote, host, login }: WorktreeRequest) {
  const url = /^(https?|ssh):\/\//i.test(address) ? URL.parse(address) : null
  const scp = url || address.includes('://') ? null : /^(?:[^@:/\s]+@)?([^@:/\s]+):(.+)$/.exec(address)
  const found = url?.hostname ?? scp?.[1]?.toLowerCase()
  const [owner, repo] = (url?.pathname ?? scp?.[2] ?? address)
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .split('/')
    .filter(Boolean)
    .slice(-2)
  if (!owner || !repo)
    throw refusal(
      at,
      `the address of remote ${remote} does not name a repository`,
      'the address must end with <owner>/<repository>',
    )
  const overHttp = url !== null && url.protocol !== 'ssh:'
  if (found !== host) {
    if (!overHttp) return { owner, repo, remote: { address: remote } }
    throw refusal(
      at,
      `remote ${remote} must be on ${host}, where the credential belongs, but it is on ${found}`,
      'check base_url',
    )
  }
  if (overHttp && url.protocol === 'http:' && !isLoopback(host)) {
    throw refusal(
      at,
      `remote ${remote} must use https, because http would expose the credential`,
      'set an https address with `git remote set-url`',
    )
  }
  const reached = overHttp ? `${url.protocol}//${url.host}${url.pathname}` : `https://${host}/${owner}/${repo}.git`
  const authorization = basicAuth(login.user, login.password)
  return { owner, repo, remote: { address: reached, authorization, setting: login.setting } }
}

function refusal(at: string, message: string, hint: string): AgentError {
  return new AgentError(`[${at}] ${message}`, { code: 'invalid_request', hint, sent: 'no' })
}
