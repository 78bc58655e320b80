// What the entries of most agents have in common: their schema, and the texts and words that they name.

import type { TProperties } from 'typebox'
import { Type } from '../type.ts'
import { type AgentContext, AgentError, withSent } from './define.ts'

/**
 * The schema of an entry: its name and these fields, no others. `together`: what holds for several of them.
 * @example entry: entryOf({ ref: Type.String(), limit: Limit })
 */
export function entryOf<P extends TProperties>(fields: P, together: object = {}) {
  return Type.Object({ name: Type.String({ minLength: 1 }), ...fields }, { additionalProperties: false, ...together })
}

/**
 * For the schema of an object: at least one of these optional fields is given.
 * @example entryOf({ query: Type.Optional(Text), tags: Type.Optional(Text) }, needsOne('query', 'tags'))
 */
export function needsOne(...names: string[]) {
  return { anyOf: names.map(name => ({ required: [name] })) }
}

/**
 * The optional setting `base_url`: the address in front of the vendor's own paths.
 * @example const Settings = Type.Object({ api_token: secret(), base_url: BaseUrl })
 */
export const BaseUrl = Type.Optional(Type.String({ pattern: '^https?://[^/]' }))

/**
 * For what a `once` action reads before it writes anything: an error of it says that nothing was sent.
 * @example const ticket = await beforehand(() => getTicket(ref, context))
 */
export async function beforehand<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read()
  } catch (error) {
    throw error instanceof AgentError ? withSent(error, 'no') : error
  }
}

/**
 * A text of the run or the workspace that is sent whole: at most `most` bytes, and not empty.
 * @example const body = await readText(context, entry.file, 64 * 1024)
 */
export async function readText(context: AgentContext<unknown>, path: string, most: number): Promise<string> {
  const file = await beforehand(() => context.read(path))
  const refuse = (why: string) => new AgentError(`${path} ${why}`, { code: 'invalid_request', sent: 'no' })
  if (file.size > most) throw refuse(`has ${file.size} bytes, and the vendor takes at most ${most}`)
  const text = await file.text()
  if (!text.trim()) throw refuse('is empty')
  return text
}

/** A short value, such as a status: as the entry gives it, else all that its file holds. */
export async function wordOf(
  context: AgentContext<unknown>,
  given: string | number | undefined,
  file: string | undefined,
): Promise<string> {
  return given === undefined ? (await readText(context, file ?? '', 1_000)).trim() : `${given}`
}
