// A form with a file, as it arrives at a server.

import { expect, test } from 'bun:test'
import { truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FileForm } from '../../lib/agent/core/file-form.ts'
import { testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'

const MiB = 2 ** 20
const hashOf = (bytes: Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

function fileOf(bytes: number): Bun.BunFile {
  const path = join(folder(), 'data.bin')
  writeFileSync(path, Buffer.alloc(bytes, 'ab\r\n\0'))
  return Bun.file(path)
}

/** Answers with what the form has, after `refusals` that it asks to repeat. */
function listen(refusals = 0) {
  let left = refusals
  return Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const length = request.headers.get('content-length')
      const form = await request.formData()
      if (left-- > 0) return new Response('', { status: 429, headers: { 'retry-after': '0' } })
      const file = form.get('file') as unknown as File
      const hash = hashOf(await file.bytes())
      return Response.json({ length, name: file.name, hash, comment: form.get('comment') })
    },
  })
}

const send = (url: URL, body: FileForm) => testContext({ effect: 'once' }).context.fetch(url, { method: 'POST', body })

test.each([0, 1, MiB, 3 * MiB + 1])('a file of %d bytes arrives whole, with the length of the form', async bytes => {
  using server = listen()
  const file = fileOf(bytes)
  const form = new FileForm('file', file, 'ü b.bin', { comment: 'ä\r\nsecond line' })
  expect(await (await send(server.url, form)).json()).toEqual({
    length: `${form.size}`,
    name: 'ü b.bin',
    hash: hashOf(await file.bytes()),
    comment: 'ä\r\nsecond line',
  })
})

test('is sent whole again after a rate limit', async () => {
  using server = listen(2)
  const file = fileOf(2 * MiB)
  const reply = await (await send(server.url, new FileForm('file', file, 'a.bin'))).json()
  expect(reply).toMatchObject({ hash: hashOf(await file.bytes()) })
})

test('a name cannot end its header', async () => {
  using server = listen()
  const reply = await (await send(server.url, new FileForm('file', fileOf(1), 'a"\r\nx: y.bin'))).json()
  expect(reply).toMatchObject({ name: 'a%22%0D%0Ax: y.bin' })
})

test('a file that became shorter meanwhile is not sent as if it were whole', async () => {
  using server = listen()
  const file = fileOf(2 * MiB)
  const form = new FileForm('file', file, 'a.bin')
  truncateSync(file.name!, MiB)
  expect((await failureOf(send(server.url, form))).message).toContain('changed its size')
})
