// Webhooks of a realm: what is told, to whom, signed how, how often it is tried again, and where nothing is sent. The
// receivers are real servers, which check signatures with the specification's own library.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

interface Message {
  id: string
  /** As the library gives it after it has checked the signature. Null when the signature is wrong. */
  payload: { type: string; timestamp: string; data: Record<string, unknown> } | null
  path: string
}

const EVERY = ['run.completed', 'run.failed', 'run.awaiting_input', 'daemon.stale']
const FIVE_MINUTES = 300_000

let hub: TestHub
let daemon: { token: string; daemon_id: string }
let seq = 0
/** How far the clock of the hub is ahead. */
let ahead = 0
const epoch = crypto.randomUUID()
beforeAll(async () => {
  hub = await startTestHub()
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = { token, daemon_id: (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id }
})
afterAll(() => hub.stop())

/** A receiver of `realm`'s events, whose webhook is removed at the end of its scope. */
async function receiver(
  options: { realm?: string; events?: string[]; answers?: (attempt: number) => Response; hostname?: string } = {},
) {
  const { realm = hub.realm, events = EVERY, answers = () => new Response() } = options
  const got: Message[] = []
  let secret = ''
  const server = Bun.serve({
    hostname: options.hostname ?? '127.0.0.1',
    port: 0,
    async fetch(request) {
      const text = await request.text()
      const id = request.headers.get('webhook-id')!
      let payload: Message['payload'] = null
      try {
        payload = new Webhook(secret).verify(text, Object.fromEntries(request.headers)) as Message['payload']
      } catch {
        // The signature is wrong, or the clock of the hub is far from that of this machine.
      }
      got.push({ id, payload, path: new URL(request.url).pathname })
      return answers(got.length)
    },
  })
  const added = await hub.ok(hub.admin, 'realms/add_webhook', {
    realm_id: realm,
    url: `http://127.0.0.1:${server.port}/hook`,
    events,
  })
  secret = added.secret
  const deliveries = async () =>
    (await hub.ok(hub.admin, 'realms/webhook_deliveries', { realm_id: realm, webhook_id: added.id })).deliveries
  return {
    id: added.id as string,
    secret,
    got,
    deliveries,
    async until<T>(look: () => T | Promise<T>): Promise<NonNullable<T>> {
      for (const end = Date.now() + 30_000; ; await Bun.sleep(20)) {
        const found = await look()
        if (found) return found
        if (Date.now() > end)
          throw new Error(`never came: ${look}; ${JSON.stringify({ got, log: await deliveries() })}`)
      }
    },
    async [Symbol.asyncDispose]() {
      server.stop(true)
      await hub.call(hub.admin, 'realms/remove_webhook', { realm_id: realm, id: added.id })
    },
  }
}

const run = (state: string, more: object = {}, run_id: string = crypto.randomUUID()) =>
  runChange(run_id, { team: '@admin/t', call_path: ['@admin/t'], state, ...more })
const ended = { completed_at: 2_000 }

async function report(...changes: object[]): Promise<void> {
  const numbered = changes.map((change, index) => ({ seq: seq + 1 + index, ...change }))
  const reply = await hub.ok(daemon.token, 'runs/sync', {
    daemon_id: daemon.daemon_id,
    epoch,
    from_seq: seq + 1,
    changes: numbered,
  })
  expect(reply.rejected).toEqual([])
  seq += changes.length
}

const pass = (ms: number) => {
  ahead += ms
  return hub.skew(ahead)
}

test('what becomes of a top run is told once, signed, to those who ask for it', async () => {
  await using all = await receiver()
  await using failures = await receiver({ events: ['run.failed'] })
  const top = run('running')
  const { run_id } = top
  const below = {
    root_run_id: run_id,
    parent_run_id: run_id,
    parent_phase: 'p',
    call_path: ['@admin/t', '@admin/t'],
    call_depth: 1,
    tree_key: '000000001',
  }
  await report(top, run('running', { ...below, state: 'failed', ...ended }), run('awaiting_input', {}, run_id))
  await report(run('awaiting_input', { reason: 'gate' }, run_id), run('running', {}, run_id))
  await report(run('completed', ended, run_id), run('completed', { ...ended, outputs: { a: 1 } }, run_id))
  const other = run('failed', { ...ended, run_name: 'nightly', reason: 'timeout' })
  await report(other)
  await all.until(() => all.got.length >= 3)
  await failures.until(() => failures.got.length >= 1)
  // Whatever else was told would be here by now.
  await Bun.sleep(300)
  const told = all.got.map(({ payload }) => [payload?.type, payload?.data.run_id]).sort()
  expect(told).toEqual(
    [
      ['run.awaiting_input', run_id],
      ['run.completed', run_id],
      ['run.failed', other.run_id],
    ].sort(),
  )
  expect(failures.got).toMatchObject([
    {
      path: '/hook',
      payload: {
        type: 'run.failed',
        timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
        data: {
          run_id: other.run_id,
          realm_id: hub.realm,
          daemon_id: daemon.daemon_id,
          run_name: 'nightly',
          team: '@admin/t',
          state: 'failed',
          reason: 'timeout',
          completed_at: 2_000,
        },
      },
    },
  ])
  const log = await failures.until(async () => {
    const list = await failures.deliveries()
    return list[0].state === 'delivered' && list
  })
  expect(log).toMatchObject([
    { id: failures.got[0]!.id, event: 'run.failed', subject: other.run_id, attempts: 1, status: 200, error: null },
  ])
})

test('a run that no daemon took in time is told as failed', async () => {
  const { id: realm } = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'alone', name: 'A' })
  await using hook = await receiver({ realm })
  const file = { path: 'team.yml', content_base64: btoa(TEAM) }
  await hub.ok(hub.admin, 'teams/publish', { files: [file] })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm, team: '@admin/late' })
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', {
    realm_id: realm,
    team: '@admin/late',
    queue_timeout: '1s',
  })
  await hook.until(() => hook.got.length)
  expect(hook.got).toMatchObject([
    { payload: { type: 'run.failed', data: { run_id, reason: 'queue_timeout', daemon_id: null } } },
  ])
})

const TEAM =
  'name: "@admin/late"\nversion: 1.0.0\nphases:\n  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n'

test('a daemon that falls silent is told once, and again when it had been back', async () => {
  await using hook = await receiver({ events: ['daemon.stale'] })
  const { daemon_id, token } = daemon
  const stale = (count: number) => hook.until(() => hook.got.length >= count)
  await hub.ok(token, 'daemons/heartbeat', { daemon_id })
  await hub.flush()
  await pass(60_000)
  await stale(1)
  // A delivery whose end is not known yet would be sent again in a minute, under its id.
  await hook.until(async () => (await hook.deliveries()).every(({ state }: { state: string }) => state === 'delivered'))
  await pass(60_000)
  await Bun.sleep(2_500)
  expect(hook.got).toMatchObject([{ payload: { type: 'daemon.stale', data: { daemon_id, name: 'd' } } }])
  await hub.ok(token, 'daemons/heartbeat', { daemon_id })
  await hub.flush()
  await pass(60_000)
  await stale(2)
  expect(new Set(hook.got.map(({ id }) => id)).size).toBe(2)
  await hub.ok(token, 'daemons/heartbeat', { daemon_id })
}, 60_000)

test('what a receiver refuses is sent again under the same id, until it is taken', async () => {
  await using hook = await receiver({
    events: ['run.completed'],
    answers: attempt => new Response(null, { status: attempt < 3 ? 500 : 204 }),
  })
  await report(run('completed', ended))
  await hook.until(async () => (await hook.deliveries())[0]?.status === 500)
  const [waiting] = await hook.deliveries()
  expect(waiting).toMatchObject({ state: 'waiting', attempts: 1, error: 'the receiver answered 500' })
  expect(waiting.next_at).toBeGreaterThan(waiting.created_at + 4_000)
  await pass(6_000)
  await hook.until(async () => {
    const [{ attempts, error }] = await hook.deliveries()
    return attempts === 2 && error !== null
  })
  await pass(70_000)
  await hook.until(async () => (await hook.deliveries())[0].state === 'delivered')
  expect(await hook.deliveries()).toMatchObject([{ attempts: 3, status: 204, error: null, next_at: null }])
  // No message is shown as sent at a time that has not come.
  await hub.skew(ahead - FIVE_MINUTES)
  expect((await hook.deliveries())[0].finished_at).toBeLessThanOrEqual(Date.now() + ahead - FIVE_MINUTES)
  await hub.skew(ahead)
  expect(hook.got.map(({ id }) => id)).toEqual(Array(3).fill(waiting.id))
}, 60_000)

test('nothing is sent to what is not public, whatever name or redirect leads there', async () => {
  const hits: string[] = []
  using inside = Bun.serve({
    hostname: '127.0.0.2',
    port: 0,
    fetch(request) {
      hits.push(request.url)
      return new Response()
    },
  })
  const add = (url: string) =>
    hub.call(hub.admin, 'realms/add_webhook', { realm_id: hub.realm, url, events: ['run.failed'] })
  for (const url of [
    `http://127.0.0.2:${inside.port}/`,
    'http://169.254.169.254/latest/meta-data/',
    'http://10.0.0.1/',
    'http://[::1]/',
    'http://0x7f.2/',
    'http://metadata.google.internal/',
    'http://[::ffff:10.0.0.1]/',
    'ftp://example.com/',
    'https://user:password@example.com/',
    'no url',
  ]) {
    const { status, error } = await add(url)
    expect([url, status, error?.details?.[0]?.path]).toEqual([url, 400, '/url'])
    expect(JSON.stringify(error)).not.toContain('password@')
  }
  await using led = await receiver({
    answers: () => Response.redirect(`http://127.0.0.2:${inside.port}/`, 307),
  })
  // A name is judged by its addresses, when something is sent. This one has those of 127.0.0.1 and ::1.
  const { id } = (await add(`http://ip6-localhost:${inside.port}/`)).data
  await report(run('failed', ended))
  await led.until(async () => (await led.deliveries())[0]?.status === 307)
  expect((await led.deliveries())[0].error).toContain('redirects are not followed')
  const byName = await led.until(async () => {
    const { deliveries } = await hub.ok(hub.admin, 'realms/webhook_deliveries', { realm_id: hub.realm, webhook_id: id })
    return deliveries[0]?.error as string
  })
  expect(byName).toBe(`ip6-localhost:${inside.port} has no public address`)
  expect(hits).toEqual([])
  await hub.ok(hub.admin, 'realms/remove_webhook', { realm_id: hub.realm, id })
}, 60_000)

test('a slow receiver does not delay the messages of others', async () => {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  using slow = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => late.then(() => new Response()) })
  const { id } = await hub.ok(hub.admin, 'realms/add_webhook', {
    realm_id: hub.realm,
    url: slow.url.href,
    events: EVERY,
  })
  await using quick = await receiver({ events: ['run.completed'] })
  const ids = Array.from({ length: 40 }, () => run('completed', ended))
  await report(...ids)
  await quick.until(() => quick.got.length >= 40)
  expect(new Set(quick.got.map(({ payload, id }) => payload?.data.run_id ?? id)).size).toBe(40)
  resolve()
  await hub.ok(hub.admin, 'realms/remove_webhook', { realm_id: hub.realm, id })
}, 60_000)

test('a secret may be given, is shown once, and stands in no list, log or entry', async () => {
  const secret = `whsec_${Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString('base64')}`
  const body = { realm_id: hub.realm, url: 'https://example.com/hook', events: ['run.failed'] }
  const added = await hub.ok(hub.admin, 'realms/add_webhook', { ...body, secret })
  expect(added.secret).toBe(secret)
  const other = await hub.ok(hub.admin, 'realms/add_webhook', body)
  expect(other.secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/)
  for (const wrong of ['whsec_short', 'x'.repeat(40), `${secret}!`]) {
    expect((await hub.call(hub.admin, 'realms/add_webhook', { ...body, secret: wrong })).status).toBe(400)
  }
  const { webhooks } = await hub.ok(hub.admin, 'realms/webhooks', { realm_id: hub.realm })
  expect(webhooks.map((each: { id: string }) => each.id).sort()).toEqual([added.id, other.id].sort())
  const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'realms/add_webhook', limit: 2 })
  expect(audit).toMatchObject([{ target: other.id, realm_id: hub.realm }, { target: added.id }])
  expect(JSON.stringify([webhooks, audit, await hub.log()])).not.toContain('whsec_')
  for (const { id } of [added, other]) {
    await hub.ok(hub.admin, 'realms/remove_webhook', { realm_id: hub.realm, id })
  }
  const { audit: removed } = await hub.ok(hub.admin, 'audit/list', { action: 'realms/remove_webhook', limit: 2 })
  expect(removed).toMatchObject([{ target: other.id }, { target: added.id }])
})

test('a realm has ten at most', async () => {
  const { id: realm_id } = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'many', name: 'M' })
  const add = () => hub.call(hub.admin, 'realms/add_webhook', { realm_id, url: 'https://a.example/', events: EVERY })
  for (let count = 0; count < 10; count++) expect((await add()).status).toBe(200)
  expect((await add()).status).toBe(409)
})

test('a message that waits outlives the hubs', async () => {
  await using hook = await receiver({
    events: ['run.completed'],
    answers: attempt => new Response(null, { status: attempt === 1 ? 500 : 200 }),
  })
  await report(run('completed', ended))
  await hook.until(async () => (await hook.deliveries())[0]?.error)
  await hub.restart()
  await hub.skew(ahead)
  await pass(FIVE_MINUTES)
  await hook.until(async () => (await hook.deliveries())[0].state === 'delivered')
  expect(hook.got).toHaveLength(2)
}, 60_000)

test('a receiver that never takes it is given up, and one that is gone at once', async () => {
  const events = ['run.failed']
  await using never = await receiver({ events, answers: () => new Response(null, { status: 503 }) })
  await using gone = await receiver({ events, answers: () => new Response(null, { status: 410 }) })
  await report(run('failed', ended))
  await gone.until(async () => (await gone.deliveries())[0]?.state === 'failed')
  for (let attempt = 1; attempt <= 9; attempt++) {
    await never.until(async () => {
      const [{ attempts, error }] = await never.deliveries()
      return attempts === attempt && error !== null
    })
    expect(never.got).toHaveLength(attempt)
    if (attempt === 9) break
    await pass(27 * 3_600_000)
    await hub.sendWebhooks()
  }
  expect(await never.deliveries()).toMatchObject([{ state: 'failed', attempts: 9, status: 503, next_at: null }])
  expect(gone.got).toHaveLength(1)
}, 120_000)
