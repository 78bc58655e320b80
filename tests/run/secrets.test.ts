// Secret inputs on disk: there while their run is open, over a restart too, and gone when it has ended.

import { afterEach, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { RunIds } from '../../lib/files/run-ids.ts'
import { RootSecrets } from '../../lib/run/engine.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'

const SECRET = 'a-value-nobody-sees'
const team = (command: string) => `
name: "@local/secret"
version: 1.0.0
inputs: [{ name: token, type: string, required: true, secret: true }]
phases:
  - { name: a, agent: exec, commands: [{ name: c, env: { T: "{{ inputs.token }}" }, run: '${command}' }] }
`

let t: TestEngine
afterEach(() => t.close())
const kept = () => (existsSync(join(t.home, 'secrets')) ? readdirSync(join(t.home, 'secrets')) : [])

async function gone(): Promise<void> {
  for (let n = 0; n < 200 && kept().length > 0; n++) await Bun.sleep(5)
  expect(kept()).toEqual([])
}

test('a secret is kept sealed while its run is open, and continued with after a restart', async () => {
  const home = folder()
  t = await testEngine({ home })
  const path = join(folder(), 'seen')
  const { run_id } = await t.start(team(`[ -e ${path} ] || sleep 30; printf %s "$T" > ${path}.told`), { token: SECRET })
  expect(kept()).toEqual([run_id])
  expect(readFileSync(join(home, 'secrets', run_id)).includes(SECRET)).toBe(false)
  await t.close()
  await Bun.write(path, '')
  t = await testEngine({ home })
  expect(kept()).toEqual([run_id])
  expect((await t.engine.ended(run_id)).state).toBe('completed')
  expect(await Bun.file(`${path}.told`).text()).toBe(SECRET)
  await gone()
})

test('secrets that a kill left of a run that has ended or never began are removed at the next start', async () => {
  const home = folder()
  t = await testEngine({ home })
  const { run_id } = await t.run(team('true'), { token: SECRET })
  await t.close()
  const fields = [{ name: 'token', type: 'string' as const, required: true, secret: true }]
  for (const id of [run_id, new RunIds().next()]) await new RootSecrets(home).keep(id, fields, { token: SECRET })
  t = await testEngine({ home })
  await gone()
})

test('a start that is refused leaves nothing behind', async () => {
  t = await testEngine({ home: folder() })
  t.db.run("CREATE TRIGGER broken BEFORE INSERT ON runs BEGIN SELECT raise(ABORT, 'broken on purpose'); END")
  await expect(t.start(team('true'), { token: SECRET })).rejects.toThrow()
  expect(kept()).toEqual([])
})

test('starting a run again that has ended leaves nothing behind', async () => {
  t = await testEngine({ home: folder() })
  const runId = new RunIds().next()
  const begin = await t.prepare(team('true'), { token: SECRET })
  await begin({ runId })
  await t.engine.ended(runId)
  await gone()
  expect(await begin({ runId })).toMatchObject({ run_id: runId, state: 'completed' })
  expect(kept()).toEqual([])
})
