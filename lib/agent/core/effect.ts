// What an action or a request changes outside, and which requests may therefore be repeated.

/**
 * What an action changes outside: `read` changes nothing, `idempotent` has the same result however often it is
 * repeated, and `once` has a new effect each time.
 * @example effect: entry => (entry.mode === 'replace' ? 'idempotent' : 'once')
 */
export type Effect = 'read' | 'idempotent' | 'once'

export function isReading(method: string): boolean {
  return method === 'GET' || method === 'HEAD'
}

/** Whether a request changes nothing. `effect` is that of the action, `own` that of the request if it has one. */
export function onlyReads(method = 'GET', effect: Effect, own?: Effect): boolean {
  return own === undefined ? isReading(method.toUpperCase()) || effect === 'read' : own === 'read'
}

/** Whether a request may be sent again when nobody knows whether it was processed. */
export function mayRepeat(method: string, effect: Effect, own?: Effect): boolean {
  if (onlyReads(method, effect, own) || own === 'idempotent') return true
  return own === undefined && effect === 'idempotent' && (method === 'PUT' || method === 'DELETE')
}
