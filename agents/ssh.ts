// ssh: runs commands on another host and copies files, with the system's ssh and sftp.
//
//   settings: host, port?, user?, key_file?, known_hosts?, jump?, ssh_config?
//   run      commands: [{ name, run, env?, timeout?, effect? }], env?   in order; the first that fails ends the phase
//   capture  sources: [{ name, run, env? }]          a command that only reads; its stdout becomes the file
//   get      sources: [{ name, ref: path there }]
//   put      target_entries: [{ name, ref: path there, file }]           a ref that ends with / keeps the file's name
//
// Commands are run by `sh` there, as those of exec are here: idempotent unless they have `effect: once`. Templates are
// never read in `run`: values are in `env`. They reach `sh` over its stdin, and no shell of this machine sees them; the
// command's own stdin is empty. `data` has the commands with exit_code and stdout, as exec's. A cancel and a time-out
// end ssh here; a command there notices it when it next writes.
//
// `put` writes a temporary file beside the target and renames it, so that nobody reads half a file. Paths are those of
// sftp: relative ones begin at the user's home, and `~` is not expanded.
//
// The host must be in known_hosts, and keys are files without a passphrase. ~/.ssh/config does not apply unless
// ssh_config is true. No agent is used or forwarded.
//
// https://man.openbsd.org/ssh  https://man.openbsd.org/sftp  https://man.openbsd.org/ssh_config

import { rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  DURATION_PATTERN,
  entryOf,
  literal,
  runCommand,
  Type,
  withRetries,
} from 'cadre'
import {
  CommandReport,
  chunksIn,
  explainSsh,
  NOT_STARTED,
  remoteOf,
  SshOptions,
  scriptOf,
  sshEnvironment,
  sshOutput,
  startSsh,
  whyNoSsh,
  withSent,
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
  pattern: '^[^\\r\\n\\0]+$',
  'x-expected': 'a path without line breaks',
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
    await sshOutput(context, 'true', await remoteOf(context, 'ssh'), scriptOf('true', {}))
    return { who: user ?? null, missing: [], text: `${host}: signed in${jump ? ` through ${jump}` : ''}` }
  },
  actions: {
    run: {
      direction: 'phase',
      description: 'Runs commands on the host, one after the other.',
      effect: ({ commands }) => (commands.some(({ effect }) => effect === 'once') ? 'once' : 'idempotent'),
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
      entry: entryOf({ ref: Path }),
      data: Copied,
      async run({ name, ref }, context) {
        const copy = join(context.stateDir, `.${crypto.randomUUID()}`)
        try {
          await transfer(context, `get ${ref}`, [`get ${word(ref)} ${word(copy)}`])
          const { bytes } = await context.write(name, Bun.file(copy))
          return { text: `${context.settings.host}:${ref}: ${bytes} bytes`, data: { bytes, path: ref } }
        } finally {
          await rm(copy, { force: true })
        }
      },
    },
    put: {
      direction: 'target',
      description: 'Copies a file of the run or the workspace to the host.',
      effect: 'idempotent',
      entry: entryOf({
        ref: Path,
        file: Type.String({ minLength: 1, description: 'The path of the file that is copied.' }),
      }),
      data: Copied,
      run: put,
    },
  },
})

type Commands = { commands: Type.Static<typeof Command>[]; env?: Type.Static<typeof Env> }

async function runAll({ commands, env = {} }: Commands, context: Context): Promise<AgentResult> {
  const remote = await remoteOf(context, 'ssh')
  const retryable = commands.every(({ effect }) => effect !== 'once')
  const reports = []
  let wrote = false
  for (const { name, run, timeout, effect, env: own } of commands) {
    const { args, input } = scriptOf(run, { ...env, ...own })
    try {
      const report = await runCommand(context, {
        ...{ name, command: [...remote, ...args], cwd: context.stateDir, env: sshEnvironment(context), input },
        ...{ timeout, retryable, ...NOT_STARTED },
        meaning: (code, stderr) => (code === 255 ? explainSsh(context, stderr) : null),
      })
      reports.push(report)
    } catch (error) {
      // Until a command with effect `once` has begun, a repetition cannot write anything twice.
      const begun = wrote || (effect === 'once' && !(error instanceof AgentError && error.sent === 'no'))
      throw begun ? unsure(error) : error instanceof AgentError ? withSent(error, 'no') : error
    }
    wrote ||= effect === 'once'
  }
  const text = reports.length === 1 ? `${reports[0]!.name} passed` : `${reports.length} commands passed`
  return { text, data: { commands: reports } }
}

function unsure(error: unknown): unknown {
  return error instanceof AgentError ? withSent(error, 'unknown') : error
}

/** Writes the stdout of a command to a file, unless the command fails. */
async function captured(name: string, run: string, env: Type.Static<typeof Env>, context: Context) {
  const { args, input } = scriptOf(run, env)
  const program = startSsh(context, name, [...(await remoteOf(context, 'ssh')), ...args], input)
  const chunks = chunksIn(program.stdout)
  const stream = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next()
      if (value) return controller.enqueue(value)
      if (done) await program.done()
      controller.close()
    },
  })
  try {
    return await context.write(name, stream)
  } finally {
    program.close()
  }
}

async function put({ ref, file: path }: { ref: string; file: string }, context: Context): Promise<AgentResult> {
  const file = await context.read(path)
  const target = ref.endsWith('/') ? ref + basename(path) : ref
  const temporary = join(dirname(target), `.${basename(target)}.${crypto.randomUUID().slice(0, 8)}`)
  try {
    await transfer(context, `put ${target}`, [
      `put -f ${word(file.name!)} ${word(temporary)}`,
      `rename ${word(temporary)} ${word(target)}`,
    ])
  } catch (error) {
    if (!context.signal.aborted) await transfer(context, 'clean up', [`-rm ${word(temporary)}`]).catch(() => {})
    throw error
  }
  const { host } = context.settings
  const external = { url: `sftp://${host}/${encodeURI(target.replace(/^\//, ''))}` }
  return { text: `${host}:${target}: ${file.size} bytes written`, data: { bytes: file.size, path: target }, external }
}

/** Runs commands of sftp, and tries again while the host cannot be reached. */
async function transfer(context: Context, doing: string, commands: string[]): Promise<void> {
  const [program, ...rest] = await remoteOf(context, 'sftp')
  await withRetries(context, () =>
    sshOutput(context, doing, [program!, '-b', '-', ...rest], { args: [], input: `${commands.join('\n')}\n` }),
  )
}

/** A path as one word of sftp, in which no character has a meaning. */
function word(path: string): string {
  return `"${path.replace(/[\\"]/g, '\\$&')}"`
}
