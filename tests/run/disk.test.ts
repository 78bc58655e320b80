// A disk that takes no more: the engine waits, loses nothing, and goes on when there is space again.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { AgentError } from '../../lib/agent/cadre.ts'
import { runPhases } from '../../lib/run/engine.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { act, scripted, team } from '../support/scripted.ts'

const { agents, attempts } = scripted({
  much: async context => {
    await Bun.sleep(10)
    if (context.phase.name === 'again' && context.attempt === 1) throw new AgentError('not yet', { retryable: true })
    return { text: 'more than fits a page'.padEnd(20_000, '.') }
  },
})

let t: TestEngine
beforeEach(async () => {
  attempts.length = 0
  t = await testEngine({ agents, slots: 5 })
})
afterEach(() => t.close())

const text = team([
  ...Array.from({ length: 24 }, (_, n) => act(`p${n}`, 'much', n >= 6 ? { depends_on: [`p${n - 6}`] } : {})),
  // Its time comes while nothing can be written.
  act('again', 'much', { retry: { attempts: 2, backoff: '200ms' } }),
])

/** How the file system refuses, and how it is made to take writes again. */
const REFUSALS: Record<string, [refuse: () => string, allow: string]> = {
  full: [() => `PRAGMA max_page_count = ${pages() + 20}`, 'PRAGMA max_page_count = 1000000'],
  readonly: [() => 'PRAGMA query_only = ON', 'PRAGMA query_only = OFF'],
}

const pages = () => t.engine.store.db.query<{ page_count: number }, []>('PRAGMA page_count').get()!.page_count

for (const [kind, [refuse, allow]] of Object.entries(REFUSALS)) {
  test(`a disk that is ${kind} stalls, and space lets everything go on`, async () => {
    const { engine } = t
    const runs = [await t.start(text), await t.start(text)]
    while (attempts.length < 8) await Bun.sleep(1)
    engine.store.db.run(refuse())
    for (let n = 0; n < 500 && !engine.load.stalled; n++) await Bun.sleep(4)
    expect(engine.load.stalled).toContain(kind)
    expect(engine.load.free).toBe(0)
    const called = attempts.length
    await Bun.sleep(1_200)
    expect(attempts.length).toBe(called)
    expect(brokenInvariants(engine.store.db)).toEqual([])

    // Who asks for something meanwhile is told so at once, and may ask again.
    await expect(t.start(text)).rejects.toMatchObject({ code: 'unavailable' })
    engine.store.db.run(allow)
    while (engine.load.stalled) await Bun.sleep(20)
    runs.push(await t.start(text))
    for (const { run_id } of runs) {
      expect((await engine.ended(run_id)).state).toBe('completed')
      const rows = runPhases(engine.store, run_id, id => engine.bundle(id)).phases
      expect(rows.map(phase => [phase.state, phase.attempt])).toEqual([
        ...Array(24).fill(['completed', 1]),
        ['completed', 2],
      ])
    }
    expect(attempts.length).toBe(78)
    expect(new Set(attempts).size).toBe(78)
    expect(engine.load).toMatchObject({ runs: 0, slots: 0, stalled: null })
    expect(brokenInvariants(engine.store.db)).toEqual([])
  }, 20_000)
}
