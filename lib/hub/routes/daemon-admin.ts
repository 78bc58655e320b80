// Daemons: the routes for people who manage them.

import { and, eq, inArray, isNull, sql } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import { resource } from '../../http/resource.ts'
import { within } from '../../wire/budget.ts'
import {
  ApproveDaemon,
  GetDaemon,
  ListDaemons,
  ReconcileDaemons,
  RemoveDaemon,
  UpdateDaemon,
} from '../../wire/calls/daemons.ts'
import { page } from '../../wire/page.ts'
import { answer } from '../access/answer.ts'
import { record } from '../access/audit.ts'
import type { UserCaller } from '../access/callers.ts'
import { daemonRecord, findDaemon } from '../access/daemons.ts'
import { hubKit } from '../access/kit.ts'
import { realmsReached } from '../access/token-reach.ts'
import type { Hub } from '../core/hub.ts'
import { countOf } from '../core/list-total.ts'
import { goWithout, reconciliationOf } from '../lineage/reconcile.ts'

/** What a record of a daemon has beside its agents and workspaces, and its labels. */
const DAEMON_BYTES = 4_000

export function daemonAdmin(hub: Hub) {
  const { store } = hub
  const { daemons, realms, tokens } = store

  return resource('daemon-admin', hubKit(hub), [
    answer(ListDaemons, async ({ body, caller }) => {
      if (body.realm_id) await caller.realm(body.realm_id)
      const reached = store.db.select({ id: realms.id }).from(realms).where(realmsReached(store, caller))
      const inRealm = body.realm_id ? eq(daemons.realm_id, body.realm_id) : inArray(daemons.realm_id, reached)
      const where = and(inRealm, isNull(daemons.removed_at))
      const { limit, offset } = page(body)
      // What a daemon offers may be large, so it is not read before it is known to fit.
      const bytesOf = (column: typeof daemons.agents | typeof daemons.standing) =>
        sql`octet_length(coalesce(${column}, ''))`
      const offers =
        sql<number>`${bytesOf(daemons.agents)} + octet_length(${daemons.workspaces}) + ${bytesOf(daemons.standing)}`.mapWith(
          Number,
        )
      const sizes = await store.db
        .select({ offers })
        .from(daemons)
        .where(where)
        .orderBy(daemons.name, daemons.id)
        .limit(limit)
        .offset(offset)
      const rows = await store.db
        .select({ row: daemons, tokenEnd: tokens.expires_at })
        .from(daemons)
        .innerJoin(tokens, eq(tokens.id, daemons.token_id))
        .where(where)
        .orderBy(daemons.name, daemons.id)
        .limit(within(sizes, each => each.offers + DAEMON_BYTES).length)
        .offset(offset)
      return {
        daemons: rows.map(({ row, tokenEnd }) => daemonRecord(hub, row, tokenEnd)),
        total: await countOf(store.db, daemons, where),
      }
    }),
    answer(GetDaemon, async ({ body, caller }) => {
      const row = await visible(caller, body.daemon_id, 'member', store.db)
      const [token] = await store.db.select().from(tokens).where(eq(tokens.id, row.token_id))
      return daemonRecord(hub, row, token?.expires_at)
    }),
    answer(ApproveDaemon, async ({ body: { daemon_id }, caller }) => {
      const row = await caller.write(async tx => {
        const row = await visible(caller, daemon_id, 'operator', tx)
        if (row.removed_at !== null) {
          throw new CadreError('conflict', `daemon ${row.name} was removed: register it again, then approve it`)
        }
        if (row.approved_at !== null) return row
        const approved_at = hub.now()
        await tx.update(daemons).set({ approved_at }).where(eq(daemons.id, daemon_id))
        const [realm] = await tx.select().from(realms).where(eq(realms.id, row.realm_id))
        const entry = { action: 'daemons/approve', target: daemon_id, org_id: realm!.org_id, realm_id: row.realm_id }
        await record(hub, tx, caller, entry)
        return { ...row, approved_at }
      })
      hub.notifier.notify(`daemon ${row.id}`)
      hub.notifier.notify(`realm ${row.realm_id}`)
      return daemonRecord(hub, row)
    }),
    answer(UpdateDaemon, async ({ body: { daemon_id, paused, examine }, caller }) => {
      if (paused === undefined && !examine) {
        throw new CadreError('invalid_request', 'set `paused` or `examine`', {
          details: [{ path: '/paused', message: 'set this, or `examine`' }],
        })
      }
      const row = await caller.write(async tx => {
        const row = await visible(caller, daemon_id, 'operator', tx)
        if (row.removed_at !== null) throw new CadreError('conflict', `daemon ${row.name} was removed`)
        const isPauseNew = paused !== undefined && row.paused !== paused
        const change = { ...(isPauseNew && { paused }), ...(examine && { examine: hub.now() }) }
        if (Object.keys(change).length === 0) return row
        await tx.update(daemons).set(change).where(eq(daemons.id, daemon_id))
        const [realm] = await tx.select().from(realms).where(eq(realms.id, row.realm_id))
        const about = { target: daemon_id, org_id: realm!.org_id, realm_id: row.realm_id }
        if (isPauseNew) {
          await record(hub, tx, caller, { action: paused ? 'daemons/pause' : 'daemons/unpause', ...about })
        }
        if (examine) await record(hub, tx, caller, { action: 'daemons/examine', ...about })
        return { ...row, ...change }
      })
      hub.notifier.notify(`daemon ${row.id}`)
      hub.notifier.notify(`realm ${row.realm_id}`)
      return daemonRecord(hub, row)
    }),
    answer(ReconcileDaemons, async ({ body: { realm_id, without }, caller }) => {
      if (without === undefined) {
        await caller.realm(realm_id)
      } else {
        await caller.write(async tx => {
          const realm = await caller.realm(realm_id, 'admin', tx)
          const { id, name } = await goWithout(hub, tx, realm_id, without)
          const target = `without ${name} (${id})`
          await record(hub, tx, caller, { action: 'daemons/reconcile', target, org_id: realm.org_id, realm_id })
        })
        await hub.lineage.applyConfirmations()
      }
      return reconciliationOf(hub, store.db, realm_id)
    }),
    answer(RemoveDaemon, ({ body: { daemon_id }, caller }) =>
      caller.write(async tx => {
        const row = await visible(caller, daemon_id, 'admin', tx)
        const removed_at = row.removed_at ?? hub.now()
        await tx.update(daemons).set({ removed_at }).where(eq(daemons.id, daemon_id))
        const [realm] = await tx.select().from(realms).where(eq(realms.id, row.realm_id))
        const entry = { action: 'daemons/remove', target: daemon_id, org_id: realm!.org_id, realm_id: row.realm_id }
        await record(hub, tx, caller, entry)
        return daemonRecord(hub, { ...row, removed_at })
      }),
    ),
  ])

  async function visible(caller: UserCaller, id: string, need: 'member' | 'operator' | 'admin', db: Db) {
    const missing = new CadreError('not_found', `no daemon ${id} that you may see`)
    const row = await findDaemon(hub, db, id)
    if (!row) throw missing
    await caller.realm(row.realm_id, need, db).catch(error => {
      throw error instanceof CadreError && error.code === 'not_found' ? missing : error
    })
    return row
  }
}
