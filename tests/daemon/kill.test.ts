// kill -9 at random moments in the middle of a map of 200 sub-runs: everything completes in the end, and nothing that
// was recorded as completed runs again. The seed is printed; CADRE_TEST_SEED repeats it. And in the middle of a deletion:
// what is left cannot be resumed, and goes.

import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import { until } from '../support/bounded.ts'
import { command, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { checkInvariants } from '../support/invariants.ts'
import { randomFrom, seedOf } from '../support/random.ts'

const ITEMS = 200
const KILLS = 10

/** Tells on disk that it was called, before anything is recorded of it. */
const witness = (file: string) => `
import { agent, Type } from 'cadre'
import { appendFileSync } from 'node:fs'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Tells that it was called.', settings: Type.Object({}),
  source: {
    effect: 'read', entry: Type.Object({ name: Type.String() }),
    async run(entry, context) {
      appendFileSync(${JSON.stringify(file)}, context.run.id + ' ' + context.phase.name + '\\n')
      await Bun.sleep(Math.random() * 8)
      await context.write(entry.name, context.run.id)
      return { text: 'called' }
    },
  },
})
`

const team = `
name: "@local/map"
version: 1.0.0
inputs: [{ name: items, type: list, required: true }]
outputs: [{ name: done, type: number, value: "{{ phases.each.data.completed }}" }]
phases:
  - { name: each, type: map, items: "{{ inputs.items }}", team: ./one, concurrency: 2 }
`
const one = `
name: "@local/one"
version: 1.0.0
outputs: [{ name: file, type: file, value: "{{ phases.b.files[0].path }}" }]
phases:
  - { name: a, agent: witness, sources: [{ name: x.txt }] }
  - { name: b, agent: witness, depends_on: [a], sources: [{ name: x.txt }] }
`

test('nothing recorded is lost or repeated by kill -9', async () => {
  const random = randomFrom(seedOf('kill -9'))
  const home = folder()
  const calls = join(folder(), 'calls')
  writeFileSync(calls, '')
  mkdirSync(join(home, 'agents'))
  writeFileSync(join(home, 'agents', 'witness.ts'), witness(calls))
  const path = folder()
  mkdirSync(join(path, 'one'))
  writeFileSync(join(path, 'team.yml'), team)
  writeFileSync(join(path, 'one', 'team.yml'), one)

  let daemon = await spawnDaemon({ home })
  const items = Array.from({ length: ITEMS }, (_, n) => n)
  const { run_id } = await daemon.call<{ run_id: string }>('/v1/runs/start', { path, inputs: { items } })
  let inTheMiddle = 0
  for (let kill = 0; kill < KILLS; kill++) {
    await Bun.sleep(random() * 120)
    await daemon.kill('SIGKILL')
    const completed = completedPhases(home)
    if (completed.size < ITEMS * 2) inTheMiddle++
    const before = readFileSync(calls, 'utf8').length
    checkInvariants(home)
    daemon = await spawnDaemon({ home })
    await Bun.sleep(random() * 60)
    const again = readFileSync(calls, 'utf8').slice(before).split('\n')
    expect(again.filter(call => completed.has(call))).toEqual([])
  }
  expect(inTheMiddle).toBe(KILLS)
  const run = await daemon.ended(run_id)
  expect(run).toMatchObject({ state: 'completed', outputs: { done: ITEMS } })
  const { runs } = await daemon.call<{ runs: { state: string }[] }>('/v1/runs/tree', { run_id })
  expect(runs.map(entry => entry.state)).toEqual(Array(ITEMS + 1).fill('completed'))
  await daemon.stop()
  checkInvariants(home)
  const all = readFileSync(calls, 'utf8').trim().split('\n')
  expect(new Set(all).size).toBe(ITEMS * 2)
}, 60_000)

test('a deletion that was cut off by kill -9 goes on, and nothing of it is resumed', async () => {
  const home = folder()
  mkdirSync(join(home, 'agents'))
  writeFileSync(
    join(home, 'agents', 'quick.ts'),
    `import { agent, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Writes a file.', settings: Type.Object({}),
  source: {
    effect: 'read', entry: Type.Object({ name: Type.String() }),
    async run({ name }, context) {
      await context.write(name, 'x')
      return { text: 'done' }
    },
  },
})
`,
  )
  const path = folder()
  mkdirSync(join(path, 'one'))
  writeFileSync(join(path, 'team.yml'), team)
  writeFileSync(
    join(path, 'one', 'team.yml'),
    'name: "@local/one"\nversion: 1.0.0\nphases: [{ name: a, agent: quick, sources: [{ name: x }] }]\n',
  )
  const runs = 2_001
  const items = Array.from({ length: runs - 1 }, (_, n) => n)
  let daemon = await spawnDaemon({ home })
  const { run_id } = await daemon.call<{ run_id: string }>('/v1/runs/start', { path, inputs: { items } })
  await daemon.ended(run_id)
  const left = () => {
    using db = openDatabase(join(home, 'daemon.db'), { readonly: true })
    return db.query<{ n: number }, []>('SELECT count(*) AS n FROM runs').get()!.n
  }
  expect(left()).toBe(runs)
  void daemon.post('/v1/runs/delete', { run_id }).catch(() => {})
  await until(() => left() < runs, 'the first part is deleted')
  await daemon.kill('SIGKILL')
  expect(left()).toBeGreaterThan(0)
  const resume = await command(['resume', run_id, '--from', 'each'], { home })
  expect([resume.code, resume.stderr]).toEqual([2, expect.stringContaining('is being deleted')])
  daemon = await spawnDaemon({ home })
  await until(() => left() === 0, 'the rest is deleted')
  await daemon.stop()
  const large = statSync(join(home, 'daemon.db')).size
  daemon = await spawnDaemon({ home })
  await until(() => statSync(join(home, 'daemon.db')).size < large / 2, 'the space is given back')
  await daemon.stop()
  expect(readdirSync(join(home, 'runs'))).toEqual([])
}, 60_000)

/** `<run id> <phase name>` of every phase that is recorded as completed. */
function completedPhases(home: string): Set<string> {
  const db = openDatabase(join(home, 'daemon.db'))
  const rows = db
    .query<{ run_id: string; position: number }, []>(
      "SELECT run_id, position FROM phases JOIN runs ON id = run_id WHERE phases.state = 'completed' AND team = '@local/one'",
    )
    .all()
  db.close()
  return new Set(rows.map(row => `${row.run_id} ${'ab'[row.position]}`))
}
