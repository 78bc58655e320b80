// The keys that sign packages, in `<home>/publish-keys.json`, readable only by its owner. `publish` uses the first. The
// others are kept for publishers who go back to an older key while some daemons do not trust the new one yet.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Static } from 'typebox'
import { CadreError } from '../../error.ts'
import { writeDurable } from '../../files/durable-file.ts'
import { isPublicKey, newSigningKey } from '../../program/signing-key.ts'
import { matches } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { makeHome } from './home.ts'

const StoredKey = Type.Object({ key: Type.String(), secret: Type.String(), created_at: Type.Integer() })
const StoredKeys = Type.Array(StoredKey)
type StoredKey = Static<typeof StoredKey>

const fileOf = (home: string) => join(home, 'publish-keys.json')

/**
 * The stored keys. Throws `invalid_request` when the file has another content, because otherwise packages would
 * silently be published unsigned.
 */
export function publishKeys(home: string): StoredKey[] {
  const file = fileOf(home)
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  const found = fromJson(text)
  if (matches(StoredKeys, found) && found.every(({ key }) => isPublicKey(key))) return found
  throw new CadreError(
    'invalid_request',
    `${file} must contain publish keys, but does not: restore it, or move it away`,
  )
}

/** Creates a key and makes it the one in use. Resolves when it is on disk. */
export async function addPublishKey(home: string): Promise<StoredKey> {
  const known = publishKeys(home)
  const key = { ...newSigningKey(), created_at: Date.now() }
  makeHome(home)
  await writeDurable(fileOf(home), JSON.stringify([key, ...known]))
  return key
}

/**
 * Makes the key that begins with `beginning` the one in use. Throws `not_found` when no key or several keys begin so.
 */
export async function usePublishKey(home: string, beginning: string): Promise<StoredKey> {
  const known = publishKeys(home)
  const [found, ...more] = known.filter(({ key }) => key.startsWith(beginning))
  if (!found || more.length > 0) {
    const what = found ? 'more than one key begins with' : 'no key of this home begins with'
    throw new CadreError('not_found', `${what} ${beginning}; \`keys\` lists them`)
  }
  await writeDurable(fileOf(home), JSON.stringify([found, ...known.filter(key => key !== found)]))
  return found
}

function fromJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}
