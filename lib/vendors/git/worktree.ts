// A folder of a git repository as the source of a pull request: where its remote is, which branch the work is on, and how
// what changed gets there. Commits stay within the folder, pushes only add, and a credential goes to its own host only.

import { type AgentContext, AgentError } from '../../agent/define.ts'
import { basicAuth } from '../../agent/json-api.ts'
import { answerOr, type Git, type GitRemote, gitIn } from './command.ts'
import { checkConfig, isTrusted, ownWay, type Trust } from './trust.ts'

export interface WorktreeRequest {
  /** As `context.folder` takes it. */
  folder: string
  /** Name of the remote. */
  remote: string
  /** The only host that is sent the login. */
  host: string
  login: { user: string; password: string; setting: string }
  base: string | undefined
  branch: string | undefined
  /** Folders whose repositories may say by their own configuration what git runs and whom it talks to. */
  trusted: Trust
}

export interface Worktree {
  /** Where the agent is called, for messages: `context.place`. */
  at: string
  git: Git
  remote: GitRemote
  /** The last two segments of the remote's address. */
  owner: string
  repo: string
  base: string
  branch: string
  /** The branch that is checked out; empty when none is. */
  current: string
  /** Branches of the remote, with their commits. */
  heads: ReadonlyMap<string, string>
  changed: boolean
  /** Whether HEAD has commits that the base has not. */
  ahead: boolean
}

/** Reads what is here and what the remote has; changes nothing. Errors say that nothing was written outside. */
export async function openWorktree(request: WorktreeRequest, context: AgentContext<unknown>): Promise<Worktree> {
  const at = context.place
  const folder = await context.folder(request.folder)
  const trusted = await isTrusted(folder, request.trusted.folders)
  const git = gitIn(folder, context, { trusted })
  const found = placeOf(at, await addressOf(at, git, request.remote), request)
  await checkCommit(at, git)
  if (!trusted) await checkConfig(folder, found.remote, request.trusted, context)
  const place = trusted ? found : { ...found, remote: await ownWay(folder, found.remote, context) }
  const { heads, standard } = await headsOf(git, place.remote)
  const base = request.base ?? standard ?? 'main'
  const current = await git(['branch', '--show-current'])
  const own = `cadre/${context.phase.name}-${context.key.slice(0, 8)}`
  const branch = request.branch ?? (current && current !== base ? current : own)
  for (const name of [base, branch]) await checkName(at, git, name)
  if (branch === base) throw refusal(at, `branch and base are both ${base}`, 'choose another `branch`')
  const tip = heads.get(base)
  if (!tip) throw refusal(at, `the remote has no branch ${base}`, 'push it first, or set another base_branch')
  await obtain(git, place.remote, base, tip)
  // What changed within a submodule is that repository's to commit.
  const status = ['status', '--porcelain', '--untracked-files=normal', '--ignore-submodules=dirty', '--', '.']
  const changed = (await git(status)) !== ''
  if (changed) await checkNested(at, git)
  return {
    ...place,
    at,
    git,
    base,
    branch,
    current,
    heads,
    changed,
    ahead: await hasMore(git, [tip, 'HEAD']),
  }
}

/**
 * Commits what changed in the folder to the branch and pushes it. Gives its commit, or null where there was nothing to
 * push. Doing it again with nothing new does nothing.
 */
export async function commitAndPush(tree: Worktree, message: string): Promise<string | null> {
  const { git, remote, branch, heads, changed, ahead } = tree
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

/** What was changed comes along, unless it would overwrite what the branch holds: then git refuses. */
async function checkOut({ at, git, remote, base, branch, heads, ahead }: Worktree): Promise<void> {
  const local = await git(['for-each-ref', '--format=%(objectname)', `refs/heads/${branch}`])
  const target = local || heads.get(branch)
  if (!local && target) await obtain(git, remote, branch, target)
  if (target && ahead && (await hasMore(git, [heads.get(base)!, target, 'HEAD']))) {
    const hint = 'merge them into it, or choose another `branch`'
    throw new AgentError(`[${at}] HEAD has commits that ${branch} lacks`, { code: 'conflict', hint, sent: 'no' })
  }
  const create = ['switch', '--quiet', '--no-track', '--create', branch, target ?? 'HEAD']
  await git(local ? ['switch', '--quiet', '--no-guess', branch] : create)
}

/** Whether the last of these has commits that none of the others has. */
async function hasMore(git: Git, commits: readonly string[]): Promise<boolean> {
  const others = commits.slice(0, -1).map(commit => `^${commit}`)
  return (await git(['rev-list', '--max-count=1', commits.at(-1)!, ...others])) !== ''
}

/** Makes sure that the commit of a remote's branch is here. */
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
  if (!some) throw refusal(at, 'the repository has no commit here', 'fetch and check out what the changes are based on')
}

/** git would commit a repository that lies in this one as a link that nobody else can follow. */
async function checkNested(at: string, git: Git): Promise<void> {
  const untracked = await git(['ls-files', '--others', '--exclude-standard', '-z', '--', '.'])
  const nested = untracked.split('\0').find(name => name.endsWith('/'))
  if (nested) throw refusal(at, `${nested} is a repository of its own`, 'ignore it, or make it a submodule')
}

async function checkName(at: string, git: Git, name: string): Promise<void> {
  const valid =
    !name.startsWith('-') && (await answerOr(false, git(['check-ref-format', `refs/heads/${name}`]).then(isDone)))
  if (!valid) throw refusal(at, `${JSON.stringify(name)} is no name of a branch`, 'see: git help check-ref-format')
}

const isDone = () => true

/** Who commits: as git is configured, else the program itself. */
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

/** As it stands in the configuration, without what `insteadOf` would make of it. */
async function addressOf(at: string, git: Git, remote: string): Promise<string> {
  for (const key of ['pushurl', 'url']) {
    const address = await answerOr('', git(['config', '--get', `remote.${remote}.${key}`]))
    if (address) return address
  }
  throw refusal(at, `there is no remote ${remote}`, 'is project_dir a git repository? add one with `git remote add`')
}

/** How the remote at `address` is reached, and what its repository is called. */
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
  if (!owner || !repo) throw refusal(at, `remote ${remote} names no repository`, 'expected …/<owner>/<repository>')
  const overHttp = url !== null && url.protocol !== 'ssh:'
  if (found !== host) {
    if (!overHttp) return { owner, repo, remote: { address: remote } }
    throw refusal(at, `remote ${remote} is at ${found}: the credential goes to ${host} only`, 'is base_url right?')
  }
  if (overHttp && url.protocol === 'http:' && !isLoopback(host)) {
    throw refusal(
      at,
      `remote ${remote} is reached by http, which would show the credential`,
      'give it an https address',
    )
  }
  const reached = overHttp ? `${url.protocol}//${url.host}${url.pathname}` : `https://${host}/${owner}/${repo}.git`
  const authorization = basicAuth(login.user, login.password)
  return { owner, repo, remote: { address: reached, authorization, setting: login.setting } }
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '[::1]' || /^127(\.\d{1,3}){3}$/.test(host)
}

function refusal(at: string, message: string, hint: string): AgentError {
  return new AgentError(`[${at}] ${message}`, { code: 'invalid_request', hint, sent: 'no' })
}
