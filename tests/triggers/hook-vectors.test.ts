// The signatures that the senders' own documents give as examples, and those of the library of Standard Webhooks.

import { expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { verify } from '../../lib/triggers/hook/verify.ts'
import { specOf } from './hook-senders.ts'

const FINE = { ok: true } as const

function judge(scheme: string, secret: string, headers: Record<string, string>, body: string, at = 0) {
  const request = { headers: new Headers(headers), body: Buffer.from(body), query: new URLSearchParams() }
  return verify(specOf({ scheme }), [secret], request, at)
}

test('GitHub', () => {
  // https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries#testing-the-webhook-payload-validation
  const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17'
  const secret = "It's a Secret to Everybody"
  expect(judge('github', secret, { 'X-Hub-Signature-256': signature }, 'Hello, World!')).toEqual(FINE)
  expect(judge('github', secret, { 'X-Hub-Signature': signature }, 'Hello, World!').ok).toBe(false)
  const sha1 = 'sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59'
  expect(judge('github', secret, { 'X-Hub-Signature': sha1 }, 'Hello, World!').ok).toBe(false)
  expect(judge('github', secret, { 'X-Hub-Signature-256': sha1 }, 'Hello, World!').ok).toBe(false)
})

test('Jira and Bitbucket', () => {
  // https://developer.atlassian.com/cloud/jira/platform/webhooks/#secure-admin-webhooks
  const headers = { 'X-Hub-Signature': 'sha256=a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9' }
  for (const scheme of ['jira', 'bitbucket']) {
    expect(judge(scheme, "It's a Secret to Everybody", headers, 'Hello World!')).toEqual(FINE)
    expect(judge(scheme, "It's a Secret to Everybody", headers, 'Hello, World!').ok).toBe(false)
  }
})

test('Slack', () => {
  // https://docs.slack.dev/authentication/verifying-requests-from-slack
  const body =
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
  const headers = {
    'X-Slack-Request-Timestamp': '1531420618',
    'X-Slack-Signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  }
  const secret = '8f742231b10e8888abcd99yyyzzz85a5'
  expect(judge('slack', secret, headers, body, 1_531_420_618_000)).toEqual(FINE)
  expect(judge('slack', secret, headers, body, 1_531_420_919_000)).toMatchObject({ ok: false, reason: 'timestamp' })
})

test('Standard Webhooks', () => {
  // https://github.com/standard-webhooks/standard-webhooks/blob/main/libraries/javascript/src/index.test.ts
  const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'
  const headers = {
    'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    'webhook-timestamp': '1614265330',
    'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  }
  expect(judge('standard', secret, headers, '{"test": 2432232314}', 1_614_265_330_000)).toEqual(FINE)
})

test('what the library of Standard Webhooks signs is taken', () => {
  for (const bytes of [24, 32, 33, 64]) {
    const secret = `whsec_${Buffer.alloc(bytes, bytes).toString('base64')}`
    const at = new Date('2026-11-23T05:00:00Z')
    const body = '{"type":"user.created","name":"Jörg 🚀"}'
    const signature = new Webhook(secret).sign('msg_1', at, body)
    const headers = {
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(at.getTime() / 1_000),
      'webhook-signature': signature,
    }
    expect(judge('standard', secret, headers, body, at.getTime())).toEqual(FINE)
    if (bytes === 32) expect(judge('gitlab', secret, headers, body, at.getTime())).toEqual(FINE)
  }
})
