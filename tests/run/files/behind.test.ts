// Small artifacts of sub-runs, whose files are written behind the commit that has their bytes: whoever is given one finds
// it, also after a kill at any moment.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { agent, Type } from '../../../lib/agent/cadre.ts'
import { bundled } from '../../support/chaos-bundle.ts'
import { testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { openHome } from '../../support/home-rows.ts'
import { checkInvariants } from '../../support/invariants.ts'
import { killedAt, walkOfKills } from '../../support/kill-walk.ts'
import { ITEMS, written } from '../../support/written-behind.ts'

const program = await bundled('written-behind.ts')
afterAll(() => program.remove())

/** The files that the rows of a home name, each with whether it is there in its recorded length. */
function recordedFiles(home: string): [path: string, isThere: boolean][] {
  const db = openHome(home)
  try {
    const rows = db.query<{ run_id: string; files: string }, []>(
      'SELECT run_id, files FROM phases WHERE files IS NOT NULL',
    )
    return rows.all().flatMap(({ run_id, files }) =>
      (JSON.parse(files) as { path: string; bytes: number }[]).map(({ path, bytes }): [string, boolean] => {
        const file = join(home, 'runs', run_id, path)
        return [file, existsSync(file) && statSync(file).size === bytes]
      }),
    )
  } finally {
    db.close()
  }
}

test('a kill at any moment leaves no recorded file out: the next process makes it before it is given', async () => {
  let missing = 0
  await walkOfKills(
    async n => {
      const home = folder()
      const died = await killedAt(n, home, program.program)
      missing += recordedFiles(home).filter(([, isThere]) => !isThere).length
      // The last phase of each sub-run reads what its first phase wrote, and fails without it.
      expect(await written(home)).toBe('completed')
      checkInvariants(home, true)
      const files = recordedFiles(home)
      expect(files.filter(([, isThere]) => !isThere)).toEqual([])
      expect(files.length).toBe(ITEMS * 2)
      return died
    },
    process.env.CADRE_SLOW_TESTS ? 1 : 4,
  )
  // Otherwise no kill came between a commit and its files, and nothing was tested.
  expect(missing).toBeGreaterThan(0)
}, 300_000)

const looks: string[] = []
/** Writes a file, and looks for it in one of the ways in which an agent can be given it. */
const reader = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Writes a file, and looks for one.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), how: Type.String() }),
    async run({ name, how }, context) {
      const path = `files/write/${name}`
      const absolute = join(context.workspace, '../..', context.run.id, path)
      if (how === 'write') {
        await context.write(name, 'written')
        looks.push(existsSync(absolute) ? 'there' : 'not there')
      }
      if (how === 'read') looks.push(await (await context.read(path)).text())
      if (how === 'folder') looks.push(readFileSync(join(await context.folder('files/write'), name), 'utf8'))
      if (how === 'stateDir') looks.push(readFileSync(join(context.stateDir, path), 'utf8'))
      if (how === 'start') {
        context.start(['true'], { cwd: '/', env: { ...context.env } })
        looks.push(readFileSync(absolute, 'utf8'))
      }
      return { text: 'done' }
    },
  },
})

const teamOf = (how: string) => ({
  'team.yml': `
name: "@local/top"
version: 1.0.0
phases: [{ name: below, type: team, team: ./below }]
`,
  'below/team.yml': `
name: "@local/below"
version: 1.0.0
phases:
  - { name: write, agent: reader, sources: [{ name: a.txt, how: write }] }
  - { name: look, agent: reader, depends_on: [write], sources: [{ name: a.txt, how: ${how} }] }
`,
})

test('a file is written when an agent reads it, asks for a path or starts a process', async () => {
  await using t = await testEngine({ agents: { reader } })
  for (const how of ['read', 'folder', 'stateDir', 'start']) {
    looks.length = 0
    const { state } = await t.run(teamOf(how))
    expect([how, state, ...looks]).toEqual([how, 'completed', 'not there', 'written'])
  }
})

test('when the top run has ended the files are there, and the next process has nothing to make', async () => {
  const home = folder()
  const first = await testEngine({ home, agents: { reader } })
  const { run_id } = await first.run(teamOf('nothing'))
  expect(recordedFiles(home).map(([, isThere]) => isThere)).toEqual([true])
  const [below] = first.engine.phases(run_id).phases
  expect(first.engine.unwrittenFile(below!.sub_runs[0]!.run_id, 'files/write/a.txt')).toBeNull()
  await first.close()
  const db = openHome(home)
  const [told] = db.query<{ value: string }, []>("SELECT value FROM meta WHERE key = 'files_written'").all()
  const [last] = db.query<{ seq: number }, []>('SELECT max(seq) AS seq FROM small_files').all()
  db.close()
  expect(Number(told!.value)).toBe(last!.seq)
})

test('an attempt that fails leaves no file behind', async () => {
  const failing = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Writes a file and fails.',
    settings: Type.Object({}),
    source: {
      effect: 'read',
      entry: Type.Object({ name: Type.String(), how: Type.String() }),
      async run({ name }, context) {
        await context.write(name, 'written')
        throw new Error('no')
      },
    },
  })
  await using t = await testEngine({ agents: { reader: failing } })
  const { run_id, state } = await t.run(teamOf('nothing'))
  expect(state).toBe('failed')
  const [below] = t.engine.phases(run_id).phases
  // Its log says why it failed.
  expect(readdirSync(join(t.home, 'runs', below!.sub_runs[0]!.run_id))).toEqual(['log.jsonl'])
})
