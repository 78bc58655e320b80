// A short storm of runs whose replies get lost, for each agent with writes that nobody wants twice. The long one is
// `bun run chaos -- --doubt`.

import { expect, test } from 'bun:test'
import { TARGETS } from '../support/doubt-agents.ts'
import { doubtStorm } from '../support/doubt-storm.ts'
import { seedOf } from '../support/random.ts'

const RUNS: Record<string, number> = { ticket: 60, github: 4, bitbucket: 4 }

test.each(TARGETS)(
  'nothing exists twice without its run saying so, and nothing is missing in a run that completed: %s',
  async name => {
    const expected = RUNS[name] ?? 8
    const { runs, objects, took } = await doubtStorm(seedOf('doubt'), name, expected)
    expect([runs, objects > 0]).toEqual([expected, true])
    if (name === 'ticket') expect(took.length).toBeGreaterThan(0)
  },
  120_000,
)
