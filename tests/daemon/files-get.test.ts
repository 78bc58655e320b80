// `files RUN get PATH` while files of a run are only rows of the database: after a kill, and while the disk takes none.

import { expect, test } from 'bun:test'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agent, Type } from '../../lib/agent/cadre.ts'
import { command, spawnDaemon } from '../support/daemon.ts'
import { testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { openHome } from '../support/home-rows.ts'

const SMALL = 'a small text\n'
const LARGE = 'x'.repeat(300_000)

const writer = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Writes two small files and a large one.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String() }),
    async run(_, context) {
      await context.write('a.txt', SMALL)
      await context.write('b.txt', SMALL)
      await context.write('large.txt', LARGE)
      return { text: 'done' }
    },
  },
})

const TEAM = {
  'team.yml': `
name: "@local/top"
version: 1.0.0
phases: [{ name: below, type: team, team: ./below }]
`,
  'below/team.yml': `
name: "@local/below"
version: 1.0.0
phases: [{ name: write, agent: writer, sources: [{ name: all }] }]
`,
}

/** A home with an ended run, as a process leaves it that is killed before it has told which files are written. */
async function killedHome() {
  const home = folder()
  const t = await testEngine({ home, agents: { writer } })
  const { run_id } = await t.run(TEAM)
  const runId = t.engine.phases(run_id).phases[0]!.sub_runs[0]!.run_id
  await t.close()
  const db = openHome(home)
  db.run("DELETE FROM meta WHERE key = 'files_written'")
  db.close()
  const get = (name: string, ...more: string[]) => command(['files', runId, 'get', `write/${name}`, ...more], { home })
  return { home, folder: join(home, 'runs', runId, 'files'), get }
}

test('without a daemon, a file that is missing or cut short is taken from the database', async () => {
  const it = await killedHome()
  rmSync(join(it.folder, 'write/a.txt'))
  truncateSync(join(it.folder, 'write/b.txt'))
  expect(await it.get('a.txt')).toMatchObject({ code: 0, stdout: SMALL })
  expect(await it.get('b.txt')).toMatchObject({ code: 0, stdout: SMALL })
  expect(await it.get('large.txt')).toMatchObject({ code: 0, stdout: LARGE })
  expect(await it.get('c.txt')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('has no file files/write/c.txt'),
  })
}, 60_000)

test('a daemon is asked for a file that it cannot write', async () => {
  const it = await killedHome()
  rmSync(it.folder, { recursive: true })
  writeFileSync(it.folder, 'in the place of the folder')
  const daemon = await spawnDaemon({ home: it.home })
  expect(await it.get('a.txt')).toMatchObject({ code: 0, stdout: SMALL })
  expect(await it.get('c.txt')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('has no file files/write/c.txt'),
  })
  await daemon.stop()
}, 60_000)

test('a daemon sends a large file whole, and a longer file of before is replaced', async () => {
  const it = await killedHome()
  const daemon = await spawnDaemon({ home: it.home })
  expect(await it.get('large.txt')).toMatchObject({ code: 0, stdout: LARGE })
  const output = join(it.home, 'copy')
  writeFileSync(output, `${LARGE}${LARGE}`)
  expect(await it.get('large.txt', '--output', output)).toMatchObject({ code: 0, stdout: '' })
  expect(readFileSync(output, 'utf8')).toBe(LARGE)
  await daemon.stop()
}, 60_000)
