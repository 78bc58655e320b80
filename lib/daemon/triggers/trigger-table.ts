// Table `triggers`: the rules of a home that start runs. Every statement about it is here, but those of
// ../home/copied-triggers.ts.

import type { Database } from 'bun:sqlite'
import type { Schedule } from '../../firing/slot-rows.ts'
import type { Trigger } from '../../firing/trigger.ts'
import { DEFAULT_DAYS } from '../../triggers/hook/fields.ts'
import type { WatchSpec } from '../../triggers/watch/spec.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import type { Declared } from '../../wire/records/triggers.ts'

interface Row extends Omit<Trigger, 'spec' | 'source' | 'enabled' | 'paused' | 'problem'> {
  spec: string
  source: string
  enabled: 0 | 1
  paused: string | null
  problem: string | null
}

/** A page of a list, and which triggers are in it. */
export interface ListedTriggers {
  kind?: TriggerKind | null
  team?: string | null
  limit: number
  offset: number
}

/** How many schedules one look takes up. */
const AT_ONCE = 100

const COLUMNS =
  'id, name, kind, spec, revision, source, enabled, paused, problem, cursor, next_at, created_at, created_by'

export class TriggerTable {
  readonly #db: Database

  /** `db`: the daemon's database. */
  constructor(db: Database) {
    this.#db = db
  }

  get(id: string): Trigger | null {
    return this.#one('id = ? AND removed_at IS NULL', id)
  }

  evenRemoved(id: string): Trigger | null {
    return this.#one('id = ?', id)
  }

  byName(name: string): Trigger | null {
    return this.#one('name = ? AND removed_at IS NULL', name)
  }

  /** How many look for occasions: those that are enabled and not paused. */
  live(): number {
    return this.#db
      .query<{ n: number }, []>(
        'SELECT count(*) AS n FROM triggers WHERE enabled = 1 AND paused IS NULL AND removed_at IS NULL',
      )
      .get()!.n
  }

  /** The trigger that was enabled before of this folder, or of this package in whatever version. */
  declared({ team, name }: Declared, from: string): Trigger | null {
    const isFrom = from.startsWith('/') ? "spec ->> 'team' = ?3" : "substr(spec ->> 'team', 1, 1) <> '/'"
    const where = `source ->> 'team' = ?1 AND source ->> 'name' = ?2 AND ${isFrom} AND removed_at IS NULL`
    return this.#one(where, team, name, ...(from.startsWith('/') ? [from] : []))
  }

  /** Enabled triggers that the team.yml of a folder declares. */
  fromFolders(): Trigger[] {
    return this.#db
      .query<Row, []>(
        `SELECT ${COLUMNS} FROM triggers INDEXED BY triggers_declared
         WHERE source <> '"manual"' AND enabled = 1 AND removed_at IS NULL`,
      )
      .all()
      .map(read)
      .filter(({ spec }) => spec.team.startsWith('/'))
  }

  enabledChains(): Trigger[] {
    return this.#db
      .query<Row, []>(`SELECT ${COLUMNS} FROM triggers WHERE kind = 'chain' AND enabled = 1 AND removed_at IS NULL`)
      .all()
      .map(read)
  }

  watches(): Trigger<WatchSpec>[] {
    return this.#db
      .query<Row, []>(`SELECT ${COLUMNS} FROM triggers WHERE kind = 'watch' AND enabled = 1 AND removed_at IS NULL`)
      .all()
      .map(row => read(row) as Trigger<WatchSpec>)
  }

  /** By name. `team`: only those that start it, in whatever version. */
  list({ kind = null, team = null, limit, offset }: ListedTriggers): { triggers: Trigger[]; total: number } {
    const where = `removed_at IS NULL AND (?1 IS NULL OR kind = ?1)
      AND (?2 IS NULL OR spec ->> 'team' = ?2 OR substr(spec ->> 'team', 1, length(?2) + 1) = ?2 || '@')`
    const rows = this.#db
      .query<Row, [string | null, string | null, number, number]>(
        `SELECT ${COLUMNS} FROM triggers WHERE ${where} ORDER BY name LIMIT ?3 OFFSET ?4`,
      )
      .all(kind, team, limit, offset)
    const { total } = this.#db
      .query<{ total: number }, [string | null, string | null]>(`SELECT count(*) AS total FROM triggers WHERE ${where}`)
      .get(kind, team)!
    return { triggers: rows.map(read), total }
  }

  /** The schedules that are due, the longest due first, and those whose cursor the clock is behind. */
  due(now: number): Schedule[] {
    const live = `kind = 'schedule' AND enabled = 1 AND paused IS NULL AND removed_at IS NULL`
    return [
      ...this.#db
        .query<Row, [number]>(`SELECT ${COLUMNS} FROM triggers WHERE ${live} AND cursor > ? LIMIT ${AT_ONCE}`)
        .all(now),
      ...this.#db
        .query<Row, [number]>(
          `SELECT ${COLUMNS} FROM triggers WHERE next_at IS NOT NULL AND next_at <= ? ORDER BY next_at LIMIT ${AT_ONCE}`,
        )
        .all(now),
    ].map(row => read(row) as Schedule)
  }

  insert(trigger: Trigger): void {
    this.#db
      .query(
        `INSERT INTO triggers (${COLUMNS})
         VALUES ($id, $name, $kind, $spec, $revision, $source, $enabled, $paused, $problem, $cursor, $next_at, $created_at,
           $created_by)`,
      )
      .run(parametersOf(trigger))
  }

  /** Writes everything that changes in the life of a trigger. */
  update({ created_at: _, created_by: __, ...trigger }: Trigger): void {
    const { $created_at, $created_by, ...values } = parametersOf({ ...trigger, created_at: 0, created_by: '' })
    this.#db
      .query(
        `UPDATE triggers SET name = $name, kind = $kind, spec = $spec, revision = $revision, source = $source,
           enabled = $enabled, paused = $paused, problem = $problem, cursor = $cursor, next_at = $next_at WHERE id = $id`,
      )
      .run(values)
  }

  setCursor(id: string, cursor: number, nextAt: number | null): void {
    this.#db.query('UPDATE triggers SET cursor = ?, next_at = ? WHERE id = ?').run(cursor, nextAt, id)
  }

  setProblem(id: string, problem: Trigger['problem']): void {
    this.#db.query('UPDATE triggers SET problem = ? WHERE id = ?').run(problem && JSON.stringify(problem), id)
  }

  remove(id: string, now: number): void {
    this.#db.query('UPDATE triggers SET removed_at = ?, enabled = 0, next_at = NULL WHERE id = ?').run(now, id)
  }

  /**
   * All triggers, with those that were removed, for how long `at_most` counts their firings, and for how many days hooks
   * recognise deliveries.
   */
  everyOne(): { id: string; is_removed: 0 | 1; per: string | null; days: number | null }[] {
    return this.#db
      .query<{ id: string; is_removed: 0 | 1; per: string | null; days: number | null }, []>(
        `SELECT id, removed_at IS NOT NULL AS is_removed, spec ->> '$.at_most.per' AS per,
           iif(kind = 'hook', coalesce(spec ->> '$.own.keep_days', ${DEFAULT_DAYS.keep}), NULL) AS days FROM triggers`,
      )
      .all()
  }

  /** Deletes the removed triggers of which no firing is left. */
  deleteRemoved(): void {
    this.#db
      .query(
        `DELETE FROM triggers WHERE removed_at IS NOT NULL
           AND NOT EXISTS (SELECT 1 FROM firings WHERE trigger_id = triggers.id)`,
      )
      .run()
  }

  #one(where: string, ...values: string[]): Trigger | null {
    const row = this.#db.query<Row, string[]>(`SELECT ${COLUMNS} FROM triggers WHERE ${where}`).get(...values)
    return row && read(row)
  }
}

const read = ({ spec, source, enabled, paused, problem, ...row }: Row): Trigger => ({
  ...row,
  spec: JSON.parse(spec),
  source: JSON.parse(source),
  enabled: enabled === 1,
  paused: paused === null ? null : JSON.parse(paused),
  problem: problem === null ? null : JSON.parse(problem),
})

const parametersOf = (trigger: Trigger) => ({
  $id: trigger.id,
  $name: trigger.name,
  $kind: trigger.kind,
  $spec: JSON.stringify(trigger.spec),
  $revision: trigger.revision,
  $source: JSON.stringify(trigger.source),
  $enabled: trigger.enabled ? 1 : 0,
  $paused: trigger.paused && JSON.stringify(trigger.paused),
  $problem: trigger.problem && JSON.stringify(trigger.problem),
  $cursor: trigger.cursor,
  $next_at: trigger.next_at,
  $created_at: trigger.created_at,
  $created_by: trigger.created_by,
})
