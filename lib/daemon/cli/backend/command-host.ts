// A process that holds the home as long as something runs in it, without being a daemon: `run` and the other commands
// that start or continue a run. Meanwhile it serves the daemon's API on a free loopback port, so that other commands
// work through it.

import { messageOf } from '../../../error.ts'
import type { Listening } from '../../../http/listen.ts'
import type { ProcessLog } from '../../../log/log.ts'
import { homeIsFull } from '../../home/full-disk.ts'
import { Daemon } from '../../runs/daemon.ts'
import { type Client, createClient } from './home-client.ts'

/** A run that ends sooner needs no server. Until then other commands wait for the address. */
const SERVE_AFTER_MS = 250
const LOOK_MS = 50

interface Serving {
  listening: Listening
  client: Client
}

export class CommandHost {
  readonly daemon: Daemon
  #serving: Promise<Serving> | null = null
  #timer: Timer | undefined

  /** Takes the home. Throws `conflict` when another process holds it, `unavailable` on a full disk. */
  static async open(home: string, command: string, log: ProcessLog): Promise<CommandHost> {
    const opening = heldBack(log)
    const daemon = await Daemon.open({ home, log: opening.log, command })
    try {
      await daemon.openRuns.recover({ none: true })
      // The engine would wait for free space without saying so.
      const { stalled } = daemon.engine.load
      if (stalled) throw homeIsFull(home, stalled)
      await useHub(daemon)
    } catch (error) {
      await daemon.abandon()
      throw error
    }
    opening.release()
    return new CommandHost(daemon)
  }

  private constructor(daemon: Daemon) {
    this.daemon = daemon
  }

  /** The API of this process, which is served from the first call on. */
  readonly client: Client = {
    call: async (call, body) => (await this.#serve()).client.call(call, body),
    events: (runId, signal) => this.#events(runId, signal),
  }

  /** Starts serving the API after a short delay, if this process is still open then. */
  serveSoon(): void {
    this.#timer = setTimeout(() => {
      this.#serve().catch(error => {
        this.daemon.log.warn('other commands cannot work through this process', { error: messageOf(error) })
      })
    }, SERVE_AFTER_MS)
  }

  /** Whether something runs here that does not wait for a person. */
  get atWork(): boolean {
    const { engine, openRuns } = this.daemon
    if (engine.load.slots > 0) return true
    return engine.store.runs
      .openRoots()
      .some(({ id, state }) => state !== 'awaiting_input' && !openRuns.isInterrupted(id))
  }

  /** Resolves when nothing runs here and nobody can start anything any more, or when `signal` fires. */
  async finish(signal: AbortSignal): Promise<void> {
    const stopped = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
    while (!signal.aborted) {
      while (this.atWork && !signal.aborted) await Bun.sleep(LOOK_MS)
      await Promise.race([this.daemon.engine.untilQuiet(), stopped])
      await this.#stopServing()
      // A call that was in progress may have started something.
      if (!this.atWork) return this.daemon.reporter?.finish()
      if (!signal.aborted) await this.#serve()
    }
  }

  /** Interrupts what runs and releases the home. */
  async close(): Promise<void> {
    await Promise.all([this.#stopServing(), this.daemon.close()])
  }

  async *#events(runId: string, signal: AbortSignal) {
    const { runEvents } = await import('../../runs/events.ts')
    yield* runEvents(this.daemon.engine, runId, signal)
  }

  #serve(): Promise<Serving> {
    clearTimeout(this.#timer)
    this.#serving ??= this.#listen().catch(error => {
      this.#serving = null
      throw error
    })
    return this.#serving
  }

  async #listen(): Promise<Serving> {
    const [{ strictFrom }, { daemonApp }, { listen }] = await Promise.all([
      import('../../access/access.ts'),
      import('../../routes/app.ts'),
      import('../../../http/listen.ts'),
    ])
    const { daemon } = this
    await daemon.catalogue.load()
    const app = daemonApp(daemon, { strict: strictFrom(process.env.CADRE_LOCAL_AUTH) })
    const listening = listen(app, { host: '127.0.0.1', port: 0 })
    try {
      daemon.lock.announce(listening.url)
    } catch (error) {
      // On a full disk no lock file can be written, so other commands do not find this process. Its own work is not
      // affected.
      daemon.log.warn('other commands cannot find this process', { error: messageOf(error) })
    }
    return { listening, client: createClient(daemon.home, listening.url) }
  }

  /** Answers the calls that are in progress. A new caller waits until the home is free or served again. */
  async #stopServing(): Promise<void> {
    clearTimeout(this.#timer)
    const serving = await this.#serving?.catch(() => null)
    this.#serving = null
    if (!serving) return
    try {
      this.daemon.lock.announce(null)
    } catch {
      // On a full disk no lock file can be written. New callers get an error that says to try again.
    }
    await serving.listening.stop()
  }
}

/** Lets the hub of an enrolled home hear of the runs in this process, and give packages for them. */
async function useHub(daemon: Daemon): Promise<void> {
  const { env } = process
  // Most homes have no hub, and a command starts faster without the code for it.
  if (!env.CADRE_HUB_URL && daemon.settings.value('hub.url') === undefined) return
  const [{ Reporter }, { packagesOfEnrolment }] = await Promise.all([
    import('../../link/command-reporter.ts'),
    import('../../link/package-source.ts'),
  ])
  daemon.packages.findSource = () => packagesOfEnrolment(daemon.settings, env)
  daemon.reporter = await Reporter.open(daemon, env)
}

/**
 * A log that is written when it is released. If the home cannot be taken, the error alone is enough and the log is
 * dropped.
 */
function heldBack(log: ProcessLog): { log: ProcessLog; release(): void } {
  let waiting: (() => void)[] | null = []
  const say = (write: () => void) => void (waiting ? waiting.push(write) : write())
  return {
    log: {
      debug: (event, fields) => say(() => log.debug(event, fields)),
      info: (event, fields) => say(() => log.info(event, fields)),
      warn: (event, fields) => say(() => log.warn(event, fields)),
      error: (event, fields) => say(() => log.error(event, fields)),
      follow: listener => log.follow(listener),
    },
    release() {
      for (const write of waiting ?? []) write()
      waiting = null
    },
  }
}
