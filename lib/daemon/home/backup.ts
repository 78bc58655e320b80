// Backup and restore of a home. A backup is one file: a copy of the run database, with two more tables that hold the
// files of the home. It is made while a daemon works, readable by its owner only, and has its name only when it is whole.
// A restore makes a home of it where there is none. To that home it is a copy (copied-home.ts).

import { Database, SQLiteError } from 'bun:sqlite'
import {
  chmodSync,
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fstatSync,
  fsyncSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { openForReading, readMigrations, versionOf } from '../../../db/open.ts'
import { CadreError, messageOf } from '../../error.ts'
import { failpoint } from '../../failpoint.ts'
import { namesIn } from '../../files/names-in.ts'
import { version } from '../../program/version.ts'
import { RESTORED } from './copied-home.ts'
import { databaseFile, makeHome } from './home.ts'
import { takeLock } from './lock.ts'
import { MIGRATIONS } from './run-database.ts'

/** What of a home is in a backup, besides its database. Everything else is made anew, or is not ours. */
const KEPT = ['settings.yml', 'key', 'secrets', 'publish-keys.json', 'agents', 'tsconfig.json', 'packages', 'runs']
/** What belongs to a process, to this place, or to a session, and is not worth a word. */
const OWN = /^(daemon\.(db|lock)|search\.db|place(\.|$)|processes$|token$|session$|dashboard\.html$)/

const FORMAT = 1
const CHUNK_BYTES = 1_048_576
/** How many files are written in one transaction. */
const FILES_AT_ONCE = 200
/** How often a backup begins again because a run that had ended was repeated or deleted meanwhile. */
const MOST_TRIES = 3

/** What a backup says of itself. */
interface Label {
  format: number
  version: string
  made_at: number
  folder: string
  host: string
}

export interface BackupReport {
  bytes: number
  runs: number
  files: number
  /** What lies in the home and is not in the backup. */
  leftOut: string[]
}

interface Entry {
  id: number
  path: string
  kind: 'folder' | 'file' | 'link'
  mode: number
  bytes: number
  sha256: string | null
  target: string | null
}

const TABLES = `
  CREATE TABLE backup_label (json TEXT NOT NULL);
  CREATE TABLE backup_files (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    mode INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    sha256 TEXT,
    target TEXT
  );
  CREATE TABLE backup_chunks (file INTEGER NOT NULL, number INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (file, number));
`

/** Writes a backup of `home` to `file`, which must not exist. A daemon may work meanwhile. */
export function backupHome(home: string, file: string): BackupReport {
  if (existsSync(file)) throw taken(file)
  for (let tries = 1; ; tries++) {
    const report = tryBackup(home, resolve(file))
    if (report) return report
    if (tries === MOST_TRIES) {
      throw new CadreError('conflict', 'runs that had ended were repeated or deleted during the backup: try again')
    }
  }
}

/** Null when a file in it may be of another attempt than the database in it says. */
function tryBackup(home: string, file: string): BackupReport | null {
  const draft = `${file}.${crypto.randomUUID()}.draft`
  using source = openForReading(databaseFile(home))
  try {
    closeSync(openSync(draft, 'wx', 0o600))
    // First the database and then the files: what a row names was written before it.
    source.run('VACUUM INTO ?', [draft])
    const { files, runs } = addFiles(draft, home)
    if (hasChanged(source, draft)) return null
    synced(draft)
    try {
      // A link instead of a rename, because a link never replaces a file that was created there in the meantime.
      linkSync(draft, file)
    } catch (error) {
      throw (error as { code?: string }).code === 'EEXIST' ? taken(file) : error
    }
    synced(dirname(file))
    const leftOut = readdirSync(home).filter(name => !KEPT.includes(name) && !OWN.test(name))
    return { bytes: statSync(file).size, runs, files, leftOut: leftOut.sort() }
  } finally {
    rmSync(draft, { force: true })
  }
}

function addFiles(draft: string, home: string): { files: number; runs: number } {
  using db = new Database(draft, { strict: true, readwrite: true })
  // Until it is whole, nobody reads it.
  db.run('PRAGMA journal_mode = MEMORY')
  db.run('PRAGMA synchronous = OFF')
  db.run(TABLES)
  const label: Label = { format: FORMAT, version, made_at: Date.now(), folder: home, host: hostname() }
  db.query('INSERT INTO backup_label (json) VALUES (?)').run(JSON.stringify(label))
  let files = 0
  db.run('BEGIN')
  for (const path of below(home, KEPT)) {
    if (!addFile(db, home, path)) continue
    if (++files % FILES_AT_ONCE === 0) db.run('COMMIT; BEGIN')
  }
  db.run('COMMIT')
  checked(db, draft)
  const { runs } = db
    .query<{ runs: number }, []>('SELECT count(*) AS runs FROM runs INDEXED BY runs_roots WHERE parent_id IS NULL')
    .get()!
  return { files, runs }
}

/** The entries below these names, folders before what is in them. What goes away meanwhile is passed over. */
function* below(home: string, names: readonly string[], folder = ''): Generator<string> {
  for (const name of names) {
    const path = join(folder, name)
    const found = lstatSync(join(home, path), { throwIfNoEntry: false })
    if (!found) continue
    yield path
    if (found.isDirectory()) yield* below(home, namesIn(join(home, path)), path)
  }
}

/** Whether it was a file. Pipes, sockets and devices are passed over. */
function addFile(db: Database, home: string, path: string): boolean {
  const insert = db.query<{ id: number }, [string, string, number, string | null]>(
    'INSERT INTO backup_files (path, kind, mode, bytes, target) VALUES (?, ?, ?, 0, ?) RETURNING id',
  )
  const from = join(home, path)
  try {
    const found = lstatSync(from)
    const mode = found.mode & 0o777
    if (found.isDirectory()) insert.get(path, 'folder', mode, null)
    if (found.isSymbolicLink()) insert.get(path, 'link', mode, readlinkSync(from))
    if (!found.isFile()) return false
    const handle = openSync(from, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      const { id } = insert.get(path, 'file', mode, null)!
      const read = addBytes(db, id, handle)
      db.query('UPDATE backup_files SET bytes = ?2, sha256 = ?3 WHERE id = ?1').run(id, read.bytes, read.sha256)
    } finally {
      closeSync(handle)
    }
    return true
  } catch (error) {
    if (['ENOENT', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return false
    throw error
  }
}

/** Adds the bytes that a file has now: a log that grows ends where it ended when it was opened. */
function addBytes(db: Database, id: number, handle: number): { bytes: number; sha256: string } {
  const put = db.query('INSERT INTO backup_chunks (file, number, bytes) VALUES (?, ?, ?)')
  const hash = new Bun.CryptoHasher('sha256')
  const buffer = Buffer.alloc(CHUNK_BYTES)
  const { size } = fstatSync(handle)
  let bytes = 0
  for (let number = 0; bytes < size; number++) {
    const length = readSync(handle, buffer, 0, Math.min(CHUNK_BYTES, size - bytes), bytes)
    if (length === 0) break
    const chunk = buffer.subarray(0, length)
    hash.update(chunk)
    put.run(id, number, chunk)
    bytes += length
  }
  return { bytes, sha256: hash.digest('hex') }
}

/** Whether the files of a phase that the copy has as completed may have changed since it was made. */
function hasChanged(source: Database, draft: string): boolean {
  source.run('ATTACH ? AS copy', [draft])
  try {
    const gone = source.query(
      'SELECT 1 FROM copy.runs AS was WHERE NOT EXISTS (SELECT 1 FROM main.runs WHERE id = was.id) LIMIT 1',
    )
    const repeated = source.query(
      `SELECT 1 FROM copy.phases AS was JOIN main.phases AS now USING (run_id, position)
       WHERE was.state = 'completed' AND now.attempt <> was.attempt LIMIT 1`,
    )
    return gone.get() !== null || repeated.get() !== null
  } finally {
    source.run('DETACH copy')
  }
}

export interface RestoreReport {
  made_at: number
  folder: string
  host: string
  runs: number
  /** Top runs that had not ended. */
  unfinished: number
  files: number
}

/** Makes a home of a backup. Throws `conflict` unless `home` is empty, or for a file that is no backup. */
export async function restoreHome(home: string, file: string): Promise<RestoreReport> {
  if (!existsSync(file)) throw new CadreError('not_found', `there is no file ${file}`)
  const known = (await readMigrations(MIGRATIONS)).length
  const { label, schema } = inspect(file)
  if (label.format > FORMAT || schema > known) {
    throw new CadreError(
      'conflict',
      `${file} was made by cadre ${label.version}, which is newer: upgrade this one first`,
    )
  }
  refuseFull(home)
  makeHome(home)
  const lock = takeLock(home, 'restore')
  try {
    return unpack(home, file, label)
  } catch (error) {
    // A part of a home must not be taken for one.
    for (const name of readdirSync(home)) {
      if (!name.startsWith('daemon.lock')) rmSync(join(home, name), { recursive: true, force: true })
    }
    throw error
  } finally {
    lock.release()
  }
}

function refuseFull(home: string): void {
  const [some] = existsSync(home) ? readdirSync(home) : []
  if (some === undefined) return
  throw new CadreError('conflict', `${home} is not empty (${some}): restore into an empty folder with --home`)
}

function inspect(file: string): { label: Label; schema: number } {
  try {
    using db = openForReading(file)
    const { json } = db.query<{ json: string }, []>('SELECT json FROM backup_label').get()!
    return { label: JSON.parse(json), schema: versionOf(db) }
  } catch (error) {
    if (!(error instanceof SQLiteError) && !(error instanceof CadreError)) throw error
    throw new CadreError('conflict', `${file} must be a backup of a home: ${messageOf(error)}`, { cause: error })
  }
}

function unpack(home: string, file: string, label: Label): RestoreReport {
  const draft = `${databaseFile(home)}.draft`
  copyFileSync(file, draft)
  chmodSync(draft, 0o600)
  let report: RestoreReport
  {
    using db = new Database(draft, { strict: true, readwrite: true })
    db.run('PRAGMA synchronous = OFF')
    checked(db, file)
    const files = takeOut(db, home)
    failpoint()
    db.run('DROP TABLE backup_chunks; DROP TABLE backup_files; DROP TABLE backup_label')
    const { made_at, folder, host } = label
    const put = db.query('INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT (key) DO UPDATE SET value = ?2')
    put.run(RESTORED, JSON.stringify({ made_at, folder, host }))
    // Files that the machine of the backup had not synced are restored from their rows.
    db.run("DELETE FROM meta WHERE key = 'boot'")
    db.run('VACUUM')
    const count = (where: string) =>
      db.query<{ n: number }, []>(`SELECT count(*) AS n FROM runs WHERE parent_id IS NULL ${where}`).get()!.n
    report = { made_at, folder, host, files, runs: count(''), unfinished: count('AND completed_at IS NULL') }
  }
  synced(draft)
  // From here on it is a home.
  renameSync(draft, databaseFile(home))
  synced(home)
  return report
}

/** Writes the files. Links come last, so that no path leads through one. */
function takeOut(db: Database, home: string): number {
  const all = db.query<Entry, []>("SELECT * FROM backup_files ORDER BY kind = 'link', id")
  const chunks = db.query<{ bytes: Uint8Array }, [number]>(
    'SELECT bytes FROM backup_chunks WHERE file = ? ORDER BY number',
  )
  const folders: Entry[] = []
  let files = 0
  for (const entry of all.iterate()) {
    const to = join(home, safePath(entry.path))
    if (entry.kind === 'folder') {
      mkdirSync(to, { recursive: true, mode: 0o700 })
      folders.push(entry)
    } else if (entry.kind === 'link') symlinkSync(entry.target!, to)
    else {
      writeFile(to, entry, chunks.iterate(entry.id))
      files++
    }
  }
  // A folder that nobody may write into gets its files first.
  for (const { path, mode } of folders.toReversed()) chmodSync(join(home, path), mode)
  return files
}

function writeFile(to: string, { path, mode, sha256 }: Entry, chunks: Iterable<{ bytes: Uint8Array }>): void {
  const handle = openSync(to, 'wx', 0o600)
  const hash = new Bun.CryptoHasher('sha256')
  try {
    for (const { bytes } of chunks) {
      hash.update(bytes)
      for (let from = 0; from < bytes.length; ) from += writeSync(handle, bytes, from)
    }
    if (hash.digest('hex') !== sha256)
      throw new CadreError('conflict', `the backup is damaged: ${path} has other bytes`)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  chmodSync(to, mode)
}

/** A path below one of the names that a backup has. Throws for any other, which no backup of ours has. */
function safePath(path: string): string {
  const segments = path.split('/')
  const isPlain = segments.every(each => each !== '' && each !== '.' && each !== '..' && !each.includes('\0'))
  if (isPlain && KEPT.includes(segments[0]!)) return path
  throw new CadreError('conflict', 'the backup has a file outside of what a home has: it was not made by cadre')
}

function checked(db: Database, file: string): void {
  const [problem] = db.query<{ integrity_check: string }, []>('PRAGMA integrity_check(1)').all()
  if (problem?.integrity_check !== 'ok') throw new CadreError('conflict', `${file}: ${problem?.integrity_check}`)
}

function synced(path: string): void {
  const handle = openSync(path, 'r')
  fsyncSync(handle)
  closeSync(handle)
}

const taken = (file: string) => new CadreError('conflict', `${file} already exists; choose another name`)
