import { afterEach, beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { hostname } from 'node:os'
import { join } from 'node:path'
import email from '../../agents/email.ts'
import type { AgentResult, NotifyEvent } from '../../lib/agent/agent-context.ts'
import type { AgentError } from '../../lib/agent/core/agent-error.ts'
import { fakeVendor, refusal } from '../../lib/testing/fake-vendor.ts'
import { testAgent } from '../../lib/testing/testing.ts'
import { testContext } from '../support/context.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { rawServer } from '../support/faults.ts'
import { NIGHTLY } from '../support/nightly-run.ts'
import { truthful } from '../support/truthful.ts'
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

const OAUTH = {
  client_id: 'client',
  client_secret: 'canary-client-secret',
  refresh_token: 'canary-refresh-token',
  token_url: 'http://127.0.0.1:1/token',
}
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

const message = { message: 'hello', files: ['a.txt'] }
const files = { 'a.txt': 'attached' }

await testAgent({
  file: join(import.meta.dir, '../../agents/email.ts'),
  async vendor() {
    const server = await mailVendor()
    return {
      ...server,
      refuseAtEnd: (text: string) => (server.atEnd = { code: 554, text }),
      [Symbol.asyncDispose]: server.close,
    }
  },
  settings: ({ port }) => ({
    ...{ smtp_host: '127.0.0.1', smtp_port: port, tls: false, username: USER, password: PASSWORD },
    channels: { ops: 'ops@example.org' },
  }),
  examples: {
    phase: { entry: message, files },
    notify: {
      entry: message,
      files,
      event: {
        ...{ name: 'on_fail', team: '@local/digest', message: 'run 0190 failed', outputs: null },
        run: { id: '0190', name: null, state: 'failed', reason: null },
      },
    },
  },
  badDays: {
    network: ({ close }) => close(),
    rejected: ({ refuseAtEnd }) => refuseAtEnd('5.7.1 not wanted'),
  },
})

type Options = NonNullable<Parameters<typeof testContext>[0]>

function send(entry: object, more: object = {}, options: Options = {}): Promise<AgentResult> {
  const t = testContext({ agent: 'email', settings: settings(more), effect: 'once', secrets: [PASSWORD], ...options })
  return truthful(email).phase!.run(entry, t.context)
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
    const run = NIGHTLY
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

  test('a credential does not leave this machine without TLS', async () => {
    for (const more of [{}, { password: undefined, oauth: OAUTH }]) {
      const failure = await failureOf(send({}, { smtp_host: '93.184.216.34', ...more }))
      expect(failure).toMatchObject({ code: 'refused', sent: 'no', retryable: false })
      expect(failure.message).toContain('must not be sent to 93.184.216.34 without TLS')
      expect(failure.hint).toContain('agents.email.tls')
    }
  })

  test.each([
    ['smtp://127.0.0.1:PORT', undefined],
    ['127.0.0.1:PORT', undefined],
    ['127.0.0.1:PORT/', undefined],
    ['127.0.0.1', 'PORT'],
  ])('smtp_host %s is understood', async (smtp_host, smtp_port) => {
    const port = smtp_port && vendor.port
    await send({}, { smtp_host: smtp_host.replace('PORT', `${vendor.port}`), smtp_port: port })
    expect(vendor.received).toHaveLength(1)
  })

  test.each([
    [
      { smtp_host: 'robot@acme.test' },
      { smtp_host: 'must be the name of the mail server alone: write it as smtp.acme.com' },
    ],
    [
      { smtp_host: 'smtp.acme.test:25', smtp_port: 587 },
      { smtp_host: 'must not have the port 25, because smtp_port is 587: write smtp.acme.test' },
    ],
    [
      { smtp_host: 'imap.acme.test:993' },
      { smtp_host: 'must not have the port 993, on which mail is read: write imap.acme.test:587' },
    ],
    [{ smtp_port: 993 }, { smtp_port: 'must not be 993, on which mail is read: write 587' }],
    [
      { smtp_port: 465, tls: false },
      { tls: 'must be true, because port 465 uses TLS from the first byte: write true' },
    ],
    [
      { smtp_host: 'smtps://mail.acme.test', tls: false },
      { tls: 'must be true, because smtp_host begins with smtps://: write true' },
    ],
    [{ from_address: 'robot' }, { from_address: 'must be an e-mail address: write it as cadre@acme.com' }],
    [
      { from_address: 'Robot <robot@acme.test>' },
      { from_address: 'must be the address alone: write robot@acme.test, and the name as from_name' },
    ],
    [{ smtp_host: 'smtp.acme.test:25', smtp_port: 25, tls: true, from_address: 'robot@acme.test' }, {}],
    [{ smtp_host: '[::1]:2525', tls: false }, {}],
  ])('%j is judged, with what to write', (given, problems) => {
    const found = Object.entries(email.check!(given)).filter(([, words]) => words)
    expect(Object.fromEntries(found)).toEqual(problems)
  })

  test('TLS from the first byte where the server begins in plain text', async () => {
    const smtp_host = `smtps://127.0.0.1:${vendor.port}`
    const failure = await failureOf(send({}, { smtp_host, smtp_port: undefined, tls: true }))
    expect(failure).toMatchObject({ code: 'tls', sent: 'no' })
    expect(failure.hint).toContain('with STARTTLS the port is usually 587')
  })

  test('the connection goes to the address that was judged, and never to a metadata service', async () => {
    const asked: string[] = []
    const lookup = async (host: string) => {
      asked.push(host)
      return [asked.length === 1 ? '127.0.0.1' : '169.254.169.254']
    }
    await send({}, { smtp_host: 'mail.acme.test' }, { lookup })
    expect([asked, vendor.received.length]).toEqual([['mail.acme.test'], 1])
    expect(await failureOf(send({}, { smtp_host: 'mail.acme.test' }, { lookup }))).toMatchObject({ code: 'refused' })
    const both = async () => ['127.0.0.2', '127.0.0.1']
    await send({}, { smtp_host: 'mail.acme.test' }, { lookup: both })
    expect(vendor.received).toHaveLength(2)
  })
})

describe('XOAUTH2', () => {
  /** A token endpoint and a mail server that takes its last token only. */
  async function provider() {
    let tokens = 0
    const endpoint = fakeVendor({
      'POST /token': ({ body }) => {
        const { client_id, client_secret, refresh_token, grant_type } = Object.fromEntries(
          new URLSearchParams(`${body}`),
        )
        const account = { client_id, client_secret, refresh_token }
        const { token_url: _, ...expected } = OAUTH
        if (grant_type !== 'refresh_token' || JSON.stringify(account) !== JSON.stringify(expected)) {
          return refusal(400, { error: 'invalid_grant', error_description: 'Token has been revoked' })
        }
        return { access_token: `canary-access-${++tokens}`, expires_in: 3_600, token_type: 'Bearer' }
      },
    })
    let valid = ''
    const seen: string[] = []
    const mail = await mailVendor({
      authOptional: false,
      authMethods: ['XOAUTH2'],
      onAuth({ username = '', accessToken = '' }, _, done) {
        seen.push(`${username} ${accessToken}`)
        if (accessToken === valid || (valid === '' && accessToken)) return done(null, { user: username })
        done(null, { message: 'Username and Password not accepted', data: { status: '401' } })
      },
    })
    return {
      ...{ endpoint, mail, seen },
      valid: (token: string) => {
        valid = token
      },
      settings: (more: object = {}) => ({
        ...{ smtp_port: mail.port, password: undefined },
        oauth: { ...OAUTH, token_url: `${endpoint.url}/token`, ...more },
      }),
      async [Symbol.asyncDispose]() {
        endpoint[Symbol.dispose]()
        await mail.close()
      },
    }
  }

  test('signs in with an access token, which is kept, and renewed when it is refused', async () => {
    await using at = await provider()
    await send({}, at.settings())
    await send({}, at.settings())
    expect(at.endpoint.seen).toHaveLength(1)
    at.valid('canary-access-2')
    await send({}, at.settings())
    expect(at.endpoint.seen).toHaveLength(2)
    expect(at.seen.at(-1)).toBe(`${USER} canary-access-2`)
    expect(at.mail.received.map(({ user }) => user)).toEqual([USER, USER, USER])
  })

  test('whose new token is refused too says what the server said, and shows no token', async () => {
    await using at = await provider()
    at.valid('none')
    const failure = await failureOf(send({}, at.settings()))
    expect(failure).toMatchObject({ code: 'unauthorized', sent: 'no', retryable: false })
    expect(failure.message).toContain('535 Error: Username and Password not accepted')
    expect(failure.hint).toContain('agents.email.oauth.refresh_token')
    expect(at.endpoint.seen).toHaveLength(2)
    expect(`${failure.message} ${failure.hint}`).not.toContain('canary')
  })

  test('whose refresh token was revoked names the settings', async () => {
    await using at = await provider()
    const failure = await failureOf(send({}, at.settings({ refresh_token: 'canary-other' })))
    expect(failure).toMatchObject({ code: 'unauthorized', sent: 'no' })
    expect(failure.message).toContain('Token has been revoked')
    expect(failure.hint).toContain('agents.email.oauth.refresh_token')
    expect([at.seen, at.mail.received]).toEqual([[], []])
  })

  test('needs the account', () => {
    expect(email.missing!({ oauth: OAUTH } as never)).toEqual(['username'])
    expect(email.missing!({ oauth: OAUTH, username: USER } as never)).toEqual([])
  })
})

describe('bad days', () => {
  test('the server is quoted when it refuses the credentials, the sender, a recipient or the message', async () => {
    expect((await failureOf(send({}, { password: 'wrong' }))).message).toContain(
      '535 Authentication credentials invalid',
    )
    vendor.atEnd = { code: 554, text: '5.7.1 Looks like spam' }
    expect((await failureOf(send({}))).message).toContain('554 5.7.1 Looks like spam')
    const strict = await mailVendor({
      onMailFrom: (_, __, done) => done(Object.assign(new Error('5.7.1 Not your address'), { responseCode: 553 })),
    })
    const failure = await failureOf(send({}, { smtp_port: strict.port }))
    expect(failure).toMatchObject({ code: 'rejected', sent: 'no', retryable: false })
    expect(failure.message).toContain('553 5.7.1 Not your address')
    await strict.close()
  })

  test('a server that demands TLS says so, and the setting is named', async () => {
    const strict = await mailVendor({
      onMailFrom: (_, __, done) =>
        done(Object.assign(new Error('Must issue a STARTTLS command first'), { responseCode: 530 })),
    })
    const failure = await failureOf(send({}, { smtp_port: strict.port }))
    expect(failure).toMatchObject({ code: 'rejected', hint: 'set agents.email.tls to true' })
    expect(failure.message).toContain('530 Must issue a STARTTLS command first')
    await strict.close()
  })

  test('a refused recipient beside an accepted one is told', async () => {
    vendor.refuse.set('dev@example.org', { code: 550, text: 'No such user here' })
    const failure = await failureOf(send({ message: 'm' }))
    expect(failure).toMatchObject({ code: 'not_delivered', retryable: false })
    expect(failure.partial!.data).toMatchObject({ accepted: ['ops@example.org'], rejected: ['dev@example.org'] })
    expect(failure.message).toContain('refused: dev@example.org (550 No such user here)')
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
