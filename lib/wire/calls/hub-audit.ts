// The audit log of a hub.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { call } from '../call.ts'
import { listBody, longListOf } from '../page.ts'
import { OrgId } from '../parts.ts'
import { AUDIT_FILTERS, AUDIT_RANGE } from '../records/audit.ts'
import { AuditEntry } from '../records/hub-records.ts'

const ACCESS = { grant: { orgs: 'admin' }, org: 'admin' } as const

export const ListAudit = call('/v1/audit/list', {
  summary: 'What was done in an org, newest first',
  hub: { user: ACCESS },
  body: listBody({ org_id: Type.Optional(OrgId), ...AUDIT_FILTERS }),
  data: longListOf('audit', AuditEntry),
})
export const ExportAudit = call('/v1/audit/export', {
  summary: 'The audit log with its hash chains, as lines of JSON',
  hub: { user: ACCESS },
  body: closed({ org_id: Type.Optional(OrgId), ...AUDIT_RANGE }),
  media: 'application/x-ndjson',
})
