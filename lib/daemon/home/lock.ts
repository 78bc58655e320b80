// One process at a time holds a home. `<home>/daemon.lock` names it by pid, start time and boot, and says where it
// serves the API. A lock is taken over if its process is gone, is a zombie, or its pid belongs to another program, and if
// it is the lock of another folder, with which it was copied. If the process is alive, the error names it.

import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CadreError } from '../../error.ts'
import { type FileIdentity, identityOf, isSameFile } from '../../files/file-identity.ts'
import { isAlive, ownMark, type ProcessMark } from '../../program/process.ts'

export interface Holder extends ProcessMark {
  /** The folder whose lock it is. Locks of older versions do not say it. */
  home?: FileIdentity
  /** The command of the process. `serve` stays, and any other command ends with its last run. */
  command: string
  /** The address where it serves the API. Null before it serves, and when it is about to end. */
  address: string | null
}

export interface Lock {
  /** Records where the holder serves. Null means that it is about to release the home. */
  announce(address: string | null): void
  release(): void
}

const fileOf = (home: string) => join(home, 'daemon.lock')

/** Takes the lock of `home` for a command. Throws `conflict` that names the holder. */
export function takeLock(home: string, command: string): Lock {
  const file = fileOf(home)
  const draft = `${file}.${process.pid}`
  const self = { ...ownMark(), home: identityOf(home), command }
  const write = (address: string | null) => {
    const holder: Holder = { ...self, address }
    writeFileSync(draft, JSON.stringify(holder), { mode: 0o600 })
  }
  try {
    write(null)
    while (!linked(draft, file)) {
      const holder = readHolder(home)
      if (holder && holds(home, holder)) throw held(home, holder)
      displace(home, holder)
    }
  } finally {
    rmSync(draft, { force: true })
  }
  const isOurs = () => readHolder(home)?.pid === self.pid
  return {
    announce(address) {
      try {
        write(address)
        renameSync(draft, file)
      } finally {
        rmSync(draft, { force: true })
      }
    },
    release() {
      if (isOurs()) rmSync(file, { force: true })
    },
  }
}

/** Who holds `home` now; null when nobody does. */
export function holderOf(home: string): Holder | null {
  const holder = readHolder(home)
  return holder && holds(home, holder) ? holder : null
}

/** Whether the lock still names `holder`, which has ended: it did not end by itself. */
export function isLeft(home: string, { pid, started }: Holder): boolean {
  const left = readHolder(home)
  return left?.pid === pid && left.started === started
}

function held(home: string, { pid, command = 'serve', address }: Holder): CadreError {
  const at = address === null ? '' : ` at ${address}`
  const doing =
    command === 'serve'
      ? `which serves it${at}: stop that process`
      : `which runs a team (\`${command}\`) and serves the home${at} until that ends: wait for it, or stop it`
  return new CadreError('conflict', `${home} is held by process ${pid}, ${doing}, or choose another folder with --home`)
}

/**
 * Creates the lock as a link, because a link appears with its whole content or not at all, unlike a file that is
 * created and then written.
 */
function linked(draft: string, file: string): boolean {
  try {
    linkSync(draft, file)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Moves a dead lock away. If another start was quicker, the moved file is its live lock and is moved back. */
function displace(home: string, dead: Holder | null): void {
  const file = fileOf(home)
  const aside = `${file}.${crypto.randomUUID()}`
  try {
    renameSync(file, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  const moved = parseHolder(readFileSync(aside, 'utf8'))
  if (moved && JSON.stringify(moved) !== JSON.stringify(dead)) linked(aside, file)
  rmSync(aside, { force: true })
}

function readHolder(home: string): Holder | null {
  try {
    return parseHolder(readFileSync(fileOf(home), 'utf8'))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

function parseHolder(text: string): Holder | null {
  try {
    const holder: Holder = JSON.parse(text)
    return Number.isSafeInteger(holder.pid) ? holder : null
  } catch {
    return null
  }
}

function holds(folder: string, holder: Holder): boolean {
  if (holder.home !== undefined && !isSameFile(holder.home, identityOf(folder))) return false
  return isAlive(holder)
}
