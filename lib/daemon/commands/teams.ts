// Commands about what can be run: validate, schema, agents.

import { discover } from '../../agent/catalogue.ts'
import { createLog } from '../../log.ts'
import { listed } from '../../spelling.ts'
import { teamJsonSchema } from '../../team/team.ts'
import { ValidateTeam } from '../../wire/daemon-calls.ts'
import { askAboutTeams } from '../calls/team-answers.ts'
import { homeFolder } from '../home.ts'
import { createPaint } from '../terminal/paint.ts'
import { table } from '../terminal/table.ts'
import { whichTeam } from './run.ts'

interface Options {
  home?: string
  json?: boolean
}

/** Throws `invalid_request` with every problem. */
export async function validate(reference: string, { home, json }: Options): Promise<void> {
  const log = createLog({ level: 'warn' })
  const checked = await askAboutTeams(homeFolder(home), log, teams => teams.call(ValidateTeam, whichTeam(reference)))
  const { inputs, secrets, missing_secrets } = checked
  if (json) {
    process.stdout.write(`${JSON.stringify({ valid: true, inputs, secrets, missing_secrets })}\n`)
    return
  }
  process.stdout.write(`${reference} is valid\n`)
  if (secrets.length > 0) process.stdout.write(`it uses the secrets ${listed(secrets)}\n`)
  for (const { message } of missing_secrets) process.stdout.write(`missing: ${message}\n`)
}

export async function schema({ home }: Options): Promise<void> {
  process.stdout.write(`${JSON.stringify(teamJsonSchema(await catalogueOf(home)), null, 2)}\n`)
}

export async function agents({ home, json }: Options): Promise<void> {
  const catalogue = await catalogueOf(home)
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

function catalogueOf(home: string | undefined) {
  return discover({ home: homeFolder(home), extra: process.env.CADRE_AGENTS })
}
