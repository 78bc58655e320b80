// Table `run_groups`: what lists ask of a run that never changes. There are about as many groups as teams and triggers: a
// list finds its groups first, and then reads the runs of each in their order. Groups are never deleted.

import type { Database } from 'bun:sqlite'
import { type StartedBy, starterName, starterOf } from '../../wire/records/started-by.ts'
import { parse, type RunRow } from '../core/core.ts'

export interface GroupFilter {
  /** A whole name, or the part after the scope. */
  team?: string
  root_only?: boolean
  /** A kind, or a kind and a name, such as `schedule:nightly`. */
  started_by?: string
}

type Key = [team: string, isTop: number, starter: string, starterName: string]

export class RunGroups {
  readonly #known
  readonly #add
  readonly #that
  readonly #called
  readonly #teams

  constructor(db: Database) {
    this.#known = db.query<{ id: number }, Key>(
      'SELECT id FROM run_groups WHERE team = ? AND is_top = ? AND starter = ? AND starter_name = ?',
    )
    this.#add = db.query<{ id: number }, Key>(
      'INSERT INTO run_groups (team, is_top, starter, starter_name) VALUES (?, ?, ?, ?) RETURNING id',
    )
    this.#that = db.query<{ id: number }, (string | number | null)[]>(
      `SELECT id FROM run_groups WHERE (?1 IS NULL OR team = ?1 OR (?2 AND ${BARE} = ?1))
         AND is_top >= ?3 AND (?4 IS NULL OR starter = ?4) AND (?5 IS NULL OR starter_name = ?5) LIMIT ?6`,
    )
    this.#teams = db.query<{ team: string }, []>('SELECT DISTINCT team FROM run_groups WHERE is_top ORDER BY team')
    this.#called = db.query<{ team: string }, [string]>(
      `SELECT DISTINCT team FROM run_groups WHERE team = ?1 OR ${BARE} = ?1`,
    )
  }

  /** The group of a run, which is added with its first run. */
  of(run: Pick<RunRow, 'team' | 'parent_id' | 'started_by'>): number {
    const key = keyOf(run)
    return (this.#known.get(...key) ?? this.#add.get(...key)!).id
  }

  /** The groups of which a list may have runs. `most`: no more of them. */
  that({ team, root_only, started_by }: GroupFilter, most = -1): number[] {
    const { kind, name } = started_by === undefined ? { kind: null, name: null } : starterOf(started_by)
    const isBare = team !== undefined && !isWhole(team)
    return this.#that.all(team ?? null, isBare ? 1 : 0, root_only ? 1 : 0, kind, name, most).map(({ id }) => id)
  }

  /** The teams of top runs, by name: a page of them, and how many there are. */
  teams({ limit, offset }: { limit: number; offset: number }): { teams: string[]; total: number } {
    const all = this.#teams.all().map(({ team }) => team)
    return { teams: all.slice(offset, offset + limit), total: all.length }
  }

  /** The teams of runs with this whole name, or with it after any scope. */
  teamsCalled(team: string): string[] {
    return isWhole(team) ? [team] : this.#called.all(team).map(row => row.team)
  }
}

/** A team without its scope. */
const BARE = "substr(team, instr(team, '/') + 1)"
const isWhole = (team: string): boolean => team.startsWith('@')

function keyOf({ team, parent_id, started_by }: Pick<RunRow, 'team' | 'parent_id' | 'started_by'>): Key {
  if (parent_id !== null) return [team, 0, '', '']
  const by = parse<StartedBy>(started_by) ?? { kind: 'unknown' as const }
  return [team, 1, by.kind, starterName(by) ?? '']
}
