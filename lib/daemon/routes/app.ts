// The daemon's API, with one plugin for each resource. It is loaded when a process begins to serve, because most
// commands do not need it.

import { Elysia } from 'elysia'
import { damageOf } from '../../../db/open.ts'
import { health } from '../../http/health.ts'
import { openapi } from '../../http/openapi/openapi-routes.ts'
import { root, STRICT } from '../../http/root.ts'
import { build, version } from '../../program/version.ts'
import { web } from '../../web/web.ts'
import { createAccess } from '../access/access.ts'
import { daemonKit } from '../access/kit.ts'
import { createCredentials } from '../access/remote-credentials.ts'
import { UsedTokens } from '../access/used-tokens.ts'
import { databaseFile, localToken } from '../home/home.ts'
import type { Daemon } from '../runs/daemon.ts'
import { agents } from './agents.ts'
import { artifacts } from './artifacts.ts'
import { audit } from './audit.ts'
import { hooks } from './hooks.ts'
import { log } from './log.ts'
import { metrics } from './metrics.ts'
import { ownProcess } from './process.ts'
import { reviews } from './reviews.ts'
import { runs } from './runs.ts'
import { schema } from './schema.ts'
import { settings } from './settings.ts'
import { stream } from './stream.ts'
import { teams } from './teams.ts'
import { triggers } from './triggers.ts'
import { workspaces } from './workspaces.ts'

const ABOUT =
  'The API of a daemon. On its own machine most calls need no credential; callers from elsewhere send a token of the hub.'

/** Anybody may ask for the health, so it says nothing of folders and machines. */
function copyForHealth({ copied }: Daemon): { at: number; runs: number } | null {
  return copied && { at: copied.at, runs: copied.runs }
}

export function daemonApp(
  daemon: Daemon,
  { strict, hookHosts = [] }: { strict: boolean; hookHosts?: readonly string[] },
) {
  const kit = daemonKit(
    createAccess({
      localToken: localToken(daemon.home),
      strict,
      credentials: createCredentials(() => daemon.remote, new UsedTokens(daemon.db, () => daemon.ages.believed)),
    }),
  )
  return new Elysia(STRICT)
    .use(root(daemon.log, { program: 'the daemon', damageOf: thrown => damageOf(thrown, databaseFile(daemon.home)) }))
    .use(
      health(
        () => ({ ...build(), ...daemon.engine.load, stalled: daemon.halted, copied: copyForHealth(daemon) }),
        () => daemon.trouble(),
      ),
    )
    .use(runs(daemon, kit))
    .use(stream(daemon, kit))
    .use(log(daemon, kit))
    .use(artifacts(daemon, kit))
    .use(reviews(daemon, kit))
    .use(triggers(daemon, kit))
    .use(hooks(daemon, hookHosts))
    .use(workspaces(daemon, kit))
    .use(teams(daemon, kit))
    .use(agents(daemon, kit))
    .use(settings(daemon, kit))
    .use(audit(daemon, kit))
    .use(ownProcess(daemon, kit))
    .use(metrics(daemon, kit))
    .use(schema(daemon, kit))
    .use(web())
    .use(openapi({ title: 'cadre daemon', version, description: ABOUT }))
}
