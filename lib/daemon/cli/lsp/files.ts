// The files of which an editor may be told: those of its workspace, and those that are open in it, with the text that is not
// saved yet.

import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { CadreError } from '../../../error.ts'
import { filesBelow } from '../../../files/files-below.ts'
import { TEAM_FILE } from '../../../wire/records/package-files.ts'

/** Larger files are no teams. */
const MAX_BYTES = 1_048_576
/** More files of a folder are not looked at. */
const MOST_FILES = 5_000
/** A text of team.yml has several of these lines. */
const FIELD = /^(?:name|version|description|inputs|outputs)[ \t]*:/m
const PHASES = /^phases[ \t]*:/m

export interface OpenText {
  uri: string
  text: string
}

/** The absolute path of an address; null for one that is no file, such as a text that was never saved. */
export function pathOf(uri: string): string | null {
  try {
    return new URL(uri).protocol === 'file:' ? resolve(fileURLToPath(uri)) : null
  } catch {
    return null
  }
}

/** Whether a text is that of a team: by the name of its file, or by its fields. */
export const isTeam = (path: string, text: string): boolean =>
  TEAM_FILE.test(path) || (/\.ya?ml$/.test(path) && PHASES.test(text) && FIELD.test(text))

export class WorkspaceFiles {
  readonly #open: () => Iterable<OpenText>
  #folders: readonly string[] = []

  /** `open` gives the texts that the editor shows. */
  constructor(open: () => Iterable<OpenText>) {
    this.#open = open
  }

  set folders(uris: readonly string[]) {
    this.#folders = uris.flatMap(uri => pathOf(uri) ?? [])
  }

  /** The address by which the editor knows a file. */
  uriOf(path: string): string {
    for (const { uri } of this.#open()) if (pathOf(uri) === path) return uri
    return pathToFileURL(path).href
  }

  unsaved(path: string): string | null {
    for (const { uri, text } of this.#open()) if (pathOf(uri) === path) return text
    return null
  }

  /** For `loadBundle`. Throws for a file outside of the workspace. */
  async read(path: string, fromDisk: () => Promise<Uint8Array | null>): Promise<Uint8Array | null> {
    const text = this.unsaved(path)
    if (text !== null) return new TextEncoder().encode(text)
    if (this.#isInside(path)) return fromDisk()
    throw new CadreError('forbidden', `${path} is outside of what is open in the editor, and is not looked at here`)
  }

  /** The text of a file of the workspace; null when there is none that may be read. */
  text(path: string): string | null {
    const text = this.unsaved(path)
    if (text !== null) return text
    try {
      const { size } = statSync(path)
      return this.#isInside(path) && size <= MAX_BYTES ? readFileSync(path, 'utf8') : null
    } catch {
      return null
    }
  }

  list(folder: string): { name: string; isFolder: boolean }[] {
    if (!this.#isInside(folder)) return []
    try {
      const entries = readdirSync(folder, { withFileTypes: true }).filter(({ name }) => !name.startsWith('.'))
      return entries.map(entry => ({ name: entry.name, isFolder: entry.isDirectory() }))
    } catch {
      return []
    }
  }

  /** The folders with a team, relative to that of `path`: those below it, and those beside it. */
  teams(path: string): string[] {
    const own = dirname(path)
    const base = this.#isInside(dirname(own)) ? dirname(own) : own
    const found = Iterator.from(filesBelow(base, ''))
      .take(MOST_FILES)
      .filter(file => TEAM_FILE.test(file))
      .map(file =>
        relative(own, dirname(join(base, file)))
          .split(sep)
          .join('/'),
      )
    return [...found]
      .filter(folder => folder !== '' && folder !== '..')
      .map(folder => (folder.startsWith('../') ? folder : `./${folder}`))
      .sort()
  }

  /** Whether a path is in the workspace, links followed. Without one, it is the folders of the open files. */
  #isInside(path: string): boolean {
    const open = [...this.#open()].flatMap(({ uri }) => pathOf(uri) ?? [])
    const folders = this.#folders.length > 0 ? this.#folders : open.map(each => dirname(each))
    const real = realOf(path)
    return folders.some(folder => real === realOf(folder) || real.startsWith(realOf(folder) + sep))
  }
}

/** What a path leads to. Of what does not exist, the part that does decides. */
function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const above = dirname(path)
    return above === path ? path : join(realOf(above), path.slice(above.length))
  }
}
