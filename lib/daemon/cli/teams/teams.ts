// Commands about what can be run: validate, schema, agents.

import { type Catalogue, discover } from '../../../agent/catalogue.ts'
import { CadreError } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { noAgent } from '../../../settings/settings.ts'
import { teamJsonSchema } from '../../../team/team.ts'
import { createPaint, line } from '../../../text/printable.ts'
import { listed } from '../../../text/spelling.ts'
import { print, printJson, printJsonLine, printMessage } from '../../../text/terminal.ts'
import { ValidateTeam } from '../../../wire/calls/teams.ts'
import { homeFolder } from '../../home/home.ts'
import { askAboutTeams } from '../backend/team-answers.ts'
import { EXIT } from '../kit/exit.ts'
import { whichTeam } from '../runs/run.ts'
import { table } from '../terminal/table.ts'
import { manualOf } from './manual.ts'
import { notesOfFolder } from './package.ts'

interface Options {
  home?: string
  json?: boolean
}

/** Throws `invalid_request` with every problem. As JSON the problems are printed instead. Returns the exit code. */
export async function validate(reference: string, { home, json }: Options): Promise<number> {
  const log = createLog({ level: 'warn' })
  const which = whichTeam(reference)
  const notesOf = (teams: boolean) => (which.path === undefined ? [] : notesOfFolder(which.path, teams))
  const asked = askAboutTeams(homeFolder(home), log, teams => teams.call(ValidateTeam, which))
  const checked = await asked.catch((error: unknown) => {
    if (json && error instanceof CadreError && error.code === 'invalid_request') return error
    // What is not seen may be the reason.
    printMessage(notesOf(true).map(note => line`note: ${note}`))
    throw error
  })
  if (checked instanceof CadreError) {
    printJsonLine({ valid: false, error: checked.body(), notes: notesOf(true) })
    return EXIT.usage
  }
  const { inputs, secrets, missing_secrets } = checked
  const notes = [...(checked.notes ?? []), ...notesOf(false)]
  if (json) {
    printJsonLine({ valid: true, inputs, secrets, missing_secrets, notes })
    return EXIT.done
  }
  print(line`${reference} is valid`)
  if (secrets.length > 0) print(line`it uses the secrets ${listed(secrets)}`)
  for (const note of notes) print(line`note: ${note}`)
  for (const { message } of missing_secrets) print(line`missing: ${message}`)
  return EXIT.done
}

export async function schema({ home }: Options): Promise<void> {
  printJson(teamJsonSchema(await catalogueOf(home)))
}

/** Lists the agents, or prints the manual of one. Throws `invalid_request` for an agent that does not exist. */
export async function agents(agent: string | undefined, { home, json }: Options): Promise<void> {
  const catalogue = await catalogueOf(home)
  if (agent !== undefined) return manual(agent, catalogue, json)
  if (json) return void printJson(catalogue.list())
  const paint = createPaint(process.stdout)
  const rows = catalogue.names().map(name => {
    const { type, version, description, actions } = catalogue.get(name)!
    return [paint.bold(name), version, type, description, paint.dim(Object.keys(actions ?? {}).join(' '))]
  })
  print(table(rows))
  for (const { file, reason } of catalogue.skipped) printMessage(line`${paint.yellow('skipped')}  ${file}: ${reason}`)
}

function manual(reference: string, catalogue: Catalogue, json: boolean | undefined): void {
  const definition = catalogue.get(reference)
  if (!definition) throw new CadreError('invalid_request', noAgent(reference, catalogue))
  const { agents } = catalogue.list()
  const listed = agents.find(({ name }) => name === reference.split('@', 1)[0])!
  if (json) printJson(listed)
  else print(manualOf(reference, definition, listed.file).map(each => line`${each}`))
}

function catalogueOf(home: string | undefined) {
  return discover({ home: homeFolder(home), extra: process.env.CADRE_AGENTS })
}
