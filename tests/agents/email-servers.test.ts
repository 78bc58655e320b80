// Mail through servers that are not ours, under STARTTLS and with a password: smtp-server, and aiosmtpd where it is
// installed. In a process of its own: which certificates are trusted is read when a process starts.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agentProcess } from '../support/agent-process.ts'
import { certificate } from '../support/certificate.ts'
import { folder } from '../support/folder.ts'
import { aiosmtpd, hasAiosmtpd } from '../vendors/aiosmtpd.ts'
import { mailVendor, PASSWORD, type Received, USER } from '../vendors/mail.ts'

interface Server {
  port: number
  received: Received[]
  close(): Promise<void>
}

const at = folder()
const files = certificate(at)
const { cert, key } = files

const servers: [name: string, installed: boolean, open: (secure: boolean) => Promise<Server>][] = [
  [
    'smtp-server',
    true,
    async secure => {
      const tls = secure && { disabledCommands: [], cert: readFileSync(cert), key: readFileSync(key) }
      const server = await mailVendor({ authOptional: false, ...tls })
      server.refuse.set('nobody@example.org', { code: 550, text: 'No such user here' })
      return server
    },
  ],
  ['aiosmtpd', hasAiosmtpd, secure => aiosmtpd(secure ? files : null)],
]

for (const [name, installed, open] of servers) {
  describe.if(installed)(name, () => {
    let server: Server
    let plain: Server
    beforeAll(async () => {
      server = await open(true)
      plain = await open(false)
    })
    afterAll(async () => {
      await server?.close()
      await plain?.close()
    })

    const send = (entry: object, more: object = {}, trusted = true) =>
      agentProcess(
        {
          agent: 'email',
          handler: 'phase',
          effect: 'once',
          settings: {
            smtp_host: 'localhost',
            smtp_port: server.port,
            username: USER,
            password: PASSWORD,
            channels: { ops: 'ops@example.org', gone: 'nobody@example.org' },
            ...more,
          },
          entry: { channels: ['ops'], ...entry },
          at,
        },
        trusted ? { NODE_EXTRA_CA_CERTS: cert } : {},
      )

    test('takes text, HTML and an attachment', async () => {
      const bytes = crypto.getRandomValues(new Uint8Array(100_000))
      writeFileSync(join(at, 'numbers ü.bin'), bytes)
      const message = 'Grüße\n.\n..two dots\nFrom here'
      const before = server.received.length
      const { result } = await send({ subject: 'Täglich 🎉', message, files: ['numbers ü.bin'] })
      expect(result?.data).toMatchObject({ accepted: ['ops@example.org'], message_id: '<key@example.org>' })
      while (server.received.length === before) await Bun.sleep(5)
      const { mail, ...envelope } = server.received.at(-1)!
      expect(envelope).toEqual({ from: USER, to: ['ops@example.org'], user: USER, secure: true })
      expect(mail).toMatchObject({ subject: 'Täglich 🎉', messageId: '<key@example.org>' })
      expect(mail.text).toStartWith(`${message}\n\n-- \n`)
      expect(mail.html).toStartWith('<p>Grüße<br>\n.<br>\n..two dots<br>\nFrom here</p>')
      expect(mail.attachments.map(({ filename }) => filename)).toEqual(['numbers ü.bin'])
      expect(Buffer.from(mail.attachments[0]!.content as ArrayBuffer).equals(bytes)).toBe(true)
    })

    test('refuses a password', async () => {
      const { error } = await send({ message: 'm' }, { password: 'canary-wrong' })
      expect(error).toMatchObject({ code: 'unauthorized', sent: 'no', retryable: false })
      expect(error!.hint).toContain('agents.email.password')
      expect(JSON.stringify(error)).not.toContain('canary')
    })

    test.each([
      [['gone'], 'rejected'],
      [['ops', 'gone'], 'not_delivered'],
    ])('refuses a recipient among %j', async (channels, code) => {
      const { error } = await send({ channels, message: 'm' })
      expect(error).toMatchObject({ code, retryable: false })
      if (channels.length === 1) expect(error).toMatchObject({ sent: 'no' })
      else expect(error?.message).toContain('sent to ops@example.org; refused: nobody@example.org')
      expect(error?.message).toContain('No such user here')
    })

    test('whose certificate is not trusted, or is another host’s, gets nothing', async () => {
      const before = server.received.length
      for (const [more, trusted] of [
        [{}, false],
        [{ smtp_host: '127.0.0.1' }, true],
      ] as const) {
        const { error } = await send({ message: 'm' }, more, trusted)
        expect(error).toMatchObject({ code: 'tls', sent: 'no', retryable: false })
        expect(error!.hint).toContain('NODE_EXTRA_CA_CERTS')
      }
      expect(server.received).toHaveLength(before)
    })

    test('that offers no STARTTLS gets neither password nor mail, unless TLS is not wanted', async () => {
      const { error } = await send({ message: 'm' }, { smtp_port: plain.port })
      expect(error).toMatchObject({ code: 'tls', sent: 'no', retryable: false })
      expect(plain.received).toEqual([])
      const { result } = await send({ message: 'm' }, { smtp_port: plain.port, tls: false })
      expect(result?.data).toMatchObject({ accepted: ['ops@example.org'] })
      while (plain.received.length === 0) await Bun.sleep(5)
      expect(plain.received).toMatchObject([{ user: USER, secure: false }])
    })
  })
}
