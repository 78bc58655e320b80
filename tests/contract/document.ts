// A vendor's OpenAPI document: which operation a request is, and what of the request the document does not name.
// Prism lets through every query parameter and body field that it does not know; a misspelt name is found here.

import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { isObject } from '../../lib/json.ts'

/** Beside the repository, which holds none of them. */
const FOLDER = join(import.meta.dir, '../../../shared/vendor-apis')
export const DOCUMENTS = [
  'issues',
  'wiki',
  'metrics',
  'crm',
  'helpdesk',
  'git-host_a',
  'git-host_b',
  'filestore',
] as const
export type DocumentName = (typeof DOCUMENTS)[number]

function pathOf(name: DocumentName): string {
  return join(FOLDER, `${name}.openapi.json`)
}

export function areThere(): boolean {
  return DOCUMENTS.every(name => existsSync(pathOf(name)))
}

/**
 * A copy for Prism without the schemas of answers that have an example: compiling those takes it most of its time, and
 * they say nothing of requests. Gives its path.
 */
export async function lighterCopy(name: DocumentName, folder: string): Promise<string> {
  const root = await Bun.file(pathOf(name)).json()
  for (const operation of Object.values<Schema>(root.paths).flatMap(item => Object.values(item) as Schema[])) {
    for (const { content = {} } of Object.values((operation.responses ?? {}) as Record<string, Schema>)) {
      for (const answer of Object.values(content as Record<string, Schema>)) {
        if (answer.example !== undefined || answer.examples !== undefined) delete answer.schema
      }
    }
  }
  const copy = join(folder, `${name}.json`)
  await Bun.write(copy, JSON.stringify(root))
  return copy
}

export interface Request {
  /** `GET /path`. */
  line: string
  query: URLSearchParams
  body: unknown
}

type Schema = Record<string, unknown>

export interface VendorDocument {
  /** As the document spells it: `GET /pages/{id}`; null for a request that it does not declare. */
  operationOf(line: string): string | null
  /** Names of query parameters, and paths of body fields, that the operation does not declare. */
  strangers(operation: string, request: Request): string[]
}

export async function readDocument(name: DocumentName): Promise<VendorDocument> {
  const root = await Bun.file(pathOf(name)).json()
  /** What a `$ref` leads to, or the value itself. */
  const follow = (value: unknown): Schema => {
    if (!isObject(value) || typeof value.$ref !== 'string') return (value ?? {}) as Schema
    const found = value.$ref
      .split('/')
      .slice(1)
      .reduce((at, key) => at[key], root)
    return follow(found)
  }
  const lines: { operation: string; match: RegExp; declared: Schema; parameters: unknown[] }[] = []
  for (const [path, item] of Object.entries<Schema>(root.paths)) {
    const { parameters = [], ...methods } = item as Record<string, Schema> & { parameters?: unknown[] }
    const match = path.replace(/[.$]/g, '\\$&').replace(/\{[^}]+\}/g, '[^/]+')
    for (const [method, declared] of Object.entries(methods)) {
      const own = (declared.parameters ?? []) as unknown[]
      const operation = `${method.toUpperCase()} ${path}`
      const whole = new RegExp(`^${method.toUpperCase()} ${match}$`)
      lines.push({ operation, match: whole, declared, parameters: [...parameters, ...own] })
    }
  }
  // A path without placeholders goes before one that has some.
  lines.sort((a, b) => a.operation.split('{').length - b.operation.split('{').length)

  /** All schemas that `schema` is made of. */
  const parts = (schema: unknown): Schema[] => {
    const one = follow(schema)
    const more = [one.allOf, one.oneOf, one.anyOf].flatMap(list => (list ?? []) as unknown[])
    return [one, ...more.flatMap(parts)]
  }
  const strangeFields = (schema: unknown, value: unknown, path: string): string[] => {
    const all = parts(schema)
    if (Array.isArray(value)) {
      const items = all.find(part => part.items)?.items
      return items ? value.flatMap((item, at) => strangeFields(items, item, `${path}[${at}]`)) : []
    }
    if (!isObject(value)) return []
    const isOpen = all.some(part => part.additionalProperties) || !all.some(part => part.properties)
    return Object.entries(value).flatMap(([key, item]) => {
      const declared = all.flatMap(part => (isObject(part.properties) ? [part.properties[key]] : [])).filter(Boolean)
      if (declared.length === 0) return isOpen ? [] : [`${path}.${key}`]
      return strangeFields({ allOf: declared }, item, `${path}.${key}`)
    })
  }
  return {
    operationOf: line => lines.find(({ match }) => match.test(line))?.operation ?? null,
    strangers(operation, { query, body }) {
      const { declared, parameters } = lines.find(each => each.operation === operation)!
      const known = new Set(
        parameters.flatMap(parameter => {
          const { in: place, name } = follow(parameter)
          return place === 'query' ? [name] : []
        }),
      )
      const { content = {} } = follow(declared.requestBody) as { content?: Record<string, Schema> }
      const names = [...new Set(query.keys())].filter(name => !known.has(name))
      return [...names, ...strangeFields(content['application/json']?.schema, body, 'body')]
    },
  }
}
