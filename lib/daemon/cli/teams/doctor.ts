// `doctor [AGENT]`: checks the settings of each agent, the plain ones and those of environments, and prints one line for
// each. It runs in this process, with its environment variables.

import type { Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { discover } from '../../../agent/catalogue.ts'
import { messageOf } from '../../../error.ts'
import { createLog } from '../../../log/log.ts'
import { openSettings } from '../../../settings/settings.ts'
import { createPaint, line, type Paint, type Printable } from '../../../text/printable.ts'
import { print, printJson } from '../../../text/terminal.ts'
import { findingText, lackWords } from '../../../wire/records/words.ts'
import { endWords } from '../../../wire/worries.ts'
import { databaseFile, homeFolder, makeHome } from '../../home/home.ts'
import { readRunDatabase } from '../../home/run-database.ts'
import { sandboxesOf } from '../../packages/sandboxes.ts'
import { examine, type Finding } from '../../runs/agent-checks.ts'
import { lostTells } from '../backend/account-status.ts'
import { hubStatusOf, troublesAtHub } from '../backend/hub-status.ts'
import { triggersIn, troublesWith } from '../backend/trigger-status.ts'
import { EXIT } from '../kit/exit.ts'
import { table } from '../terminal/table.ts'

/** Exit code 1 when something is wrong. */
export async function doctor(
  agent: string | undefined,
  { home: given, env, json }: { home?: string; env?: string; json?: boolean },
): Promise<number> {
  const home = homeFolder(given)
  makeHome(home)
  const log = createLog({ level: 'warn' })
  const catalogue = await discover({ home, extra: process.env.CADRE_AGENTS })
  const settings = await openSettings(home, { log })
  const { db, unread } = await databaseOf(home)
  const patient = { home, catalogue, settings, sandboxes: sandboxesOf(home, settings), log, db }
  const found = await examine(patient, { agent, environment: env })
  db?.close()
  const isUnsure = unread !== null && found.some(({ unneeded = [] }) => unneeded.length > 0)
  const ofAgents = isUnsure ? [...found, wrong('teams', `nobody knows what they need: ${unread}`)] : found
  const isOfAll = agent === undefined && env === undefined
  const findings = isOfAll ? [...ofAgents, ...(await ofTriggers(home)), ...ofTells(home)] : ofAgents
  if (json) printJson(findings)
  else print(draw(findings, createPaint(process.stdout)))
  return findings.some(({ state }) => state === 'wrong') ? EXIT.failed : EXIT.done
}

/** The database of the home, if it has one, or why it cannot be read. */
async function databaseOf(home: string): Promise<{ db: Database | null; unread: string | null }> {
  try {
    return { db: existsSync(databaseFile(home)) ? await readRunDatabase(home) : null, unread: null }
  } catch (error) {
    return { db: null, unread: messageOf(error) }
  }
}

/** The triggers of the home and of its realm that are broken, and those of which an occasion was refused lately. */
async function ofTriggers(home: string): Promise<Finding[]> {
  const [here, hub] = await Promise.all([triggersIn(home), hubStatusOf(home, {})])
  const troubles = [...troublesWith(here?.wrong ?? []), ...(hub ? troublesAtHub(hub) : [])]
  return troubles.map(({ who, text }) => wrong(who, text))
}

const ofTells = (home: string): Finding[] => lostTells(home).map(text => wrong('notify.on_fail', text))

const wrong = (agent: string, text: string): Finding => ({ agent, state: 'wrong', who: null, missing: [], text })

/** The finding of a key of settings.yml begins with the key, which is in the first column already. */
function withoutKey(text: string, key: string): string {
  const begin = [`${key} in settings.yml: `, `${key}: `].find(each => text.startsWith(each)) ?? ''
  return text.slice(begin.length)
}

function draw(findings: Finding[], paint: Paint): Printable[] {
  const marks = { fine: paint.green('✓'), wrong: paint.red('✗'), unset: paint.dim('–'), settings: paint.dim('–') }
  return table(
    findings.map(finding => {
      const { agent, environment, state, who } = finding
      const [lacking, text] = [lackWords(finding), findingText(finding)]
      const end = finding.expires_at == null ? null : endWords('the credential', finding.expires_at, Date.now())
      const warned = [lacking, end].flatMap(each => each ?? []).join('; ')
      const lacks = warned === '' ? '' : line`${paint.yellow(warned)}  `
      const shown = state === 'unset' || state === 'settings' ? paint.dim(text) : withoutKey(text, agent)
      const where = environment === undefined ? '' : ` in ${environment}`
      return [line`${marks[state]} ${paint.bold(agent)}${where}`, who ?? '', line`${lacks}${shown}`]
    }),
  )
}
