// Attacks by web pages in a browser on the daemon's machine: cross-site requests, and names that were bound to loopback
// after the page was loaded (DNS rebinding). A browser chooses Host, Origin and Sec-Fetch-Site; a page cannot.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { guardedRoutes } from '../../support/daemon-routes.ts'

let daemon: RunningDaemon
let port: string
beforeAll(async () => {
  daemon = await spawnDaemon()
  port = new URL(daemon.url).port
})
afterAll(() => daemon.stop())

const routes = await guardedRoutes()

const send = (method: string, path: string, headers: Record<string, string>, body?: string) =>
  fetch(daemon.url + path, { method, headers, redirect: 'manual', ...(body !== undefined && { body }) })

const json = { 'content-type': 'application/json' }
const page = 'https://pages.example'

/** How a browser marks the requests of a page. */
const PAGES: [what: string, headers: () => Record<string, string>][] = [
  ['a page of another site', () => ({ origin: page, 'sec-fetch-site': 'cross-site' })],
  ['a page of another site, in an older browser', () => ({ origin: page })],
  ['a plain address in a page of another site', () => ({ 'sec-fetch-site': 'cross-site' })],
  ['a page of a site beside this one', () => ({ 'sec-fetch-site': 'same-site' })],
  [
    'a page of another port of this machine',
    () => ({ origin: 'http://localhost:3000', 'sec-fetch-site': 'same-site' }),
  ],
  ['the same in an older browser', () => ({ origin: 'http://127.0.0.1:3000' })],
  ['a page of another scheme', () => ({ origin: `https://127.0.0.1:${port}` })],
  ['a page in a sandbox, or of a file', () => ({ origin: 'null' })],
  ['an extension', () => ({ origin: 'chrome-extension://abcdefghijklmnop' })],
  ['an Origin that begins alike', () => ({ origin: `http://127.0.0.1:${port}.pages.example` })],
  ['an Origin with a name before it', () => ({ origin: `http://127.0.0.1:${port}@pages.example` })],
  ['an Origin of a name that begins alike', () => ({ origin: `http://localhost.pages.example:${port}` })],
  ['an empty Origin', () => ({ origin: '' })],
  ['a name that was bound to this machine', () => ({ host: `rebound.example:${port}` })],
  [
    'the same, with its own Origin',
    () => ({
      host: `rebound.example:${port}`,
      origin: `http://rebound.example:${port}`,
      'sec-fetch-site': 'same-origin',
    }),
  ],
  ['a name without a port', () => ({ host: 'rebound.example' })],
  ['a name that begins as this machine’s', () => ({ host: `localhost.rebound.example:${port}` })],
  ['a name that ends as this machine’s', () => ({ host: `rebound-localhost:${port}` })],
  ['a name that begins as its address', () => ({ host: `127.0.0.1.rebound.example:${port}` })],
  ['an address of the network', () => ({ host: `192.168.1.7:${port}` })],
  ['the address of all', () => ({ host: `0.0.0.0:${port}` })],
  ['all addresses of IPv6', () => ({ host: `[::]:${port}` })],
]

describe.each(PAGES)('%s', (_, headers) => {
  test(`is refused by all ${routes.length} routes`, async () => {
    expect(routes.length).toBeGreaterThan(20)
    for (const { method, path } of routes) {
      const post = method === 'POST'
      const reply = await send(method, path, { ...(post && json), ...headers() }, post ? '{}' : undefined)
      expect([method, path, reply.status]).toEqual([method, path, 403])
      expect([...reply.headers.keys()].filter(name => name.startsWith('access-control'))).toEqual([])
    }
  })
})

test('what a form or a beacon can send is no JSON', async () => {
  const types = ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/json']
  for (const type of [...types, 'application/json-patch+json', 'text/plain; application/json', '']) {
    // Without any header that a browser adds, as an old one would send it.
    const reply = await send('POST', '/v1/runs/list', type === '' ? {} : { 'content-type': type }, '{}')
    expect([type, reply.status]).toEqual([type, 415])
  }
})

test('no other page is told that it may ask', async () => {
  for (const origin of [page, daemon.url, 'null']) {
    for (const path of ['/v1/runs/start', '/v1/settings/set', '/v1/runs/stream', '/health']) {
      const asks = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' }
      const reply = await send('OPTIONS', path, { ...asks, 'access-control-request-private-network': 'true', origin })
      expect([path, reply.status]).toEqual([path, 405])
      expect([...reply.headers.keys()].filter(name => name.startsWith('access-control'))).toEqual([])
    }
  }
})

test('a page gets no credential of this machine by asking for it', async () => {
  const own = { authorization: `Bearer ${daemon.token}` }
  expect((await send('POST', '/v1/settings/list', { ...json, ...own }, '{}')).status).toBe(200)
  // The token is in no cookie, and none is ever set.
  const reply = await send('POST', '/v1/settings/list', { ...json, cookie: `token=${daemon.token}` }, '{}')
  expect([reply.status, reply.headers.get('set-cookie')]).toEqual([401, null])
  const query = await send('POST', `/v1/settings/list?token=${daemon.token}&access_token=${daemon.token}`, json, '{}')
  expect(query.status).toBe(401)
})

test('pages of this daemon itself pass', async () => {
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`]) {
    const headers = { ...json, host, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }
    expect([host, (await send('POST', '/v1/runs/list', headers, '{}')).status]).toEqual([host, 200])
  }
})

// Anybody who reaches the page can read its files, by whatever name.
test('the page does not tell where cadre is installed', async () => {
  const html = await (await send('GET', '/', { host: `localhost:${port}` })).text()
  const begin = /src="([^"]*)"/.exec(html)![1]!
  const script = await (await send('GET', begin, { host: 'evil.example' })).text()
  expect(script).toMatch(/["'`](bun daemon\.ts|cadre)["'` ]/)
  expect(script).not.toContain(resolve(import.meta.dir, '../../..'))
})
