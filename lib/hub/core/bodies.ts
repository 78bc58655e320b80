// The parts of request bodies that only routes of the hub use.

import { CadreError } from '../../error.ts'
import { Type } from '../../schema/type.ts'
import { Id, MOST_ID } from '../../wire/parts.ts'

export const OrgId = Type.Union([Id, Type.String({ pattern: '^[1-9][0-9]{0,9}$', description: 'its decimal string' })])
export const Username = Type.String({
  pattern: '^[a-z0-9][a-z0-9._-]{0,62}$',
  'x-expected': 'a name of at most 63 small letters, digits, ., _ and -',
})
export const Password = Type.String({ minLength: 8, maxLength: 1_000 })
/** A secret that the hub looks up by its hash. */
export const Secret = Type.String({ maxLength: 200 })

const RESERVED = new Set(['local', 'api', 'new', 'settings'])

/** Ids above the greatest possible id are mapped to it. No org has that id, so the look-up finds nothing. */
export const orgId = (id: number | string): number => Math.min(Number(id), MOST_ID)

/** Refuses slugs that the hub's own paths need, and refuses `admin` as a scope. */
export function checkSlug(slug: string, kind: 'org' | 'scope' | 'realm'): void {
  if (!RESERVED.has(slug) && !(kind === 'scope' && slug === 'admin')) return
  throw new CadreError('invalid_request', `the slug ${slug} is reserved`, {
    details: [{ path: '/slug', message: 'is reserved' }],
  })
}

export const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())
