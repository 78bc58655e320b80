// One attempt of a leaf phase: templates are evaluated, entries checked, the agent called, results masked.
// Whatever goes wrong becomes an Outcome; nothing is thrown.

import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import {
  type AgentContext,
  type AgentDefinition,
  AgentError,
  type AgentResult,
  type Effect,
  type FileRecord,
  type Handler,
} from '../agent/define.ts'
import { diskFull, recordFiles } from '../agent/files.ts'
import { CadreError, messageOf } from '../error.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { problems } from '../schema.ts'
import type { AgentCall, GatePhase, Scope, StandardPhase } from '../team/team.ts'
import { bounded } from './bounded.ts'
import type { Outcome } from './host.ts'
import { type Ledger, UnknownWrite } from './ledger.ts'
import type { RunError } from './records.ts'

/** How long the outside may take to say what it has, once the clock of the phase is over. */
const ASK_MS = 30_000

/** What a call of an agent is bound to, beside what its surroundings know. */
export interface Binding {
  agent: string
  definition: AgentDefinition
  settings: Record<string, unknown>
  effect: Effect
  /** Idempotency key of the entry. */
  key: string
  signal: AbortSignal
}

/** What an attempt needs of the daemon. */
export interface Surroundings {
  /** Definition and resolved settings of `issues` or `issues@eu`. Throws `invalid_request` when either is missing. */
  agent(
    reference: string,
    signal: AbortSignal,
  ): Promise<{ definition: AgentDefinition; settings: Record<string, unknown> }>
  context(binding: Binding): AgentContext
  ledger: Ledger
  stateDir: string
  /** Makes sure that the workspace is there. */
  makeWorkspace(): void
  /** Replaces every known secret. */
  mask<T>(value: T): T
}

export interface Attempt {
  runId: string
  position: number
  attempt: number
  phase: StandardPhase | GatePhase
  scope: Scope
  /** Aborted by cancel, by the stop of the daemon, or with a `TimeoutError` by the phase's own clock. */
  signal: AbortSignal
}

/** One call of a handler. Phase-level calls have the empty name. */
interface Call {
  name: string
  entry: JsonObject
  handler: Handler
  phaseLevel: boolean
}

export async function execute(attempt: Attempt, around: Surroundings): Promise<Outcome> {
  try {
    const { phase } = attempt
    const agentCall = phase.type === 'gate' ? gateCall(phase) : phase
    const { definition, settings } = await around.agent(agentCall.agent, attempt.signal)
    const calls = callsOf(agentCall, definition, attempt.scope)
    const folder = join(around.stateDir, 'files', phase.name)
    if (attempt.attempt > 1) await rm(folder, { recursive: true, force: true })
    if (calls.some(call => call.phaseLevel)) {
      around.makeWorkspace()
      await mkdir(folder, { recursive: true, mode: 0o700 })
    }
    const written: FileRecord[] = []
    const results: [Call, AgentResult][] = []
    for (const call of calls) {
      attempt.signal.throwIfAborted()
      results.push([
        call,
        await perform(attempt, around, { agent: agentCall.agent, definition, settings }, call, written),
      ])
    }
    const files = calls.some(call => call.phaseLevel) ? await recordFiles(around.stateDir, phase.name) : written
    return { kind: 'completed', ...combine(results, phase.name, files), files }
  } catch (thrown) {
    return await failure(thrown, attempt.signal, around)
  }
}

async function perform(
  attempt: Attempt,
  around: Surroundings,
  agent: Pick<Binding, 'agent' | 'definition' | 'settings'>,
  { name, entry, handler }: Call,
  written: FileRecord[],
): Promise<AgentResult> {
  const { runId, position, signal } = attempt
  const effect = typeof handler.effect === 'function' ? handler.effect(entry) : handler.effect
  const key = idempotencyKey(runId, position, name)
  const contextUntil = (until: AbortSignal): AgentContext => {
    const bound = around.context({ ...agent, effect, key, signal: until })
    return {
      ...bound,
      async write(file, content) {
        const record = await bound.write(file, content)
        written.push(record)
        return record
      },
    }
  }
  const context = contextUntil(signal)
  const mask = (result: AgentResult) => around.mask(result)
  if (effect !== 'once') return mask(await handler.run(entry, context))
  return around.ledger.once({
    runId,
    position,
    attempt: attempt.attempt,
    entry: name,
    signal,
    mask,
    send: () => handler.run(entry, context),
    find:
      handler.find &&
      (() => handler.find!(entry, timedOut(signal) ? contextUntil(AbortSignal.timeout(ASK_MS)) : context)),
  })
}

/** The same over all attempts, so that a vendor that knows such keys sees one request. */
export function idempotencyKey(runId: string, position: number, entry: string): string {
  const hex = new Bun.CryptoHasher('sha256').update(`${runId}\0${position}\0${entry}`).digest('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** A gate's commands are the exec agent's. */
function gateCall(phase: GatePhase): AgentCall {
  const { commands } = phase
  return {
    agent: 'exec',
    sources: [],
    targets: [],
    fields: {
      source: '',
      place: phase.place,
      phases: new Set(commands.flatMap(command => [...command.env.phases])),
      evaluate: scope => ({
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

function callsOf(call: AgentCall, definition: AgentDefinition, scope: Scope): Call[] {
  const action = call.action === undefined ? undefined : definition.actions?.[call.action]
  const place = action ? `${call.agent}.${call.action}` : call.agent
  const calls: Call[] = []
  for (const [kind, list] of [
    ['source', call.sources],
    ['target', call.targets],
  ] as const) {
    const handler = action?.direction === kind ? action : definition[kind]
    for (const { name, entry } of list) {
      if (!handler) throw new CadreError('invalid_request', `[${place}] takes no ${kind} entries`)
      calls.push({ name, entry: entry.evaluate(scope) as JsonObject, handler, phaseLevel: false })
    }
  }
  const handler = action?.direction === 'phase' ? action : action ? undefined : definition.phase
  if (calls.length === 0) {
    if (!handler) throw new CadreError('invalid_request', `[${place}] needs sources or target_entries`)
    calls.push({ name: '', entry: call.fields.evaluate(scope) as JsonObject, handler, phaseLevel: true })
  }
  for (const { name, entry, handler } of calls) {
    const wrong = problems(handler.entry, entry)
    if (wrong.length === 0) continue
    const list = wrong.map(({ path, message }) => `${path.slice(1) || 'entry'}: ${message}`).join('; ')
    throw new CadreError('invalid_request', `[${place}] ${name ? `entry ${name}: ` : ''}${list}`, { details: wrong })
  }
  return calls
}

function combine(
  results: [Call, AgentResult][],
  phase: string,
  files: readonly FileRecord[],
): { text: string; data: Json } {
  const [call, only] = results[0]!
  const text = results.map(([, result]) => result.text).join('\n')
  if (call.phaseLevel) return { text, data: bounded(only.data ?? {}, phase, files) }
  const entries = Object.fromEntries(results.map(([{ name }, result]) => [name, result.data ?? {}]))
  const top = results.length === 1 && isObject(only.data) ? only.data : {}
  return { text, data: bounded({ ...top, entries }, phase, files) }
}

const timedOut = ({ aborted, reason }: AbortSignal): boolean => aborted && reason?.name === 'TimeoutError'

async function failure(thrown: unknown, signal: AbortSignal, around: Surroundings): Promise<Outcome> {
  if (signal.aborted && !timedOut(signal)) return { kind: 'cancelled' }
  if (thrown instanceof UnknownWrite) {
    const error = around.mask<RunError>({ code: 'unknown', message: thrown.message, hint: 'look outside, then decide' })
    return { kind: 'unknown', error, entries: [thrown.entry] }
  }
  if (timedOut(signal)) {
    const error = { code: 'timeout', message: messageOf(signal.reason) }
    return { kind: 'failed', error, retryable: true }
  }
  const known = thrown instanceof AgentError && thrown.code === 'disk_full'
  const reason = known ? thrown : ((await diskFull(thrown, around.stateDir)) ?? thrown)
  const error: RunError = { code: 'internal', message: messageOf(reason) }
  if (reason instanceof AgentError) {
    error.code = reason.code
    if (reason.hint !== undefined) error.hint = reason.hint
  } else if (reason instanceof CadreError) error.code = reason.code
  return { kind: 'failed', error: around.mask(error), retryable: reason instanceof AgentError && reason.retryable }
}
