// The system's ssh: its options from the settings, what is sent to the other side, and what its errors mean. Nothing of a team or of the settings passes through a shell of this machine, except the command that reaches a
// jump host, whose parts are quoted here.

import type { AgentContext } from '../agent/agent-context.ts'
import { AgentError } from '../agent/core/agent-error.ts'
import { fromHome, whyNoFile } from '../files/home-path.ts'
import { Type } from '../schema/type.ts'
import { textIn } from '../stream.ts'
import { linesOf } from '../text/one-line.ts'

/** A host name or an address, and a user. Neither can be taken for an option, or has a meaning for a shell. */
const HOST = '[A-Za-z0-9_]([A-Za-z0-9._-]*)|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*'
const USER = '[A-Za-z0-9_][A-Za-z0-9._-]*'
/** A path that ssh reads as it is. */
const PATH = '^[^"\\r\\n]+$'

export const SshOptions = {
  host: Type.String({
    pattern: `^(${HOST})$`,
    'x-expected': 'the name or the address of a host alone, such as web-1.acme.com, with the user in user',
    description: 'The name or the address of the host.',
  }),
  port: Type.Optional(Type.Integer({ minimum: 1, maximum: 65_535, description: 'The port of ssh; 22 by default.' })),
  user: Type.Optional(
    Type.String({
      pattern: `^(${USER})$`,
      'x-expected': 'a name of letters, digits, dots, - and _',
      description: 'The user there. The default is the user of this machine.',
    }),
  ),
  key_file: Type.Optional(
    Type.String({
      pattern: PATH,
      'x-expected': 'a path without quotation marks and line breaks',
      description: 'The path of the private key, which has no passphrase. The default is the standard keys in ~/.ssh.',
    }),
  ),
  known_hosts: Type.Optional(
    Type.String({
      pattern: PATH,
      'x-expected': 'a path without quotation marks and line breaks',
      description: 'The path of the file with the keys of hosts: by default ~/.ssh/known_hosts and the system’s file.',
    }),
  ),
  jump: Type.Optional(
    Type.String({
      pattern: `^((${USER})@)?([A-Za-z0-9_][A-Za-z0-9._-]*)(:[0-9]{1,5})?$`,
      'x-expected': 'a host such as user@bastion.example.org:22',
      description: 'A host through which the host is reached: user@host:port.',
    }),
  ),
  ssh_config: Type.Optional(Type.Boolean({ description: 'Whether ~/.ssh/config applies too. The default is false.' })),
}
const Settings = Type.Object(SshOptions)
export type SshSettings = Type.Static<typeof Settings>
export type SshContext = AgentContext<SshSettings>
type Context = SshContext

const CONNECT_SECONDS = 30
const STDERR_MOST = 2_000
/** What is kept of what ssh says, in bytes. */
const SAID_MOST = 1_048_576

/** What is wrong with the files that the settings name, in words that continue the key. */
export function whyNoSsh({ key_file, known_hosts }: { [K in keyof SshSettings]?: SshSettings[K] | undefined }) {
  return {
    key_file: key_file?.endsWith('.pub')
      ? `is ${key_file}, the public part of a key: write ${key_file.replace(/\.pub$/, '')}`
      : key_file !== undefined && whyNoFile(key_file, 'the private key'),
    known_hosts: known_hosts !== undefined && whyNoFile(known_hosts, 'the file with the keys of hosts'),
  }
}

/**
 * The command of ssh up to the host, with options of the call. Throws an AgentError for a host that must not be reached.
 */
export async function remoteOf({ settings, vet }: Context, own: readonly string[] = []): Promise<string[]> {
  const { host, port = 22, user, jump } = settings
  // The jump host resolves the name of a host behind it.
  const [, , , name = host, at] = /^((.*)@)?([^:@]+)(:\d+)?$/.exec(jump ?? '') ?? []
  await vet(`${name.includes(':') ? `[${name}]` : name}:${at ? at.slice(1) : port}`)
  const options = optionsOf(settings)
  const proxy = jump === undefined ? [] : ['-o', `ProxyCommand=${throughJump(jump, options)}`]
  const target = `${user === undefined ? '' : `${user}@`}${host}`
  return ['ssh', ...options, ...proxy, ...own, '-p', String(port), '--', target]
}

function optionsOf({ key_file, known_hosts, ssh_config = false }: SshSettings): string[] {
  const file = (path: string) => `"${fromHome(path).replaceAll('%', '%%')}"`
  const values = {
    BatchMode: 'yes',
    StrictHostKeyChecking: 'yes',
    UpdateHostKeys: 'no',
    ForwardAgent: 'no',
    ForwardX11: 'no',
    ClearAllForwardings: 'yes',
    PermitLocalCommand: 'no',
    ControlPath: 'none',
    ConnectTimeout: CONNECT_SECONDS,
    ServerAliveInterval: 15,
    ServerAliveCountMax: 4,
    LogLevel: 'ERROR',
    ...(key_file !== undefined && { IdentitiesOnly: 'yes', IdentityFile: file(key_file) }),
    ...(known_hosts !== undefined && { UserKnownHostsFile: file(known_hosts), GlobalKnownHostsFile: '/dev/null' }),
  }
  const given = Object.entries(values).flatMap(([name, value]) => ['-o', `${name}=${value}`])
  return ssh_config ? given : ['-F', 'none', ...given]
}

/** The command by which ssh reaches the host through another one, with the same rules. ssh replaces %h and %p. */
function throughJump(jump: string, options: string[]): string {
  const [, user = '', host = '', port = '22'] = /^(.*@)?([^:@]+):?(\d*)$/.exec(jump) ?? []
  const fixed = ['ssh', ...options, '-p', port || '22'].map(each => quoted(each).replaceAll('%', '%%'))
  return [...fixed, '-W', "'[%h]:%p'", '--', quoted(user + host)].join(' ')
}

/** A text as one word of a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/**
 * What a command is sent to the other side as: the arguments of ssh after the host, and the script that it reads from
 * stdin. The variables are set in the script, so that no list of processes shows them, and the command's own stdin is
 * empty. Throws an AgentError for a value that no variable can have.
 */
export function scriptOf(run: string, env: Record<string, string | number | boolean>) {
  const odd = Object.entries(env).find(([, value]) => String(value).includes('\0'))
  if (odd) {
    const options = { code: 'invalid_request', hint: 'leave it out, or write it as text', sent: 'no' } as const
    throw new AgentError(`the variable ${odd[0]} contains the character NUL`, options)
  }
  const variables = Object.entries(env).map(([name, value]) => `export ${name}=${quoted(String(value))}\n`)
  return { args: [`exec sh -c 'eval "$(cat)"'`], input: `${variables.join('')}${run}\n` }
}

/** The meaning of what ssh says before a command is started. The first match counts. */
const MEANINGS: readonly [said: RegExp, code: string, hint: (settings: SshSettings, agent: string) => string][] = [
  [
    /REMOTE HOST IDENTIFICATION HAS CHANGED|Host key for .* has changed/,
    'host_key',
    ({ host, known_hosts }) =>
      `the host has another key than ${known_hosts ?? '~/.ssh/known_hosts'} says: ask who runs ${host} before you replace the line`,
  ],
  [
    /Host key verification failed|host key is known/,
    'host_key',
    ({ host, port = 22, known_hosts = '~/.ssh/known_hosts' }) =>
      `add the key of the host and compare it with the one that its owner gives you: ssh-keyscan -p ${port} ${host} >> ${known_hosts}`,
  ],
  [
    /Permission denied \(|Too many authentication failures/,
    'unauthorized',
    ({ user, key_file }, agent) =>
      `${key_file ? `the key ${key_file}` : 'a standard key of ~/.ssh'} was offered${user ? ` for ${user}` : ''}: add its public half to authorized_keys there, and check agents.${agent}.key_file and agents.${agent}.user; a key with a passphrase cannot be used`,
  ],
  [
    /Identity file .* not accessible|UNPROTECTED PRIVATE KEY|Load key /,
    'unauthorized',
    (_, agent) => `check agents.${agent}.key_file: the file must exist, belong to you, and be readable only by you`,
  ],
  [/Could not resolve hostname/, 'dns', (_, agent) => `check the spelling of agents.${agent}.host`],
  [/subsystem request failed/, 'rejected', () => 'the host offers no sftp, which `get` and `put` need'],
  [
    /Connection refused|timed out|No route to host|Network is unreachable|Connection closed|kex_exchange_identification|Connection reset/,
    'network',
    (_, agent) => `check that ssh runs there, and agents.${agent}.host and agents.${agent}.port`,
  ],
]
const BEFORE =
  /Connection refused|connect to host|Could not resolve|Permission denied \(|verification failed|kex_exchange/

/** The error of ssh itself; null if it is the command that failed. */
export function explainSsh(
  { agent, callName, settings }: Pick<Context, 'agent' | 'callName' | 'settings'>,
  stderr: string,
): AgentError | null {
  const found = MEANINGS.find(([said]) => said.test(stderr))
  if (!found) return null
  const [, kind, hintOf] = found
  const message = linesOf(stderr).slice(-2).join('; ')
  return new AgentError(`[${callName}] ${settings.host}: ${message}`, {
    code: kind,
    hint: hintOf(settings, agent),
    retryable: kind === 'network' || kind === 'dns',
    sent: BEFORE.test(stderr) ? 'no' : 'unknown',
  })
}

/** Why ssh does not start on this machine. */
export const NOT_STARTED = { notStarted: 'on this machine', hint: 'install OpenSSH, so that ssh is in PATH' }

export function sshEnvironment({ env }: Context): Record<string, string> {
  return { ...env, LC_ALL: 'C' }
}

/**
 * Starts ssh. Its group ends with the run, and `done` gives the error that its end means. Without `input`, the caller
 * writes to stdin.
 */
export function startSsh(context: Context, doing: string, command: string[], input?: string) {
  context.signal.throwIfAborted()
  let group: ReturnType<Context['start']>
  try {
    const stdin = input === undefined ? { keepInput: true } : { input }
    group = context.start(command, { cwd: context.stateDir, env: sshEnvironment(context), ...stdin })
  } catch (cause) {
    const { hint } = NOT_STARTED
    throw new AgentError(`[${context.callName}] ssh did not start`, {
      code: 'not_started',
      hint,
      sent: 'no',
      cause,
    })
  }
  const { child, stop } = group
  context.signal.addEventListener('abort', stop, { once: true })
  const stderr = textIn(child.stderr, { most: SAID_MOST })
  return {
    stdin: child.stdin,
    stdout: child.stdout,
    /** Throws unless the program ended well. */
    async done() {
      const [code, said] = await Promise.all([child.exited, stderr])
      const { callName, signal, settings } = context
      if (signal.aborted) throw new AgentError(`[${callName}] ${doing}: stopped`, { code: 'aborted', sent: 'unknown' })
      if (code === 0) return
      // ssh exits with 255 where the error is its own.
      const explained = code === 255 ? explainSsh(context, said) : null
      if (explained) throw explained
      const words = linesOf(said.trim().slice(-STDERR_MOST)).join('; ')
      const kind = /No such file|not found/.test(said)
        ? 'not_found'
        : /ermission denied/.test(said)
          ? 'forbidden'
          : 'exit'
      throw new AgentError(`[${callName}] ${settings.host}: ${doing}: ${words || `exited with code ${code}`}`, {
        code: kind,
      })
    },
    close() {
      context.signal.removeEventListener('abort', stop)
      group.close()
    },
  }
}

/** The stdout of ssh, once it has ended well. */
export async function sshOutput(
  context: Context,
  doing: string,
  remote: string[],
  { args, input }: ReturnType<typeof scriptOf>,
) {
  const program = startSsh(context, doing, [...remote, ...args], input)
  try {
    const text = await textIn(program.stdout, { most: SAID_MOST })
    await program.done()
    return text
  } finally {
    program.close()
  }
}
