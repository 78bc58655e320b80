// `bun daemon.ts serve`: the daemon behind HTTP, until SIGTERM or SIGINT.

import { CadreError, messageOf } from '../error.ts'
import { listen, stopOnSignal } from '../http/listen.ts'
import { type Log, logFromEnvironment } from '../log.ts'
import { strictFrom } from './access.ts'
import { Daemon } from './daemon.ts'
import { linkHub } from './enrol.ts'
import { homeFolder } from './home.ts'
import { bytesToKeep, daysToKeep, keepRuns } from './retention.ts'
import { daemonApi } from './routes.ts'

export interface ServeOptions {
  home?: string
  host?: string
  port?: string
}

const DEFAULT_PORT = '7401'
const PATIENCE_MS = 3_000

export async function serve(options: ServeOptions): Promise<void> {
  const { env } = process
  const port = portOf(options.port ?? (env.CADRE_DAEMON_PORT || DEFAULT_PORT))
  const strict = strictFrom(env.CADRE_LOCAL_AUTH)
  const limits = { days: daysToKeep(env.CADRE_KEEP_RUNS_DAYS), bytes: bytesToKeep(env.CADRE_KEEP_RUNS_GB) }
  const log = logFromEnvironment()
  const daemon = await Daemon.open({ home: homeFolder(options.home), log })
  try {
    for (const { file, reason } of daemon.catalogue.skipped) log.warn('agent skipped', { file, reason })
    daemon.tellUnknownSettings()
    await daemon.recover()
    await withinPatience(linkHub(daemon, env), log)
    const stopSweeping = keepRuns(daemon, limits)
    const host = options.host ?? (env.CADRE_DAEMON_HOST || '127.0.0.1')
    const listening = listen(daemonApi(daemon, { strict }), { host, port })
    // The lock first: who reads the line may call a command, which looks there.
    daemon.lock.announce(listening.url)
    daemon.address = listening.url
    process.on('SIGHUP', () => void daemon.reloadSettings())
    stopOnSignal(listening, log, () => {
      stopSweeping()
      return daemon.close()
    })
    process.stdout.write(`daemon listening on ${listening.url}\n`)
  } catch (error) {
    await daemon.abandon()
    throw error
  }
}

/** A hub that is slow to answer does not hold up the local API; one that refuses this daemon ends the start. */
async function withinPatience(linking: Promise<unknown>, log: Log): Promise<void> {
  const { promise: patience, resolve } = Promise.withResolvers<void>()
  let late = false
  const timer = setTimeout(() => {
    late = true
    resolve()
  }, PATIENCE_MS)
  linking.catch(error => {
    if (late) log.error('the hub refused this daemon', { error: messageOf(error) })
  })
  try {
    await Promise.race([linking, patience])
  } finally {
    clearTimeout(timer)
  }
}

function portOf(text: string): number {
  const port = Number(text)
  if (/^\d+$/.test(text) && port <= 65_535) return port
  throw new CadreError('invalid_request', `--port: expected a number from 0 to 65535, got ${text}`)
}
