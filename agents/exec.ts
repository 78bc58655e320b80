// exec: runs shell commands in the workspace. Each command runs as `sh -c` in its own process group, with a closed
// stdin and a clean environment. Its output is masked and logged line by line while it runs.
//
//   commands: [{ name, run, env?, timeout?, effect? }]   in order; the first that fails ends the phase
//   env: { NAME: value }                                 for all of them; a command's own env wins; null is empty
//
// The phase's `retry` repeats a failed command only if every command of the phase is idempotent. Commands are
// idempotent unless they have `effect: once`.
//
// A command sees PATH, HOME, LANG, env, CADRE_RUN_ID, CADRE_FILES (the run's files), CADRE_OUT (this phase's folder)
// and CADRE_RESULT (JSON written there becomes `data`), and TRACEPARENT if runs are traced. Values are passed through
// the environment and are never inserted into the command's text.
//
// As in any script, sh goes on after a line that fails, and the last line decides: a `run` of several lines begins with
// `set -e`.

import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type AgentContext,
  AgentError,
  agent,
  beforehand,
  CommandReport,
  DURATION_PATTERN,
  type Json,
  runCommand,
  Type,
} from 'cadre'

const RESULT_MOST = 1024 * 1024

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
  { description: 'Or else the JSON that a command has written to the file `$CADRE_RESULT`.' },
)

export default agent({
  type: 'exec',
  version: '1.0.0',
  description: 'Runs shell commands in the workspace.',
  phase: {
    description: 'Runs the commands in order. The first that fails ends the phase.',
    effect: ({ commands }) => (commands.some(({ effect }) => effect === 'once') ? 'once' : 'idempotent'),
    entry: Type.Object(
      {
        commands: Type.Array(Command, { minItems: 1, description: 'The commands, in order.' }),
        env: env('Variables of all commands. Templates are read here, not in command lines. Null makes one empty.'),
      },
      { additionalProperties: false },
    ),
    data: Result,
    async run({ commands, env = {} }, context) {
      const resultFile = join(context.stateDir, 'tmp', `result-${context.phase.name}.json`)
      await mkdir(join(context.stateDir, 'tmp'), { recursive: true, mode: 0o700 })
      await rm(resultFile, { force: true })
      const reports = []
      const repeatable = commands.every(({ effect }) => effect !== 'once')
      let wrote = false
      for (const command of commands) {
        wrote ||= command.effect === 'once'
        const variables = environment(context, { ...env, ...command.env }, resultFile)
        const report = () => execute(command, context, variables, repeatable)
        // Until the first command with effect `once` has started, a repetition cannot write anything twice.
        reports.push(await (wrote ? report() : beforehand(report)))
      }
      const text = reports.length === 1 ? `${reports[0]!.name} passed` : `${reports.length} commands passed`
      return { text, data: (await readResult(resultFile)) ?? { commands: reports } }
    },
  },
})

function environment(
  context: AgentContext<unknown>,
  env: Record<string, string | number | boolean | null>,
  resultFile: string,
): Record<string, string> {
  return {
    ...context.env,
    ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value === null ? '' : String(value)])),
    CADRE_FILES: join(context.stateDir, 'files'),
    CADRE_OUT: join(context.stateDir, 'files', context.phase.name),
    CADRE_RESULT: resultFile,
  }
}

function execute(command: Command, context: AgentContext<unknown>, env: Record<string, string>, retryable: boolean) {
  const { name, run, timeout } = command
  return runCommand(context, {
    ...{ name, command: ['sh', '-c', run], cwd: context.workspace, env, timeout, retryable },
    notStarted: `in ${context.workspace}`,
    hint: 'check that the workspace exists and that `sh` is in PATH',
  })
}

async function readResult(path: string): Promise<Json | undefined> {
  const file = Bun.file(path)
  if (!(await file.exists())) return undefined
  try {
    if (file.size > RESULT_MOST) throw new Error(`it has ${file.size} bytes, but data may have at most ${RESULT_MOST}`)
    return JSON.parse(await file.text()) as Json
  } catch (cause) {
    throw new AgentError(`CADRE_RESULT must contain JSON that can become data: ${(cause as Error).message}`, {
      code: 'invalid_result',
      hint: 'write one JSON value to this file, and larger results to files in CADRE_OUT',
      cause,
    })
  } finally {
    await rm(path, { force: true })
  }
}
