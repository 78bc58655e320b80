// Every route of the hub.

import type { Api } from '../http/api.ts'
import { createCallers } from './callers.ts'
import type { Hub } from './hub.ts'
import { auditRoutes } from './routes/audit.ts'
import { authRoutes } from './routes/auth.ts'
import { daemonAdminRoutes } from './routes/daemon-admin.ts'
import { daemonProtocolRoutes } from './routes/daemons.ts'
import { dispatchRoutes } from './routes/dispatch.ts'
import { orgRoutes } from './routes/orgs.ts'
import { realmMemberRoutes } from './routes/realm-members.ts'
import { realmRoutes } from './routes/realms.ts'
import { reviewRoutes } from './routes/reviews.ts'
import { runRoutes } from './routes/runs.ts'
import { scopeRoutes } from './routes/scopes.ts'
import { sessionRoutes } from './routes/session.ts'
import { teamRoutes } from './routes/teams.ts'
import { userRoutes } from './routes/users.ts'

const RESOURCES = [
  sessionRoutes,
  authRoutes,
  userRoutes,
  orgRoutes,
  scopeRoutes,
  realmRoutes,
  realmMemberRoutes,
  dispatchRoutes,
  daemonProtocolRoutes,
  daemonAdminRoutes,
  teamRoutes,
  runRoutes,
  reviewRoutes,
  auditRoutes,
]

export function hubRoutes(api: Api, hub: Hub): void {
  const callers = createCallers(hub)
  for (const resource of RESOURCES) resource(api, hub, callers)
}
