// Compiles a team.yml. Schema and meaning are checked in one pass, and every mistake is reported to the source. The
// team may be used only when there is none.

import { matches } from '../../schema/schema.ts'
import { Work } from '../../schema/work-budget.ts'
import { didYouMean, nameMeant } from '../../text/spelling.ts'
import { Requires } from '../../wire/needs.ts'
import { compileTemplate } from '../cel/cel.ts'
import type { Listener, Output, Phase, Team } from '../model/model.ts'
import type { Source } from '../yaml/yaml.ts'
import { field, itemsOf, type Node, textOf, toJson } from '../yaml/yaml.ts'
import { agentName } from './agent-call.ts'
import { type AgentLookup, type Compilation, checkAgainst, defined, duration, siteOf } from './compilation.ts'
import { compileConcurrency } from './concurrency.ts'
import { compileFields, typeOf } from './fields.ts'
import { compileListener } from './listener.ts'
import { compilePhase, type SubCall, typeOfPhase } from './phase.ts'
import { buildGraph, type GraphPhase } from './phase-graph.ts'
import { TeamSchema } from './team-schema.ts'
import { compileTriggers } from './triggers.ts'

/** Maximum number of instructions of all regular expressions of a file, which take about 150 ms to compile. */
const MAX_PATTERN_INSTRUCTIONS = 50_000

export interface Compiled {
  /** Complete only when the source has no problems. */
  team: Team
  calls: SubCall[]
}

export interface CompileOptions {
  /** Null when agents were checked before and are not looked up again. */
  agents: AgentLookup | null
  /** The keys in the bundle of the teams that this one names, by the text that names them. */
  refs: Readonly<Record<string, string>>
}

/** The sub-teams that a file names, each once, with the node that names it first. */
export function teamRefs(root: Node): Map<string, Node> {
  const refs = new Map<string, Node>()
  for (const phase of itemsOf(field(root, 'phases'))) {
    const node = field(phase, 'team')
    const ref = textOf(node)
    if (node && ref !== undefined && ref !== '' && !refs.has(ref)) refs.set(ref, node)
  }
  return refs
}

/** The agents that phases of a team name, or that they probably mean. */
export function agentsNamed(root: Node, known: readonly string[]): Set<string> {
  const refs = itemsOf(field(root, 'phases')).flatMap(phase => {
    const entries = [...itemsOf(field(phase, 'sources')), ...itemsOf(field(phase, 'target_entries'))]
    return [field(phase, 'agent'), ...entries.map(entry => field(entry, 'account'))].flatMap(node => textOf(node) ?? [])
  })
  const names = new Set(refs.map(agentName))
  return new Set([...names].map(name => (known.includes(name) ? name : (nameMeant(name, known) ?? name))))
}

export function compileTeam(source: Source, root: Node, { agents, refs }: CompileOptions): Compiled {
  const inputs = compileFields(source, field(root, 'inputs'))
  const nodes = itemsOf(field(root, 'phases'))
  const names = nodes.map(node => textOf(field(node, 'name')) ?? '')
  const compilation: Compilation = {
    source,
    agents,
    refs,
    phases: new Set(names.filter(name => name !== '')),
    inputs: new Set(inputs.map(input => input.name)),
    types: agents && new Map(inputs.map(input => [input.name, input.type])),
    secrets: new Set(inputs.filter(input => input.secret).map(input => input.name)),
    files: new Set(inputs.filter(input => input.type === 'file').map(input => input.name)),
    namedSecrets: new Set(),
    patterns: new Work(agents ? MAX_PATTERN_INSTRUCTIONS : Number.POSITIVE_INFINITY),
    uses: [],
  }
  checkAgainst(compilation, root, TeamSchema)
  // Outputs come before the phases: the graph is built last, and checks the names in all expressions.
  const outputs = itemsOf(field(root, 'outputs')).flatMap(node => compileOutput(compilation, node))
  checkFileNames(compilation, field(root, 'outputs'))
  const { phases, listeners, calls } = compilePhases(compilation, nodes, names)
  const positions = new Map(phases.map(phase => [phase.name, phase.index]))
  return {
    team: {
      name: textOf(field(root, 'name')) ?? '',
      version: textOf(field(root, 'version')) ?? '',
      description: textOf(field(root, 'description')) ?? '',
      inputs,
      outputs,
      ...compileConcurrency(compilation, field(root, 'concurrency')),
      requires: requiresOf(field(root, 'requires')),
      environments: environmentsOf(source, field(root, 'environments')),
      ...defined({ timeout: duration(field(root, 'timeout')) }),
      triggers: compileTriggers(compilation, field(root, 'triggers'), inputs),
      phases,
      listeners,
      secrets: [...compilation.namedSecrets],
      position: name => positions.get(name) ?? -1,
    },
    calls,
  }
}

function compilePhases(compilation: Compilation, nodes: readonly Node[], names: readonly string[]) {
  const phases: Phase[] = []
  const graph: GraphPhase[] = []
  const listeners: Listener[] = []
  const calls: SubCall[] = []
  const seen = new Set<string>()
  for (const [at, node] of nodes.entries()) {
    const name = names[at]!
    if (node.kind !== 'map') {
      compilation.source.report(node, 'expected a mapping with the fields of a phase')
      continue
    }
    if (name && seen.has(name)) compilation.source.report(field(node, 'name')!, `another phase is named \`${name}\``)
    seen.add(name)
    const type = typeOfPhase(compilation, node)
    if (type === 'listener') listeners.push(compileListener(compilation, node, name))
    else {
      phases.push(compilePhase(compilation, node, type, { name, index: phases.length }, calls))
      graph.push({ name, node })
    }
  }
  const edges = buildGraph(compilation, graph, new Set(listeners.map(listener => listener.name)))
  return { phases: phases.map((phase, at) => ({ ...phase, ...edges[at]! })), listeners, calls }
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
  return [{ name, type: typeOf(field(node, 'type')), value: compileTemplate(value, siteOf(compilation, null)) }]
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
