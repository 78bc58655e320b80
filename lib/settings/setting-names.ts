// The names in a home's settings.yml, for editors. No value leaves this file except what `packages.trust` says, and no
// reference is looked up.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { environmentsIn, placesIn } from './environments.ts'
import { toObject } from './file.ts'
import { valueAt } from './tree.ts'
import { trustIn } from './trust.ts'

export interface SettingNames {
  /** `issues@eu` */
  agents: readonly string[]
  secrets: readonly string[]
  environments: readonly string[]
  /** Whether packages may come from a hub. */
  hasHub: boolean
  /** As `packages.trust` says; null, which trusts none, for a file that cannot be read. */
  trust: Json | undefined
}

/** None for a home without the file, and for a file that cannot be read. */
export async function settingNames(home: string): Promise<SettingNames> {
  const file = join(home, 'settings.yml')
  const text = await readFile(file, 'utf8').catch(() => '')
  const raw = rawIn(text, file)
  const namesIn = (section: string) => [
    ...new Set(placesIn(raw ?? {}).flatMap(place => keysOf(valueAt(raw ?? {}, [...place, section])))),
  ]
  return {
    agents: namesIn('agents'),
    secrets: namesIn('secrets'),
    environments: environmentsIn(raw ?? {}),
    hasHub: valueAt(raw ?? {}, ['hub', 'url']) !== undefined,
    trust: raw ? trustIn(raw) : null,
  }
}

const keysOf = (value: Json | undefined): string[] => (isObject(value) ? Object.keys(value) : [])

function rawIn(text: string, file: string): JsonObject | null {
  try {
    const document = parseDocument(text, { prettyErrors: false })
    return document.errors.length > 0 ? null : toObject(document, file)
  } catch {
    return null
  }
}
