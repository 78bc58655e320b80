// A statement of SQL with its parameters, in the form that a database takes. Values never become part of the text.

import { AgentError } from '../../agent/agent-error.ts'
import type { Json } from '../../json.ts'
import { type Dialect, tokensOf } from './tokens.ts'

export type Params = Json[] | Record<string, Json>

export interface Statement {
  /** The text with the database's own placeholders. */
  text: string
  values: Json[]
  /** The offset in the text as it was written, of an offset in `text`. */
  origin(offset: number): number
  /** The text as it was written. */
  written: string
  /** Whether it looks like more than one statement. It is said of what the database refuses, and decides nothing. */
  isSeveral: boolean
}

/** What is wrong with more than one statement, and what to do. */
export const SEVERAL = ['`sql` must be a single statement', 'write an entry for each statement'] as const

/**
 * Reads a statement. `:name` takes the value of that name, and with a list of values the placeholders are the
 * database's own: `$1` for PostgreSQL, `?` for the others. Throws an AgentError for names that do not fit the
 * parameters, and for a second statement of SQLite, which would ignore it; servers refuse one themselves.
 */
export function statementOf(place: string, provider: Dialect, written: string, params: Params = []): Statement {
  const refuse = (message: string, hint: string) =>
    new AgentError(`[${place}] ${message}`, { code: 'invalid_request', hint, sent: 'no' })
  const values: Json[] = Array.isArray(params) ? [...params] : []
  const numbers = new Map<string, number>()
  const moved: [at: number, origin: number][] = []
  let text = ''
  let end = 0
  let isEnded = false
  let isSeveral = false
  for (const token of tokensOf(written, provider)) {
    if (token.text === ';') isEnded = true
    else if (isEnded && token.kind !== 'comment') isSeveral = true
    if (token.kind !== 'name' || Array.isArray(params)) continue
    const name = token.text.slice(1)
    if (!Object.hasOwn(params, name)) {
      throw refuse(`\`sql\` uses :${name}, which is not in \`params\``, `add \`${name}\` to \`params\``)
    }
    text += written.slice(end, token.at)
    if (provider !== 'postgres' || !numbers.has(name)) values.push(params[name]!)
    if (!numbers.has(name)) numbers.set(name, values.length)
    text += provider === 'postgres' ? `$${numbers.get(name)}` : '?'
    end = token.at + token.text.length
    moved.push([text.length, end])
  }
  text += written.slice(end)
  if (isSeveral && provider === 'sqlite') throw refuse(...SEVERAL)
  const unused = Array.isArray(params) ? undefined : Object.keys(params).find(name => !numbers.has(name))
  if (unused !== undefined)
    throw refuse(`\`sql\` does not use \`params.${unused}\``, `write :${unused} where the value belongs`)
  const origin = (offset: number) => {
    const [at, from] = moved.findLast(([at]) => at <= offset) ?? [0, 0]
    return from + (offset - at)
  }
  return { text, values, origin, written, isSeveral }
}

/** The line and column of an offset in the written text, and the text from there on. */
export function spotOf({ written }: Pick<Statement, 'written'>, offset: number): string {
  const before = written.slice(0, offset).split('\n')
  const near = /^.{0,40}/.exec(written.slice(offset))?.[0] ?? ''
  return `line ${before.length}, column ${before.at(-1)!.length + 1}${near && `, at ${JSON.stringify(near)}`}`
}
