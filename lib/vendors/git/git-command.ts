// Runs the git binary for agents: with an argument array instead of a shell, without hooks, prompts, signing or
// background processes, in a repository that its environment names. A command with a remote can reach only the address
// of that remote. The header with the credential is passed through the environment; the credential never appears in an
// argument, a URL or .git/config.

import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { messageOf } from '../../error.ts'
import { chunksIn } from '../../stream.ts'
import { linesOf } from '../../text/one-line.ts'

/** Number of characters of git's output that an error quotes. */
const QUOTED = 500
/** Maximum size of git's output. The list of a hundred thousand branches has about ten million bytes. */
const SAID_MOST = 64 * 1024 * 1024

/** The remote that a command may talk to. */
export interface GitRemote {
  /** An http(s) URL, an address of ssh, or the path of a folder. */
  address: string
  /** The value of the `Authorization` header for http(s). */
  authorization?: string
  /** The setting that contains the credential, for errors. */
  setting?: string
}

/** Where git runs. */
export interface Place {
  /** The root of the work tree. */
  root: string
  /** Names the repository. */
  env: Readonly<Record<string, string>>
}

export interface GitCommand {
  remote?: GitRemote
  env?: Record<string, string>
  /** What git reads from its stdin. */
  input?: string
  /** Whether stdin and stdout hold names, which need not be UTF-8: each character is one byte then. */
  bytes?: boolean
}

/**
 * Runs a git command and returns its stdout without trailing blanks. Throws an AgentError with `sent: 'no'`, because
 * every use here can be repeated safely.
 */
export type Git = (args: readonly string[], command?: GitCommand) => Promise<string>

/** A function that runs git in a work tree. Needs git 2.31 or later. */
export function gitIn({ root, env: place }: Place, context: AgentContext<unknown>): Git {
  return async (args, { remote, env = {}, input, bytes = false } = {}) => {
    if (context.signal.aborted) throw stopped(args[0]!)
    const encoding = bytes ? 'latin1' : 'utf8'
    const group = start(args, context, {
      cwd: root,
      env: { ...environment(context.env, remote), ...place, ...env },
      ...(input !== undefined && { input: Buffer.from(input, encoding) }),
    })
    const { child, stop } = group
    context.signal.addEventListener('abort', stop, { once: true })
    try {
      const [stdout, stderr, code] = await Promise.all([
        textOf(child.stdout, stop, encoding),
        textOf(child.stderr, stop, 'utf8'),
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
 * The result of a git command, or `no` when git answers with a failure. Throws when there was no answer, because git
 * was stopped or did not start.
 */
export async function answerOr<T>(no: T, asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof AgentError && error.code === 'git') return no
    throw error
  }
}

/** The error for what a person has to change in the request, the folder or its remote. */
export function refusal(at: string, message: string, hint: string): AgentError {
  return new AgentError(`[${at}] ${message}`, { code: 'invalid_request', hint, sent: 'no' })
}

/** Reads all of git's output. The size is limited, because the remote decides how much it lists. */
async function textOf(
  stream: ReadableStream<Uint8Array>,
  stop: () => void,
  encoding: 'utf8' | 'latin1',
): Promise<string> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunksIn(stream)) {
    size += chunk.byteLength
    if (size > SAID_MOST) {
      stop()
      throw new AgentError(`git printed more than ${SAID_MOST} bytes`, { code: 'too_large', sent: 'no' })
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString(encoding)
}

function start(
  args: readonly string[],
  context: AgentContext<unknown>,
  place: { cwd: string; env: Record<string, string>; input?: Uint8Array },
) {
  try {
    return context.start(['git', ...args], place)
  } catch (cause) {
    const hint = 'git 2.31 or later must be in the PATH of the daemon'
    throw new AgentError(`git did not start: ${messageOf(cause)}`, { code: 'not_started', hint, sent: 'no', cause })
  }
}

function environment(base: Readonly<Record<string, string>>, remote: GitRemote | undefined): Record<string, string> {
  const overHttp = remote !== undefined && /^https?:/.test(remote.address)
  const config = [...CONFIG, ...(overHttp ? pinned(remote) : [])]
  return {
    ...base,
    LC_ALL: 'C',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ALLOW_PROTOCOL: protocolOf(remote),
    GIT_CONFIG_COUNT: String(config.length),
    ...Object.fromEntries(
      config.flatMap(([key, value], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  }
}

/** The only protocol that git may speak: `none` for a command without a remote. */
function protocolOf(remote: GitRemote | undefined): string {
  if (remote === undefined) return 'none'
  if (remote.address.startsWith('/')) return 'file'
  return /^(https?):/.exec(remote.address)?.[1] ?? 'ssh'
}

/** Settings that override the configuration files of the system, the user and the repository. */
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

/**
 * Settings for exactly one URL. The complete URL is the most specific key, so no other setting can redirect this remote
 * or its credential.
 */
function pinned({ address, authorization }: GitRemote): [key: string, value: string][] {
  return [
    [`url.${address}.insteadOf`, address],
    [`url.${address}.pushInsteadOf`, address],
    [`http.${address}.followRedirects`, 'false'],
    [`http.${address}.sslVerify`, 'true'],
    [`http.${address}.saveCookies`, 'false'],
    // The general setting does not remove helpers that are configured for an address.
    [`credential.${address}.helper`, ''],
    // An address without TLS is on this machine, and a proxy could read the credential.
    ...(address.startsWith('http:') ? [[`http.${address}.proxy`, ''] as [string, string]] : []),
    // The empty value comes first: it removes headers that are configured elsewhere, such as the token of a CI system.
    [`http.${address}.extraHeader`, ''],
    ...(authorization ? [[`http.${address}.extraHeader`, `Authorization: ${authorization}`] as [string, string]] : []),
  ]
}

/** The meaning of git's messages in the C locale. The first match counts. */
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
    'the repository has moved: set the new address with `git remote set-url`',
  ],
  [/not found|does not appear to be a git repository/, 'not_found', 'check the address of the remote'],
  [
    /fetch first|non-fast-forward/,
    'conflict',
    'the remote branch has commits that are missing here: pull them, or choose another `branch`',
  ],
  [/Could not resolve|Couldn't connect|Failed to connect|timed out|hung up|early EOF/, 'network'],
]

function failure(
  { agent, callName }: AgentContext<unknown>,
  command: string,
  output: string,
  remote: GitRemote | undefined,
): AgentError {
  const said = linesOf(output).join('; ')
  const [, code = 'git', meant] = (remote && MEANINGS.find(([pattern]) => pattern.test(output))) ?? []
  const hint = code === 'unauthorized' && remote?.setting ? `set agents.${agent}.${remote.setting} again` : meant
  return new AgentError(`[${callName}] git ${command}: ${said.slice(-QUOTED) || 'failed'}`, {
    code,
    sent: 'no',
    retryable: code === 'network',
    ...(hint && { hint }),
  })
}
