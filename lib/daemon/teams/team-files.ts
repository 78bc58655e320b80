// The files of a team that its editors know: they are read as texts with their hashes, and replaced atomically, all of a call
// or none, as long as each is still the one that was read.

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, renameSync, rmSync, type Stats } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { kindOf } from '../../agent/files/folders.ts'
import { CadreError, type Detail } from '../../error.ts'
import { pathError } from '../../files/path-error.ts'
import { MIB } from '../../wire/call.ts'
import { MOST_FILES } from '../../wire/calls/teams.ts'
import { PackagePaths } from '../../wire/records/package-files.ts'
import type { TeamFolder } from './team-folders.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

const NAME = /^(team\.yml|[A-Za-z0-9_][A-Za-z0-9_.@+=-]{0,180}\.test\.yml)$/

/** Texts by the names of their files. */
export type Texts = Readonly<Record<string, string>>
/** The SHA-256 of files in hexadecimal by their names; null for one that is not there. */
export type Hashes = Readonly<Record<string, string | null>>

/** A file as it is on the disk. */
interface Found {
  bytes: Uint8Array
  sha256: string
  stats: Stats
}

/** All files of the folder, with what keeps others of these names from being read. */
export async function readTeamFiles(folder: TeamFolder) {
  const files: Record<string, string> = {}
  const sha256: Record<string, string> = {}
  const unread: Detail[] = []
  const names = (await readdir(folder.at('.'))).filter(each => NAME.test(each)).sort()
  for (const [index, name] of names.entries()) {
    try {
      if (index >= MOST_FILES && name !== 'team.yml')
        throw wrong(`is one of more than ${MOST_FILES} files, of which the others are read`)
      const found = find(folder, name)
      if (!found) continue
      files[name] = textOf(found.bytes)
      sha256[name] = found.sha256
    } catch (error) {
      if (!(error instanceof CadreError)) throw error
      unread.push({ path: name, message: error.message })
    }
  }
  return { path: folder.path, files, sha256, unread }
}

/**
 * Replaces files, or makes those that are not there. `before` is called when nothing keeps them from being replaced any
 * more. A process that is killed between two of them leaves each whole. Throws `invalid_request`, and `conflict` when one
 * is not the file of which `base` has the hash; all are as they were then.
 */
export async function saveTeamFiles(
  folder: TeamFolder,
  files: Texts,
  base: Hashes,
  before: () => void,
): Promise<Record<string, string>> {
  const texts = new Map(Object.entries(files).map(([name, text]) => [name, Buffer.from(text)] as const))
  refuseOdd(files, base)
  const found = findAll(folder, texts.keys(), base)
  const written: Written[] = []
  try {
    for (const [name, bytes] of texts) {
      const old = found.get(name) ?? null
      const text = await writeBeside(folder, name, bytes, old?.stats)
      written.push({
        name,
        text,
        old: old && texts.size > 1 ? await writeBeside(folder, name, old.bytes, old.stats) : null,
      })
    }
    // From here on to the last file nothing else of this process comes in between.
    findAll(folder, texts.keys(), base)
    before()
    replaceAll(folder, written)
  } finally {
    for (const { text, old } of written)
      for (const each of [text, old]) if (each) rmSync(folder.at(each), { force: true })
  }
  await using handle = await open(folder.at('.'))
  await handle.sync()
  return Object.fromEntries([...texts].map(([name, bytes]) => [name, hashOf(bytes)]))
}

/** A file to replace: the names of its new text and of its old one, beside it. */
interface Written {
  name: string
  text: string
  old: string | null
}

function replaceAll(folder: TeamFolder, written: readonly Written[]): void {
  const done: Written[] = []
  try {
    for (const each of written) {
      renameSync(folder.at(each.text), folder.at(each.name))
      done.push(each)
    }
  } catch (error) {
    for (const { name, old } of done) {
      if (old) renameSync(folder.at(old), folder.at(name))
      else rmSync(folder.at(name))
    }
    throw inWords(error, written[done.length]!.name)
  }
}

function refuseOdd(files: Texts, base: Hashes): void {
  const names = new PackagePaths()
  const found: Detail[] = Object.entries(files).flatMap(([name, text]) => {
    const path = `/files/${name}`
    if (!NAME.test(name)) {
      return { path, message: 'must be team.yml or NAME.test.yml, with letters, digits and . _ @ + = - in its name' }
    }
    const twice = names.add(name)
    if (twice !== null) return { path, message: twice }
    if (!Object.hasOwn(base, name)) {
      return {
        path: `/base_sha256/${name}`,
        message: 'is missing: write the sha256 of the file, or null for one that is not there',
      }
    }
    if (!text.isWellFormed()) return { path, message: 'must be Unicode text: it has half of a character' }
    return Buffer.byteLength(text) > MIB ? { path, message: 'must be at most 1 MiB' } : []
  })
  for (const name of Object.keys(base)) {
    if (!Object.hasOwn(files, name)) found.push({ path: `/base_sha256/${name}`, message: 'is no file of this call' })
  }
  if (Object.keys(files).length === 0) found.push({ path: '/files', message: 'must have a file' })
  if (found.length > 0) throw refused(found)
}

/** The files of these names. Throws `conflict` unless each is the one of which `base` has the hash. */
function findAll(folder: TeamFolder, names: Iterable<string>, base: Hashes): Map<string, Found | null> {
  const all = new Map<string, Found | null>()
  const odd: Detail[] = []
  const changed: Detail[] = []
  for (const name of names) {
    const path = `/files/${name}`
    try {
      const found = find(folder, name)
      all.set(name, found)
      const message = changeOf(found, base[name]!)
      if (message !== null) changed.push({ path, message })
    } catch (error) {
      if (!(error instanceof CadreError)) throw error
      odd.push({ path, message: error.message })
    }
  }
  if (odd.length > 0) throw refused(odd)
  if (changed.length === 0) return all
  const list = changed.map(({ path, message }) => `${path.slice('/files/'.length)} ${message}`).join('; ')
  throw new CadreError(
    'conflict',
    `nothing was saved: ${list}. Read the folder again with teams/files, bring your change into what is there, and save it with the hash that was read`,
    { details: changed },
  )
}

function changeOf(found: Found | null, base: string | null): string | null {
  if (found?.sha256 === base || (found === null && base === null)) return null
  if (found === null) return 'is not there any more'
  return base === null ? 'is there already' : 'has changed since it was read'
}

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants

/** The plain file of a name; null when there is nothing. What is something else is not opened. */
function find(folder: TeamFolder, name: string): Found | null {
  const seen = lstatSync(folder.at(name), { throwIfNoEntry: false })
  if (!seen) return null
  if (!seen.isFile()) throw wrong(`must be a plain file, and is ${kindOf(seen)}`)
  const fd = openFile(folder, name)
  if (fd === null) return null
  try {
    const stats = fstatSync(fd)
    if (!stats.isFile()) throw wrong(`must be a plain file, and is ${kindOf(stats)}`)
    if (stats.size > MIB) throw wrong('must be at most 1 MiB')
    const bytes = readAll(fd, stats.size)
    return { bytes, sha256: hashOf(bytes), stats }
  } finally {
    closeSync(fd)
  }
}

/** What became a link since it was looked at is not followed, and a pipe does not wait for a writer. */
function openFile(folder: TeamFolder, name: string): number | null {
  try {
    return openSync(folder.at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw inWords(error, name)
  }
}

/** Throws when it has grown since its size was read. */
function readAll(fd: number, size: number): Uint8Array {
  const bytes = Buffer.alloc(size + 1)
  let length = 0
  for (let read = -1; read !== 0 && length <= size; length += read)
    read = readSync(fd, bytes, length, bytes.length - length, null)
  if (length > size) throw wrong('changes just now: ask again')
  return bytes.subarray(0, length)
}

/** Writes and syncs a file beside the one of this name, with its mode and owner, and returns its name. */
async function writeBeside(
  folder: TeamFolder,
  name: string,
  bytes: Uint8Array,
  like: Stats | undefined,
): Promise<string> {
  const beside = `.${name}.${crypto.randomUUID()}.tmp`
  try {
    await using handle = await open(folder.at(beside), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, like ? 0o600 : 0o666)
    await handle.writeFile(bytes)
    if (like) {
      const { uid, gid } = await handle.stat()
      if (uid !== like.uid || gid !== like.gid) await handle.chown(like.uid, like.gid)
      await handle.chmod(like.mode & 0o7777)
    }
    await handle.sync()
    return beside
  } catch (error) {
    rmSync(folder.at(beside), { force: true })
    throw inWords(error, name)
  }
}

/** An error of the system about a file beside `name`, or a descriptor, as one about the file itself. */
function inWords(error: unknown, name: string): unknown {
  const { code } = error as NodeJS.ErrnoException
  const known = pathError(Object.assign(new Error(), { code, path: name }))
  return known ? refused([{ path: `/files/${name}`, message: known.message }]) : error
}

/** The text with its byte order mark, so that it is saved as it was. */
function textOf(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw wrong('must be UTF-8 text')
  }
}

const hashOf = (bytes: Uint8Array): string => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

const wrong = (message: string) => new CadreError('invalid_request', message)

function refused(details: readonly Detail[]): CadreError {
  const list = details.map(({ path, message }) => `${path} ${message}`).join('; ')
  return new CadreError('invalid_request', `nothing was saved: ${list}`, { details })
}
