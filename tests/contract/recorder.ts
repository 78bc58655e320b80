// What stands between an agent and Prism: it passes each request on as it came, keeps what was asked, and notes whatever
// Prism, the document or the vendor's prose would refuse.

import { isObject } from '../../lib/json.ts'
import { type DocumentName, type Request, readDocument } from './document.ts'

export interface Call extends Request {
  /** As the document declares it, else `line`. */
  operation: string
  method: string
  headers: Headers
}

/** What an agent is free to send although the document does not declare it. */
export interface Undeclared {
  /** The operation. */
  operation: string
  /** Names of query parameters and body fields; without them it is the whole request, which Prism does not see. */
  names?: readonly string[]
  /** Where only some requests of the operation are meant. */
  when?(call: Call): boolean
  why: string
  /** The vendor's page that describes it. */
  page: string
}

/** What the vendor refuses in prose only: each text is a fault of the request. */
export type Rules = (call: Call) => readonly (string | false | undefined)[]

/** Another answer to an operation, made of what Prism answered. */
// biome-ignore lint/suspicious/noExplicitAny: of any vendor, and checked by Prism
export type Change = (answer: any, call: Call) => unknown

export interface Recorder {
  url: string
  calls: Call[]
  faults: string[]
  /** Forgets what was recorded. The first call of an operation gets its first change, and so on; the others get none. */
  begin(changes?: Readonly<Record<string, readonly Change[]>>): void
  [Symbol.dispose](): void
}

/** What a recorder is told of a vendor. */
export interface Terms {
  document: DocumentName
  rules: Rules
  undeclared?: readonly Undeclared[]
  /** Values of Prism's header `Prefer` by operation. */
  prefer?: Readonly<Record<string, string>>
}

export async function record(
  { document, rules, undeclared = [], prefer = {} }: Terms,
  prism: string,
): Promise<Recorder> {
  const declared = await readDocument(document)
  const calls: Call[] = []
  const faults: string[] = []
  let changes = new Map<string, Change[]>()

  const freed = (call: Call) =>
    undeclared.filter(({ operation, when }) => operation === call.operation && (!when || when(call)))
  const isUnseen = (call: Call) => freed(call).some(({ names }) => !names)

  function strangers(call: Call): string[] {
    if (isUnseen(call)) return []
    if (!declared.operationOf(call.line)) return ['is not in the document']
    const names = freed(call).flatMap(({ names = [] }) => names)
    return declared
      .strangers(call.operation, call)
      .filter(name => !names.includes(name))
      .map(name => `sends ${name}, which the document does not declare`)
  }

  async function pass(request: globalThis.Request, call: Call, body: Uint8Array): Promise<Response> {
    if (isUnseen(call)) return Response.json({})
    const { pathname, search } = new URL(request.url)
    const headers = new Headers(request.headers)
    headers.delete('host')
    if (prefer[call.operation]) headers.set('prefer', prefer[call.operation]!)
    const init = { method: call.method, headers, ...(body.length > 0 && { body }), redirect: 'manual' } as const
    const reply = await fetch(prism + pathname + search, init)
    const violations = JSON.parse(reply.headers.get('sl-violations') ?? '[]') as { location: string[] }[]
    const ofRequest = violations.filter(({ location }) => location[0] === 'request')
    const refusal = reply.status >= 400 ? `${reply.status} ${await reply.clone().text()}` : ''
    if (refusal || ofRequest.length > 0) faults.push(`${call.line}: Prism: ${refusal} ${JSON.stringify(ofRequest)}`)
    return reply
  }

  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const { pathname, searchParams: query } = new URL(request.url)
      const bytes = await request.bytes()
      const line = `${request.method} ${pathname}`
      const isJson = request.headers.get('content-type')?.startsWith('application/json') && bytes.length > 0
      const text = new TextDecoder().decode(bytes)
      const call: Call = {
        line,
        operation: declared.operationOf(line) ?? line,
        method: request.method,
        query,
        headers: request.headers,
        body: isJson ? JSON.parse(text) : text,
      }
      calls.push(call)
      const reply = await pass(request, call, bytes)
      const wrong = [...strangers(call), ...rules(call).filter(fault => typeof fault === 'string')]
      faults.push(...wrong.map(fault => `${line}: ${fault}`))
      const change = changes.get(call.operation)?.shift()
      if (!change) return reply
      const answer = await reply.json().catch(() => null)
      const changed = change(answer, call)
      if (changed instanceof Response) return changed
      const type = reply.headers.get('content-type') ?? 'application/json'
      return Response.json(changed, { status: reply.status, headers: { 'content-type': type } })
    },
  })
  return {
    url: `http://127.0.0.1:${server.port}`,
    calls,
    faults,
    begin(given = {}) {
      calls.length = 0
      faults.length = 0
      changes = new Map(Object.entries(given).map(([operation, list]) => [operation, [...list]]))
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}

/** The body's value at a path of names, or undefined. */
export function at(value: unknown, ...path: (string | number)[]): unknown {
  return path.reduce<unknown>((found, key) => {
    if (Array.isArray(found)) return found[key as number]
    return isObject(found) ? found[key] : undefined
  }, value)
}

export function isText(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== ''
}

/** Of a Basic credential (RFC 7617); null where there is none. */
export function basicOf({ headers }: Call): string | null {
  const [, encoded] = /^Basic ([A-Za-z0-9+/]+=*)$/.exec(headers.get('authorization') ?? '') ?? []
  return encoded ? Buffer.from(encoded, 'base64').toString() : null
}
