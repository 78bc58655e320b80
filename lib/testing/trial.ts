// What every check of the suite is built on: a trial of one call at a vendor of its own, and its outcome.

import { expect, test } from 'bun:test'
import type { AgentResult } from '../agent/agent-context.ts'
import { AgentError } from '../agent/core/agent-error.ts'
import type { Effect } from '../agent/core/effect.ts'
import type { Handler } from '../agent/define.ts'
import type { JsonObject } from '../json.ts'
import { leavesOf } from '../settings/settings.ts'
import type { AgentTest, Example } from './example.ts'
import { type FakeVendor, isFake, type Vendor } from './fake-vendor.ts'
import type { CallOptions, Subject } from './subject.ts'

/** Long enough for a busy machine. A call that hangs is ended by it. */
const MOST_MS = 20_000

export function check(what: string, work: () => void | Promise<void>): void {
  test(what, work, MOST_MS)
}

export interface Trial<V extends Vendor = FakeVendor> {
  subject: Subject<V>
  call: string
  handler: Handler
  effect: Effect
  /** Opens a vendor; of this very one the example is, where it depends on it. */
  open(): V | Promise<V>
  example(vendor: V): Example
  /** What does not depend on the vendor. */
  request: RegExp
  names: string
  scope: string | undefined
  anyReply: boolean
  /** Whether its settings contain credentials. */
  hasSecrets: boolean
  /** Whether the vendor is a `FakeVendor`, so that the checks of requests apply. */
  overHttp: boolean
}

export async function trialOf<V extends Vendor>(
  subject: Subject<V>,
  call: string,
  { vendor: open, examples, settings }: AgentTest<V>,
): Promise<Trial<V>> {
  const given = examples[call]!
  const example = (vendor: V) => (typeof given === 'function' ? given(vendor) : given)
  await using vendor = await open()
  const { entry, request, scope, names, anyReply = false } = example(vendor)
  const handler = subject.handler(call)
  const effect = typeof handler.effect === 'function' ? handler.effect(entry) : handler.effect
  const callName = subject.agent.actions?.[call] ? `${subject.name}.${call}` : subject.name
  return {
    ...{ subject, call, handler, effect, open, example, scope, anyReply },
    request: request ?? (effect === 'read' ? /./ : /^(POST|PUT|PATCH|DELETE) /),
    names: names ?? `[${callName}]`,
    overHttp: isFake(vendor),
    hasSecrets: withOtherSecrets(settings(vendor), await subject.secretsOf(settings(vendor))) !== null,
  }
}

/** The same settings with credentials that the vendor does not know. Null when the settings contain none. */
export function withOtherSecrets(settings: JsonObject, secrets: readonly { value: string }[]): JsonObject | null {
  const values = new Set(secrets.map(({ value }) => value))
  const isSecret = (value: unknown) => typeof value === 'string' && values.has(value)
  if (!leavesOf(settings).some(({ value }) => isSecret(value))) return null
  return JSON.parse(JSON.stringify(settings), (_, value) => (isSecret(value) ? `${value}-of-nobody` : value))
}

/** The outcome of a call. Nothing is masked. */
export interface Tried {
  result: AgentResult | null
  error: unknown
  files: Record<string, string>
  lines: string[]
  mask(text: string): string
  ms: number
  workspace: string
}

/** What of an example is said of a call. */
export function callOf({ entry, files, event, prepare }: Example): CallOptions & { entry: JsonObject } {
  return { entry, ...(files && { files }), ...(event && { event }), ...(prepare && { prepare }) }
}

/** Calls the example at this vendor. An error of the agent is returned, not thrown. */
export async function attempt<V extends Vendor>(
  { subject, call, example }: Trial<V>,
  vendor: V,
  options: CallOptions & { workspace?: string } = {},
): Promise<Tried> {
  const { entry, ...given } = callOf(example(vendor))
  const prepared = await subject.prepareCall(vendor, call, entry, { ...given, ...options })
  const startedAt = performance.now()
  const went = await prepared.run().then(
    result => ({ result, error: null }),
    (error: unknown) => ({ result: null, error }),
  )
  const { lines, mask, workspace } = prepared
  return { ...went, files: prepared.files(), lines, mask, ms: performance.now() - startedAt, workspace }
}

/** The error of a call. Throws unless the agent itself reported the failure and wrote no file. */
export function failureOf({ result, error, files }: Tried): AgentError {
  expect(result, 'the call must fail').toBeNull()
  if (!(error instanceof AgentError)) throw new Error('the call must fail with an AgentError', { cause: error })
  expect(error.message.trim()).not.toBe('')
  expect(error.message).not.toMatch(/\bundefined\b|\[object \w+\]/)
  expect(files, 'a call that fails writes no file').toEqual({})
  return error
}

/** How often the request that does the work was sent. */
export function timesSent({ request }: Pick<Trial, 'request'>, { seen }: FakeVendor): number {
  return seen.filter(({ method, path }) => request.test(`${method} ${path}`)).length
}
