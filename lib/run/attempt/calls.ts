// Which calls of its agent a leaf phase makes: one for each entry, or one for the whole phase. The entries are evaluated
// and checked before the first call is made.

import type { AgentDefinition, Handler } from '../../agent/define.ts'
import { CadreError } from '../../error.ts'
import type { JsonObject } from '../../json.ts'
import { problems } from '../../schema/schema.ts'
import {
  type AgentCall,
  accountIn,
  type GatePhase,
  mayHaveAccount,
  type Scope,
  type Team,
  type Template,
} from '../../team/team.ts'
import { endTurn } from '../../turns.ts'

/** One call of a handler. Phase-level calls have the empty name. */
export interface Call {
  name: string
  kind: 'source' | 'target' | 'phase'
  entry: JsonObject
  /** The secrets that the entry contains, as `secrets.<name>` and `inputs.<name>`. */
  secrets: string[]
  /** The agent in whose name it sends its request; null for none. */
  account: string | null
  handler: Handler
  phaseLevel: boolean
}

/** The commands of a gate as a call of the exec agent. */
export function gateCall(phase: GatePhase): AgentCall {
  const { commands } = phase
  return {
    agent: 'exec',
    sources: [],
    targets: [],
    fields: {
      source: '',
      place: phase.place,
      phases: new Set(commands.flatMap(command => [...command.env.phases])),
      given: new Set(),
      evaluate: scope => ({
        ...(phase.needs.length > 0 && { needs: [...phase.needs] }),
        env: phase.env.evaluate(scope),
        commands: commands.map(({ name, run, env, timeout, effect }) => ({
          name,
          run,
          env: env.evaluate(scope),
          ...(timeout !== undefined && { timeout: `${timeout}ms` }),
          effect,
        })),
      }),
    },
  }
}

/** The handler for entries of a kind, or for the call of a whole phase. */
export function handlerOf(
  definition: AgentDefinition,
  name: string | undefined,
  kind: Call['kind'],
): Handler | undefined {
  const action = name === undefined ? undefined : definition.actions?.[name]
  if (action) return action.direction === kind ? action : undefined
  return definition[kind]
}

/** Evaluates the entries of a call, and yields the event loop in between. */
export async function callsOf(call: AgentCall, definition: AgentDefinition, team: Team, scope: Scope): Promise<Call[]> {
  const action = call.action === undefined ? undefined : definition.actions?.[call.action]
  const called = action ? `${call.agent}.${call.action}` : call.agent
  const calls: Call[] = []
  const secretsIn = ({ given }: Template) => [
    ...team.secrets.map(name => `secrets.${name}`).filter(name => given.has(name)),
    ...team.inputs
      .filter(({ name, secret }) => secret && given.has(`inputs.${name}`))
      .map(({ name }) => `inputs.${name}`),
  ]
  for (const [kind, list] of [
    ['source', call.sources],
    ['target', call.targets],
  ] as const) {
    const handler = handlerOf(definition, call.action, kind)
    for (const { name, entry } of list) {
      if (!handler) throw new CadreError('invalid_request', `[${called}] takes no ${kind} entries`)
      await endTurn()
      const evaluated = entry.evaluate(scope) as JsonObject
      const account = accountIn(call.agent, entry.source)
      if (account === null && mayHaveAccount(call.agent) && evaluated.account !== undefined)
        throw new CadreError('invalid_request', `[${called}] entry ${name}: \`account\` must stand in the file itself`)
      calls.push({ name, kind, entry: evaluated, secrets: secretsIn(entry), account, handler, phaseLevel: false })
    }
  }
  const handler = handlerOf(definition, call.action, 'phase')
  if (calls.length === 0) {
    if (!handler) throw new CadreError('invalid_request', `[${called}] needs sources or target_entries`)
    const evaluated = call.fields.evaluate(scope) as JsonObject
    const secrets = secretsIn(call.fields)
    calls.push({ name: '', kind: 'phase', entry: evaluated, secrets, account: null, handler, phaseLevel: true })
  }
  for (const { name, entry, handler } of calls) {
    const wrong = problems(handler.entry, entry)
    if (wrong.length === 0) continue
    const list = wrong.map(({ path, message }) => `${path.slice(1) || 'entry'}: ${message}`).join('; ')
    throw new CadreError('invalid_request', `[${called}] ${name ? `entry ${name}: ` : ''}${list}`, { details: wrong })
  }
  return calls
}
