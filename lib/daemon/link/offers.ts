// What this daemon offers to runs that the hub dispatches: labels, agents, and which of them are ready. Their doctors are
// asked in the background, so that a slow vendor delays no job.

import { messageOf } from '../../error.ts'
import { version } from '../../program/version.ts'
import { pause, unlessAborted } from '../../wait.ts'
import type { OfferedAgent } from '../../wire/needs.ts'
import { TAKEN_KINDS } from '../../wire/records/jobs.ts'
import { examine, type Patient } from '../runs/agent-checks.ts'
import type { Workspaces } from '../runs/workspaces.ts'
import type { Offer } from './enrolled-daemon.ts'

/** How often doctors are asked again; more often while one of them finds something wrong. */
const LOOK_MS = 600_000
const LOOK_WRONG_MS = 60_000
/** How often the settings are looked at for a change. */
const CHANGE_MS = 2_000

export class Offers {
  readonly #patient: Patient & { workspaces: Workspaces }
  readonly #stop = new AbortController()
  #findings = new Map<string, NonNullable<OfferedAgent['doctor']>>()
  #loop: Promise<void> = Promise.resolve()

  constructor(patient: Patient & { workspaces: Workspaces }) {
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
        const doctor = this.#findings.get(name)
        return { name, version: catalogue.get(name)!.version, ...(doctor && { doctor }) }
      }),
      workspaces: workspaces.offered(),
      sandbox: (await sandboxes.choose(true)).kind,
      kinds: [...TAKEN_KINDS],
      accounts: settings.accounts(catalogue),
      environments: settings.environments(),
    }
  }

  async #ask(): Promise<void> {
    const { signal } = this.#stop
    while (!signal.aborted) {
      const asked = this.#settings()
      try {
        const findings = await unlessAborted(examine(this.#patient, { environment: null }), signal)
        const agents = findings.filter(({ agent }) => this.#patient.catalogue.get(agent) !== undefined)
        this.#findings = new Map(agents.map(({ agent, state }) => [agent, state]))
      } catch (error) {
        if (signal.aborted) return
        this.#patient.log.warn('the agents could not be examined', { error: messageOf(error) })
      }
      const wrong = [...this.#findings.values()].includes('wrong')
      const until = performance.now() + (wrong ? LOOK_WRONG_MS : LOOK_MS)
      while (!signal.aborted && performance.now() < until && asked === this.#settings()) await pause(CHANGE_MS, signal)
    }
  }

  #settings(): string {
    return JSON.stringify(this.#patient.settings.value('agents') ?? null)
  }
}
