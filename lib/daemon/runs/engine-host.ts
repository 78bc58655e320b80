// What the engine asks of the daemon while it executes runs: agents with their settings, and the context of each call.

import { join } from 'node:path'
import type { Catalogue } from '../../agent/catalogue.ts'
import { createContext } from '../../agent/context.ts'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import {
  type ContextHooks,
  type EngineHost,
  limitText,
  Paces,
  type RootSecrets,
  type RunEnvironment,
} from '../../run/engine.ts'
import type { Masked, MaskedText } from '../../secrets/masked.ts'
import { noAgent, type Settings } from '../../settings/settings.ts'
import { type Bundle, bundleFromJson, itemExpression, literalOrigins, secretReader, teamsOf } from '../../team/team.ts'
import type { Mask } from '../access/mask.ts'
import { processesFolder } from '../home/home.ts'
import type { Sandboxes } from '../packages/sandboxes.ts'
import type { RunTracing } from './run-tracing.ts'

interface Parts {
  home: string
  settings: Settings
  /** The secret inputs of runs. */
  secrets: RootSecrets
  mask: Mask
  sandboxes: Sandboxes
  /** Learns the credentials that commands have stored in the home, before an agent could read them. */
  findOwnSecrets(): void
  /** The agents that a top run uses. */
  catalogueOf(rootId: string): Catalogue
  /** The spans of runs; null while they are not exported. */
  tracing(): RunTracing | null
  /** The address of a run's page, if there is one. */
  pageOf(runId: string): string | null
  leadsTo: EngineHost['leadsTo']
}

export function engineHost({ home, settings, secrets, mask, sandboxes, ...parts }: Parts): EngineHost {
  const { findOwnSecrets, catalogueOf, tracing, pageOf } = parts
  const paces = new Paces()
  const processes = processesFolder(home)
  /** Waits until the limit of an account lets its next request begin. All runs of the home share it. */
  const paceOf = async (
    reference: string,
    { rootId, environment }: Pick<RunEnvironment, 'rootId' | 'environment'>,
    signal: AbortSignal,
    waits: ContextHooks['waits'],
  ): Promise<void> => {
    const scope = settings.in(environment)
    const limit = scope.limit(reference)
    if (!limit) return
    const name = scope.placeOf(`agents.${reference}.limit`)
    // A limit that was changed begins to count anew.
    const limits = [{ key: `${name} ${limit.count} ${limit.per}`, name: `agents.${reference}`, ...limit }]
    if (paces.begin(limits)) return
    const end = waits?.(mask.redactor(secrets.values(rootId)).text(limits.map(limitText).join()), undefined)
    try {
      const turn = await paces.wait(limits, signal)
      turn.begin()
    } finally {
      end?.()
    }
  }
  const agentOf: EngineHost['agent'] = async (reference, signal, { rootId, environment }) => {
    findOwnSecrets()
    const catalogue = catalogueOf(rootId)
    const definition = (await catalogue.load([reference])).get(reference)
    if (!definition) {
      throw new CadreError('invalid_request', noAgent(reference, catalogue))
    }
    return { definition, settings: await settings.in(environment).of(reference, definition, signal) }
  }
  return {
    agent: agentOf,
    account: async (reference, team, signal, run) => {
      settings.in(run.environment).mustLend(reference, team)
      const found = await agentOf(reference, signal, run)
      if (found.definition.account) return found
      throw new CadreError('invalid_request', `the agent ${reference} has no account for requests of others`)
    },
    context: (run, binding, hooks) =>
      createContext({
        agent: binding.agent,
        action: binding.action,
        settings: binding.settings,
        network: {
          ...settings.network(),
          literalOrigins: run.fromPath ? originsOf(run.bundle) : [],
        },
        account: binding.account,
        pace: () => paceOf(binding.account?.name ?? binding.agent, run, binding.signal, hooks.waits),
        expression: (text, inputs = {}) => itemExpression(text, inputs),
        addresses: () => [
          ...(binding.definition.addresses?.(binding.settings) ?? []),
          ...(binding.account ? [binding.account.base] : []),
        ],
        redactor: mask.redactor(secrets.values(run.rootId)),
        conceal: value => mask.conceal(value),
        signal: binding.signal,
        log: (text, fields) => run.log(logLine(text, fields)),
        logLimit: run.room,
        stateDir: run.stateDir,
        workspace: run.workspace,
        outside: run.fromPath,
        given: run.given,
        sameTree: run.sameTree,
        teamFolder: run.teamFolder,
        unwritten: run.unwritten,
        processes,
        sandbox: needs =>
          sandboxes.of(run.team, {
            ...{ workspace: run.workspace, stateDir: run.stateDir, rootDir: run.rootDir },
            ...{ runs: join(home, 'runs'), sameTree: run.sameTree },
            ...run.files(),
            ...needs,
          }),
        get key() {
          return binding.key
        },
        attempt: run.attempt,
        run: { ...run.run, url: pageOf(run.run.id) },
        phase: run.phase,
        effect: binding.effect,
        trace: tracing()?.callOf(run.run.id, run.phase.name),
        replied: status => {
          if (status === 401) settings.refused(binding.account?.name ?? binding.agent)
        },
        ...hooks,
      }),
    mask: (value, values) => mask.redactor(values).json(value),
    secret: async (name, team, environment, signal) => settings.in(environment).secret(name, team, signal),
    restoreBundle: (_, json) => bundleFromJson(json),
    leadsTo: parts.leadsTo,
  }
}

const origins = new WeakMap<Bundle, readonly string[]>()

/**
 * The addresses that the teams of a path name, and that the guard then lets pass for them. Whoever starts a team from a
 * path on this machine is assumed to have read them, but not those of the packages that it uses.
 */
function originsOf(bundle: Bundle): readonly string[] {
  const known = origins.get(bundle)
  if (known) return known
  const own = teamsOf(bundle).filter(([key]) => secretReader(bundle, key).fromPath)
  const found = own.flatMap(([, team]) => [...literalOrigins(team)])
  origins.set(bundle, found)
  return found
}

/** exec says which stream of its process a line came from. */
export function logLine(text: MaskedText, fields: Masked<JsonObject> = {}): Parameters<RunEnvironment['log']>[0] {
  const { stream, ...rest } = fields
  const printed = (['stdout', 'stderr'] as const).find(each => each === stream)
  if (printed) return { stream: printed, text, fields: rest }
  return { stream: 'log', text, ...(Object.keys(fields).length > 0 && { fields }) }
}
