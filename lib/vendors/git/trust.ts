// What the configuration of a repository may say. A folder that was unpacked, copied or worked in by a command may bring
// its own: it could make git run a program beside the credential, or lead the connection elsewhere. What command.ts cannot
// overrule is refused here, unless the operator trusts the folder.

import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { type AgentContext, AgentError } from '../../agent/define.ts'
import { answerOr, type Git, type GitRemote, gitIn } from './command.ts'

export interface Trust {
  folders: readonly string[]
  /** Key of the setting that names them, below the agent's, for errors. */
  setting: string
}

/** Scopes of the configuration that belong to the repository; the others are the machine's and the person's. */
const REPOSITORYS = ['local', 'worktree']

const RUNS = 'which makes git run a program'
const LEADS = 'which decides who is sent the credential'

/** Keys in lower case. What is not here is harmless, or overruled by what git.ts sets. */
const REFUSED: readonly [key: RegExp, does: string][] = [
  // A program that is left behind could read the environment of a later push.
  [/^filter\.(.*\.)?(clean|smudge|process)$/, RUNS],
  [/^hook\.(.*\.)?command$/, RUNS],
  [/^lfs\.(customtransfer|extension)\./, RUNS],
  [/^lfs\.(.*\.)?standalonetransferagent$/, RUNS],
  [/^remote\.(.*\.)?(uploadpack|receivepack|vcs)$/, RUNS],
  // It may come true later, when another branch is checked out.
  [/^includeif\.onbranch:/, 'which adds settings that cannot be judged beforehand'],
  // A remote whose name is an address takes the place of that address.
  [/^remote\..*:\/\//, LEADS],
  [/^http\.(.*\.)?(ssl(cainfo|capath|backend)|proxyssl\w+|schannel\w+|curloptresolve)$/, LEADS],
  [/^fetch\.bundleuri$/, 'which makes git fetch from another address'],
]

/** Whether the folder is one of these, or lies below one; links are followed. */
export async function isTrusted(folder: string, trusted: readonly string[]): Promise<boolean> {
  const place = `${await realpath(folder)}/`
  for (const given of trusted) {
    const path = await realpath(given.replace(/^~(?=\/|$)/, homedir())).catch(() => null)
    if (path !== null && place.startsWith(path === '/' ? path : `${path}/`)) return true
  }
  return false
}

/** Throws an AgentError that nothing was sent, when the repository, or a submodule in the folder, sets what is refused. */
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
  // git.ts sets the longest that there can be; of two that are as long git takes the repository's.
  if (/^url\..*\.(push)?insteadof$/.test(name) && value === address) return LEADS
  return REFUSED.find(([pattern]) => pattern.test(name))?.[1]
}

/** `git add` looks into submodules, and obeys their configuration there. */
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

/** What the machine's and the person's own configuration say of the way to a remote, whatever the repository says. */
export async function ownWay(folder: string, remote: GitRemote, context: AgentContext<unknown>): Promise<GitRemote> {
  const git = gitIn(folder, context)
  // As if there were no repository.
  const ask = (...args: string[]) => answerOr('', git(['config', ...args], { env: { GIT_DIR: '/dev/null' } }))
  if (!/^https?:/.test(remote.address)) return { ...remote, ssh: (await ask('--get', 'core.sshCommand')) || 'ssh' }
  return { ...remote, proxy: await ask('--get-urlmatch', 'http.proxy', remote.address) }
}
