// The audit log of a hub.

import { closed } from '../../schema/schema.ts'
import { Type } from '../../schema/type.ts'
import { atHub } from '../call.ts'
import { longListOf } from '../page.ts'
import { OrgId } from '../parts.ts'
import { AuditEntry } from '../records/hub-records.ts'
import { ExportHomeAudit, ListHomeAudit } from './home-audit.ts'

const ACCESS = { grant: { orgs: 'admin' }, org: 'admin' } as const

export const ListAudit = atHub(ListHomeAudit, {
  hub: { user: ACCESS },
  body: closed({ ...ListHomeAudit.body.properties, org_id: Type.Optional(OrgId) }),
  data: longListOf('audit', AuditEntry),
})
export const ExportAudit = atHub(ExportHomeAudit, {
  hub: { user: ACCESS },
  body: closed({ ...ExportHomeAudit.body.properties, org_id: Type.Optional(OrgId) }),
})
