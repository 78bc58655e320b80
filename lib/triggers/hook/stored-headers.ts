// The headers of a delivery that are kept, and that expressions see as `headers`: both are the same, so that firing a stored
// delivery again decides as it did. What would let a reader send deliveries, or act for the sender, is left out.

import { signatureHeaders } from './schemes.ts'
import type { HookSpec } from './spec.ts'

/** Parts of names that mean a credential, whoever sends it; proxies add theirs. */
const CREDENTIAL =
  /authorization|cookie|credential|hmac|jwt|passw|secret|signature|token|api[-_]?key|(^|[-_.])auth([-_.]|$)/

/** The time of a signature is none. */
const TIME = /[-_]timestamp$/

/** By their names in small letters. */
export function storedHeaders({ how }: HookSpec, headers: Headers): Record<string, string> {
  const own = new Set(signatureHeaders(how.check).map(name => name.toLowerCase()))
  const kept = [...headers].filter(([name]) => !own.has(name) && (!CREDENTIAL.test(name) || TIME.test(name)))
  return Object.fromEntries(kept)
}
