// Whether a definition can be trusted by the core: every problem of it, in words for its author. Pure.

import { isObject } from '../json.ts'
import { Type } from '../type.ts'

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
  'doctor',
  'actions',
  'notify',
  ...ENTRY_HANDLERS,
]
const HANDLER_FIELDS = ['effect', 'entry', 'run', 'find']
const ACTION_FIELDS = [...HANDLER_FIELDS, 'direction', 'description']

/** All that is wrong with what a file exports; empty when it is a sound agent. */
export function problemsOf(definition: Record<string, unknown>): string[] {
  const { type, version, description, settings, actions } = definition
  const problems = unknownFields(definition, FIELDS, 'the agent')
  if (type !== 'connector' && type !== 'exec') problems.push(`type is ${show(type)}: expected 'connector' or 'exec'`)
  if (typeof version !== 'string' || !SEMVER.test(version)) {
    problems.push(`version is ${show(version)}: expected a semantic version such as '1.0.0'`)
  }
  if (typeof description !== 'string' || !description.trim())
    problems.push('description is missing: one sentence for people')
  if (!isObjectSchema(settings))
    problems.push('settings is no Type.Object({ … }): an agent without settings has Type.Object({})')
  if (definition.missing !== undefined && typeof definition.missing !== 'function') {
    problems.push('missing is no function of the settings that gives keys')
  }
  if (definition.doctor !== undefined && typeof definition.doctor !== 'function') {
    problems.push('doctor is no function of the context')
  }
  if (actions !== undefined) problems.push(...actionProblems(actions))
  for (const field of [...ENTRY_HANDLERS, 'notify'] as const) {
    if (definition[field] === undefined) continue
    problems.push(...handlerProblems(definition[field], field, HANDLER_FIELDS))
    if (actions !== undefined && field !== 'notify')
      problems.push(`${field} stands beside actions: an agent has one or the other`)
  }
  if (![...ENTRY_HANDLERS, 'actions', 'notify'].some(field => definition[field] !== undefined)) {
    problems.push('it does nothing: give it actions, source, target, phase or notify')
  }
  return problems
}

function actionProblems(actions: unknown): string[] {
  if (!isObject(actions) || Object.keys(actions).length === 0) return ['actions is no object of named actions']
  return Object.entries(actions).flatMap(([name, action]) => {
    const problems = handlerProblems(action, `actions.${name}`, ACTION_FIELDS)
    if (!ACTION_NAME.test(name)) problems.push(`actions.${name}: the name of an action is [a-z][a-z0-9_]*`)
    if (!isObject(action)) return problems
    if (!DIRECTIONS.includes(action.direction as string)) {
      problems.push(`actions.${name}.direction is ${show(action.direction)}: expected 'source', 'target' or 'phase'`)
    }
    if (action.description !== undefined && typeof action.description !== 'string') {
      problems.push(`actions.${name}.description is no text`)
    }
    return problems
  })
}

function handlerProblems(handler: unknown, place: string, fields: string[]): string[] {
  if (!isObject(handler)) return [`${place} is no object with effect, entry and run`]
  const problems = unknownFields(handler, fields, place)
  if (typeof handler.effect !== 'function' && !EFFECTS.includes(handler.effect as string)) {
    problems.push(
      `${place}.effect is ${show(handler.effect)}: expected 'read', 'idempotent', 'once' or a function of the entry`,
    )
  }
  if (!isObjectSchema(handler.entry)) problems.push(`${place}.entry is no Type.Object({ … })`)
  if (typeof handler.run !== 'function') problems.push(`${place}.run is no function (entry, context)`)
  if (handler.find !== undefined && typeof handler.find !== 'function') problems.push(`${place}.find is no function`)
  return problems
}

function unknownFields(value: Record<string, unknown>, known: string[], place: string): string[] {
  return Object.keys(value)
    .filter(key => !known.includes(key))
    .map(key => `${place} has an unknown field '${key}': expected ${known.join(', ')}`)
}

function isObjectSchema(value: unknown): boolean {
  return isObject(value) && Type.IsObject(value)
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : value === undefined ? 'missing' : typeof value
}
