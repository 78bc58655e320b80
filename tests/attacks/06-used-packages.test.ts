// A package that a team of a path uses: the person has read that team, and not the package.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { type HostileHub, startHostileHub } from '../support/hostile-hub.ts'

let hub: HostileHub
let daemon: RunningDaemon
let server: ReturnType<typeof Bun.serve>
const asked: string[] = []

beforeAll(async () => {
  hub = startHostileHub()
  daemon = await spawnDaemon({ env: hub.env })
  server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      asked.push(`${new URL(request.url).pathname} ${await request.text()}`)
      return new Response('')
    },
  })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
  await server.stop(true)
})

const team = (name: string, phases: object[], more: object = {}) =>
  JSON.stringify({ name, version: '1.0.0', ...more, phases })

test('reaches no address of this machine that it names itself, nor one that the team names', async () => {
  const { origin } = server.url
  const own = [
    { name: 'a', agent: 'http', sources: [{ name: 'x', url: `${origin}/package` }] },
    { name: 'b', agent: 'http', sources: [{ name: 'x', url: 'http://127.0.0.1:9/none' }], on_failure: 'continue' },
  ]
  hub.publish('@acme/inner', team('@acme/inner', own))
  const path = files({
    'team.yml': team('@local/outer', [
      { name: 'read', agent: 'http', sources: [{ name: 'x', url: `${origin}/read` }] },
      { name: 'use', type: 'team', depends_on: ['read'], team: '@acme/inner' },
    ]),
  })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  const { state, error } = await daemon.ended(run_id)
  expect([state, error?.message]).toEqual(['failed', expect.stringContaining('network.allow')])
  expect(asked).toEqual(['/read '])
})

test('reads the files that it was given, and no others of this machine', async () => {
  const { origin } = server.url
  const place = files({ given: 'given', key: 'a key' })
  const [given, key] = [join(place, 'given'), join(place, 'key')]
  const send = (name: string, file: string) => ({
    ...{ name, agent: 'http', on_failure: 'continue' },
    target_entries: [{ name: 'x', url: `${origin}/${name}`, file }],
  })
  const inputs = [
    { name: 'to', type: 'string' },
    { name: 'paper', type: 'file' },
    { name: 'other', type: 'file', default: key },
  ]
  hub.publish(
    '@acme/sends',
    team('@acme/sends', [send('asked', '{{ inputs.paper }}'), send('literal', key), send('other', '{{ inputs.to }}')], {
      inputs: inputs.slice(0, 2),
    }),
  )
  hub.publish('@acme/default', team('@acme/default', [send('default', '{{ inputs.other }}')], { inputs }))
  const use = (name: string, values: object) => ({
    ...{ name: name.slice(6), type: 'team', team: name, inputs: values, on_failure: 'continue' },
  })
  const path = files({
    'team.yml': team('@local/gives', [
      use('@acme/sends', { paper: given, to: key }),
      use('@acme/default', { paper: given, to: key }),
    ]),
  })
  await daemon.call(
    '/v1/settings/set',
    { key: 'network.allow', value: ['127.0.0.1'] },
    { authorization: `Bearer ${daemon.token}` },
  )
  asked.length = 0
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await daemon.ended(run_id)
  expect(asked).toEqual(['/asked given'])
})
