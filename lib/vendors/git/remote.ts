// A remote of a git repository: where its address leads, whether the login may be sent there, and which branches it has.
// A login is sent only to its own host, and over a network only with TLS. A folder as remote needs the trust of the
// operator.

import { realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { AgentContext } from '../../agent/agent-context.ts'
import { basicAuth } from '../../agent/json-api.ts'
import { isLoopback } from '../../agent/net/address.ts'
import type { Checkout } from './checkout.ts'
import { answerOr, type Git, type GitRemote, refusal } from './git-command.ts'
import { isTrusted, type Trust, untrusted } from './repository-config.ts'

/** Which remotes may be reached. */
export interface RemoteAccess {
  /** The only host to which the login is sent. */
  host: string
  login: { user: string; password: string; setting: string }
  /** Folders whose repositories may decide by their own configuration what git runs and where it connects to. */
  trusted: Trust
}

/** How a remote is reached, and the last two segments of its address. */
export interface RemotePlace {
  owner: string
  repo: string
  remote: GitRemote
}

/** Where the remote with this name is, according to the configuration of the checkout. */
export async function placeOf(
  name: string,
  git: Git,
  checkout: Checkout,
  access: RemoteAccess,
  context: AgentContext<unknown>,
): Promise<RemotePlace> {
  const address = await addressOf(context.callName, git, name)
  return kindOf(address) === 'folder'
    ? await folderAt(address, name, checkout, access.trusted, context)
    : hostedAt(context.callName, address, name, access)
}

/** The branches of a remote with their commits, and its default branch. */
export async function headsOf(git: Git, remote: GitRemote) {
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

/** Fetches the commit of a remote branch unless it is already present. */
export async function obtain(git: Git, remote: GitRemote, branch: string, commit: string): Promise<void> {
  const known = await answerOr(
    false,
    git(['cat-file', '-e', `${commit}^{commit}`]).then(() => true),
  )
  const quiet = ['--quiet', '--no-tags', '--no-write-fetch-head']
  if (!known) await git(['fetch', ...quiet, '--', remote.address, `refs/heads/${branch}`], { remote })
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

/** What git takes an address for: see url_is_local_not_ssh() and transport_get() of git. */
function kindOf(address: string): 'http' | 'ssh' | 'folder' | null {
  if (/^https?:\/\//i.test(address)) return 'http'
  if (/^(ssh|git\+ssh|ssh\+git):\/\//.test(address)) return 'ssh'
  if (address.startsWith('file:///')) return 'folder'
  if (/^[A-Za-z0-9+.-]*::/.test(address) || address.includes('://')) return null
  return /^[^/]*:/.test(address) ? 'ssh' : 'folder'
}

/** A folder as remote. git runs its hooks there, and obeys its configuration. */
async function folderAt(
  address: string,
  remote: string,
  { root, trusted }: Checkout,
  trust: Trust,
  context: AgentContext<unknown>,
): Promise<RemotePlace> {
  const path = address.startsWith('file://') ? decodeURIComponent(address.slice('file://'.length)) : address
  const folder = await realpath(resolve(root, path)).catch(() => resolve(root, path))
  const what = `remote ${remote} is the folder ${folder}, whose hooks git would run`
  const instead = 'set the address of the repository with `git remote set-url`'
  if (!trusted && !(await isTrusted(folder, trust.folders).catch(() => false)))
    throw untrusted(context, trust, folder, what, instead)
  return { ...namesIn(context.callName, path, remote), remote: { address: folder } }
}

/** The owner and the name of a repository: the last two segments of its address. */
function namesIn(at: string, path: string, remote: string): { owner: string; repo: string } {
  const [owner, repo] = path
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .split('/')
    .filter(Boolean)
    .slice(-2)
  if (owner && repo) return { owner, repo }
  throw refusal(
    at,
    `the address of remote ${remote} does not name a repository`,
    'the address must end with <owner>/<repository>',
  )
}

/** A repository on another machine. The login is sent to its own host alone. */
function hostedAt(at: string, address: string, remote: string, { host, login }: RemoteAccess): RemotePlace {
  const kind = kindOf(address)
  if (kind === null)
    throw refusal(
      at,
      `remote ${remote} must be reached by https or ssh`,
      'set such an address with `git remote set-url`',
    )
  const url = address.includes('://') ? URL.parse(address) : null
  const scp = url ? null : /^(?:[^@:/\s]+@)?([^@:/\s]+):(.+)$/.exec(address)
  const found = url?.hostname ?? scp?.[1]?.toLowerCase()
  const { owner, repo } = namesIn(at, url?.pathname ?? scp?.[2] ?? '', remote)
  const overHttp = kind === 'http'
  if (found !== host) {
    if (!overHttp) return { owner, repo, remote: { address } }
    throw refusal(
      at,
      `remote ${remote} must be on ${host}, where the credential belongs, but it is on ${found}`,
      'check base_url',
    )
  }
  if (url?.protocol === 'http:' && !isLoopback(host)) {
    throw refusal(
      at,
      `remote ${remote} must use https, because http would expose the credential`,
      'set an https address with `git remote set-url`',
    )
  }
  const reached =
    overHttp && url ? `${url.protocol}//${url.host}${url.pathname}` : `https://${host}/${owner}/${repo}.git`
  const authorization = basicAuth(login.user, login.password)
  return { owner, repo, remote: { address: reached, authorization, setting: login.setting } }
}
