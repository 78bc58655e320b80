// A package that a team of a path uses: the person has read that team, and not the package.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { type HostileHub, startHostileHub } from '../support/hostile-hub.ts'

let hub: HostileHub
let daemon: RunningDaemon
let server: ReturnType<typeof Bun.serve>
const asked: string[] = []

beforeAll(async () => {
  hub = startHostileHub()
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
  daemon = await spawnDaemon({ env: hub.env })
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
