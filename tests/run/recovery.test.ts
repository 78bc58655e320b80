import { expect, test } from 'bun:test'
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
  const sound = await first.start(
    team('sound', 'test -e done || { touch done; sleep 60; }'),
    {},
    { workspace: folder() },
  )
  await Bun.sleep(100)
  first.engine.store.db.run(
    `UPDATE bundles SET json = '{"root":".","teams":{}}' WHERE id = (SELECT bundle_id FROM runs WHERE id = ?)`,
    [broken.run_id],
  )
  await first.close()
  const second = await testEngine({ home })
  expect((await second.engine.ended(sound.run_id)).state).toBe('completed')
  expect(await second.engine.ended(broken.run_id)).toMatchObject({ state: 'failed', reason: 'internal' })
  await second.close()
})
