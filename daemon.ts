// The daemon: runs teams, and answers for them over HTTP. Its API is put together in lib/daemon/routes/app.ts, the
// command line is in lib/daemon/commands, the run executor in lib/run.

import { runCommand } from './lib/daemon/commands/program.ts'
import type { ServeFlags } from './lib/daemon/serve.ts'

/** Serves until SIGTERM or SIGINT. Elysia and the routes are loaded here: `run` and other commands start without them. */
async function serve(flags: ServeFlags): Promise<void> {
  const { serveConfig, startDaemon } = await import('./lib/daemon/serve.ts')
  const { daemonApp } = await import('./lib/daemon/routes/app.ts')
  const { listen } = await import('./lib/http/listen.ts')

  const config = serveConfig(flags, process.env)
  await startDaemon(config, daemon => listen(daemonApp(daemon, config), config))
}

await runCommand(serve)
