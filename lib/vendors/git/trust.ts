// Checks the configuration of a repository. A folder that was unpacked, copied or changed by a command may have its own
// configuration, which could make git run a program with access to the credential, or redirect the connection. Settings
// that command.ts cannot override are refused here, unless the operator trusts the folder.

import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { join } from 'node:path'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/agent-error.ts'
import { fromHome } from '../../home-path.ts'
import { answerOr, type Git, type GitRemote, gitIn } from './command.ts'

export interface Trust {
  folders: readonly string[]
  /** The key of the setting with the trusted folders, below the agent's own key, for errors. */
  setting: string
}

/** The configuration scopes that belong to the repository. The others belong to the system and the user. */
const REPOSITORYS = ['local', 'worktree']

const RUNS = 'which makes git run a program'
const LEADS = 'which decides where the credential is sent'

/** Refused keys, in lower case. Any other key is harmless, or overridden by command.ts. */
const REFUSED: readonly [key: RegExp, does: string][] = [
  // A program that stays in the background could read the environment of a later push.
  [/^filter\.(.*\.)?(clean|smudge|process)$/, RUNS],
  [/^hook\.(.*\.)?command$/, RUNS],
  [/^lfs\.(customtransfer|extension)\./, RUNS],
  [/^lfs\.(.*\.)?standalonetransferagent$/, RUNS],
  [/^remote\.(.*\.)?(uploadpack|receivepack|vcs)$/, RUNS],
  // The condition may become true later, when another branch is checked out.
  [/^includeif\.onbranch:/, 'which adds settings that cannot be checked in advance'],
  // git uses a remote whose name is an address in place of that address.
  [/^remote\..*:\/\//, LEADS],
  [/^http\.(.*\.)?(ssl(cainfo|capath|backend)|proxyssl\w+|schannel\w+|curloptresolve)$/, LEADS],
  [/^fetch\.bundleuri$/, 'which makes git fetch from another address'],
]

/** Whether the folder is one of the trusted folders or lies below one. Links are followed. */
export async function isTrusted(folder: string, trusted: readonly string[]): Promise<boolean> {
  const place = `${await realpath(folder)}/`
  for (const given of trusted) {
    const path = await realpath(fromHome(given)).catch(() => null)
    if (path !== null && place.startsWith(path === '/' ? path : `${path}/`)) return true
  }
  return false
}

/**
 * Throws an AgentError with `sent: 'no'` when the repository, or a submodule in the folder, has a setting that is
 * refused.
 */
export async function checkConfig(
  folder: string,
  remote: GitRemote,
  { setting }: Pick<Trust, 'setting'>,
  context: AgentContext<unknown>,
): Promise<void> {
  const git = gitIn(folder, context)
  const listed = (await git(['config', '--list', '--show-scope', '-z'])).split('\0')
  for (let at = 0; at + 1 < listed.length; at += 2) {
    if (!REPOSITORYS.includes(listed[at]!)) continue
    const [key = '', ...value] = listed[at + 1]!.split('\n')
    const does = doesWhat(key, value.join('\n'), remote)
    if (does) throw refusal(context, folder, setting, key, does)
  }
  for (const path of await submodulesOf(git)) {
    const below = join(folder, path)
    if (existsSync(join(below, '.git'))) await checkConfig(below, remote, { setting }, context)
  }
}

function doesWhat(key: string, value: string, { address }: GitRemote): string | undefined {
  const name = key.toLowerCase()
  // command.ts sets the longest possible key. For two keys of the same length git prefers the one of the repository.
  if (/^url\..*\.(push)?insteadof$/.test(name) && value === address) return LEADS
  return REFUSED.find(([pattern]) => pattern.test(name))?.[1]
}

/** The submodules of the folder. `git add` reads them and obeys their configuration. */
async function submodulesOf(git: Git): Promise<string[]> {
  const entries = (await git(['ls-files', '--stage', '-z', '--', '.'])).split('\0')
  return entries.flatMap(entry => (entry.startsWith('160000 ') ? [entry.slice(entry.indexOf('\t') + 1)] : []))
}

function refusal(
  { agent, place }: AgentContext<unknown>,
  folder: string,
  setting: string,
  key: string,
  does: string,
): AgentError {
  const message = `[${place}] the repository's own configuration has ${key}, ${does}`
  const trust = `agents.${agent}.${setting}: [${JSON.stringify(folder)}]`
  const hint = `remove it with git config --unset-all ${key}, or set it with git config --global, or trust the folder in settings.yml: ${trust}`
  return new AgentError(message, { code: 'invalid_request', hint, sent: 'no' })
}

/**
 * The remote with the proxy and ssh command that the configuration of the system and the user give for it. The
 * repository's own configuration is ignored.
 */
export async function ownWay(folder: string, remote: GitRemote, context: AgentContext<unknown>): Promise<GitRemote> {
  const git = gitIn(folder, context)
  // A GIT_DIR that is not a repository, so that its configuration is not read.
  const ask = (...args: string[]) => answerOr('', git(['config', ...args], { env: { GIT_DIR: '/dev/null' } }))
  if (!/^https?:/.test(remote.address)) return { ...remote, ssh: (await ask('--get', 'core.sshCommand')) || 'ssh' }
  return { ...remote, proxy: await ask('--get-urlmatch', 'http.proxy', remote.address) }
}
