// The audit log of a home. Only its owner reads it, by the local token, and never from another machine.

import { closed } from '../../schema/schema.ts'
import { OWNER } from '../access.ts'
import { call } from '../call.ts'
import { listBody, longListOf } from '../page.ts'
import { AUDIT_FILTERS, AUDIT_RANGE, HomeAuditEntry } from '../records/audit.ts'

export const ListHomeAudit = call('/v1/audit/list', {
  summary: 'What was done on this home, newest first',
  daemon: OWNER,
  body: listBody(AUDIT_FILTERS),
  data: longListOf('audit', HomeAuditEntry),
})
export const ExportHomeAudit = call('/v1/audit/export', {
  summary: 'The audit log with its hash chain, as lines of JSON',
  daemon: OWNER,
  body: closed(AUDIT_RANGE),
  media: 'application/x-ndjson',
})
