// The names of the people whom a page mentions. Storage format has only the ids of their accounts.
// https://developer.atlassian.com/cloud/confluence/rest/v2/api-group-user/

import { AgentError } from '../../agent/core/agent-error.ts'
import { confluence } from './confluence-pages.ts'
import { Reply } from './confluence-replies.ts'
import type { AtlassianContext } from './site.ts'

/** The greatest number of accounts in one request. */
const MOST = 250
const MENTION = /<ri:user\s[^<>]*ri:account-id="([^"<>&]+)"/g

/** The display names of the mentioned accounts, by id. Those that the account may not see are left out. */
export async function namesIn(storage: string, context: AtlassianContext): Promise<Map<string, string>> {
  const ids = [...new Set([...storage.matchAll(MENTION)].map(([, id]) => id!))]
  const names = new Map<string, string>()
  for (let at = 0; at < ids.length; at += MOST) {
    try {
      const { results } = await confluence(context)<{ results: { accountId: string; displayName?: string }[] }>(
        'get the names of mentioned people',
        '/wiki/api/v2/users-bulk',
        { method: 'POST', body: { accountIds: ids.slice(at, at + MOST) }, reply: Reply.users },
      )
      for (const { accountId, displayName } of results) if (displayName) names.set(accountId, displayName)
    } catch (error) {
      if (!(error instanceof AgentError) || !['forbidden', 'unauthorized', 'not_found'].includes(error.code))
        throw error
      context.log('mentioned people are shown by the ids of their accounts: the token lacks read:user:confluence')
      return names
    }
  }
  return names
}
