// A team as a package: reads its folder before it is sent to the hub, and reads the inputs of a package from the hub.

import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { CadreError } from '../../../error.ts'
import { filesBelow } from '../../../files/files-below.ts'
import type { Field, Team } from '../../../team/team.ts'
import { bundleFromJson } from '../../../team/team.ts'
import { unseenNotes } from '../../../text/unseen.ts'
import { inOrder, inScope, packageDigest, TEAM_FILE } from '../../../wire/records/package-files.ts'
import { signPackage } from '../../../wire/records/package-signature.ts'
import type { PackageFile, PackageSignature } from '../../../wire/records/packages.ts'
import { publishKeys } from '../../home/publish-keys.ts'

/** The hub refuses a package with more bytes than this. */
const MOST_BYTES = 10 * 1024 * 1024

/**
 * The files of a package: team.yml and everything beside and below it, except dot files, links and node_modules. If
 * `scope` is given, it replaces `@local`. Throws `invalid_request`, `too_large`.
 */
export async function readPackage(path: string, scope?: string): Promise<PackageFile[]> {
  const folder = path.endsWith('team.yml') ? dirname(resolve(path)) : resolve(path)
  if (!existsSync(join(folder, 'team.yml'))) {
    throw new CadreError('invalid_request', `${path}: expected a folder with a team.yml`)
  }
  const files: PackageFile[] = []
  let bytes = 0
  for (const name of filesBelow(folder, '')) {
    const content = await Bun.file(join(folder, name)).bytes()
    bytes += content.length
    if (bytes > MOST_BYTES) {
      throw new CadreError(
        'too_large',
        `${path} holds more than ${MOST_BYTES / 1_048_576} MiB: move out what is not needed`,
      )
    }
    const published = scope === undefined ? content : inScope(name, content, scope)
    files.push({ path: name, content_base64: Buffer.from(published).toString('base64') })
  }
  return files
}

/** More files than these are not read for notes. */
const MOST_NOTED = 1_000
const LONGEST_NOTED = 1024 * 1024

/**
 * Says where the files of a team's folder have characters that are not what they look like. `teams` false leaves out the
 * teams themselves.
 */
export function notesOfFolder(path: string, teams: boolean): string[] {
  const folder = path.endsWith('.yml') ? dirname(resolve(path)) : resolve(path)
  if (!existsSync(folder)) return []
  return Iterator.from(filesBelow(folder, ''))
    .filter(name => teams || !TEAM_FILE.test(name))
    .take(MOST_NOTED)
    .toArray()
    .flatMap(name => {
      const isLarge = lstatSync(join(folder, name)).size > LONGEST_NOTED
      return unseenNotes(name, isLarge ? '' : readFileSync(join(folder, name)))
    })
}

/** The signature of these files by the key that is in use; null when the home has none. Throws `invalid_request`. */
export function signed(home: string, files: readonly PackageFile[]): PackageSignature | null {
  const [key] = publishKeys(home)
  if (!key) return null
  const { name, version } = rootOf(files)
  return signPackage({ name, version, sha256: packageDigest(inOrder(files)) }, key)
}

/** The inputs that the root team of a package declares. */
export function inputsOf(files: readonly PackageFile[]): readonly Field[] {
  return rootOf(files).inputs
}

function rootOf(files: readonly PackageFile[]): Team {
  const root = files.find(({ path }) => path === 'team.yml')
  if (!root) throw new CadreError('invalid_request', 'the package has no team.yml')
  const text = Buffer.from(root.content_base64, 'base64').toString()
  const teams = { '.': { file: 'team.yml', folder: null, text, refs: {} } }
  return bundleFromJson({ root: '.', teams }).team('.')
}
