// What the hub adds to its replies to register and heartbeat: whether this daemon is approved or paused, the teams whose
// runs it reports, and whether the hub keeps files. It is stored, because commands and the next start read it, too. Its time
// may confirm the clock of this machine.

import { isLoopback } from '../../agent/net/address.ts'
import type { Log } from '../../log/log.ts'
import type { Store } from '../../run/engine.ts'
import type { Bulletin } from '../../wire/protocol.ts'
import { APPROVED, PAUSED, WAITS_FOR_APPROVAL } from '../home/hub-approval.ts'
import { KEEPS_FILES } from './outbox/outbox.ts'
import { keepTeams, knownTeams } from './register.ts'

/** By how much the clocks of two machines may differ that confirm each other. */
const SAME_TIME_MS = 60_000

export class HubBulletin {
  readonly #store: Store
  readonly #log: Log
  #teams: ReadonlySet<string>
  #teamsVersion: string | null
  #approved: boolean | null = null
  /** Null until the hub has said so. */
  #paused: boolean | null = null
  /** Null until the hub has said so. */
  #keepsFiles: boolean | null = null

  constructor(store: Store, log: Log) {
    this.#store = store
    this.#log = log
    this.#teams = knownTeams(store)
    this.#teamsVersion = store.facts.get('teams_version')
  }

  /** Whether runs of this team (`@scope/name`) are reported to the realm. */
  lists(team: string): boolean {
    return this.#teams.has(team)
  }

  get teamsVersion(): string | null {
    return this.#teamsVersion
  }

  /** Whether the hub keeps files of runs, as far as it has said so. */
  get keepsFiles(): boolean {
    return this.#keepsFiles === true
  }

  /** Whether an operator has paused this daemon, as far as the hub has said so. */
  get isPaused(): boolean {
    return this.#paused === true
  }

  /** Stores what a reply contains. Returns whether the list of teams has changed. */
  learn(bulletin: Bulletin, daemonId: string | null): boolean {
    const { teams, teams_version, approved, artifacts = false, paused = false } = bulletin
    this.learnApproval(approved !== false, daemonId)
    this.#learnPause(paused, daemonId)
    if (artifacts !== this.#keepsFiles) {
      this.#keepsFiles = artifacts
      this.#store.facts.set(KEEPS_FILES, artifacts ? 'yes' : 'no')
    }
    if (!teams) return false
    this.#teams = new Set(teams)
    this.#teamsVersion = teams_version
    keepTeams(this.#store, bulletin)
    return true
  }

  /** Logs a pause and its end, and stores it for `status`. */
  #learnPause(paused: boolean, daemonId: string | null): void {
    const before = this.#paused
    if (paused === before) return
    this.#paused = paused
    this.#store.facts.set(PAUSED, paused ? 'yes' : 'no')
    if (paused) this.#log.warn('an operator has paused this daemon: it takes no more runs', { daemon: daemonId })
    else if (before) this.#log.info('an operator has ended the pause of this daemon: it takes runs again')
  }

  /** Logs the approval when it changes, and stores it for `doctor`. */
  learnApproval(approved: boolean, daemonId: string | null): void {
    const before = this.#approved
    if (approved === before) return
    this.#approved = approved
    this.#store.facts.set(APPROVED, approved ? 'yes' : 'no')
    if (!approved) this.#log.warn(WAITS_FOR_APPROVAL, { daemon: daemonId })
    else if (before === false) this.#log.info('an operator has approved this daemon: it takes jobs now')
  }
}

/**
 * Whether an answer of the hub confirms the clock of this machine. A hub may have the same clock, on the loopback interface
 * or on the host of its container, so that it has to say that it believes its own. Older hubs do not say it.
 */
export const confirms = (url: string, { clock_believed = false }: Bulletin, ahead: number): boolean =>
  clock_believed && Math.abs(ahead) <= SAME_TIME_MS && !isLoopback(new URL(url).hostname)
