// Agents dropped into `<home>/agents`, their settings, and gates, over the daemon's API.

import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { GATE } from './teams.ts'

const STOCK = `
import { agent, secret, Type } from 'cadre'
export default agent({
  type: 'connector', version: '2.1.0', description: 'Stock levels.',
  settings: Type.Object({ base_url: Type.String(), api_token: secret() }),
  actions: {
    get_level: {
      direction: 'source', effect: 'read',
      entry: Type.Object({ name: Type.String(), ref: Type.String() }),
      async run(entry, context) {
        context.log('asking with ' + context.settings.api_token)
        await context.write(entry.name, 'level of ' + entry.ref)
        return { text: 'level of ' + entry.ref, data: { token: context.settings.api_token } }
      },
    },
  },
})
`
const TEAM = {
  'team.yml': `name: "@local/stock"
version: 1.0.0
phases:
  - { name: below, type: team, team: ./below }
`,
  'below/team.yml': `name: "@local/below"
version: 1.0.0
phases:
  - { name: north, agent: stock, action: get_level, sources: [{ name: a.txt, ref: bolts }] }
  - { name: south, agent: stock@south, action: get_level, sources: [{ name: a.txt, ref: nuts }] }
`,
}

let daemon: RunningDaemon
const local = () => ({ authorization: `Bearer ${daemon.token}` })

beforeAll(async () => {
  const home = files({ 'agents/stock.ts': STOCK, 'agents/broken.ts': 'export default 7', 'agents/notes.txt': 'mine' })
  daemon = await spawnDaemon({ home })
})

test('agents/list has what was dropped in and says what was skipped', async () => {
  const { version, agents, skipped } = await daemon.call('/v1/agents/list')
  expect(version).toBe('1.0.0')
  const stock = agents.find((agent: { name: string }) => agent.name === 'stock')
  expect(stock).toMatchObject({ type: 'connector', version: '2.1.0', actions: { get_level: { direction: 'source' } } })
  expect(skipped.map(({ file }: { file: string }) => file).sort()).toEqual(
    ['broken.ts', 'notes.txt'].map(name => join(daemon.home, 'agents', name)),
  )
})

test('a start names the files that are no agents, though nothing asked for them', async () => {
  const home = files({ 'agents/broken.ts': 'export default 7' })
  const other = await spawnDaemon({ home })
  while (!other.output.stderr.includes('agent skipped')) await Bun.sleep(20)
  expect(other.output.stderr).toContain(join(home, 'agents/broken.ts'))
  await other.stop()
})

test('settings that agents below lack are told before anything starts, then used and masked', async () => {
  const path = files(TEAM)
  const { status, body } = await daemon.post('/v1/runs/start', { path })
  expect(status).toBe(400)
  expect(body.error.details.map((detail: { path: string }) => detail.path).sort()).toEqual([
    'agents.stock.api_token',
    'agents.stock.base_url',
    'agents.stock@south.api_token',
    'agents.stock@south.base_url',
  ])
  expect((await daemon.call('/v1/runs/list')).total).toBe(0)

  for (const agent of ['stock', 'stock@south']) {
    await daemon.call('/v1/settings/set', { key: `agents.${agent}.base_url`, value: 'http://127.0.0.1:1' }, local())
    await daemon.call('/v1/settings/set', { key: `agents.${agent}.api_token`, value: `token-of-${agent}` }, local())
  }
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed' })
  const [, below] = (await daemon.call('/v1/runs/tree', { run_id })).runs
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: below.run_id })
  expect(phases.map((phase: { data: object }) => phase.data)).toMatchObject([{ token: '***' }, { token: '***' }])
  const { lines } = await daemon.call('/v1/runs/logs', { run_id: below.run_id })
  expect(lines.map((line: { text: string }) => line.text)).toEqual(['asking with ***', 'asking with ***'])
  expect(JSON.stringify(await daemon.call('/v1/settings/list', {}, local()))).not.toContain('token-of')
})

test('a gate waits, and its answer must fit the form', async () => {
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': GATE }) })
  expect(await daemon.call('/v1/runs/get', { run_id })).toMatchObject({ state: 'awaiting_input' })
  const { reviews, total } = await daemon.call('/v1/reviews/list', { state: 'pending' })
  expect(total).toBe(1)
  expect(reviews).toMatchObject([{ run_id, phase: 'ask', kind: 'gate', prompt: 'Go on?', state: 'pending' }])
  const decide = (body: object) => daemon.post('/v1/reviews/decide', { review_id: reviews[0].id, ...body }, local())

  const empty = await decide({ decision: 'approve' })
  expect([empty.status, empty.body.error.details[0].path]).toEqual([400, '/values/answer'])
  expect((await decide({ decision: 'retry' })).status).toBe(400)
  const answer = await decide({ decision: 'approve', values: { answer: 'gladly' } })
  expect(answer.body.data).toMatchObject({
    state: 'decided',
    decision: 'approve',
    decided_by: expect.stringMatching(/^local:./),
  })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed', outputs: { said: 'gladly' } })
  expect((await decide({ decision: 'approve', values: { answer: 'again' } })).body.error.code).toBe('invalid_state')
})

test('a field of the form that was left empty is null', async () => {
  const optional = GATE.replace('required: true }', 'required: true }, { name: note }, { name: level, default: low }')
  const gate = optional.replace(
    'data.answer }}"',
    `data.note == null && phases.ask.data.level == 'low' ? 'empty' : '' }}"`,
  )
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': gate }) })
  const { reviews } = await daemon.call('/v1/reviews/list', { state: 'pending', run_id })
  const body = { review_id: reviews[0].id, decision: 'approve', values: { answer: 'gladly' } }
  await daemon.call('/v1/reviews/decide', body, local())
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed', outputs: { said: 'empty' } })
})
