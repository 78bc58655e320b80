// The daemon's home: one folder, readable by its owner only, that holds all of its state. Also its local token, the
// proof that a caller on this machine may read the owner's files.

import { randomBytes } from 'node:crypto'
import {
  accessSync,
  chmodSync,
  constants,
  linkSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { CadreError } from '../error.ts'

type Environment = Record<string, string | undefined>

/** `--home`, else `CADRE_HOME`, else `~/.cadre`; absolute. Throws `invalid_request` for what can be no home of this user. */
export function homeFolder(given: string | undefined, env: Environment = process.env): string {
  const home = resolve(given ?? (env.CADRE_HOME || join(homedir(), '.cadre')))
  const found = usable(home, () => statSync(home, { throwIfNoEntry: false }))
  if (!found) return home
  if (!found.isDirectory()) throw unusable(home, 'is a file, but the home must be a folder')
  const user = process.getuid?.()
  // Files that root leaves in somebody's home are files that its owner can neither read nor remove.
  if (user !== undefined && found.uid !== user) {
    throw unusable(home, `belongs to another user (uid ${found.uid}, you are ${user})`)
  }
  return home
}

function unusable(home: string, why: string, cause?: unknown): CadreError {
  return new CadreError('invalid_request', `${home} ${why}: choose another folder with --home or CADRE_HOME`, { cause })
}

export const databaseFile = (home: string): string => join(home, 'daemon.db')

/** Where the processes that agents start are remembered while they run. */
export const processesFolder = (home: string): string => join(home, 'processes')

/** Makes the folder, mode 0700. One that others can look into is closed to them. Throws `invalid_request`. */
export function makeHome(home: string): void {
  usable(home, () => {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    accessSync(home, constants.W_OK | constants.X_OK)
    if ((statSync(home).mode & 0o077) !== 0) chmodSync(home, 0o700)
  })
}

/** Tells why a folder cannot be used where that is plain. */
function usable<T>(home: string, work: () => T): T {
  try {
    return work()
  } catch (cause) {
    const reason = REASONS[(cause as NodeJS.ErrnoException).code ?? '']
    throw reason === undefined ? cause : unusable(home, reason, cause)
  }
}

const REASONS: Record<string, string> = {
  EACCES: 'cannot be written by this user',
  EPERM: 'cannot be written by this user',
  EROFS: 'is on a disk that is read-only',
  EEXIST: 'is a file, but the home must be a folder',
  ENOTDIR: 'lies below a file, not below a folder',
}

/** The local token in `<home>/token` (mode 0600), made when there is none. */
export function localToken(home: string): string {
  const known = readToken(home)
  if (known) return known
  const file = join(home, 'token')
  const draft = `${file}.${process.pid}`
  writeFileSync(draft, `${randomBytes(32).toString('base64url')}\n`, { mode: 0o600, flush: true })
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    rmSync(draft)
  }
  return readToken(home)!
}

/** The local token, or null where no daemon has run yet. */
export function readToken(home: string): string | null {
  try {
    return readFileSync(join(home, 'token'), 'utf8').trim() || null
  } catch {
    return null
  }
}
