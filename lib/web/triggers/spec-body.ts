// What the form of a trigger says, as the body of a call. Everything in the form is text; an empty text is nothing.

import type { Static } from 'typebox'
import type { JsonObject } from '../../json.ts'
import type { AddTrigger, UpdateTrigger } from '../../wire/calls/triggers.ts'
import type { Field } from '../../wire/records/forms.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import { type Typed, textOf, valuesOf } from '../kit/forms.tsx'
import { numberOf, ownPart, ownTexts, type SpecTexts } from './own-fields.ts'
import type { Shown } from './place.ts'

export const RULES = { cron: 'at times of a clock', every: 'at a distance', at: 'once' } as const
export type Rule = keyof typeof RULES

const OF_RULE: Record<Rule, readonly string[]> = { cron: ['cron', 'tz'], every: ['every', 'from'], at: ['at', 'tz'] }
const HOLDS = ['overlap', 'queue_max'] as const
const LATE = ['catch_up', 'window', 'max', 'late_after', 'jitter'] as const
const OPTIONS = [...HOLDS, ...LATE] as const
/** What a trigger may be without. An empty text removes it. */
const NULLABLE = ['when', 'workspace', 'environment', 'run_name'] as const
const NUMBERS: readonly string[] = ['queue_max', 'max']

type Changes = Omit<Static<(typeof UpdateTrigger)['body']>, 'trigger_id' | 'revision'>
export type NewTrigger = Static<(typeof AddTrigger)['body']>

/** The texts with which the form of a trigger begins. */
export function textsOf(trigger: Shown): SpecTexts {
  const { at_most, ...fields } = trigger
  const names = ['name', 'team', ...RULE_FIELDS, ...OPTIONS, ...NULLABLE, 'priority', 'queue_timeout']
  const texts = names.flatMap(name => {
    const value = (fields as Record<string, unknown>)[name]
    return value === undefined || value === null ? [] : [[name, String(value)] as const]
  })
  return {
    ...Object.fromEntries(texts),
    ...{ ...ownTexts(trigger.kind, trigger), kind: trigger.kind },
    ...(trigger.kind === 'schedule' && { rule: ruleOf(trigger) }),
    labels: labelsText(trigger),
    ...(at_most && { count: String(at_most.count), per: at_most.per }),
  }
}

const RULE_FIELDS = [...new Set(Object.values(OF_RULE).flat())]

const ruleOf = ({ every, at }: Shown): Rule => (every !== undefined ? 'every' : at !== undefined ? 'at' : 'cron')

const given = (texts: SpecTexts, name: string): string => texts[name]?.trim() ?? ''

/** The texts with which the form of a new trigger begins. */
export const newTexts = (kind: TriggerKind, { tz }: { tz: string }): SpecTexts =>
  kind === 'schedule' ? { kind, rule: 'cron', tz } : { kind, ...ownTexts(kind) }

/** What says when an occasion is there, for a preview, and what happens while a run goes on. */
export function rulePart(texts: SpecTexts) {
  const names = texts.rule === undefined ? HOLDS : [...OF_RULE[texts.rule as Rule], ...OPTIONS]
  const body = names.flatMap(name => {
    const text = given(texts, name)
    return text === '' ? [] : [[name, NUMBERS.includes(name) ? numberOf(name, text) : text] as const]
  })
  return { ...ownPart(texts), ...Object.fromEntries(body) } as Omit<NewTrigger, 'name' | 'kind' | 'team'>
}

type InRealm = Pick<Shown, 'realm_id' | 'requires'>

/** The labels that a daemon must have, as people write them. */
export function labelsText({ requires }: InRealm): string {
  const labels = requires?.labels ?? []
  if (Array.isArray(labels)) return labels.join(', ')
  return Object.entries(labels)
    .map(([name, value]) => (value === 'yes' ? name : `${name}=${value}`))
    .join(', ')
}

/** What only a hub needs, to choose a daemon. */
function dispatchPart(texts: SpecTexts, { realm_id, requires = null }: InRealm) {
  if (realm_id === undefined) return {}
  const written = given(texts, 'labels')
  const priority = given(texts, 'priority')
  return {
    priority: priority === '' ? 0 : numberOf('priority', priority),
    queue_timeout: given(texts, 'queue_timeout') || null,
    requires: written === labelsText({ requires }) ? requires : requiring(written, requires ?? {}),
  }
}

function requiring(written: string, before: InRealm['requires'] & {}) {
  const { labels: _, ...others } = before
  const labels = written
    .split(',')
    .map(each => each.trim())
    .filter(Boolean)
  const all = { ...others, ...(labels.length > 0 && { labels }) }
  return Object.keys(all).length > 0 ? all : null
}

/** The rest of it: what it starts. */
export function restOf(texts: SpecTexts, inputs: JsonObject, of: InRealm) {
  const [count, per] = [given(texts, 'count'), given(texts, 'per')]
  if ((count === '') !== (per === '')) throw new Error('At most: type how many, and within how long a time')
  return {
    ...dispatchPart(texts, of),
    team: given(texts, 'team').replace(/\/team\.ya?ml$/, ''),
    inputs,
    at_most: count === '' ? null : { count: numberOf('At most', count), per },
    ...(Object.fromEntries(NULLABLE.map(name => [name, given(texts, name) || null])) as Record<
      (typeof NULLABLE)[number],
      string | null
    >),
  }
}

export function addBody(texts: SpecTexts, inputs: JsonObject, of: InRealm): Omit<NewTrigger, 'kind'> {
  const rest = Object.entries(restOf(texts, inputs, of)).filter(([, value]) => value !== null)
  return { name: given(texts, 'name'), ...rulePart(texts), ...Object.fromEntries(rest) } as Omit<NewTrigger, 'kind'>
}

/** Only what differs from the trigger: another rule counts from now on, and so an equal one must not be sent. */
export function updateBody(trigger: Shown, texts: SpecTexts, inputs: JsonObject): Changes {
  const before = textsOf(trigger)
  const was: Record<string, unknown> = { ...rulePart(before), ...trigger, name: trigger.name }
  const now: Record<string, unknown> = {
    ...rulePart(texts),
    ...restOf(texts, inputs, trigger),
    name: given(texts, 'name'),
  }
  // Without it the starts are spread no more; its default is none.
  if (was.jitter !== undefined && now.jitter === undefined) now.jitter = ''
  const changed = Object.entries(now).filter(([name, value]) => !isSame(value, was[name] ?? null))
  // A new rule replaces the whole old one.
  const isNewRule = changed.some(([name]) => RULE_FIELDS.includes(name))
  const rule = isNewRule ? Object.entries(now).filter(([name]) => RULE_FIELDS.includes(name)) : []
  return Object.fromEntries([...rule, ...changed])
}

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other)

/** A field in which a template may stand in place of any value. */
export const templated = (fields: readonly Field[]): Field[] =>
  fields
    .filter(({ secret }) => !secret)
    .map(({ choices: _, default: usual, ...field }) => ({
      ...field,
      type: field.type === 'list' || field.type === 'object' ? field.type : 'string',
      ...(usual !== undefined &&
        usual !== '' && {
          description: [field.description, `Left empty: ${textOf(usual)}`].filter(Boolean).join(' '),
        }),
    }))

/** The inputs of the form. A value with `{{ }}` is a template, which each occasion fills in, and so stays a text. */
export function inputsOf(fields: readonly Field[], typed: Typed): JsonObject {
  const isTemplate = ({ name }: Field) => typed[name]?.includes('{{') && !/^\s*[[{](?!\{)/.test(typed[name]!)
  const known = fields.filter(({ name, secret }) => !secret && typed[name] !== undefined && typed[name] !== '')
  const templates = known.filter(isTemplate)
  const others = valuesOf(
    known.filter(field => !isTemplate(field)),
    typed,
  )
  return { ...others, ...Object.fromEntries(templates.map(({ name }) => [name, typed[name]!])) }
}
