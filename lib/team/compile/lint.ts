// What is probably not meant in a team that is valid. Each rule has a name, and a comment `# lint: allow NAME` in the line of
// a finding, or in the line above, allows it there.

import type { TObject } from 'typebox'
import { isObject } from '../../json.ts'
import {
  type Agents,
  type Bundle,
  hasSubRuns,
  type Phase,
  type Problem,
  phaseWrites,
  readersOf,
  reviewOf,
  type StandardPhase,
  type Team,
  teamsOf,
} from '../model/model.ts'
import { field, itemsOf, type Mapping, type Node, readYaml, type Scalar, Source, textOf } from '../yaml/yaml.ts'
import { credentialIn } from './credentials.ts'
import { nodeOfTeam, phasesInPlace } from './in-place.ts'

type LintRule =
  /** An input that no expression names. */
  | 'unused-input'
  /** A phase that only reads, and whose result nothing uses. */
  | 'unused-phase'
  /** A team in a folder below that nothing uses. */
  | 'unused-team'
  /** A failure that is passed over, and that nothing looks at. */
  | 'unseen-failure'
  /** A password or a token that is written out. */
  | 'secret-in-file'
  /** What a model made is written to another system, and no person is asked before. */
  | 'write-without-gate'
  /** A map over a list that may be cut off, and nothing looks whether it was. */
  | 'unseen-truncation'
export type LintFinding = Problem & { rule: LintRule }

/** The findings in the teams of the bundle, except in those of other packages. */
export function lintBundle(bundle: Bundle, agents: Agents): LintFinding[] {
  const calls = callsIn(bundle)
  const own = teamsOf(bundle).filter(([key]) => bundle.folder(key) !== null)
  const files = Map.groupBy(own, ([key]) => bundle.file(key).key)
  return [...files].flatMap(([ofFile, teams]) => {
    const { file, text } = bundle.file(ofFile)
    const source = new Source(file, text)
    const whole = readYaml(source)
    const found = teams.flatMap(([key, team]) => {
      const root = whole && nodeOfTeam(whole, key)
      return root ? new Linter({ bundle, agents, calls, key, team, source, whole, root }).all() : []
    })
    return found.sort((a, b) => a.line - b.line || a.column - b.column)
  })
}

interface Call {
  /** The team that calls, and its phase. */
  key: string
  phase: Phase
}

/** By the key of a team: what calls it. */
function callsIn(bundle: Bundle): Map<string, Call[]> {
  const all = teamsOf(bundle).flatMap(([key, { phases }]) => phases.filter(hasSubRuns).map(phase => ({ key, phase })))
  return Map.groupBy(all, ({ phase }) => phase.team)
}

interface Given {
  bundle: Bundle
  agents: Agents
  calls: ReadonlyMap<string, readonly Call[]>
  key: string
  team: Team
  source: Source
  /** What the file has, and what of it the team is. */
  whole: Node
  root: Node
}

class Linter {
  readonly #given: Given
  readonly #nodes: ReadonlyMap<string, Mapping>
  readonly #found: LintFinding[] = []

  constructor(given: Given) {
    this.#given = given
    const { root, team } = given
    const nodes = team.inPlace && root.kind === 'map' ? phasesInPlace(root) : itemsOf(field(root, 'phases'))
    const phases = nodes.filter(node => node.kind === 'map')
    this.#nodes = new Map(phases.map(node => [String((field(node, 'name') as Scalar | undefined)?.value), node]))
  }

  all(): LintFinding[] {
    this.#inputs()
    for (const phase of this.#given.team.phases) {
      this.#unused(phase)
      this.#unseen(phase)
      this.#writes(phase)
      this.#truncation(phase)
    }
    // Those of a map in place were found with the file.
    if (!this.#given.team.inPlace) this.#secrets()
    return this.#found
  }

  #report(rule: LintRule, node: Node, message: string): void {
    const { source } = this.#given
    const { line } = source.position(node.offset)
    const near = source.text.split('\n').slice(Math.max(0, line - 2), line)
    if (near.some(text => new RegExp(`# lint: allow .*\\b${rule}\\b`).test(text))) return
    const before = source.problems.length
    source.report(node, message)
    const problem = source.problems[before]
    if (problem) this.#found.push({ ...problem, rule })
  }

  #inputs(): void {
    const { root, team } = this.#given
    // A map with an `agent` is itself the phase that it calls for each item.
    const phases = team.inPlace && root.kind === 'map' ? phasesInPlace(root) : [field(root, 'phases')]
    const texts = [...phases, field(root, 'outputs'), field(root, 'concurrency')].flatMap(node => [...scalarsIn(node)])
    const all = texts.map(({ value }) => value).join('\n')
    // All of them may be meant, as in `toJson(inputs)`.
    if (/\binputs\b(?!\s*(?:\.\??\s*[A-Za-z]|\[\s*['"]))(?=[^\n]*\}\})/.test(all)) return
    for (const [name, node] of inputNodes(field(root, 'inputs'))) {
      const named = new RegExp(`\\binputs\\s*(?:\\.\\??\\s*${name}(?![\\w-])|\\[\\??\\s*['"]${name}['"])`)
      if (named.test(all)) continue
      this.#report('unused-input', node, `nothing uses the input \`${name}\``)
    }
  }

  /** Where a team has no outputs, people look at its phases. */
  #unused(phase: Phase): void {
    const { team, root } = this.#given
    if (team.outputs.length === 0 || phase.type !== 'standard' || phase.dependants.length > 0) return
    if (phase.repeat) return
    const readsOnly = phaseEffects(phase, this.#given.agents).every(effect => effect === 'read')
    if (!readsOnly || isNamed(team, phase.name)) return
    const isFile = [...scalarsIn(root)].some(({ value }) => String(value).includes(`files/${phase.name}/`))
    if (isFile) return
    const message = `nothing uses what \`${phase.name}\` reads: no phase depends on it, and no output names it`
    this.#report('unused-phase', this.#nodes.get(phase.name)!, message)
  }

  #unseen(phase: Phase): void {
    const { team } = this.#given
    const key =
      phase.onFailure === 'continue'
        ? 'on_failure'
        : phase.type === 'map' && phase.onItemFailure === 'continue'
          ? 'on_item_failure'
          : null
    if (key === null || isNamed(team, phase.name)) return
    if (key === 'on_failure' && team.listeners.some(({ on }) => on.on_phase_fail)) return
    const look = key === 'on_failure' ? `phases.${phase.name}.state` : `phases.${phase.name}.data.failed`
    const node = field(this.#nodes.get(phase.name), key)!
    this.#report(
      'unseen-failure',
      node,
      `nothing looks at what fails here: name \`${look}\` in an output or a \`when\``,
    )
  }

  /** Where the file names `truncated` at all, somebody looks. */
  #truncation(phase: Phase): void {
    const { team, agents, whole } = this.#given
    if (phase.type !== 'map' || [...scalarsIn(whole)].some(({ value }) => /\btruncated\b/.test(String(value)))) return
    const items = String(phase.items.source)
    for (const name of phase.items.phases) {
      const listing = team.phases[team.position(name)]!
      const [, data] = items.match(LIST_OF(name)) ?? []
      if (data === undefined || listing.type !== 'standard' || !mayBeCut(listing, agents)) continue
      this.#report(
        'unseen-truncation',
        field(this.#nodes.get(phase.name), 'items')!,
        `\`${phase.name}\` goes through the \`items\` of \`${name}\`, which may be cut off: name \`${data}.truncated\` in an output or a \`when\`, or go through the parts into which the agent \`data\` can \`split\` the file of \`${name}\``,
      )
    }
  }

  #writes(phase: Phase): void {
    const { agents, key } = this.#given
    if (phase.type !== 'standard' || phaseWrites(agents, phase, []).length === 0) return
    if (!this.#isAfter(key, phase, each => this.#asksModel(each)) || this.#isAfter(key, phase, each => reviewOf(each)))
      return
    const message = `\`${phase.name}\` writes what may come from a model, and nobody is asked before: put a gate with a \`review\` before it`
    this.#report('write-without-gate', this.#nodes.get(phase.name)!, message)
  }

  /** Whether such a phase comes before `phase`: in its team, or in every team that calls it. */
  #isAfter(key: string, phase: Phase, is: (phase: Phase) => unknown, seen: ReadonlySet<string> = new Set()): boolean {
    const { bundle, calls } = this.#given
    if (ancestorsOf(bundle.team(key), phase).some(is)) return true
    const above = seen.has(key) ? [] : (calls.get(key) ?? [])
    const more = new Set([...seen, key])
    return above.length > 0 && above.every(call => this.#isAfter(call.key, call.phase, is, more))
  }

  #asksModel(phase: Phase, seen: ReadonlySet<string> = new Set()): boolean {
    if (phase.type === 'standard') return phase.agent.split('@', 1)[0] === 'llm'
    if (!hasSubRuns(phase) || seen.has(phase.team)) return false
    const more = new Set([...seen, phase.team])
    return this.#given.bundle.team(phase.team).phases.some(each => this.#asksModel(each, more))
  }

  #secrets(): void {
    for (const scalar of scalarsIn(field(this.#given.root, 'phases'))) {
      const what = credentialIn(scalar)
      if (what === null) continue
      const how = 'store it with `settings set secrets.NAME -`, and write `{{ secrets.NAME }}` in `env`'
      this.#report('secret-in-file', scalar, `${what} is written out here: ${how}`)
    }
  }
}

/** Whether an expression of the team names the phase. */
function isNamed(team: Team, phase: string): boolean {
  const { outputs, phases } = readersOf(team, phase)
  const told = team.listeners.some(({ fields, on }) =>
    [fields, ...Object.values(on).flatMap(({ when, options }) => [...(when ? [when] : []), options])].some(each =>
      each.phases.has(phase),
    ),
  )
  return outputs.length + phases.length > 0 || told
}

/** What stands before `.items` where an expression names those of a phase. */
const LIST_OF = (phase: string): RegExp =>
  new RegExp(`(phases\\s*(?:\\.\\??${phase}|\\[\\??['"]${phase}['"]\\])\\.\\??data[^\\s(,]*?)\\.\\??items\\b`)

/** Whether a phase has a listing, of which not all may be in `data`. A list that is written out is short enough. */
function mayBeCut({ agent, action, sources }: StandardPhase, agents: Agents): boolean {
  const definition = agents.get(agent.split('@', 1)[0]!)
  const handler = action === undefined ? definition?.source : definition?.actions?.[action]
  const { properties = {} } = (handler?.data ?? {}) as Partial<TObject>
  if (!('items' in properties && 'truncated' in properties)) return false
  return sources.some(({ entry: { source } }) => {
    const items = isObject(source) ? source.items : undefined
    return !Array.isArray(items) || JSON.stringify(items).includes('{{')
  })
}

/** Of commands it is not known what they do. */
function phaseEffects(phase: Extract<Phase, { type: 'standard' }>, agents: Agents): string[] {
  const name = phase.agent.split('@', 1)[0]!
  if (phase.sources.length === 0 || phase.targets.length > 0 || name === 'exec') return ['unknown']
  return phaseWrites(agents, phase, []).length > 0 ? ['unknown'] : ['read']
}

function ancestorsOf(team: Team, phase: Phase): Phase[] {
  const found = new Set<number>()
  const open = [...phase.dependsOn]
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    if (found.has(at)) continue
    found.add(at)
    open.push(...team.phases[at]!.dependsOn)
  }
  return [...found].map(at => team.phases[at]!)
}

/** The inputs by name: declared ones, or those that a map in place gives. */
function inputNodes(inputs: Node | undefined): [name: string, node: Node][] {
  if (inputs?.kind === 'map') return [...inputs.entries].map(([name, { node }]) => [name, node])
  return itemsOf(inputs).map(node => [textOf(field(node, 'name')) ?? '', node])
}

function* scalarsIn(node: Node | undefined): Generator<Scalar> {
  if (node?.kind === 'scalar') yield node
  else if (node?.kind === 'list') for (const item of node.items) yield* scalarsIn(item)
  else if (node?.kind === 'map') for (const { node: value } of node.entries.values()) yield* scalarsIn(value)
}
