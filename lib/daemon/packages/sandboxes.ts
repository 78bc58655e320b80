// Decides in which sandbox the commands of a team run: by the owner's settings, and without a choice by what this machine
// can do. What the owner asked for and cannot be had fails the phase; only a default falls back to no sandbox.

import { existsSync } from 'node:fs'
import { openForReading } from '../../../db/open.ts'
import type { Sandbox } from '../../agent/commands/sandbox.ts'
import { type Protected, type SandboxNeeds, sandboxView } from '../../agent/commands/sandbox-view.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import {
  endLeftContainers,
  protectedFolders,
  realPath,
  type SandboxFactory,
  sandboxFactoryFor,
} from '../../agent/sandbox-trial.ts'
import { commandLine } from '../../program/called-as.ts'
import { Store } from '../../run/engine.ts'
import { mayHaveNetwork, type SandboxChoices, type SandboxKind, type Settings } from '../../settings/settings.ts'
import { databaseFile } from '../home/home.ts'

/** The team whose commands run. */
export interface CommandTeam {
  /** `@scope/name`. */
  name: string
  /** Whether it came from a folder of a person. Otherwise it is a package. */
  fromPath: boolean
}

/** Where commands run. */
export interface ChosenSandbox {
  kind: SandboxKind
  /** Why they cannot run; null where they can. */
  fails: string | null
  /** What the owner should know of a default; null for nothing. */
  warning: string | null
}

const FACT = 'packages_sandbox'

/**
 * Whether packages have no sandbox unless the owner chooses one, because the home has run some before there were
 * sandboxes. It is found once in the life of a home, at its first start with this version, and kept.
 */
export function keepsNone({ facts, runs }: Pick<Store, 'facts' | 'runs'>): boolean {
  return facts.once(FACT, () => (runs.anyOfPackage() ? 'none' : 'bubblewrap')) === 'none'
}

/** The sandboxes of a home that another process may hold. Nothing is written. */
export function sandboxesOf(home: string, settings: Pick<Settings, 'sandbox'>): Sandboxes {
  const file = databaseFile(home)
  if (!existsSync(file)) return new Sandboxes(home, settings, false)
  using db = openForReading(file)
  const { facts, runs } = new Store(db)
  return new Sandboxes(home, settings, facts.get(FACT) === null ? runs.anyOfPackage() : facts.get(FACT) === 'none')
}

export class Sandboxes {
  readonly #home: string
  readonly #settings: Pick<Settings, 'sandbox'>
  readonly #keepsNone: boolean
  readonly #protected: Protected

  constructor(home: string, settings: Pick<Settings, 'sandbox'>, keepsNone: boolean) {
    this.#home = home
    this.#protected = protectedFolders(home)
    this.#settings = settings
    this.#keepsNone = keepsNone
  }

  /** Where the commands of packages, or those of other teams, run now. `again` tries what failed before. */
  async choose(isPackage: boolean, again = false): Promise<ChosenSandbox> {
    const { kind, fails, warning } = await this.#decide(isPackage, again)
    return { kind, fails, warning }
  }

  /** The network is given to a team when the owner has consented, and otherwise this says how to. */
  whyNoNetwork(team: string): string | null {
    const choices = this.#settings.sandbox()
    if (mayHaveNetwork(choices, team)) return null
    const list = JSON.stringify([...choices.network, team])
    const call = commandLine('settings', 'set', 'exec.sandbox_network', list)
    return `${team} says \`needs: [network]\`, and the sandbox of this machine has none for it; to allow it, add \`sandbox_network: ${list}\` below \`exec:\` in settings.yml, or call: ${call}`
  }

  /** The sandbox for the commands of a phase; null for none. Throws an AgentError `sandbox` when they must not run. */
  async of(team: CommandTeam, needs: SandboxNeeds): Promise<Sandbox | null> {
    const { fails, kind, factory } = await this.#decide(!team.fromPath, false)
    if (fails !== null) throw refusal(fails, 'ask the owner of this machine; `doctor` says more')
    if (kind === 'none' || factory === null) return null
    const missing = needs.network ? this.whyNoNetwork(team.name) : null
    if (missing !== null)
      throw refusal(missing, 'ask the owner of this machine to allow it, or remove `needs` from the phase')
    return factory.make(sandboxView(needs, this.#protected, realPath))
  }

  /** Ends what an earlier daemon left in containers, which are no children of it. */
  async endLeft(): Promise<void> {
    const { exec, packages } = this.#settings.sandbox()
    if ([exec.kind, packages.kind].includes('container')) await endLeftContainers(this.#home)
  }

  async #decide(
    isPackage: boolean,
    again: boolean,
  ): Promise<ChosenSandbox & { factory: Exclude<SandboxFactory, { fails: string }> | null }> {
    const choices = this.#settings.sandbox()
    const { problem } = isPackage ? choices.packages : choices.exec
    if (problem !== null) return { kind: 'none', fails: problem, warning: null, factory: null }
    const chosen = chosenKind(choices, isPackage)
    const none = { kind: 'none', fails: null, factory: null } as const
    if (chosen === 'none' || (chosen === null && !isPackage)) return { ...none, warning: null }
    if (chosen === null && this.#keepsNone) return { ...none, warning: kept() }
    const kind = chosen ?? 'bubblewrap'
    const image = kind === 'container' ? choices.image : null
    const found = await sandboxFactoryFor({ kind, image, home: this.#home }, again)
    if (!('fails' in found)) return { kind, fails: null, warning: null, factory: found }
    if (chosen === null) return { ...none, warning: `packages run without a sandbox: ${found.fails}` }
    return { kind, fails: `${KEYS[`${isPackage}`]} asks for ${kind}: ${found.fails}`, warning: null, factory: null }
  }
}

const KEYS = { true: 'packages.sandbox or exec.sandbox', false: 'exec.sandbox' } as const

const kept = () =>
  `packages run without a sandbox, as they did in this home before there were sandboxes: choose with \`${commandLine('settings', 'set', 'packages.sandbox', 'bubblewrap')}\`, or none instead of bubblewrap`

/** Packages have a sandbox wherever the owner wants one for all commands. Null: nothing is chosen. */
function chosenKind({ exec, packages }: SandboxChoices, isPackage: boolean): SandboxKind | null {
  if (!isPackage) return exec.kind
  return packages.kind ?? (exec.kind === 'none' ? null : exec.kind)
}

const refusal = (message: string, hint: string): AgentError =>
  new AgentError(message, { code: 'sandbox', hint, sent: 'no' })
