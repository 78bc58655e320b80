// `audit`: what was done at a hub, by whom and from where, newest first.

import { ListAudit } from '../../../wire/hub-admin-calls.ts'
import { homeFolder } from '../../home.ts'
import { inline } from '../../terminal/paint.ts'
import { hubOf } from '../hub-client.ts'
import { orgOf } from './names.ts'
import { list, type PageOptions, pageOf, relative } from './output.ts'

interface Filter {
  org?: string
  action?: string
  /** Epoch milliseconds. */
  since?: number
  until?: number
}

export async function listAudit(options: PageOptions & Filter): Promise<void> {
  const client = await hubOf(homeFolder(options.home), options)
  const { org, action, since, until } = options
  const found = await client.call(ListAudit, {
    ...pageOf(options),
    ...(org !== undefined && { org_id: (await orgOf(client, org)).id }),
    ...(action !== undefined && { action }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
  })
  list(options, found, found.audit, (entry, paint) => [
    relative(entry.at),
    entry.username ?? paint.dim('nobody signed in'),
    paint.bold(entry.action),
    inline(entry.target ?? ''),
    paint.dim(inline(entry.address ?? '')),
  ])
}
