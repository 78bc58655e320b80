// Checks the configuration of a repository. In a folder that was unpacked, copied or changed by a command somebody else
// wrote it, and git takes programs, folders and addresses from it. A few keys are harmless. Every other key needs the
// trust of the operator, so that keys of later versions of git are refused, too.

import { realpath, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { openPlain } from '../../agent/files/hashed-file.ts'
import { fromHome } from '../../files/home-path.ts'
import { oneLine } from '../../text/one-line.ts'
import { gitIn } from './git-command.ts'

export interface Trust {
  folders: readonly string[]
  /** The key of the setting with the trusted folders, below the agent's own key, for errors. */
  setting: string
}

/** Larger files are not read: a configuration has a few hundred bytes. */
const CONFIG_MOST = 1024 * 1024

/** Harmless keys, in lower case: what `git init`, `clone`, `switch`, `remote` and `submodule` write. */
const HARMLESS: readonly RegExp[] = [
  /^core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks)$/,
  /^extensions\.(objectformat|relativeworktrees)$/,
  // If a remote has an address as its name, git uses the remote instead of the address.
  /^remote\.[^:]*\.(url|pushurl|fetch|push|mirror|prune|prunetags|tagopt|skipdefaultupdate|skipfetchall|gh-resolved)$/,
  /^remote\.pushdefault$/,
  /^branch\./,
  /^user\.(name|email|signingkey|useconfigonly)$/,
  /^submodule\.(.*\.)?(url|active|branch)$/,
  /^lfs\.repositoryformatversion$/,
  // No command here asks for them.
  /^(push\.default|status\.showuntrackedfiles)$/,
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

/** The error for what only a trusted folder may have. Its hint is the line for settings.yml. */
export function untrusted(
  { agent, callName }: AgentContext<unknown>,
  { setting }: Pick<Trust, 'setting'>,
  folder: string,
  message: string,
  instead?: string,
): AgentError {
  const trust = `trust the folder in settings.yml: agents.${agent}.${setting}: [${JSON.stringify(folder)}]`
  const hint = instead ? `${instead}, or ${trust}` : trust
  return new AgentError(`[${callName}] ${message}`, { code: 'invalid_request', hint, sent: 'no' })
}

/**
 * Copies the file `config` of a repository to `copy`, and throws an AgentError if the copy has more than harmless keys.
 * git is to read the copy, so that nobody changes what was judged. Returns the values of `core.worktree`, which are all
 * `root`.
 */
export async function judgedCopy(
  { root, gitDir, commonDir }: { root: string; gitDir: string; commonDir: string },
  copy: string,
  trust: Pick<Trust, 'setting'>,
  context: AgentContext<unknown>,
): Promise<string[]> {
  await writeFile(copy, await textOf(join(commonDir, 'config')), { mode: 0o600 })
  // git is given no repository, so it reads no other configuration of one.
  const git = gitIn({ root: resolve(copy, '..'), env: { GIT_DIR: '/dev/null' } }, context)
  const listed = await git(['config', '--file', copy, '--no-includes', '--list', '-z'])
  const worktrees: string[] = []
  for (const entry of listed.split('\0').filter(Boolean)) {
    const [key = '', ...value] = entry.split('\n')
    const name = key.toLowerCase()
    if (name === 'core.worktree') {
      const leads = await realpath(resolve(gitDir, value.join('\n'))).catch(() => null)
      if (leads !== root) throw refusal(key, root, trust, context)
      worktrees.push(leads)
    } else if (!HARMLESS.some(each => each.test(name))) throw refusal(key, root, trust, context)
  }
  return worktrees
}

async function textOf(file: string): Promise<Buffer> {
  await using handle = await openPlain(file)
  const { size } = await handle.stat()
  const bytes = Buffer.alloc(Math.min(size, CONFIG_MOST))
  const { bytesRead } = await handle.read(bytes, 0, bytes.length, 0)
  return bytes.subarray(0, bytesRead)
}

function refusal(key: string, root: string, trust: Pick<Trust, 'setting'>, context: AgentContext<unknown>): AgentError {
  // Part of the key is any text, which is no word of a command that a person may paste.
  const isPlain = /^[\w.:/*-]+$/.test(key)
  const shown = isPlain ? key : JSON.stringify(oneLine(key))
  const message = `the repository's own configuration has ${shown}, which is more than remotes, branches and a user`
  return untrusted(context, trust, root, message, wayOut(key, isPlain))
}

/** What else a person may do. Keys of a partial clone or a sparse checkout cannot be removed: git needs them there. */
function wayOut(key: string, isPlain: boolean): string {
  if (/partialclone|promisor/i.test(key)) return 'clone it without --filter'
  if (/sparse|worktreeconfig/i.test(key)) return 'end its sparse checkout with git sparse-checkout disable'
  const instead = 'set it with git config --global'
  return isPlain ? `remove it with git config --unset-all ${key}, or ${instead}` : instead
}
