// The state of compiling one team: its source, the names that it declares, and the names that its expressions use.

import type { TSchema } from 'typebox'
import type { AgentDefinition } from '../../agent/define.ts'
import { parseDuration } from '../../duration.ts'
import type { Work } from '../../schema/work-budget.ts'
import type { Given, Givens, InputTypes, Names, Site, Use } from '../cel/cel.ts'
import type { Field, Team } from '../model/model.ts'
import type { Source } from '../yaml/yaml.ts'
import { type Mapping, type Node, type Place, textOf } from '../yaml/yaml.ts'
import { checkValue } from './value-check.ts'

/** What the compiler needs of the catalogue of agents. */
export interface AgentLookup {
  /** Loads agents so that `get` knows them, where they are not loaded from the start. */
  load?(references: Iterable<string>): Promise<unknown>
  get(name: string): AgentDefinition | undefined
  names(): string[]
  /** Files that are named like an agent but cannot be used, with the reasons. */
  readonly skipped?: readonly { file: string; reason: string }[]
}

export interface Compilation {
  source: Source
  /** Null when agents were checked before and are not looked up again. */
  agents: AgentLookup | null
  /** The keys in the bundle of the teams that this one names, by the text that names them. */
  refs: Readonly<Record<string, string>>
  /** The name of the team, its version, and its key in the bundle. */
  team: string
  version: string
  key: string
  phases: ReadonlySet<string>
  /** Of the team of a map in place: the phases outside of the map. Null for other teams. */
  around: ReadonlySet<string> | null
  /** The declared inputs, and the names of those that have no declared type. */
  fields: readonly Field[]
  untyped: readonly string[]
  inputs: ReadonlySet<string>
  /** The declared types of the inputs. Null when the team was checked before. */
  types: InputTypes | null
  /** The phases of type map. */
  maps: ReadonlySet<string>
  /** What the templates give that were compiled so far. */
  givens: Map<Node, Given>
  /** Names of inputs that are secret. */
  secrets: ReadonlySet<string>
  /** Names of inputs of type file. */
  files: ReadonlySet<string>
  /** Named secrets that its expressions use. */
  namedSecrets: Set<string>
  /** The budget that all of its regular expressions share. */
  patterns: Work
  uses: PhaseUse[]
  /** The inputs that its expressions name, `*` for all; `item` and `index` where these are those of its own map. */
  reads: Set<string>
  /** What phases pass to sub-teams, in the whole file. */
  calls: SubCall[]
  /** The teams of its maps in place, by key, and of the maps in place in these. */
  inPlace: Map<string, Team>
}

/** What a team or map phase passes to its sub-team; it is checked against the sub-team's inputs once that is loaded. */
export interface SubCall {
  phase: string
  ref: string
  place: Place
  inputs: Mapping
  /** What their templates give. */
  givens: Givens
  /** Inputs of the sub-team that get a secret input of this team. */
  secrets: { input: string; secret: string; place: Place }[]
}

/**
 * A use of a phase in an expression. A phase `by` must depend on it; null stands for a place that may name any phase.
 */
export interface PhaseUse {
  name: string
  by: string | null
  place: Place
}

/**
 * The site for the templates of phase `by`. `onInput` is called for each input that they name; `secrets` allows named
 * secrets.
 */
export function siteOf(
  compilation: Compilation,
  by: string | null,
  options: { item?: boolean; secrets?: boolean; result?: boolean; onInput?: (name: string, place: Place) => void } = {},
): Site {
  const { phases, around, inputs, types, maps, files, patterns, givens } = compilation
  const names: Names = {
    phases,
    inputs,
    patterns,
    item: options.item === true || around !== null,
    secrets: options.secrets ?? false,
    result: options.result ?? false,
    ...(around && { around }),
    ...(types && { types, maps }),
  }
  const used = (use: Use, place: Place): void => {
    if (use.kind === 'phase') compilation.uses.push({ name: use.name, by, place })
    else if (use.kind === 'secret') compilation.namedSecrets.add(use.name)
    else if (use.kind === 'item') {
      // In `key` and `inputs` of a map it is that of this map, and otherwise that of the map around.
      if (!options.item) compilation.reads.add(use.name)
    } else {
      compilation.reads.add(use.name)
      options.onInput?.(use.name, place)
    }
  }
  return { source: compilation.source, names, files, used, given: givens }
}

/** Templates that were compiled before are checked by what they give; others pass. */
export function checkAgainst({ givens, source }: Compilation, node: Node, schema: TSchema): void {
  for (const { place, message } of checkValue(node, schema, false, givens)) source.report(place, message)
}

/** Milliseconds of a duration that the schema has already checked. */
export function duration(node: Node | undefined): number | undefined {
  const text = textOf(node)
  return text === undefined ? undefined : (parseDuration(text) ?? undefined)
}

export function numberOf(node: Node | undefined): number | undefined {
  return node?.kind === 'scalar' && typeof node.value === 'number' ? node.value : undefined
}

export function isTrue(node: Node | undefined): boolean {
  return node?.kind === 'scalar' && node.value === true
}

/** `node` with only some of its fields. */
export function only(node: Mapping, keep: (key: string) => boolean): Mapping {
  return { ...node, entries: new Map([...node.entries].filter(([key]) => keep(key))) }
}

/** An empty mapping at a place. */
export function nothingAt(place: Place): Mapping {
  return { kind: 'map', offset: place.offset, path: place.path, entries: new Map() }
}

/** Leaves out undefined fields, as exact optional properties require. */
export function defined<T extends object>(fields: T): Defined<T> {
  const kept: Defined<T> = {}
  for (const key in fields) {
    const value = fields[key]
    if (value !== undefined) kept[key] = value as Exclude<T[typeof key], undefined>
  }
  return kept
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }
