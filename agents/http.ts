// http: fetches a URL into a file, or delivers a file to a URL.
//
//   sources:        [{ name, url, method?, headers?, body?, expect_status?, timeout?, effect? }]   default GET
//   target_entries: [{ name, url, file or body, … }]                                               default POST
//
// An unexpected status (default: anything outside 200–299) fails the phase and writes nothing. The body is streamed
// unchanged to files/<phase>/<name>. `data` has status, bytes, content_type, etag, and `json` up to 256 KiB. The effect
// follows from the method (GET, HEAD and OPTIONS read, PUT and DELETE idempotent, the rest once) unless `effect` is given. A
// `once` request has an Idempotency-Key header that is the same in all attempts. Whether the server keeps it is not known,
// and nothing can be looked for, so after a lost reply a person decides. `timeout` (60s) limits the wait for a
// reply and for each further part of it. While a large file is sent, it starts anew with each part that the server
// accepts.
//
// The agent has no settings. Credentials stand in `headers`, from a named secret or a `secret` input; or an entry names
// another agent as its `account`, whose address and authorization it then has: `{ account: crm, url: /crm/v3/owners }`.
// https://www.rfc-editor.org/rfc/rfc9110#name-methods

import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  DURATION_PATTERN,
  type Effect,
  type FileRecord,
  type Json,
  parseDuration,
  replyError,
  Type,
} from 'cadre'
import { filePath, nullable } from 'cadre/vendors'

const JSON_MOST = 256 * 1024

const common = (method: 'GET' | 'POST') => ({
  name: Type.String({ minLength: 1, description: 'The name of the entry, and of the file that gets the reply.' }),
  url: Type.String({
    pattern: '^(https?://|/)',
    'x-expected': 'an address that begins with https:// or http://, or with `account` a path that begins with /',
    description:
      'The address: https:// with credentials, except on this machine; with `account` a path after its API’s root.',
  }),
  account: Type.Optional(
    Type.String({
      pattern: '^[a-z][a-z0-9_-]*(@[A-Za-z0-9_-]+)?$',
      'x-expected': 'an agent, such as crm, or an account of it, such as crm@eu',
      description:
        'The agent whose address and authorization it has, such as crm. A package needs the setting agents.crm.lend.',
    }),
  ),
  method: Type.Optional(
    Type.Enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'], {
      default: method,
      description: 'The method.',
    }),
  ),
  headers: Type.Optional(Type.Record(Type.String(), Type.String(), { description: 'Headers of the request by name.' })),
  body: Type.Optional(Type.Unknown({ description: 'What is sent: a text as it is, anything else as JSON.' })),
  expect_status: Type.Optional(
    Type.Union(
      [
        Type.Integer({ minimum: 100, maximum: 599 }),
        Type.Array(Type.Integer({ minimum: 100, maximum: 599 }), { minItems: 1 }),
      ],
      {
        'x-expected': 'a status from 100 to 599 or a list of them',
        description: 'The statuses that count as success; default 200 to 299.',
      },
    ),
  ),
  timeout: Type.Optional(
    Type.String({
      pattern: DURATION_PATTERN,
      description: 'How long to wait for the reply, and for each further part of it; default 60s.',
    }),
  ),
  effect: Type.Optional(
    Type.Enum(['read', 'idempotent', 'once'], {
      description:
        'After a lost reply, a `once` request (default of POST and PATCH) is not sent again; the others are.',
    }),
  ),
})
const Source = Type.Object(common('GET'), { additionalProperties: false })
const Target = Type.Object(
  {
    ...common('POST'),
    file: Type.Optional(filePath('The file that is sent, instead of `body`.')),
  },
  {
    additionalProperties: false,
    oneOf: [{ required: ['file'] }, { required: ['body'] }],
    'x-none': 'a request without content has `body: ""`',
  },
)
type Entry = Type.Static<typeof Target>
const Reply = Type.Object({
  status: Type.Integer({ description: 'The status of the reply.' }),
  bytes: Type.Integer({ description: 'How many bytes it has.' }),
  content_type: nullable(Type.String(), { description: 'Its content type.' }),
  etag: nullable(Type.String(), { description: 'Its entity tag.' }),
  json: Type.Optional(Type.Unknown({ description: 'What it contains, where it is JSON of at most 256 KiB.' })),
})

export default agent({
  type: 'exec',
  version: '1.0.0',
  description: 'Fetches a URL, or delivers content to one.',
  settings: Type.Object({}),
  source: {
    description: 'Fetches a URL into a file.',
    effect: entry => effectOf(entry, 'GET'),
    example: { name: 'items.json', url: 'https://api.example.com/items' },
    entry: Source,
    data: Reply,
    run: (entry, context) => request(entry, 'GET', encode(entry.body), context),
  },
  target: {
    description: 'Sends a file or a body to a URL.',
    effect: entry => effectOf(entry, 'POST'),
    example: { name: 'item', url: 'https://api.example.com/items', body: { title: 'New' } },
    entry: Target,
    data: Reply,
    async run(entry, context) {
      const { file } = entry
      const body = file === undefined ? encode(entry.body) : { content: await context.read(file) }
      return request(entry, 'POST', body, context)
    },
  },
})

function effectOf({ method, effect }: Entry, standard: string): Effect {
  if (effect) return effect
  const used = method ?? standard
  if (used === 'GET' || used === 'HEAD' || used === 'OPTIONS') return 'read'
  return used === 'PUT' || used === 'DELETE' ? 'idempotent' : 'once'
}

interface Body {
  content?: string | Blob
  type?: string
}

/** Text is sent unchanged, any other value as JSON. */
function encode(body: unknown): Body {
  if (body === undefined) return {}
  return typeof body === 'string' ? { content: body } : { content: JSON.stringify(body), type: 'application/json' }
}

async function request(
  entry: Entry,
  standard: string,
  body: Body,
  context: AgentContext<unknown>,
): Promise<AgentResult> {
  const method = entry.method ?? standard
  if (body.content !== undefined && (method === 'GET' || method === 'HEAD')) {
    throw new AgentError(`[${context.callName}] ${entry.name}: ${method} must not have a body`, {
      hint: 'set `method: POST`',
      sent: 'no',
    })
  }
  const headers = new Headers(entry.headers)
  if (body.type && !headers.has('content-type')) headers.set('content-type', body.type)
  if (effectOf(entry, standard) === 'once' && !headers.has('idempotency-key')) {
    headers.set('idempotency-key', context.key)
  }
  const reply = await context.fetch(entry.url, {
    method,
    headers,
    effect: effectOf(entry, standard),
    ...(body.content !== undefined && { body: body.content }),
    ...(entry.timeout && { timeout: parseDuration(entry.timeout)! }),
  })
  if (!isExpected(reply, entry.expect_status)) {
    const doing = `[${context.callName}] ${entry.name}: ${method} ${placeOf(entry.url)}`
    const { account } = entry
    throw await replyError(reply, doing, {
      401: account
        ? `the credential of agents.${account} was refused or has expired: see what doctor says of it`
        : entry.headers
          ? `check the credential in \`headers\` of the entry ${entry.name}`
          : `the entry ${entry.name} has no \`headers\`: a credential stands there, such as Authorization: Bearer {{ secrets.NAME }}`,
    })
  }

  const file = await context.write(entry.name, reply.body ?? '')
  const content_type = reply.headers.get('content-type')
  const data = { status: reply.status, bytes: file.bytes, content_type, etag: reply.headers.get('etag') }
  const { json, lack = '' } = isJson(content_type) && file.bytes > 0 ? await jsonOf(file, context) : {}
  // It may be relative to the address that was asked (RFC 9110, 10.2.2).
  const made = URL.parse(reply.headers.get('location') ?? '', entry.url)
  return {
    text: `${method} ${hostOf(entry.url)}: ${reply.status}, ${file.bytes} bytes${lack}`,
    data: json === undefined ? data : { ...data, json },
    ...(reply.headers.has('location') && made && { external: { url: made.href } }),
  }
}

function isExpected(reply: Response, expected: Entry['expect_status']): boolean {
  return expected === undefined ? reply.ok : [expected].flat().includes(reply.status)
}

function isJson(type: string | null): boolean {
  return /^[^;]*[/+]json\s*(;|$)/i.test(type ?? '')
}

/** The parsed body, or why there is none. The file has the body in any case. */
async function jsonOf(
  { path, bytes }: FileRecord,
  context: AgentContext<unknown>,
): Promise<{ json?: Json; lack?: string }> {
  if (bytes > JSON_MOST) {
    return { lack: `, too large for \`json\` (at most 256 KiB): ask for less at once, or read ${path}` }
  }
  try {
    return { json: (await (await context.read(path)).json()) as Json }
  } catch {
    return { lack: `, and \`json\` is missing because it is not valid JSON: ${path} has it as received` }
  }
}

/** The host of a URL, for the text of a result. */
function hostOf(url: string): string {
  return new URL(url).host
}

/** The host and the path of a URL, for errors. The query is left out because it may contain a key. */
function placeOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `${host}${pathname}`
}
