// audit/*: what was done on this home.

import { auditLines } from '../../audit/audit-export.ts'
import { resource } from '../../http/resource.ts'
import { lineStream } from '../../http/stream.ts'
import { ExportHomeAudit, ListHomeAudit } from '../../wire/calls/home-audit.ts'
import { page } from '../../wire/page.ts'
import { answer } from '../access/answer.ts'
import type { DaemonKit } from '../access/kit.ts'
import type { Daemon } from '../runs/daemon.ts'

export const audit = (daemon: Daemon, kit: DaemonKit) =>
  resource('audit', kit, [
    answer(ListHomeAudit, ({ body }) => daemon.audit.list(body, page(body))),
    answer(ExportHomeAudit, ({ body, request, server }) => {
      server?.timeout(request, 0)
      daemon.audit.sealAll()
      return lineStream(auditLines(daemon.audit.source, body))
    }),
  ])
