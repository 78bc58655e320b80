// The routes of the daemon, as it declares them.

import { daemonApp } from '../../lib/daemon/routes/app.ts'
import { Daemon } from '../../lib/daemon/runs/daemon.ts'
import { routesOf } from '../../lib/http/routes.ts'
import { createLog } from '../../lib/log/log.ts'
import { folder } from './folder.ts'

/**
 * Routes that say nothing of runs or people: whether the daemon is there and can work, what its API is, and the files of
 * the dashboard, to which links of other sites lead. Those files are the same for everybody and cannot be framed.
 */
const OPEN = ['/health', '/ready', '/openapi', '/openapi/json', '/', '/web/:file']

/** All routes that ask who calls. */
export async function guardedRoutes() {
  const idle = await Daemon.open({ home: folder(), log: createLog({ write: () => {} }), env: {} })
  const routes = routesOf(daemonApp(idle, { strict: false })).filter(({ path }) => !OPEN.includes(path))
  await idle.close()
  return routes
}
