// Compiles a team.yml. Schema and meaning are checked in one pass, and every mistake is reported to the source. The
// team may be used only when there is none.

import { matches } from '../../schema/schema.ts'
import { Work } from '../../schema/work-budget.ts'
import { didYouMean, nameMeant } from '../../text/spelling.ts'
import { MAX_TEAM_PATH } from '../../wire/names.ts'
import { Requires } from '../../wire/needs.ts'
import { FIELD_TYPES, type FieldType } from '../../wire/records/forms.ts'
import { compileTemplate, formFor, givesAnother, KINDS } from '../cel/cel.ts'
import type { Listener, MapPhase, Output, Phase, Team } from '../model/model.ts'
import type { Source } from '../yaml/yaml.ts'
import { field, itemsOf, type Mapping, type Node, textOf, toJson } from '../yaml/yaml.ts'
import { agentName } from './agent-call.ts'
import {
  type AgentLookup,
  type Compilation,
  checkAgainst,
  defined,
  duration,
  type SubCall,
  siteOf,
} from './compilation.ts'
import { compileConcurrency } from './concurrency.ts'
import { compileFields, typeOf } from './fields.ts'
import {
  compilationInPlace,
  compileGiven,
  declared,
  inputsInPlace,
  isInPlace,
  passing,
  phasesInPlace,
} from './in-place.ts'
import { compileListener } from './listener.ts'
import { compilePhase, typeOfPhase } from './phase.ts'
import { buildGraph, type GraphPhase } from './phase-graph.ts'
import { TeamSchema } from './team-schema.ts'
import { compileTriggers } from './triggers.ts'

/** Maximum number of instructions of all regular expressions of a file, which take about 150 ms to compile. */
const MAX_PATTERN_INSTRUCTIONS = 50_000

const TOO_LONG = `longer than ${MAX_TEAM_PATH} characters together: shorten them, or put a map into a team of its own`

export interface Compiled {
  /** Complete only when the source has no problems. */
  team: Team
  calls: readonly SubCall[]
  /** The teams of its maps in place, by their keys in the bundle. */
  inPlace: ReadonlyMap<string, Team>
}

export interface CompileOptions {
  /** Null when agents were checked before and are not looked up again. */
  agents: AgentLookup | null
  /** The keys in the bundle of the teams that this one names, by the text that names them. */
  refs: Readonly<Record<string, string>>
  /** Its own key there. */
  key: string
}

/** The sub-teams that a file names, each once, with the node that names it first. */
export function teamRefs(root: Node): Map<string, Node> {
  const refs = new Map<string, Node>()
  for (const phase of phasesIn(root)) {
    const node = field(phase, 'team')
    const ref = textOf(node)
    if (node && ref !== undefined && ref !== '' && !refs.has(ref)) refs.set(ref, node)
  }
  return refs
}

/** The agents that phases of a team name, or that they probably mean. */
export function agentsNamed(root: Node, known: readonly string[]): Set<string> {
  const refs = [...phasesIn(root)].flatMap(phase => {
    const entries = [...itemsOf(field(phase, 'sources')), ...itemsOf(field(phase, 'target_entries'))]
    return [field(phase, 'agent'), ...entries.map(entry => field(entry, 'account'))].flatMap(node => textOf(node) ?? [])
  })
  const names = new Set(refs.map(agentName))
  return new Set([...names].map(name => (known.includes(name) ? name : (nameMeant(name, known) ?? name))))
}

/** Every phase of a file, also in maps in place. */
function* phasesIn(node: Node): Generator<Node> {
  for (const phase of itemsOf(field(node, 'phases'))) {
    yield phase
    yield* phasesIn(phase)
  }
}

export function compileTeam(source: Source, root: Node, { agents, refs, key }: CompileOptions): Compiled {
  const inputs = compileFields(source, field(root, 'inputs'))
  const nodes = itemsOf(field(root, 'phases'))
  const compilation: Compilation = {
    source,
    agents,
    refs,
    team: textOf(field(root, 'name')) ?? '',
    version: textOf(field(root, 'version')) ?? '',
    key,
    phases: phaseNames(nodes),
    maps: mapNames(nodes),
    givens: new Map(),
    around: null,
    ...declared(inputs, [], agents !== null),
    namedSecrets: new Set(),
    patterns: new Work(agents ? MAX_PATTERN_INSTRUCTIONS : Number.POSITIVE_INFINITY),
    uses: [],
    reads: new Set(),
    calls: [],
    inPlace: new Map(),
  }
  checkAgainst(compilation, root, TeamSchema)
  const body = compileBody(compilation, root, nodes)
  const { team: name, version, calls, inPlace } = compilation
  return {
    team: {
      name,
      version,
      description: textOf(field(root, 'description')) ?? '',
      inputs,
      inPlace: null,
      ...compileConcurrency(compilation, field(root, 'concurrency')),
      requires: requiresOf(field(root, 'requires')),
      environments: environmentsOf(source, field(root, 'environments')),
      ...defined({ timeout: duration(field(root, 'timeout')) }),
      triggers: compileTriggers(compilation, field(root, 'triggers'), inputs),
      ...body,
    },
    calls,
    inPlace,
  }
}

const mapNames = (nodes: readonly Node[]): Set<string> =>
  new Set(
    nodes.filter(node => textOf(field(node, 'type')) === 'map').flatMap(node => textOf(field(node, 'name')) ?? []),
  )

const phaseNames = (nodes: readonly Node[]): Set<string> =>
  new Set(nodes.map(node => textOf(field(node, 'name')) ?? '').filter(name => name !== ''))

/** What a file and a map in place have alike: phases, and outputs that name them. */
function compileBody(compilation: Compilation, node: Node, nodes: readonly Node[]) {
  // Outputs come before the phases: the graph is built last, and checks the names in all expressions.
  const outputs = itemsOf(field(node, 'outputs')).flatMap(each => compileOutput(compilation, each))
  checkFileNames(compilation, field(node, 'outputs'))
  const { phases, listeners } = compilePhases(compilation, nodes)
  const positions = new Map(phases.map(phase => [phase.name, phase.index]))
  return {
    outputs,
    phases,
    listeners,
    secrets: [...compilation.namedSecrets],
    position: (name: string) => positions.get(name) ?? -1,
  }
}

/** Compiles what a map in place does as a team of its own, and gives it to the map. */
function compileInPlace(outer: Compilation, node: Mapping, phase: MapPhase): MapPhase {
  const given = compileGiven(outer, node, phase.name)
  const nodes = phasesInPlace(node)
  const compilation = {
    ...compilationInPlace(outer, phase.name, given),
    phases: phaseNames(nodes),
    maps: mapNames(nodes),
  }
  const { team: name, version, key } = compilation
  if (name.length > MAX_TEAM_PATH) outer.source.report(field(node, 'name')!, `the names of these maps are ${TOO_LONG}`)
  const body = compileBody(compilation, node, nodes)
  const { inherited, ...inputs } = inputsInPlace(compilation, given)
  const none = { description: '', concurrency: null, key: null, requires: {}, environments: null, triggers: [] }
  outer.inPlace.set(key, { name, version, ...none, ...inputs, ...body })
  for (const [below, team] of compilation.inPlace) outer.inPlace.set(below, team)
  return passing(outer, phase, inherited, given)
}

function compilePhases(compilation: Compilation, nodes: readonly Node[]) {
  const phases: Phase[] = []
  const graph: GraphPhase[] = []
  const listeners: Listener[] = []
  const seen = new Set<string>()
  for (const node of nodes) {
    const name = textOf(field(node, 'name')) ?? ''
    if (node.kind !== 'map') {
      compilation.source.report(node, 'expected a mapping with the fields of a phase')
      continue
    }
    if (name && seen.has(name)) compilation.source.report(field(node, 'name')!, `another phase is named \`${name}\``)
    seen.add(name)
    const type = typeOfPhase(compilation, node)
    if (type === 'listener') listeners.push(compileListener(compilation, node, name))
    else {
      const phase = compilePhase(compilation, node, type, { name, index: phases.length })
      phases.push(phase.type === 'map' && isInPlace(node) ? compileInPlace(compilation, node, phase) : phase)
      graph.push({ name, node })
    }
  }
  const edges = buildGraph(compilation, graph, new Set(listeners.map(listener => listener.name)))
  return { phases: phases.map((phase, at) => ({ ...phase, ...edges[at]! })), listeners }
}

/** Checked by the schema. Nothing of it is a template, because the daemon is chosen before the run has inputs. */
function requiresOf(node: Node | undefined): Requires {
  const written = node && toJson(node)
  return written !== undefined && matches(Requires, written) ? written : {}
}

function environmentsOf(source: Source, node: Node | undefined): Team['environments'] {
  if (!node) return null
  const allow = itemsOf(field(node, 'allow')).flatMap(name => textOf(name) ?? [])
  const usual = field(node, 'default')
  const name = textOf(usual)
  if (usual && name !== undefined && allow.length > 0 && !allow.includes(name)) {
    source.report(usual, `${name} is not one of \`allow\`: ${allow.join(', ')}${didYouMean(name, allow)}`)
    return null
  }
  return { allow, default: name ?? null }
}

function compileOutput(compilation: Compilation, node: Node): Output[] {
  const name = textOf(field(node, 'name'))
  const value = field(node, 'value')
  if (name === undefined || !value) return []
  const type = typeOf(field(node, 'type'))
  const template = compileTemplate(value, siteOf(compilation, null))
  if (field(node, 'type')) checkOutput(compilation, name, type, value)
  return [{ name, type, value: template }]
}

/** Whether the template of an output gives what the output is declared to be. */
function checkOutput({ givens, source }: Compilation, name: string, type: FieldType, value: Node): void {
  const given = givens.get(value)
  const wanted = KINDS[type]
  if (!given || given.kind === wanted) return
  const fitting = FIELD_TYPES.find(each => KINDS[each] === given.kind)
  const form = type === 'file' ? null : formFor(given, wanted)
  const fault = givesAnother(given, type === 'file' ? 'the path of a file' : wanted, null)
  const cure = `declare \`type: ${fitting}\`${form === null ? '' : `, or write ${form}`}`
  source.report(given.place, `${fault}: output \`${name}\` has \`type: ${type}\`; ${cure}`)
}

/** Refuses file outputs with the same base name, as far as the names are written out: they would share a folder. */
function checkFileNames(compilation: Compilation, outputs: Node | undefined): void {
  const outputOf = new Map<string, string>()
  for (const node of itemsOf(outputs)) {
    const name = textOf(field(node, 'name')) ?? ''
    const value = field(node, 'value')
    const base = textOf(value)?.split('/').at(-1)
    if (!value || typeOf(field(node, 'type')) !== 'file' || !base || /\{\{|\}\}/.test(base)) continue
    const other = outputOf.get(base)
    if (other === undefined) outputOf.set(base, name)
    else
      compilation.source.report(
        value,
        `output \`${other}\` already has a file named ${base}: give one of them another name`,
      )
  }
}
