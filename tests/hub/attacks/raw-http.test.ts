// Attacks by bytes that no client sends, on the hub. tests/daemon/attacks/raw-http.test.ts has the same for the daemon.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { connect } from 'node:net'
import { startTestHub, type TestHub } from '../../support/hub.ts'
import { RAW_REQUESTS, rawReplies } from '../../support/raw-http.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(async () => {
  expect((await hub.log()).filter(line => line.includes('request failed'))).toEqual([])
  await hub.stop()
})

test.each(RAW_REQUESTS)('%s is one request or none', async (_, bytes, statuses) => {
  const replies = await rawReplies(hub.url, bytes)
  expect(replies.filter(status => !statuses.includes(status))).toEqual([])
})

test('five hundred connections that never finish their request hold up nobody', async () => {
  const port = Number(new URL(hub.url).port)
  const slow = Array.from({ length: 500 }, (_, n) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => {})
    const head = 'POST /v1/session/create HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n'
    socket.write(n % 2 === 0 ? head : `${head}Content-Length: 1000\r\n\r\n{`)
    return socket
  })
  try {
    for (let call = 0; call < 20; call++) {
      expect((await fetch(`${hub.url}/health`, { keepalive: false })).status).toBe(200)
    }
    expect((await hub.call(hub.admin, 'auth/whoami')).status).toBe(200)
  } finally {
    for (const socket of slow) socket.destroy()
  }
})
