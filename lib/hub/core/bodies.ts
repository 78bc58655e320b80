// What the hub checks of values from outside besides their form.

import { CadreError } from '../../error.ts'
import { MOST_ID } from '../../wire/parts.ts'

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

export const isUuid = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text)

export const iso = (at: number | null): string | null => (at === null ? null : new Date(at).toISOString())
