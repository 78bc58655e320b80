// `agent new`: what it writes works as it stands, in a home and in the repository; what is there it leaves alone.

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { agentNew } from '../../lib/daemon/commands/agent.ts'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const REPOSITORY = join(import.meta.dir, '../..')

async function bunTest(cwd: string, file: string) {
  const child = Bun.spawn([process.execPath, 'test', file], { cwd, stdout: 'pipe', stderr: 'pipe' })
  const [said, code] = await Promise.all([child.stderr.text(), child.exited])
  return { said, code }
}

test('into a home: an agent that loads, and a test that passes', async () => {
  const home = folder()
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
  const { said, code: passed } = await bunTest(home, written)
  expect([said, passed]).toEqual([expect.stringContaining('4 pass'), 0])
})

test('into the repository, where the linter has nothing to say', async () => {
  const repository = folder()
  mkdirSync(join(repository, 'tests'))
  for (const part of ['lib', 'tests/support', 'node_modules', 'biome.json']) {
    symlinkSync(join(REPOSITORY, part), join(repository, part))
  }
  await agentNew('ledger', { home: folder(), cwd: join(repository, 'tests'), repository })
  const { said, code } = await bunTest(repository, join(repository, 'tests/agents/ledger.test.ts'))
  expect([said, code]).toEqual([expect.stringContaining('4 pass'), 0])

  const biome = join(REPOSITORY, 'node_modules/.bin/biome')
  const paths = ['agents/ledger.ts', 'tests/agents/ledger.test.ts']
  const lint = Bun.spawnSync([biome, 'check', '--vcs-enabled=false', ...paths], { cwd: repository })
  expect([lint.stderr.toString(), lint.exitCode]).toEqual([expect.any(String), 0])
})

test.each([
  ['Stock', 2, 'the name of an agent is'],
  ['../stock', 2, 'the name of an agent is'],
  ['wiki', 2, 'another agent wiki is there already'],
  ['mine', 2, 'agents/mine.ts is there already'],
  ['tested', 2, 'tests/tested.test.ts is there already'],
])('%s is refused, and nothing written', async (name, exit, why) => {
  const home = files({ 'agents/mine.ts': 'export default 1\n', 'tests/tested.test.ts': 'mine\n' })
  const { code, stderr } = await command(['agent', 'new', name], { home })
  expect(code).toBe(exit)
  expect(stderr).toContain(why)
  expect(readFileSync(join(home, 'agents/mine.ts'), 'utf8')).toBe('export default 1\n')
  expect(existsSync(join(home, 'agents/tested.ts'))).toBe(false)
})
