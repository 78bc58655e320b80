import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { until } from '../support/bounded.ts'
import { testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

const team = (name: string, run: string) => `
name: "@local/${name}"
version: 1.0.0
phases:
  - { name: wait, agent: exec, commands: [{ name: w, run: "${run}" }] }
`

test('a run that cannot be read back fails, and other runs continue', async () => {
  const home = folder()
  const first = await testEngine({ home })
  const broken = await first.start(team('broken', 'sleep 60'))
  const workspace = folder()
  const sound = await first.start(team('sound', 'test -e done || { touch done; sleep 60; }'), {}, { workspace })
  await until(() => existsSync(join(workspace, 'done')), 'the command')
  first.engine.store.db.run(
    `UPDATE bundles SET json = '{"root":".","teams":{}}' WHERE id = (SELECT bundle_id FROM runs WHERE id = ?)`,
    [broken.run_id],
  )
  // It is reported to a hub, and one of its messages was on its way.
  first.engine.store.db.run('UPDATE runs SET synced = 1 WHERE id = ?', [broken.run_id])
  first.engine.store.db.run(
    `INSERT INTO deliveries (run_id, number, listener, event, payload, state) VALUES (?, 0, 'tell', 'on_start', '{}', 'sent')`,
    [broken.run_id],
  )
  await first.close()
  const second = await testEngine({ home })
  expect((await second.engine.ended(sound.run_id)).state).toBe('completed')
  expect(await second.engine.ended(broken.run_id)).toMatchObject({ state: 'failed', reason: 'internal' })
  await second.close()
})

test('states above a question that an older version did not record are mended', async () => {
  const home = folder()
  const first = await testEngine({ home })
  const { run_id } = await first.start({
    'team.yml': `
name: "@local/above"
version: 1.0.0
phases:
  - { name: below, type: team, team: ./below }
`,
    'below/team.yml': `
name: "@local/below"
version: 1.0.0
phases:
  - { name: approve, type: gate, review: { prompt: "Go?" } }
`,
  })
  const states = () => [first.engine.record(run_id).state, first.engine.phases(run_id).phases[0]!.state]
  await until(() => states().every(state => state === 'awaiting_input'), 'the question')
  first.engine.store.db.run("UPDATE runs SET state = 'running', reason = NULL WHERE parent_id IS NULL")
  first.engine.store.db.run("UPDATE phases SET state = 'running', reason = NULL WHERE run_id = ?", [run_id])
  await first.close()
  const second = await testEngine({ home })
  await until(() => second.engine.record(run_id).state === 'awaiting_input', 'the state')
  expect(brokenInvariants(second.db)).toEqual([])
  await second.close()
})
