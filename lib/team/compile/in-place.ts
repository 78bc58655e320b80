// A map in place: its phases are a team of their own in the same file, so that the engine runs a sub-run for each item, as of
// any other team. The phases read the item and the inputs of the team around the map. What they name of these becomes the
// inputs of their team, so that a sub-run has nothing else, and is repeated only when something of it has changed.

import type { Json, JsonObject } from '../../json.ts'
import { compileTemplate } from '../cel/cel.ts'
import { type Field, type MapPhase, problemWith, type Scope, type Template } from '../model/model.ts'
import { field, itemsOf, type Mapping, type Node, type Place, textOf, toJson } from '../yaml/yaml.ts'
import { type Compilation, nothingAt, only, siteOf } from './compilation.ts'
import { compileFields } from './fields.ts'
import { PHASE_FIELDS } from './phase-schema.ts'
import { isTemplated } from './sub-team.ts'

/** The names of the item, which no other input may have. */
const OF_ITEM: readonly string[] = ['item', 'index']

/** Stands between the key of a file and the phase of a map in place. No folder has it in its path. */
const IN_PLACE = '//'

export const keyInPlace = (key: string, phase: string): string => `${key}${IN_PLACE}${phase}`

/** The key of the file in which the team of a key stands. */
export function fileKey(key: string): string {
  const end = key.indexOf(IN_PLACE)
  return end === -1 ? key : key.slice(0, end)
}

/** The fields of the phase in a map that no map has. */
const OF_PHASE: readonly string[] = ['team', 'retry', 'repeat']

/** The fields of a map. Of a map with an `agent`, all others belong to the phase that calls it for each item. */
const OF_MAP = new Set(Object.keys(PHASE_FIELDS.map).filter(key => !OF_PHASE.includes(key)))

/** Whether a map says itself what is done with each item. */
export const isInPlace = (node: Mapping): boolean =>
  node.entries.has('phases') || (node.entries.has('agent') && !node.entries.has('team'))

/** The fields that every phase has, without those that no map has: these are of the phase that a map calls. */
export const withoutOwn = (node: Mapping): Mapping => only(node, key => !OF_PHASE.includes(key))

/** A map in place without the phase that its `agent` stands for. */
export const mapOnly = (node: Mapping): Mapping =>
  node.entries.has('phases') ? node : only(node, key => OF_MAP.has(key))

/** The phases of a map in place. The one of a map with an `agent` has the name of the map. */
export const phasesInPlace = (node: Mapping): readonly Node[] =>
  node.entries.has('phases') ? itemsOf(field(node, 'phases')) : [only(node, key => key === 'name' || !OF_MAP.has(key))]

/** What a team is written in: its file, or in that its map in place. Undefined where a file has changed. */
export function nodeOfTeam(root: Node, key: string): Node | undefined {
  const phases = key.split(IN_PLACE).slice(1)
  return phases.reduce<Node | undefined>(
    (node, name) => itemsOf(field(node, 'phases')).find(each => textOf(field(each, 'name')) === name),
    root,
  )
}

/** What a map in place gives to its phases by name. */
export interface Given {
  names: ReadonlySet<string>
  /** Those with a declared type. */
  fields: readonly Field[]
  template: Template
}

export function compileGiven(compilation: Compilation, node: Mapping, phase: string): Given {
  const { source, secrets } = compilation
  const fields = compileFields(source, field(node, 'inputs'))
  const byName = new Map(fields.map(each => [each.name, each]))
  const values = valuesOf(node)
  for (const [name, { key, node: value }] of values.entries) {
    if (OF_ITEM.includes(name)) source.report(key, `\`${name}\` is what the map itself gives: choose another name`)
    const declared = byName.get(name)
    const problem = declared && !isTemplated(value) ? problemWith(toJson(value), declared) : null
    if (problem) source.report(value, problem)
  }
  const onInput = (used: string, place: Place): void => {
    const named = used === '*' ? [...secrets][0] : secrets.has(used) ? used : undefined
    const name = place.path.slice(values.path.length + 1)
    if (named === undefined || byName.get(name)?.secret) return
    source.report(place, `\`${named}\` is secret: the phases of the map read it as \`inputs.${named}\` without this`)
  }
  const template = compileTemplate(values, siteOf(compilation, phase, { item: true, onInput }))
  return { names: new Set(values.entries.keys()), fields, template }
}

/** The values by name, in both forms in which a map can give them. */
function valuesOf(node: Mapping): Mapping {
  const given = field(node, 'inputs')
  if (given?.kind === 'map') return given
  const entries = itemsOf(given).flatMap(each => {
    const [name, value] = [field(each, 'name'), field(each, 'value')]
    const text = textOf(name)
    return name && value && text !== undefined ? [[text, { key: name, node: value }] as const] : []
  })
  const place = { offset: (given ?? node).offset, path: `${node.path}/inputs` }
  return { ...nothingAt(place), entries: new Map(entries) }
}

/** The state in which the phases of a map in place are compiled. */
export function compilationInPlace(outer: Compilation, phase: string, { names, fields: own }: Given): Compilation {
  const inherited = outer.fields.filter(({ name }) => !names.has(name) && !OF_ITEM.includes(name))
  const fields = [...inherited, ...own]
  const typed = new Set(fields.map(({ name }) => name))
  return {
    ...outer,
    ...declared(
      fields,
      [...new Set([...names, ...outer.untyped])].filter(name => !typed.has(name)),
      outer.types !== null,
    ),
    team: `${outer.team}/${phase}`,
    key: keyInPlace(outer.key, phase),
    around: new Set([...outer.phases, ...(outer.around ?? [])]),
    namedSecrets: new Set(),
    uses: [],
    reads: new Set(),
    inPlace: new Map(),
  }
}

/** What expressions of a team can name of its inputs. */
export function declared(
  fields: readonly Field[],
  untyped: readonly string[],
  isChecked: boolean,
): Pick<Compilation, 'fields' | 'untyped' | 'inputs' | 'types' | 'secrets' | 'files'> {
  const named = (is: (field: Field) => boolean) => new Set(fields.filter(is).map(({ name }) => name))
  return {
    fields,
    untyped,
    inputs: new Set([...fields.map(({ name }) => name), ...untyped]),
    types: isChecked ? new Map(fields.map(({ name, type }) => [name, type])) : null,
    secrets: named(({ secret }) => secret),
    files: named(({ type }) => type === 'file'),
  }
}

/** The inputs of a map in place, once its phases are compiled: what it gives, and what they name besides. */
export function inputsInPlace({ fields, untyped, reads }: Compilation, { names }: Given) {
  const isNamed = (name: string) => names.has(name) || reads.has('*') || reads.has(name)
  const inputs = fields.filter(({ name }) => isNamed(name)).map(each => ({ ...each, required: false }))
  const others = [...OF_ITEM.filter(name => reads.has(name)), ...untyped.filter(isNamed)]
  const inherited = [...inputs.map(({ name }) => name), ...others].filter(name => !names.has(name))
  return { inputs, inPlace: { untyped: others }, inherited }
}

/** The map with all that it passes to a sub-run. Its team reads what it passes on, too. */
export function passing(
  outer: Compilation,
  phase: MapPhase,
  inherited: readonly string[],
  { template: own }: Given,
): MapPhase {
  const above = inherited.filter(name => !OF_ITEM.includes(name))
  for (const name of above) outer.reads.add(name)
  if (inherited.length === 0) return { ...phase, inputs: own }
  const { constant: _, ...named } = own
  const inputs: Template = {
    ...named,
    given: new Set([...own.given, ...above.map(name => `inputs.${name}`)]),
    evaluate: scope => ({ ...inheritedOf(scope, inherited), ...(own.evaluate(scope) as JsonObject) }),
  }
  return { ...phase, inputs }
}

function inheritedOf({ inputs, item, index }: Scope, names: readonly string[]): JsonObject {
  const read = (name: string): Json | undefined =>
    name === 'item' ? item : name === 'index' ? index : Object.hasOwn(inputs, name) ? inputs[name] : undefined
  const found: JsonObject = {}
  for (const name of names) {
    const value = read(name)
    if (value !== undefined) found[name] = value
  }
  return found
}
