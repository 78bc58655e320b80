// The credentials of a home go to the hub that they are for and to no other address, whichever way another is named.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let key: string
let realmToken: string
/** A hub of somebody else: it answers every call as one that accepts, and remembers what it was sent. */
let foreign: Bun.Server<undefined>
let received: string[] = []

beforeAll(async () => {
  hub = await startTestHub()
  key = (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'key' })).token
  const { realms } = await hub.ok(hub.admin, 'realms/list')
  const minted = { type: 'realm', name: 'daemon', realm_ids: [realms[0].id] }
  realmToken = (await hub.ok(hub.admin, 'auth/generate_token', minted)).token
  foreign = Bun.serve({
    port: 0,
    async fetch(request) {
      received.push(`${request.url} ${JSON.stringify(request.headers)} ${await request.text()}`)
      return Response.json({ ok: true, data: { type: 'realm', kind: 'durable', tokens: [], total: 0, realms: [] } })
    },
  })
})
afterAll(async () => {
  await foreign.stop(true)
  await hub.stop()
})
beforeEach(() => {
  received = []
})

/** No request to the other hub had one of the credentials in any part. */
function keptAll(): void {
  for (const request of received) for (const secret of [key, realmToken]) expect(request).not.toContain(secret)
}

const there = () => foreign.url.origin

function enrolledHome(more: Record<string, string> = {}): string {
  const home = folder()
  const settings = { hub: { url: hub.url, api_key: key, realm_token: realmToken, ...more } }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  return home
}

test('hub.api_key goes to hub.url only', async () => {
  const home = enrolledHome()
  expect((await command(['realms'], { home })).code).toBe(0)
  expect((await command(['realms', '--hub', `${hub.url}/`], { home })).code).toBe(0)
  for (const [args, env] of [
    [['realms', '--hub', there()], {}],
    [['realms'], { CADRE_HUB_URL: there() }],
    [['runs', '--hub', there()], {}],
    [['tokens', 'list', '--hub', there()], {}],
  ] as const) {
    const { code, stderr } = await command([...args], { home, env })
    expect([code, stderr]).toEqual([2, expect.stringContaining(`the setting hub.api_key is for ${hub.url} only`)])
  }
  await command(['status', '--hub', there()], { home })
  await command(['run', '@acme/none'], { home, env: { CADRE_HUB_URL: there() } })
  keptAll()
})

test('hub.api_key without an address beside it goes nowhere, and `settings set` stores the address', async () => {
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ hub: { api_key: key } }), { mode: 0o600 })
  const { code, stderr } = await command(['realms', '--hub', there()], { home })
  expect([code, stderr]).toEqual([2, expect.stringContaining('hub.url, which is not set')])
  expect(received).toEqual([])
  const other = folder()
  const set = await command(['settings', 'set', 'hub.api_key', '-'], {
    ...{ home: other, stdin: key, env: { CADRE_HUB_URL: hub.url } },
  })
  expect([set.code, set.stderr]).toEqual([0, expect.stringContaining(`hub.url is ${hub.url} now`)])
  expect((await command(['realms'], { home: other })).code).toBe(0)
})

test('CADRE_API_KEY goes to CADRE_HUB_URL only, and without it to hub.url', async () => {
  const env = { CADRE_API_KEY: key, CADRE_HUB_URL: hub.url }
  const named = await command(['realms', '--hub', there()], { home: folder(), env })
  expect([named.code, named.stderr]).toEqual([2, expect.stringContaining(`CADRE_API_KEY is for ${hub.url}`)])
  const enrolled = await command(['realms', '--hub', there()], { home: enrolledHome(), env: { CADRE_API_KEY: key } })
  expect([enrolled.code, enrolled.stderr]).toEqual([2, expect.stringContaining('(the setting hub.url)')])
  expect(received).toEqual([])
  const alone = { home: folder(), env: { CADRE_API_KEY: key } }
  expect((await command(['realms', '--hub', hub.url], alone)).code).toBe(0)
})

test('a daemon at another hub sends it none of the stored credentials', async () => {
  const home = enrolledHome()
  const daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: there() } })
  expect(daemon.output.stderr).toContain(`the setting hub.api_key is for ${hub.url} only`)
  expect(daemon.output.stderr).toContain(`the setting hub.realm_token is for ${hub.url} only`)
  await daemon.stop()
  keptAll()
})

test('enrol moves no key to another hub', async () => {
  const { code, stderr } = await command(['enrol', '--hub', there()], { home: enrolledHome(), stdin: realmToken })
  expect([code, stderr]).toEqual([2, expect.stringContaining(`hub.api_key is for ${hub.url} and must not go to`)])
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ hub: { api_key: key } }), { mode: 0o600 })
  const unbound = await command(['enrol', '--hub', there()], { home, stdin: realmToken })
  expect([unbound.code, unbound.stderr]).toEqual([2, expect.stringContaining('without the hub that it is for')])
  expect(received).toEqual([])
})

test('an enrolment elsewhere replaces the realm token, and is not stored beside a key for the hub before', async () => {
  const next = folder()
  const settings = { hub: { url: there(), realm_token: `cadre_dt_${'x'.repeat(49)}` } }
  writeFileSync(join(next, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: realmToken }
  await (await spawnDaemon({ home: next, env })).stop()
  const shown = await command(['settings', 'get', 'hub.url'], { home: next })
  expect(shown.stdout).toBe(`${hub.url}\n`)
  const kept = folder()
  writeFileSync(join(kept, 'settings.yml'), JSON.stringify({ hub: { url: there(), api_key: key } }), { mode: 0o600 })
  const daemon = await spawnDaemon({ home: kept, env })
  expect(daemon.output.stderr).toContain('the enrolment could not be stored')
  await daemon.stop()
  expect((await command(['settings', 'get', 'hub.url'], { home: kept })).stdout).toBe(`${there()}\n`)
})
