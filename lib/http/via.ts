// How a request was made: with the command line, from a page, or with any other program. Callers say so themselves, so it
// is a word for people, and nothing is allowed because of it.

import type { Via } from '../wire/records/started-by.ts'

/** What the command line sends as its `user-agent`. */
export const COMMAND_LINE = 'cadre-cli'

export function viaOf(headers: Headers): Via {
  if (headers.get('user-agent') === COMMAND_LINE) return 'cli'
  // Browsers send one of these with each POST of a page, and pages cannot leave them out.
  return headers.has('sec-fetch-site') || headers.has('origin') ? 'page' : 'api'
}
