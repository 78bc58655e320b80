// Files that are sent by the guarded fetch, streamed once they are large.

import { expect, test } from 'bun:test'
import { truncateSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import type { Effect } from '../../lib/agent/core/effect.ts'
import { guardedFetch } from '../../lib/agent/fetch.ts'
import type { FetchOptions } from '../../lib/agent/net/requests.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'

const MiB = 2 ** 20

function put(url: string, body: Blob, options: FetchOptions = {}, effect: Effect = 'idempotent'): Promise<Response> {
  const network = { allow: ['127.0.0.1'], literalOrigins: [] }
  const policy = { settings: {}, network, effect, signal: new AbortController().signal, log() {} }
  return guardedFetch(policy, { random: () => 0.02 })(url, { method: 'PUT', body, ...options })
}

function fileOf(bytes: number, name = 'large.json'): Bun.BunFile {
  const path = join(folder(), name)
  writeFileSync(path, Buffer.alloc(bytes, 'abcdefg'))
  return Bun.file(path)
}

const hashOf = (bytes: Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

function listen(answer: (request: Request, count: number) => Response | Promise<Response>) {
  let count = 0
  return Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: request => answer(request, ++count) })
}

test.each([0, 1, MiB - 1, MiB, 3 * MiB + 1])(
  'a file of %d bytes arrives whole, with its length and type',
  async bytes => {
    using server = listen(async request => {
      const { headers } = request
      const about = { length: headers.get('content-length'), coding: headers.get('transfer-encoding') }
      return Response.json({ ...about, type: headers.get('content-type'), hash: hashOf(await request.bytes()) })
    })
    const file = fileOf(bytes)
    const seen = await (await put(server.url.href, file)).json()
    expect(seen).toEqual({ length: `${bytes}`, coding: null, type: file.type, hash: hashOf(await file.bytes()) })
    const headers = { 'content-type': 'application/octet-stream' }
    expect(await (await put(server.url.href, file, { headers })).json()).toMatchObject({
      type: headers['content-type'],
    })
  },
)

test('is sent whole again after a bad day, and after a redirect', async () => {
  const file = fileOf(5 * MiB)
  using server = listen(async (request, count) => {
    if (count === 1) {
      await request.bytes()
      return new Response('', { status: 503, headers: { 'retry-after': '0' } })
    }
    if (count === 2) return new Response('', { status: 307, headers: { location: '/there' } })
    return new Response(`${new URL(request.url).pathname} ${hashOf(await request.bytes())}`)
  })
  const reply = await put(server.url.href, file, { follow: true })
  expect(await reply.text()).toBe(`/there ${hashOf(await file.bytes())}`)
})

test('a refusal that comes before all was sent is read', async () => {
  using server = rawListener(socket => socket.end('HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno'))
  const reply = await put(await server.url, fileOf(64 * MiB))
  expect([reply.status, await reply.text()]).toEqual([413, 'no'])
})

test('a line that is slow is none that is dead', async () => {
  const file = fileOf(24 * MiB)
  let taken = 0
  using server = rawListener((socket, bytes) => {
    taken += bytes
    // Some milliseconds for each of what it reads: longer in all than the fetch would wait in silence.
    socket.pause()
    if (taken > file.size) return void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
    setTimeout(() => socket.resume(), (4_000 * bytes) / file.size)
  })
  expect((await put(await server.url, file, { timeout: 2_000, attempts: 1 })).status).toBe(200)
}, 30_000)

test('one that takes nothing any more is given up', async () => {
  using server = rawListener(socket => void socket.pause())
  const error = await failureOf(put(await server.url, fileOf(64 * MiB), { timeout: 200, attempts: 1 }))
  expect(error).toMatchObject({ code: 'timeout', retryable: true, sent: 'unknown' })
})

test('a file that becomes shorter is refused', async () => {
  const file = fileOf(32 * MiB)
  using server = rawListener(() => truncateSync(file.name!, 4 * MiB))
  const sending = put(await server.url, file, { attempts: 1 })
  expect(await failureOf(sending)).toMatchObject({ code: 'conflict', retryable: false, sent: 'unknown' })
})

function rawListener(onData: (socket: Socket, bytes: number) => void) {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('data', chunk => onData(socket, chunk.length))
  })
  const url = new Promise<string>(resolve => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as { port: number }).port}/`))
  })
  return {
    url,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
