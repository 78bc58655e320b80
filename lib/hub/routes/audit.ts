// The routes of the audit log.

import { and, desc, eq, gte, inArray, lt } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { Type } from '../../type.ts'
import { AuditEntry } from '../../wire/hub-records.ts'
import { listBody, listOf, page } from '../../wire/page.ts'
import { Moment, Text } from '../../wire/parts.ts'
import { OrgId, orgId } from '../bodies.ts'
import type { UserCaller } from '../callers.ts'
import type { Hub } from '../hub.ts'
import { hubKit } from '../kit.ts'
import { countOf } from '../list-total.ts'

export function audit(hub: Hub) {
  const { store } = hub
  const { audit, orgMembers } = store

  return new Elysia({ name: 'audit', prefix: '/v1/audit' }).use(hubKit(hub)).post(
    '/list',
    async ({ body, caller }) => {
      const org = body.org_id === undefined ? undefined : await caller.org(orgId(body.org_id))
      const where = and(
        org ? eq(audit.org_id, org.id) : administered(caller),
        body.action === undefined ? undefined : eq(audit.action, body.action),
        body.since === undefined ? undefined : gte(audit.at, body.since),
        body.until === undefined ? undefined : lt(audit.at, body.until),
      )
      const { limit, offset } = page(body)
      const rows = await store.db.select().from(audit).where(where).orderBy(desc(audit.id)).limit(limit).offset(offset)
      return { audit: rows, total: await countOf(store.db, audit, where) }
    },
    {
      user: { grant: { orgs: 'admin' }, org: 'admin' },
      body: listBody({
        org_id: Type.Optional(OrgId),
        action: Type.Optional(Text(100)),
        since: Type.Optional(Moment),
        until: Type.Optional(Moment),
      }),
      data: listOf('audit', AuditEntry),
      detail: { summary: 'What was done in an org, newest first' },
    },
  )

  /**
   * The condition for calls that name no org: the orgs that the grant reaches and the caller administers. Site admins
   * also get the entries that belong to no org.
   */
  function administered(caller: UserCaller) {
    const { orgs = [] } = caller.token.grant.domains
    const reached = orgs === '*' ? undefined : inArray(audit.org_id, orgs)
    if (caller.user.siteAdmin) return reached
    const led = store.db
      .select({ id: orgMembers.org_id })
      .from(orgMembers)
      .where(and(eq(orgMembers.user_id, caller.user.id), inArray(orgMembers.role, ['owner', 'admin'])))
    return and(reached, inArray(audit.org_id, led))
  }
}
