// How senders sign: a row for each scheme, with the headers that it reads, the bytes that it signs, and where the delivery's
// id and its event stand. The rows are data, so that adding a hook and checking a request cannot say different things.

export const HOOK_SCHEMES = [
  'github',
  'gitea',
  'gitlab',
  'gitlab_token',
  'slack',
  'stripe',
  'standard',
  'jira',
  'bitbucket',
  'shopify',
  'zendesk',
  'hmac',
  'graph',
  'bearer',
] as const
export type SchemeName = (typeof HOOK_SCHEMES)[number]

/** How a secret writes its key. */
export type KeyForm = 'text' | 'hex' | 'base64'

/** A part of the bytes that are signed. */
export type Part = { readonly text: string } | 'timestamp' | 'id' | 'body'

/** The header that says when a request was signed, in seconds or milliseconds, or as ISO 8601 in UTC. */
export interface Time {
  readonly header: string
  readonly form: 's' | 'ms' | 'iso'
}

/** One header whose whole text is computed from the request. */
export interface HmacCheck {
  readonly kind: 'hmac'
  /** The first of these that is there counts, and the others do not rescue it. */
  readonly signature: readonly string[]
  readonly algorithm: 'sha256' | 'sha512'
  readonly encoding: 'hex' | 'base64'
  readonly prefix: string
  readonly parts: readonly Part[]
  readonly time: Time | null
  /** The header of an id that is signed. */
  readonly id: string | null
}

/** A header that is the secret itself, after `prefix`. */
export interface EqualCheck {
  readonly kind: 'equal'
  readonly header: string
  readonly prefix: string
}

export type Check = HmacCheck | EqualCheck | { readonly kind: 'stripe' | 'standard' | 'graph' }

/** Where a text stands: the first header that is there, else the first of these places in the body. */
export interface Place {
  readonly headers: readonly string[]
  readonly body: readonly (readonly (string | number)[])[]
}

export interface Scheme {
  readonly check: Check
  readonly id: Place
  readonly event: Place
  /** Whether the time of sending is signed, so that an old request is refused. */
  readonly isTimed: boolean
  /** Whether the id is signed, so that a recorded request cannot come under another one. */
  readonly isIdSigned: boolean
}

export const STRIPE_HEADER = 'Stripe-Signature'
export const STANDARD_HEADERS = { signature: 'webhook-signature', time: 'webhook-timestamp', id: 'webhook-id' } as const

export const inHeaders = (...headers: string[]): Place => ({ headers, body: [] })
export const inBody = (...body: (string | number)[][]): Place => ({ headers: [], body })
export const NOWHERE: Place = inHeaders()

const ofBody = (signature: string[], prefix: string, encoding: 'hex' | 'base64' = 'hex'): HmacCheck => ({
  kind: 'hmac',
  signature,
  algorithm: 'sha256',
  encoding,
  prefix,
  parts: ['body'],
  time: null,
  id: null,
})

const untimed = (check: Check, id: Place, event: Place): Scheme => ({
  check,
  id,
  event,
  isTimed: false,
  isIdSigned: false,
})

/** What does not depend on the fields of the hook. `hmac` and `bearer` do, and are made in spec.ts. */
export const SCHEMES: Readonly<Record<Exclude<SchemeName, 'hmac' | 'bearer'>, Scheme>> = {
  // X-Hub-Signature, which has SHA-1, is never read.
  github: untimed(
    ofBody(['X-Hub-Signature-256'], 'sha256='),
    inHeaders('X-GitHub-Delivery'),
    inHeaders('X-GitHub-Event'),
  ),
  gitea: untimed(
    ofBody(['X-Forgejo-Signature', 'X-Gitea-Signature'], ''),
    inHeaders('X-Forgejo-Delivery', 'X-Gitea-Delivery', 'X-GitHub-Delivery'),
    inHeaders('X-Forgejo-Event', 'X-Gitea-Event', 'X-GitHub-Event'),
  ),
  // X-Gitlab-Webhook-UUID and X-Gitlab-Event-UUID are shared by different deliveries, so they are no ids.
  gitlab: {
    check: { kind: 'standard' },
    id: inHeaders(STANDARD_HEADERS.id),
    event: inHeaders('X-Gitlab-Event'),
    isTimed: true,
    isIdSigned: true,
  },
  gitlab_token: untimed(
    { kind: 'equal', header: 'X-Gitlab-Token', prefix: '' },
    inHeaders('Idempotency-Key'),
    inHeaders('X-Gitlab-Event'),
  ),
  slack: {
    check: {
      ...ofBody(['X-Slack-Signature'], 'v0='),
      parts: [{ text: 'v0:' }, 'timestamp', { text: ':' }, 'body'],
      time: { header: 'X-Slack-Request-Timestamp', form: 's' },
    },
    // An event, a slash command, and what a person did with a message or a form.
    id: inBody(['event_id'], ['trigger_id'], ['payload', 'trigger_id']),
    event: inBody(['event', 'type'], ['payload', 'type'], ['command']),
    isTimed: true,
    isIdSigned: true,
  },
  stripe: { check: { kind: 'stripe' }, id: inBody(['id']), event: inBody(['type']), isTimed: true, isIdSigned: true },
  standard: {
    check: { kind: 'standard' },
    id: inHeaders(STANDARD_HEADERS.id),
    event: inBody(['type']),
    isTimed: true,
    isIdSigned: true,
  },
  jira: untimed(
    ofBody(['X-Hub-Signature'], 'sha256='),
    inHeaders('X-Atlassian-Webhook-Identifier'),
    inBody(['webhookEvent']),
  ),
  bitbucket: untimed(ofBody(['X-Hub-Signature'], 'sha256='), inHeaders('X-Request-UUID'), inHeaders('X-Event-Key')),
  // X-Shopify-Triggered-At is not signed, so it says nothing.
  shopify: untimed(
    ofBody(['X-Shopify-Hmac-Sha256'], '', 'base64'),
    inHeaders('X-Shopify-Webhook-Id'),
    inHeaders('X-Shopify-Topic'),
  ),
  zendesk: {
    check: {
      ...ofBody(['X-Zendesk-Webhook-Signature'], '', 'base64'),
      // Nothing separates the two: the time has to have the one form that ends with its Z.
      parts: ['timestamp', 'body'],
      time: { header: 'X-Zendesk-Webhook-Signature-Timestamp', form: 'iso' },
    },
    id: inHeaders('X-Zendesk-Webhook-Invocation-Id'),
    event: inBody(['type']),
    isTimed: true,
    isIdSigned: false,
  },
  graph: untimed({ kind: 'graph' }, NOWHERE, inBody(['value', 0, 'changeType'])),
}

/** All headers that a scheme reads. */
export function headersOf({ check, id, event }: Scheme): string[] {
  return [...signatureHeaders(check), ...timeHeaders(check), ...id.headers, ...event.headers]
}

/** The headers that show that whoever sent them knows the secret, or that are the secret. */
export function signatureHeaders(check: Check): readonly string[] {
  if (check.kind === 'hmac') return check.signature
  if (check.kind === 'equal') return [check.header]
  if (check.kind === 'stripe') return [STRIPE_HEADER]
  return check.kind === 'standard' ? [STANDARD_HEADERS.signature] : []
}

function timeHeaders(check: Check): string[] {
  if (check.kind === 'standard') return [STANDARD_HEADERS.time]
  return check.kind === 'hmac' ? [check.time?.header, check.id].filter(name => typeof name === 'string') : []
}
