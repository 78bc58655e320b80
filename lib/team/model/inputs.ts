// Inputs of a team or of a review's form: compares what was given with what is declared. Values are never converted,
// except those of the command line (`-i name=value`), which are text and are read by their declared type.

import { CadreError, type Detail } from '../../error.ts'
import { isObject, type Json, type JsonObject } from '../../json.ts'
import { didYouMean } from '../../text/spelling.ts'
import type { Field, FieldType } from './compiled-team.ts'

const NAMES: Record<FieldType, string> = {
  string: 'text',
  number: 'a number',
  boolean: 'true or false',
  list: 'a list',
  object: 'an object',
  file: 'the path of a file',
}

export function isOfType(value: Json, type: FieldType): boolean {
  switch (type) {
    case 'string':
    case 'file':
      return typeof value === 'string'
    case 'number':
      return typeof value === 'number' && Number.isFinite(value)
    case 'boolean':
      return typeof value === 'boolean'
    case 'list':
      return Array.isArray(value)
    case 'object':
      return isObject(value)
  }
}

/**
 * The function of expressions that makes `value` one of `type`: of a text that is a number, as databases give decimals,
 * and of a number for a text. Null when there is none.
 */
export function conversionOf(value: Json, type: FieldType): 'double' | 'string' | null {
  if (type === 'number' && typeof value === 'string') {
    return value.trim() !== '' && Number.isFinite(Number(value)) ? 'double' : null
  }
  return type === 'string' && (typeof value === 'number' || typeof value === 'boolean') ? 'string' : null
}

/**
 * The problem with `value` as the value of `field`; null when there is none. The message does not repeat the value,
 * which may be a secret.
 */
export function problemWith(value: Json, field: Omit<Field, 'name'>): string | null {
  if (!isOfType(value, field.type)) return `expected ${NAMES[field.type]}, not ${typeName(value)}`
  if (field.choices && !field.choices.some(choice => Bun.deepEquals(choice, value))) {
    return `expected one of ${field.choices.map(choice => JSON.stringify(choice)).join(', ')}`
  }
  return null
}

function typeName(value: Json): string {
  if (value === null) return 'nothing'
  if (Array.isArray(value)) return 'a list'
  return typeof value === 'object' ? 'an object' : typeof value === 'string' ? 'text' : `a ${typeof value}`
}

/**
 * The values that a run gets: the given ones, and defaults for the others. `null` counts as not given. Problems have
 * the path `/inputs/<name>`. Values that are `untyped` may be anything.
 */
export function inputsFor(
  fields: readonly Field[],
  given: JsonObject,
  untyped: readonly string[] = [],
): { values: JsonObject; problems: Detail[] } {
  const values: JsonObject = {}
  const problems: Detail[] = []
  for (const field of fields) {
    const value = Object.hasOwn(given, field.name) ? given[field.name]! : null
    if (value !== null) {
      const problem = problemWith(value, field)
      if (problem) problems.push({ path: `/inputs/${field.name}`, message: `input ${field.name}: ${problem}` })
      else values[field.name] = value
    } else if (field.default !== undefined) values[field.name] = field.default
    else if (field.required) {
      problems.push({ path: `/inputs/${field.name}`, message: `input ${field.name} is required: ${NAMES[field.type]}` })
    }
  }
  const names = fields.map(field => field.name)
  for (const [name, value] of Object.entries(given)) {
    if (names.includes(name)) continue
    if (untyped.includes(name)) {
      if (value !== null) values[name] = value
      continue
    }
    problems.push({ path: `/inputs/${name}`, message: `no input ${name} is declared${didYouMean(name, names)}` })
  }
  return { values, problems }
}

/**
 * Converts arguments of the command line, each `name=value`. Text stays text; numbers, `true`, `false`, lists and
 * objects are read as JSON; `name=@file` reads the value from a file (an input of type `file` keeps the path), and
 * `name=@@text` is a value that begins with `@`. Throws `invalid_request` that names the input.
 */
export async function inputsFromArguments(fields: readonly Field[], given: readonly string[]): Promise<JsonObject> {
  const values: JsonObject = {}
  for (const argument of given) {
    const at = argument.indexOf('=')
    if (at < 1) throw new CadreError('invalid_request', `-i ${argument}: expected name=value or name=@file`)
    const name = argument.slice(0, at)
    const field = fields.find(each => each.name === name)
    if (!field) {
      const near = didYouMean(
        name,
        fields.map(each => each.name),
      )
      throw new CadreError('invalid_request', `-i ${name}: the team has no input of this name${near}`)
    }
    values[name] = fromText(field, await textOf(name, field, argument.slice(at + 1)))
  }
  return values
}

async function textOf(name: string, field: Field, text: string): Promise<string> {
  if (!text.startsWith('@')) return text
  const path = text.slice(1)
  if (field.type === 'file' || path.startsWith('@')) return path
  const file = Bun.file(path)
  if (await file.exists()) return file.text()
  throw new CadreError('invalid_request', `-i ${name}: there is no file ${path}`)
}

function fromText(field: Field, text: string): Json {
  if (field.type === 'string' || field.type === 'file') return text
  try {
    const value = JSON.parse(text) as Json
    if (isOfType(value, field.type)) return value
  } catch {
    // Reported below, together with values of another type.
  }
  throw new CadreError(
    'invalid_request',
    `-i ${field.name}: expected ${NAMES[field.type]}${EXAMPLES[field.type] ?? ''}`,
  )
}

const EXAMPLES: Partial<Record<FieldType, string>> = { list: ' as JSON, such as ["a","b"]', object: ' as JSON' }
