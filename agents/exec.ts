// exec: runs shell commands in the workspace. Each command runs as `sh -c` in its own process group, with a closed
// stdin and a clean environment. Its output is masked and logged line by line while it runs.
//
// They run where the owner of the machine wants it: in a sandbox, or as the daemon does. A sandbox shows them the
// workspace and the files of the run, has no network unless the phase needs it and the owner consents, and HOME is an
// empty folder.
//
//   commands: [{ name, run, env?, timeout?, effect? }]   in order; the first that fails ends the phase
//   env: { NAME: value }                                 for all of them; a command's own env wins; null is empty
//   needs: [network]                                     what a sandbox does not give without the owner's consent
//
// The phase's `retry` repeats a failed command only if every command of the phase is idempotent. Commands are
// idempotent unless they have `effect: once`. What a repetition of such a command meets is unknown here: once it has
// begun, it is not run again by itself, and a person decides.
//
// A command sees PATH, HOME, LANG, env, CADRE_RUN_ID, CADRE_FILES (the run's files), CADRE_OUT (this phase's folder),
// CADRE_RESULT (JSON written there becomes `data`), CADRE_OUTPUT (lines `name=value`, and texts of several lines between
// `name<<END` and `END`, become fields of `data`), CADRE_BUN (the Bun that runs cadre), and TRACEPARENT if runs are
// traced. Values are passed through the environment and are never inserted into the command's text.
//
// As in any script, sh goes on after a line that fails, and the last line decides: a `run` of several lines begins with
// `set -e`.

import { constants, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type AgentContext,
  AgentError,
  agent,
  beforehand,
  bunIn,
  CommandNeeds,
  CommandReport,
  DURATION_PATTERN,
  type Json,
  type JsonObject,
  runCommand,
  Type,
} from 'cadre'

/** The files that commands write `data` to, by the variables that name them. */
const WRITTEN = {
  CADRE_RESULT: {
    name: 'result.json',
    form: 'JSON that can become data',
    hint: 'write one JSON value to this file, and larger results to files in CADRE_OUT',
  },
  CADRE_OUTPUT: {
    name: 'output',
    form: 'lines `name=value`, or texts between the lines `name<<END` and `END`',
    hint: 'write other forms to CADRE_RESULT as JSON, and larger results to files in CADRE_OUT',
  },
} as const

/** Bytes of each. */
const WRITTEN_MOST = 1024 * 1024

const env = (description: string) =>
  Type.Optional(
    Type.Record(
      Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
      Type.Union([Type.String(), Type.Number(), Type.Boolean(), Type.Null()], {
        'x-expected': 'a text, a number, true or false, or null for an empty one (toJson(x) makes a text of any value)',
      }),
      { additionalProperties: false, 'x-expected': 'a mapping of variable names to values', description },
    ),
  )

const Command = Type.Object(
  {
    name: Type.String({ minLength: 1, description: 'The name of the command, for logs and results.' }),
    run: Type.String({
      minLength: 1,
      description:
        'What sh runs in the workspace. Begin several lines with `set -e`: otherwise only the last of them can fail.',
    }),
    env: env('Variables of this command; they win over those of the phase. A null gives an empty variable.'),
    timeout: Type.Optional(
      Type.String({ pattern: DURATION_PATTERN, description: 'How long the command may take, such as 90s or 5m.' }),
    ),
    effect: Type.Optional(
      Type.Enum(['idempotent', 'once'], {
        description: 'Whether the command may run again (`idempotent`, the default) or never by itself (`once`).',
      }),
    ),
  },
  { additionalProperties: false },
)
type Command = Type.Static<typeof Command>

const Result = Type.Union(
  [Type.Object({ commands: Type.Array(CommandReport, { description: 'The commands, in order.' }) }), Type.Unknown()],
  {
    description:
      'The fields that commands wrote to `$CADRE_OUTPUT`, and the JSON of the file `$CADRE_RESULT`, or without it:',
  },
)

export default agent({
  type: 'exec',
  version: '1.0.0',
  description: 'Runs shell commands in the workspace.',
  phase: {
    description: 'Runs the commands in order. The first that fails ends the phase.',
    effect: ({ commands }) => (commands.some(({ effect }) => effect === 'once') ? 'once' : 'idempotent'),
    example: { commands: [{ name: 'count', run: 'echo "lines=$(wc -l < README.md)" >> "$CADRE_OUTPUT"' }] },
    entry: Type.Object(
      {
        commands: Type.Array(Command, { minItems: 1, description: 'The commands, in order.' }),
        needs: Type.Optional(CommandNeeds),
        env: env('Variables of all commands. Templates are read here, not in command lines. Null makes one empty.'),
      },
      { additionalProperties: false },
    ),
    data: Result,
    async run({ commands, env = {}, needs = [] }, context) {
      // A folder of its own, which a sandbox can show without the results of other phases.
      const results = join(context.stateDir, 'tmp', `result-${context.phase.name}`)
      await rm(results, { recursive: true, force: true })
      await mkdir(results, { recursive: true, mode: 0o700 })
      await using _ = { [Symbol.asyncDispose]: () => rm(results, { recursive: true, force: true }) }
      const sandbox = await context.sandbox({ writes: [results], network: needs.includes('network') })
      const own = await ownVariables(context, results, sandbox?.hasOurPrograms ?? true)
      const reports = []
      const repeatable = commands.every(({ effect }) => effect !== 'once')
      let wrote = false
      for (const [at, command] of commands.entries()) {
        wrote ||= command.effect === 'once'
        const variables = { ...context.env, ...textsOf({ ...env, ...command.env }), ...own }
        const report = () => execute(command, context, { env: variables, sandbox, retryable: repeatable })
        // Until the first command with effect `once` has started, a repetition cannot write anything twice.
        const once = () =>
          report().catch(error => {
            throw amongOthers(error, commands, at)
          })
        reports.push(await (wrote ? once() : beforehand(report)))
      }
      const text = reports.length === 1 ? `${reports[0]!.name} passed` : `${reports.length} commands passed`
      return { text, data: await dataIn(results, { commands: reports }) }
    },
  },
})

async function ownVariables(
  context: AgentContext<unknown>,
  results: string,
  hasOurPrograms: boolean,
): Promise<Record<string, string>> {
  return {
    CADRE_FILES: join(context.stateDir, 'files'),
    CADRE_OUT: join(context.stateDir, 'files', context.phase.name),
    CADRE_RESULT: join(results, WRITTEN.CADRE_RESULT.name),
    CADRE_OUTPUT: join(results, WRITTEN.CADRE_OUTPUT.name),
    ...(hasOurPrograms && { CADRE_BUN: await bunIn(results) }),
  }
}

const textsOf = (env: Record<string, string | number | boolean | null>) =>
  Object.fromEntries(Object.entries(env).map(([name, value]) => [name, textOf(name, value)]))

/** The value of a variable, which a NUL would end: https://man7.org/linux/man-pages/man2/execve.2.html. */
function textOf(name: string, value: string | number | boolean | null): string {
  const text = value === null ? '' : String(value)
  if (!text.includes('\0')) return text
  const hint = 'give the value to the command in a file'
  throw new AgentError(`the variable ${name} contains a NUL character, which no command can be given`, {
    code: 'invalid_request',
    hint,
    sent: 'no',
  })
}

/** A person who is asked about a command decides about the whole phase, and has to know what becomes of the others. */
function amongOthers(error: unknown, commands: readonly Command[], at: number): unknown {
  const names = (some: readonly Command[]) => some.map(({ name }) => name).join(', ')
  const before = names(commands.slice(0, at).filter(({ effect }) => effect === 'once'))
  const after = names(commands.slice(at + 1))
  const facts = [before && `retry runs ${before} again`, after && `complete leaves out ${after}`].filter(Boolean)
  if (error instanceof AgentError && facts.length > 0) error.message += ` (${facts.join(', ')})`
  return error
}

type Way = Pick<Parameters<typeof runCommand>[1], 'env' | 'sandbox' | 'retryable'>

function execute({ name, run, timeout }: Command, context: AgentContext<unknown>, way: Way) {
  return runCommand(context, {
    ...{ name, command: ['sh', '-c', run], cwd: context.workspace, timeout, ...way },
    notStarted: `in ${context.workspace}`,
    hint: 'check that the workspace exists and that `sh` is in PATH',
  })
}

/** What the commands wrote as `data`; `otherwise`, where none of them wrote to CADRE_RESULT. */
async function dataIn(results: string, otherwise: JsonObject): Promise<Json> {
  const result = await written(results, 'CADRE_RESULT', text => JSON.parse(text) as Json)
  const fields = await written(results, 'CADRE_OUTPUT', fieldsIn)
  if (!fields) return result ?? otherwise
  if (result === undefined) return { ...otherwise, ...fields }
  if (typeof result === 'object' && result !== null && !Array.isArray(result)) return { ...fields, ...result }
  throw invalid('CADRE_RESULT', 'it is not an object, to which the fields of CADRE_OUTPUT could be added')
}

/** What one of the files has, if it was written. A link is not followed, because it could lead out of a sandbox. */
async function written<T>(folder: string, variable: keyof typeof WRITTEN, parse: (text: string) => T) {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  try {
    await using file = await open(join(folder, WRITTEN[variable].name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    const stats = await file.stat()
    if (!stats.isFile()) throw new Error('it is not a regular file')
    if (stats.size > WRITTEN_MOST)
      throw new Error(`it has ${stats.size} bytes, but data may have at most ${WRITTEN_MOST}`)
    return parse(await file.readFile('utf8'))
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw invalid(variable, (cause as Error).message, cause)
  }
}

function invalid(variable: keyof typeof WRITTEN, why: string, cause?: unknown): AgentError {
  const { form, hint } = WRITTEN[variable]
  return new AgentError(`${variable} must contain ${form}: ${why}`, { code: 'invalid_result', hint, cause })
}

/** The fields that the lines of CADRE_OUTPUT give. The last value of a name counts. */
function fieldsIn(text: string): Record<string, string> {
  const lines = text.split('\n')
  const fields: [name: string, value: string][] = []
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at]!
    if (line.trim() === '') continue
    const [, name, sign, rest = ''] = /^([A-Za-z_][\w-]*)(=|<<)(.*)$/.exec(line) ?? []
    if (name === undefined || (sign === '<<' && rest === '')) {
      throw new Error(`line ${at + 1} is ${JSON.stringify(line.slice(0, 200))}`)
    }
    const end = sign === '=' ? at : lines.indexOf(rest, at + 1)
    if (end === -1) throw new Error(`no line ${rest} ends the text that begins with \`${line}\` in line ${at + 1}`)
    fields.push([name, sign === '=' ? rest : lines.slice(at + 1, end).join('\n')])
    at = end
  }
  return Object.fromEntries(fields)
}
