// The daemon's home: one folder, readable only by its owner, that holds all of its state. It also contains the local
// token, which proves that a caller on this machine may read the owner's files.

import { accessSync, chmodSync, constants, existsSync, mkdirSync, readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { CadreError } from '../../error.ts'
import { createWhole } from '../../files/durable-file.ts'

type Environment = Record<string, string | undefined>

/**
 * The absolute path of the home: `--home`, else `CADRE_HOME`, else `~/.cadre`. Throws `invalid_request` for a path that
 * cannot be a home of this user.
 */
export function homeFolder(given: string | undefined, env: Environment = process.env): string {
  if (given === '') throw new CadreError('invalid_request', '--home needs a folder, and an empty text names none')
  // `--home --help` would otherwise make a home of that name in the current folder.
  if (given?.startsWith('-')) {
    throw new CadreError(
      'invalid_request',
      `--home needs a folder, and ${given} looks like an option: write ./${given}`,
    )
  }
  const home = resolve(given ?? (env.CADRE_HOME || join(homedir(), '.cadre')))
  const found = usable(home, () => statSync(home, { throwIfNoEntry: false }))
  if (!found) return home
  if (!found.isDirectory()) throw unusable(home, 'is a file, but the home must be a folder')
  const user = process.getuid?.()
  // If root wrote into the home of another user, that user could neither read nor remove the files.
  if (user !== undefined && found.uid !== user) {
    throw unusable(home, `belongs to another user (uid ${found.uid}, you are ${user})`)
  }
  return home
}

/** The same, for a command that needs a home in which something has run. Throws `not_found`, too. */
export function existingHome(given: string | undefined): string {
  const home = homeFolder(given)
  if (!existsSync(databaseFile(home))) throw new CadreError('not_found', `nothing has run in ${home} yet`)
  return home
}

function unusable(home: string, why: string, cause?: unknown): CadreError {
  return new CadreError('invalid_request', `${home} ${why}: choose another folder with --home or CADRE_HOME`, { cause })
}

export const databaseFile = (home: string): string => join(home, 'daemon.db')

/** The index of searches, which is made anew when it is missing. */
export const searchFile = (home: string): string => join(home, 'search.db')

/** The folder that records the processes that agents have started, while they run. */
export const processesFolder = (home: string): string => join(home, 'processes')

/**
 * Creates the folder with mode 0700. An existing folder that others can read is closed to them. Throws
 * `invalid_request`.
 */
export function makeHome(home: string): void {
  usable(home, () => {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    accessSync(home, constants.W_OK | constants.X_OK)
    if ((statSync(home).mode & 0o077) !== 0) chmodSync(home, 0o700)
  })
}

/** Says why a folder cannot be used, if the error shows it. */
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
  ENOTDIR: 'is below a file, but must be below a folder',
}

/** The local token in `<home>/token` (mode 0600), created if it is missing. */
export function localToken(home: string): string {
  const known = readToken(home)
  if (known) return known
  createWhole(join(home, 'token'), `${Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString('base64url')}\n`)
  return readToken(home)!
}

/** The local token, or null when no daemon has run yet. */
export function readToken(home: string): string | null {
  try {
    return readFileSync(join(home, 'token'), 'utf8').trim() || null
  } catch {
    return null
  }
}
