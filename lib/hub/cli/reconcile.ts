// `bun hub.ts reconcile`: what an older copy of the database lacks, beside a hub that serves it.

import { eq, or, sql } from 'drizzle-orm'
import { CadreError } from '../../error.ts'
import { line, lines, type Printable } from '../../text/printable.ts'
import type { Reconciliation } from '../../wire/records/older-copies.ts'
import { record } from '../access/audit.ts'
import type { Hub } from '../core/hub.ts'
import { goWithout, reconciliationOf } from '../lineage/reconcile.ts'

export interface ReconcileFlags {
  realm?: string
  without?: string
  json?: boolean
}

export async function reconcile(hub: Hub, { realm, without, json }: ReconcileFlags): Promise<readonly Printable[]> {
  const { id, org_id } = await realmOf(hub, realm)
  if (without !== undefined) {
    await hub.store.write(async tx => {
      const passed = await goWithout(hub, tx, id, without)
      const target = `without ${passed.name} (${passed.id})`
      await record(hub, tx, null, { action: 'daemons/reconcile', target, org_id, realm_id: id })
    })
  }
  const found = await reconciliationOf(hub, hub.store.db, id)
  return json ? lines(JSON.stringify(found, null, 2)) : shown(found)
}

async function realmOf({ store: { db, realms } }: Hub, wanted: string | undefined) {
  const where = wanted === undefined ? sql`true` : or(eq(realms.id, wanted), eq(realms.slug, wanted))
  const found = await db.select().from(realms).where(where).limit(2)
  if (found.length === 1) return found[0]!
  const what =
    wanted === undefined
      ? 'there are several realms'
      : found.length === 0
        ? `no realm ${wanted}`
        : `several realms ${wanted}`
  throw new CadreError(found.length === 0 ? 'not_found' : 'invalid_request', `${what}: name one with --realm`)
}

function shown({ older_copy: copy, held, awaited, passed, lost, came_back }: Reconciliation): readonly Printable[] {
  if (copy === null) return [line`this hub is on no older copy of its database`]
  const at = (time: number) => new Date(time).toISOString()
  const summary =
    copy.ended_at !== null
      ? `the hub trusts its database again since ${at(copy.ended_at)}`
      : copy.lost === null
        ? 'whether anything was lost is not known yet'
        : 'the hub waits for what daemons executed since'
  return [
    line`${copy.kind}: the copy was last written to at ${at(copy.written_at)}, and found at ${at(copy.found_at)}`,
    line`${summary}; ${held} jobs are held`,
    ...awaited.map(({ name, daemon_id, why }) => line`awaited: ${name} (${daemon_id}) ${why}`),
    ...passed.map(({ name, daemon_id }) => line`goes on without ${name} (${daemon_id})`),
    ...lost.map(each => line`lost: ${each}`),
    ...came_back.map(each => line`came back: ${each}`),
  ]
}
