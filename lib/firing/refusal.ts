// Everything that is wrong with a trigger that somebody writes, as one error.

import { CadreError, type Detail } from '../error.ts'

export function refusal(details: readonly Detail[]): CadreError {
  const text = details.map(({ path, message }) => `${path.slice(1).replaceAll('/', '.')}: ${message}`).join('; ')
  return new CadreError('invalid_request', text, { details: [...details] })
}
