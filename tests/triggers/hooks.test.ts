// Hooks of a home over HTTP: who is heard, what becomes of deliveries, and what is kept of them.

import { describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Elysia } from 'elysia'
import { hooks } from '../../lib/daemon/routes/hooks.ts'
import { deleteOldBodies } from '../../lib/daemon/triggers/old-firings.ts'
import type { CadreError } from '../../lib/error.ts'
import { readBytes } from '../../lib/http/body.ts'
import { listen } from '../../lib/http/listen.ts'
import { root, STRICT } from '../../lib/http/root.ts'
import { createLog } from '../../lib/log/log.ts'
import { HookLimits } from '../../lib/triggers/hook/limits.ts'
import { until } from '../support/bounded.ts'
import { fillDatabase } from '../support/full-database.ts'
import { rowsOf } from '../support/home.ts'
import { type HookHome, hookHome, post, SECRET, signed } from '../support/hooks.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { DAY, MINUTE } from '../support/triggers.ts'
import { NOW, SENDERS, sentBy } from './hook-senders.ts'

/** Each byte takes half a minute over HTTP; tests/triggers/hook-verify.test.ts changes each one without it. */
const EVERY = process.env.CADRE_SLOW_TESTS ? 1 : 9
const random = randomFrom(seedOf('hooks'))
const someOf = (length: number) =>
  Array.from({ length }, (_, at) => at).filter(at => at === length - 1 || EVERY === 1 || random.below(EVERY) === 0)

const ADA = 'local:ada'
const NIGHTLY = { name: 'nightly' }
const OPENED = '{"action":"opened","n":"x"}'
const runIdsOf = (t: HookHome) => t.runs().map(({ id }) => id)

async function refusal(work: () => unknown): Promise<string> {
  try {
    await work()
    return 'none'
  } catch (error) {
    return (error as CadreError).code
  }
}

describe('who is heard', () => {
  test.each(SENDERS.map(sender => [sender.name, sender] as const))(
    'a delivery of %s starts a run; changed in one byte it is 401, and never 500',
    async (_, sender) => {
      await using t = await hookHome({ begin: NOW })
      const dedup = sender.fields.scheme === 'graph' && !('dedup' in sender.fields) ? { dedup: 'body' } : {}
      const { url } = await t.addHook({ ...sender.fields, ...dedup, secret: sender.secret })
      const { body, headers } = sentBy(sender)
      const good: Record<string, string> = { 'content-type': 'application/json', ...Object.fromEntries(headers) }
      const taken = await post(url, body, good)
      expect([taken.status, taken.text.includes('started') || taken.text === '']).toEqual([202, true])
      expect(t.runs()).toHaveLength(1)
      const statuses = new Set<number>()
      for (const name of sender.signed.map(each => each.toLowerCase())) {
        const text = good[name]!
        for (const at of someOf(text.length)) {
          const other = text[at] === 'a' ? 'b' : 'a'
          statuses.add(
            (await post(url, body, { ...good, [name]: text.slice(0, at) + other + text.slice(at + 1) })).status,
          )
        }
      }
      const { covers } = sender
      const [from, length] =
        typeof covers === 'object' ? [sender.body.indexOf(covers.text), covers.text.length] : [0, body.length]
      for (const at of covers === 'nothing' ? [] : someOf(length)) {
        const changed = Buffer.from(body)
        changed[from + at] = changed[from + at]! ^ 1
        statuses.add((await post(url, changed, good)).status)
      }
      expect([...statuses]).toEqual([401])
      expect(t.runs()).toHaveLength(1)
      // Of those the newest hundred are kept, and the delivery.
      expect(t.firings().length).toBeLessThanOrEqual(101)
    },
    30_000,
  )

  test.each([
    [
      'github',
      SECRET,
      'Hello, World!',
      { 'x-hub-signature-256': 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17' },
      NOW,
    ],
    [
      'jira',
      SECRET,
      'Hello World!',
      { 'x-hub-signature': 'sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9' },
      NOW,
    ],
    [
      'standard',
      'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
      '{"test": 2432232314}',
      {
        'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
        'webhook-timestamp': '1614265330',
        'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
      },
      1_614_265_330_000,
    ],
    [
      'slack',
      '8f742231b10e8888abcd99yyyzzz85a5',
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c',
      {
        'content-type': 'application/x-www-form-urlencoded',
        'x-slack-request-timestamp': '1531420618',
        'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
      },
      1_531_420_618_000,
    ],
  ] as const)('the documented example of %s is taken', async (scheme, secret, body, headers, now) => {
    await using t = await hookHome({ begin: now })
    const { url } = await t.addHook({ scheme, secret })
    const { status, text } = await post(url, body, headers)
    expect([status, text === '']).toEqual([202, scheme === 'slack'])
    expect(t.runs()).toHaveLength(1)
    // A minute beyond the tolerance, and without its signature.
    if (scheme === 'slack' || scheme === 'standard') {
      t.clock.now += 6 * MINUTE
      expect((await post(url, body, headers)).status).toBe(401)
      expect(t.firings().at(-1)).toMatchObject({ state: 'refused', reason: 'timestamp' })
    }
    expect((await post(url, body, {})).status).toBe(401)
  })

  test('a stranger learns nothing, and has no id of its own', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook()
    const { status, body, headers } = await post(url, OPENED, signed(OPENED, 'g-1', 'another secret'))
    expect([status, body]).toEqual([
      401,
      { ok: false, error: { code: 'unauthorized', message: 'the signature does not fit' } },
    ])
    expect(headers.get('access-control-allow-origin')).toBeNull()
    expect(t.of()).toEqual(['rejected refused signature ×1'])
    expect((await t.send(url, OPENED, 'g-1')).body.data).toMatchObject({ delivery: 'g-1', state: 'started' })
  })

  test('unknown, disabled and removed hooks are answered alike, and other methods with 405', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook()
    const unknown = await post(`${url.slice(0, -22)}${'A'.repeat(22)}`, OPENED, signed(OPENED))
    const malformed = await post(`${url}/x`, OPENED, signed(OPENED))
    t.triggers.disable(NIGHTLY, ADA)
    const disabled = await t.send(url, OPENED)
    await t.triggers.enable(NIGHTLY, ADA)
    expect((await t.send(url, OPENED)).status).toBe(202)
    t.triggers.remove(NIGHTLY, ADA)
    const removed = await t.send(url, OPENED)
    for (const each of [unknown, malformed, disabled, removed])
      expect([each.status, each.text]).toEqual([404, unknown.text])
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE'])
      expect([method, (await fetch(url, { method })).status]).toEqual([method, 405])
  })

  test('a name that is not this machine is refused, unless CADRE_HOOK_HOSTS has it', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook()
    const as = async (host: string) => (await post(url, OPENED, { ...signed(OPENED), host })).status
    expect([await as('evil.example.com'), await as('hooks.example.com'), await as('localhost:7401')]).toEqual([
      403, 202, 202,
    ])
    const page = { ...signed(OPENED), origin: new URL(url).origin, 'sec-fetch-site': 'same-origin' }
    expect((await post(url, OPENED, page)).status).toBe(403)
  })

  test('too many requests, and too many bad signatures', async () => {
    await using t = await hookHome({ limits: { perSecond: 1, burst: 30, failures: 5 } })
    const { url } = await t.addHook()
    for (let n = 0; n < 5; n++) expect((await post(url, OPENED, signed(OPENED, 'x', 'wrong'))).status).toBe(401)
    const limited = await post(url, OPENED, signed(OPENED, 'x', 'wrong'))
    expect([limited.status, limited.headers.get('retry-after'), t.of().length]).toEqual([429, '60', 5])
    // A tunnel has one address for all senders: who signs is heard, and other hooks are not concerned.
    const other = await t.addHook({ name: 'other' })
    expect((await t.send(url, OPENED, 'g-0')).status).toBe(202)
    expect((await post(other.url, OPENED, signed(OPENED, 'x', 'wrong'))).status).toBe(401)
    t.clock.now += MINUTE
    const statuses: number[] = []
    for (let n = 0; n < 32; n++) statuses.push((await t.send(url, OPENED, 'g-1')).status)
    expect([statuses.filter(status => status === 202).length, statuses.at(-1)]).toEqual([30, 429])
    t.clock.now += 2_000
    expect((await t.send(url, OPENED, 'g-1')).status).toBe(202)
  })

  test('what is too large or encoded is not read', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook({ max_bytes: 100 })
    const large = JSON.stringify({ text: 'x'.repeat(200) })
    expect((await t.send(url, large)).status).toBe(413)
    async function* chunks() {
      for (let n = 0; n < 10; n++) yield Buffer.from('x'.repeat(50))
    }
    const stream = new ReadableStream({
      async start(controller) {
        for await (const chunk of chunks()) controller.enqueue(chunk)
        controller.close()
      },
    })
    const chunked = await fetch(url, { method: 'POST', body: stream, headers: signed(large) })
    expect(chunked.status).toBe(413)
    expect((await post(url, OPENED, { ...signed(OPENED), 'content-encoding': 'gzip' })).status).toBe(415)
    expect(t.of()).toEqual(['rejected refused too_large ×1', 'rejected refused too_large ×1'])
  })

  test('an address of one sender is not heard by the hook for which it signs badly', () => {
    let now = 0
    const limits = new HookLimits({ failures: 3 }, () => now)
    const sender = { address: '192.0.2.1', isShared: false }
    for (let n = 0; n < 3; n++) limits.failed('one', sender)
    expect(() => limits.admit('one', sender)).toThrow('too many requests')
    limits.admit('other', sender)
    limits.admit('one', { ...sender, address: '192.0.2.2' })
    now += MINUTE
    limits.admit('one', sender)
  })

  test('bodies take the room of their own hook, and only as they arrive', () => {
    const limits = new HookLimits()
    const mib = 1024 * 1024
    const held = Array.from({ length: 64 }, () => limits.reading('held'))
    for (const body of held) body.take(mib)
    expect(() => limits.reading('held').take(1)).toThrow('too many deliveries')
    limits.reading('other').take(65 * mib)
    for (const body of held.slice(0, 2)) body.end()
    limits.reading('held').take(mib)
  })

  test('bodies that are announced and do not come keep nobody out', async () => {
    await using t = await hookHome()
    const most = 25 * 1024 * 1024
    const { url } = await t.addHook({ max_bytes: most })
    const { host, port, pathname } = new URL(url)
    const slow = Array.from({ length: 4 }, () => {
      const socket = connect(Number(port), '127.0.0.1')
      socket.write(`POST ${pathname} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${most}\r\n\r\nx`)
      return socket
    })
    const answers = slow.map(async socket => (await once(socket, 'data')).join())
    expect((await t.send(url, OPENED, 'g-1')).status).toBe(202)
    // They are ended long before the whole body would be late.
    for (const answer of await Promise.all(answers)) {
      expect(answer).toStartWith('HTTP/1.1 400')
      expect(answer).toContain('too slowly')
    }
    for (const socket of slow) socket.destroy()
  }, 25_000)

  test('a form of millions of fields is refused before it is read', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook({ max_bytes: 25 * 1024 * 1024 })
    const send = (body: string, id: string) =>
      post(url, body, { ...signed(body, id), 'content-type': 'application/x-www-form-urlencoded' })
    const large = await send('a&'.repeat(4_000_000), 'g-1')
    expect([large.status, large.body.error.message]).toEqual([400, expect.stringContaining('10000 fields')])
    expect((await send(Array.from({ length: 10_000 }, (_, n) => `f${n}=1`).join('&'), 'g-2')).status).toBe(202)
    expect(t.of()).toEqual(['g-1 refused body ×1', 'g-2 started ×1'])
  })

  test('nothing that a stranger sends is a fault', async () => {
    await using t = await hookHome()
    const urls = await Promise.all(
      ['github', 'slack', 'stripe', 'standard', 'graph'].map(async scheme => {
        const secret = scheme === 'standard' ? `whsec_${Buffer.alloc(32, 1).toString('base64')}` : SECRET
        const dedup = scheme === 'graph' ? { dedup: 'none' } : {}
        return (await t.addHook({ name: scheme, scheme, secret, max_bytes: 1_000, ...dedup })).url
      }),
    )
    const words = [
      't=1,v1=a',
      'v1,YQ==',
      'sha256=',
      'v0=',
      '1795410000',
      '-1',
      '1e9',
      '{"value":[{}]}',
      '%',
      '\u00ff',
      'a, b',
      '{"a":',
    ]
    const names = ['X-Hub-Signature-256', 'X-Slack-Signature', 'X-Slack-Request-Timestamp', 'Stripe-Signature']
    names.push('webhook-signature', 'webhook-timestamp', 'webhook-id', 'Authorization', 'Content-Type', 'Cookie')
    const found = new Set<number>()
    for (let n = 0; n < 300; n++) {
      const headers = Object.fromEntries(names.filter(() => random.once(2)).map(name => [name, random.of(words)]))
      const body = random.of(words).repeat(random.of([0, 1, 10, 1_000]))
      found.add((await post(`${random.of(urls)}?${random.of(words)}`, body, headers)).status)
    }
    expect([...found].sort()).toEqual([401, 413])
    expect(t.runs()).toEqual([])
  })

  test('a process that only runs a team takes no deliveries', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook()
    const app = new Elysia(STRICT).use(root(createLog({ write: () => {} }))).use(hooks(t.daemon, null))
    const server = listen(app, { host: '127.0.0.1', port: 0 })
    const reply = await t.send(server.url + new URL(url).pathname, OPENED)
    expect([reply.status, reply.headers.get('retry-after')]).toEqual([503, '30'])
    await server.stop()
  })

  test('a body that is held back is not waited for', async () => {
    const { promise: never } = Promise.withResolvers<void>()
    const held = new ReadableStream({ start: controller => controller.enqueue(Buffer.from('{')), pull: () => never })
    const request = new Request('http://localhost/', { method: 'POST', body: held })
    expect(await refusal(() => readBytes(request, { limit: 100, ms: 20 }))).toBe('invalid_request')
  })

  test('without the key of its secret a hook is broken, and takes deliveries when the key is back', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook()
    const { db } = t.daemon
    // As a restart with another key sees it.
    db.run('CREATE TABLE away AS SELECT * FROM hook_secrets')
    db.run('UPDATE hook_secrets SET id = ?, sealed = zeroblob(64)', [crypto.randomUUID()])
    const away = await t.send(url, OPENED, 'g-1')
    expect([away.status, away.headers.get('retry-after')]).toEqual([503, '30'])
    expect(t.triggers.get(NIGHTLY)).toMatchObject({ state: 'broken', problem: { reason: 'internal' } })
    db.run('DELETE FROM hook_secrets')
    db.run('INSERT INTO hook_secrets SELECT * FROM away')
    expect((await t.send(url, OPENED, 'g-1')).body.data.state).toBe('started')
    expect(t.triggers.get(NIGHTLY).state).toBe('active')
  })

  test('handshakes', async () => {
    await using t = await hookHome()
    const slack = await t.addHook({ name: 'slack', scheme: 'slack', secret: 's'.repeat(32) })
    const { url } = await t.addHook({ name: 'graph', scheme: 'graph', secret: 'g'.repeat(32), dedup: 'none' })
    const asked = await fetch(`${url}?validationToken=a%20%3Cb%3E`, { method: 'POST' })
    expect([asked.status, await asked.text(), asked.headers.get('content-type')]).toEqual([
      200,
      'a <b>',
      'text/plain; charset=utf-8',
    ])
    expect(asked.headers.get('x-content-type-options')).toBe('nosniff')
    expect(t.of('graph')).toEqual([])
    const body = '{"type":"url_verification","challenge":"c-1"}'
    const bad = await post(slack.url, body, { 'content-type': 'application/json' })
    const sender = SENDERS.find(({ name }) => name.startsWith('slack'))!
    const time = String(Math.floor(t.clock.now / 1_000))
    const headers = { 'content-type': 'application/json', ...sender.headers(Buffer.from(body), 's'.repeat(32), time) }
    const good = await post(slack.url, body, headers)
    expect([bad.status, good.status, good.body]).toEqual([401, 200, { challenge: 'c-1' }])
    expect(t.of('slack')).toEqual(['rejected refused signature ×1', 'rejected skipped scheme ×1'])
    expect(t.runs()).toEqual([])
  })
})

describe('what becomes of a delivery', () => {
  test('values of the delivery reach the run, which says what started it', async () => {
    await using t = await hookHome()
    const inputs = {
      day: "{{ body.n }} {{ headers['x-github-event'] }} {{ query.q }} {{ delivery.id }} {{ delivery.event }}",
    }
    const { url, id } = await t.addHook({ inputs })
    const { body } = await post(`${url}?q=7`, OPENED, signed(OPENED, 'g-1'))
    const { run_id, firing } = body.data
    expect(body).toEqual({ ok: true, data: { delivery: 'g-1', firing, state: 'started', run_id } })
    expect(t.daemon.engine.record(run_id)).toMatchObject({
      inputs: { day: 'x issues 7 g-1 issues' },
      started_by: { kind: 'hook', trigger: id, name: 'nightly', firing, delivery: 'g-1' },
    })
  })

  test('one that comes again gets the first run', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook({ when: 'body.action == "opened"' })
    const first = await t.send(url, OPENED, 'g-1')
    const again = await t.send(url, OPENED, 'g-1')
    expect([again.status, again.body.data]).toEqual([202, { ...first.body.data, duplicate: true }])
    const skipped = await t.send(url, '{"action":"closed"}', 'g-2')
    expect(skipped.body.data).toMatchObject({ state: 'skipped', reason: 'when', run_id: null })
    expect((await t.send(url, OPENED, 'g-2')).body.data).toMatchObject({ state: 'skipped', duplicate: true })
    // The key is that of one hook.
    const other = await t.addHook({ name: 'other' })
    expect((await t.send(other.url, OPENED, 'g-1')).body.data).not.toHaveProperty('duplicate')
    expect(t.of()).toEqual(['g-1 started ×2', 'g-2 skipped when ×2'])
    expect(t.runs()).toHaveLength(2)
  })

  test('what was refused is judged anew when it comes again', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook({ inputs: { day: '{{ body.n }}' } })
    const number = await t.send(url, '{"n":7}', 'g-1')
    expect([number.status, number.body.data]).toMatchObject([202, { state: 'refused', reason: 'inputs', run_id: null }])
    const missing = await t.send(url, '{"m":7}', 'g-2')
    expect([missing.status, missing.body.data]).toMatchObject([202, { state: 'refused', reason: 'expression' }])
    await t.triggers.update(NIGHTLY, { inputs: { day: '{{ string(body.n) }}' } }, undefined, ADA)
    const mended = await t.send(url, '{"n":7}', 'g-1')
    expect(mended.body.data).toMatchObject({ state: 'started', firing: number.body.data.firing })
    expect(t.daemon.engine.record(mended.body.data.run_id).inputs).toMatchObject({ day: '7' })
    expect(t.of()).toEqual(['g-1 started ×2', 'g-2 refused expression ×1'])
    expect(t.firings()[0]!.revision).toBe(2)
  })

  test('a body that is no JSON is told, and taken when it is', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook()
    const bad = await t.send(url, '{"n":', 'g-1')
    expect([bad.status, bad.body.error.code]).toEqual([400, 'invalid_request'])
    expect(t.of()).toEqual(['g-1 refused body ×1'])
    const deep = '['.repeat(200) + ']'.repeat(200)
    expect((await t.send(url, deep, 'g-2')).status).toBe(400)
    expect((await t.send(url, '{"n":1}', 'g-1')).body.data).toMatchObject({ state: 'started' })
    const form = 'payload=%7B%22n%22%3A1%7D'
    const formed = { ...signed(form, 'g-3'), 'content-type': 'application/x-www-form-urlencoded' }
    expect((await post(url, form, formed)).body.data.state).toBe('started')
  })

  test('a pause records each, and a team that is gone is answered with 202', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook({ inputs: { day: '{{ body.n }}' } })
    t.triggers.pause(NIGHTLY, 'moving', ADA)
    const paused = await t.send(url, OPENED, 'g-1')
    expect([paused.status, paused.body.data]).toMatchObject([202, { state: 'skipped', reason: 'paused' }])
    t.triggers.resume(NIGHTLY, 'none', ADA)
    expect((await t.send(url, OPENED, 'g-1')).body.data).toMatchObject({ state: 'skipped', duplicate: true })
    expect(t.firings()[0]!.detail).toBe('paused by local:ada: moving')
    const started = await t.triggers.refire(t.firings()[0]!.id, { again: false, by: ADA })
    expect(t.daemon.engine.record(started.run_id!)).toMatchObject({
      inputs: { day: 'x' },
      started_by: { kind: 'hook', delivery: 'g-1', manual: { by: ADA } },
    })
    t.removeTeam()
    const broken = await t.send(url, OPENED, 'g-2')
    expect([broken.status, broken.body.data]).toMatchObject([202, { state: 'refused', reason: 'team' }])
    expect(t.triggers.get(NIGHTLY).state).toBe('broken')
    t.restoreTeam(
      'name: "@local/told"\nversion: 1.0.0\ninputs: [{ name: day, type: string }]\nphases: [{ name: ask, type: gate, when: "false", review: { prompt: "Go on?" } }]\n',
    )
    expect((await t.send(url, OPENED, 'g-2')).body.data.state).toBe('started')
    expect(t.triggers.get(NIGHTLY).state).toBe('active')
    expect(t.of()).toEqual(['g-1 skipped paused ×2', 'g-1#2 started ×null', 'g-2 started ×2'])
  })

  test('those that wait start later, with their bodies', async () => {
    await using t = await hookHome()
    const inputs = { day: '{{ body.n }}', hold: '{{ body.hold }}' }
    const { url } = await t.addHook({ inputs, overlap: 'queue', queue_max: 5, keep_body: 0 })
    const held = await t.send(url, '{"n":"1","hold":true}', 'g-1')
    const next = await t.send(url, '{"n":"2","hold":false}', 'g-2')
    expect([held.body.data.state, next.body.data]).toMatchObject(['started', { state: 'waiting', run_id: null }])
    expect((await t.send(url, '{"n":"2","hold":false}', 'g-2')).body.data).toMatchObject({
      state: 'waiting',
      duplicate: true,
    })
    const bodies = () => t.daemon.db.query('SELECT 1 FROM hook_bodies').all().length
    expect(bodies()).toBe(1)
    await t.answer()
    await t.look()
    expect(t.of()).toEqual(['g-1 started ×1', 'g-2 started ×2'])
    expect(t.daemon.engine.record(t.firings()[1]!.run_id!).inputs).toMatchObject({ day: '2' })
    expect(bodies()).toBe(0)
  })

  test('without an id of the sender: the bytes for ten minutes, a template, or nothing', async () => {
    await using t = await hookHome()
    const bearer = { scheme: 'bearer', secret: 'b'.repeat(24) }
    const headers = { authorization: `Bearer ${'b'.repeat(24)}`, 'content-type': 'application/json' }
    const bytes = await t.addHook({ ...bearer, name: 'bytes', dedup: 'body' })
    const ran = async (url: string, body: string) => (await post(url, body, headers)).body.data.duplicate !== true
    expect([await ran(bytes.url, '{}'), await ran(bytes.url, '{}'), await ran(bytes.url, '{ }')]).toEqual([
      true,
      false,
      true,
    ])
    for (let n = 0; n < 3; n++) {
      t.clock.now += 10 * MINUTE
      expect([await ran(bytes.url, '{}'), await ran(bytes.url, '{}')]).toEqual([true, false])
    }
    const template = await t.addHook({ ...bearer, name: 'template', dedup: '{{ body.key }}' })
    expect([await ran(template.url, '{"key":"a"}'), await ran(template.url, '{"key":"a","n":1}')]).toEqual([
      true,
      false,
    ])
    const nothing = await t.addHook({ ...bearer, name: 'nothing', dedup: 'none' })
    expect([await ran(nothing.url, '{}'), await ran(nothing.url, '{}')]).toEqual([true, true])
    expect(await refusal(() => t.addHook({ name: 'g', scheme: 'graph', secret: 'g'.repeat(32) }))).toBe(
      'invalid_request',
    )
  })

  test('what was written while the clock was ahead makes no hook deaf', async () => {
    await using t = await hookHome()
    const bearer = { scheme: 'bearer', secret: 'b'.repeat(24) }
    const headers = { authorization: `Bearer ${'b'.repeat(24)}`, 'content-type': 'application/json' }
    const limited = await t.addHook({ ...bearer, name: 'limited', dedup: 'none', at_most: { count: 1, per: '1m' } })
    const bytes = await t.addHook({ ...bearer, name: 'bytes', dedup: 'body' })
    const begin = t.clock.now
    const send = async (url: string) => (await post(url, '{}', headers)).body.data
    t.clock.now = begin + 30 * DAY
    expect((await send(limited.url)).state).toBe('started')
    expect((await send(bytes.url)).state).toBe('started')
    t.clock.now = begin
    expect((await send(limited.url)).state).toBe('started')
    expect((await send(limited.url)).state).toBe('waiting')
    expect(await send(bytes.url)).not.toHaveProperty('duplicate')
    // A step of some seconds, as a clock makes that is set all the time, forgets nothing.
    t.clock.now = begin - 5_000
    expect((await send(bytes.url)).duplicate).toBe(true)
  })

  test('concurrent first deliveries of one id answer the same run', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook()
    const replies = await Promise.all(Array.from({ length: 24 }, () => t.send(url, OPENED, 'g-1')))
    expect(new Set(replies.map(({ body }) => body.data.run_id))).toEqual(new Set(runIdsOf(t)))
    expect(replies.filter(({ body }) => body.data.duplicate !== true)).toHaveLength(1)
    expect([t.runs().length, t.of()]).toEqual([1, ['g-1 started ×24']])
  })

  test('a full disk is answered with 503, and the delivery is taken when it comes again', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook()
    const { db, engine } = t.daemon
    const full = fillDatabase(db)
    let last = await t.send(url, OPENED, 'g-0')
    const taken = new Set<string>()
    for (let n = 1; last.status === 202 && n < 300; n++) {
      taken.add(last.body.data.run_id)
      last = await t.send(url, OPENED, `g-${n}`)
    }
    expect([last.status, last.headers.get('retry-after')]).toEqual([503, '30'])
    full.free()
    await until(() => engine.load.stalled === null, 'the disk accepts writes again')
    const again = await t.send(url, OPENED, `g-${taken.size}`)
    expect([again.status, again.body.data.state]).toEqual([202, 'started'])
    expect(t.runs().length).toBe(taken.size + 1)
  })
})

describe('what is kept', () => {
  test('a secret that its sender writes into the body is in no run', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook({ inputs: { day: 'of {{ body.secret }}' } })
    const body = JSON.stringify({ secret: SECRET })
    const { body: answered } = await post(url, body, signed(body, 'g-1'))
    const run = t.daemon.engine.record(answered.data.run_id)
    expect(run.inputs!.day).toStartWith('of ')
    expect(JSON.stringify(run)).not.toContain(SECRET)
  })

  test('the body is sealed, masked where it is shown, and deleted after its days', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook({ keep_body: 3, inputs: { day: '{{ body.n }}' } })
    const body = JSON.stringify({ n: 'x', secret: SECRET, text: 'a word that is in the body' })
    const { body: answered } = await post(`${url}?from=there`, body, {
      ...signed(body, 'g-1'),
      authorization: 'Bearer of-the-sender',
      cookie: 'a=b',
    })
    const shown = () => t.triggers.firingsFor({ ...NIGHTLY, with_body: true }).firings.at(-1)!.delivery!
    const { headers, query, body: text } = shown()
    expect(headers).toMatchObject({ 'x-github-event': 'issues', 'x-github-delivery': 'g-1' })
    for (const name of ['authorization', 'cookie', 'x-hub-signature-256']) expect(headers).not.toHaveProperty(name)
    expect(query).toEqual({ from: 'there' })
    expect(text).toContain('a word that is in the body')
    expect(text).not.toContain('Secret to Everybody')
    expect(t.triggers.firingsFor(NIGHTLY).firings[0]).not.toHaveProperty('delivery')
    const stored = ['daemon.db', 'daemon.db-wal']
      .map(name => readFileSync(join(t.home, name)).toString('latin1'))
      .join()
    expect([stored.includes('a word that is in the body'), stored.includes('Secret to Everybody')]).toEqual([
      false,
      false,
    ])
    const again = await t.triggers.refire(answered.data.firing, { again: true, by: ADA })
    expect(again).toMatchObject({ occasion: 'g-1#2', state: 'started' })
    const signal = new AbortController().signal
    await deleteOldBodies(t.daemon, signal, t.daemon.ages.believed + 2 * DAY)
    expect(shown().body).not.toBeNull()
    await deleteOldBodies(t.daemon, signal, t.daemon.ages.believed + 4 * DAY)
    expect(shown().body).toBeNull()
    expect(await refusal(() => t.triggers.refire(answered.data.firing, { again: true, by: ADA }))).toBe('invalid_state')
  })

  test('a large body, and one of a hook that keeps none, is not kept', async () => {
    await using t = await hookHome()
    const { url } = await t.addHook({ inputs: { day: '{{ body.n }}' } })
    const large = JSON.stringify({ n: 'x', text: 'y'.repeat(300_000) })
    expect((await t.send(url, large, 'g-1')).body.data.state).toBe('started')
    const none = await t.addHook({ name: 'none', keep_body: 0 })
    await t.send(none.url, OPENED, 'g-1')
    expect(rowsOf(t.home, 'SELECT 1 FROM hook_bodies')).toEqual([])
    expect(await refusal(() => t.triggers.refire(t.firings()[0]!.id, { again: true, by: ADA }))).toBe('invalid_state')
  })

  test('two secrets fit at a time, and none is shown', async () => {
    await using t = await hookHome()
    const { url, secrets, id } = await t.addHook()
    expect(Object.keys(secrets![0]!).sort()).toEqual(['created_at', 'expires_at', 'id'])
    const with_ = async (secret: string) => (await post(url, OPENED, signed(OPENED, undefined, secret))).status
    const change = (given: object) => t.triggers.update({ trigger_id: id }, given, undefined, ADA)
    expect(await refusal(() => change({ expire_secret: secrets![0]!.id }))).toBe('conflict')
    const second = 'the second secret'
    const changed = await change({ add_secret: second })
    expect([changed.revision, changed.secrets!.length]).toEqual([2, 2])
    expect([await with_(SECRET), await with_(second)]).toEqual([202, 202])
    expect(await refusal(() => change({ add_secret: 'a third secret' }))).toBe('conflict')
    const expired = await change({ expire_secret: secrets![0]!.id })
    expect(expired.secrets!.map(({ expires_at }) => expires_at !== null)).toEqual([true, false])
    expect([await with_(SECRET), await with_(second)]).toEqual([401, 202])
    expect(await refusal(() => change({ expire_secret: secrets![0]!.id }))).toBe('not_found')
    expect((await change({ add_secret: 'a third secret' })).secrets).toHaveLength(2)
    expect(JSON.stringify(t.triggers.get(NIGHTLY))).not.toContain(second)
    expect(JSON.stringify(t.daemon.mask({ text: `it says ${second}` }))).not.toContain(second)
    const [, last] = t.triggers.get(NIGHTLY).secrets!
    const swapped = await change({ add_secret: 'a fourth secret', expire_secret: last!.id })
    expect(swapped.secrets!.filter(({ expires_at }) => expires_at === null)).toHaveLength(2)
    expect([await with_('a third secret'), await with_('a fourth secret')]).toEqual([401, 202])
    expect(await refusal(() => change({ secret: 'another secret' }))).toBe('invalid_request')
    expect(await refusal(() => change({ scheme: 'gitlab' }))).toBe('invalid_request')
  })

  test('a hook needs a secret that fits its scheme, and no fields of a schedule', async () => {
    await using t = await hookHome()
    const wrong = async (fields: object) => {
      try {
        await t.addHook(fields as Record<string, unknown>)
        return null
      } catch (error) {
        return (error as CadreError).details?.map(({ path }) => path)
      }
    }
    expect(await wrong({ secret: undefined })).toEqual(['/secret'])
    expect(await wrong({ scheme: 'standard' })).toEqual(['/secret'])
    expect(await wrong({ cron: '@daily' })).toEqual(['/cron'])
    expect(await wrong({ scheme: undefined })).toEqual(['/scheme', '/secret'].slice(0, 1))
    expect(await refusal(() => t.add({ scheme: 'github' } as never))).toBe('invalid_request')
    expect(await wrong({ when: 'slot == ""' })).toEqual(['/when'])
    expect(rowsOf(t.home, 'SELECT 1 FROM hook_secrets')).toEqual([])
  })

  test('a preview says what a delivery would do, and writes nothing', async () => {
    await using t = await hookHome()
    await t.addHook({ when: 'body.action == "opened"', inputs: { day: '{{ body.n }}' } })
    const preview = async (given: object) => (await t.triggers.previewFor({ ...given } as never)).outcome
    const headers = { 'x-github-delivery': 'g-1' }
    expect(await preview({ ...NIGHTLY, body: { action: 'opened', n: 'x' }, headers })).toEqual({
      ...{ state: 'starts', reason: null, detail: null, inputs: { day: 'x' } },
    })
    expect(await preview({ ...NIGHTLY, body: { action: 'closed' } })).toMatchObject({
      state: 'skipped',
      reason: 'when',
    })
    expect(await preview({ ...NIGHTLY, body: { action: 'opened', n: 1 } })).toMatchObject({ reason: 'inputs' })
    for (const [name, value] of [
      ['a b', 'x'],
      ['a', '\u2028'],
    ] as const) {
      const refused = t.triggers.previewFor({ ...NIGHTLY, headers: { [name]: value } } as never)
      await expect(refused).rejects.toMatchObject({
        code: 'invalid_request',
        details: [{ path: `/headers/${name}`, message: expect.stringContaining(name) }],
      })
    }
    const spec = { scheme: 'github', team: t.team, inputs: { day: '{{ headers["x-github-event"] }}' } }
    expect(await preview({ ...spec, headers: { 'x-github-event': 'push' } })).toMatchObject({ inputs: { day: 'push' } })
    expect(t.of()).toEqual([])
  })
})
