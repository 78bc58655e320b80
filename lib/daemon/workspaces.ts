// Workspaces: folders that runs work in, registered by a person or by the first run that uses one.
// Each is referred to by its id, its name or its path.

import type { Database } from 'bun:sqlite'
import { realpathSync, statSync } from 'node:fs'
import { basename, isAbsolute } from 'node:path'
import { CadreError } from '../error.ts'
import { sharedLook } from '../shared-look.ts'
import type { WorkspaceRecord } from '../wire/daemon-calls.ts'

interface Row {
  id: string
  path: string
  name: string
  created_at: number
}

export class Workspaces {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  list(): WorkspaceRecord[] {
    return this.#db
      .query<Row, []>('SELECT * FROM workspaces ORDER BY name, path')
      .all()
      .map(row => this.#record(row))
  }

  /** Registers a folder, or renames a registered one. Throws `invalid_request`, and `conflict` for a name in use. */
  add(path: string, name?: string): WorkspaceRecord {
    const folder = existingFolder(path, '/path')
    const known = this.#byPath(folder)
    if (name !== undefined) this.#checkName(name, known?.id)
    if (!known) this.#insert(folder, name)
    else if (name !== undefined && name !== known.name) {
      this.#db.query('UPDATE workspaces SET name = ? WHERE id = ?').run(name, known.id)
    }
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

  /** The folder that `reference` means. A path that is not registered is accepted only if `paths` is true. */
  folder(reference: string, { paths }: { paths: boolean }): string {
    const row = this.#find(reference)
    if (row) return row.path
    if (paths && isAbsolute(reference)) return existingFolder(reference)
    throw this.#unknown(reference)
  }

  names(): string[] {
    return this.#db
      .query<Pick<Row, 'name'>, []>('SELECT name FROM workspaces ORDER BY name')
      .all()
      .map(({ name }) => name)
  }

  #insert(folder: string, name = this.#freeName(basename(folder) || 'root')): void {
    this.#db
      .query('INSERT INTO workspaces (id, path, name, created_at) VALUES (?, ?, ?, ?)')
      .run(crypto.randomUUID(), folder, name, Date.now())
  }

  #unknown(reference: string): CadreError {
    const known = this.names().join(', ') || 'none'
    const message = `no workspace ${reference}: known are ${known}; register a folder with workspaces/add`
    return new CadreError('invalid_request', message, {
      details: [{ path: '/workspace', message: 'is not registered' }],
    })
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
    const taken = new Set(this.names())
    for (let number = 1; ; number++) {
      const name = number === 1 ? wish : `${wish}-${number}`
      if (!taken.has(name)) return name
    }
  }

  #record({ id, path, name, created_at }: Row): WorkspaceRecord {
    const used = this.#db
      .query<{ team: string; active: number }, [string]>(
        `SELECT team, sum(completed_at IS NULL) AS active FROM runs
         WHERE parent_id IS NULL AND workspace = ? GROUP BY team ORDER BY team`,
      )
      .all(path)
    return {
      workspace_id: id,
      path,
      name,
      teams: used.map(({ team }) => team),
      active_runs: used.reduce((sum, { active }) => sum + active, 0),
      created_at,
    }
  }
}

/** The real path of a folder that exists. Throws `invalid_request`. */
function existingFolder(path: string, field = '/workspace'): string {
  const wrong = (message: string) =>
    new CadreError('invalid_request', `workspace ${path} ${message}`, { details: [{ path: field, message }] })
  if (!isAbsolute(path)) throw wrong('must be an absolute path')
  const found = real(path)
  if (!statSync(found, { throwIfNoEntry: false })?.isDirectory()) throw wrong('must be a folder')
  return found
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}
