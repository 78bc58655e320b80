// What stands behind a name of an expression: the names in `phases`, in `inputs`, in the data of a phase.

import type { TSchema } from 'typebox'
import { field, itemsOf, type Node, textOf } from '../yaml/yaml.ts'
import type { Around } from './around.ts'
import { nodeAt } from './place.ts'
import type { Path } from './schema-fields.ts'
import { fieldsOfTeam, handlersOf, hasItem, hasSecrets, inputsOf, phasePath, phasesFor } from './scope.ts'

export interface Name {
  name: string
  kind: 'phase' | 'input' | 'secret' | 'field' | 'variable'
  words: string
}

const named = (kind: Name['kind'], words: Readonly<Record<string, string>>): Name[] =>
  Object.entries(words).map(([name, each]) => ({ name, kind, words: each }))

const ROOTS = named('variable', {
  phases: 'What earlier phases gave.',
  inputs: 'What the team was given.',
  run: 'The run: its id, its name, its environment, and when it started.',
})
const SECRETS = named('variable', { secrets: 'Secrets of settings.yml, by name.' })
const ITEM = named('variable', {
  item: 'The item of the list for which this run is.',
  index: 'The position of the item, from 0.',
})
const OF_RUN = named('field', {
  id: 'The id of the run.',
  name: 'The name of the run, or null.',
  started_at: 'When the run started, in milliseconds since 1970.',
  environment: 'The environment of the run, or null.',
})
const OF_PHASE = named('field', {
  data: 'The result as data. Null where the phase did not complete.',
  text: 'The result in one line.',
  files: 'The files that it wrote, each with name, path, bytes and sha256.',
  state: '`completed`, `failed`, `skipped` or `cancelled`.',
  reason: 'Why it is not completed, or null.',
  error: 'Its code and message if it failed, or null.',
})
const OF_ERROR = named('field', { code: 'The code of the error.', message: 'What went wrong.' })
const OF_MAP = named('field', {
  items: 'For each item its key, run_id, state and outputs, and the error (code and message) of one that failed.',
  total: 'How many items there are.',
  completed: 'How many have completed.',
  failed: 'How many have failed.',
  cancelled: 'How many were cancelled.',
})
const OF_COMMANDS = named('field', { commands: 'For each command its name, exit_code, duration_ms and stdout.' })

/** The names that can follow others at a place, such as `state` after `phases.fetch`; the first names after none. */
export function namesAfter(around: Around, root: Node, path: Path, above: readonly string[]): Name[] {
  const [first, second, third] = above
  if (first === undefined) {
    return [...ROOTS, ...(hasItem(root, path) ? ITEM : []), ...(hasSecrets(root, path) ? SECRETS : [])]
  }
  if (first === 'phases') {
    // Listeners have no result, and a phase cannot use its own.
    const own = nodeAt(root, phasePath(path) ?? [])
    const phases = phasesFor(root, path).filter(({ node }) => node !== own && !node.entries.has('notify'))
    if (second === undefined) return phases.map(({ name, node }) => ({ name, kind: 'phase', words: phaseWords(node) }))
    if (third === undefined) return OF_PHASE
    const phase = phases.find(({ name }) => name === second)
    if (above.length > 3 || !phase) return []
    return third === 'data' ? dataOf(around, phase.node) : third === 'error' ? OF_ERROR : []
  }
  if (above.length > 1) return []
  if (first === 'run') return OF_RUN
  if (first === 'inputs') {
    return inputsOf(root).map(({ name, node }) => ({ name, kind: 'input', words: inputWords(node) }))
  }
  if (first !== 'secrets' || !hasSecrets(root, path)) return []
  return around.settings.secrets.map(name => ({ name, kind: 'secret', words: 'A secret of settings.yml.' }))
}

/** What the data of a phase has, as far as it is known before a run. */
function dataOf(around: Around, phase: Node): Name[] {
  const type = textOf(field(phase, 'type')) ?? 'standard'
  if (type === 'map') return OF_MAP
  if (type === 'team') return fieldsOf(fieldsOfTeam(around, phase, 'outputs'))
  const form = itemsOf(field(field(phase, 'review'), 'inputs'))
  if (type === 'gate' && field(phase, 'review')) {
    return fieldsOf(form.map(node => ({ name: textOf(field(node, 'name')) ?? '', node })))
  }
  const entries = [...itemsOf(field(phase, 'sources')), ...itemsOf(field(phase, 'target_entries'))]
  const own = handlersOf(around, phase).flatMap(({ data }) => (data ? dataFields(data) : []))
  const many = named('field', { entries: 'The result of each entry, by its name.' })
  if (entries.length > 1) return many
  return [
    ...own,
    ...(entries.length > 0 ? many : []),
    ...(field(phase, 'commands') && own.length === 0 ? OF_COMMANDS : []),
  ]
}

const fieldsOf = (declared: readonly { name: string; node: Node }[]): Name[] =>
  declared.filter(({ name }) => name !== '').map(({ name, node }) => ({ name, kind: 'field', words: inputWords(node) }))

function dataFields(data: TSchema): Name[] {
  const { properties = {}, anyOf = [] } = data as {
    properties?: Record<string, { description?: string }>
    anyOf?: TSchema[]
  }
  const own = Object.entries(properties).map(
    ([name, { description = '' }]): Name => ({ name, kind: 'field', words: description }),
  )
  const all = [...own, ...anyOf.flatMap(dataFields)]
  return all.filter(({ name }, at) => all.findIndex(each => each.name === name) === at)
}

/** `agent: issues, action: search` */
export function phaseWords(node: Node): string {
  const type = textOf(field(node, 'type'))
  const said = (['agent', 'action', 'team'] as const).flatMap(name => {
    const value = textOf(field(node, name))
    return value === undefined ? [] : [`${name}: ${value}`]
  })
  return [...(type === undefined || type === 'standard' ? [] : [`type: ${type}`]), ...said].join(', ')
}

/** `number, required: How many days` */
export function inputWords(node: Node): string {
  const type = textOf(field(node, 'type')) ?? 'string'
  const isTrue = (name: string) => {
    const value = field(node, name)
    return value?.kind === 'scalar' && value.value === true ? [name] : []
  }
  const words = [type, ...isTrue('required'), ...isTrue('secret')].join(', ')
  const description = textOf(field(node, 'description'))
  return description ? `${words}: ${description}` : words
}
