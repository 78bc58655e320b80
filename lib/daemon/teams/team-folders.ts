// Which folders of this machine hold files of teams that the owner of the home may change by a call: those of workspaces,
// and those of teams that ran. Whatever leads elsewhere is refused.

import { realpathSync, statSync } from 'node:fs'
import { isAbsolute, relative, sep } from 'node:path'
import { type OpenFolder, openFolder } from '../../agent/files/folders.ts'
import { CadreError } from '../../error.ts'
import { pathError } from '../../files/path-error.ts'
import { commandLine } from '../../program/called-as.ts'
import type { Daemon } from '../runs/daemon.ts'

type Known = Pick<Daemon, 'home' | 'workspaces' | 'engine'>

/** A folder that stays the same one until it is disposed, and its real path. */
export interface TeamFolder extends OpenFolder {
  readonly path: string
}

/** Opens the folder at `path`. Throws `invalid_request` where there is none, and `forbidden` for one of no team. */
export function openTeamFolder(known: Known, path: string): TeamFolder {
  const real = realFolder(path)
  const base = baseOf(known, real)
  if (base === null) {
    const way = commandLine('workspaces', 'add', real)
    throw forbidden(`${real} is neither in a workspace nor the folder of a team that ran: register it with \`${way}\``)
  }
  const moved = () => forbidden(`${real} was replaced by a link while it was opened: look at what does that`)
  const names = relative(base, real).split(sep).filter(Boolean)
  const folder = opened(() => openFolder(base, names, moved))
  // The base itself may have become a link since its path was read.
  if (realpathSync(folder.at('.')) === real)
    return { path: real, at: folder.at, [Symbol.dispose]: () => folder[Symbol.dispose]() }
  folder[Symbol.dispose]()
  throw moved()
}

/** The folder from which links are followed no more; null where no files of teams are changed. */
function baseOf({ home, workspaces, engine }: Known, real: string): string | null {
  // What is installed there never changes, and what runs have there is their record.
  if (isIn(realpathSync(home), real)) {
    throw forbidden(`${real} is in the home of this daemon, where no team is changed: copy the team to another folder`)
  }
  const workspace = workspaces.paths().find(each => isIn(each, real))
  return workspace ?? (engine.store.bundles.hasFolder(real) ? real : null)
}

const isIn = (base: string, path: string): boolean =>
  path === base || path.startsWith(base.endsWith(sep) ? base : base + sep)

function realFolder(path: string): string {
  if (!isAbsolute(path)) throw wrongPath(`${path} must be an absolute path`)
  const real = opened(() => realpathSync(path))
  if (!statSync(real).isDirectory()) throw wrongPath(`${path} must be a folder`)
  return real
}

function opened<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw pathError(error) ?? error
  }
}

const wrongPath = (message: string) =>
  new CadreError('invalid_request', message, {
    details: [{ path: '/path', message: 'must be the absolute path of a folder' }],
  })

const forbidden = (message: string) =>
  new CadreError('forbidden', message, { details: [{ path: '/path', message: 'is no folder of teams' }] })
