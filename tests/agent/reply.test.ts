// What an error quotes of a reply, and what is refused before a request is made.

import { afterAll, expect, test } from 'bun:test'
import { replyError } from '../../lib/agent/net/reply-error.ts'
import { createRedactor } from '../../lib/secrets/redact.ts'
import { testContext } from '../support/context.ts'

const SECRET = 'tok-3f9a7c51e0d24b68'
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: request => new Response(decodeURIComponent(new URL(request.url).search.slice(1)), { status: 400 }),
})
afterAll(() => server.stop(true))

async function messageFor(body: string): Promise<string> {
  const { context } = testContext({ secrets: [SECRET] })
  const reply = await context.fetch(`${server.url}?${encodeURIComponent(body)}`)
  return createRedactor([SECRET]).text((await replyError(reply, 'post')).message)
}

test('no part of a secret that the reply repeats is left at the cut', async () => {
  for (let before = 270; before <= 301; before++) {
    const message = await messageFor(`${'x '.repeat(200).slice(0, before - 1)} ${SECRET} refused`)
    expect(message).not.toContain('tok-')
    const json = JSON.stringify({ why: 'x '.repeat(200).slice(0, before - 9), token: SECRET, and: 'more' })
    expect(await messageFor(json)).not.toContain('tok-')
  }
})

test('a short reply is quoted whole, a long one up to a word', async () => {
  expect(await messageFor('the title is taken')).toBe('post: HTTP 400: the title is taken')
  expect(await messageFor('word '.repeat(100))).toBe(`post: HTTP 400: ${'word '.repeat(60)}…`)
})

test('a header of several lines is refused by name, not by value, and nothing was sent', async () => {
  const { context } = testContext()
  const sent = context.fetch(server.url, { method: 'POST', headers: { 'x-api-key': `${SECRET}\nmore` } })
  const error = await sent.then(
    () => null,
    thrown => thrown,
  )
  expect(error).toMatchObject({ code: 'invalid_request', sent: 'no', message: expect.stringContaining('x-api-key') })
  expect(Bun.inspect(error)).not.toContain(SECRET)
})
