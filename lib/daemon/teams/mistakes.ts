// What is wrong in the files of a team, for somebody who has saved them.

import { join } from 'node:path'
import { CadreError, type Detail } from '../../error.ts'
import { formatTeam } from '../../team/team.ts'
import { loadTeam, type Stock } from '../runs/start-run.ts'
import type { Texts } from './team-files.ts'

/** The mistakes of team.yml with everything that it uses, and those in the YAML of the other files. */
export async function mistakesIn(stock: Stock, folder: string, files: Texts): Promise<Detail[]> {
  const found: Detail[] = []
  for (const [name, text] of Object.entries(files)) {
    try {
      if (name === 'team.yml') await loadTeam(stock, { path: join(folder, name) })
      else formatTeam(name, Buffer.from(text))
    } catch (error) {
      if (!(error instanceof CadreError)) throw error
      found.push(...(error.details ?? [{ path: '', message: `${name}: ${error.message}` }]))
    }
  }
  return found
}
