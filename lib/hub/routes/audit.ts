// The routes of the audit log.

import { and, desc, eq, gte, inArray, lt, type SQL } from 'drizzle-orm'
import type { SQLiteColumn } from 'drizzle-orm/sqlite-core'
import { Elysia } from 'elysia'
import { auditLines } from '../../audit/audit-export.ts'
import { lineStream } from '../../http/stream.ts'
import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { listBody, longListOf, page } from '../../wire/page.ts'
import { OrgId } from '../../wire/parts.ts'
import { AUDIT_FILTERS, AUDIT_RANGE } from '../../wire/records/audit.ts'
import { AuditEntry } from '../../wire/records/hub-records.ts'
import type { UserCaller } from '../access/callers.ts'
import { hubKit } from '../access/kit.ts'
import { orgId } from '../core/bodies.ts'
import type { Hub } from '../core/hub.ts'
import { countUpTo } from '../core/list-total.ts'
import { auditSource, sealAudit } from '../webhooks/audit-chain.ts'

const ACCESS = { grant: { orgs: 'admin' }, org: 'admin' } as const

export function audit(hub: Hub) {
  const { store } = hub
  const { audit, orgMembers } = store

  return new Elysia({ name: 'audit', prefix: '/v1/audit' })
    .use(hubKit(hub))
    .post(
      '/list',
      async ({ body, caller }) => {
        const within = await scopeOf(caller, body)
        const where = and(
          within(audit.org_id),
          body.action === undefined ? undefined : eq(audit.action, body.action),
          body.since === undefined ? undefined : gte(audit.at, body.since),
          body.until === undefined ? undefined : lt(audit.at, body.until),
        )
        const { limit, offset } = page(body)
        const rows = await store.db
          .select()
          .from(audit)
          .where(where)
          .orderBy(desc(audit.id))
          .limit(limit)
          .offset(offset)
        const entries = rows.map(({ position: _, ...entry }) => entry)
        return { audit: entries, ...(await countUpTo(store.db, audit, where)) }
      },
      {
        user: ACCESS,
        body: listBody({ org_id: Type.Optional(OrgId), ...AUDIT_FILTERS }),
        data: longListOf('audit', AuditEntry),
        detail: { summary: 'What was done in an org, newest first' },
      },
    )
    .post(
      '/export',
      async ({ body, caller, request, server }) => {
        const within = await scopeOf(caller, body)
        server?.timeout(request, 0)
        await sealAudit(hub)
        return lineStream(auditLines(auditSource(hub, within), body))
      },
      {
        user: ACCESS,
        body: closed({ org_id: Type.Optional(OrgId), ...AUDIT_RANGE }),
        media: 'application/x-ndjson',
        detail: { summary: 'The audit log with its hash chains, as lines of JSON' },
      },
    )

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
