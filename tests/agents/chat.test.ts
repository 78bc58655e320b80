import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { testAgent } from 'cadre/testing'
import chat from '../../agents/chat.ts'
import type { AgentResult, NotifyEvent } from '../../lib/agent/agent-context.ts'
import type { AgentError } from '../../lib/agent/core/agent-error.ts'
import { addressOf, serverOf } from '../../lib/vendors/chat/webhook.ts'
import { testContext } from '../support/context.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { rawServer } from '../support/faults.ts'
import { NIGHTLY } from '../support/nightly-run.ts'
import { type ChatVendor, chatVendor } from '../vendors/chat.ts'

const EVENT: NotifyEvent = {
  name: 'on_fail',
  team: '@local/digest',
  run: { id: '0190', name: null, state: 'failed', reason: null },
  message: '@local/digest: run 0190 failed: phase fetch: HTTP 500',
  outputs: null,
}

const words = { names: '[chat] ops: post' }
const subject = await testAgent({
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
    const run = NIGHTLY
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

  test('is Markdown in the marks of Slack, and its links show where they lead', async () => {
    const message =
      '# Done & dusted\n\n**all** _of_ ~~it~~, see [the bank](https://evil.test?a=1&b=2)\n\n- one\n- two\n\n```\na < b\n```'
    await send({ channels: ['ops'], subject: 'Over\n*now*', message })
    expect(vendor.posts[0]!.payload.text).toBe(
      '*Over *now**\n*Done &amp; dusted*\n\n*all* _of_ ~it~, see the bank (https://evil.test?a=1&amp;b=2)\n\n• one\n• two\n\n```\na &lt; b\n```',
    )
  })

  test.each([
    ['escapes', '&🎉'.repeat(20_000)],
    ['one word', 'x'.repeat(60_000)],
    ['code', `\`\`\`\n${'if (a < b) c()\n'.repeat(9_000)}\`\`\``],
    ['lines of half a section', `${'y'.repeat(1_600)}\n\n`.repeat(40)],
  ])('of any length fits and says what is missing: %s', async (_, message) => {
    await send({ channels: ['ops'], message })
    const { blocks, text } = vendor.posts[0]!.payload
    expect(text).toEndWith('… (cut off: see the run)')
    expect(text.isWellFormed() && !/&(?!amp;|lt;|gt;)/.test(text)).toBe(true)
    for (const block of blocks.slice(0, -1)) {
      expect((block.text!.text.match(/^```/gm) ?? []).length % 2).toBe(0)
      expect(block.text!.text.isWellFormed()).toBe(true)
    }
  })
})

describe('Teams', () => {
  const at = () => ({ settings: { channels: { ops: { webhook_url: vendor.workflow, server: 'teams' } } } })

  test('gets a card, and 202 is its answer', async () => {
    const run = NIGHTLY
    const result = await send({ subject: 'Over', message: '**Done** @all\n\n[here](https://a.test)' }, { ...at(), run })
    expect(result.data).toEqual({ channels: { ops: { status: 202 } } })
    expect(vendor.cards[0]).toMatchObject({
      type: 'AdaptiveCard',
      body: [{ text: 'Over' }, { text: '**Done** @\u2060all\n\nhere (https://a.test)' }, { isSubtle: true }],
      actions: [{ url: run.url }],
    })
  })

  test.each(['x', '🎉', '"', 'ü\n\n'])(
    'gets a card of at most 28 KB, however long the message of %p is',
    async text => {
      await send({ message: text.repeat(80_000) }, at())
      const [, shown] = [vendor.cards.length, vendor.cards[0]!.body[0]!.text]
      expect(shown).toEndWith('… (cut off: see the run)')
      expect(shown.isWellFormed()).toBe(true)
    },
  )

  test('is known by its hosts', () => {
    const hosts = [
      'prod-1.westeurope.logic.azure.com:443',
      'a.environment.api.powerplatform.com',
      'acme.webhook.office.com',
    ]
    expect(hosts.map(host => serverOf(`https://${host}/workflows/1`))).toEqual(['teams', 'teams', 'teams'])
    expect(serverOf('https://hooks.slack.com/services/T/B/x')).toBe('slack')
    expect(serverOf('https://logic.azure.com.evil.test/x')).toBe('slack')
  })
})

describe('settings as people paste them', () => {
  test.each([
    ['#ops', 'not the channel #ops: write its webhook, https://hooks.slack.com/services/…'],
    ['hooks.slack.com/services/T/B/x', 'must be the address of a webhook, which begins with https://'],
    ['https://api.slack.com/apps/A0123', 'not a page of Slack'],
    ['https://acme.slack.com/archives/C0123', 'not a page of Slack'],
    ['https://hooks.slack.com/services/T0/B0', 'is not the whole address'],
    ['https://hooks.slack.com/triggers/T/1/x', 'takes only its own variables'],
    ['https://teams.microsoft.com/l/channel/19%3a', 'not a page of Teams: write the address of a workflow'],
    ['https://discord.com/channels/1/2', 'not a page of Discord'],
  ])('%s is answered with what to write', async (url, words) => {
    for (const channel of [url, { webhook_url: url }]) {
      expect(await subject.problems({ channels: { ops: channel } })).toEqual([expect.stringContaining(words)])
    }
  })

  test('webhooks are fine, and so is a channel with its sign', async () => {
    const urls = [
      'https://hooks.slack.com/services/T/B/x',
      'https://chat.acme.test/hooks/abc',
      'https://discord.com/api/webhooks/1/x',
    ]
    expect(await subject.problems({ channels: Object.fromEntries(urls.map((url, at) => [`c${at}`, url])) })).toEqual([])
    expect(addressOf(urls[2]!)).toBe('https://discord.com/api/webhooks/1/x/slack')
    await send({ channels: ['#ops', 'ops'], message: 'x' })
    expect(vendor.posts.map(({ path }) => path)).toEqual(['ops'])
  })
})

describe('bad days', () => {
  test.each([
    [400, 'invalid_payload', 'rejected', 'takes no messages in the form of Slack'],
    [403, 'action_prohibited', 'forbidden', 'an administrator restricts webhooks'],
    [404, 'no_service', 'not_found', 'create a new one'],
    [404, 'channel_not_found', 'not_found', 'the channel was deleted'],
    [410, 'channel_is_archived', 'gone', 'the channel is archived'],
  ])('a refusal by all with %d %s is definite, and says what to do', async (status, body, code, advice) => {
    for (const name of ['ops', 'dev']) vendor.answer(name, () => new Response(body, { status }))
    expect(await failureOf(send({}))).toMatchObject({ sent: 'no', retryable: false, code: 'not_delivered' })
    vendor.answer('ops', () => new Response(body, { status }))
    const failure = await failureOf(send({ channels: ['ops'] }))
    expect(failure).toMatchObject({ code, sent: 'no', message: `[chat] ops: post: HTTP ${status}: ${body}` })
    expect(failure.hint).toContain(advice)
    expect(failure.hint).toContain('agents.chat.channels.ops')
  })

  test.each(['{"ok":false}', 'Webhook message delivery failed with error: HTTP error 413', '{"success":false}'])(
    '200 with %s is no delivery',
    async body => {
      vendor.answer('ops', () => new Response(body))
      const failure = await failureOf(send({ channels: ['ops'] }))
      expect(failure).toMatchObject({ code: 'unexpected_reply', sent: 'unknown' })
      expect(failure.message).toContain(body)
    },
  )

  test.each(['ok', '', '1', '{"success":true}', '{"result":"success"}'])('200 with %p is a delivery', async body => {
    vendor.answer('ops', () => new Response(body))
    expect((await send({ channels: ['ops'] })).text).toBe('sent to ops')
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

  test('a reset, and no server', async () => {
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
