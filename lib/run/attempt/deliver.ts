// Sends one delivery of the ledger and records what came of it. Before a `once` effect it is marked as `sent`, so that what
// may have been sent before a kill is never sent again.

import type { AgentContext, NotifyEvent } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import type { JsonObject } from '../../json.ts'
import { limitSignal } from '../../lived-time.ts'
import { problems } from '../../schema/schema.ts'
import { type Masked, type MaskedText, maskedText, recordedText } from '../../secrets/masked.ts'
import type { Binding, ContextHooks, DeliveryRow, EngineHost } from '../core/core.ts'
import { textOf } from '../steps/steps.ts'
import { endWithSignal, keepFilesOpen, noteRequests } from './agent-call.ts'

/** What an agent is asked to tell. */
export interface Payload {
  agent: string
  entry: JsonObject
  event: NotifyEvent
}

export interface Sending extends Payload {
  /** Idempotency key. */
  key: string
  /** Maximum number of milliseconds. */
  timeout: number
  /** Fires when the process stops. */
  stop: AbortSignal
  find(): ReturnType<EngineHost['agent']>
  context(binding: Binding, hooks: ContextHooks): AgentContext
  mask<T>(value: T): Masked<T>
  /** Records the new state; the promise settles once it is on disk. */
  set(state: DeliveryRow['state'], error: MaskedText | null): Promise<void>
  /** Receives why it was not delivered, for the log. */
  failed(text: MaskedText): void
}

/** Throws only what `set` throws. */
export async function deliver(sending: Sending): Promise<void> {
  const { agent, entry, event, key, stop, timeout, set } = sending
  const requests = noteRequests()
  const files = keepFilesOpen()
  let mayBeSent = false
  try {
    const { definition, settings } = await sending.find()
    const handler = definition.notify
    if (!handler) throw new AgentError(`agent ${agent} handles no events`)
    const wrong = problems(handler.entry, entry)
    if (wrong.length > 0) {
      const list = wrong.map(({ path, message }) => `${path.slice(1)}: ${message}`).join('; ')
      throw new AgentError(`[${agent}] ${list}`)
    }
    const effect = typeof handler.effect === 'function' ? handler.effect(entry) : handler.effect
    if (effect === 'once') await set('sent', null)
    mayBeSent = effect === 'once'
    using over = limitSignal(timeout)
    const signal = AbortSignal.any([stop, over.signal])
    const binding = { agent, definition, settings, effect, key, signal }
    const context = sending.context(binding, { event, ...requests.hooks, ...files.hooks })
    await endWithSignal(
      files.closeAfter(() => handler.run(entry, context)),
      signal,
      STOP_MS,
    )
    await set('delivered', null)
  } catch (thrown) {
    await recordFailure(sending, thrown, mayBeSent, requests.onlyRead())
  }
}

async function recordFailure(sending: Sending, thrown: unknown, mayBeSent: boolean, onlyRead: boolean): Promise<void> {
  const { event, mask, set, stop, timeout } = sending
  const { code, ...error } = agentErrorOf(thrown)
  const sent = onlyRead ? 'no' : error.sent
  if (stop.aborted) {
    // Interrupted, not failed: the next start sends what is `pending`, and marks what is `sent` as `unknown`.
    if (sent === 'no') await set('pending', null)
    return
  }
  const isLate = code === 'aborted'
  const late = `it did not return within ${timeout / 1_000} s`
  const said = mask(isLate ? late : textOf(thrown))
  const isDoubtful = sent === 'unknown' || (isLate && mayBeSent && sent !== 'no')
  const what = isDoubtful ? maskedText`may not have been delivered` : maskedText`was not delivered`
  sending.failed(maskedText`${recordedText(event.name)} ${what}: ${said}`)
  await set(isDoubtful ? 'unknown' : 'failed', said)
}

/** The fields of an AgentError. Any other thrown value has none, and may throw when it is read. */
function agentErrorOf(thrown: unknown): Partial<Pick<AgentError, 'sent' | 'code'>> {
  try {
    return thrown instanceof AgentError ? { sent: thrown.sent, code: thrown.code } : {}
  } catch {
    return {}
  }
}

/** How long a listener has to stop after its time-out. */
const STOP_MS = 200
