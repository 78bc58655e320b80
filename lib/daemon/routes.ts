// The daemon's API: every route, declared by resource.

import { type Api, createApi } from '../http/api.ts'
import { health } from '../http/listen.ts'
import { createGuard, type Guard } from './access.ts'
import { createCredentials } from './credentials.ts'
import type { Daemon } from './daemon.ts'
import { localToken } from './home.ts'
import { agentRoutes } from './routes/agents.ts'
import { artifactRoutes } from './routes/artifacts.ts'
import { metricRoutes } from './routes/metrics.ts'
import { reviewRoutes } from './routes/reviews.ts'
import { runRoutes } from './routes/runs.ts'
import { settingRoutes } from './routes/settings.ts'
import { streamRoutes } from './routes/stream.ts'
import { teamRoutes } from './routes/teams.ts'
import { workspaceRoutes } from './routes/workspaces.ts'
import { UsedTokens } from './used-tokens.ts'
import { version } from './version.ts'

/** What a group of routes is given. */
export interface Routing {
  api: Api
  daemon: Daemon
  guard: Guard
}

export function daemonApi(daemon: Daemon, options: { strict: boolean }): Api {
  const api = createApi({ log: daemon.log })
  const guard = createGuard({
    localToken: localToken(daemon.home),
    strict: options.strict,
    credentials: createCredentials(() => daemon.remote, new UsedTokens(daemon.db)),
  })
  const routing: Routing = { api, daemon, guard }
  health(api, () => ({ version, ...daemon.engine.load }))
  runRoutes(routing)
  streamRoutes(routing)
  artifactRoutes(routing)
  reviewRoutes(routing)
  workspaceRoutes(routing)
  teamRoutes(routing)
  agentRoutes(routing)
  settingRoutes(routing)
  metricRoutes(routing)
  return api
}
