// The routes of the audit log.

import { and, desc, eq, gte, inArray, lt, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { auditLines } from '../../audit/audit-export.ts'
import { resource } from '../../http/resource.ts'
import { lineStream } from '../../http/stream.ts'
import { ExportAudit, ListAudit } from '../../wire/calls/hub-audit.ts'
import { page } from '../../wire/page.ts'
import { answer } from '../access/answer.ts'
import type { UserCaller } from '../access/callers.ts'
import { hubKit } from '../access/kit.ts'
import { orgId } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { countUpTo } from '../core/list-total.ts'
import { auditSource, sealAudit } from '../webhooks/audit-chain.ts'

export function audit(hub: Hub) {
  const { store } = hub
  const { audit, orgMembers } = store

  return resource('audit', hubKit(hub), [
    answer(ListAudit, async ({ body, caller }) => {
      const within = await scopeOf(caller, body)
      const where = and(
        within(audit.org_id),
        body.action === undefined ? undefined : eq(audit.action, body.action),
        body.since === undefined ? undefined : gte(audit.at, body.since),
        body.until === undefined ? undefined : lt(audit.at, body.until),
      )
      const { limit, offset } = page(body)
      const rows = await store.db.select().from(audit).where(where).orderBy(desc(audit.id)).limit(limit).offset(offset)
      const entries = rows.map(({ position: _, ...entry }) => entry)
      return { audit: entries, ...(await countUpTo(store.db, audit, where)) }
    }),
    answer(ExportAudit, async ({ body, caller, request, server }) => {
      const within = await scopeOf(caller, body)
      server?.timeout(request, 0)
      await sealAudit(hub)
      return lineStream(auditLines(auditSource(hub, within), body))
    }),
  ])

  async function scopeOf(caller: UserCaller, body: { org_id?: string | number }) {
    if (body.org_id === undefined) return (column: SQLiteColumn) => administered(caller, column)
    const org = await caller.org(orgId(body.org_id))
    return (column: SQLiteColumn) => eq(column, org.id)
  }

  /**
   * The condition for calls that name no org: the orgs that the grant reaches and the caller administers. Site admins
   * also get the entries that belong to no org.
   */
  function administered(caller: UserCaller, column: SQLiteColumn): SQL | undefined {
    const { orgs = [] } = caller.token.grant.domains
    const reached = orgs === '*' ? undefined : inArray(column, orgs)
    if (caller.user.siteAdmin) return reached
    const led = store.db
      .select({ id: orgMembers.org_id })
      .from(orgMembers)
      .where(and(eq(orgMembers.user_id, caller.user.id), inArray(orgMembers.role, ['owner', 'admin'])))
    return and(reached, inArray(column, led))
  }
}
