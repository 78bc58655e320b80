// A team while it is being compiled: its source, what is known by name, and what its expressions name.

import type { TSchema } from 'typebox'
import type { AgentDefinition } from '../../agent/define.ts'
import { parseDuration } from '../../duration.ts'
import type { Names, Site, Use, Work } from '../cel/cel.ts'
import type { Source } from '../yaml/yaml.ts'
import { type Mapping, type Node, type Place, textOf } from '../yaml/yaml.ts'
import { checkValue } from './check.ts'

/** What is asked of the catalogue of agents. */
export interface AgentLookup {
  get(name: string): AgentDefinition | undefined
  names(): string[]
}

export interface Compilation {
  source: Source
  /** Null: agents were checked before and are not looked up again. */
  agents: AgentLookup | null
  /** Keys in the bundle of the teams that this one names. */
  refs: Readonly<Record<string, string>>
  phases: ReadonlySet<string>
  inputs: ReadonlySet<string>
  /** Names of inputs that are secret. */
  secrets: ReadonlySet<string>
  /** Names of inputs of type file. */
  files: ReadonlySet<string>
  /** Named secrets that expressions read. */
  namedSecrets: Set<string>
  /** What its regular expressions may take together. */
  patterns: Work
  uses: PhaseUse[]
}

/** A phase that an expression names: `by` a phase, which must depend on it, or by something that may name any (null). */
export interface PhaseUse {
  name: string
  by: string | null
  place: Place
}

/** Where templates of `by` are compiled; `onInput` is told of the inputs that they name, `secrets` allows named secrets. */
export function siteOf(
  compilation: Compilation,
  by: string | null,
  options: { item?: boolean; secrets?: boolean; onInput?: (name: string, place: Place) => void } = {},
): Site {
  const { phases, inputs, files, patterns } = compilation
  const names: Names = {
    phases,
    inputs,
    patterns,
    item: options.item ?? false,
    secrets: options.secrets ?? false,
  }
  const used = (use: Use, place: Place): void => {
    if (use.kind === 'phase') compilation.uses.push({ name: use.name, by, place })
    else if (use.kind === 'secret') compilation.namedSecrets.add(use.name)
    else options.onInput?.(use.name, place)
  }
  return { source: compilation.source, names, files, used }
}

export function checkAgainst(compilation: Compilation, node: Node, schema: TSchema): void {
  for (const { place, message } of checkValue(node, schema)) compilation.source.report(place, message)
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

/** `node` with some of its fields only. */
export function only(node: Mapping, keep: (key: string) => boolean): Mapping {
  return { ...node, entries: new Map([...node.entries].filter(([key]) => keep(key))) }
}

/** An empty mapping at a place. */
export function nothingAt(place: Place): Mapping {
  return { kind: 'map', offset: place.offset, path: place.path, entries: new Map() }
}

/** Leaves out what is undefined, as exact optional properties want it. */
export function defined<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
}
