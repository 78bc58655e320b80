// Table `jobs`: what this daemon has taken from its hub, so that neither a kill nor a cut connection loses a job, begins
// one twice, or gives it two answers. docs/architecture.md has the states beside those of the hub.

import type { Database } from 'bun:sqlite'
import type { RunId } from '../../files/run-id.ts'
import type { JsonObject } from '../../json.ts'
import type { Commit } from '../../run/engine.ts'
import type { MaskedText } from '../../secrets/masked.ts'
import type { AnyLeasedJob } from '../../wire/records/jobs.ts'

/**
 * `held`: taken, and nothing of it was done. `begun`: the hub has confirmed the run and it was started. `done` and
 * `failed`: what the hub has to hear.
 */
export type JobState = 'held' | 'begun' | 'done' | 'failed'

export interface TakenJob {
  id: string
  /** Of the last delivery. */
  lease_id: string
  kind: string
  run_id: RunId
  payload: JsonObject
  /** The attempt of the run when the job came; null when the run was not here. */
  run_attempt: number | null
  state: JobState
  error: string | null
}

/** A job as it is recorded first. */
export type JobToTake = Pick<AnyLeasedJob, 'job_id' | 'lease_id' | 'kind' | 'run_id'> & {
  /** JSON. */
  payload: MaskedText
  run_attempt: number | null
}

type Row = Omit<TakenJob, 'payload'> & { payload: string }

/** An answer that the hub did not take is kept this long in lived time, because the job may be delivered again. */
const KEPT_MS = 7 * 86_400_000

export class JobTable {
  readonly #db: Database
  readonly #commit: Commit

  /** `db`: the daemon's database. */
  constructor(db: Database, commit: Commit) {
    this.#db = db
    this.#commit = commit
  }

  /**
   * Records delivered jobs. Resolves when they are durable. A job that is known only gets its new lease.
   */
  take(jobs: readonly JobToTake[], now: number): Promise<void> {
    const put = this.#db.query(
      `INSERT INTO jobs (id, lease_id, kind, run_id, payload, run_attempt, state, taken_at)
       VALUES (?, ?, ?, ?, ?, ?, 'held', ?) ON CONFLICT (id) DO UPDATE SET lease_id = excluded.lease_id`,
    )
    return this.#commit(() => {
      for (const { job_id, lease_id, kind, run_id, payload, run_attempt } of jobs) {
        put.run(job_id, lease_id, kind, run_id, payload, run_attempt, now)
      }
    })
  }

  get(id: string): TakenJob | null {
    const row = this.#db.query<Row, [string]>('SELECT * FROM jobs WHERE id = ?').get(id)
    return row && { ...row, payload: JSON.parse(row.payload) }
  }

  /** Jobs in the order in which they came. */
  ids(): string[] {
    const rows = this.#db.query<{ id: string }, []>('SELECT id FROM jobs ORDER BY taken_at, id').all()
    return rows.map(({ id }) => id)
  }

  /** The job that will start the run, while it is held. */
  holding(runId: string): string | null {
    const found = this.#db
      .query<{ id: string }, [string]>("SELECT id FROM jobs WHERE run_id = ? AND kind = 'run' AND state = 'held'")
      .get(runId)
    return found?.id ?? null
  }

  /** Resolves when the new state is durable. */
  move(id: string, state: JobState, error: string | null = null): Promise<void> {
    return this.#commit(() => {
      this.#db.query('UPDATE jobs SET state = ?2, error = ?3 WHERE id = ?1').run(id, state, error)
    })
  }

  /** Drops a job unless it was delivered again meanwhile. Resolves when that is durable. */
  drop({ id, lease_id }: Pick<TakenJob, 'id' | 'lease_id'>): Promise<void> {
    return this.#commit(() => {
      this.#db.query('DELETE FROM jobs WHERE id = ? AND lease_id = ?').run(id, lease_id)
    })
  }

  /** Forgets answers that no delivery has asked for again. */
  forgetOld(now: number): void {
    this.#db.query("DELETE FROM jobs WHERE state IN ('done', 'failed') AND taken_at < ?").run(now - KEPT_MS)
  }
}
