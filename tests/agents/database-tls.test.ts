// The database agent and TLS, with servers of the test's own: a certificate is verified with the name of the host, and
// nothing is sent without TLS to another machine.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import database from '../../agents/database.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import { testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { isInstalled, KINDS, type OwnServer, PASSWORD, serversOf, USER } from '../vendors/tls-databases.ts'

const query = database.actions!.query!

for (const kind of KINDS) {
  const { provider } = kind
  describe.if(isInstalled(kind))(provider, () => {
    let secure: OwnServer
    let plain: OwnServer
    beforeAll(async () => {
      const open = serversOf(kind)
      secure = await open(true)
      plain = await open(false)
    }, 120_000)
    afterAll(async () => {
      await secure?.stop()
      await plain?.stop()
    })

    /** Whether the server says that the connection is encrypted. */
    const encrypted = async (settings: object, network?: object) => {
      const sql =
        provider === 'postgres'
          ? 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()'
          : "SELECT VARIABLE_VALUE <> '' AS `ssl` FROM information_schema.SESSION_STATUS WHERE VARIABLE_NAME = 'Ssl_cipher'"
      const account = { provider, user: USER, password: PASSWORD, database: 'postgres', port: secure.port }
      const { context } = testContext({
        agent: 'database',
        settings: { ...account, host: 'localhost', ...settings },
        network: { allow: [], literalOrigins: [], ...network },
      })
      const { data } = await query.run({ name: 'rows.json', sql }, context as AgentContext<never>)
      return Boolean((data as { items: { ssl: unknown }[] }).items[0]!.ssl)
    }
    const failure = (settings: object) => failureOf(encrypted(settings))

    test('a certificate that the authority has signed for the host is accepted', async () => {
      expect(await encrypted({ tls: true, ca_file: secure.ca })).toBe(true)
    })

    test('to this machine, the connection may be plain, and is by default', async () => {
      expect(await encrypted({})).toBe(false)
      expect(await encrypted({ port: plain.port, tls: false })).toBe(false)
    })

    test.each<[string, () => object, RegExp]>([
      ['of an unknown authority', () => ({}), /unable to verify|self.signed/],
      ['of another authority', () => ({ ca_file: plain.ca }), /unable to verify|self.signed/],
      ['of another host', () => ({ ca_file: secure.ca, host: '127.0.0.1' }), /does not match/],
    ])('a certificate %s is refused, with what to write', async (_, settings, said) => {
      const error = await failure({ tls: true, ...settings() })
      expect(error).toMatchObject({ code: 'tls', sent: 'no', retryable: false })
      expect(error.message).toMatch(said)
      expect(error.hint).toContain('agents.database.ca_file')
    })

    test('a server without TLS gets no account, and the error says that it has none', async () => {
      const error = await failure({ tls: true, ca_file: secure.ca, port: plain.port })
      expect(error).toMatchObject({ code: 'tls', sent: 'no', retryable: false })
      expect(error.message).toMatch(/does not (offer|support) (TLS|SSL)/)
    })

    test('a wrong password is not taken for a fault of TLS', async () => {
      const error = await failure({ tls: true, ca_file: secure.ca, password: 'another' })
      expect(error).toMatchObject({ code: 'unauthorized', hint: expect.stringContaining('agents.database.password') })
    })

    test('what is sent before TLS has begun contains neither user nor password', async () => {
      const sent: Buffer[] = []
      const sockets = new Set<Socket>()
      // It greets as the server does, and denies TLS.
      const server = createServer(socket => {
        sockets.add(socket)
        socket.on('error', () => {})
        socket.on('data', data => {
          sent.push(Buffer.from(data))
          socket.end('N')
        })
        if (provider === 'mysql') socket.write(GREETING)
      })
      await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
      const { port } = server.address() as { port: number }
      expect((await failure({ tls: true, ca_file: secure.ca, port })).sent).toBe('no')
      for (const socket of sockets) socket.destroy()
      server.close()
      expect(Buffer.concat(sent).toString('latin1')).not.toContain(USER)
    })

    test('without TLS nothing is sent to another machine', async () => {
      const host = '192.0.2.1'
      const error = await failureOf(encrypted({ host, tls: false }, { allow: [host] }))
      expect(error).toMatchObject({ code: 'refused', sent: 'no', retryable: false })
      expect(error.message).toContain(`192.0.2.1:${secure.port}/postgres`)
      expect(error.hint).toContain('agents.database.tls')
    })
  })
}

/** A handshake packet of MariaDB that does not offer TLS. */
const GREETING = (() => {
  const payload = Buffer.concat([
    ...[Buffer.from([10]), Buffer.from('10.11.0-MariaDB\0'), Buffer.from([1, 0, 0, 0]), Buffer.from('12345678\0')],
    ...[Buffer.from([0xff, 0xf7, 8, 2, 0, 0xff, 0x81, 21]), Buffer.alloc(10), Buffer.from('123456789012\0')],
    Buffer.from('mysql_native_password\0'),
  ])
  return Buffer.concat([Buffer.from([payload.length, 0, 0, 0]), payload])
})()

test.each([
  [
    { host: 'db.acme.test', tls: false },
    'tls',
    'must not be false, because db.acme.test is another machine: remove it',
  ],
  [{ url: 'postgres://db.acme.test/x?sslmode=disable' }, 'url', 'must not have sslmode=disable, because db.acme.test'],
])('%j is refused, with what to write', (given, key, words) => {
  const found = Object.entries(database.check!(given)).filter(([, problem]) => problem)
  expect(found).toEqual([[key, expect.stringContaining(words)]])
})

test.each([
  { host: 'localhost', tls: false },
  { host: '127.0.0.1', tls: false },
  { tls: false },
  { url: 'mysql://[::1]/x?sslmode=disable' },
  { provider: 'sqlite', database: join(folder(), 'x.db'), tls: false },
])('%j is in order', given => {
  expect(Object.values(database.check!(given)).filter(Boolean)).toEqual([])
})
