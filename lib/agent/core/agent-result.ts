// What an agent's function returns.

import type { Json } from '../../json.ts'

/**
 * The result of an agent's function. Templates of later phases read `data`.
 * @example return { text: `ticket ${id} is open`, data: { id, status: 'open' } }
 */
export interface AgentResult {
  /** One line that summarises the result for people. */
  text: string
  data?: Json
  /** The vendor's id and address of what was written. They are kept in the receipt. */
  external?: { id?: string; url?: string }
}
