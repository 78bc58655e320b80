// Random teams of the reference model, and the same teams as files.

import type { JsonObject } from '../../../lib/json.ts'
import type { Random } from '../../support/random.ts'

/**
 * - `step` asks the world for a value, `ticket` writes once, `gate` asks a person. `hang` never returns, so its clock
 *   ends it. `slow` is a team phase whose clock ends it, because a phase below it never returns.
 */
export type Kind = 'step' | 'ticket' | 'gate' | 'hang' | 'slow' | 'team' | 'map'

export interface ModelPhase {
  kind: Kind
  /** Earlier phases. */
  depends: number[]
  /** Asks how the first dependency ended, or is never true. */
  when: 'none' | 'never' | 'failed' | 'completed'
  always: boolean
  onFailure: 'fail' | 'continue' | 'escalate'
  /** Its first try in each attempt of its run fails in a way that is tried again. */
  flaky: boolean
  /** A step before it, whose value it gives to its sub-runs. */
  takes: number | null
  items: number
  /** The keys of its items follow from the value that it takes. */
  moves: boolean
  stops: boolean
  team: ModelPhase[]
}

/** `asks`: people may be asked. Below a map that stops they are not, for it goes on with other items meanwhile. */
export function teamOf(random: Random, depth: number, asks = true): ModelPhase[] {
  const phases: ModelPhase[] = []
  const size = 2 + random.below(4)
  for (let position = 0; position < size; position++) {
    const depends = phases.map((_, n) => n).filter(() => random.once(2))
    const leaves: Kind[] = ['step', 'step', 'step', 'ticket', ...(asks ? (['gate'] as const) : [])]
    const rare: Kind[] = random.once(8) ? ['hang', 'slow'] : []
    const kind = random.of<Kind>(depth > 0 ? [...leaves, ...rare, 'team', 'map', 'map', 'map'] : [...leaves, ...rare])
    const stops = kind === 'map' && random.once(2)
    const steps = depends.filter(n => phases[n]!.kind === 'step')
    phases.push({
      kind,
      depends,
      when: depends.length > 0 && random.once(4) ? random.of(['never', 'failed', 'completed']) : 'none',
      always: random.once(6),
      onFailure: random.of([
        'fail',
        'continue',
        'continue',
        asks && kind !== 'gate' && random.once(3) ? 'escalate' : 'fail',
      ]),
      flaky: kind === 'step' && random.once(5),
      takes: (kind === 'team' || kind === 'map') && steps.length > 0 && random.once(2) ? random.of(steps) : null,
      items: random.below(4),
      moves: random.once(2),
      stops,
      team: kind === 'team' || kind === 'map' ? teamOf(random, depth - 1, asks && !stops) : [],
    })
  }
  return phases
}

/** The keys of the items of a map that takes `value`. */
export function keysOf({ items, moves }: ModelPhase, value: number): string[] {
  return Array.from({ length: items }, (_, item) => `k${moves ? (item + value) % 5 : item}`)
}

const HANGS = { agent: 'world', sources: [{ name: 'x', path: '{{ inputs.path }}', hangs: true }] }

/** Files by path. A run is told where it is (`path`), and a value (`n`). */
export function teamFiles(team: ModelPhase[], folder = ''): Record<string, string> {
  const files: Record<string, string> = {}
  const phases = team.map((phase, position) => {
    const { kind, depends, always, onFailure, takes } = phase
    const name = `p${position}`
    const path = `{{ inputs.path }}/${name}`
    const value =
      takes === null ? '0' : `(phases.p${takes}.data == null ? 0 : int(phases.p${takes}.data.?value.orValue(0)))`
    const common: JsonObject = {
      name,
      depends_on: depends.map(on => `p${on}`),
      on_failure: onFailure,
      ...(always && { always }),
      ...(phase.when !== 'none' && { when: whenOf(phase) }),
    }
    if (kind === 'team' || kind === 'map') Object.assign(files, teamFiles(phase.team, `${folder}${name}/`))
    switch (kind) {
      case 'step':
        return {
          ...common,
          agent: 'world',
          retry: { attempts: 2, backoff: '1ms' },
          sources: [{ name: 'x', path, flaky: phase.flaky }],
        }
      case 'ticket':
        return { ...common, agent: 'world', target_entries: [{ name: 'x', path }] }
      case 'gate':
        return { ...common, type: 'gate', review: { prompt: 'Go on?', reviewers: ['any'] } }
      case 'hang':
        return { ...common, ...HANGS, timeout: '100ms' }
      case 'slow': {
        const below = { ...HEAD, inputs: INPUTS, phases: [{ name: 'p0', ...HANGS }] }
        files[`${folder}${name}/team.yml`] = JSON.stringify(below)
        return { ...common, type: 'team', team: `./${name}`, timeout: '200ms', inputs: { path, n: 0 } }
      }
      case 'team':
        return { ...common, type: 'team', team: `./${name}`, inputs: { path, n: `{{ ${value} }}` } }
      default: {
        const numbers = JSON.stringify(Array.from({ length: phase.items }, (_, item) => item))
        const key = phase.moves ? `(int(i) + int(${value})) % 5` : 'i'
        return {
          ...common,
          type: 'map',
          team: `./${name}`,
          items: `{{ ${numbers}.map(i, 'k' + string(${key})) }}`,
          key: '{{ item }}',
          inputs: { path: `${path}/{{ item }}`, n: `{{ ${value} }}` },
          on_item_failure: phase.stops ? 'stop' : 'continue',
          concurrency: phase.stops ? 1 : 2,
        }
      }
    }
  })
  files[`${folder}team.yml`] = JSON.stringify({ ...HEAD, inputs: INPUTS, phases })
  return files
}

const HEAD = { name: '@local/model', version: '1.0.0' }
const INPUTS = [
  { name: 'path', type: 'string', required: true },
  { name: 'n', type: 'number', required: true },
]

const whenOf = ({ when, depends }: ModelPhase): string =>
  when === 'never' ? '1 > 2' : `phases.p${depends[0]}.state == '${when}'`
