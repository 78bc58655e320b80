// What an agent is: every file in `agents/` exports one definition. It is data and one function for each action. The core
// does everything else: retries, masking of secrets, files and the ledger. What a function gets and returns is in
// agent-context.ts, what it may ask of the network in requests.ts.

import type { Static, TObject, TSchema } from 'typebox'
import { Type } from '../schema/type.ts'
import type { AgentContext, AgentResult } from './agent-context.ts'
import type { Effect } from './core/effect.ts'
import type { ApiOptions } from './net/requests.ts'

/**
 * What `doctor` reports about the credential in the settings.
 * @example return { who: user.email, missing: [], text: context.settings.base_url }
 */
export interface Diagnosis {
  /** The owner of the credential according to the vendor; null when the vendor cannot be asked. */
  who: string | null
  /**
   * Permissions that some action needs and the credential lacks, named as in `permissions` of the actions. `doctor` of the
   * command line sorts them: what no team calls is no fault.
   */
  missing: string[]
  /** One line that says what was reached, and what could not be determined. */
  text: string
  /** When the credential ends, in epoch milliseconds, if the vendor says it. */
  expires_at?: number | null
}

/**
 * What an agent finds wrong with its settings: words that continue the dotted key, with what to write instead. A key
 * without words is in order.
 * @example
 * check({ base_url }) {
 *   return { base_url: base_url?.includes('/browse/') && `must be the site alone: write ${new URL(base_url).origin}` }
 * }
 */
export type Verdicts = Record<string, string | false | null | undefined>

/**
 * Settings as `check` gets them. Values that are not set, do not fit the schema, or are references whose value is not
 * known yet are left out: others report them.
 */
export type Given<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [K in keyof T]?: Given<T[K]> | undefined }
    : T

/**
 * A handler as the core sees it. `entry` and the settings are not typed here, because they are checked against their
 * schemas before the call.
 */
export interface Handler {
  /** What it does, in a sentence for people. */
  description?: string
  /** A function where the effect depends on the entry, as it does on the method of the http agent. */
  effect: Effect | ((entry: unknown) => Effect)
  /** An entry to begin with, for the phase that the manual shows. */
  example?: Readonly<Record<string, unknown>>
  entry: TObject
  data?: TSchema
  run(entry: unknown, context: AgentContext<unknown>): Promise<AgentResult>
  /**
   * Asks the vendor whether this entry was already written. Returns its result, or a list of all that carry its mark, or
   * null when the vendor shows none. Throws when that cannot be determined. `foundBy` of the engine reads both forms.
   */
  find?(entry: unknown, context: AgentContext<unknown>): Promise<AgentResult | null>
  /**
   * `at once` where `find` sees every write from the moment on in which its request has ended, so that null proves that
   * nothing was written. A search that may lag does not.
   */
  sees?: 'at once'
  /**
   * How long after the end of a request the vendor may still write what was asked, or not show it yet: a duration such as
   * `5m`; default 60s. Until then null from `find` proves nothing.
   */
  settles?: string
  /**
   * What the credential must be allowed for it, as `doctor` of the agent names what is missing. A function where that
   * depends on the entry, in which templates still stand in place of values. Without it any permission may be needed.
   */
  permissions?: readonly string[] | ((entry: unknown) => readonly string[])
}

export interface Action extends Handler {
  direction: 'source' | 'target' | 'phase'
}

export interface AgentDefinition {
  type: 'connector' | 'exec'
  version: string
  description: string
  settings: TObject
  /**
   * The keys that are missing although other settings require them, such as those of the provider that the git agent
   * uses.
   */
  missing?(settings: unknown): string[]
  /** Judges settings beyond what their schema says. See `Verdicts`. */
  check?(settings: unknown): Verdicts
  /**
   * The addresses that the agent makes from its settings, or has as its vendor's default. `*` stands for one label of a
   * host name.
   */
  addresses?(settings: unknown): readonly string[]
  /**
   * Asks the vendor, with a few cheap reads, who owns the credential and which permissions it lacks. Throws the same
   * errors as an action.
   */
  doctor?(context: AgentContext<unknown>): Promise<Diagnosis>
  /**
   * The address and the headers of requests in this agent's name, for entries of http with `account`. Without it such
   * entries cannot name the agent.
   */
  account?(context: AgentContext<unknown>): ApiOptions | Promise<ApiOptions>
  actions?: Record<string, Action>
  source?: Handler
  target?: Handler
  phase?: Handler
  notify?: Handler
}

/** The setting of an agent with an account that lists which packages may use it. Its value is none of the agent's own. */
export const LEND = 'lend'

/** Marks values made by `agent()`, so that the catalogue can distinguish an agent from any other export. */
export const AGENT = Symbol.for('cadre.agent')

export interface Agent extends AgentDefinition {
  [AGENT]: true
}

interface HandlerOf<Settings, E extends TObject> {
  /** What it does, in a sentence that `agents NAME` prints. */
  description?: string
  effect: Effect | ((entry: Static<E>) => Effect)
  /**
   * An entry to begin with: `agents NAME` prints a phase with it. Without one it has what the schema requires.
   * @example example: { name: 'item.json', ref: '42' }
   */
  example?: NoInfer<Static<E>>
  entry: E
  /**
   * What the results have as `data`: `agents NAME` prints it for authors of teams. `cadre/testing` fails a call whose
   * result does not fit, or has a field that is not declared. It is not checked in runs, where the work is done by then.
   */
  data?: TSchema
  run(entry: Static<E>, context: AgentContext<Settings>): Promise<AgentResult>
  find?(entry: Static<E>, context: AgentContext<Settings>): Promise<AgentResult | AgentResult[] | null>
  /** See `sees` of `Handler`. */
  sees?: 'at once'
  /** See `settles` of `Handler`. */
  settles?: string
  /**
   * See `permissions` of `Handler`.
   * @example permissions: ['stock:write']
   */
  permissions?: readonly string[] | ((entry: Static<E>) => readonly string[])
}

interface DefinitionOf<
  S extends TObject,
  A extends Record<string, TObject>,
  So extends TObject,
  Ta extends TObject,
  Ph extends TObject,
  No extends TObject,
> {
  type: 'connector' | 'exec'
  version: string
  description: string
  /** May be left out by an agent without settings. */
  settings?: S
  missing?(settings: Static<S>): string[]
  /**
   * Judges settings beyond what their schema says, such as an address that was copied from a browser. It is called by
   * `doctor`, by `settings set` and before a run starts, so it must be fast: it may look at local files (synchronously)
   * but sends nothing.
   */
  check?(settings: Given<Static<S>>): Verdicts
  /**
   * The addresses that the agent makes from its settings, or has as its vendor's default. They may be reached like those
   * that stand in the settings. `*` stands for one label of a host name.
   * @example addresses: ({ subdomain }) => [`https://${subdomain}.helpdesk.example`]
   */
  addresses?(settings: Static<S>): readonly string[]
  doctor?(context: AgentContext<Static<S>>): Promise<Diagnosis>
  /**
   * The address and the headers of requests in this agent's name: an entry of http with `account` sends one. Without it
   * such entries cannot name the agent.
   * @example account: ({ settings }) => ({ base: settings.base_url, headers: { 'x-api-key': settings.api_key } })
   */
  account?(context: AgentContext<Static<S>>): ApiOptions | Promise<ApiOptions>
  /**
   * What it does by name. `source`, `target` and `phase` beside them are what a phase without an `action` calls; where
   * there are none, every phase needs an action.
   */
  actions?: {
    [K in keyof A]: HandlerOf<Static<S>, A[K]> & { direction: 'source' | 'target' | 'phase' }
  }
  source?: HandlerOf<Static<S>, So>
  target?: HandlerOf<Static<S>, Ta>
  phase?: HandlerOf<Static<S>, Ph>
  notify?: HandlerOf<Static<S>, No>
}

/**
 * Declares an agent. The types of `entry` and `context.settings` are derived from the schemas.
 * @example export default agent({ type: 'connector', version: '1.0.0', description: '…', settings, actions: { … } })
 */
export function agent<
  S extends TObject = TObject<Record<never, never>>,
  A extends Record<string, TObject> = Record<string, TObject>,
  So extends TObject = TObject,
  Ta extends TObject = TObject,
  Ph extends TObject = TObject,
  No extends TObject = TObject,
>(definition: DefinitionOf<S, A, So, Ta, Ph, No>): Agent {
  return { settings: Type.Object({}), ...(definition as Partial<AgentDefinition>), [AGENT]: true } as Agent
}

/**
 * The schema of a secret setting, which is masked wherever it would appear.
 * @example const settings = Type.Object({ base_url: Type.String(), api_token: secret() })
 */
export function secret(options: { description?: string } = {}) {
  return Type.String({ minLength: 1, ...options, 'x-secret': true })
}

/**
 * The schema of a text that another program executes, such as a statement of SQL. A team whose text contains a
 * template is refused, so that no value of a run becomes a part of the program. `instead` says where values go, in words
 * that an error can end with.
 * @example entry: entryOf({ sql: literal('put the value into `params`, and `:name` here'), params: Params })
 */
export function literal(instead: string, options: { description?: string } = {}) {
  return Type.String({ minLength: 1, ...options, 'x-literal': instead })
}

export function isSecret(schema: TSchema): boolean {
  return (schema as { 'x-secret'?: boolean })['x-secret'] === true
}
