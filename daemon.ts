// The daemon: executes teams and serves an API for them over HTTP. The API is assembled in lib/daemon/routes/app.ts,
// the command line is in lib/daemon/commands, and the run executor is in lib/run.

import { addHubCommands } from './lib/daemon/commands/hub/program.ts'
import { runCommand } from './lib/daemon/commands/program.ts'
import type { ServeFlags } from './lib/daemon/serve.ts'

/**
 * Serves until SIGTERM or SIGINT. Elysia and the routes are loaded here, because `run` and other commands need neither.
 */
async function serve(flags: ServeFlags): Promise<void> {
  const { serveConfig, startDaemon } = await import('./lib/daemon/serve.ts')
  const { daemonApp } = await import('./lib/daemon/routes/app.ts')
  const { listen } = await import('./lib/http/listen.ts')

  const config = serveConfig(flags, process.env)
  await startDaemon(config, daemon => listen(daemonApp(daemon, config), config))
}

await runCommand(serve, addHubCommands)
