// Requests to an S3-compatible store. Each is signed by aws4fetch and sent with the guarded fetch, which judges its
// address and retries it. Redirects are not followed: when a bucket is in another region, the request is signed for that
// region and sent again, so that no signature leaves for an address that the store names.
// https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html

import { AwsV4Signer } from 'aws4fetch'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { replyError } from '../../agent/net/reply-error.ts'
import type { FetchOptions } from '../../agent/net/requests.ts'
import { bucketAt, regionIn, type StoreSettings } from './bucket-address.ts'
import { parseXml, textOf } from './xml.ts'

export type StoreContext = AgentContext<StoreSettings>
export type ObjectAddress = { bucket: string; key: string }

export interface StoreRequest extends Pick<FetchOptions, 'method' | 'timeout' | 'cleanup'> {
  query?: Record<string, string>
  headers?: Record<string, string>
  body?: Uint8Array<ArrayBuffer> | string
  /** The permission that the request needs. */
  permission: string
  /** Codes with which the store says that there is nothing left to do. */
  done?: RegExp
}

/** Codes of S3 with our codes and hints. */
const REASONS: readonly [codes: RegExp, code: string, hint: (settings: string, permission: string) => string][] = [
  [/^NoSuch(Key|Bucket)$/, 'not_found', () => 'check ref: the bucket and the key, including upper and lower case'],
  [
    /^(InvalidAccessKeyId|SignatureDoesNotMatch)$/,
    'unauthorized',
    settings => `check ${settings}.access_key_id and ${settings}.secret_access_key`,
  ],
  [
    /^((Invalid|Expired)Token|TokenRefreshRequired)$/,
    'unauthorized',
    settings =>
      `set ${settings}.session_token again, together with its ${settings}.access_key_id and ${settings}.secret_access_key`,
  ],
  [
    /^(PermanentRedirect|TemporaryRedirect|AuthorizationHeaderMalformed|IllegalLocationConstraintException)$/,
    'rejected',
    settings => `the bucket is in another region: check ${settings}.region and ${settings}.endpoint`,
  ],
  [
    /^AccessDenied$/,
    'forbidden',
    (settings, permission) => `the key of ${settings}.access_key_id lacks the permission ${permission}`,
  ],
  [/^RequestTimeTooSkewed$/, 'rejected', () => 'correct the clock of this machine'],
  [/^InvalidObjectState$/, 'rejected', () => 'the object is archived: restore it first'],
  [/^PreconditionFailed$/, 'conflict', () => 'the object changed meanwhile: run the phase again'],
  [/^NotImplemented$/, 'unsupported', () => 'the store does not know this kind of request'],
]

/** What a status says of a write with a condition, where the reply has no body. */
const BY_STATUS: Record<number, string> = { 412: 'conflict', 501: 'unsupported' }

/** The regions that stores have named, by endpoint and bucket. */
const regions = new Map<string, string>()

export function urlOf({ bucket, key }: ObjectAddress): string {
  return `s3://${bucket}/${key}`
}

/** Sends a request. Throws an AgentError, which names the object, for any status outside 200–299 but what is `done`. */
export async function storeRequest(
  context: StoreContext,
  object: ObjectAddress,
  request: StoreRequest,
): Promise<Response> {
  const known = `${context.settings.endpoint ?? ''} ${object.bucket}`
  const moved = regions.get(known)
  const first = await send(context, object, request, moved)
  if (first.reply.ok) return first.reply
  const said = await saidBy(first.reply)
  const { isAws, region } = first
  const named =
    first.reply.headers.get('x-amz-bucket-region') ??
    textOf(said.xml, 'Region') ??
    (isAws ? regionIn(first.reply.headers.get('location')) : undefined)
  if (named === undefined || named === region) return unlessRefused(context, object, request, said)
  const second = await send(context, object, request, named)
  if (!second.reply.ok) await unlessRefused(context, object, request, await saidBy(second.reply))
  regions.set(known, named)
  return second.reply
}

async function unlessRefused(
  context: StoreContext,
  object: ObjectAddress,
  request: StoreRequest,
  said: Awaited<ReturnType<typeof saidBy>>,
): Promise<Response> {
  if (request.done?.test(textOf(said.xml, 'Code') ?? '')) return said.reply
  throw await explain(context, object, request, said)
}

async function send(
  context: StoreContext,
  { bucket, key }: ObjectAddress,
  { method = 'GET', query = {}, headers = {}, body, timeout, cleanup }: StoreRequest,
  learned: string | undefined,
) {
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, session_token } = context.settings
  const { address, region, isAws } = bucketAt(context, bucket, learned)
  const url = new URL(address + key.split('/').map(encoded).join('/'))
  for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
  const signed = await new AwsV4Signer({
    ...{ method, url: url.href, headers, accessKeyId, secretAccessKey, region },
    ...{ service: 's3', ...(session_token !== undefined && { sessionToken: session_token }) },
  }).sign()
  // Not signed, because proxies change it. Without it a store might send what has another size than the object.
  signed.headers.set('accept-encoding', 'identity')
  const reply = await context.fetch(signed.url, {
    ...{ method, headers: signed.headers, follow: false },
    ...(body !== undefined && { body }),
    ...(timeout !== undefined && { timeout }),
    ...(cleanup && { cleanup }),
  })
  return { reply, region, isAws }
}

/** A segment of a path, encoded as signatures demand it (RFC 3986). */
function encoded(segment: string): string {
  return encodeURIComponent(segment).replace(/[!'()*]/g, each => `%${each.charCodeAt(0).toString(16).toUpperCase()}`)
}

/** What a reply says: its body, and the body as XML where it is an error of S3. */
async function saidBy(reply: Response) {
  const text = await reply.text().catch(() => '')
  const root = parseXml(text)
  return { reply, text, xml: root?.name === 'Error' ? root : null }
}

/** The error for a refusal. */
export async function explain(
  { agent, callName: at }: Pick<StoreContext, 'agent' | 'callName'>,
  object: ObjectAddress,
  { permission }: Pick<StoreRequest, 'permission'>,
  { reply, text, xml }: Pick<Awaited<ReturnType<typeof saidBy>>, 'reply' | 'text' | 'xml'>,
): Promise<AgentError> {
  const settings = `agents.${agent}`
  const s3Code = textOf(xml, 'Code') ?? ''
  const words = xml ? `${s3Code}: ${textOf(xml, 'Message') ?? ''}` : text
  const { status, headers } = reply
  const isRedirect = status >= 300 && status < 400
  const error = await replyError(new Response(words, { status, headers }), `[${at}] ${urlOf(object)}`, {
    401: `check ${settings}.access_key_id and ${settings}.secret_access_key`,
    403: `the key of ${settings}.access_key_id lacks the permission ${permission}`,
    404: 'check ref: the bucket and the key, including upper and lower case',
  })
  const [, code, hintOf] = REASONS.find(([codes]) => codes.test(s3Code)) ?? []
  const { message, retryable, sent } = error
  const moved = `the store answers with a redirect: check ${settings}.endpoint and ${settings}.region`
  const hint =
    hintOf?.(settings, permission) ??
    (isRedirect ? moved : status >= 500 ? `check ${settings}.endpoint, and that the store is available` : error.hint)
  return new AgentError(message, {
    code: code ?? (isRedirect ? 'rejected' : (BY_STATUS[status] ?? error.code)),
    retryable: code === undefined && retryable,
    ...(sent && { sent }),
    ...(hint && { hint }),
  })
}
