// Checks an agent's definition before the core uses it, and lists every problem in words for its author. Pure.

import { A_DURATION, parseDuration } from '../duration.ts'
import { isObject, isTexts } from '../json.ts'
import { Type } from '../schema/type.ts'
import { LEND } from './define.ts'

const SEMVER = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/
const ACTION_NAME = /^[a-z][a-z0-9_]*$/
const EFFECTS = ['read', 'idempotent', 'once']
const DIRECTIONS = ['source', 'target', 'phase']
const ENTRY_HANDLERS = ['source', 'target', 'phase'] as const

const FIELDS = [
  'type',
  'version',
  'description',
  'settings',
  'missing',
  'check',
  'addresses',
  'doctor',
  'account',
  'actions',
  'notify',
  ...ENTRY_HANDLERS,
]
const HANDLER_FIELDS = [
  'description',
  'effect',
  'example',
  'entry',
  'data',
  'run',
  'find',
  'sees',
  'settles',
  'permissions',
]
const ACTION_FIELDS = [...HANDLER_FIELDS, 'direction']

/** All problems of the definition that a file exports; empty when it is a valid agent. */
export function problemsOf(definition: Record<string, unknown>): string[] {
  const { type, version, description, settings, actions } = definition
  const problems = unknownFields(definition, FIELDS, 'the agent')
  if (type !== 'connector' && type !== 'exec') problems.push(`type must be 'connector' or 'exec', not ${show(type)}`)
  if (typeof version !== 'string' || !SEMVER.test(version)) {
    problems.push(`version must be a semantic version such as '1.0.0', not ${show(version)}`)
  }
  if (typeof description !== 'string' || !description.trim())
    problems.push('description must be a sentence that says what the agent does')
  if (!isObjectSchema(settings))
    problems.push('settings must be a Type.Object({ … }); leave them out for an agent without settings')
  if (definition.missing !== undefined && typeof definition.missing !== 'function') {
    problems.push('missing must be a function that takes the settings and returns a list of keys')
  }
  if (definition.check !== undefined && typeof definition.check !== 'function') {
    problems.push('check must be a function that takes the settings and returns what is wrong, by key')
  }
  if (definition.addresses !== undefined && typeof definition.addresses !== 'function') {
    problems.push('addresses must be a function that takes the settings and returns a list of addresses')
  }
  if (definition.doctor !== undefined && typeof definition.doctor !== 'function') {
    problems.push('doctor must be a function that takes the context')
  }
  if (definition.account !== undefined && typeof definition.account !== 'function') {
    problems.push('account must be a function that takes the context and returns {base, headers}')
  }
  if (
    definition.account !== undefined &&
    isObject(settings) &&
    isObject(settings.properties) &&
    LEND in settings.properties
  ) {
    problems.push(`settings must not have \`${LEND}\`, which every agent with an account has: give it another name`)
  }
  if (actions !== undefined) problems.push(...actionProblems(actions))
  for (const field of [...ENTRY_HANDLERS, 'notify'] as const) {
    if (definition[field] === undefined) continue
    problems.push(...handlerProblems(definition[field], field, HANDLER_FIELDS))
  }
  if (![...ENTRY_HANDLERS, 'actions', 'notify'].some(field => definition[field] !== undefined)) {
    problems.push('the agent does nothing: add actions, source, target, phase or notify')
  }
  return problems
}

function actionProblems(actions: unknown): string[] {
  if (!isObject(actions) || Object.keys(actions).length === 0)
    return ['actions must be an object with at least one named action']
  return Object.entries(actions).flatMap(([name, action]) => {
    const problems = handlerProblems(action, `actions.${name}`, ACTION_FIELDS)
    if (!ACTION_NAME.test(name)) problems.push(`actions.${name}: the name of an action must match [a-z][a-z0-9_]*`)
    if (!isObject(action)) return problems
    if (!DIRECTIONS.includes(action.direction as string)) {
      problems.push(`actions.${name}.direction must be 'source', 'target' or 'phase', not ${show(action.direction)}`)
    }
    return problems
  })
}

function handlerProblems(handler: unknown, path: string, fields: string[]): string[] {
  if (!isObject(handler)) return [`${path} must be an object with effect, entry and run`]
  const problems = unknownFields(handler, fields, path)
  if (typeof handler.effect !== 'function' && !EFFECTS.includes(handler.effect as string)) {
    problems.push(
      `${path}.effect must be 'read', 'idempotent', 'once' or a function of the entry, not ${show(handler.effect)}`,
    )
  }
  if (handler.description !== undefined && typeof handler.description !== 'string') {
    problems.push(`${path}.description must be a string`)
  }
  if (handler.example !== undefined && !isObject(handler.example)) {
    problems.push(`${path}.example must be an entry, such as { name: 'item', ref: '1' }`)
  }
  if (!isObjectSchema(handler.entry)) problems.push(`${path}.entry must be a Type.Object({ … })`)
  if (handler.data !== undefined && !isObject(handler.data)) {
    problems.push(`${path}.data must be a schema, such as Type.Object({ … })`)
  }
  if (typeof handler.run !== 'function') problems.push(`${path}.run must be a function (entry, context)`)
  if (handler.find !== undefined && typeof handler.find !== 'function')
    problems.push(`${path}.find must be a function (entry, context)`)
  if (handler.sees !== undefined && handler.sees !== 'at once') {
    problems.push(`${path}.sees must be 'at once', or be left out, not ${show(handler.sees)}`)
  }
  if (handler.settles !== undefined && !isDuration(handler.settles)) {
    problems.push(`${path}.settles must be ${A_DURATION}, not ${show(handler.settles)}`)
  }
  if (handler.permissions !== undefined && typeof handler.permissions !== 'function' && !isTexts(handler.permissions)) {
    problems.push(`${path}.permissions must be a list of texts, or a function of the entry that returns one`)
  }
  for (const field of ['sees', 'settles']) {
    if (handler[field] !== undefined && handler.find === undefined) {
      problems.push(`${path}.${field} says how soon find sees a write: add find, or remove it`)
    }
  }
  return problems
}

function unknownFields(value: Record<string, unknown>, known: string[], path: string): string[] {
  return Object.keys(value)
    .filter(key => !known.includes(key))
    .map(key => `${path} has an unknown field '${key}': expected ${known.join(', ')}`)
}

function isObjectSchema(value: unknown): boolean {
  return isObject(value) && Type.IsObject(value)
}

const isDuration = (value: unknown): boolean => typeof value === 'string' && parseDuration(value) !== null

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : value === undefined ? 'missing' : typeof value
}
