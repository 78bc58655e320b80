// The daemon's home: one folder, readable by its owner only, that holds all of its state. Also its local token, the
// proof that a caller on this machine may read the owner's files.

import { randomBytes } from 'node:crypto'
import { chmodSync, linkSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { CadreError } from '../error.ts'

type Environment = Record<string, string | undefined>

/** `--home`, else `CADRE_HOME`, else `~/.cadre`; absolute. */
export function homeFolder(given: string | undefined, env: Environment = process.env): string {
  return resolve(given ?? (env.CADRE_HOME || join(homedir(), '.cadre')))
}

export const databaseFile = (home: string): string => join(home, 'daemon.db')

/** Where the processes that agents start are remembered while they run. */
export const processesFolder = (home: string): string => join(home, 'processes')

/** Makes the folder, mode 0700. One that others can look into is closed to them. */
export function makeHome(home: string): void {
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 })
    if ((statSync(home).mode & 0o077) !== 0) chmodSync(home, 0o700)
  } catch (cause) {
    throw new CadreError('invalid_request', `the home ${home} cannot be used: ${(cause as Error).message}`, { cause })
  }
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
