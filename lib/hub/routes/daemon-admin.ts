// Daemons as people see them.

import { and, eq, inArray, isNull } from 'drizzle-orm'
import type { Db } from '../../../db/hub/store.ts'
import { CadreError } from '../../error.ts'
import type { Api } from '../../http/api.ts'
import { closed } from '../../schema.ts'
import { Type } from '../../type.ts'
import { record } from '../audit.ts'
import { listBody, page, Uuid } from '../bodies.ts'
import type { Callers, UserCaller } from '../callers.ts'
import { countOf } from '../counting.ts'
import { daemonRecord, findDaemon } from '../daemons.ts'
import type { Hub } from '../hub.ts'
import { realmsReached } from '../reach.ts'
import { Daemon, listOf } from '../records.ts'

const OneDaemon = closed({ daemon_id: Uuid })

export function daemonAdminRoutes(api: Api, hub: Hub, { user }: Callers): void {
  const { store } = hub
  const { daemons, realms } = store

  api.post(
    '/v1/daemons/list',
    {
      access: user({ grant: { daemons: 'read' }, realm: 'member' }),
      body: listBody({ realm_id: Type.Optional(Uuid) }),
      data: listOf('daemons', Daemon),
      summary: 'Daemons, with their status',
    },
    async ({ body, caller }) => {
      if (body.realm_id) await caller.realm(body.realm_id)
      const reached = store.db.select({ id: realms.id }).from(realms).where(realmsReached(store, caller))
      const inRealm = body.realm_id ? eq(daemons.realm_id, body.realm_id) : inArray(daemons.realm_id, reached)
      const where = and(inRealm, isNull(daemons.removed_at))
      const { limit, offset } = page(body)
      const rows = await store.db
        .select()
        .from(daemons)
        .where(where)
        .orderBy(daemons.name, daemons.id)
        .limit(limit)
        .offset(offset)
      return { daemons: rows.map(row => daemonRecord(hub, row)), total: await countOf(store.db, daemons, where) }
    },
  )

  api.post(
    '/v1/daemons/get',
    {
      access: user({ grant: { daemons: 'read' }, realm: 'member' }),
      body: OneDaemon,
      data: Daemon,
      summary: 'A daemon',
    },
    async ({ body, caller }) => daemonRecord(hub, await visible(caller, body.daemon_id, 'member', store.db)),
  )

  api.post(
    '/v1/daemons/remove',
    {
      access: user({ grant: { daemons: 'admin' }, realm: 'admin' }),
      body: OneDaemon,
      data: Daemon,
      summary: 'Remove a daemon; what runs there has crashed for the hub',
    },
    ({ body: { daemon_id }, caller }) =>
      store.write(async tx => {
        const row = await visible(caller, daemon_id, 'admin', tx)
        const removed_at = row.removed_at ?? hub.now()
        await tx.update(daemons).set({ removed_at }).where(eq(daemons.id, daemon_id))
        const [realm] = await tx.select().from(realms).where(eq(realms.id, row.realm_id))
        const deed = { action: 'daemons/remove', target: daemon_id, org_id: realm!.org_id, realm_id: row.realm_id }
        await record(hub, tx, caller, deed)
        return daemonRecord(hub, { ...row, removed_at })
      }),
  )

  async function visible(caller: UserCaller, id: string, need: 'member' | 'admin', db: Db) {
    const missing = new CadreError('not_found', `no daemon ${id} that you may see`)
    const row = await findDaemon(hub, db, id)
    if (!row) throw missing
    await caller.realm(row.realm_id, need, db).catch(error => {
      throw error instanceof CadreError && error.code === 'not_found' ? missing : error
    })
    return row
  }
}
