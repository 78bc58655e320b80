// `drain`: stops the hub that serves a database on this machine, as SIGTERM does, and waits for its end.

import { join } from 'node:path'
import { isPostgres } from '../../../db/hub/store.ts'
import { formatDuration } from '../../duration.ts'
import { CadreError, messageOf } from '../../error.ts'
import { type Listening, STOP_MS } from '../../http/listen.ts'
import type { Log } from '../../log/log.ts'
import { isNamed, type ServerProcess, serversOf, stateOf, writePidFile } from '../../program/pid-file.ts'
import { isAlive } from '../../program/process.ts'
import { line } from '../../text/printable.ts'
import { printMessage } from '../../text/terminal.ts'
import type { HubConfig } from '../config.ts'

const LOOK_MS = 50
/** How often it is said what is waited for. */
const SAY_MS = 15_000
/** How much longer than a hub needs at most this waits for it. */
const PATIENCE_MS = 15_000

/** What the names of the pid files of hubs begin with. Hubs of one SQLite file are one at a time. */
const pidFileBase = ({ database, home }: Pick<HubConfig, 'database' | 'home'>): string =>
  isPostgres(database) ? join(home, 'hub') : database

/** Writes the pid file by which `drain` finds this hub. A hub that cannot write it serves all the same. */
export function noteProcess(
  config: Pick<HubConfig, 'database' | 'home'>,
  { port, url }: Pick<Listening, 'port' | 'url'>,
  drainMs: number,
  log: Log,
): void {
  try {
    writePidFile(pidFileBase(config), port, url, drainMs)
  } catch (error) {
    log.warn('the pid file could not be written: `drain` will not find this hub', { error: messageOf(error) })
  }
}

const say = (text: string) => printMessage(line`hub: ${text}`)

/**
 * Resolves when the hub has ended. Throws `unavailable` when there is none, when it ended in another way or not at all,
 * and `conflict` when it is not clear which process is meant.
 */
export async function drain(config: Pick<HubConfig, 'database' | 'home'>, port: number | undefined): Promise<void> {
  const hub = hubToDrain(pidFileBase(config), port)
  const { pid, url, drainMs } = hub
  send(hub)
  const began = performance.now()
  const refuses = `it refuses new requests and waits at most ${formatDuration(STOP_MS)} for those under way`
  const answersFor = (ms: number) =>
    `it still answers for ${formatDuration(ms)} (CADRE_DRAIN_SECONDS), while /ready says 503; then ${refuses}`
  const waitsFor = (ms: number) => (ms > 0 ? answersFor(ms) : refuses)
  say(`process ${pid} at ${url} was told to stop: ${waitsFor(drainMs)}`)
  let saidMs = 0
  while (isAlive(hub)) {
    const ms = performance.now() - began
    if (ms > drainMs + STOP_MS + PATIENCE_MS) {
      throw new CadreError(
        'unavailable',
        `process ${pid} has not ended for ${formatDuration(ms)}: see its log; \`kill -9 ${pid}\` ends it`,
      )
    }
    if (ms - saidMs > SAY_MS) {
      saidMs = ms
      say(`waiting for process ${pid}: ${waitsFor(drainMs - ms)}`)
    }
    await Bun.sleep(LOOK_MS)
  }
  if (isNamed(hub)) {
    throw new CadreError('unavailable', `process ${pid} has ended, but not by itself or with a failure: see its log`)
  }
  say(`process ${pid} has ended`)
}

function hubToDrain(base: string, port: number | undefined): ServerProcess {
  const all = serversOf(base).filter(({ file }) => port === undefined || file === `${base}.${port}.pid`)
  const alive = all.filter(each => stateOf(each) === 'alive')
  const [first, second] = alive
  if (first && second) {
    const which = alive.map(({ pid, url }) => `process ${pid} at ${url}`).join(', ')
    throw new CadreError('conflict', `several hubs serve here: ${which}; say which one with --port`)
  }
  if (first) return first
  const [foreign] = all.filter(each => stateOf(each) === 'foreign')
  if (foreign) {
    const { file, pid } = foreign
    throw new CadreError(
      'conflict',
      `${file} names process ${pid}, which is another program by now: no signal was sent. The hub of that file has ` +
        'ended; its next start replaces the file',
    )
  }
  const [gone] = all
  if (gone) {
    const { file, pid } = gone
    throw new CadreError(
      'unavailable',
      `no hub runs: ${file} names process ${pid}, which did not end by itself; the next start of the hub replaces the file`,
    )
  }
  const looked = port === undefined ? `${base}.PORT.pid` : `${base}.${port}.pid`
  throw new CadreError(
    'unavailable',
    `no hub runs here: there is no ${looked}; check --database, and CADRE_HOME of the hub`,
  )
}

function send({ pid }: ServerProcess): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ESRCH') return
    const why = code === 'EPERM' ? 'it belongs to another user: call this as that user, or as root' : String(code)
    throw new CadreError('forbidden', `process ${pid} cannot be told to stop: ${why}`)
  }
}
