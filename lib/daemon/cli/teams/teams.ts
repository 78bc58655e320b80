// Commands about what can be run: validate, schema, agents.

import { isAbsolute, normalize } from 'node:path'
import { type Catalogue, discover } from '../../../agent/catalogue.ts'
import type { AgentDefinition } from '../../../agent/define.ts'
import { CadreError } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { noAgent } from '../../../settings/settings.ts'
import { teamJsonSchema } from '../../../team/team.ts'
import { createPaint, line } from '../../../text/printable.ts'
import { didYouMean, listed } from '../../../text/spelling.ts'
import { print, printJson, printJsonLine, printMessage } from '../../../text/terminal.ts'
import { ValidateTeam } from '../../../wire/calls/teams.ts'
import { homeFolder } from '../../home/home.ts'
import { misplaced } from '../../runs/own-files.ts'
import { askAboutTeams } from '../backend/team-answers.ts'
import { EXIT } from '../kit/exit.ts'
import { whichTeam } from '../runs/run.ts'
import { table } from '../terminal/table.ts'
import { callsOf, examplePhase } from './example-phase.ts'
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
  const { inputs, secrets, missing_secrets, own_files = [] } = checked
  const notes = [...(checked.notes ?? []), ...notesOf(false), ...misplaced(own_files, process.cwd())]
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

/** With `write`, writes it to a file and prints the line that makes editors read it. */
export async function schema({ home, write }: Options & { write?: string | true }): Promise<void> {
  const found = teamJsonSchema(await catalogueOf(home))
  if (write === undefined) return printJson(found)
  const file = write === true ? 'team.schema.json' : write
  await Bun.write(file, `${JSON.stringify(found, null, 2)}\n`)
  if (!isAbsolute(file)) printMessage(line`For the top of a team.yml in this folder:`)
  print(line`# yaml-language-server: $schema=${isAbsolute(file) ? file : `./${normalize(file)}`}`)
}

/**
 * Lists the agents, or prints the manual of one, or a phase with one of its actions. Throws `invalid_request` for an agent
 * or an action that does not exist.
 */
export async function agents(
  agent: string | undefined,
  { home, json, action }: Options & { action?: string },
): Promise<void> {
  const catalogue = await catalogueOf(home)
  if (action !== undefined) return phaseWith(action, agent, catalogue)
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

/** Where an agent has no actions, `action` is the place of the entry, such as `source`. */
function phaseWith(action: string, reference: string | undefined, catalogue: Catalogue): void {
  if (reference === undefined) throw new CadreError('invalid_request', '--action needs an agent before it')
  const calls = callsOf(definitionOf(reference, catalogue))
  const call = calls.find(each => (each.action || each.direction) === action)
  if (call) return print(examplePhase(reference, call).map(each => line`  ${each}`))
  const names = calls.map(each => each.action || each.direction)
  const near = didYouMean(action, names)
  throw new CadreError('invalid_request', `${reference} has no action ${action}${near}; there are ${listed(names)}`)
}

function definitionOf(reference: string, catalogue: Catalogue): AgentDefinition {
  const definition = catalogue.get(reference)
  if (!definition) throw new CadreError('invalid_request', noAgent(reference, catalogue))
  return definition
}

function manual(reference: string, catalogue: Catalogue, json: boolean | undefined): void {
  const definition = definitionOf(reference, catalogue)
  const { agents } = catalogue.list()
  const listed = agents.find(({ name }) => name === reference.split('@', 1)[0])!
  if (json) printJson(listed)
  else print(manualOf(reference, definition, listed.file).map(each => line`${each}`))
}

function catalogueOf(home: string | undefined) {
  return discover({ home: homeFolder(home), extra: process.env.CADRE_AGENTS })
}
