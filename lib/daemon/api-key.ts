// What must not be an API key: the token of a session, which ends with the session. What works unattended needs a
// durable one.

import { CadreError } from '../error.ts'
import type { Json } from '../json.ts'
import { isSessionForm } from '../secret-form.ts'

export function noSession(): CadreError {
  return new CadreError(
    'invalid_request',
    'the api key is a session token, which ends with its session: mint a durable one with auth/generate_token',
  )
}

/** Throws `invalid_request` for a key that shows by itself that it is a session's. */
export function refuseSessionForm(key: Json | undefined): void {
  if (typeof key === 'string' && isSessionForm(key.trim())) throw noSession()
}
