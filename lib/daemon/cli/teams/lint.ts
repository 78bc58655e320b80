// `lint TEAM`: names what is probably not meant in a team that is valid.

import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { filesBelow } from '../../../files/files-below.ts'
import { createLog } from '../../../log/log.ts'
import { type Bundle, type LintFinding, lintBundle, renderProblem, teamsOf } from '../../../team/team.ts'
import { createPaint, line, nothing } from '../../../text/printable.ts'
import { print, printJson } from '../../../text/terminal.ts'
import { TEAM_FILE } from '../../../wire/records/package-files.ts'
import { homeFolder } from '../../home/home.ts'
import { loadTeam } from '../../runs/start-run.ts'
import { stockOfHome } from '../backend/team-answers.ts'
import { EXIT } from '../kit/exit.ts'
import { whichTeam } from '../runs/run.ts'

interface Options {
  home?: string
  json?: boolean
  strict?: boolean
}

/** Returns the exit code: with `strict`, 1 where something is found. Throws `invalid_request` for a team that is not valid. */
export async function lint(reference: string, { home, json, strict }: Options): Promise<number> {
  const stock = await stockOfHome(homeFolder(home), createLog({ level: 'warn' }))
  const which = whichTeam(reference)
  const bundle = await loadTeam(stock, which)
  const found = [
    ...lintBundle(bundle, stock.catalogue),
    ...(which.path === undefined ? [] : unusedTeams(which.path, bundle)),
  ]
  if (json) {
    printJson({
      findings: found.map(({ rule, file, line, column, path, message }) => ({
        rule,
        file,
        line,
        column,
        path,
        message,
      })),
    })
  } else if (found.length === 0) print(line`nothing found in ${reference}`)
  else {
    const paint = createPaint(process.stdout)
    for (const finding of found)
      print(renderProblem({ ...finding, message: `${finding.message} [${finding.rule}]` }, paint), nothing)
  }
  return strict && found.length > 0 ? EXIT.failed : EXIT.done
}

/** The teams below the folder of a team that neither it nor any team of its uses. */
function unusedTeams(path: string, bundle: Bundle): LintFinding[] {
  const folder = /\.ya?ml$/.test(path) ? dirname(resolve(path)) : resolve(path)
  const used = teamsOf(bundle).map(([key]) => bundle.folder(key))
  return [...filesBelow(folder, '')]
    .filter(file => TEAM_FILE.test(file) && file.includes('/') && !used.includes(dirname(join(folder, file))))
    .map(file => ({
      rule: 'unused-team',
      file,
      line: 1,
      column: 1,
      path: '',
      message: 'nothing in this folder uses this team',
      quote: readFileSync(join(folder, file), 'utf8').split('\n', 1)[0]!,
    }))
}
