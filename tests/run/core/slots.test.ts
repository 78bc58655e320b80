// Turns for slots, against a list that does the same by looking at everything: never more than there are, in turn over
// the roots, first come first served inside one, and nobody is forgotten.

import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Slots } from '../../../lib/run/core/slots.ts'

const ROOTS = ['a', 'b', 'c', 'd'] as const

interface Model {
  limit: number
  inUse: number
  /** Who waits, in the order in which they came. */
  waiting: { root: string; item: number }[]
}
type Step = fc.Command<Model, Slots<number>>

let nextItem = 0

class Want implements Step {
  readonly #root: string
  constructor(root: string) {
    this.#root = root
  }
  check = () => true
  run(model: Model, real: Slots<number>) {
    const item = nextItem++
    model.waiting.push({ root: this.#root, item })
    real.want(this.#root, item)
    compare(model, real)
  }
  toString = () => `want(${this.#root})`
}

class Next implements Step {
  check = () => true
  run(model: Model, real: Slots<number>) {
    const given = real.next()
    if (model.inUse === model.limit || model.waiting.length === 0) expect(given).toBeNull()
    else {
      // Whose turn it is among the roots is checked below; inside a root it is who came first.
      const at = model.waiting.findIndex(({ item }) => item === given)
      expect(at).toBeGreaterThanOrEqual(0)
      const { root } = model.waiting[at]!
      expect(model.waiting.find(other => other.root === root)!.item).toBe(given!)
      model.waiting.splice(at, 1)
      model.inUse++
    }
    compare(model, real)
  }
  toString = () => 'next()'
}

class Release implements Step {
  check = (model: Readonly<Model>) => model.inUse > 0
  run(model: Model, real: Slots<number>) {
    model.inUse--
    real.release()
    compare(model, real)
  }
  toString = () => 'release()'
}

class Drop implements Step {
  readonly #which: number
  constructor(which: number) {
    this.#which = which
  }
  check = (model: Readonly<Model>) => model.waiting.length > 0
  run(model: Model, real: Slots<number>) {
    const [gone] = model.waiting.splice(this.#which % model.waiting.length, 1)
    real.drop(gone!.item)
    compare(model, real)
  }
  toString = () => `drop(${this.#which})`
}

function compare(model: Model, real: Slots<number>): void {
  expect([real.inUse, real.free]).toEqual([model.inUse, model.limit - model.inUse])
}

test('no more slots are used than exist, and items of a root get them in the order in which they came', () => {
  const step = fc.oneof(
    fc.constantFrom(...ROOTS).map(root => new Want(root)),
    fc.constant(new Next()),
    fc.constant(new Release()),
    fc.nat(100).map(which => new Drop(which)),
  )
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 5 }), fc.commands([step], { maxCommands: 60 }), (limit, steps) => {
      fc.modelRun(() => ({ model: { limit, inUse: 0, waiting: [] } as Model, real: new Slots<number>(limit) }), steps)
    }),
    { numRuns: 500 },
  )
})

const sizes = fc.array(fc.nat(12), { minLength: 1, maxLength: ROOTS.length })

/** Roots in the order in which they get slots, when each of them wants as many as `counts` says. */
function turns(counts: readonly number[], limit: number, order: (root: number, n: number) => number): string[] {
  const slots = new Slots<string>(limit)
  const wants = counts.flatMap((count, root) => Array.from({ length: count }, (_, n) => ({ root, n })))
  wants.sort((one, other) => order(one.root, one.n) - order(other.root, other.n))
  for (const { root, n } of wants) slots.want(ROOTS[root]!, `${ROOTS[root]} ${n}`)
  const given: string[] = []
  for (;;) {
    const item = slots.next()
    if (item !== null) given.push(item)
    else if (slots.inUse > 0) slots.release()
    else return given
  }
}

test('roots take turns: while one waits, no other gets two slots', () => {
  fc.assert(
    fc.property(sizes, fc.integer({ min: 1, max: 5 }), fc.boolean(), (counts, limit, mixed) => {
      const given = turns(counts, limit, mixed ? (_, n) => n : root => root)
      expect(given.length).toBe(counts.reduce((sum, count) => sum + count, 0))
      const left = [...counts]
      const since = counts.map(() => new Map<string, number>())
      for (const item of given) {
        const root = ROOTS.indexOf(item.split(' ')[0] as never)
        left[root]!--
        since[root]!.clear()
        for (const [other, seen] of since.entries()) {
          if (other === root || left[other] === 0) continue
          seen.set(ROOTS[root]!, (seen.get(ROOTS[root]!) ?? 0) + 1)
          expect([given, seen.get(ROOTS[root]!)! <= 1]).toEqual([given, true])
        }
      }
    }),
  )
})

test('a root that joins a long queue gets one of the next two turns', () => {
  const slots = new Slots<string>(1)
  for (let n = 0; n < 60; n++) slots.want('long', `long ${n}`)
  expect(slots.next()).toBe('long 0')
  slots.want('short', 'short')
  slots.release()
  const two = [slots.next()]
  slots.release()
  two.push(slots.next())
  expect(two).toContain('short')
})

test('a dropped item gets no slot; an item with a slot cannot be dropped; an empty root is skipped', () => {
  const slots = new Slots<string>(2)
  slots.want('a', 'a1')
  slots.want('b', 'b1')
  slots.want('b', 'b2')
  expect(slots.next()).toBe('a1')
  slots.drop('a1')
  slots.drop('b1')
  slots.drop('nobody')
  expect([slots.inUse, slots.free]).toEqual([1, 1])
  expect([slots.next(), slots.next()]).toEqual(['b2', null])
  slots.release()
  slots.release()
  expect([slots.inUse, slots.free, slots.next()]).toEqual([0, 2, null])
})
