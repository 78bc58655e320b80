// Agents that are dropped in or changed while a daemon runs: the next run uses them, and a run that is under way keeps
// what it began with.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { discover } from '../../lib/agent/catalogue.ts'
import { AgentVersions } from '../../lib/daemon/runs/agent-versions.ts'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const agent = (text: string, extra = '') => `
import { existsSync } from 'node:fs'
import { agent, Type } from 'cadre'
${extra}
export default agent({
  type: 'connector', version: '1.0.0', description: 'Says a word.',
  actions: {
    say: {
      direction: 'source', effect: 'read',
      entry: Type.Object({ name: Type.String(), wait: Type.Optional(Type.String()) }),
      async run({ name, wait }, context) {
        if (wait) await context.write('begun', '')
        while (wait && !existsSync(wait)) await Bun.sleep(20)
        return { text: ${text} }
      },
    },
  },
})
`
const phase = (name: string, wait?: string, after?: string) =>
  `  - { name: ${name}, agent: word, action: say, sources: [{ name: a${wait ? `, wait: ${wait}` : ''} }]${after ? `, depends_on: [${after}]` : ''} }\n`
const team = (...phases: string[]) => ({
  'team.yml': `name: "@local/word"\nversion: 1.0.0\nphases:\n${phases.join('')}`,
})

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon({ home: folder() })
}, 30_000)
afterAll(() => daemon.stop())

const drop = (name: string, text: string) => {
  mkdirSync(join(daemon.home, 'agents/shared'), { recursive: true })
  writeFileSync(join(daemon.home, 'agents', name), text)
}
const start = async (path: string): Promise<string> => (await daemon.call('/v1/runs/start', { path })).run_id
const texts = async (runId: string): Promise<Record<string, string>> => {
  await daemon.ended(runId)
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: runId })
  return Object.fromEntries(phases.map((each: { name: string; text: string }) => [each.name, each.text]))
}

test('a file that is added, changed, broken, mended and removed', async () => {
  const path = files(team(phase('one')))
  const said = async () => (await texts(await start(path))).one
  const refused = async () => JSON.stringify((await daemon.post('/v1/runs/start', { path })).body.error)
  expect(await refused()).toContain('word')
  drop('word.ts', agent("'first'"))
  expect(await said()).toBe('first')
  drop('word.ts', agent("'second'"))
  expect(await said()).toBe('second')
  // What an agent imports is a part of it.
  drop('shared/word.ts', "export const word = 'third'\n")
  drop('word.ts', agent('word', "import { word } from './shared/word.ts'"))
  expect(await said()).toBe('third')
  drop('shared/word.ts', "export const word = 'fourth'\n")
  expect(await said()).toBe('fourth')
  drop('shared/word.ts', 'export const word = \n')
  expect(await refused()).toContain('shared/word.ts:')
  drop('shared/word.ts', "export const word = 'fifth'\n")
  expect(await said()).toBe('fifth')
  rmSync(join(daemon.home, 'agents/word.ts'))
  expect(await refused()).toContain('word')
}, 60_000)

test('a look that takes long does not bring older agents back', async () => {
  const home = folder()
  mkdirSync(join(home, 'agents'))
  const [begun, go] = [join(home, 'begun'), join(home, 'go')]
  const write = (said: string, extra = '') =>
    writeFileSync(join(home, 'agents/word.ts'), agent("''", extra).replace('Says a word.', said))
  write('one')
  const versions = new AgentVersions(
    await discover({ home }),
    () => [],
    () => {},
  )
  write(
    'two',
    `import { writeFileSync } from 'node:fs'
writeFileSync(${JSON.stringify(begun)}, '')
while (!existsSync(${JSON.stringify(go)})) await Bun.sleep(5)`,
  )
  const slow = versions.renew()
  await until(() => existsSync(begun), 'the second one loads')
  write('three')
  const fast = versions.renew()
  await Promise.race([fast, Bun.sleep(500)])
  writeFileSync(go, '')
  await Promise.all([slow, fast])
  expect(versions.newest.get('word')!.description).toBe('three')
})

test('a run under way keeps the agent that it began with; the next run does not', async () => {
  const go = join(folder(), 'go')
  const path = files(team(phase('one', go), phase('two', undefined, 'one')))
  drop('word.ts', agent("'old'"))
  const runId = await start(path)
  drop('word.ts', agent("'new'"))
  const next = await start(files(team(phase('one'))))
  expect(await texts(next)).toEqual({ one: 'new' })
  writeFileSync(go, '')
  expect(await texts(runId)).toEqual({ one: 'old', two: 'old' })
  expect((await texts(await start(path))).two).toBe('new')
}, 60_000)

test('new fields and settings of a changed agent are known to teams, the list and the settings', async () => {
  const path = files(team('  - { name: one, agent: word, action: say, sources: [{ name: a, louder: true }] }\n'))
  const closed = (fields: string) =>
    agent("'x'").replace(
      /Type\.Object\(.*\),\n/,
      `Type.Object({ name: Type.String(), ${fields} }, { additionalProperties: false }),\n`,
    )
  drop('word.ts', closed('wait: Type.Optional(Type.String())'))
  expect(JSON.stringify((await daemon.post('/v1/teams/validate', { path })).body.error)).toContain('louder')
  drop(
    'word.ts',
    closed('wait: Type.Optional(Type.String()), louder: Type.Boolean()').replace(
      'actions:',
      'settings: Type.Object({ tone: Type.String() }), actions:',
    ),
  )
  expect((await daemon.call('/v1/teams/validate', { path })).missing_settings).toHaveLength(1)
  expect((await command(['settings', 'set', 'agents.word.tone', 'low'], { home: daemon.home })).code).toBe(0)
  const { agents } = await daemon.call('/v1/agents/list')
  expect(agents.find(({ name }: { name: string }) => name === 'word').settings.required).toEqual(['tone'])
  expect(await texts(await start(path))).toEqual({ one: 'x' })
}, 60_000)
