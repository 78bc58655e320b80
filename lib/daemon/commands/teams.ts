// Commands about what can be run: validate, schema, agents.

import { type Catalogue, discover } from '../../agent/catalogue.ts'
import { CadreError } from '../../error.ts'
import { createLog } from '../../log.ts'
import { noAgent } from '../../settings/settings.ts'
import { listed } from '../../spelling.ts'
import { teamJsonSchema } from '../../team/team.ts'
import { ValidateTeam } from '../../wire/daemon-calls.ts'
import { askAboutTeams } from '../calls/team-answers.ts'
import { homeFolder } from '../home.ts'
import { createPaint } from '../terminal/paint.ts'
import { table } from '../terminal/table.ts'
import { EXIT } from './exit.ts'
import { manualOf } from './manual.ts'
import { whichTeam } from './run.ts'

interface Options {
  home?: string
  json?: boolean
}

/** Throws `invalid_request` with every problem. As JSON the problems are printed instead. Returns the exit code. */
export async function validate(reference: string, { home, json }: Options): Promise<number> {
  const log = createLog({ level: 'warn' })
  const asked = askAboutTeams(homeFolder(home), log, teams => teams.call(ValidateTeam, whichTeam(reference)))
  const checked = await asked.catch((error: unknown) => {
    if (json && error instanceof CadreError && error.code === 'invalid_request') return error
    throw error
  })
  if (checked instanceof CadreError) {
    process.stdout.write(`${JSON.stringify({ valid: false, error: checked.body() })}\n`)
    return EXIT.usage
  }
  const { inputs, secrets, missing_secrets, notes = [] } = checked
  if (json) {
    process.stdout.write(`${JSON.stringify({ valid: true, inputs, secrets, missing_secrets, notes })}\n`)
    return EXIT.done
  }
  process.stdout.write(`${reference} is valid\n`)
  if (secrets.length > 0) process.stdout.write(`it uses the secrets ${listed(secrets)}\n`)
  for (const note of notes) process.stdout.write(`note: ${note}\n`)
  for (const { message } of missing_secrets) process.stdout.write(`missing: ${message}\n`)
  return EXIT.done
}

export async function schema({ home }: Options): Promise<void> {
  process.stdout.write(`${JSON.stringify(teamJsonSchema(await catalogueOf(home)), null, 2)}\n`)
}

/** Lists the agents, or prints the manual of one. Throws `invalid_request` for an agent that does not exist. */
export async function agents(agent: string | undefined, { home, json }: Options): Promise<void> {
  const catalogue = await catalogueOf(home)
  if (agent !== undefined) return manual(agent, catalogue, json)
  if (json) return void process.stdout.write(`${JSON.stringify(catalogue.list(), null, 2)}\n`)
  const paint = createPaint(process.stdout)
  const rows = catalogue.names().map(name => {
    const { type, version, description, actions } = catalogue.get(name)!
    return [paint.bold(name), version, type, description, paint.dim(Object.keys(actions ?? {}).join(' '))]
  })
  for (const line of table(rows)) process.stdout.write(`${line}\n`)
  for (const { file, reason } of catalogue.skipped)
    process.stderr.write(`${paint.yellow('skipped')}  ${file}: ${reason}\n`)
}

function manual(reference: string, catalogue: Catalogue, json: boolean | undefined): void {
  const definition = catalogue.get(reference)
  if (!definition) throw new CadreError('invalid_request', noAgent(reference, catalogue))
  const { agents } = catalogue.list() as { agents: { name: string; file: string }[] }
  const listed = agents.find(({ name }) => name === reference.split('@', 1)[0])!
  const text = json ? JSON.stringify(listed, null, 2) : manualOf(reference, definition, listed.file).join('\n')
  process.stdout.write(`${text}\n`)
}

function catalogueOf(home: string | undefined) {
  return discover({ home: homeFolder(home), extra: process.env.CADRE_AGENTS })
}
