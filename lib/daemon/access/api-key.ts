// Refuses the token of a session as an API key. It ends with the session, but unattended work needs a durable
// credential.

import { CadreError } from '../../error.ts'
import type { Json } from '../../json.ts'
import { isSessionForm } from '../../secrets/secret-form.ts'

export function noSession(): CadreError {
  return new CadreError(
    'invalid_request',
    'the api key is a session token, which ends with its session: mint a durable one (`tokens create`)',
  )
}

/** Throws `invalid_request` when the key has the form of a session token. */
export function refuseSessionForm(key: Json | undefined): void {
  if (typeof key === 'string' && isSessionForm(key.trim())) throw noSession()
}
