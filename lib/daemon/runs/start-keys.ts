// Table `start_keys`: a caller that repeats a start with its idempotency key gets the run of the first one.

import type { Database } from 'bun:sqlite'
import type { RunRecord } from '../../run/engine.ts'
import { mustBeSame, type Once } from '../../wire/once.ts'

/** `also` writes the key in the transaction that starts the run with this id. */
type Start = (also: (runId: string) => void) => Promise<RunRecord>

export class StartKeys {
  readonly #db: Database
  /** The starts that have not answered yet, by caller and key. */
  readonly #going = new Map<string, { mark: string; run: Promise<RunRecord> }>()

  constructor(db: Database) {
    this.#db = db
  }

  /** Throws `conflict` when the caller gave the key with another request. `find` returns a run that was started before. */
  start(caller: string, once: Once, start: Start, find: (runId: string) => Promise<RunRecord>): Promise<RunRecord> {
    const key = new Bun.CryptoHasher('sha256').update(once.key).digest('hex')
    const known = this.#known(caller, key)
    if (known) {
      mustBeSame(once, known.mark)
      return find(known.run_id)
    }
    const place = `${caller}\n${key}`
    const going = this.#going.get(place)
    if (going) {
      mustBeSame(once, going.mark)
      return going.run
    }
    const run = start(runId => this.#add(caller, key, once.mark, runId)).finally(() => this.#going.delete(place))
    this.#going.set(place, { mark: once.mark, run })
    return run
  }

  #known(caller: string, key: string) {
    return this.#db
      .query<{ mark: string; run_id: string }, [string, string]>(
        'SELECT mark, run_id FROM start_keys WHERE caller = ? AND key = ?',
      )
      .get(caller, key)
  }

  #add(caller: string, key: string, mark: string, runId: string): void {
    this.#db
      .query('INSERT INTO start_keys (caller, key, mark, run_id) VALUES (?, ?, ?, ?)')
      .run(caller, key, mark, runId)
  }
}
