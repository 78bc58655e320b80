// A long backlog for the hub is read as it is sent, not as a whole.

import { expect, test } from 'bun:test'
import { SyncOutbox } from '../../lib/run/engine.ts'
import { testEngine } from '../support/engine.ts'

const BODIES = 150
const BODY_BYTES = 900_000

test('sending four changes does not read all waiting changes into memory', async () => {
  const t = await testEngine()
  const { store } = t.engine
  store.db.run('BEGIN')
  for (let n = 0; n < BODIES; n++) {
    store.outbox.insert(`run ${n}`, 1, 'run', JSON.stringify({ run: { text: `${n}`.padEnd(BODY_BYTES, 'x') } }))
  }
  store.db.run('COMMIT')
  const outbox = new SyncOutbox(store, 'full', runId => t.engine.stateDir(runId))
  Bun.gc(true)
  const before = process.memoryUsage.rss()
  const changes = await outbox.take(4_000_000)
  const grown = process.memoryUsage.rss() - before
  expect(changes.map(({ seq, run_id }) => [seq, run_id])).toEqual([1, 2, 3, 4].map(seq => [seq, `run ${seq - 1}`]))
  // All of them are 135 MB, and twice that as objects.
  expect(grown).toBeLessThan(60_000_000)
  outbox.acknowledge(4)
  expect((await outbox.take(1))[0]).toMatchObject({ seq: 5 })
  await t.close()
})
