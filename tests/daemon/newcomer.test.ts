// docs/write-an-agent.md, step by step, as somebody does who has never written an agent: in an empty home, with real
// processes, and with the text of the document itself.

import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fakeVendor } from '../../lib/testing/fake-vendor.ts'
import { command, files, sourceCommand, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const REPOSITORY = join(import.meta.dir, '../..')

/** The commands of the document that the test below goes through, in order. */
const STEPS = [
  'cadre agent new stock',
  '(cd ~/.cadre && bun test)',
  'node_modules/.bin/tsc --noEmit --project ~/.cadre',
  'cadre settings set agents.stock.base_url https://warehouse.example.com',
  'cadre settings set agents.stock.api_token -',
  'cadre doctor stock',
  'cadre agents stock',
]

/** The blocks of code of the document, by language, in order. */
function blocks(language: string): string[] {
  const guide = readFileSync(join(REPOSITORY, 'docs/write-an-agent.md'), 'utf8')
  return [...guide.matchAll(/```(\w+)\n(.*?)```/gs)].filter(([, name]) => name === language).map(([, , text]) => text!)
}

async function run(cwd: string, ...args: string[]) {
  const child = Bun.spawn([process.execPath, ...args], { cwd, stdout: 'pipe', stderr: 'pipe' })
  const [out, error, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { said: out + error, code }
}

test('agent new, edit, test, types, settings, doctor, manual, a team, a change, and the team again', async () => {
  using warehouse = fakeVendor(
    { 'GET /levels/:id': ({ params }) => (params.id === '7' ? { level: 3 } : undefined) },
    { allows: ({ headers }) => headers.get('authorization') === 'Bearer token-of-the-test' },
  )
  const lines = blocks('sh').flatMap(block => block.trimEnd().split('\n'))
  expect(lines.map(line => line.replace(/ +#.*$/, ''))).toEqual(STEPS)
  const home = folder()
  const daemon = await spawnDaemon({ home })
  const [agent, written] = (await sourceCommand(['agent', 'new', 'stock'], { home })).stdout.trim().split('\n') as [
    string,
    string,
  ]
  expect([agent, written]).toEqual([join(home, 'agents/stock.ts'), join(home, 'tests/stock.test.ts')])
  const [source, ownTest, ...more] = blocks('ts') as [string, string]
  expect(more).toEqual([])
  writeFileSync(agent, source)
  writeFileSync(written, ownTest)

  expect(await run(home, 'test')).toEqual({ said: expect.stringMatching(/\b[3-9]\d pass\n 0 fail/), code: 0 })
  const tsc = join(REPOSITORY, 'node_modules/.bin/tsc')
  expect(await run(home, tsc, '--noEmit')).toEqual({ said: '', code: 0 })

  const [phase] = blocks('yaml') as [string]
  const indented = phase.replace(/^/gm, '  ').trimEnd()
  const team = files({ 'team.yml': `name: "@local/levels"\nversion: 1.0.0\nphases:\n${indented}\n` })
  const unset = await command(['run', team], { home })
  expect(unset.code).toBe(2)
  expect(unset.stderr).toContain(' settings set agents.stock.api_token -')

  expect((await command(['settings', 'set', 'agents.stock.base_url', warehouse.url], { home })).code).toBe(0)
  const secret = { home, stdin: 'token-of-the-test\n' }
  expect((await command(['settings', 'set', 'agents.stock.api_token', '-'], secret)).code).toBe(0)
  expect(await command(['doctor', 'stock'], { home })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('the settings are valid'),
  })
  const manual = (await command(['agents', 'stock'], { home })).stdout
  for (const text of ['(required, secret) A token that may read levels.', 'Writes the level of an item as JSON.']) {
    expect(manual).toContain(text)
  }

  const started = async () => {
    const { run_id } = await daemon.call('/v1/runs/start', { path: team })
    const { state } = await daemon.ended(run_id)
    const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
    return [state, phases[0].text]
  }
  expect(await started()).toEqual(['completed', 'level of 7'])
  writeFileSync(agent, source.replace('text: `level of ${ref}`', 'text: `${found.level} of ${ref}`'))
  expect(await started()).toEqual(['completed', '3 of 7'])
  await daemon.stop()
}, 180_000)
