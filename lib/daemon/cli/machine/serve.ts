// `bun daemon.ts serve`: its configuration, and the life of the daemon from opening its home to SIGTERM or SIGINT.

import { CadreError, messageOf } from '../../../error.ts'
import { hookHostsFrom } from '../../../http/hook-hosts.ts'
import { drainMsOf, drainSecondsIn, type Listening, stopOnSignal } from '../../../http/listen.ts'
import { type Log, logFaults, logFromEnvironment, type ProcessLog } from '../../../log/log.ts'
import { line } from '../../../text/printable.ts'
import { print } from '../../../text/terminal.ts'
import { strictFrom } from '../../access/access.ts'
import { Chores } from '../../home/chores/chores.ts'
import { bytesToKeep, daysIn } from '../../home/chores/retention.ts'
import { homeFolder } from '../../home/home.ts'
import { linkHub } from '../../link/link-daemon.ts'
import { Daemon } from '../../runs/daemon.ts'
import { Drain } from '../../runs/drain.ts'

export interface ServeFlags {
  home?: string
  host?: string
  port?: string
}

type Environment = Record<string, string | undefined>

type ServeConfig = ReturnType<typeof serveConfig>

const DEFAULT_PORT = '7401'
const PATIENCE_MS = 3_000
/** The longest time of a drain that says none. */
const DRAIN_MS = 10 * 60_000

/** The configuration: flags first, then the environment, then the defaults. */
export function serveConfig(flags: ServeFlags, env: Environment) {
  return {
    home: homeFolder(flags.home),
    host: flags.host ?? (env.CADRE_DAEMON_HOST || '127.0.0.1'),
    port: portOf(flags.port ?? (env.CADRE_DAEMON_PORT || DEFAULT_PORT)),
    /** Whether callers on this machine need the local token for every call. */
    strict: strictFrom(env.CADRE_LOCAL_AUTH),
    /** The names by which senders may call hooks, besides those of this machine. */
    hookHosts: hookHostsFrom(env.CADRE_HOOK_HOSTS),
    drainSeconds: drainSecondsIn(env),
    keep: {
      days: daysIn('CADRE_KEEP_RUNS_DAYS', env.CADRE_KEEP_RUNS_DAYS, 30),
      auditDays: daysIn('CADRE_KEEP_AUDIT_DAYS', env.CADRE_KEEP_AUDIT_DAYS, 400),
      bytes: bytesToKeep(env.CADRE_KEEP_RUNS_GB),
    },
    env,
  }
}

/** A daemon that serves its home. */
export interface Serving {
  daemon: Daemon
  listening: Listening
  /** Ends everything but `listening`, which ends first. */
  close(): Promise<void>
}

/**
 * Opens the home, continues interrupted runs, links to the hub, and listens with `serve`. Releases the home if that
 * fails.
 */
export async function openDaemon(
  config: ServeConfig,
  log: ProcessLog,
  serve: (daemon: Daemon) => Listening,
): Promise<Serving> {
  const daemon = await Daemon.open({ home: config.home, log, env: config.env })
  const chores = new Chores(daemon, config.keep)
  try {
    chores.start('opened')
    await daemon.openRuns.recover()
    await withinPatience(linkHub(daemon, config.env), log)
    chores.start('ready')
    const listening = serve(daemon)
    // The address goes into the lock before the line is printed: whoever reads the line may call a command, which reads
    // the lock.
    daemon.lock.announce(listening.url)
    daemon.address = listening.url
    const close = () => {
      chores.stop()
      return daemon.close()
    }
    return { daemon, listening, close }
  } catch (error) {
    chores.stop()
    await daemon.abandon()
    throw error
  }
}

/** Opens the daemon and serves it until SIGTERM or SIGINT. */
export async function startDaemon(config: ServeConfig, serve: (daemon: Daemon) => Listening): Promise<void> {
  const log = logFromEnvironment()
  logFaults(log)
  const { daemon, listening, close } = await openDaemon(config, log, serve)
  process.on('SIGHUP', () => void daemon.reloadSettings())
  let drain: Drain | null = null
  const start = (ms: number) => {
    drain = new Drain(daemon.engine, ms)
    return drain
  }
  const stop = stopOnSignal(listening, log, close, { ms: drainMsOf(config.drainSeconds, log), start })
  daemon.drain = mostMs => {
    if (drain && mostMs !== null) drain.within(mostMs)
    // The drain begins before this returns.
    if (!drain) void stop({ by: 'drain' }, mostMs ?? DRAIN_MS)
    return drain!
  }
  print(line`daemon listening on ${listening.url}`)
}

/**
 * Waits for the hub only for a short time, so that a slow hub does not delay the local API. A hub that refuses this
 * daemon ends the start.
 */
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
