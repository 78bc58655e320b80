// The daemon: executes teams and serves an API for them over HTTP. The API is assembled in lib/daemon/routes/app.ts,
// the command line is in lib/daemon/cli, and the run executor is in lib/run.

import type { ServeFlags } from './lib/daemon/cli/machine/serve.ts'
import { keepBytecode } from './lib/program/bytecode.ts'

/**
 * Serves until SIGTERM or SIGINT. Elysia and the routes are loaded here, because `run` and other commands need neither.
 */
async function serve(flags: ServeFlags): Promise<void> {
  const [{ serveConfig, startDaemon }, { daemonApp }, { listen }] = await Promise.all([
    import('./lib/daemon/cli/machine/serve.ts'),
    import('./lib/daemon/routes/app.ts'),
    import('./lib/http/listen.ts'),
  ])
  const config = serveConfig(flags, process.env)
  await startDaemon(config, daemon => listen(daemonApp(daemon, config), { ...config, asLocalhost: true }))
}

keepBytecode()
const { runCommand } = await import('./lib/daemon/cli/program.ts')
await runCommand(serve, async (program, act) => {
  const { addHubCommands } = await import('./lib/daemon/cli/hub/program.ts')
  await addHubCommands(program, act)
})
