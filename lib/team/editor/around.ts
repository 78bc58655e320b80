// What is known around the text that is being typed. Of settings only names are known, and of files only those that the editor
// may show.

import type { AgentLookup } from '../compile/compile.ts'
import type { Node } from '../yaml/yaml.ts'
import type { Schema } from './schema-fields.ts'

export interface Around {
  agents: AgentLookup
  /** The schema of team.yml with these agents. */
  schema: Schema
  settings: NamesInSettings
  /** The team that a `team:` names; null when it cannot be read. */
  team(ref: string): OtherTeam | null
  /** The folders with a team that a `team:` may name, such as `./ticket`. */
  teams(): readonly string[]
  /** The files and folders in a folder of the team's own, by their names. */
  list(folder: string): readonly { name: string; isFolder: boolean }[]
}

export interface NamesInSettings {
  /** `issues@eu` */
  agents: readonly string[]
  secrets: readonly string[]
  environments: readonly string[]
}

export interface OtherTeam {
  /** Absolute. */
  file: string
  text: string
  root: Node
}
