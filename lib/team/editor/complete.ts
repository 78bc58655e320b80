// What can be typed at the cursor: fields, values, and names in expressions.

import { field, itemsOf, type Node, textOf } from '../yaml/yaml.ts'
import type { Around } from './around.ts'
import { typedIn } from './chain.ts'
import { type Cursor, cursorAt } from './cursor.ts'
import { inputWords, namesAfter, phaseWords } from './names.ts'
import { nodeAt, type Range } from './place.ts'
import { fieldsIn, formsAt, NOTHING, type Path, type Schema, schemaAt } from './schema-fields.ts'
import { fieldsOfTeam, isPhase, phasePath, phasesFor } from './scope.ts'

/** What takes the place of a part of the text. */
export interface Suggestion extends Range {
  label: string
  kind:
    | 'property'
    | 'value'
    | 'phase'
    | 'input'
    | 'secret'
    | 'field'
    | 'variable'
    | 'agent'
    | 'action'
    | 'file'
    | 'folder'
  insert: string
  /** In a few words beside the label. */
  detail?: string | undefined
  /** What it is, in a sentence. */
  words?: string | undefined
  /** What is typed to find it, where that is not the label. */
  filter?: string | undefined
  /** It is needed here, so it stands before others. */
  isFirst?: boolean
}

type Choice = Pick<Suggestion, 'label' | 'kind' | 'detail' | 'words'> & { insert?: string }

export function complete(text: string, offset: number, around: Around): Suggestion[] {
  const cursor = cursorAt(text, offset)
  if (!cursor) return []
  if (cursor.expression !== null) {
    const to = offset + /^[\w-]*/.exec(text.slice(offset))![0].length
    return namesAt(cursor, cursor.expression, around, { from: offset, to })
  }
  return cursor.part === 'key' ? keysAt(cursor, around) : valuesAt(cursor, around)
}

/** `word` is what of the name stands after the cursor. */
function namesAt({ root, path }: Cursor, before: string, around: Around, word: Range): Suggestion[] {
  const typed = typedIn(before)
  if (!typed) return []
  const names = namesAfter(around, root, path, typed.above)
  const from = word.from - typed.typed.length
  return names.map(({ name, kind, words }) => {
    // A name with a dash stands in brackets, which take the place of the dot.
    const isPlain = /^[A-Za-z_]\w*$/.test(name) || typed.by === '' || typed.by.startsWith('[')
    const optional = typed.by === '.?' ? '?' : ''
    const range = { from: isPlain ? from : from - typed.by.length, to: word.to }
    const filter = isPlain ? undefined : typed.by + name
    return { label: name, kind, words, insert: isPlain ? name : `[${optional}'${name}']`, filter, ...range }
  })
}

function keysAt(cursor: Cursor, around: Around): Suggestion[] {
  const { root, path, from, to, hasColon } = cursor
  const mapping = nodeAt(root, path)
  const phase = path.at(-1) === 'inputs' && isPhase(path.slice(0, -1)) ? nodeAt(root, path.slice(0, -1)) : undefined
  const inputs = phase ? fieldsOfTeam(around, phase, 'inputs') : []
  const forms = formsAt(around.schema, root, path)
  // Below `phases:` an item of the list begins.
  const dash = typeof path.at(-1) !== 'number' && forms.some(({ schema }) => isList(schema)) ? '- ' : ''
  const known = fieldsIn(forms, around.schema, dash ? NOTHING : (mapping ?? NOTHING))
  const fields = [...known].map(([label, [form]]): Suggestion => {
    const { schema, required } = form!
    const opens = isMapping(schema, around.schema) ? ':' : ': '
    const detail = required ? 'required' : undefined
    const insert = dash + label + (hasColon ? '' : opens)
    return { label, kind: 'property', insert, detail, words: schema.description, isFirst: required, from, to }
  })
  const given = inputs.map(({ name, node }): Suggestion => {
    const words = inputWords(node)
    return { label: name, kind: 'input', insert: name + (hasColon ? '' : ': '), words, from, to }
  })
  const all = [...given, ...fields]
  if (all.length === 0) return valuesAt(cursor, around)
  const isThere = (name: string) => !dash && mapping?.kind === 'map' && mapping.entries.has(name)
  return all.filter(({ label }) => !isThere(label))
}

const isList = ({ type, anyOf = [] }: Schema): boolean => type === 'array' || anyOf.some(isList)

/** Whether a value is a list or a mapping, which stands below its field. */
function isMapping(schema: Schema, root: Schema): boolean {
  if (schema.$ref) return isMapping(schemaAt(root, schema.$ref), root)
  return schema.type === 'object' || (schema.type === 'array' && schema.items?.type === 'object')
}

function valuesAt(cursor: Cursor, around: Around): Suggestion[] {
  const { root, path, from, to } = cursor
  const last = path.at(-1)
  const forms = formsAt(around.schema, root, typeof last === 'number' ? path.slice(0, -1) : path)
  const schemas = forms.flatMap(({ schema }) => (typeof last === 'number' ? itemsIn(schema) : [schema]))
  const choices = choicesAt(cursor, around) ?? schemas.flatMap(schema => choicesIn(schema))
  // A list begins in the line of its field.
  const alone = choices.length === 0 ? schemas.flatMap(itemsIn).flatMap(schema => choicesIn(schema)) : []
  const isWhole = alone.length > 0 || (last === 'depends_on' && choices.length > 0)
  return [...choices, ...alone]
    .filter(({ label }, at, all) => all.findIndex(each => each.label === label) === at)
    .map(({ insert, ...choice }) => {
      const value = insert ?? choice.label
      return { ...choice, insert: isWhole ? (cursor.part === 'key' ? `- ${value}` : `[${value}]`) : value, from, to }
    })
}

const itemsIn = ({ items, anyOf = [] }: Schema): Schema[] => [...(items ? [items] : []), ...anyOf.flatMap(itemsIn)]

/** The values that the schema names. */
function choicesIn(schema: Schema): Choice[] {
  const { enum: values = [], const: constant, anyOf = [], oneOf = [], type, default: standard } = schema
  const given = [...values, ...(constant === undefined ? [] : [constant]), ...(type === 'boolean' ? [true, false] : [])]
  return [
    ...given.map((value): Choice => {
      return { label: String(value), kind: 'value', detail: value === standard ? 'default' : undefined }
    }),
    ...[...anyOf, ...oneOf].flatMap(choicesIn),
  ]
}

/** The values that no schema knows; null where there are no such ones. */
function choicesAt({ root, path, typed }: Cursor, around: Around): Choice[] | null {
  const last = path.at(-1)
  const above = path.slice(0, -1)
  if (last === 'depends_on' || (typeof last === 'number' && above.at(-1) === 'depends_on'))
    return otherPhases(root, path)
  if (isPhase(above)) {
    if (last === 'agent') return agentsIn(around)
    if (last === 'action') return actionsOf(around, nodeAt(root, above))
    if (last === 'team') return around.teams().map(label => ({ label, kind: 'folder' }))
  }
  const isEnvironment = above[0] === 'environments' && (last === 'default' || above[1] === 'allow')
  if (isEnvironment) return around.settings.environments.map(label => ({ label, kind: 'value' }))
  const isOfTypeFile = textOf(field(nodeAt(root, above), 'type')) === 'file'
  if (last === 'file' || /_file$/.test(String(last))) return filesAt(root, path, typed, around)
  if (isOfTypeFile && last === 'value') return writtenFiles(root, path)
  return isOfTypeFile && last === 'default' ? filesAt(root, path, typed, around) : null
}

function otherPhases(root: Node, path: Path): Choice[] {
  const own = nodeAt(root, phasePath(path) ?? [])
  const listed = itemsOf(field(own, 'depends_on')).map(textOf)
  return phasesFor(root, path)
    .filter(({ name, node }) => node !== own && !node.entries.has('notify') && !listed.includes(name))
    .map(({ name, node }) => ({ label: name, kind: 'phase', words: phaseWords(node) }))
}

function agentsIn({ agents, settings }: Around): Choice[] {
  const names = agents.names()
  const accounts = settings.agents.filter(each => each.includes('@') && names.includes(each.split('@', 1)[0]!))
  return [...names, ...accounts].map(label => {
    return { label, kind: 'agent', words: agents.get(label.split('@', 1)[0]!)?.description }
  })
}

function actionsOf({ agents }: Around, phase: Node | undefined): Choice[] | null {
  const name = textOf(field(phase, 'agent'))?.split('@', 1)[0]
  if (name === undefined || !agents.names().includes(name)) return null
  const { actions = {} } = agents.get(name) ?? {}
  return Object.entries(actions).map(([label, { description, effect }]) => {
    return { label, kind: 'action', words: description, detail: typeof effect === 'string' ? effect : undefined }
  })
}

/** Files of earlier phases, and those of the folder. */
function filesAt(root: Node, path: Path, typed: string, { list }: Around): Choice[] {
  const folder = typed.includes('/') ? typed.slice(0, typed.lastIndexOf('/') + 1) : ''
  if (/^files\//.test(folder)) return writtenFiles(root, path)
  const there = list(folder).map(({ name, isFolder }): Choice => {
    return { label: `${folder}${name}${isFolder ? '/' : ''}`, kind: isFolder ? 'folder' : 'file' }
  })
  return [...(folder === '' ? writtenFiles(root, path) : []), ...there]
}

/** The files that are known before a run: an entry writes one that has its name. */
function writtenFiles(root: Node, path: Path): Choice[] {
  const own = nodeAt(root, phasePath(path) ?? [])
  return phasesFor(root, path).flatMap(({ name, node }) => {
    const entries = node === own ? [] : itemsOf(field(node, 'sources'))
    return entries.flatMap(entry => {
      const file = textOf(field(entry, 'name'))
      return file ? [{ label: `files/${name}/${file}`, kind: 'file' as const }] : []
    })
  })
}
