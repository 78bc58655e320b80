// agents/list: the catalogue, format version 1.0.0.

import { closed } from '../../schema.ts'
import type { Routing } from '../routes.ts'

export function agentRoutes({ api, daemon, guard }: Routing): void {
  const access = guard({ local: 'open', remote: null })
  api.post('/v1/agents/list', { access, body: closed({}), summary: 'The agents that are installed' }, () =>
    daemon.catalogue.list(),
  )
}
