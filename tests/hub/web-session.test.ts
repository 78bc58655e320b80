// The session of the pages: a cookie that only `/web` reads and turns into the token of the session. Everything else
// about it is as with a token on `/v1`.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { hubApp } from '../../hub.ts'
import { routesOf } from '../../lib/http/routes.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

// biome-ignore lint/suspicious/noExplicitAny: tests say what they expect by asserting it
type Data = any
interface Asked {
  method?: string
  cookie?: string
  headers?: Record<string, string>
  body?: unknown
}

async function web(path: string, { method = 'POST', cookie, headers = {}, body = {} }: Asked = {}) {
  const reply = await fetch(`${hub.url}/${path}`, {
    method,
    redirect: 'manual',
    headers: {
      ...(method === 'POST' && { 'content-type': 'application/json' }),
      ...(cookie && { cookie }),
      ...headers,
    },
    ...(method === 'POST' && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await reply.text()
  const told: Data = text.startsWith('{') ? JSON.parse(text) : null
  return { status: reply.status, headers: reply.headers, data: told?.data, error: told?.error, text }
}

function rawStatus(path: string, cookie: string): Promise<number> {
  const { hostname, port } = new URL(hub.url)
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const socket = connect(Number(port), hostname, () => {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}\r\nCookie: ${cookie}\r\nConnection: close\r\n\r\n`)
  })
  socket.once('data', bytes => {
    resolve(Number(bytes.toString('latin1').split(' ')[1]))
    socket.destroy()
  })
  socket.once('error', reject)
  return promise
}

const ADMIN = { username: 'admin', password: ADMIN_PASSWORD }

/** Signs in, and returns the cookie as a browser sends it back. */
async function signIn(body: object = ADMIN, headers: Record<string, string> = {}) {
  const reply = await web('web/session', { body, headers })
  expect([reply.status, reply.error]).toEqual([200, undefined])
  return { reply, cookie: reply.headers.get('set-cookie')!.split(';', 1)[0]! }
}

test('signing in sets a cookie that no script reads and that goes to /web only, and shows no token', async () => {
  const { reply, cookie } = await signIn()
  const parts = reply.headers.get('set-cookie')!.split('; ')
  expect(parts.slice(1).sort()).toEqual(['HttpOnly', 'Max-Age=2592000', 'Path=/web', 'SameSite=Strict'])
  expect(cookie).toMatch(/^cadre_session=cadre_tok_\w+$/)
  expect(reply.text).not.toContain('cadre_tok_')
  expect(reply.data.user).toMatchObject({ username: 'admin', site_admin: true })
  expect(reply.headers.get('cache-control')).toBe('no-store')

  const who = await web('web/session', { method: 'GET', cookie })
  expect([who.status, who.data.user.username]).toEqual([200, 'admin'])
  expect((await web('web/session', { method: 'GET' })).data).toEqual({ user: null })
})

test('/web/v1 answers as /v1 does with the token of the session', async () => {
  const { cookie } = await signIn()
  const token = cookie.split('=')[1]!
  const same = async (path: string, body?: object) => {
    const [direct, through] = [await hub.call(token, path, body), await web(`web/v1/${path}`, { cookie, body })]
    expect([path, through.status, through.data, through.error]).toEqual([
      path,
      direct.status,
      direct.data,
      direct.error,
    ])
    return through.status
  }
  expect(await same('realms/list')).toBe(200)
  expect(await same('realms/get', { realm_id: hub.realm })).toBe(200)
  expect(await same('realms/get', { realm_id: crypto.randomUUID() })).toBe(404)
  expect(await same('realms/get', { realm: 1 })).toBe(400)
  expect(await same('auth/acl', { daemon_id: crypto.randomUUID() })).toBe(403)
  expect(await same('auth/whoami')).toBe(200)

  const missing = await web('web/v1/nothing/here', { cookie })
  expect([missing.status, missing.error.code]).toEqual([404, 'not_found'])
  const wrong = await web('web/v1/realms/list', { method: 'GET', cookie })
  expect([wrong.status, wrong.error.code]).toEqual([405, 'method_not_allowed'])
  expect(wrong.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  for (const method of ['PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
    const { status, headers } = await web('web/v1/realms/list', { method, cookie })
    expect([method, status, headers.get('allow')]).toEqual([method, 405, 'GET, POST'])
  }
  // As bytes, because clients take the dots out of a path.
  for (const path of ['../metrics', '%2e%2e/%2e%2e/metrics', '..%2fmetrics', '/metrics', '.', '']) {
    expect([path, [401, 404].includes(await rawStatus(`/web/v1/${path}`, cookie))]).toEqual([path, true])
  }
})

test('no reply shows the page the token of a session', async () => {
  const { cookie } = await signIn()
  for (const path of [
    'session/create',
    'session/delete',
    '%73ession/create',
    '/session/create',
    'x/../session/create',
  ]) {
    const { status, text } = await web(`web/v1/${path}`, { cookie, body: ADMIN })
    expect([path, status, text.includes('cadre_tok_')]).toEqual([path, 404, false])
  }
  const { tokens } = (await web('web/v1/auth/get_tokens', { cookie })).data
  const { id } = tokens.find(({ kind }: Data) => kind === 'session')
  const renewed = await web('web/v1/auth/rotate_token', { cookie, body: { id } })
  expect([renewed.status, renewed.text.includes('cadre_tok_')]).toEqual([409, false])
  expect((await web('web/v1/realms/list', { cookie })).status).toBe(200)
})

test('/v1 reads no cookie, and /web takes no other credential', async () => {
  const { cookie } = await signIn()
  const token = cookie.split('=')[1]!
  for (const path of ['v1/realms/list', 'v1/auth/whoami', 'v1/session/delete']) {
    expect([path, (await web(path, { cookie })).status]).toEqual([path, 401])
  }
  expect((await web('metrics', { method: 'GET', cookie })).status).toBe(401)
  expect((await web('web/v1/realms/list', { headers: { authorization: `Bearer ${token}` } })).status).toBe(401)
  expect((await web(`web/v1/realms/list?access_token=${token}`)).status).toBe(401)
  // With both, the cookie counts.
  const other = await hub.account('web-other')
  const both = await web('web/v1/auth/whoami', { cookie, headers: { authorization: `Bearer ${other.token}` } })
  expect(both.data.user.username).toBe('admin')
  // A durable token is no session, however it came into the cookie. It can be signed out, and stands in nobody's way.
  const { token: durable } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'no session' })
  expect((await web('web/v1/realms/list', { cookie: `cadre_session=${durable}` })).status).toBe(401)
  const out = await web('web/session', { method: 'DELETE', cookie: `cadre_session=${durable}` })
  expect([out.status, out.headers.get('set-cookie')]).toEqual([200, expect.stringContaining('Max-Age=0')])
  expect((await hub.call(durable, 'auth/whoami')).status).toBe(200)
  expect((await web('web/v1/realms/list', { cookie: `cadre_session=${durable}; ${cookie}` })).status).toBe(200)
  // Another host of the domain can set a second cookie of this name, and so sign somebody in as itself.
  const two = await web('web/v1/auth/whoami', { cookie: `cadre_session=${other.token}; ${cookie}` })
  expect(two.status).toBe(401)
  // Signing in ends the other one.
  const again = await web('web/session', { cookie: `cadre_session=${other.token}; ${cookie}`, body: ADMIN })
  const set = again.headers.getSetCookie()
  expect(set.at(-1)).toMatch(/^cadre_session=cadre_tok_\w+; Path=\/web; HttpOnly/)
  for (const path of ['/', '/web', '/web/v1']) {
    expect(set).toContain(`cadre_session=; Path=${path}; Max-Age=0; Domain=127.0.0.1`)
  }
  expect(set.filter(each => /^cadre_session=; Path=\/web; (?!.*Domain)/.test(each))).toEqual([])
  expect((await web('web/v1/realms/list', { cookie: 'cadre_session=nonsense' })).status).toBe(401)
})

test('what a page of another origin sends is refused before anything else', async () => {
  const { cookie } = await signIn()
  const { host } = new URL(hub.url)
  const foreign: Record<string, string>[] = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `http://${host}.evil.example` },
    { origin: `http://${host.split(':')[0]}:1` },
  ]
  for (const headers of foreign) {
    for (const method of ['GET', 'POST', 'DELETE']) {
      const { status, error } = await web('web/session', { method, cookie, headers, body: ADMIN })
      expect([headers, method, status, error.code]).toEqual([headers, method, 403, 'forbidden'])
    }
    const { status } = await web('web/v1/realms/create', {
      cookie,
      headers,
      body: { org_id: 1, slug: 'forged', name: 'Forged' },
    })
    expect([headers, status]).toEqual([headers, 403])
  }
  expect((await hub.ok(hub.admin, 'realms/list')).realms.map(({ slug }: Data) => slug)).not.toContain('forged')
  for (const headers of [{ 'sec-fetch-site': 'same-origin' }, { origin: hub.url }]) {
    expect((await web('web/v1/realms/list', { cookie, headers })).status).toBe(200)
  }
  // Nobody is told that another origin may ask.
  const asked = await fetch(`${hub.url}/web/v1/realms/list`, {
    method: 'OPTIONS',
    headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
  })
  expect([...asked.headers.keys()].filter(name => name.startsWith('access-control'))).toEqual([])
})

test('a form of HTML cannot send what /web takes', async () => {
  const { cookie } = await signIn()
  for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'text/plain', '']) {
    const headers = { 'content-type': type }
    expect((await web('web/session', { headers, body: JSON.stringify(ADMIN) })).status).toBe(415)
    expect((await web('web/v1/realms/list', { cookie, headers, body: '{}' })).status).toBe(415)
    // An empty body of `/v1` needs no type. Here it does.
    expect((await web('web/v1/realms/list', { cookie, headers, body: '' })).status).toBe(415)
  }
})

test('signing out ends the session, and so does everything that ends its token', async () => {
  const { cookie } = await signIn()
  const out = await web('web/session', { method: 'DELETE', cookie })
  expect([out.status, out.headers.get('set-cookie')]).toEqual([
    200,
    'cadre_session=; Path=/web; HttpOnly; SameSite=Strict; Max-Age=0',
  ])
  expect((await hub.call(cookie.split('=')[1]!, 'auth/whoami')).status).toBe(401)
  expect((await web('web/v1/realms/list', { cookie })).status).toBe(401)
  expect((await web('web/session', { method: 'GET', cookie })).data).toEqual({ user: null })
  // Once more, and without a session, it is over too.
  expect((await web('web/session', { method: 'DELETE', cookie })).status).toBe(200)
  expect((await web('web/session', { method: 'DELETE' })).status).toBe(200)

  const { id } = await hub.account('web-gone')
  const theirs = await signIn({ username: 'web-gone', password: 'password of a test' })
  expect((await web('web/v1/auth/whoami', { cookie: theirs.cookie })).status).toBe(200)
  await hub.ok(hub.admin, 'users/suspend', { user_id: id })
  expect((await web('web/v1/auth/whoami', { cookie: theirs.cookie })).status).toBe(401)
})

test('guesses are limited and signing in is recorded, as with /v1/session/create', async () => {
  await hub.account('web-guessed')
  const guess = (password: string) => web('web/session', { body: { username: 'web-guessed', password } })
  for (let count = 0; count < 10; count++) expect((await guess(`wrong ${count}`)).status).toBe(401)
  const limited = await guess('password of a test')
  expect([limited.status, limited.error.code]).toEqual([429, 'rate_limited'])
  expect(Number(limited.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(limited.headers.get('set-cookie')).toBeNull()

  const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'session/create_failed', limit: 1 })
  expect(audit[0]).toMatchObject({ target: 'web-guessed', address: '127.0.0.1' })
  const made = await hub.ok(hub.admin, 'audit/list', { action: 'session/create', limit: 1 })
  expect(made.audit[0]).toMatchObject({ username: expect.any(String), address: '127.0.0.1' })
}, 30_000)

test('an invitation is accepted with a cookie or without', async () => {
  const { token } = await hub.ok(hub.admin, 'realms/invite', { realm_id: hub.realm })
  const account = { username: 'web-new', password: 'a good password' }
  const joined = await web('web/v1/realms/accept_invite', { body: { token, ...account } })
  expect([joined.status, joined.data.user.username]).toEqual([200, 'web-new'])
  const { cookie } = await signIn(account)
  const second = await hub.ok(hub.admin, 'realms/invite', { realm_id: hub.realm, role: 'operator' })
  const again = await web('web/v1/realms/accept_invite', { cookie, body: { token: second.token } })
  expect([again.status, again.data.user.username]).toEqual([200, 'web-new'])
})

test('a reply of /web is kept by nobody, framed by nobody, and runs nothing', async () => {
  const { cookie } = await signIn()
  for (const [path, method] of [
    ['web/session', 'GET'],
    ['web/v1/realms/list', 'POST'],
    ['web/v1/nothing', 'POST'],
  ] as const) {
    const { headers } = await web(path, { method, cookie })
    expect([path, headers.get('cache-control'), headers.get('x-frame-options')]).toEqual([path, 'no-store', 'DENY'])
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  }
  const page = await fetch(hub.url)
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html;charset=utf-8'])
  expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'")
  const paths = [...(await page.text()).matchAll(/(?:src|href)="([^"]*)"/g)].map(([, path]) => path!)
  expect(paths).toHaveLength(3)
  for (const path of paths) expect([path, (await fetch(hub.url + path)).status]).toEqual([path, 200])
})

test('events are streamed, and end when the session does', async () => {
  const { cookie } = await signIn()
  await hub.ok(hub.admin, 'teams/publish', {
    scope: 'admin',
    files: [{ path: 'team.yml', content_base64: Buffer.from(TEAM).toString('base64') }],
  })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/streamed' })
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/streamed' })
  const query = new URLSearchParams({ run_id })
  const reply = await fetch(`${hub.url}/web/v1/runs/stream?${query}`, { headers: { cookie } })
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'text/event-stream'])
  expect(reply.headers.get('cache-control')).toBe('no-store')
  let text = ''
  const reading = (async () => {
    for await (const chunk of reply.body!.pipeThrough(new TextDecoderStream())) text += chunk
  })().catch(() => {})
  await until(() => text.includes('event: run'), 'the run is told')
  await web('web/session', { method: 'DELETE', cookie })
  await reading
  expect((await fetch(`${hub.url}/web/v1/runs/stream?${query}`, { headers: { cookie } })).status).toBe(401)
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
}, 30_000)

const TEAM = `name: "@local/streamed"
version: 1.0.0
phases:
  - { name: work, agent: exec, commands: [{ name: c, run: "true" }] }
`

test('every route of the pages and of senders declares its access and is no part of the API', async () => {
  const idle = createHub({ store: hub.store, log: createLog({ write: () => {} }), home: folder() })
  const hidden = routesOf(hubApp(idle)).filter(route => route.hidden)
  const pages = 'pages of this hub; /web/v1 takes the cookie of a session, and then what /v1 asks of its token'
  expect(hidden.map(({ method, path, rule }) => `${method} ${path}: ${rule}`).sort()).toEqual([
    `DELETE /web/session: ${pages}`,
    'GET /: none',
    'GET /web/:file: none',
    `GET /web/session: ${pages}`,
    `GET /web/v1/*: ${pages}`,
    'POST /v1/hooks/*: the signature of a sender',
    `POST /web/session: ${pages}`,
    `POST /web/v1/*: ${pages}`,
  ])
  await idle.lastSeen.close()
  await idle.checker.close()
})

test('behind a trusted proxy the cookie travels with TLS only, and the address is that of the caller', async () => {
  await hub.restart({ env: { CADRE_TRUST_PROXY: '1' } })
  const headers = { 'x-forwarded-for': '198.51.100.7', 'x-forwarded-host': 'hub.example', 'x-forwarded-proto': 'https' }
  const { reply, cookie } = await signIn(ADMIN, { ...headers, origin: 'https://hub.example' })
  // No other host of the domain can set a cookie of such a name.
  const [name, ...parts] = reply.headers.get('set-cookie')!.split('; ')
  expect([name!.split('=')[0], parts]).toEqual([
    '__Host-cadre_session',
    ['Path=/', 'HttpOnly', 'SameSite=Strict', 'Max-Age=2592000', 'Secure'],
  ])
  const planted = `cadre_session=${hub.admin}; ${cookie}`
  expect((await web('web/v1/auth/whoami', { cookie: planted, headers })).data.user.username).toBe('admin')
  expect((await web('v1/auth/whoami', { cookie, headers })).status).toBe(401)
  const out = await web('web/session', { method: 'DELETE', cookie, headers })
  expect(out.headers.get('set-cookie')).toBe(
    '__Host-cadre_session=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0; Secure',
  )
  const refused = await web('web/session', { body: ADMIN, headers: { ...headers, origin: 'https://evil.example' } })
  expect(refused.status).toBe(403)
  const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'session/create', limit: 1 })
  expect(audit[0].address).toBe('198.51.100.7')
})
