// ssh: runs commands on another host and copies files, with the system's ssh.
//
//   settings: host, port?, user?, key_file?, known_hosts?, jump?, ssh_config?
//   run      commands: [{ name, run, env?, timeout?, effect? }], env?   in order; the first that fails ends the phase
//   capture  sources: [{ name, run, env? }]          a command that only reads; its stdout becomes the file. If it fails,
//                                                    the log has the last lines of its stdout
//   get      sources: [{ name, ref: path there }]
//   put      target_entries: [{ name, ref: path there, file }]           a ref that ends with / keeps the file's name
//
// Commands are run by `sh` there, as those of exec are here: idempotent unless they have `effect: once`. One with `once`
// is sent when the host has said that a shell is ready, and the host says with which code it ended: whatever failed
// before did nothing, and is tried again by `resume`; a lost connection, or any code but 0, asks a person. A host with a
// forced command runs no command with `once`. Templates are never read in `run`: values are in `env`. They reach `sh` over its stdin, and no shell of this machine sees them; the
// command's own stdin is empty. `data` has the commands with exit_code and stdout, as exec's. A cancel and a time-out
// end ssh here; a command there notices it when it next writes.
//
// `put` writes a temporary file beside the target and renames it, so that nobody reads half a file. Files are copied by
// packets of SFTP, in which a path is its bytes: no character of it has a meaning. Relative paths begin at the user's
// home, and `~` is not expanded.
//
// A folder is copied as an archive: `tar -czf site.tgz site` in exec, `put` with `file: site.tgz` and
// `ref: /srv/site.tgz`, then `tar -xzf /srv/site.tgz -C /srv` in `run`.
//
// The host must be in known_hosts, and keys are files without a passphrase. ~/.ssh/config does not apply unless
// ssh_config is true. No agent is used or forwarded.
//
// https://man.openbsd.org/ssh  https://man.openbsd.org/ssh_config

import { basename } from 'node:path'
import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  CommandReport,
  DURATION_PATTERN,
  entryOf,
  literal,
  runCommand,
  Type,
  withRetries,
} from 'cadre'
import {
  chunksIn,
  filePath,
  NOT_STARTED,
  oneLine,
  remoteOf,
  SshOptions,
  scriptOf,
  sshEnvironment,
  sshOutput,
  startSsh,
  streamOf,
  talkOf,
  whyNoSsh,
  withSent,
  withSftp,
} from 'cadre/vendors'

const Settings = Type.Object(SshOptions, { additionalProperties: false })
type Context = AgentContext<Type.Static<typeof Settings>>

const Env = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
  Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
  { additionalProperties: false, description: 'Variables for the command. Values of a run belong here.' },
)
const Run = literal('put the value in `env` and use "$NAME" here', {
  description: 'What `sh` runs on the host. It has no templates.',
})
const Command = Type.Object(
  {
    name: Type.String({ minLength: 1, description: 'The name of the command in the log and in the result.' }),
    run: Run,
    env: Type.Optional(Env),
    timeout: Type.Optional(
      Type.String({ pattern: DURATION_PATTERN, description: 'How long the command may take, such as 5m.' }),
    ),
    effect: Type.Optional(
      Type.Enum(['idempotent', 'once'], {
        description: 'Whether the command may run again (`idempotent`, the default).',
      }),
    ),
  },
  { additionalProperties: false },
)
const Path = Type.String({
  minLength: 1,
  pattern: '^[^\\0]+$',
  'x-expected': 'a path without NUL',
  description: 'The path of the file on the host.',
})
const bytes = Type.Integer({ description: 'How many bytes the file has.' })
const Copied = Type.Object({ bytes, path: Type.String({ description: 'The path of the file on the host.' }) })

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Runs commands on another host over ssh, and copies files.',
  settings: Settings,
  check: whyNoSsh,
  /** Runs `true` on the host. */
  async doctor(context) {
    const { host, user, jump } = context.settings
    await sshOutput(context, 'true', await remoteOf(context), scriptOf('true', {}))
    return { who: user ?? null, missing: [], text: `${host}: signed in${jump ? ` through ${jump}` : ''}` }
  },
  actions: {
    run: {
      direction: 'phase',
      description: 'Runs commands on the host, one after the other.',
      effect: ({ commands }) => (commands.some(({ effect }) => effect === 'once') ? 'once' : 'idempotent'),
      example: { commands: [{ name: 'restart', run: 'systemctl --user restart web' }] },
      entry: Type.Object(
        {
          commands: Type.Array(Command, { minItems: 1, description: 'The commands, in order.' }),
          env: Type.Optional(Env),
        },
        { additionalProperties: false },
      ),
      data: Type.Object({ commands: Type.Array(CommandReport, { description: 'The commands, in order.' }) }),
      run: runAll,
    },
    capture: {
      direction: 'source',
      description: 'Runs a command that only reads, and writes its stdout to a file.',
      effect: 'read',
      example: { name: 'disk.txt', run: 'df -h' },
      entry: entryOf({ run: Run, env: Type.Optional(Env) }),
      data: Type.Object({ bytes }),
      async run({ name, run, env = {} }, context) {
        const file = await withRetries(context, () => captured(name, run, env, context))
        return { text: `${context.settings.host}: ${file.bytes} bytes`, data: { bytes: file.bytes } }
      },
    },
    get: {
      direction: 'source',
      description: 'Copies a file of the host to a file of the run.',
      effect: 'read',
      example: { name: 'web.log', ref: '/var/log/web.log' },
      entry: entryOf({ ref: Path }),
      data: Copied,
      async run({ name, ref }, context) {
        const { bytes } = await withRetries(context, () =>
          withSftp(context, `get ${oneLine(ref)}`, sftp => context.write(name, sftp.read(ref))),
        )
        return { text: `${context.settings.host}:${oneLine(ref)}: ${bytes} bytes`, data: { bytes, path: ref } }
      },
    },
    put: {
      direction: 'target',
      description: 'Copies a file of the run or the workspace to the host.',
      effect: 'idempotent',
      example: { name: 'page', ref: '/srv/web/index.html', file: 'files/build/index.html' },
      entry: entryOf({
        ref: Path,
        file: filePath('The path of the file that is copied.'),
      }),
      data: Copied,
      run: put,
    },
  },
})

type Commands = { commands: Type.Static<typeof Command>[]; env?: Type.Static<typeof Env> }

async function runAll({ commands, env = {} }: Commands, context: Context): Promise<AgentResult> {
  const remote = await remoteOf(context)
  const retryable = commands.every(({ effect }) => effect !== 'once')
  const reports = []
  let wrote = false
  for (const { name, run, timeout, effect, env: own } of commands) {
    const sure = effect === 'once'
    const talk = talkOf(context, { run, env: { ...env, ...own }, sure })
    try {
      const report = await runCommand(context, {
        ...{ name, command: [...remote, ...talk.args], cwd: context.stateDir, env: sshEnvironment(context) },
        ...{ input: talk.input, timeout, retryable, ...NOT_STARTED, talk },
      })
      reports.push(report)
    } catch (error) {
      // Until a command with effect `once` has begun, a repetition cannot write anything twice.
      throw withSent(asAgentError(error, context), wrote || (sure && talk.mayHaveRun) ? 'unknown' : 'no')
    }
    wrote ||= effect === 'once'
  }
  const text = reports.length === 1 ? `${reports[0]!.name} passed` : `${reports.length} commands passed`
  return { text, data: { commands: reports } }
}

function asAgentError(thrown: unknown, { signal }: Context): AgentError {
  if (thrown instanceof AgentError) return thrown
  return new AgentError(String(thrown), { ...(signal.aborted && { code: 'aborted' }), cause: thrown })
}

/** How much of the stdout of a command that fails is logged, in bytes, and how much is kept, because no secret is longer. */
const SHOWN_BYTES = 2_000
const KEPT_BYTES = 256 * 1_024

/** Writes the stdout of a command to a file. If the command fails, its last lines are logged instead. */
async function captured(name: string, run: string, env: Type.Static<typeof Env>, context: Context) {
  const { args, input } = scriptOf(run, env)
  const program = startSsh(context, name, [...(await remoteOf(context)), ...args], input)
  const kept: Uint8Array[] = []
  let bytes = 0
  async function* printed() {
    for await (const chunk of chunksIn(program.stdout)) {
      kept.push(chunk)
      bytes += chunk.length
      while (bytes - kept[0]!.length >= KEPT_BYTES) bytes -= kept.shift()!.length
      yield chunk
    }
    try {
      await program.done()
    } catch (error) {
      logEnd(Buffer.concat(kept), context)
      throw error
    }
  }
  try {
    return await context.write(name, streamOf(printed()))
  } finally {
    program.close()
  }
}

/** Logs the last lines of what a command printed. It is masked before it is cut, so that no part of a secret is shown. */
function logEnd(printed: Buffer, context: Context): void {
  const mask = context.mask()
  const masked = Buffer.concat([mask.push(printed), mask.end()])
  const end = masked.subarray(-SHOWN_BYTES).toString()
  const text = end.length < masked.length ? `…${end}` : end
  for (const line of text.split('\n')) if (line !== '') context.log(line)
}

async function put({ ref, file: path }: { ref: string; file: string }, context: Context): Promise<AgentResult> {
  const file = await context.read(path)
  const target = ref.endsWith('/') ? ref + basename(path) : ref
  const shown = oneLine(target)
  const temporary = `${target.slice(0, target.lastIndexOf('/') + 1)}.cadre-${crypto.randomUUID()}`
  try {
    await withRetries(context, () =>
      withSftp(context, `put ${shown}`, async sftp => {
        await sftp.write(temporary, file)
        await sftp.rename(temporary, target)
      }),
    )
  } catch (error) {
    // By a connection of its own, because the other one may have been lost.
    if (!context.signal.aborted) await withSftp(context, 'clean up', sftp => sftp.remove(temporary)).catch(() => {})
    throw error
  }
  const { host } = context.settings
  const external = { url: `sftp://${host}/${target.replace(/^\//, '').split('/').map(encodeSegment).join('/')}` }
  return { text: `${host}:${shown}: ${file.size} bytes written`, data: { bytes: file.size, path: target }, external }
}

function encodeSegment(segment: string): string {
  return encodeURIComponent(segment.toWellFormed())
}
