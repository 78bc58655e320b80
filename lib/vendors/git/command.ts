// The git binary as agents use it: an argument array and no shell, no hooks, no prompts, no signing, nothing left running.
// A command that talks to a remote may reach that one address and no other; the credential goes there in a header, handed
// over in the environment, and stands in no argument, URL or .git/config.

import { type AgentContext, AgentError } from '../../agent/define.ts'
import { messageOf } from '../../error.ts'
import { chunksIn } from '../../stream.ts'

/** Characters of what git said that an error quotes. */
const QUOTED = 500
/** Bytes that are kept of what git says; a hundred thousand branches are ten million. */
const SAID_MOST = 64 * 1024 * 1024

/** What a command may talk to. */
export interface GitRemote {
  /** An http(s) URL, or the name of a remote that is reached by ssh or in the file system. */
  address: string
  /** The value of an `Authorization` header, for http(s). */
  authorization?: string
  /** The setting that holds it, for errors. */
  setting?: string
  /** The proxy for http(s), empty for none, and the command that stands for ssh. Where they are not given git decides. */
  proxy?: string
  ssh?: string
}

export interface GitCommand {
  remote?: GitRemote
  env?: Record<string, string>
}

/** stdout, trimmed at its end. Throws an AgentError that nothing was written outside, as every use here can be repeated. */
export type Git = (args: readonly string[], command?: GitCommand) => Promise<string>

/** git in a folder, which may be trusted with its own configuration. Needs git 2.31 or later. */
export function gitIn(folder: string, context: AgentContext<unknown>, { trusted = false } = {}): Git {
  return async (args, { remote, env = {} } = {}) => {
    if (context.signal.aborted) throw stopped(args[0]!)
    const group = start(args, context, { cwd: folder, env: { ...environment(context.env, remote, trusted), ...env } })
    const { child, stop } = group
    context.signal.addEventListener('abort', stop, { once: true })
    try {
      const [stdout, stderr, code] = await Promise.all([
        textOf(child.stdout, stop),
        textOf(child.stderr, stop),
        child.exited,
      ])
      if (context.signal.aborted) throw stopped(args[0]!)
      if (code !== 0) throw failure(context, args[0]!, `${stdout}\n${stderr}`, remote)
      return stdout.trimEnd()
    } finally {
      group.close()
      context.signal.removeEventListener('abort', stop)
    }
  }
}

function stopped(command: string): AgentError {
  return new AgentError(`git ${command} was stopped`, { code: 'aborted', sent: 'no' })
}

/**
 * What git answers, or `no` where it says that it is not so. Throws what kept it from an answer: it was stopped, or did
 * not start.
 */
export async function answerOr<T>(no: T, asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof AgentError && error.code === 'git') return no
    throw error
  }
}

/** All that git says: a remote decides how much it lists, so there is a bound. */
async function textOf(stream: ReadableStream<Uint8Array>, stop: () => void): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunksIn(stream)) {
    size += chunk.byteLength
    if (size > SAID_MOST) {
      stop()
      throw new AgentError(`git said more than ${SAID_MOST} bytes`, { code: 'too_large', sent: 'no' })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function start(
  args: readonly string[],
  context: AgentContext<unknown>,
  place: { cwd: string; env: Record<string, string> },
) {
  try {
    return context.start(['git', ...args], place)
  } catch (cause) {
    const hint = 'git 2.31 or later has to be in the PATH of the daemon'
    throw new AgentError(`git did not start: ${messageOf(cause)}`, { code: 'not_started', hint, sent: 'no', cause })
  }
}

function environment(
  base: Readonly<Record<string, string>>,
  remote: GitRemote | undefined,
  trusted: boolean,
): Record<string, string> {
  const overHttp = remote !== undefined && /^https?:/.test(remote.address)
  const config = [...CONFIG, ...(trusted ? [] : UNTRUSTED), ...(overHttp ? pinned(remote) : [])]
  return {
    ...base,
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    ...(remote?.ssh && { GIT_SSH_COMMAND: remote.ssh }),
    GIT_ALLOW_PROTOCOL: overHttp ? new URL(remote.address).protocol.slice(0, -1) : remote ? 'ssh:file' : 'none',
    GIT_CONFIG_COUNT: String(config.length),
    ...Object.fromEntries(
      config.flatMap(([key, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  }
}

/** These win over the files of the machine, the person and the repository. */
const CONFIG: readonly [key: string, value: string][] = [
  ['core.hooksPath', '/dev/null'],
  ['core.fsmonitor', 'false'],
  ['core.askPass', ''],
  ['credential.helper', ''],
  ['commit.gpgSign', 'false'],
  ['push.gpgSign', 'false'],
  ['log.showSignature', 'false'],
  ['push.recurseSubmodules', 'no'],
  ['fetch.recurseSubmodules', 'no'],
  ['submodule.recurse', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  ['http.lowSpeedLimit', '1'],
  ['http.lowSpeedTime', '60'],
]

/** The command is a part of a shell's line; this one does nothing, and lists no commits of another repository. */
const UNTRUSTED: readonly [key: string, value: string][] = [['core.alternateRefsCommand', ':']]

/** The whole URL is the most specific of all keys, so no other setting sends this remote, or its credential, elsewhere. */
function pinned({ address, authorization, proxy }: GitRemote): [key: string, value: string][] {
  return [
    [`url.${address}.insteadOf`, address],
    [`url.${address}.pushInsteadOf`, address],
    [`http.${address}.followRedirects`, 'false'],
    [`http.${address}.sslVerify`, 'true'],
    [`http.${address}.saveCookies`, 'false'],
    // The general setting does not drop the helpers that are set for an address.
    [`credential.${address}.helper`, ''],
    // Without TLS it is on this machine, and a proxy would read it.
    ...proxied(address, address.startsWith('http:') ? '' : proxy),
    // An empty value first: it drops the headers that others have set, such as a CI's own token.
    [`http.${address}.extraHeader`, ''],
    ...(authorization ? [[`http.${address}.extraHeader`, `Authorization: ${authorization}`] as [string, string]] : []),
  ]
}

function proxied(address: string, proxy: string | undefined): [key: string, value: string][] {
  return proxy === undefined ? [] : [[`http.${address}.proxy`, proxy]]
}

/** What git's own words mean, in the C locale; the first that fits. */
const MEANINGS: readonly [said: RegExp, code: string, hint?: string][] = [
  [/returned error: (429|5\d\d)|HTTP 5\d\d/, 'network'],
  [/returned error: 401|could not read Username|Authentication failed/, 'unauthorized'],
  [
    /returned error: 403|Permission denied/,
    'forbidden',
    'the credential lacks the permission to write to the repository',
  ],
  [
    /unable to update url base from redirection|returned error: 30\d/,
    'redirects',
    'the repository has moved: give the remote its present address with `git remote set-url`',
  ],
  [/not found|does not appear to be a git repository/, 'not_found', 'check the address of the remote'],
  [
    /fetch first|non-fast-forward/,
    'conflict',
    'the branch has commits outside that are not here: pull them, or choose another `branch`',
  ],
  [/Could not resolve|Couldn't connect|Failed to connect|timed out|hung up|early EOF/, 'network'],
]

function failure(
  { agent, place }: AgentContext<unknown>,
  command: string,
  output: string,
  remote: GitRemote | undefined,
): AgentError {
  const said = output.trim().replace(/\s*\n\s*/g, '; ')
  const [, code = 'git', meant] = (remote && MEANINGS.find(([pattern]) => pattern.test(output))) ?? []
  const hint = code === 'unauthorized' && remote?.setting ? `set agents.${agent}.${remote.setting} anew` : meant
  return new AgentError(`[${place}] git ${command}: ${said.slice(-QUOTED) || 'failed'}`, {
    code,
    sent: 'no',
    retryable: code === 'network',
    ...(hint && { hint }),
  })
}
