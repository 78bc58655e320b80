// A daemon in this process that serves like `cadre serve`, for tests of which neither its process nor its death is the
// point: to start a process costs ten times as much. What has to be killed is started by `spawnDaemon`.

import { openDaemon, serveConfig } from '../../lib/daemon/cli/machine/serve.ts'
import { daemonApp } from '../../lib/daemon/routes/app.ts'
import { listen } from '../../lib/http/listen.ts'
import { createLog } from '../../lib/log/log.ts'
import { callsOf, type RunningDaemon, type SpawnOptions } from './daemon.ts'
import { folder } from './folder.ts'
import { closeAtEnd, watchHome } from './left.ts'
import { environmentAt } from './program.ts'

/** What tests do with a daemon, wherever it runs. */
export interface ServedDaemon extends Omit<RunningDaemon, 'pid' | 'exited' | 'kill' | 'stop'> {
  stop(): Promise<unknown>
}

export async function serveDaemon({ home = folder(), env }: Omit<SpawnOptions, 'through'> = {}): Promise<ServedDaemon> {
  watchHome(home)
  const output = { stdout: '', stderr: '' }
  const log = createLog({ format: 'json', write: text => (output.stderr += `${text}\n`) })
  const config = serveConfig({ home, port: '0' }, { ...environmentAt(home), CADRE_HOME: home, ...env })
  const { listening, close } = await openDaemon(config, log, daemon => listen(daemonApp(daemon, config), config))
  const end = async () => {
    listening.leave()
    await listening.stop()
    await close()
  }
  const forget = closeAtEnd(end)
  return {
    ...callsOf(home, listening.url),
    output,
    async stop() {
      forget()
      await end()
    },
  }
}
