// What this daemon offers to runs that the hub dispatches: labels, agents, and which of them are ready. Their doctors are
// asked in the background, so that a slow vendor delays no job.

import { messageOf } from '../../error.ts'
import { version } from '../../program/version.ts'
import type { Masked } from '../../secrets/masked.ts'
import { shortText } from '../../text/short-text.ts'
import { pause, unlessAborted } from '../../wait.ts'
import { MOST_FOUND, type OfferedAgent } from '../../wire/needs.ts'
import { TAKEN_KINDS } from '../../wire/records/jobs.ts'
import { MOST_CREDENTIALS } from '../../wire/standing.ts'
import { examine, type Finding, type Patient } from '../runs/agent-checks.ts'
import type { Daemon } from '../runs/daemon.ts'
import type { Offer } from './enrolled-daemon.ts'

/** How often doctors are asked again; more often while one of them finds something wrong. */
const LOOK_MS = 600_000
const LOOK_WRONG_MS = 60_000
/** They are asked no more often than this for operators, however often these click. */
const LEAST_MS = 10_000
/** How often the settings are looked at for a change. */
const CHANGE_MS = 2_000

/** The daemon, as far as it offers something. */
type Offering = Patient & Pick<Daemon, 'workspaces' | 'mask'>

export class Offers {
  readonly #patient: Offering
  readonly #stop = new AbortController()
  #findings: ReadonlyMap<string, Masked<Finding>> = new Map()
  /** When an operator last asked that doctors look, and for which time they have. */
  #asked: number | undefined
  #examined: number | undefined
  #loop: Promise<void> = Promise.resolve()

  constructor(patient: Offering) {
    this.#patient = patient
  }

  start(): void {
    this.#loop = this.#ask()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#loop
  }

  /** What is offered now. */
  async current(): Promise<Offer> {
    const { catalogue, settings, workspaces, sandboxes } = this.#patient
    await catalogue.load()
    const names = [...new Set([...catalogue.names(), ...settings.agents().filter(name => catalogue.get(name))])].sort()
    return {
      labels: { ...settings.labels(), os: process.platform, arch: process.arch, cadre: version },
      agents: names.map(name => {
        const found = this.#findings.get(name)
        return { name, version: catalogue.get(name)!.version, ...(found && this.#toldOf(found)) }
      }),
      workspaces: workspaces.offered(),
      sandbox: (await sandboxes.choose(true)).kind,
      kinds: [...TAKEN_KINDS],
      accounts: settings.accounts(catalogue),
      environments: settings.environments(),
      ...(this.#examined !== undefined && { examined: this.#examined }),
    }
  }

  /** The credentials whose end their systems have said, the next one first. */
  get credentials(): { name: string; at: number }[] {
    const known = [...this.#findings.values()].flatMap(({ agent, expires_at }) =>
      typeof expires_at === 'number' ? [{ name: agent as string, at: expires_at }] : [],
    )
    return known.sort((one, other) => one.at - other.at).slice(0, MOST_CREDENTIALS)
  }

  examine(asked: number): void {
    this.#asked = asked
  }

  async #ask(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const settings = this.#settings()
      const asked = this.#asked
      try {
        const findings = await unlessAborted(examine(this.#patient, { environment: null }), signal)
        const agents = findings.filter(({ agent }) => this.#patient.catalogue.get(agent) !== undefined)
        this.#findings = new Map(agents.map(finding => [finding.agent, finding]))
      } catch (error) {
        if (signal.aborted) return
        this.#patient.log.warn('the agents could not be examined', { error: messageOf(error) })
      }
      this.#examined = asked
      const wrong = [...this.#findings.values()].some(({ state }) => state === 'wrong')
      const until = performance.now() + (wrong ? LOOK_WRONG_MS : LOOK_MS)
      const rested = performance.now() + LEAST_MS
      const isAsked = () => this.#asked !== asked && performance.now() > rested
      const isCurrent = () => settings === this.#settings() && !isAsked()
      while (!signal.aborted && performance.now() < until && isCurrent()) await pause(CHANGE_MS, signal)
    }
  }

  /** The words of a doctor who has asked a system. With `sync: status` none leave this machine. */
  #toldOf({ state, text }: Masked<Finding>): Pick<OfferedAgent, 'doctor' | 'text'> {
    const isTold = (state === 'fine' || state === 'wrong') && this.#patient.settings.value('sync') !== 'status'
    return { doctor: state, ...(isTold && { text: shortText(this.#patient.mask(text as string), MOST_FOUND) }) }
  }

  #settings(): string {
    return JSON.stringify(this.#patient.settings.value('agents') ?? null)
  }
}
