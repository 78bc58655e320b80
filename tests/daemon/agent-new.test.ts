// `agent new`: what it writes works as it stands, in a home and in the repository; what is there it leaves alone.

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { agentNew } from '../../lib/daemon/cli/teams/agent.ts'
import { sourceCommand as command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const REPOSITORY = join(import.meta.dir, '../..')

async function said(cwd: string, ...args: string[]) {
  const child = Bun.spawn([process.execPath, ...args], { cwd, stdout: 'pipe', stderr: 'pipe' })
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { said: out + error, code }
}

/** The test of the template: what every agent owes, for each of its two actions, and three of its own. */
const PASSED = /\b[6-9]\d pass\n 0 fail/

/** With an agent from the template and one from a built-in agent. */
const home = folder()

test('into a home: an agent that loads, and a test that passes from any folder', async () => {
  const { code, stdout } = await command(['agent', 'new', 'stock-levels'], { home })
  expect(code).toBe(0)
  const [agent, written] = stdout.trim().split('\n') as [string, string]
  expect([agent, written]).toEqual([join(home, 'agents/stock-levels.ts'), join(home, 'tests/stock-levels.test.ts')])
  const { stdout: list } = await command(['agents', '--json'], { home })
  const { agents, skipped } = JSON.parse(list)
  expect(skipped).toEqual([])
  expect(agents.find((each: { name: string }) => each.name === 'stock-levels')).toMatchObject({
    file: agent,
    actions: { get_item: { direction: 'source' }, put_item: { direction: 'target' } },
  })
  for (const cwd of [home, folder()]) {
    expect(await said(cwd, 'test', written)).toEqual({ said: expect.stringMatching(PASSED), code: 0 })
  }
  const { stderr } = await command(['agent', 'new', 'prices'], { home })
  expect(stderr).toBe('')
}, 120_000)

test('a copy of a built-in agent loads and passes its test', async () => {
  const { code, stdout } = await command(['agent', 'new', 'fetcher', '--from', 'http'], { home })
  expect(code).toBe(0)
  const [agent, written] = stdout.trim().split('\n') as [string, string]
  expect(readFileSync(agent, 'utf8')).toBe(readFileSync(join(REPOSITORY, 'agents/http.ts'), 'utf8'))
  expect(await said(home, 'test', written)).toEqual({ said: expect.stringContaining(' 0 fail'), code: 0 })
  const { stdout: manual } = await command(['agents', 'fetcher'], { home })
  expect(manual).toStartWith('fetcher  ')
  const none = await command(['agent', 'new', 'other', '--from', 'htp'], { home })
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('(did you mean `http`?)')])
}, 120_000)

test('the types of both and of their tests are sound', async () => {
  const tsc = join(REPOSITORY, 'node_modules/.bin/tsc')
  const files = ['agents/stock-levels.ts', 'tests/stock-levels.test.ts', 'agents/fetcher.ts', 'tests/fetcher.test.ts']
  const all = await said(home, tsc, '--noEmit', '--checkers', '1', '--listFiles', '--project', home)
  expect(all.code).toBe(0)
  // It says which files it checked, and nothing else.
  const checked = all.said.trim().split('\n')
  expect(checked).toEqual(expect.arrayContaining(files.map(file => join(home, file))))
  expect(checked.filter(line => !isAbsolute(line))).toEqual([])
}, 120_000)

test('the tsconfig.json of a home stays its author’s', async () => {
  const home = files({ 'tsconfig.json': '{}' })
  const { code, stderr } = await command(['agent', 'new', 'stock-levels'], { home })
  expect(code).toBe(0)
  expect(readFileSync(join(home, 'tsconfig.json'), 'utf8')).toBe('{}')
  expect(stderr).toContain(`"extends": "${REPOSITORY}/tsconfig.json"`)
})

test('into the repository, where the linter has nothing to say', async () => {
  const repository = folder()
  mkdirSync(join(repository, 'tests'))
  for (const part of ['lib', 'tsconfig.json', 'node_modules', 'biome.json']) {
    symlinkSync(join(REPOSITORY, part), join(repository, part))
  }
  await agentNew('ledger', { home: folder(), builtIn: true, repository })
  const written = join(repository, 'tests/agents/ledger.test.ts')
  expect(await said(repository, 'test', written)).toEqual({ said: expect.stringMatching(PASSED), code: 0 })

  const biome = join(REPOSITORY, 'node_modules/.bin/biome')
  const paths = ['agents/ledger.ts', 'tests/agents/ledger.test.ts']
  const lint = Bun.spawnSync([biome, 'check', '--vcs-enabled=false', ...paths], { cwd: repository })
  expect([lint.stderr.toString(), lint.exitCode]).toEqual([expect.any(String), 0])
})

test.each([
  ['Stock', 2, 'Stock is not a valid name of an agent'],
  ['../stock', 2, '../stock is not a valid name of an agent'],
  ['wiki', 2, 'another agent wiki already exists'],
  ['mine', 2, 'agents/mine.ts already exists'],
  ['tested', 2, 'tests/tested.test.ts already exists'],
])('%s is refused, and nothing written', async (name, exit, why) => {
  const home = files({ 'agents/mine.ts': 'export default 1\n', 'tests/tested.test.ts': 'mine\n' })
  const { code, stderr } = await command(['agent', 'new', name], { home })
  expect(code).toBe(exit)
  expect(stderr).toContain(why)
  expect(readFileSync(join(home, 'agents/mine.ts'), 'utf8')).toBe('export default 1\n')
  expect(existsSync(join(home, 'agents/tested.ts'))).toBe(false)
})
