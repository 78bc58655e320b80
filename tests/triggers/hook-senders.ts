// Senders of every scheme, as their documents say how they sign, with none of the code under test.

import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import { occasionRule } from '../../lib/team/team.ts'
import { checkHook, type HookSpec } from '../../lib/triggers/hook/spec.ts'
import { type Verdict, verify } from '../../lib/triggers/hook/verify.ts'

/** 2026-11-23T05:00:00Z, in milliseconds. */
export const NOW = 1_795_410_000_000

export interface Sender {
  name: string
  fields: Record<string, unknown>
  secret: string
  /** Another one of the same form. */
  other: string
  /** The headers that carry the signature and what is signed, beside the body. */
  signed: string[]
  /** The header of the time, and that time as the sender writes it. */
  time?: { header: string; text(ms: number): string }
  /** What of the body is covered: all of it, or this text. */
  covers: 'body' | 'nothing' | { text: string }
  body: string
  /** The headers for a body, made at a time that is given as the sender writes it. */
  headers(body: Uint8Array, secret: string, time: string): Record<string, string>
}

const hmac = (algorithm: string, key: string | Uint8Array, ...parts: (string | Uint8Array)[]) => {
  const made = createHmac(algorithm, key)
  for (const part of parts) made.update(part)
  return made
}
const hex = (key: string | Uint8Array, ...parts: (string | Uint8Array)[]) => hmac('sha256', key, ...parts).digest('hex')
const base64 = (key: string | Uint8Array, ...parts: (string | Uint8Array)[]) =>
  hmac('sha256', key, ...parts).digest('base64')

const seconds = (ms: number) => String(Math.floor(ms / 1_000))
const iso = (ms: number) => new Date(ms).toISOString().replace('.000Z', 'Z')
const JSON_BODY = '{"id":"evt_1","type":"made","action":"opened","n":[1,2]}'

const whsec = (fill: number, bytes = 32) => `whsec_${Buffer.alloc(bytes, fill).toString('base64')}`
const ofWhsec = (secret: string) => Buffer.from(secret.slice('whsec_'.length), 'base64')
const ID = 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'

const standard = (body: Uint8Array, secret: string, time: string) => ({
  'webhook-id': ID,
  'webhook-timestamp': time,
  'webhook-signature': `v1,${base64(ofWhsec(secret), `${ID}.${time}.`, body)}`,
})

export const [KEYS, OTHER_KEYS] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')]
const whpk = (keys: typeof KEYS) => {
  const { x } = keys.publicKey.export({ format: 'jwk' })
  return `whpk_${Buffer.from(x!, 'base64url').toString('base64')}`
}
const SIGNERS = new Map([KEYS, OTHER_KEYS].map(keys => [whpk(keys), keys.privateKey]))

const plain = { secret: "It's a Secret to Everybody", other: 'another secret of theirs', body: JSON_BODY }
const covered = { covers: 'body' as const }
const STANDARD = ['webhook-signature', 'webhook-timestamp', 'webhook-id']
const standardTime = { header: 'webhook-timestamp', text: seconds }

export const SENDERS: readonly Sender[] = [
  {
    ...plain,
    ...covered,
    name: 'github',
    fields: { scheme: 'github' },
    signed: ['X-Hub-Signature-256'],
    headers: (body, secret) => ({
      'X-Hub-Signature-256': `sha256=${hex(secret, body)}`,
      'X-Hub-Signature': `sha1=${hmac('sha1', secret, body).digest('hex')}`,
      'X-GitHub-Delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
      'X-GitHub-Event': 'issues',
    }),
  },
  {
    ...plain,
    ...covered,
    name: 'gitea',
    fields: { scheme: 'gitea' },
    signed: ['X-Gitea-Signature'],
    headers: (body, secret) => ({
      'X-Gitea-Signature': hex(secret, body),
      'X-Gitea-Delivery': 'f6266f16-1bf3-46a5-9ea4-602e06ead473',
      'X-Gitea-Event': 'push',
    }),
  },
  {
    ...plain,
    ...covered,
    name: 'gitea (Forgejo)',
    fields: { scheme: 'gitea' },
    signed: ['X-Forgejo-Signature'],
    headers: (body, secret) => ({
      'X-Forgejo-Signature': hex(secret, body),
      'X-Gitea-Signature': hex(secret, body),
      'X-Forgejo-Delivery': 'f6266f16-1bf3-46a5-9ea4-602e06ead473',
      'X-Forgejo-Event': 'push',
    }),
  },
  {
    ...covered,
    name: 'gitlab',
    fields: { scheme: 'gitlab' },
    secret: whsec(7),
    other: whsec(8),
    body: JSON_BODY,
    signed: STANDARD,
    time: standardTime,
    headers: (body, secret, time) => ({ ...standard(body, secret, time), 'X-Gitlab-Event': 'Push Hook' }),
  },
  {
    ...plain,
    name: 'gitlab_token',
    fields: { scheme: 'gitlab_token' },
    signed: ['X-Gitlab-Token'],
    covers: 'nothing',
    headers: (_, secret) => ({ 'X-Gitlab-Token': secret, 'Idempotency-Key': 'key-1', 'X-Gitlab-Event': 'Push Hook' }),
  },
  {
    ...plain,
    ...covered,
    name: 'slack',
    fields: { scheme: 'slack' },
    signed: ['X-Slack-Signature', 'X-Slack-Request-Timestamp'],
    time: { header: 'X-Slack-Request-Timestamp', text: seconds },
    headers: (body, secret, time) => ({
      'X-Slack-Signature': `v0=${hex(secret, `v0:${time}:`, body)}`,
      'X-Slack-Request-Timestamp': time,
    }),
  },
  {
    ...plain,
    ...covered,
    name: 'stripe',
    fields: { scheme: 'stripe' },
    signed: ['Stripe-Signature'],
    time: { header: 'Stripe-Signature', text: seconds },
    headers: (body, secret, time) => ({ 'Stripe-Signature': `t=${time},v1=${hex(secret, `${time}.`, body)}` }),
  },
  {
    ...covered,
    name: 'standard',
    fields: { scheme: 'standard' },
    secret: whsec(1, 24),
    other: whsec(2, 64),
    body: JSON_BODY,
    signed: STANDARD,
    time: standardTime,
    headers: standard,
  },
  {
    ...covered,
    name: 'standard (Ed25519)',
    fields: { scheme: 'standard' },
    secret: whpk(KEYS),
    other: whpk(OTHER_KEYS),
    body: JSON_BODY,
    signed: STANDARD,
    time: standardTime,
    headers: (body, secret, time) => ({
      'webhook-id': ID,
      'webhook-timestamp': time,
      'webhook-signature': `v1a,${sign(null, Buffer.concat([Buffer.from(`${ID}.${time}.`), body]), SIGNERS.get(secret)!).toString('base64')}`,
    }),
  },
  {
    ...plain,
    ...covered,
    name: 'jira',
    fields: { scheme: 'jira' },
    signed: ['X-Hub-Signature'],
    headers: (body, secret) => ({
      'X-Hub-Signature': `sha256=${hex(secret, body)}`,
      'X-Atlassian-Webhook-Identifier': 'w-1',
    }),
  },
  {
    ...plain,
    ...covered,
    name: 'bitbucket',
    fields: { scheme: 'bitbucket' },
    signed: ['X-Hub-Signature'],
    headers: (body, secret) => ({
      'X-Hub-Signature': `sha256=${hex(secret, body)}`,
      'X-Request-UUID': 'u-1',
      'X-Event-Key': 'repo:push',
    }),
  },
  {
    ...plain,
    ...covered,
    name: 'shopify',
    fields: { scheme: 'shopify' },
    signed: ['X-Shopify-Hmac-Sha256'],
    headers: (body, secret) => ({
      'X-Shopify-Hmac-Sha256': base64(secret, body),
      'X-Shopify-Webhook-Id': 'b54557e4',
      'X-Shopify-Topic': 'orders/create',
    }),
  },
  {
    ...plain,
    ...covered,
    name: 'zendesk',
    fields: { scheme: 'zendesk' },
    signed: ['X-Zendesk-Webhook-Signature', 'X-Zendesk-Webhook-Signature-Timestamp'],
    time: { header: 'X-Zendesk-Webhook-Signature-Timestamp', text: iso },
    headers: (body, secret, time) => ({
      'X-Zendesk-Webhook-Signature': base64(secret, time, body),
      'X-Zendesk-Webhook-Signature-Timestamp': time,
      'X-Zendesk-Webhook-Invocation-Id': '01',
    }),
  },
  {
    ...plain,
    ...covered,
    name: 'hmac (the body, in base64, SHA-512, key in hex)',
    fields: { scheme: 'hmac', header: 'X-Sig', algorithm: 'sha512', encoding: 'base64', key: 'hex', dedup: 'body' },
    secret: Buffer.alloc(32, 3).toString('hex'),
    other: Buffer.alloc(32, 4).toString('hex'),
    signed: ['X-Sig'],
    headers: (body, secret) => ({ 'X-Sig': hmac('sha512', Buffer.from(secret, 'hex'), body).digest('base64') }),
  },
  {
    ...plain,
    ...covered,
    name: 'hmac (time in ms, id and body)',
    fields: {
      scheme: 'hmac',
      header: 'X-Sig',
      prefix: 'v7 ',
      payload: '{id}|{timestamp}|{body}',
      timestamp_header: 'X-Sent',
      unit: 'ms',
      id_header: 'X-Id',
    },
    signed: ['X-Sig', 'X-Sent', 'X-Id'],
    time: { header: 'X-Sent', text: String },
    headers: (body, secret, time) => ({
      'X-Sig': `v7 ${hex(secret, `d-1|${time}|`, body)}`,
      'X-Sent': time,
      'X-Id': 'd-1',
    }),
  },
  {
    name: 'graph',
    fields: { scheme: 'graph', dedup: 'none' },
    secret: 'a state that only we know',
    other: 'a state of somebody else!',
    signed: [],
    covers: { text: 'a state that only we know' },
    body: '{"value":[{"clientState":"a state that only we know","changeType":"updated"},{"clientState":"a state that only we know"}]}',
    headers: () => ({}),
  },
  {
    ...plain,
    name: 'bearer',
    fields: { scheme: 'bearer' },
    secret: 'a-bearer-of-at-least-24-characters',
    other: 'another-one-of-at-least-24-chars',
    signed: ['Authorization'],
    covers: 'nothing',
    headers: (_, secret) => ({ Authorization: `Bearer ${secret}`, 'Idempotency-Key': 'key-1' }),
  },
  {
    ...plain,
    name: 'bearer (in a header of its own)',
    fields: { scheme: 'bearer', header: 'X-Api-Key' },
    secret: 'a-bearer-of-at-least-24-characters',
    other: 'another-one-of-at-least-24-chars',
    signed: ['X-Api-Key'],
    covers: 'nothing',
    headers: (_, secret) => ({ 'X-Api-Key': secret }),
  },
]

export function specOf(fields: Record<string, unknown>): HookSpec {
  const { spec, problems } = checkHook(fields, occasionRule)
  if (!spec) throw new Error(problems.map(({ path, message }) => `${path}: ${message}`).join('; '))
  return spec
}

export interface Sent {
  headers: Headers
  body: Uint8Array<ArrayBuffer>
}

/** A request of the sender, made `ms` ago. */
export function sentBy(sender: Sender, { ago = 0, body = sender.body, secret = sender.secret } = {}): Sent {
  const bytes = Buffer.from(body)
  const time = sender.time?.text(NOW - ago) ?? ''
  return { headers: new Headers(sender.headers(bytes, secret, time)), body: bytes }
}

export function judge(
  sender: Sender,
  { headers, body }: Sent,
  secrets: readonly string[] = [sender.secret],
  now = NOW,
): Verdict {
  return verify(specOf(sender.fields), secrets, { headers, body, query: new URLSearchParams() }, now)
}
