// One chore whose steps miss their deadline: the failure is told once, and no other step begins beside the late one.

import { expect, test } from 'bun:test'
import { ChoreLoop } from '../../lib/hub/chores/chore-loop.ts'
import type { ChoreOutcome, Steps } from '../../lib/hub/core/chore.ts'
import { until } from '../support/bounded.ts'

const FAILURE = 'the step is late'

/** A chore that is due all the time, with a deadline of 20 ms for a step, and what was told of it. */
function watched(run: () => Steps) {
  const outcomes: ChoreOutcome[] = []
  const warnings: string[] = []
  const loop = new ChoreLoop({
    chore: { name: 'late', everyMs: 1, failure: FAILURE, stepMs: 20 },
    run,
    isMine: () => true,
    now: () => Date.now(),
    note: outcome => void outcomes.push(outcome),
    log: { warn: message => void warnings.push(message) },
  })
  return { loop, outcomes, warnings }
}

/** Steps that go on until `end`: how many have begun, and how many went on at once. */
function slowSteps() {
  const going = new Set<() => void>()
  let begun = 0
  let most = 0
  return {
    async step() {
      begun++
      const { promise, resolve } = Promise.withResolvers<void>()
      going.add(resolve)
      most = Math.max(most, going.size)
      await promise
      going.delete(resolve)
    },
    end() {
      for (const each of going) each()
    },
    figures: () => ({ begun, most }),
  }
}

for (const kind of ['in one step', 'in steps'] as const) {
  test(`the next run of a chore ${kind} waits for a step that missed its deadline`, async () => {
    const slow = slowSteps()
    const { loop, outcomes, warnings } = watched(() => {
      if (kind === 'in one step') return slow.step()
      return (async function* () {
        await slow.step()
        yield
      })()
    })
    await until(() => outcomes.length > 0, 'the deadline has passed')
    loop.wake()
    await Bun.sleep(200)
    expect(slow.figures()).toEqual({ begun: 1, most: 1 })
    expect(outcomes.map(({ last_error }) => last_error)).toEqual(['a step did not end within 0.02 s'])
    expect(warnings).toEqual([FAILURE])
    slow.end()
    await until(() => slow.figures().begun === 2, 'the next run has begun')
    expect(slow.figures().most).toBe(1)
    const stopped = loop.stop()
    slow.end()
    await stopped
  })
}

test('a stop does not wait for a step that hangs', async () => {
  const slow = slowSteps()
  const { loop, outcomes } = watched(slow.step)
  await until(() => outcomes.length > 0, 'the deadline has passed')
  const began = performance.now()
  await loop.stop()
  expect(performance.now() - began).toBeLessThan(10_000)
  slow.end()
})
