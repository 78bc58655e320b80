// A message that some of its recipients have and others do not: who gets it again, and who does not.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import chat from '../../agents/chat.ts'
import email from '../../agents/email.ts'
import type { AgentResult } from '../../lib/agent/agent-context.ts'
import { runPhases, why } from '../../lib/run/engine.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { folder } from '../support/folder.ts'
import { type ChatVendor, chatVendor } from '../vendors/chat.ts'
import { type MailVendor, mailVendor, PASSWORD, USER } from '../vendors/mail.ts'

let t: TestEngine
afterEach(() => t.close())

const team = (agent: string, more = '') => `
name: "@local/news"
version: 1.0.0
phases:
  - { name: begin, type: gate, commands: [{ name: c, run: "true" }] }
  - { name: tell, agent: ${agent}, depends_on: [begin], message: It is done.${more} }`

const phase = (id: string) => runPhases(t.engine.store, id, key => t.engine.bundle(key)).phases[1]!
const receipt = (id: string) => {
  const [row, ...more] = t.engine.store.receipts.of(id as never, 1)
  expect(more).toEqual([])
  return row && { state: row.state, data: (JSON.parse(row.result ?? 'null') as AgentResult | null)?.data }
}
const whyOf = (id: string) => why(t.engine.store, id, key => t.engine.bundle(key)).lines.join('\n')
const pending = () => t.engine.store.reviews.list({ state: 'pending', limit: 10, offset: 0 }).rows
async function resumed(id: string) {
  await t.engine.resume(id)
  return t.engine.ended(id)
}
async function asked(id: string) {
  for (let n = 0; n < 2_000 && pending().length === 0; n++) await Bun.sleep(5)
  expect(phase(id).state).toBe('awaiting_input')
  return pending()[0]!.id
}

describe('a mail', () => {
  let vendor: MailVendor
  let home: string
  const start = async () => {
    const settings = {
      ...{ smtp_host: '127.0.0.1', smtp_port: vendor.port, tls: false, username: USER, password: PASSWORD },
      channels: { ada: 'Ada <ada@example.org>', bob: 'bob@example.org', eve: 'eve@example.org' },
    }
    t = await testEngine({ home, agents: { email }, settings: { email: settings } })
  }
  beforeEach(async () => {
    vendor = await mailVendor()
    home = folder()
    await start()
  })
  afterEach(() => vendor.close())

  const two = ', channels: [ada, bob]'
  const got = () => vendor.received.map(({ to }) => to.join())
  const later = (address: string, times?: number) =>
    vendor.refuse.set(address, { code: 451, text: '4.7.1 Greylisted', ...(times && { times }) })

  test('that one of two does not take for now fails, and `resume` sends it to that one alone', async () => {
    later('bob@example.org', 1)
    const { run_id, state } = await t.run(team('email', two))
    expect(state).toBe('failed')
    expect(phase(run_id).error).toMatchObject({ code: 'not_delivered', hint: expect.stringContaining('`resume`') })
    expect(phase(run_id).error!.message).toContain(
      'sent to ada@example.org; refused for now: bob@example.org (451 4.7.1 Greylisted)',
    )
    expect(receipt(run_id)).toMatchObject({
      state: 'partial',
      data: { accepted: ['ada@example.org'], rejected: ['bob@example.org'] },
    })
    expect(whyOf(run_id)).toContain('arrived in part')
    expect((await resumed(run_id)).state).toBe('completed')
    expect(got()).toEqual(['ada@example.org', 'bob@example.org'])
    expect(phase(run_id).data).toMatchObject({ accepted: ['ada@example.org', 'bob@example.org'] })
    const [first, second] = vendor.received
    // It is the same mail, which names both.
    expect(second!.mail.messageId).toBe(first!.mail.messageId!)
    expect(second!.mail.to!.map(({ address }) => address)).toEqual(['ada@example.org', 'bob@example.org'])
    expect((await resumed(run_id).catch(error => error)).code).toBe('invalid_state')
  })

  test('is sent to that one by `retry`, too', async () => {
    later('bob@example.org', 1)
    const { run_id, state } = await t.run(team('email', `${two}, retry: { attempts: 3, backoff: 1ms }`))
    expect([state, phase(run_id).attempt]).toEqual(['completed', 2])
    expect(got()).toEqual(['ada@example.org', 'bob@example.org'])
  })

  test('is not sent to one who refused it for good, or has it', async () => {
    later('bob@example.org', 1)
    vendor.refuse.set('eve@example.org', { code: 550, text: '5.1.1 No such user' })
    const { run_id, state } = await t.run(team('email', ', retry: { attempts: 4, backoff: 1ms }'))
    expect([state, phase(run_id).attempt]).toEqual(['failed', 2])
    expect(got()).toEqual(['ada@example.org', 'bob@example.org'])
    vendor.refuse.clear()
    for (let n = 0; n < 2; n++) {
      expect((await resumed(run_id)).state).toBe('failed')
      expect(phase(run_id).error!.message).toContain(
        'sent to ada@example.org, bob@example.org; refused: eve@example.org',
      )
      expect(receipt(run_id)).toMatchObject({
        state: 'partial',
        data: { accepted: ['ada@example.org', 'bob@example.org'], rejected: ['eve@example.org'], deferred: [] },
      })
    }
    expect(got()).toEqual(['ada@example.org', 'bob@example.org'])
  })

  test('keeps who has it while the others go on refusing, over a restart and a server that is down', async () => {
    later('bob@example.org')
    later('eve@example.org')
    const { run_id } = await t.run(team('email'))
    expect((await resumed(run_id)).state).toBe('failed')
    expect(phase(run_id).error!.message).toContain('Greylisted')
    await t.close()
    await start()
    vendor.atEnd = { code: 452, text: '4.3.1 No space' }
    vendor.refuse.clear()
    expect((await resumed(run_id)).state).toBe('failed')
    expect(got()).toEqual(['ada@example.org'])
    vendor.atEnd = null
    vendor.refuse.set('eve@example.org', { code: 554, text: '5.7.1 Blocked' })
    expect((await resumed(run_id)).state).toBe('failed')
    vendor.refuse.clear()
    expect((await resumed(run_id)).state).toBe('failed')
    expect(got()).toEqual(['ada@example.org', 'bob@example.org'])
    expect(receipt(run_id)).toMatchObject({ state: 'partial', data: { rejected: ['eve@example.org'], deferred: [] } })
  }, 60_000)

  test('whose rest is in doubt asks a person, and then goes to nobody who has it', async () => {
    later('bob@example.org', 1)
    const { run_id } = await t.run(team('email', two))
    vendor.hangUp = true
    await t.engine.resume(run_id)
    const review = await asked(run_id)
    expect(receipt(run_id)).toMatchObject({ state: 'unknown', data: { accepted: ['ada@example.org'] } })
    vendor.hangUp = false
    await t.engine.decide(review, { decision: 'retry', by: 'me' })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(got()).toEqual(['ada@example.org', 'bob@example.org'])
  })

  test('whose home was copied meanwhile asks a person, because the other home may have sent the rest', async () => {
    later('bob@example.org', 1)
    const { run_id } = await t.start(team('email', `${two}, retry: { attempts: 2, backoff: 700ms }`))
    for (let n = 0; n < 1_000 && receipt(run_id)?.state !== 'partial'; n++) await Bun.sleep(5)
    t.engine.store.copies.found(Date.now())
    t.engine.store.copies.release(run_id)
    const review = await asked(run_id)
    expect(got()).toEqual(['ada@example.org'])
    await t.engine.decide(review, { decision: 'retry', by: 'me' })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(got()).toEqual(['ada@example.org', 'bob@example.org'])
  })

  test('that nobody takes is sent to all again', async () => {
    later('ada@example.org')
    later('bob@example.org')
    const { run_id } = await t.run(team('email', two))
    expect(receipt(run_id)).toBeUndefined()
    vendor.refuse.clear()
    expect((await resumed(run_id)).state).toBe('completed')
    expect(got()).toEqual(['ada@example.org,bob@example.org'])
  }, 30_000)

  test('of a listener tells who has it, and is not sent again', async () => {
    later('bob@example.org')
    const { run_id } = await t.run(`
name: "@local/news"
version: 1.0.0
phases:
  - { name: begin, type: gate, commands: [{ name: c, run: "true" }] }
  - { name: tell, agent: email, notify: { on_complete: { channels: [ada, bob] } } }`)
    for (let n = 0; n < 1_000 && got().length === 0; n++) await Bun.sleep(5)
    await t.engine.stop()
    expect(whyOf(run_id)).toContain('sent to ada@example.org; refused for now: bob@example.org')
    expect(got()).toEqual(['ada@example.org'])
  })
})

describe('a chat message', () => {
  let vendor: ChatVendor
  beforeEach(async () => {
    vendor = chatVendor()
    const channels = Object.fromEntries(['ada', 'bob', 'eve'].map(name => [name, vendor.hook(name)]))
    t = await testEngine({ agents: { chat }, settings: { chat: { channels } } })
  })
  afterEach(() => vendor[Symbol.dispose]())

  const got = () => vendor.posts.map(({ path }) => path).toSorted()
  const refusal = (status: number, text: string) => () =>
    new Response(text, { status, headers: status === 429 ? { 'retry-after': '0' } : {} })
  const busy = (times: number) => Array.from({ length: times }, () => refusal(429, 'ratelimited'))

  test('that a channel refuses for now is sent to that channel alone', async () => {
    vendor.answer('bob', ...busy(4))
    const { run_id, state } = await t.run(team('chat', ', channels: [ada, bob]'))
    expect(state).toBe('failed')
    expect(receipt(run_id)).toMatchObject({
      state: 'partial',
      data: { channels: { ada: { status: 200 } }, deferred: ['bob'] },
    })
    expect((await resumed(run_id)).state).toBe('completed')
    expect(got()).toEqual(['ada', 'bob'])
    expect(phase(run_id).data).toEqual({ channels: { ada: { status: 200 }, bob: { status: 200 } } })
  }, 30_000)

  test('is not sent again to a channel that refused it for good, or has it', async () => {
    vendor.answer('bob', ...busy(4))
    vendor.answer('eve', refusal(403, 'action_prohibited'))
    const { run_id, state } = await t.run(team('chat', ', retry: { attempts: 3, backoff: 1ms }'))
    expect([state, phase(run_id).attempt]).toEqual(['failed', 2])
    for (let n = 0; n < 2; n++) {
      expect((await resumed(run_id)).state).toBe('failed')
      expect(phase(run_id).error).toMatchObject({ code: 'not_delivered', message: expect.stringContaining('eve: ') })
    }
    expect(got()).toEqual(['ada', 'bob'])
  }, 30_000)

  test('in doubt for one channel asks a person, whose `retry` sends it to nobody who has it', async () => {
    vendor.answer('bob', refusal(504, 'gateway time-out'))
    const { run_id } = await t.start(team('chat', ', channels: [ada, bob]'))
    const review = await asked(run_id)
    expect(receipt(run_id)).toMatchObject({ state: 'unknown', data: { channels: { ada: { status: 200 } } } })
    await t.engine.decide(review, { decision: 'retry', by: 'me' })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(got()).toEqual(['ada', 'bob'])
  })
})
