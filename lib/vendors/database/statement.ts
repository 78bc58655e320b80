// A statement of SQL with its parameters, in the form that a database takes. Values never become part of the text.

import { AgentError } from '../../agent/core/agent-error.ts'
import type { Json } from '../../json.ts'
import { type Column, type Use, useOf, whyNoValues } from './lists.ts'
import { type Dialect, type Token, tokensOf } from './tokens.ts'

export type Params = Json[] | Record<string, Json>

export interface Statement {
  /** The text with the database's own placeholders. */
  text: string
  values: Json[]
  /** The lists among the values that only the database can judge. It must refuse them where they are neither an array nor JSON. */
  lists: ListValue[]
  /** The offset in the text as it was written, of an offset in `text`. */
  origin(offset: number): number
  /** The text as it was written. */
  written: string
  /** Whether it looks like more than one statement. It is said of what the database refuses, and decides nothing. */
  isSeveral: boolean
}

export interface ListValue {
  /** The index of the value. */
  at: number
  /** The column that gets it. Without one the database itself says of which type the value is. */
  column: Column | null
  /** The error for a callName that takes no list. */
  refused(): AgentError
}

/** Servers take 65,535 values in one statement, and SQLite 32,766. */
const VALUES_MOST = 32_000

/** What is wrong with more than one statement, and what to do. */
export const SEVERAL = ['`sql` must be a single statement', 'write an entry for each statement'] as const

/**
 * Reads a statement. `:name` takes the value of that name, and with a list of values the placeholders are the
 * database's own: `$1` for PostgreSQL, `?` for the others. A list that stands alone in `IN (:name)` becomes as many
 * values. Throws an AgentError for names that do not fit the parameters, for a list where one value belongs, and for a
 * second statement of SQLite, which would ignore it; servers refuse one themselves.
 */
export function statementOf(callName: string, provider: Dialect, written: string, params: Params = []): Statement {
  const refuse = (message: string, hint: string) =>
    new AgentError(`[${callName}] ${message}`, { code: 'invalid_request', hint, sent: 'no' })
  const values: Json[] = Array.isArray(params) ? [...params] : []
  const lists: ListValue[] = []
  const used = new Set<string>()
  /** The placeholders of values that PostgreSQL is given once, by name; those of IN have a list of them. */
  const numbers = new Map<string, string>()
  const moved: [at: number, origin: number][] = []
  let text = ''
  let end = 0
  const tokens: Token[] = []
  let isEnded = false
  let isSeveral = false
  for (const token of tokensOf(written, provider)) {
    if (token.kind === 'comment') continue
    if (token.text === ';') isEnded = true
    else isSeveral ||= isEnded
    tokens.push(token)
  }
  const put = (from: number, to: number, replacement: string) => {
    text += written.slice(end, from) + replacement
    end = to
    moved.push([text.length, end])
  }
  const placeholder = (value: Json) => {
    values.push(value)
    return provider === 'postgres' ? `$${values.length}` : '?'
  }
  const wrong = (label: string, use: Use) => {
    const name = Array.isArray(params) ? ':name' : label
    const every = `write ${use.kind === 'any' && use.isAll ? `\`NOT IN (${name})\`` : `\`IN (${name})\``}`
    const others =
      provider === 'postgres'
        ? ` or \`= ANY(${name})\`; only columns of arrays and JSON take a list`
        : '; only columns of JSON take a list'
    return refuse(
      `${label} is a list, and stands where one value belongs`,
      `${every}, with nothing else in the parentheses${use.kind === 'any' ? '' : others}`,
    )
  }
  /** Registers a list that is one value. */
  const whole = (label: string, list: readonly Json[], use: Use, at: number) => {
    if (use.kind === 'wrong' || use.kind === 'any' || use.kind === 'in') throw wrong(label, use)
    const problem = use.kind === 'typed' && use.isAll ? whyNoValues(list, true) : null
    if (problem) throw refuse(`${label} ${problem.problem}`, problem.hint)
    if (use.kind === 'json') return
    lists.push({ at, column: use.kind === 'column' ? use.of : null, refused: () => wrong(label, use) })
  }
  let marks = 0
  for (const [index, token] of tokens.entries()) {
    if (Array.isArray(params)) {
      // `?` of the others: those of PostgreSQL have a number.
      if (provider === 'postgres' || token.text !== '?' || token.kind !== 'other') continue
      const value = values[marks]
      if (Array.isArray(value))
        whole(`value ${marks + 1} of \`params\``, value, useOf(tokens, index, provider, false), marks)
      marks++
      continue
    }
    if (token.kind !== 'name') continue
    const name = token.text.slice(1)
    if (!Object.hasOwn(params, name)) {
      throw refuse(`\`sql\` uses :${name}, which is not in \`params\``, `add \`${name}\` to \`params\``)
    }
    used.add(name)
    const value = params[name]!
    const after = token.at + token.text.length
    const use = Array.isArray(value) ? useOf(tokens, index, provider, true) : null
    const key = use?.kind === 'in' ? `in ${name}` : name
    let known = provider === 'postgres' ? numbers.get(key) : undefined
    if (Array.isArray(value) && use?.kind === 'in') {
      const problem = whyNoValues(value, use.isNot)
      if (problem) throw refuse(`:${name} ${problem.problem}`, problem.hint)
      if (value.length === 0) {
        const last = tokens[use.to]!
        put(tokens[use.from]!.at, last.at + last.text.length, nothing(provider, use.isNot))
        continue
      }
      if (known === undefined && values.length + value.length > VALUES_MOST)
        throw tooMany(refuse, name, value, provider)
      known ??= value.map(placeholder).join(', ')
    } else if (known === undefined) {
      known = placeholder(value)
      if (Array.isArray(value)) whole(`:${name}`, value, use!, values.length - 1)
    } else if (Array.isArray(value)) whole(`:${name}`, value, use!, Number(known.slice(1)) - 1)
    numbers.set(key, known)
    put(token.at, after, known)
  }
  // PostgreSQL's own placeholders name their values, and it says of which type these are.
  if (Array.isArray(params) && provider === 'postgres') {
    for (const [at, value] of params.entries()) {
      if (Array.isArray(value)) whole(`value ${at + 1} of \`params\``, value, { kind: 'typed', isAll: false }, at)
    }
  }
  text += written.slice(end)
  if (isSeveral && provider === 'sqlite') throw refuse(...SEVERAL)
  const unused = Array.isArray(params) ? undefined : Object.keys(params).find(name => !used.has(name))
  if (unused !== undefined)
    throw refuse(`\`sql\` does not use \`params.${unused}\``, `write :${unused} where the value belongs`)
  const origin = (offset: number) => {
    const [at, from] = moved.findLast(([at]) => at <= offset) ?? [0, 0]
    return from + (offset - at)
  }
  return { text, values, lists, origin, written, isSeveral }
}

/** A condition that is false of each value that stands before it, also of NULL; with NOT it is true. */
function nothing(provider: Dialect, isNot: boolean): string {
  if (provider === 'postgres') return isNot ? "<> ALL ('{}')" : "= ANY ('{}')"
  const none = provider === 'mysql' ? '(SELECT NULL FROM (SELECT 1) AS cadre_none WHERE 1 = 0)' : '()'
  return `${isNot ? 'NOT IN' : 'IN'} ${none}`
}

function tooMany(
  refuse: (message: string, hint: string) => AgentError,
  name: string,
  list: readonly Json[],
  provider: Dialect,
): AgentError {
  const instead =
    provider === 'postgres'
      ? `write \`= ANY(:${name})\`, which takes the list as one value`
      : 'give the statement a part of the list at a time, as the items of a `map` phase'
  return refuse(`:${name} has ${list.length} values, and one statement takes ${VALUES_MOST}`, instead)
}

/** The line and column of an offset in the written text, and the text from there on. */
export function spotOf({ written }: Pick<Statement, 'written'>, offset: number): string {
  const before = written.slice(0, offset).split('\n')
  const near = /^.{0,40}/.exec(written.slice(offset))?.[0] ?? ''
  return `line ${before.length}, column ${before.at(-1)!.length + 1}${near && `, at ${JSON.stringify(near)}`}`
}
