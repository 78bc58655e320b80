// The OpenAPI document of an API, from the schemas that check its requests and describe its replies. Made when it is
// first asked for.
// Document: https://spec.openapis.org/oas/v3.1.1 · schemas: JSON Schema 2020-12

import type { AnyElysia } from 'elysia'
import { STATUS } from '../../error.ts'
import { isObject } from '../../json.ts'
import { type Route, routesOf } from '../routes.ts'
import { described } from './property-words.ts'

export interface Info {
  title: string
  version: string
  description: string
}

interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  description?: string
  required: boolean
  schema: unknown
}

export interface Operation {
  summary?: string
  description?: string
  operationId?: string
  tags: string[]
  security: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: { required: boolean; content: Record<string, { schema?: unknown }> }
  responses: Record<string, unknown>
}

export interface Document {
  openapi: string
  info: Info
  paths: Record<string, Record<string, Operation>>
  components: Record<string, Record<string, unknown>>
}

/** Describes every route of `app` that is not hidden: its body or query, its access rule, its reply, and the errors that it may return. */
export function openapiDocument(app: AnyElysia, info: Info): Document {
  const schemas: Record<string, unknown> = { ...components.schemas }
  const paths: Document['paths'] = {}
  for (const route of routesOf(app)) {
    if (route.hidden) continue
    const path = route.path.replace(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operationOf(route, schemas) }
  }
  // Paths and components are the same kind of thing here: schemas with properties at some depth.
  const whole = { paths, components: { ...components, schemas } }
  return { openapi: '3.1.1', info, ...(described(whole) as Pick<Document, 'paths' | 'components'>) }
}

function operationOf(route: Route, schemas: Record<string, unknown>): Operation {
  const inPaths = Array.from(route.path.matchAll(/:(\w+)/g), ([, name]) => inPath(name!))
  const parameters = [...inPaths, ...inQuery(route), ...inHeaders(route)]
  const body = bodyOf(route)
  return {
    ...route.detail,
    operationId: operationIdOf(route),
    tags: [route.path.split('/').at(-2) || 'service'],
    security: securityOf(route),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: body }),
    responses: { [route.status]: successOf(route, schemas), ...failuresOf(route) },
  }
}

/** `postV1RunsStart`, `getV1RunsById`. */
const operationIdOf = ({ method, path }: Route): string =>
  method.toLowerCase() + path.replace(/\/:/g, '/By/').replace(/\/(\w?)/g, (_, first: string) => first.toUpperCase())

const inPath = (name: string): Parameter => ({ name, in: 'path', required: true, schema: { type: 'string' } })

const inQuery = ({ query }: Route): Parameter[] =>
  Object.entries(query?.properties ?? {}).map(([name, schema]) => {
    return { name, in: 'query', required: query?.required?.includes(name) ?? false, schema }
  })

const inHeaders = ({ takes }: Route): Parameter[] =>
  Object.entries(takes).map(([name, description]) => {
    return { name, in: 'header', description, required: false, schema: { type: 'string' } }
  })

function bodyOf({ method, body }: Route): Operation['requestBody'] {
  // The body of a PUT is a file.
  if (method === 'PUT') return { required: true, content: { 'application/octet-stream': {} } }
  // An empty body counts as `{}`.
  return body && { required: false, content: { 'application/json': { schema: body } } }
}

/** Replaces each named record in `schema` by a reference, and adds the record to `schemas` under its name. */
function referring(schema: unknown, schemas: Record<string, unknown>): unknown {
  if (Array.isArray(schema)) return schema.map(each => referring(each, schemas))
  if (!isObject(schema)) return schema
  const { $id, ...rest } = schema
  const entries = Object.entries(rest).map(([key, value]) => [key, referring(value, schemas)])
  const plain = Object.fromEntries(entries)
  if (typeof $id !== 'string') return plain
  schemas[$id] = plain
  return { $ref: `#/components/schemas/${$id}` }
}

function securityOf({ rule }: Route): Operation['security'] {
  if (rule === 'none') return []
  return rule.startsWith('none, or ') ? [{}, { bearer: [] }] : [{ bearer: [] }]
}

function successOf({ data, media, isMessage }: Route, schemas: Record<string, unknown>): unknown {
  if (media) return { description: 'Done', headers, content: { [media]: {} } }
  const answered = referring(data ?? {}, schemas)
  const schema = isMessage
    ? messageOf('ok', { type: 'object', required: ['data'], properties: { data: answered } })
    : { type: 'object', required: ['ok', 'data'], properties: { ok: { const: true }, data: answered } }
  return { description: 'Done', headers, content: { 'application/json': { schema } } }
}

/** A reply with an envelope. */
function messageOf(type: 'ok' | 'error', payload: object) {
  const properties = {
    type: { const: type },
    version: { const: 1 },
    id: { type: 'string', description: 'The id of the request’s message' },
    timestamp: { type: 'integer', description: 'Epoch milliseconds' },
    run_id: { type: ['string', 'null'], description: 'The run_id of the request' },
    instance_id: { type: ['string', 'null'], description: 'The id of the daemon' },
    payload,
  }
  return { type: 'object', required: Object.keys(properties), properties }
}

function failuresOf({ method, rule, isMessage }: Route): Operation['responses'] {
  const inapplicable: number[] = [STATUS.method_not_allowed]
  if (rule === 'none') inapplicable.push(STATUS.forbidden)
  if (method === 'GET') inapplicable.push(STATUS.too_large, STATUS.unsupported_media_type)
  const errors = [...new Set(Object.values(STATUS))].filter(each => !inapplicable.includes(each))
  const kind = isMessage ? 'message_' : ''
  return Object.fromEntries(errors.map(each => [each, { $ref: `#/components/responses/${kind}${each}` }]))
}

const headers = { 'x-request-id': { description: 'Names the request in the log', schema: { type: 'string' } } }

function failure(status: number, kind: 'failure' | 'failed_message'): unknown {
  const codes = Object.entries(STATUS).flatMap(([code, its]) => (its === status ? [code] : []))
  const code = { type: 'object', properties: { code: { enum: codes } } }
  const more =
    status === STATUS.rate_limited
      ? { 'retry-after': { description: 'Seconds', schema: { type: 'integer' } } }
      : status === STATUS.unauthorized
        ? { 'www-authenticate': { schema: { const: 'Bearer' } } }
        : {}
  const narrowed = kind === 'failure' ? { error: code } : { payload: code }
  const schema = { allOf: [{ $ref: `#/components/schemas/${kind}` }, { properties: narrowed }] }
  return {
    description: codes.join(' or '),
    headers: { ...headers, ...more },
    content: { 'application/json': { schema } },
  }
}

const detail = {
  type: 'object',
  required: ['path', 'message'],
  properties: {
    path: { type: 'string', description: 'JSON pointer into the request' },
    message: { type: 'string', description: 'What it must be' },
    value: { type: 'number', description: 'A number for programs: acked_seq of a gap' },
  },
}

const error = {
  type: 'object',
  required: ['code', 'message'],
  properties: {
    code: { enum: Object.keys(STATUS), description: 'What went wrong, for programs' },
    message: { type: 'string', description: 'What went wrong and what to do, for people' },
    reason: { type: 'string', description: 'What the code leaves open, for programs: the name of a quota' },
    details: { type: 'array', items: detail, description: 'Each problem of several' },
  },
}

const statuses = [...new Set(Object.values(STATUS))]

const components: Document['components'] = {
  securitySchemes: {
    bearer: { type: 'http', scheme: 'bearer', description: 'A user token (cadre_tok_…) or a realm token (cadre_dt_…)' },
  },
  schemas: {
    failure: {
      type: 'object',
      required: ['ok', 'error'],
      properties: {
        ok: { const: false },
        error,
      },
    },
    failed_message: messageOf('error', error),
  },
  responses: {
    ...Object.fromEntries(statuses.map(status => [status, failure(status, 'failure')])),
    ...Object.fromEntries(statuses.map(status => [`message_${status}`, failure(status, 'failed_message')])),
  },
}
