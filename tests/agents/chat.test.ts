import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { testAgent } from 'cadre/testing'
import chat from '../../agents/chat.ts'
import type { AgentError, AgentResult, NotifyEvent } from '../../lib/agent/define.ts'
import { testContext } from '../support/context.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { rawServer } from '../support/faults.ts'
import { type ChatVendor, chatVendor } from '../vendors/chat.ts'

const EVENT: NotifyEvent = {
  name: 'on_fail',
  team: '@local/digest',
  run: { id: '0190', name: null, state: 'failed', reason: null },
  message: '@local/digest: run 0190 failed: phase fetch: HTTP 500',
  outputs: null,
}

// A webhook answers what it likes, so that no reply but a web page is foreign.
const words = { names: '[chat] ops: post', anyReply: true }
await testAgent({
  file: join(import.meta.dir, '../../agents/chat.ts'),
  vendor: chatVendor,
  settings: ({ hook }) => ({ channels: { ops: hook('ops'), dev: { webhook_url: hook('dev') } } }),
  examples: {
    phase: { entry: { channels: ['ops'], subject: 'Over', message: 'Done.' }, ...words },
    notify: { entry: { channels: ['ops'] }, event: EVENT, ...words },
  },
})

let vendor: ChatVendor
beforeEach(() => {
  vendor = chatVendor()
})
afterEach(() => vendor[Symbol.dispose]())

const settings = () => ({ channels: { ops: vendor.hook('ops'), dev: { webhook_url: vendor.hook('dev') } } })
const network = { allow: [], literalOrigins: [] }

function send(entry: object, options: Parameters<typeof testContext>[0] = {}): Promise<AgentResult> {
  const { context } = testContext({ agent: 'chat', settings: settings(), network, effect: 'once', ...options })
  return chat.phase!.run(entry, context)
}

const failureOf = (sending: Promise<unknown>): Promise<AgentError> =>
  sending.then(
    () => expect.unreachable(),
    error => error,
  )

describe('a message', () => {
  test('goes to every channel, or to those that are named', async () => {
    const result = await send({ message: 'Done.' })
    expect(result).toEqual({
      text: 'sent to ops, dev',
      data: { channels: { ops: { status: 200 }, dev: { status: 200 } } },
    })
    expect(vendor.posts.map(({ path }) => path).sort()).toEqual(['dev', 'ops'])
    await send({ message: 'Again.', channels: ['dev'] })
    expect(vendor.posts).toHaveLength(3)
    expect(vendor.posts[2]).toMatchObject({ path: 'dev', payload: { text: 'Again.' } })
  })

  test('an unknown channel is refused before anything is sent', async () => {
    expect(await failureOf(send({ channels: ['ops', 'prod'] }))).toMatchObject({
      message: 'there is no channel prod',
      hint: 'the configured channels are ops, dev',
      sent: 'no',
    })
    expect(vendor.posts).toEqual([])
  })

  test('without words names team, run and phase, with a link to the run', async () => {
    const run = { id: '0190', name: 'Nightly', team: '@local/digest', url: 'http://127.0.0.1:7401/#/runs/0190' }
    await send({ channels: ['ops'] }, { run })
    const { text, blocks } = vendor.posts[0]!.payload
    expect(text).toBe(
      '@\u2060local/digest: run Nightly (0190) is running, phase phase\n<http://127.0.0.1:7401/#/runs/0190|Nightly>',
    )
    expect(blocks.at(-1)).toEqual({
      type: 'context',
      elements: [{ type: 'mrkdwn', text: '@local/digest · run <http://127.0.0.1:7401/#/runs/0190|Nightly>' }],
    })
  })

  test('of an event is its sentence, unless there is a message', async () => {
    const { context } = testContext({ agent: 'chat', settings: settings(), network, effect: 'once', event: EVENT })
    await chat.notify!.run({ channels: ['ops'] }, context)
    await chat.notify!.run({ channels: ['ops'], message: 'Own words', subject: 'Over' }, context)
    expect(vendor.posts.map(({ payload }) => payload.text.replace('\u2060', ''))).toEqual([
      '@local/digest: run 0190 failed: phase fetch: HTTP 500',
      '*Over*\nOwn words',
    ])
  })

  test('expands no mention and no link with a false face', async () => {
    await send({
      channels: ['ops'],
      message: '<!channel> <@U1> <https://evil|bank> @here @all a@example.org 1 < 2 & 3',
    })
    const { text, blocks } = vendor.posts[0]!.payload
    const expected =
      '&lt;!channel&gt; &lt;@\u2060U1&gt; &lt;https://evil|bank&gt; @\u2060here @\u2060all a@example.org 1 &lt; 2 &amp; 3'
    expect(text).toBe(expected)
    expect(blocks[0]!.text!.text).toBe(expected)
  })

  test('of any length fits, and says what is missing', async () => {
    await send({ channels: ['ops'], message: '&🎉'.repeat(20_000) })
    const { blocks, text } = vendor.posts[0]!.payload
    expect(blocks.length).toBeGreaterThan(5)
    expect(text).toEndWith('… (40000 more characters: see the run)')
    expect(text.isWellFormed() && !text.includes('\ufffd')).toBe(true)
  })
})

describe('bad days', () => {
  test.each([
    [400, 'invalid_payload', 'rejected'],
    [403, 'action_prohibited', 'forbidden'],
    [404, 'channel_not_found', 'not_found'],
    [410, 'channel_is_archived', 'gone'],
  ])('a refusal by all with %d is definite', async (status, body, code) => {
    for (const name of ['ops', 'dev']) vendor.answer(name, () => new Response(body, { status }))
    expect(await failureOf(send({}))).toMatchObject({ sent: 'no', retryable: false, code: 'not_delivered' })
    vendor.answer('ops', () => new Response(body, { status }))
    const failure = await failureOf(send({ channels: ['ops'] }))
    expect(failure).toMatchObject({ code, sent: 'no', message: `[chat] ops: post: HTTP ${status}: ${body}` })
  })

  test('a 5xx is left in doubt, and never worth another try', async () => {
    vendor.answer('ops', () => new Response('rollup_error', { status: 500 }))
    expect(await failureOf(send({ channels: ['ops'] }))).toMatchObject({ sent: 'unknown', retryable: false })
  })

  test('delivered to one and refused by another: neither certain nor to be repeated', async () => {
    vendor.answer('dev', () => new Response('no_service', { status: 404 }))
    const failure = await failureOf(send({}))
    expect(failure.message).toBe('[chat] ops: sent; dev: post: HTTP 404: no_service')
    expect(failure).toMatchObject({ sent: undefined, retryable: false })
  })

  test('a sign-in page with 200, a reset, and no server', async () => {
    vendor.answer(
      'ops',
      () => new Response('<!DOCTYPE html><title>Sign in', { headers: { 'content-type': 'text/html' } }),
    )
    expect(await failureOf(send({ channels: ['ops'] }))).toMatchObject({ code: 'unexpected_reply', sent: 'unknown' })
    using reset = await rawServer(socket => socket.destroy())
    const at = (url: string) => ({ settings: { channels: { ops: `${url}/services/T/B/canarysecret` } } })
    expect(await failureOf(send({}, at(reset.url)))).toMatchObject({ code: 'network', sent: 'unknown' })
    const dead = await failureOf(send({}, at('http://127.0.0.1:1')))
    expect(dead).toMatchObject({ code: 'network', sent: 'no', retryable: true })
    expect(dead.message).not.toContain('canarysecret')
  })
})

describe('in a run', () => {
  let t: TestEngine
  beforeEach(async () => {
    t = await testEngine({ agents: { chat }, settings: { chat: settings() } })
  })
  afterEach(() => t.close())

  const team = (phases: string) => `
name: "@local/told"
version: 1.0.0
phases:
  - { name: work, agent: exec, commands: [{ name: c, run: "echo one" }] }
${phases}`

  test('an ordinary phase and a listener send', async () => {
    const run = await t.run(
      team(`  - { name: tell, agent: chat, depends_on: [work], channels: [dev], message: "said {{ phases.work.state }}" }
  - { name: end, agent: chat, notify: { on_complete: { channels: [ops], message: "over: {{ phases.tell.data.channels.dev.status }}" } } }`),
    )
    expect(run.state).toBe('completed')
    expect(vendor.posts.map(({ path, payload }) => [path, payload.text])).toEqual([
      ['dev', 'said completed'],
      ['ops', 'over: 200'],
    ])
  })

  test('what is in doubt asks a person and is not sent again', async () => {
    vendor.answer('dev', () => new Response('', { status: 503 }))
    const { run_id } = await t.start(
      team('  - { name: tell, agent: chat, depends_on: [work], retry: { attempts: 3, backoff: 1ms } }'),
    )
    while (t.engine.record(run_id).state !== 'awaiting_input') await Bun.sleep(5)
    expect(vendor.posts.map(({ path }) => path)).toEqual(['ops'])
    expect(JSON.stringify(t.engine.record(run_id))).not.toContain('canarysecret')
    const [review] = t.engine.store.reviews.list({ state: 'pending', limit: 10, offset: 0 }).rows
    await t.engine.decide(review!.id, { decision: 'skip', by: 'me' })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(vendor.posts).toHaveLength(1)
  })
})
