// The keys that packages are signed with, in `<home>/publish-keys.json`, readable by its owner only. The first is the one
// that `publish` uses; the others are kept for publishers who go back to one while not everybody trusts the new one yet.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Static } from 'typebox'
import { writeDurable } from '../durable-file.ts'
import { CadreError } from '../error.ts'
import { matches } from '../schema.ts'
import { Type } from '../type.ts'
import { isPublicKey, newSigningKey } from '../wire/package-signature.ts'
import { makeHome } from './home.ts'

const StoredKey = Type.Object({ key: Type.String(), secret: Type.String(), created_at: Type.Integer() })
const StoredKeys = Type.Array(StoredKey)
type StoredKey = Static<typeof StoredKey>

const fileOf = (home: string) => join(home, 'publish-keys.json')

/** Throws `invalid_request` for a file that holds something else: publishing without its key would pass unnoticed. */
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
  throw new CadreError('invalid_request', `${file} does not hold keys any more: restore it, or move it away`)
}

/** Makes a key, which is used from now on. Resolves when it is on disk. */
export async function addPublishKey(home: string): Promise<StoredKey> {
  const known = publishKeys(home)
  const key = { ...newSigningKey(), created_at: Date.now() }
  makeHome(home)
  await writeDurable(fileOf(home), JSON.stringify([key, ...known]))
  return key
}

/** The key that begins with `beginning` is used from now on. Throws `not_found` when none does, or several do. */
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
