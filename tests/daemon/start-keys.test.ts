// A start that is repeated with its idempotency key gives the run of the first one.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { files, spawnDaemon } from '../support/daemon.ts'
import { HELLO } from './teams.ts'

const SECRET = `name: "@local/keyed"
version: 1.0.0
inputs: [{ name: key, type: string, secret: true }]
phases: [{ name: say, agent: exec, commands: [{ name: c, run: "true" }] }]
`

test('one key starts one run, also at once, after a restart, and until the run is deleted', async () => {
  const daemon = await spawnDaemon()
  const request = { path: files({ 'team.yml': HELLO }), inputs: { who: 'Ada', times: 2 }, idempotency_key: 'k' }
  const all = await Promise.all(Array.from({ length: 5 }, () => daemon.call('/v1/runs/start', request)))
  const [first] = all.map(({ run_id }) => run_id)
  expect(new Set(all.map(({ run_id }) => run_id)).size).toBe(1)
  await daemon.ended(first)
  // The order of properties says nothing.
  const { idempotency_key, inputs, path } = request
  const again = { inputs: { times: inputs.times, who: inputs.who }, idempotency_key, path }
  expect(await daemon.call('/v1/runs/start', again)).toMatchObject({ run_id: first, state: 'completed' })
  const other = await daemon.post('/v1/runs/start', { ...request, inputs: { who: 'Grace' } })
  expect(other.status).toBe(409)
  expect(other.body.error.message).toContain('choose a new key')
  expect((await daemon.call('/v1/runs/list', {})).total).toBe(1)

  await daemon.stop()
  const later = await spawnDaemon({ home: daemon.home })
  expect((await later.call('/v1/runs/start', request)).run_id).toBe(first)
  await later.call('/v1/runs/delete', { run_id: first }, { authorization: `Bearer ${later.token}` })
  expect((await later.call('/v1/runs/start', request)).run_id).not.toBe(first)
})

test('a start that is refused leaves its key free, and what is kept of a key tells no input', async () => {
  const daemon = await spawnDaemon()
  const path = files({ 'team.yml': SECRET })
  const refused = await daemon.post('/v1/runs/start', { path, inputs: { other: 1 }, idempotency_key: 'k' })
  expect(refused.status).toBe(400)
  const request = { path, inputs: { key: 'canary' }, idempotency_key: 'k' }
  const { run_id } = await daemon.call('/v1/runs/start', request)
  await daemon.ended(run_id)
  using db = new Database(join(daemon.home, 'daemon.db'), { readonly: true })
  const rows = db.query<Record<string, string>, []>('SELECT * FROM start_keys').all()
  expect(rows).toHaveLength(1)
  expect(rows[0]).toMatchObject({ run_id, key: expect.stringMatching(/^[0-9a-f]{64}$/) })
  expect(JSON.stringify(rows)).not.toContain('canary')
})
