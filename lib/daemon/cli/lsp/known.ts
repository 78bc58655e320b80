// What an editor's language server knows of a home: its agents, the names in its settings, and its installed packages. It looks
// up no secret, and it calls no hub.

import { dirname, join, resolve } from 'node:path'
import { type Catalogue, findAgents } from '../../../agent/catalogue.ts'
import { CadreError } from '../../../error.ts'
import type { Log } from '../../../log/log.ts'
import { type SettingNames, settingNames } from '../../../settings/settings.ts'
import { type Around, type OtherTeam, readBroken, type TeamPackage, teamSchemaOf } from '../../../team/team.ts'
import { Packages } from '../../packages/packages.ts'
import type { WorkspaceFiles } from './files.ts'

const TEAM_FILE = 'team.yml'

export class Known {
  readonly #home: string
  readonly #packages: Packages
  #catalogue: Catalogue
  #schema: Around['schema'] | null = null
  settings: SettingNames = { agents: [], secrets: [], environments: [], hasHub: false, trust: null }

  constructor(home: string, log: Log) {
    this.#home = home
    this.#catalogue = findAgents({ home, extra: process.env.CADRE_AGENTS })
    // Without a source, packages are those that are installed.
    this.#packages = new Packages(home, { trust: () => this.settings.trust, log })
  }

  get agents(): Catalogue {
    return this.#catalogue
  }

  /** Looks again at what may have changed. */
  async renew(): Promise<void> {
    this.settings = await settingNames(this.#home)
    const current = this.#catalogue.current()
    if (current === this.#catalogue) return
    this.#catalogue = current
    this.#schema = null
  }

  async resolve(reference: string): Promise<TeamPackage | null> {
    const found = await this.#packages.resolve(reference)
    if (found || !this.settings.hasHub) return found
    throw new CadreError('unavailable', 'it is not installed here, and an editor asks no hub')
  }

  /** What is known around the text of a file. */
  async around(path: string, files: WorkspaceFiles): Promise<Around> {
    await this.renew()
    await this.#catalogue.load()
    this.#schema ??= teamSchemaOf(this.#catalogue)
    const folder = dirname(path)
    return {
      agents: this.#catalogue,
      schema: this.#schema,
      settings: this.settings,
      team: ref => teamAt(ref, folder, files),
      teams: () => files.teams(path),
      list: below => files.list(join(folder, below)),
    }
  }
}

function teamAt(ref: string, folder: string, files: WorkspaceFiles): OtherTeam | null {
  if (!/^\.\.?(\/|$)/.test(ref)) return null
  const file = resolve(folder, ref, TEAM_FILE)
  const text = files.text(file)
  const root = text === null ? null : readBroken(text)
  return root ? { file, text: text!, root } : null
}
