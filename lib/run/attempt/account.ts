// The account in whose name an entry of http sends its request. Whether the team may use it is asked at each attempt, and
// the credential is read anew, because both may have changed since the run began.

import type { AgentContext } from '../../agent/agent-context.ts'
import { type Account, addressBelow } from '../../agent/net/account.ts'
import type { JsonObject } from '../../json.ts'
import type { Binding, EngineHost } from '../core/core.ts'
import type { Call } from './calls.ts'

interface Borrowing {
  /** The package of the team, whose right to accounts decides: a team of a path only in a run that was started from it. */
  borrower: { name: string; fromPath: boolean }
  rootId: string
  environment: string | null
  signal: AbortSignal
}

/** The entry with its whole address, and the account that it names. Throws when the team may not use it. */
export async function withAccountOf(
  { entry }: Pick<Call, 'entry'>,
  reference: string,
  { borrower, signal, ...run }: Borrowing,
  host: Pick<EngineHost, 'account'>,
  contextOf: (binding: Omit<Binding, 'key' | 'signal'>) => AgentContext,
): Promise<{ entry: JsonObject; account: Account }> {
  const { definition, settings } = await host.account(reference, borrower, signal, run)
  const context = contextOf({ agent: reference, definition, settings, effect: 'read' })
  const account = { name: reference, ...(await definition.account!(context)) }
  return { entry: { ...entry, url: addressBelow(account, `${entry.url}`).href }, account }
}
