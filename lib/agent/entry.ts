// Shared by the entries of most agents: their schema, and reading the texts and short values that they name.

import type { TProperties } from 'typebox'
import { Type } from '../schema/type.ts'
import type { AgentContext, AgentResult } from './agent-context.ts'
import { AgentError, withSent } from './core/agent-error.ts'

export const EntryName = Type.String({
  minLength: 1,
  description: 'The name of the entry, and of the file that it writes, if it writes one.',
})

/**
 * The schema of an entry of `sources` or `target_entries`: `name` and the given fields, and no others. `together` adds
 * rules over several fields. An action of direction `phase` takes no entry, so its schema is a plain `Type.Object`.
 * @example entry: entryOf({ ref: Type.String(), limit: Limit })
 */
export function entryOf<P extends TProperties>(fields: P, together: object = {}) {
  return Type.Object({ name: EntryName, ...fields }, { additionalProperties: false, ...together })
}

/**
 * A field of an entry that names a file of the run or the workspace. Before a run begins, people are told of a file that lies
 * only beside team.yml.
 * @example entry: entryOf({ file: filePath('The path of the file that is sent.') })
 */
export function filePath(description: string) {
  return Type.String({ minLength: 1, description, 'x-file': true })
}

/** Whether a schema is of `filePath`. */
export const isFilePath = (schema: object): boolean => 'x-file' in schema

/**
 * A rule for the schema of an object: at least one of these optional fields must be present.
 * @example entryOf({ query: Type.Optional(Text), tags: Type.Optional(Text) }, needsOne('query', 'tags'))
 */
export function needsOne(...names: string[]) {
  return { anyOf: names.map(name => ({ required: [name] })) }
}

/**
 * The optional setting `base_url`: the address that precedes the vendor's paths.
 * @example const Settings = Type.Object({ api_token: secret(), base_url: BaseUrl })
 */
export const BaseUrl = Type.Optional(
  Type.String({
    pattern: '^https?://[^/]',
    'x-expected': 'an address such as https://api.example.com',
    description: "The address that precedes the vendor's paths, for self-hosted and regional servers.",
  }),
)

/**
 * Wraps what a `once` action reads before its first write, so that an error of the read has `sent: 'no'`.
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
 * Reads a text file of the run or the workspace that is sent as a whole. It must not be empty, and must have at most
 * `most` bytes.
 * @example const body = await readText(context, entry.file, 64 * 1024)
 */
export async function readText(context: AgentContext<unknown>, path: string, most: number): Promise<string> {
  const file = await beforehand(() => context.read(path))
  const refuse = (why: string) => new AgentError(`${path} ${why}`, { code: 'invalid_request', sent: 'no' })
  if (file.size > most) throw refuse(`has ${file.size} bytes, but the vendor accepts at most ${most}`)
  const text = await file.text()
  if (!text.trim()) throw refuse('is empty')
  return text
}

/** A short value, such as a status: the value in the entry, or else the content of the entry's file. */
export async function wordOf(
  context: AgentContext<unknown>,
  given: string | number | undefined,
  file: string | undefined,
): Promise<string> {
  return given === undefined ? (await readText(context, file ?? '', 1_000)).trim() : `${given}`
}

/** What `find` returns for what it has found: null, the one result, or all of them. */
export function foundAmong(results: readonly AgentResult[]): AgentResult | AgentResult[] | null {
  return results.length > 1 ? [...results] : (results[0] ?? null)
}
