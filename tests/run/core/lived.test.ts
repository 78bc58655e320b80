// The lived time of a home over processes that are stopped and killed: it never exceeds what they lived, never goes back
// behind what was kept, and a kill costs no more than what was not kept.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Facts } from '../../../lib/run/store/bundles.ts'
import { Lived } from '../../../lib/run/store/lived.ts'

const step = fc.oneof(
  fc.record({ kind: fc.constant('passes' as const), ms: fc.nat(20_000) }),
  fc.record({ kind: fc.constantFrom('commit' as const, 'keep' as const, 'stop' as const, 'kill' as const) }),
)

function withFacts<T>(work: (facts: Facts) => T): T {
  using db = new Database(':memory:')
  db.run('CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)')
  return work(new Facts(db))
}

test('it is what the processes have lived, less what kills cost', () => {
  fc.assert(
    fc.property(fc.array(step), steps => {
      withFacts(facts => {
        let ofProcess = 7_000
        const open = () => new Lived(facts, () => ofProcess)
        let lived = open()
        const begin = lived.now()
        lived.keep()
        let passed = 0
        let lost = 0
        for (const each of steps) {
          if (each.kind === 'passes') {
            ofProcess += each.ms
            passed += each.ms
          } else if (each.kind === 'commit') {
            lived.keepSoon()
            expect(lived.unkept).toBeLessThan(1_000)
          } else if (each.kind === 'keep') lived.keep()
          else {
            if (each.kind === 'stop') lived.keep()
            lost += lived.unkept
            ofProcess = 100
            lived = open()
          }
          expect(lived.now()).toBe(begin + passed - lost)
        }
      })
    }),
  )
})

test('a home without it goes on from the time of its due times', () => {
  withFacts(facts => {
    const before = Date.now()
    const lived = new Lived(facts, () => 5_000)
    expect(lived.now()).toBeWithin(before, Date.now() + 1)
    facts.set('lived', 'nonsense')
    expect(new Lived(facts).now()).toBeWithin(before, Date.now() + 1)
  })
})
