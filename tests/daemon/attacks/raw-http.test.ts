// Attacks by bytes that no client sends, on the daemon. tests/hub/attacks/raw-http.test.ts has the same for the hub.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { RAW_REQUESTS, rawReplies } from '../../support/raw-http.ts'

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon()
})
afterAll(async () => {
  expect(daemon.output.stderr).not.toContain('request failed')
  await daemon.stop()
})

test.each(RAW_REQUESTS)('%s is one request or none', async (_, bytes, statuses) => {
  const replies = await rawReplies(daemon.url, bytes)
  expect(replies.filter(status => !statuses.includes(status))).toEqual([])
})

const list = (headers: string) =>
  `POST /v1/runs/list HTTP/1.1\r\nContent-Length: 0\r\nConnection: close\r\n${headers}\r\n\r\n`

test.each([
  ['a second Host', 'Host: 127.0.0.1\r\nHost: rebound.example', [400, 403]],
  ['a second Host that is loopback', 'Host: rebound.example\r\nHost: 127.0.0.1', [400, 403]],
  ['two Hosts in one', 'Host: 127.0.0.1, rebound.example', [400, 403, 404]],
  ['a Host with a name before it', 'Host: rebound.example@127.0.0.1', [400, 403, 404]],
  ['a Host with a path', 'Host: 127.0.0.1/rebound.example', [400, 403, 404]],
  ['a second Origin', 'Host: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\nOrigin: http://rebound.example', [400, 403]],
  ['a second, empty credential', 'Host: 127.0.0.1\r\nAuthorization: Bearer\r\nAuthorization: Bearer x', [400, 401]],
  ['an empty credential', 'Host: 127.0.0.1\r\nAuthorization:', [400, 401]],
])('%s does not count as a caller on this machine', async (_, headers, statuses) => {
  const [first, ...more] = await rawReplies(daemon.url, list(headers))
  expect(more).toEqual([])
  expect(statuses).toContain(first!)
})

test('a target that names another host is judged by the header Host', async () => {
  const bytes = (target: string, host: string) =>
    `POST ${target} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`
  expect(await rawReplies(daemon.url, bytes('http://127.0.0.1/v1/runs/list', 'rebound.example'))).toEqual([403])
})

test('HTTP/1.0 without a Host is no caller on this machine', async () => {
  expect(await rawReplies(daemon.url, 'POST /v1/runs/list HTTP/1.0\r\n\r\n')).toEqual([404])
})
