// Line breaks in what others wrote (names of runs, keys of items, lines of agents) begin no line that looks like ours.

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { standardMessage } from '../../lib/vendors/channel-message.ts'
import { testContext } from '../support/context.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const FORGED = 'FORGED  completed'
const NAME = `a\n${FORGED}\r\n${FORGED}\u2028${FORGED}\x1b[2J`

const AGENT = `import { agent, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Says more than one line.', settings: Type.Object({}),
  source: { effect: 'read', entry: Type.Object({ name: Type.String() }), async run(_, context) {
    context.log('one\\n${FORGED}')
    return { text: 'said' }
  } },
})`

const TEAM = JSON.stringify({
  name: '@local/forged',
  version: '1.0.0',
  phases: [
    { name: 'say', agent: 'say', sources: [{ name: 'x' }] },
    { name: 'each', type: 'map', items: `{{ [${JSON.stringify(NAME)}] }}`, key: '{{ item }}', team: './below' },
  ],
})
const BELOW = JSON.stringify({
  name: '@local/below',
  version: '1.0.0',
  phases: [{ name: 'ask', type: 'gate', review: { prompt: 'Go on?', reviewers: ['any'] } }],
})

test('in no list of the command line', async () => {
  const home = folder()
  mkdirSync(join(home, 'agents'))
  writeFileSync(join(home, 'agents/say.ts'), AGENT)
  const path = files({ 'team.yml': TEAM, 'below/team.yml': BELOW })
  const said: Record<string, string> = {}
  const ask = async (...args: string[]) => {
    const { stdout, stderr } = await command(args, { home })
    said[args[0]!] = `${stdout}${stderr}`
  }
  await ask('run', path, '--name', NAME)
  const id =
    /resume (\S+)/.exec(said.run!)?.[1] ??
    JSON.parse((await command(['runs', '--json'], { home })).stdout).runs[0].run_id
  await ask('runs', '--all')
  for (const args of [['tree', id], ['phases', id], ['logs', id], ['why', id], ['reviews']]) await ask(...args)
  for (const [name, text] of Object.entries(said)) {
    expect([name, text.split(/[\n\r\u2028]/).filter(line => line.startsWith('FORGED'))]).toEqual([name, []])
    expect([name, text.includes('\x1b[2J')]).toEqual([name, false])
  }
  for (const name of ['run', 'runs', 'tree', 'logs', 'why', 'reviews']) expect(said[name]).toContain('FORGED')
})

test('in no message to people, and in no text of `why`', async () => {
  const run = { id: '01900000-0000-7000-8000-000000000000', name: NAME, team: '@local/team', created_at: 0, url: null }
  expect(standardMessage(testContext({ run }).context)).not.toMatch(/[\n\r\u2028]/)
  const daemon = await spawnDaemon()
  const path = files({ 'team.yml': BELOW })
  const { run_id } = await daemon.call('/v1/runs/start', { path, run_name: NAME })
  const { text } = await daemon.call('/v1/runs/why', { run_id })
  expect(text).toContain('FORGED')
  expect(text.split(/[\n\r\u2028]/).filter((line: string) => line.startsWith('FORGED'))).toEqual([])
  await daemon.stop()
})
