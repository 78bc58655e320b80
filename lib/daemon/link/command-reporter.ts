// What a command without a daemon reports to the hub of an enrolled home, at its end, for a short time. The next
// command or daemon that reaches the hub sends what is left.

import { hostname } from 'node:os'
import { CadreError, messageOf } from '../../error.ts'
import { version } from '../../program/version.ts'
import { Heartbeat } from '../../wire/calls/daemon-link.ts'
import { isMoved, PROTOCOL } from '../../wire/protocol.ts'
import { enrolmentOf } from '../access/hub-credentials.ts'
import type { Daemon } from '../runs/daemon.ts'
import { HubClient } from './hub-client.ts'
import { keepTeams, knownTeams, register, startOf } from './register.ts'
import { SyncSender } from './sync-sender.ts'

/** How long a command waits for the hub. */
const PATIENCE_MS = 2_000

type Environment = Record<string, string | undefined>

export class Reporter {
  readonly #daemon: Daemon
  readonly #client: HubClient
  readonly #name: string

  /** Null when the home is not enrolled. The first command of a new home asks the hub which teams it lists. */
  static async open(daemon: Daemon, env: Environment): Promise<Reporter | null> {
    await daemon.settings.prepare(['hub'])
    const enrolment = enrolmentOf(daemon.settings, env)
    if (!enrolment) return null
    const reporter = new Reporter(daemon, new HubClient(enrolment.url, enrolment.realmToken), env)
    if (reporter.#store.facts.get('daemon_id') === null) await reporter.#introduce()
    return reporter
  }

  private constructor(daemon: Daemon, client: HubClient, env: Environment) {
    this.#daemon = daemon
    this.#client = client
    this.#name = env.CADRE_DAEMON_NAME || hostname()
  }

  get #store() {
    return this.#daemon.engine.store
  }

  /** Whether runs of this team (`@scope/name`) are reported to the realm. */
  lists(team: string): boolean {
    return knownTeams(this.#store).has(team)
  }

  /** Sends what waits. Logs what is left. Never throws. */
  async finish(): Promise<void> {
    const { log, outbox } = this.#daemon
    try {
      await this.#send(AbortSignal.timeout(PATIENCE_MS))
    } catch (error) {
      if (isMoved(error)) log.warn(messageOf(error))
      else log.debug('the hub was not reached', { error: messageOf(error) })
    }
    const { left } = outbox
    if (left.changes + left.lines === 0) return
    log.warn('the hub has not received everything yet: the next command or `serve` that reaches it sends the rest', {
      ...left,
    })
  }

  async #send(signal: AbortSignal): Promise<void> {
    const { outbox, log } = this.#daemon
    const store = this.#store
    const id = await this.#greet(signal)
    const sender = new SyncSender({ client: this.#client, store, outbox, log })
    while (await sender.send(id, signal)) signal.throwIfAborted()
  }

  /** The daemon's id at the hub, which enrols it again where it has forgotten it. */
  async #greet(signal: AbortSignal): Promise<string> {
    const { facts } = this.#store
    const [daemon_id, teams_version] = [facts.get('daemon_id'), facts.get('teams_version')]
    if (daemon_id !== null) {
      try {
        const body = {
          daemon_id,
          protocol: PROTOCOL,
          ...startOf(this.#store),
          ...(teams_version !== null && { teams_version }),
        }
        keepTeams(this.#store, await this.#client.call(Heartbeat, body, { signal }))
        return daemon_id
      } catch (error) {
        // The token is another one, or the hub is.
        if (!(error instanceof CadreError) || !['not_found', 'forbidden'].includes(error.code)) throw error
      }
    }
    return this.#register(signal)
  }

  async #introduce(): Promise<void> {
    try {
      await this.#register(AbortSignal.timeout(PATIENCE_MS))
    } catch (error) {
      this.#daemon.log.warn('the hub has not enrolled this home yet, so this run is not reported', {
        error: messageOf(error),
      })
    }
  }

  async #register(signal: AbortSignal): Promise<string> {
    // Without a capacity, because a command takes no jobs: the hub keeps what a daemon of this home has said.
    const introduction = { name: this.#name, version }
    return (await register(this.#client, this.#store, introduction, { signal })).daemon_id
  }
}
