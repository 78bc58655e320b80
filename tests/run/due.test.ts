// Limits of several phases that expire in one look, because the loop was held: what one of them ends is not due any more.

import { expect, test } from 'bun:test'
import { livedMs } from '../../lib/lived-time.ts'
import { until } from '../support/bounded.ts'
import { testEngine } from '../support/engine.ts'

test('a phase that the limit of the phase above has ended is ended once, and the run goes on to its end', async () => {
  let held = 0
  await using t = await testEngine({ lived: () => livedMs() + held })
  const { engine } = t
  const { run_id } = await t.start({
    'team.yml':
      'name: "@local/top"\nversion: 1.0.0\nphases: [{ name: above, type: team, team: ./middle, timeout: 1s }]\n',
    'middle/team.yml': `name: "@local/middle"
version: 1.0.0
phases:
  - { name: below, type: team, team: ../last, timeout: 2s }
  # Its process takes a while to end, so that the run is still open when the look comes to the phase above.
  - { name: slow, agent: exec, commands: [{ name: c, run: 'trap "sleep 0.5; exit 1" TERM; while :; do sleep 0.05; done' }] }
`,
    'last/team.yml': `name: "@local/last"
version: 1.0.0
phases: [{ name: again, agent: exec, retry: { attempts: 2, backoff: 1h }, commands: [{ name: c, run: exit 75 }] }]
`,
  })
  const states = () =>
    t.db
      .query(
        'SELECT p.state FROM phases p JOIN runs r ON r.id = p.run_id WHERE r.root_id = ? ORDER BY r.id, p.position',
      )
      .values(run_id)
      .join(' ')
  await until(() => states() === 'running running running pending', 'the last phase waits for its second attempt')
  held = 10_000
  const ended = await engine.ended(run_id)
  expect([ended.state, ended.error?.code]).toEqual(['failed', 'timeout'])
  expect(states()).toBe('failed cancelled cancelled cancelled')
})
