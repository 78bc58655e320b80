#!/usr/bin/env bun

// The hub: tokens, tenancy, packages, dispatch, and the runs of all daemons. Its API is assembled here, with one plugin
// for each resource (lib/hub/routes). The database is in db/hub, and the command line is in lib/hub/cli.

import { Elysia } from 'elysia'
import { health } from './lib/http/health.ts'
import { drainMsOf, listen, stopOnSignal } from './lib/http/listen.ts'
import { openapi } from './lib/http/openapi/openapi-routes.ts'
import { root, STRICT } from './lib/http/root.ts'
import { startChores } from './lib/hub/chores/chores.ts'
import { clocksNotice } from './lib/hub/chores/compare-clocks.ts'
import { noteProcess } from './lib/hub/cli/drain.ts'
import { runCommand } from './lib/hub/cli/program.ts'
import { type HubFlags, hubConfig } from './lib/hub/config.ts'
import type { Hub } from './lib/hub/core/hub.ts'
import { artifacts } from './lib/hub/routes/artifacts.ts'
import { audit } from './lib/hub/routes/audit.ts'
import { auth } from './lib/hub/routes/auth.ts'
import { daemonAdmin } from './lib/hub/routes/daemon-admin.ts'
import { daemonProtocol } from './lib/hub/routes/daemons.ts'
import { dispatch } from './lib/hub/routes/dispatch.ts'
import { hooks } from './lib/hub/routes/hooks.ts'
import { metrics } from './lib/hub/routes/metrics.ts'
import { orgs } from './lib/hub/routes/orgs.ts'
import { realmMembers } from './lib/hub/routes/realm-members.ts'
import { realms } from './lib/hub/routes/realms.ts'
import { reviews } from './lib/hub/routes/reviews.ts'
import { runs } from './lib/hub/routes/runs.ts'
import { scopes } from './lib/hub/routes/scopes.ts'
import { session } from './lib/hub/routes/session.ts'
import { teams } from './lib/hub/routes/teams.ts'
import { triggers } from './lib/hub/routes/triggers.ts'
import { users } from './lib/hub/routes/users.ts'
import { webSession } from './lib/hub/routes/web-session.ts'
import { webhooks } from './lib/hub/routes/webhooks.ts'
import { openHub } from './lib/hub/serve.ts'
import { logConsole, logFaults, logFromEnvironment } from './lib/log/log.ts'
import { build, version } from './lib/program/version.ts'
import { line } from './lib/text/printable.ts'
import { print } from './lib/text/terminal.ts'
import { web } from './lib/web/web.ts'

const description = 'Tokens, tenancy, packages, dispatch, and the runs of all daemons.'

/** The API, which is not served yet. */
export const hubApp = (hub: Hub) =>
  new Elysia(STRICT)
    .use(root(hub.log, { program: 'the hub' }))
    .use(
      health(build, hub.store.problem, async () => {
        const degraded = await hub.store.degraded()
        const { lacking } = hub.keys
        return {
          ...hub.lineage.notice(),
          ...clocksNotice(hub),
          ...(degraded && { degraded: [degraded] }),
          ...(hub.store.polling?.noticed && { wake_ups: 'polled' as const }),
          ...(lacking.length > 0 && { lack_key: [...lacking] }),
          ...(hub.refusedStarts.length > 0 && { refused_starts: hub.refusedStarts.map(({ reason }) => reason) }),
        }
      }),
    )
    .use(metrics(hub))
    .use(session(hub))
    .use(auth(hub))
    .use(users(hub))
    .use(orgs(hub))
    .use(scopes(hub))
    .use(realms(hub))
    .use(realmMembers(hub))
    .use(webhooks(hub))
    .use(dispatch(hub))
    .use(triggers(hub))
    .use(hooks(hub))
    .use(daemonProtocol(hub))
    .use(daemonAdmin(hub))
    .use(teams(hub))
    .use(runs(hub))
    .use(artifacts(hub))
    .use(reviews(hub))
    .use(audit(hub))
    .use(web('hub'))
    .use(webSession(hub))
    .use(openapi({ title: 'cadre hub', version, description }))

/** Serves until SIGTERM or SIGINT. */
export async function serve(flags: HubFlags): Promise<void> {
  const config = hubConfig(flags)
  const log = logFromEnvironment()
  // While PostgreSQL is away, Bun says on the console that it tries again.
  logConsole(log)
  logFaults(log)
  const hub = await openHub(config, log)
  const listening = listen(hubApp(hub), config)
  const chores = startChores(hub, config)
  const drainMs = drainMsOf(config.drainSeconds, log)
  stopOnSignal(
    listening,
    log,
    async () => {
      await chores.stop()
      await hub.close()
    },
    { ms: drainMs },
  )
  noteProcess(config, listening, drainMs, log)
  print(line`hub listening on ${listening.url}`)
}

if (import.meta.main) await runCommand(serve)
