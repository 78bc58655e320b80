// audit/*: what was done on this home. Only its owner reads it, by the local token, and never from another machine.

import { Elysia } from 'elysia'
import { auditLines } from '../../audit/audit-export.ts'
import { lineStream } from '../../http/stream.ts'
import { page } from '../../wire/page.ts'
import { HOME_AUDIT } from '../../wire/records/audit.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'

const OWNER = { local: 'token', remote: null } as const

export const audit = (daemon: Daemon, kit: DaemonKit) =>
  new Elysia({ name: 'audit', prefix: '/v1/audit' })
    .use(kit)
    .post('/list', ({ body }) => daemon.audit.list(body, page(body)), {
      access: OWNER,
      ...HOME_AUDIT.list,
      detail: { summary: 'What was done on this home, newest first' },
    })
    .post(
      '/export',
      ({ body, request, server }) => {
        server?.timeout(request, 0)
        daemon.audit.sealAll()
        return lineStream(auditLines(daemon.audit.source, body))
      },
      {
        access: OWNER,
        ...HOME_AUDIT.export,
        media: 'application/x-ndjson',
        detail: { summary: 'The audit log with its hash chain, as lines of JSON' },
      },
    )
