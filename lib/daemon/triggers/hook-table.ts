// Tables `hooks` and `hook_bodies`: the addresses of hooks, and what senders sent, sealed. Every statement about them is
// here.

import type { Database } from 'bun:sqlite'
import { CadreError } from '../../error.ts'
import { newToken } from '../../firing/hook-door.ts'
import type { Sent } from '../../firing/hook-firing.ts'
import type { Json, JsonObject } from '../../json.ts'
import type { Seal } from '../../run/engine.ts'

const NEWLINE = 0x0a

export class HookTable {
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  insert(triggerId: string): void {
    this.#db.query('INSERT INTO hooks (trigger_id, token) VALUES (?, ?)').run(triggerId, newToken())
  }

  token(triggerId: string): string | null {
    return (
      this.#db.query<{ token: string }, [string]>('SELECT token FROM hooks WHERE trigger_id = ?').get(triggerId)
        ?.token ?? null
    )
  }

  triggerOf(token: string): string | null {
    return (
      this.#db.query<{ trigger_id: string }, [string]>('SELECT trigger_id FROM hooks WHERE token = ?').get(token)
        ?.trigger_id ?? null
    )
  }

  /** `deleteAt`: by the believed time; null: it is kept only while the firing waits. */
  keep(seal: Seal, firingId: string, { query, body }: Sent, deleteAt: number | null): void {
    const sealed = seal.close(labelOf(firingId), Buffer.concat([Buffer.from(`${JSON.stringify(query)}\n`), body]))
    this.#db
      .query('INSERT OR REPLACE INTO hook_bodies (firing_id, sealed, delete_at) VALUES (?, ?, ?)')
      .run(firingId, sealed, deleteAt)
  }

  /** What came with a firing; null when it is not kept. Throws `invalid_state` when it cannot be opened. */
  sent(seal: Seal, firingId: string): Sent | null {
    const row = this.#db
      .query<{ sealed: Uint8Array }, [string]>('SELECT sealed FROM hook_bodies WHERE firing_id = ?')
      .get(firingId)
    if (!row) return null
    let opened: Buffer
    try {
      opened = seal.open(labelOf(firingId), row.sealed)
    } catch (cause) {
      throw new CadreError('invalid_state', 'the delivery was sealed with another key of this home', { cause })
    }
    const end = opened.indexOf(NEWLINE)
    const query: Json = JSON.parse(opened.subarray(0, end).toString())
    return { query: query as JsonObject, body: opened.subarray(end + 1) }
  }

  /** The firing waits no more. */
  waited(firingId: string): void {
    this.#db.query('DELETE FROM hook_bodies WHERE firing_id = ? AND delete_at IS NULL').run(firingId)
  }

  /** Deletes those that are old, but for firings that wait. Returns how many. */
  deleteOld(before: number): number {
    return this.#db
      .query(
        `DELETE FROM hook_bodies WHERE (delete_at IS NULL OR delete_at < ?)
           AND NOT EXISTS (SELECT 1 FROM firings WHERE firings.id = firing_id AND state = 'waiting')`,
      )
      .run(before).changes
  }
}

const labelOf = (firingId: string): string => `hook_body:${firingId}`
