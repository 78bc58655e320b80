// What a new attempt repeats, over every graph of at most four phases, every way in which they may have ended, and every
// request.

import { expect, test } from 'bun:test'
import { type EndedPhase, repetitions } from '../../../lib/run/core/core.ts'

const END = { onFailure: 'fail', isMap: false, reason: null, holdsFailures: false } as const
/** How a phase may have ended, as far as the rule can tell. */
const ENDS: Record<string, Omit<EndedPhase, 'dependsOn'>> = {
  completed: { ...END, state: 'completed' },
  holder: { ...END, isMap: true, state: 'completed', holdsFailures: true },
  failed: { ...END, isMap: true, state: 'failed' },
  passedOver: { ...END, onFailure: 'continue', state: 'failed' },
  cancelled: { ...END, state: 'cancelled' },
  byWhen: { ...END, isMap: true, state: 'skipped', reason: 'when' },
  upstream: { ...END, state: 'skipped', reason: 'upstream' },
  byPerson: { ...END, state: 'skipped', reason: 'person' },
}
const NAMES = Object.keys(ENDS)

interface Graph {
  dependsOn: number[][]
  /** By phase: those that depend on it, directly or not. */
  behind: Set<number>[]
}

/** Every graph of `size` phases in an order in which each comes after those that it depends on. */
function* graphs(size: number): Generator<Graph> {
  const edges = Array.from({ length: size }, (_, to) =>
    Array.from({ length: to }, (_, from) => [from, to] as const),
  ).flat()
  for (let bits = 0; bits < 2 ** edges.length; bits++) {
    const dependsOn: number[][] = Array.from({ length: size }, () => [])
    for (const [n, [from, to]] of edges.entries()) if (bits & (1 << n)) dependsOn[to]!.push(from)
    const behind = dependsOn.map(() => new Set<number>())
    for (let from = size - 1; from >= 0; from--) {
      for (let to = from + 1; to < size; to++) {
        if (!dependsOn[to]!.includes(from)) continue
        behind[from]!.add(to)
        for (const each of behind[to]!) behind[from]!.add(each)
      }
    }
    yield { dependsOn, behind }
  }
}

function* tuples<T>(values: readonly T[], length: number): Generator<T[]> {
  if (length === 0) return yield []
  for (const rest of tuples(values, length - 1)) for (const value of values) yield [...rest, value]
}

const isDone = (name: string) => name === 'completed' || name === 'holder' || name === 'byPerson'
const mayStay = (name: string) => name === 'passedOver' || name === 'byWhen'

/** The rules that a decision breaks. They say what the contract says, and nothing about how it is decided. */
function* broken(
  { dependsOn, behind }: Graph,
  ends: string[],
  from: number | null,
  failed: boolean,
): Generator<string> {
  const phases = ends.map((name, at): EndedPhase => ({ ...ENDS[name]!, dependsOn: dependsOn[at]! }))
  const plain = repetitions(phases, { from: null, failed: false })
  const made = repetitions(phases, { from, failed })
  const repeats = made.map(each => each !== 'keep')
  const wanted = (at: number) => at === from || (failed && (ends[at] === 'passedOver' || ends[at] === 'holder'))
  for (const [at, name] of ends.entries()) {
    const isBehindRepeated = dependsOn[at]!.some(each => repeats[each])
    if (isBehindRepeated && !repeats[at]) yield 'what is repeated is closed'
    if (isDone(name) && repeats[at] && !wanted(at) && !isBehindRepeated)
      yield 'a result is repeated only where it is asked for, or behind what is repeated'
    if (!isDone(name) && !mayStay(name) && !repeats[at]) yield 'what kept a run from completing is repeated'
    if (mayStay(name) && !wanted(at) && !isBehindRepeated) {
      const isStoodOn = [...behind[at]!].some(each => isDone(ends[each]!))
      if (repeats[at] === isStoodOn) yield 'what was passed over stays exactly where something stands on it'
    }
    if (wanted(at) && !repeats[at]) yield 'what is asked for is repeated'
    if (plain[at] !== 'keep' && !repeats[at]) yield 'a request adds to what a plain resume repeats'
    for (const each of dependsOn[at]!) {
      if (repeats[each] && phases[at]!.isMap && made[at] === 'rest')
        yield 'items are evaluated again behind what is repeated'
    }
    const isNamed = from !== null && (at === from || behind[from]!.has(at))
    if (isNamed && made[at] !== 'whole') yield 'the named phase and all behind it are repeated whole'
    if (!isNamed && made[at] === 'whole' && (phases[at]!.isMap || !isDone(name)))
      yield 'an item that completed is repeated by its map’s name only'
  }
}

/** Of four phases, one end stands for all that the rule takes alike, for there are 64 graphs of them. */
const FEW = ['completed', 'holder', 'failed', 'passedOver', 'byWhen']

test.each([
  [1, NAMES],
  [2, NAMES],
  [3, NAMES],
  [4, FEW],
])('every graph of %p phases', (size, names) => {
  const faults = new Map<string, string>()
  for (const graph of graphs(size)) {
    for (const ends of tuples(names, size)) {
      for (const from of [null, ...ends.keys()]) {
        for (const failed of [false, true]) {
          for (const rule of broken(graph, ends, from, failed)) {
            faults.set(rule, JSON.stringify({ dependsOn: graph.dependsOn, ends, from, failed }))
          }
        }
      }
    }
  }
  expect(Object.fromEntries(faults)).toEqual({})
})

test('the failure because of which another phase ran stays, with that phase', () => {
  const phases: EndedPhase[] = [
    { ...ENDS.passedOver!, dependsOn: [] },
    { ...ENDS.completed!, dependsOn: [0] },
    { ...ENDS.failed!, dependsOn: [0, 1] },
  ]
  expect(repetitions(phases, { from: null, failed: false })).toEqual(['keep', 'keep', 'rest'])
  expect(repetitions(phases, { from: null, failed: true })).toEqual(['rest', 'whole', 'renew'])
  expect(repetitions(phases, { from: 1, failed: false })).toEqual(['keep', 'whole', 'whole'])
})

test('a cleanup that completed is repeated with what it cleans up after, and so is all behind it', () => {
  const phases: EndedPhase[] = [
    { ...ENDS.failed!, dependsOn: [] },
    { ...ENDS.completed!, dependsOn: [0] },
    { ...ENDS.holder!, dependsOn: [1] },
    { ...ENDS.completed!, dependsOn: [] },
  ]
  expect(repetitions(phases, { from: null, failed: false })).toEqual(['rest', 'whole', 'renew', 'keep'])
})
