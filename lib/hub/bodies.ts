// The parts that request bodies are made of, and how lists are paged.

import type { TProperties } from 'typebox'
import { CadreError } from '../error.ts'
import { closed } from '../schema.ts'
import { Type } from '../type.ts'

/** As large as PostgreSQL's `integer`. */
const MOST = 2 ** 31 - 1
export const Id = Type.Integer({ minimum: 1, maximum: MOST })
export const OrgId = Type.Union([Id, Type.String({ pattern: '^[1-9][0-9]{0,9}$', description: 'its decimal string' })])
export const Uuid = Type.String({ pattern: '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' })
export const Slug = Type.String({ pattern: '^[a-z0-9][a-z0-9-]{0,62}$' })
export const Username = Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,62}$' })
export const Password = Type.String({ minLength: 8, maxLength: 1_000 })
/** Text that the database takes: PostgreSQL's has no NUL. */
export const Text = (maxLength: number, minLength = 0) =>
  Type.String({ minLength, maxLength, pattern: '^[^\\u0000]*$' })
/** Epoch milliseconds. */
export const Moment = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
/** Text for people, of one line. */
export const Title = Type.String({ minLength: 1, maxLength: 200, pattern: '^[^\\u0000-\\u001f\\u007f]+$' })
export const TeamName = Type.String({ pattern: '^@[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9-]{0,62}$' })
/** `@scope/name` or `@scope/name@range`. */
export const TeamRef = Type.String({
  pattern: '^@[a-z0-9][a-z0-9-]{0,62}/[a-z0-9][a-z0-9-]{0,62}(@[^@/\\u0000-\\u001f]{1,100})?$',
})
/** A secret that is looked up by its hash. */
export const Secret = Type.String({ maxLength: 200 })

const RESERVED = new Set(['local', 'api', 'new', 'settings'])

/** No org has the greatest id: it stands for all that are greater still. */
export const orgId = (id: number | string): number => Math.min(Number(id), MOST)

/** Refuses slugs that paths of ours need, and `admin` as a scope. */
export function checkSlug(slug: string, kind: 'org' | 'scope' | 'realm'): void {
  if (!RESERVED.has(slug) && !(kind === 'scope' && slug === 'admin')) return
  throw new CadreError('invalid_request', `the slug ${slug} is reserved`, {
    details: [{ path: '/slug', message: 'is reserved' }],
  })
}

/** The body of a list: `limit` (default 50), `offset` (default 0), and its filters. */
export function listBody<P extends TProperties>(filters: P) {
  return closed({
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100 })),
    offset: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
    ...filters,
  })
}

export function page({ limit = 50, offset = 0 }: { limit?: number; offset?: number }) {
  return { limit, offset }
}

export const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())
