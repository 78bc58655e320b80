// The questions by which senders find out whether an address is a hook of somebody who knows them. They start nothing.

import type { Json } from '../../json.ts'
import { valueAt } from './body.ts'
import type { HookSpec } from './spec.ts'

/** The answer, with status 200. */
export interface Handshake {
  contentType: 'application/json' | 'text/plain; charset=utf-8'
  body: string
}

const MOST_TOKEN = 1_024

/**
 * The answer to a question that is not signed, before anything else is looked at. It repeats what was asked as plain text,
 * which a browser must not take for a page: the reply needs `X-Content-Type-Options: nosniff`.
 */
export function unsignedHandshake({ scheme }: HookSpec, query: URLSearchParams): Handshake | null {
  const [token, ...more] = scheme === 'graph' ? query.getAll('validationToken') : []
  if (!token || token.length > MOST_TOKEN || more.length > 0) return null
  return { contentType: 'text/plain; charset=utf-8', body: token }
}

/** The answer to a question whose signature fits. */
export function signedHandshake({ scheme }: HookSpec, body: Json | undefined): Handshake | null {
  const challenge = valueAt(body, ['challenge'])
  if (scheme !== 'slack' || valueAt(body, ['type']) !== 'url_verification' || typeof challenge !== 'string') return null
  return { contentType: 'application/json', body: JSON.stringify({ challenge }) }
}
