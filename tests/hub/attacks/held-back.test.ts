// Callers who hold back the body of a request, or read a reply slowly, and lose their rights meanwhile.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

/** Sends the head of a request and the first byte of its body; `finish` sends the rest and gives the status. */
async function held(token: string, path: string, body: object) {
  const text = JSON.stringify(body)
  const { hostname, port } = new URL(hub.url)
  const reply = Promise.withResolvers<number>()
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: (_, bytes) => reply.resolve(Number(bytes.toString().split(' ')[1])),
      close: () => reply.reject(new Error('the connection was closed')),
    },
  })
  const head = [
    `POST /v1/${path} HTTP/1.1`,
    `host: ${hostname}:${port}`,
    `authorization: Bearer ${token}`,
    'content-type: application/json',
    `content-length: ${text.length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${text[0]}`)
  // The hub has read what was sent, and more time has passed than a body needs.
  await Bun.sleep(200)
  return {
    async finish() {
      socket.write(text.slice(1))
      const status = await reply.promise
      socket.end()
      return status
    },
  }
}

const durable = (name: string) => hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name })
const mints = { type: 'user', name: 'minted later' }

test.each<[what: string, end: (id: number) => Promise<unknown>]>([
  ['rotated', id => hub.ok(hub.admin, 'auth/rotate_token', { id })],
  ['revoked', id => hub.ok(hub.admin, 'auth/revoke_token', { id })],
])('a token that is %s while its request waits neither writes nor reads', async (what, end) => {
  const { id, token } = await durable(`to be ${what}`)
  const [writing, reading] = [await held(token, 'auth/generate_token', mints), await held(token, 'orgs/list', {})]
  await end(id)
  expect([await writing.finish(), await reading.finish()]).toEqual([401, 401])
})

test('a token that expires while its request waits writes nothing', async () => {
  const { token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'short', expires_in_days: 1 })
  const writing = await held(token, 'auth/generate_token', mints)
  await hub.skew(2 * 86_400_000)
  expect(await writing.finish()).toBe(401)
  await hub.skew(0)
})

test('an operator who is removed while a daemon of theirs registers enrols none', async () => {
  const { token: session } = await hub.account('held')
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'held', role: 'operator' })
  const { token } = await hub.realmToken(session, hub.realm)
  const registering = await held(token, 'daemons/register', { name: 'held' })
  await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: 'held' })
  expect(await registering.finish()).toBe(403)
  expect((await hub.ok(hub.admin, 'daemons/list')).total).toBe(0)
})

test('a log that is read slowly ends when the token does', async () => {
  const { runs, logs, write } = hub.store
  const run_id = crypto.randomUUID()
  const place = { root_run_id: run_id, call_path: ['t'], call_depth: 0, tree_key: '', team: 't', inputs: {} }
  const times = { created_at: 1, started_at: 1 }
  const lines = Array.from({ length: 12_000 }, (_, n) => ({
    ...{ run_id, seq: n + 1, phase: 'p', at: n + 1, stream: 'log' },
    text: 'x'.repeat(2_000),
  }))
  await write(async tx => {
    const row = { run_id, realm_id: hub.realm, ...place, ...times, state: 'running' as const, attempt: 1 }
    await tx.insert(runs).values(row)
    for (let from = 0; from < lines.length; from += 1_000) await tx.insert(logs).values(lines.slice(from, from + 1_000))
  })
  const { id, token } = await durable('reads slowly')
  const reply = await fetch(`${hub.url}/v1/runs/log?run_id=${run_id}`, {
    headers: { authorization: `Bearer ${token}` },
  })
  const reader = reply.body!.getReader()
  let bytes = (await reader.read()).value!.length
  await hub.ok(hub.admin, 'auth/revoke_token', { id })
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) bytes += piece.value.length
  } catch {
    // The hub cuts the connection.
  }
  expect(bytes).toBeLessThan(20_000_000)
})
