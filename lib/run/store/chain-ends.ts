// Table `run_ends`: how top runs ended that chains follow, with a row in `firings` for each of these chains. They are
// written in the transaction of the end, because the run may be resumed or deleted before its firings are looked at.

import type { Database } from 'bun:sqlite'

/** The chains that follow this end of the run `ended`. */
const FOLLOWERS = `FROM runs AS ended JOIN followed ON followed.state = ended.state
    AND followed.after IN (ended.team, substr(ended.team, instr(ended.team, '/') + 1))
  WHERE ended.id = ?1`

const OCCASION = "iif(followed.again, ended.id || '/' || ended.attempt, ended.id)"

export class ChainEnds {
  readonly #any
  readonly #record
  readonly #fire

  constructor(db: Database) {
    this.#any = db.query<unknown, []>(
      "SELECT 1 FROM triggers INDEXED BY triggers_chains WHERE kind = 'chain' AND enabled = 1 AND removed_at IS NULL LIMIT 1",
    )
    // What expressions see, once for all chains.
    this.#record = db.query<unknown, [string]>(
      `INSERT INTO run_ends (run)
       SELECT json_object('run_id', id, 'team', team, 'version', version, 'state', state, 'outputs', json(outputs),
         'error', json(error), 'started_by', json(coalesce(started_by, '{"kind":"unknown"}')))
       FROM runs WHERE id = ?1 AND EXISTS (SELECT 1 ${FOLLOWERS} AND NOT EXISTS (
         SELECT 1 FROM firings WHERE trigger_id = followed.id AND occasion = ${OCCASION}))`,
    )
    this.#fire = db.query<unknown, [string]>(
      `INSERT INTO firings (id, trigger_id, revision, occasion, at, seen_at, state, reason, detail, count, variables, end_id)
       SELECT ${NEW_ID}, followed.id, followed.revision, ${OCCASION}, ended.completed_at, ended.completed_at,
         iif(paused IS NULL, 'waiting', 'skipped'), iif(paused IS NULL, NULL, 'paused'),
         'paused by ' || (paused ->> 'by') || coalesce(': ' || (paused ->> 'reason'), ''), 1, '{}',
         (SELECT max(run_ends.id) FROM run_ends)
       ${FOLLOWERS}
       ON CONFLICT (trigger_id, occasion) DO NOTHING`,
    )
  }

  /** Called after the row of a top run has got its end. */
  record(runId: string): void {
    if (this.#any.get() === null) return
    this.#record.run(runId)
    this.#fire.run(runId)
  }
}

/** A UUID of version 7, as every other id. */
const NEW_ID = `lower(format('%08x-%04x-7%s-%s%s-%s', ended.completed_at >> 16, ended.completed_at & 65535,
  substr(hex(randomblob(2)), 2), substr('89ab', 1 + (random() & 3), 1), substr(hex(randomblob(2)), 2), hex(randomblob(6))))`
