// Workspaces: folders that runs work in, registered by a person or by the first run that uses one. Each is referred to by
// its id, its name or its path. Runs that the hub dispatches work only in those that a person has offered.

import type { Database } from 'bun:sqlite'
import { realpathSync, statSync } from 'node:fs'
import { basename, isAbsolute } from 'node:path'
import { CadreError } from '../../error.ts'
import { OPEN_TOPS } from '../../run/engine.ts'
import { sharedLook } from '../../shared-look.ts'
import type { WorkspaceRecord } from '../../wire/calls/workspaces.ts'

/**
 * Who names a workspace: this machine, a person of the realm who calls this daemon, or the hub. Each is more trusted than
 * the next.
 */
export type Namer = 'here' | 'elsewhere' | 'hub'

/** A workspace in the audit log. */
export const inAudit = ({ name, path, offered }: WorkspaceRecord): string =>
  `${name}: ${path}${offered ? ', offered' : ''}`

interface Row {
  id: string
  path: string
  name: string
  created_at: number
  /** `kept`: it was in use by dispatched runs before people offered workspaces. */
  reach: 'here' | 'elsewhere' | 'offered' | 'kept'
}

const isOffered = ({ reach }: Pick<Row, 'reach'>): boolean => reach === 'offered' || reach === 'kept'

/** Whether `by` may name a workspace. */
const mayName = (by: Namer, row: Row): boolean =>
  by === 'here' || isOffered(row) || (by === 'elsewhere' && row.reach === 'elsewhere')

export class Workspaces {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  list(): WorkspaceRecord[] {
    return this.#rows().map(row => this.#record(row))
  }

  /** The folders of all. */
  paths(): string[] {
    return this.#rows().map(({ path }) => path)
  }

  /**
   * Registers a folder, renames a registered one, and offers it to dispatched runs, or no longer. Throws
   * `invalid_request`, and `conflict` for a name in use.
   */
  add(path: string, { name, offer }: { name?: string | undefined; offer?: boolean | undefined } = {}): WorkspaceRecord {
    const folder = existingFolder(path, '/path')
    const known = this.#byPath(folder)
    if (name !== undefined) this.#checkName(name, known?.id)
    if (!known) this.#insert(folder, name)
    const row = this.#byPath(folder)!
    const reach = offer ? 'offered' : offer === undefined && isOffered(row) ? row.reach : 'elsewhere'
    this.#db.query('UPDATE workspaces SET name = ?, reach = ? WHERE id = ?').run(name ?? row.name, reach, row.id)
    return this.#record(this.#byPath(folder)!)
  }

  /** The real path of a folder for a run, which is registered as a workspace. Throws `invalid_request`. */
  readonly use = sharedLook((path: string): string => {
    const folder = existingFolder(path)
    if (!this.#byPath(folder)) this.#insert(folder)
    return folder
  })

  /** Removes a workspace from the list; the folder stays. Throws `not_found`, and `conflict` while runs use it. */
  remove(reference: string): WorkspaceRecord {
    const row = this.#find(reference)
    if (!row) throw new CadreError('not_found', `there is no workspace ${reference}`)
    const record = this.#record(row)
    if (record.active_runs > 0) {
      throw new CadreError(
        'conflict',
        `workspace ${row.name} is used by ${record.active_runs} runs: wait, or cancel them`,
      )
    }
    this.#db.query('DELETE FROM workspaces WHERE id = ?').run(row.id)
    return record
  }

  /** The folder that `reference` means when `by` names it. On this machine that may be the path of any folder. */
  folder(reference: string, by: Namer): string {
    const row = this.#find(reference)
    if (row && mayName(by, row)) return unlinked(row)
    if (by === 'here' && isAbsolute(reference)) return existingFolder(reference)
    throw this.#unknown(reference, by)
  }

  /** The names of those that the hub may name. */
  offered(): string[] {
    return this.#namesFor('hub')
  }

  /** Those that are offered although no person has said so. */
  kept(): string[] {
    return this.#rows().flatMap(({ name, reach }) => (reach === 'kept' ? name : []))
  }

  #namesFor(by: Namer): string[] {
    return this.#rows().flatMap(row => (mayName(by, row) ? row.name : []))
  }

  #rows(): Row[] {
    return this.#db.query<Row, []>('SELECT * FROM workspaces ORDER BY name, path').all()
  }

  #insert(folder: string, name = this.#freeName(basename(folder) || 'root')): void {
    this.#db
      .query('INSERT INTO workspaces (id, path, name, created_at) VALUES (?, ?, ?, ?)')
      .run(crypto.randomUUID(), folder, name, Date.now())
  }

  #unknown(reference: string, by: Namer): CadreError {
    const known = this.#namesFor(by).join(', ') || 'none'
    const [message, detail] =
      by === 'hub'
        ? [
            `this daemon offers no workspace ${reference}: offered are ${known}; whoever owns its machine offers a folder with \`workspaces add FOLDER --offer\``,
            'is not offered',
          ]
        : [`no workspace ${reference}: known are ${known}; register a folder with workspaces/add`, 'is not registered']
    return new CadreError('invalid_request', message, { details: [{ path: '/workspace', message: detail }] })
  }

  #find(reference: string): Row | null {
    const row = this.#db
      .query<Row, [string]>('SELECT * FROM workspaces WHERE id = ?1 OR name = ?1 OR path = ?1 ORDER BY id = ?1 DESC')
      .get(reference)
    return row ?? (isAbsolute(reference) ? this.#byPath(real(reference)) : null)
  }

  #byPath(path: string): Row | null {
    return this.#db.query<Row, [string]>('SELECT * FROM workspaces WHERE path = ?').get(path)
  }

  #checkName(name: string, own: string | undefined): void {
    const other = this.#db.query<Row, [string]>('SELECT * FROM workspaces WHERE name = ?').get(name)
    if (other && other.id !== own) throw new CadreError('conflict', `workspace ${name} already exists: ${other.path}`)
  }

  #freeName(wish: string): string {
    const taken = new Set(this.#namesFor('here'))
    for (let number = 1; ; number++) {
      const name = number === 1 ? wish : `${wish}-${number}`
      if (!taken.has(name)) return name
    }
  }

  #record(row: Row): WorkspaceRecord {
    const { id, path, name, created_at } = row
    // Jumps from team to team in the index, however many runs each has.
    const teams = this.#db
      .query<{ team: string }, [string]>(
        `WITH RECURSIVE used (team) AS (
           SELECT min(team) FROM runs WHERE parent_id IS NULL AND workspace = ?1
           UNION ALL
           SELECT (SELECT min(team) FROM runs WHERE parent_id IS NULL AND workspace = ?1 AND team > used.team)
           FROM used WHERE team IS NOT NULL)
         SELECT team FROM used WHERE team IS NOT NULL`,
      )
      .all(path)
    const { active } = this.#db
      .query<{ active: number }, [string]>(`SELECT count(*) AS active ${OPEN_TOPS} AND workspace = ?`)
      .get(path)!
    return {
      workspace_id: id,
      path,
      name,
      teams: teams.map(({ team }) => team),
      active_runs: active,
      created_at,
      offered: isOffered(row),
    }
  }
}

/** The real path of a folder that exists. Throws `invalid_request`. */
export function existingFolder(path: string, field = '/workspace'): string {
  const wrong = (message: string) =>
    new CadreError('invalid_request', `workspace ${path} ${message}`, { details: [{ path: field, message }] })
  if (!isAbsolute(path)) throw wrong('must be an absolute path')
  const found = real(path)
  if (!isFolder(found)) throw wrong('must be a folder')
  return found
}

/** What cannot be looked at, such as a name that is too long for the disk, is none. */
function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

/**
 * The path of a registered folder. Throws `conflict` when a link is in its place, which a command may have made to be
 * shown another folder.
 */
function unlinked({ name, path }: Row): string {
  const real = existingFolder(path)
  if (real === path) return path
  throw new CadreError('conflict', `the folder of workspace ${name}, ${path}, was replaced by a link to ${real}`, {
    details: [{ path: '/workspace', message: 'remove the workspace, and add the folder that is meant' }],
  })
}
