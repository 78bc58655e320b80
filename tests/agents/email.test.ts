import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { hostname } from 'node:os'
import { join } from 'node:path'
import email from '../../agents/email.ts'
import type { AgentError, AgentResult, NotifyEvent } from '../../lib/agent/define.ts'

import { testContext } from '../support/context.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { rawServer } from '../support/faults.ts'
import { type MailVendor, mailVendor, PASSWORD, USER } from '../vendors/mail.ts'

let vendor: MailVendor
beforeEach(async () => {
  // Chance is how long a try waits for the next: not long here.
  spyOn(Math, 'random').mockReturnValue(0.02)
  vendor = await mailVendor()
})
afterEach(async () => {
  spyOn(Math, 'random').mockRestore()
  await vendor.close()
})

const channels = { ops: 'ops@example.org', dev: 'Developers <dev@example.org>' }
const settings = (more: object = {}) => ({
  smtp_host: '127.0.0.1',
  smtp_port: vendor.port,
  tls: false,
  username: USER,
  password: PASSWORD,
  channels,
  ...more,
})

type Options = NonNullable<Parameters<typeof testContext>[0]>

function send(entry: object, more: object = {}, options: Options = {}): Promise<AgentResult> {
  const t = testContext({ agent: 'email', settings: settings(more), effect: 'once', secrets: [PASSWORD], ...options })
  return email.phase!.run(entry, t.context)
}

const failureOf = (sending: Promise<unknown>): Promise<AgentError> =>
  sending.then(
    () => expect.unreachable(),
    error => error,
  )

describe('a mail', () => {
  test('goes to every channel, or to those that are named, as text and HTML', async () => {
    const result = await send(
      { message: 'Two <b>lines\nand\n\na paragraph', subject: 'Digest' },
      { from_name: 'Cadre, Bot' },
    )
    const message_id = '<00000000-0000-8000-a000-000000000000@example.org>'
    expect(result).toMatchObject({
      text: 'sent to ops@example.org, dev@example.org',
      data: { message_id, accepted: ['ops@example.org', 'dev@example.org'] },
      external: { id: message_id },
    })
    const [{ mail, to, user, from }] = vendor.received as [MailVendor['received'][number]]
    expect({ to, user, from }).toEqual({ to: ['ops@example.org', 'dev@example.org'], user: USER, from: USER })
    expect(mail).toMatchObject({
      subject: 'Digest',
      messageId: message_id,
      from: { name: 'Cadre, Bot', address: USER },
    })
    expect(mail.text).toStartWith('Two <b>lines\nand\n\na paragraph\n\n-- \n@local/team · run 0190')
    expect(mail.html).toStartWith('<p>Two &lt;b&gt;lines<br>\nand</p>\n<p>a paragraph</p>')
    await send({ message: 'again', channels: ['dev'] })
    expect(vendor.received[1]!.to).toEqual(['dev@example.org'])
  })

  test('without words names team, run and phase, with a link to the run', async () => {
    const run = { id: '0190', name: 'Nightly', team: '@local/digest', url: 'http://127.0.0.1:7401/#/runs/0190' }
    await send({ channels: ['ops'] }, { from_address: 'cadre@example.net' }, { run })
    const { mail, from } = vendor.received[0]!
    expect(from).toBe('cadre@example.net')
    expect(mail.subject).toBe('@local/digest: run Nightly (0190) is running, phase phase')
    expect(mail.text).toContain('run Nightly (0190)\nhttp://127.0.0.1:7401/#/runs/0190')
    expect(mail.html).toContain('<a href="http://127.0.0.1:7401/#/runs/0190">')
  })

  test('of an event is its sentence, with its own words where they stand', async () => {
    const event: NotifyEvent = {
      name: 'on_fail',
      team: '@local/digest',
      run: { id: '0190', name: null, state: 'failed', reason: null },
      message: '@local/digest: run 0190 failed: phase fetch: HTTP 500',
      outputs: null,
    }
    const { context } = testContext({ agent: 'email', settings: settings(), effect: 'once', event })
    await email.notify!.run({ channels: ['ops'] }, context)
    await email.notify!.run({ channels: ['ops'], message: 'Own words' }, context)
    expect(vendor.received.map(({ mail }) => mail.subject)).toEqual([event.message, event.message])
    expect(vendor.received.map(({ mail }) => mail.text?.split('\n')[0])).toEqual([event.message, 'Own words'])
  })

  test('attaches files, streamed, under their names', async () => {
    const t = testContext({ agent: 'email', settings: settings(), effect: 'once' })
    const bytes = crypto.getRandomValues(new Uint8Array(60_000))
    await t.context.write('täglich/report.bin', bytes)
    await Bun.write(join(t.workspace, 'notes 🎉.txt'), 'hello')
    await email.phase!.run({ message: 'm', files: ['files/phase/täglich/report.bin', 'notes 🎉.txt'] }, t.context)
    const { attachments } = vendor.received[0]!.mail
    expect(attachments.map(({ filename }) => filename)).toEqual(['report.bin', 'notes 🎉.txt'])
    expect(Buffer.from(attachments[0]!.content as ArrayBuffer).equals(bytes)).toBe(true)
  })

  test('with a missing file or an unknown channel is not begun', async () => {
    expect(await failureOf(send({ files: ['files/other/none'] }))).toMatchObject({ code: 'not_found', sent: 'no' })
    expect(await failureOf(send({ files: ['/etc/passwd'] }))).toMatchObject({ code: 'outside', sent: 'no' })
    expect(await failureOf(send({ channels: ['prod'] }))).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(vendor.received).toEqual([])
  })

  test('smuggles in no header and no command', async () => {
    await send({
      subject: 'a\r\nBcc: evil@example.org\r\n\r\nbody',
      message: 'x\r\n.\r\nMAIL FROM:<evil@example.org>\r\n',
    })
    const [{ mail, to }] = vendor.received as [MailVendor['received'][number]]
    expect(vendor.received).toHaveLength(1)
    expect(to).toEqual(['ops@example.org', 'dev@example.org'])
    expect(mail.subject).toBe('a Bcc: evil@example.org body')
    expect(mail.headers.map(({ key }) => key)).not.toContain('bcc')
    expect(mail.text).toContain('MAIL FROM:<evil@example.org>')
  })
})

describe('settings', () => {
  test('what is missing depends on what is set', () => {
    const missing = (given: object) => email.missing!(given as never)
    expect(missing({})).toEqual([])
    expect(missing({ username: USER })).toEqual(['password'])
    expect(missing({ username: 'apikey', password: 'x' })).toEqual([])
    expect(missing({ from_address: 'a@b' })).toEqual([])
  })

  test('without a from_address the mail is from the username, if that is an address, else from this machine', async () => {
    await send({})
    await send({}, { username: undefined, password: undefined })
    expect(vendor.received.map(({ from }) => from)).toEqual([USER, `cadre@${hostname()}`])
    expect(vendor.received[1]!.mail.messageId).toEndWith(`@${hostname()}>`)
  })

  test('a password does not leave this machine without TLS, unless that is allowed', async () => {
    const failure = await failureOf(send({}, { smtp_host: 'mail.invalid' }))
    expect(failure).toMatchObject({ code: 'refused', sent: 'no', retryable: false })
  })
})

describe('bad days', () => {
  test('a refused recipient beside an accepted one is told', async () => {
    vendor.refuse.set('dev@example.org', { code: 550, text: 'No such user here' })
    const result = await send({ message: 'm' })
    expect(result.data).toMatchObject({ accepted: ['ops@example.org'], rejected: ['dev@example.org'] })
    expect(result.text).toContain('refused: dev@example.org (550 No such user here)')
  })

  test.each([
    [550, false],
    [450, true],
  ])('a refusal of all recipients with %d is definite', async (code, retryable) => {
    vendor.refuse.set('ops@example.org', { code, text: 'Not now' })
    const failure = await failureOf(send({ channels: ['ops'] }))
    expect(failure).toMatchObject({ code: 'rejected', sent: 'no', retryable })
    expect(failure.message).toContain('Not now')
  })

  test('a refusal at the end of DATA is definite too', async () => {
    vendor.atEnd = { code: 554, text: 'Looks like spam' }
    expect(await failureOf(send({}))).toMatchObject({ code: 'rejected', sent: 'no', retryable: false })
  })

  test('a greylisted mail is tried again', async () => {
    vendor.refuse.set('ops@example.org', { code: 451, text: 'Greylisted', times: 2 })
    expect((await send({ channels: ['ops'] })).data).toMatchObject({ accepted: ['ops@example.org'] })
    expect(vendor.received).toHaveLength(1)
  })

  test('wrong credentials: the settings are named, the password is not', async () => {
    const failure = await failureOf(send({}, { password: 'canary-wrong' }))
    expect(failure).toMatchObject({ code: 'unauthorized', sent: 'no', retryable: false })
    expect(failure.hint).toContain('agents.email.password')
    expect(failure.message + failure.hint).not.toContain('canary')
  })

  test('a server without STARTTLS gets neither password nor mail when TLS is required', async () => {
    const seen: string[] = []
    const plain = await mailVendor({
      onAuth({ username = '' }, _, done) {
        seen.push(username)
        done(null, { user: username })
      },
    })
    const failure = await failureOf(send({}, { tls: true, smtp_port: plain.port }))
    expect(failure).toMatchObject({ code: 'tls', sent: 'no', retryable: false })
    expect([seen, plain.received]).toEqual([[], []])
    await plain.close()
  })

  test('no server: retryable, nothing was sent', async () => {
    expect(await failureOf(send({}, { smtp_port: 1 }))).toMatchObject({ code: 'network', sent: 'no', retryable: true })
  })

  test.each([
    ['before', 'no'],
    ['after', 'unknown'],
  ] as const)('a connection that breaks %s the end of DATA: sent is %s', async (when, sent) => {
    using server = await smtpThatBreaks(when)
    const failure = await failureOf(send({}, { smtp_port: server.port, username: undefined, from_address: USER }))
    expect(failure).toMatchObject({ sent, retryable: sent === 'no' })
  })

  test('a run that is stopped lets go of a silent server', async () => {
    const stop = new AbortController()
    using server = await rawServer(() => {})
    const sending = send({}, { smtp_port: Number(new URL(server.url).port) }, { signal: stop.signal })
    await Bun.sleep(20)
    stop.abort()
    expect(await failureOf(sending)).toMatchObject({ code: 'aborted', sent: 'no' })
  })
})

/** Speaks just enough SMTP to break off: before DATA is answered, or once the last dot has come. */
async function smtpThatBreaks(when: 'before' | 'after') {
  const { createServer } = await import('node:net')
  const server = createServer(socket => {
    let data = false
    socket.on('error', () => {})
    socket.write('220 ready\r\n')
    socket.on('data', chunk => {
      const text = String(chunk)
      if (data) return void (text.endsWith('\r\n.\r\n') && socket.destroy())
      if (text.startsWith('DATA')) {
        if (when === 'before') return void socket.destroy()
        data = true
        return void socket.write('354 go on\r\n')
      }
      socket.write('250 fine\r\n')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return { port: (server.address() as { port: number }).port, [Symbol.dispose]: () => void server.close() }
}

describe('in a run', () => {
  let t: TestEngine
  const start = async (more: object = {}) => {
    t = await testEngine({ agents: { email }, settings: { email: settings(more) } })
  }
  afterEach(() => t.close())

  test('an ordinary phase and a listener send', async () => {
    await start()
    const run = await t.run(`
name: "@local/told"
version: 1.0.0
phases:
  - { name: make, agent: exec, commands: [{ name: c, run: "echo one > $CADRE_OUT/one.txt" }] }
  - { name: tell, agent: email, depends_on: [make], channels: [dev], subject: "S {{ phases.make.state }}", files: [files/make/one.txt] }
  - { name: end, agent: email, notify: { on_complete: { channels: [ops], message: "id {{ phases.tell.data.message_id }}" } } }
`)
    expect(run.state).toBe('completed')
    const [first, second] = vendor.received
    expect(first!.mail).toMatchObject({ subject: 'S completed', attachments: [{ filename: 'one.txt' }] })
    expect(second!.mail.text).toContain(`id ${first!.mail.messageId}`)
  })

  test('what may have arrived asks a person and is not sent again', async () => {
    using server = await smtpThatBreaks('after')
    await start({ smtp_port: server.port, username: undefined, from_address: USER })
    const { run_id } = await t.start(`
name: "@local/told"
version: 1.0.0
phases:
  - { name: tell, agent: email, depends_on: [], message: m, retry: { attempts: 3, backoff: 1ms } }
`)
    while (t.engine.record(run_id).state !== 'awaiting_input') await Bun.sleep(5)
    const [review] = t.engine.store.reviews.list({ state: 'pending', limit: 10, offset: 0 }).rows
    expect(t.engine.store.receipts.of(run_id, 0)).toMatchObject([{ state: 'unknown' }])
    await t.engine.decide(review!.id, { decision: 'skip', by: 'me' })
    expect((await t.engine.ended(run_id)).state).toBe('completed')
  })
})
