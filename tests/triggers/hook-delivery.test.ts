// What a delivery says: its id and event, its body as a value, the answers to questions of senders, and what is kept of it.

import { describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { fieldsOf, parseBody } from '../../lib/triggers/hook/body.ts'
import { deliveryOf } from '../../lib/triggers/hook/delivery.ts'
import { signedHandshake, unsignedHandshake } from '../../lib/triggers/hook/handshake.ts'
import { storedHeaders } from '../../lib/triggers/hook/stored-headers.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { SENDERS, sentBy, specOf } from './hook-senders.ts'

const JSON_TYPE = 'application/json; charset=utf-8'
const FORM = 'application/x-www-form-urlencoded'
const sha256 = (data: string) => createHash('sha256').update(data).digest('hex')

interface Given {
  headers?: Record<string, string>
  body?: string
  type?: string
  query?: string
}

/** Reads the body, and then the delivery, as a server does. */
function read(
  fields: Record<string, unknown>,
  { headers = {}, body = '{}', type = JSON_TYPE, query = '' }: Given = {},
) {
  const spec = specOf(fields)
  const bytes = Buffer.from(body)
  const parsed = parseBody(spec, type, bytes)
  const request = { headers: new Headers(headers), body: bytes, query: new URLSearchParams(query) }
  return deliveryOf(spec, request, parsed.ok ? parsed.value : undefined)
}

describe('id and event', () => {
  const json = (value: unknown) => JSON.stringify(value)
  const CASES: [scheme: string, given: Given, id: string, event: string | null][] = [
    ['github', { headers: { 'X-GitHub-Delivery': 'g-1', 'X-GitHub-Event': 'issues' } }, 'g-1', 'issues'],
    [
      'gitea',
      { headers: { 'X-Gitea-Delivery': 'a', 'X-Forgejo-Delivery': 'f', 'X-Gitea-Event': 'push' } },
      'f',
      'push',
    ],
    ['gitea', { headers: { 'X-Gitea-Delivery': 'a', 'X-GitHub-Delivery': 'g' } }, 'a', null],
    ['gitea', { headers: { 'X-GitHub-Delivery': 'g' } }, 'g', null],
    ['gitlab', { headers: { 'webhook-id': 'w', 'X-Gitlab-Event': 'Push Hook' } }, 'w', 'Push Hook'],
    ['gitlab_token', { headers: { 'Idempotency-Key': 'k', 'X-Gitlab-Event-UUID': 'u' } }, 'k', null],
    ['slack', { body: json({ event_id: 'Ev1', event: { type: 'app_mention' } }) }, 'Ev1', 'app_mention'],
    ['slack', { body: 'trigger_id=13.4&command=%2Frun&text=', type: FORM }, '13.4', '/run'],
    [
      'slack',
      { body: `payload=${encodeURIComponent(json({ type: 'block_actions', trigger_id: '5.6' }))}`, type: FORM },
      '5.6',
      'block_actions',
    ],
    ['stripe', { body: json({ id: 'evt_1', type: 'invoice.paid' }) }, 'evt_1', 'invoice.paid'],
    ['standard', { headers: { 'webhook-id': 'msg_1' }, body: json({ type: 'user.created' }) }, 'msg_1', 'user.created'],
    [
      'jira',
      { headers: { 'X-Atlassian-Webhook-Identifier': 'j' }, body: json({ webhookEvent: 'jira:issue_updated' }) },
      'j',
      'jira:issue_updated',
    ],
    ['bitbucket', { headers: { 'X-Request-UUID': 'b', 'X-Event-Key': 'repo:push' } }, 'b', 'repo:push'],
    ['shopify', { headers: { 'X-Shopify-Webhook-Id': 's', 'X-Shopify-Topic': 'orders/create' } }, 's', 'orders/create'],
    [
      'zendesk',
      { headers: { 'X-Zendesk-Webhook-Invocation-Id': 'z' }, body: json({ type: 'zen:event-type:ticket.created' }) },
      'z',
      'zen:event-type:ticket.created',
    ],
    ['bearer', { headers: { 'Idempotency-Key': 'my/key=1' } }, 'my/key=1', null],
  ]

  test.each(CASES)('%s %j', (scheme, given, id, event) => {
    expect(read({ scheme }, given)).toEqual({ id, within: null, event, problem: null })
  })

  test('hmac and bearer take the header that is named', () => {
    for (const fields of [{ scheme: 'hmac', header: 'X-Sig' }, { scheme: 'bearer' }]) {
      const given = { headers: { 'X-Id': 'x-1', 'Idempotency-Key': 'k' } }
      expect(read({ ...fields, id_header: 'x-id' }, given).id).toBe('x-1')
    }
  })

  test('Microsoft Graph names what changed', () => {
    const body = json({ value: [{ changeType: 'updated' }] })
    expect(read({ scheme: 'graph', dedup: 'none' }, { body })).toEqual({
      id: null,
      within: null,
      event: 'updated',
      problem: null,
    })
  })

  test('without the id of the sender the bytes count for 10 minutes, and with bearer each call counts', () => {
    const body = '{"a":1}'
    const whole = { id: `body:${sha256(body)}`, within: 600_000, event: null, problem: null }
    for (const scheme of ['github', 'gitlab_token', 'slack', 'stripe'])
      expect(read({ scheme }, { body })).toEqual(whole)
    expect(read({ scheme: 'stripe' }, { body: '{"id":""}' }).within).toBe(600_000)
    expect(read({ scheme: 'stripe' }, { body: '{"id":{"x":1}}' }).within).toBe(600_000)
    expect(read({ scheme: 'stripe' }, { body: 'no JSON' }).within).toBe(600_000)
    expect(read({ scheme: 'stripe' }, { body: '{"__proto__":{"id":"evt_1"}}' }).within).toBe(600_000)
    expect(read({ scheme: 'bearer' }, { body }).id).toBe(null)
  })

  test('what the hook chooses replaces the id of the sender', () => {
    const given = { headers: { 'X-GitHub-Delivery': 'g-1' }, body: '{"n":7,"s":"é","o":{},"t":true}' }
    const of = (dedup: string) => read({ scheme: 'github', dedup }, given)
    expect(of('none').id).toBe(null)
    expect(of('body')).toMatchObject({ id: `body:${sha256(given.body)}`, within: 600_000 })
    expect(of('{{ body.n }}')).toMatchObject({ id: '7', within: null, problem: null })
    expect(of("{{ headers['x-github-delivery'] }}-{{ body.n }}-{{ body.t }}").id).toBe('g-1-7-true')
    expect(read({ scheme: 'github', dedup: '{{ query.k }}' }, { query: 'k=v' }).id).toBe('v')
    expect(of('{{ body.s }}').id).toBe(`sha256:${sha256('é')}`)
  })

  test('a template that gives no text for a delivery is told, and the bytes count', () => {
    const fallback = { id: `body:${sha256('{"o":{}}')}`, within: 600_000 }
    const of = (dedup: string) => read({ scheme: 'github', dedup }, { body: '{"o":{}}' })
    expect(of('{{ body.id }}')).toMatchObject({ ...fallback, problem: expect.stringMatching(/No such key: id/) })
    for (const dedup of ['{{ body.o }}', '{{ query.a }}', "{{ '' }}"]) {
      expect(of(dedup)).toMatchObject({ ...fallback, problem: expect.stringMatching(/gave no text/) })
    }
  })

  test('an id is an occasion of its own, whatever it is', () => {
    const of = (id: string) => read({ scheme: 'stripe' }, { body: json({ id }) }).id
    for (const id of ['evt_1', '0b989ba4-242f-11e5-81e1-c7b6966d2516', 'a/b+c=', 'x'.repeat(200)])
      expect(of(id)).toBe(id)
    const ours = [
      'rejected:x',
      'now:x',
      `body:${sha256('')}`,
      `sha256:${sha256('')}`,
      'a#1',
      'x'.repeat(201),
      'a b',
      '\0',
      '-a',
      '\n',
    ]
    for (const id of ours) expect(of(id)).toBe(`sha256:${sha256(id)}`)
  })

  test('an event is a short text of one line', () => {
    const of = (type: unknown) => read({ scheme: 'stripe' }, { body: json({ type }) }).event
    expect([of('x'), of('x'.repeat(201)), of('a\nb'), of(''), of(null), of([])]).toEqual([
      'x',
      null,
      null,
      null,
      null,
      null,
    ])
  })
})

describe('bodies', () => {
  const parse = (scheme: string, type: string | null, body: string | Uint8Array) =>
    parseBody(specOf({ scheme }), type, Buffer.from(body))
  const is = (value: unknown) => ({ ok: true, value })

  test('JSON of any type of JSON', () => {
    for (const type of [
      'application/json',
      JSON_TYPE,
      ' Application/JSON ',
      'application/cloudevents+json',
      'text/json',
    ]) {
      expect([type, parse('github', type, '{"a":[1,null]}')]).toEqual([type, is({ a: [1, null] })] as never)
    }
    expect(parse('github', 'application/json', '\ufeff{}')).toEqual(is({}) as never)
    expect(parse('github', 'application/json', '')).toEqual(is({}) as never)
  })

  test('JSON that is none is refused with what is wrong', () => {
    const bad: [string | Uint8Array, RegExp][] = [
      ['{', /is not JSON/],
      ['nope', /is not JSON/],
      [new Uint8Array([0x22, 0xff, 0x22]), /is not valid UTF-8/],
      ['['.repeat(129) + ']'.repeat(129), /nested deeper than 128 levels/],
      ['['.repeat(1_000_000), /nested deeper than 128 levels/],
    ]
    for (const [body, message] of bad) {
      const parsed = parse('github', 'application/json', body)
      expect(parsed.ok ? 'it was taken' : parsed.detail).toMatch(message)
    }
    expect(parse('github', 'application/json', '['.repeat(128) + ']'.repeat(128)).ok).toBe(true)
  })

  test('a form is an object, and a field that comes twice a list', () => {
    expect(parse('bearer', `${FORM};charset=UTF-8`, 'a=1&b=x+y&a=%C3%A9&a=&c')).toEqual(
      is({ a: ['1', 'é', ''], b: 'x y', c: '' }) as never,
    )
    const own = parse('bearer', FORM, '__proto__=x&constructor=y')
    expect(own.ok && Object.entries(own.value as object)).toEqual([
      ['__proto__', 'x'],
      ['constructor', 'y'],
    ])
    expect(parse('bearer', FORM, 'a&'.repeat(10_000)).ok).toBe(true)
    expect(parse('bearer', FORM, 'a&'.repeat(10_001))).toEqual({
      ok: false,
      detail: 'a form may have at most 10000 fields',
    })
  })

  test('`payload` of a form is JSON where the sender says so', () => {
    const form = `payload=${encodeURIComponent('{"action":"opened"}')}`
    expect(parse('slack', FORM, `${form}&x=1`)).toEqual(is({ payload: { action: 'opened' }, x: '1' }) as never)
    for (const scheme of ['github', 'gitea'])
      expect(parse(scheme, FORM, form)).toEqual(is({ action: 'opened' }) as never)
    expect(parse('bearer', FORM, form)).toEqual(is({ payload: '{"action":"opened"}' }) as never)
    for (const scheme of ['slack', 'github']) {
      expect(parse(scheme, FORM, 'payload={')).toMatchObject({
        ok: false,
        detail: expect.stringMatching(/`payload` in the body is not JSON/),
      })
      expect(parse(scheme, FORM, `payload=${'['.repeat(129)}`)).toMatchObject({
        ok: false,
        detail: expect.stringMatching(/deeper/),
      })
    }
  })

  test('anything else is text', () => {
    expect(parse('bearer', 'text/plain', '{"a":1}')).toEqual(is('{"a":1}') as never)
    expect(parse('bearer', null, 'a=1')).toEqual(is('a=1') as never)
    expect(parse('bearer', 'text/plain', '')).toEqual(is('') as never)
    expect(parse('bearer', null, '')).toEqual(is({}) as never)
    expect(parse('bearer', 'image/png', new Uint8Array([0xff]))).toEqual(is('\ufffd') as never)
  })
})

describe('handshakes', () => {
  const query = (text: string) => new URLSearchParams(text)

  test('Microsoft Graph gets its token back as plain text', () => {
    const graph = specOf({ scheme: 'graph', dedup: 'none' })
    const token = 'Validation: Testing client <script> reachability RequestId'
    expect(unsignedHandshake(graph, new URLSearchParams({ validationToken: token }))).toEqual({
      contentType: 'text/plain; charset=utf-8',
      body: token,
    })
    expect(unsignedHandshake(graph, query(`validationToken=${'x'.repeat(1_024)}`))?.body).toHaveLength(1_024)
    for (const bad of [
      '',
      'validationToken=',
      `validationToken=${'x'.repeat(1_025)}`,
      'validationToken=a&validationToken=b',
      'x=y',
    ]) {
      expect([bad, unsignedHandshake(graph, query(bad))]).toEqual([bad, null])
    }
  })

  test('Slack gets its challenge back, once it has signed', () => {
    const slack = specOf({ scheme: 'slack' })
    const asked = { type: 'url_verification', challenge: '3eZbrw"1aBm' }
    expect(signedHandshake(slack, asked)).toEqual({
      contentType: 'application/json',
      body: '{"challenge":"3eZbrw\\"1aBm"}',
    })
    for (const body of [
      undefined,
      null,
      'url_verification',
      { ...asked, type: 'event_callback' },
      { type: 'url_verification' },
      { ...asked, challenge: 1 },
    ]) {
      expect([body, signedHandshake(slack, body)]).toEqual([body, null])
    }
  })

  test('no other scheme has one', () => {
    for (const { fields } of SENDERS) {
      const spec = specOf(fields)
      if (fields.scheme !== 'graph') expect(unsignedHandshake(spec, query('validationToken=a'))).toBe(null)
      if (fields.scheme !== 'slack')
        expect(signedHandshake(spec, { type: 'url_verification', challenge: 'c' })).toBe(null)
    }
  })
})

describe('headers that are kept', () => {
  test('no header that is signed, or a secret, is kept, and the others are', () => {
    for (const sender of SENDERS) {
      const { headers } = sentBy(sender)
      for (const name of [
        'Cookie',
        'Proxy-Authorization',
        'X-Gogs-Signature',
        'X-Hub-Signature',
        'X-Gitlab-Token',
        'Authorization',
      ])
        headers.set(name, 'hidden')
      headers.set('X-Goog-Channel-Token', 'hidden')
      headers.set('X-Other', 'shown')
      const kept = storedHeaders(specOf(sender.fields), headers)
      const text = JSON.stringify(kept)
      expect([sender.name, kept['x-other']]).toEqual([sender.name, 'shown'])
      expect(text).not.toContain('hidden')
      expect(text).not.toContain(sender.secret)
      for (const [name, value] of sentBy(sender).headers) {
        if (/signature$|signature-256|sha256|x-sig|authorization|x-api-key|token/.test(name))
          expect(text).not.toContain(value)
        else expect([sender.name, kept[name]]).toEqual([sender.name, value])
      }
    }
  })

  test('the header that the hook names is not kept, in any spelling', () => {
    const headers = new Headers({ 'x-CHECK': 'digest', 'X-Key': 'secret', 'X-Id': '1' })
    expect(storedHeaders(specOf({ scheme: 'hmac', header: 'X-Check', id_header: 'X-Id' }), headers)).toEqual({
      'x-key': 'secret',
      'x-id': '1',
    })
    expect(storedHeaders(specOf({ scheme: 'bearer', header: 'x-key' }), headers)).toEqual({
      'x-check': 'digest',
      'x-id': '1',
    })
  })

  test('expressions see what is kept, so that a delivery decides the same when it is fired again', () => {
    const given = { headers: { authorization: 'Bearer hidden' } }
    const { problem } = read({ scheme: 'bearer', dedup: "{{ headers['authorization'] }}" }, given)
    expect(problem).toContain('gave no text')
  })
})

test('noise never throws', () => {
  const random = randomFrom(seedOf('hook-delivery'))
  const types = [JSON_TYPE, FORM, 'text/plain', null, 'application/x+json']
  for (const { fields } of SENDERS) {
    const spec = specOf(fields)
    for (const dedup of [undefined, '{{ body.a.b }}', '{{ body.map(x, x) }}']) {
      const chosen = dedup && !('id_header' in fields) ? specOf({ ...fields, dedup }) : spec
      for (let round = 0; round < 60; round++) {
        const body = Uint8Array.from({ length: random.below(100) }, () =>
          random.of([random.below(256), ...Buffer.from('{}[]",:a0')]),
        )
        const header = String.fromCharCode(...Array.from({ length: random.below(30) }, () => 0x20 + random.below(95)))
        const headers = new Headers({
          'x-github-delivery': header,
          'webhook-id': header,
          'idempotency-key': header,
          'x-id': header,
        })
        const request = { headers, body, query: new URLSearchParams(header) }
        const parsed = parseBody(chosen, random.of(types), body)
        const value = parsed.ok ? parsed.value : undefined
        const { id } = deliveryOf(chosen, request, value)
        expect(id === null || /^[A-Za-z0-9][!-~]{0,206}$/.test(id)).toBe(true)
        signedHandshake(chosen, value)
        unsignedHandshake(chosen, request.query)
        storedHeaders(chosen, headers)
      }
    }
  }
})

test('a query is read like a form', () => {
  expect(fieldsOf(new URLSearchParams('a=1&a=2&b'))).toEqual({ a: ['1', '2'], b: '' })
})
