// The calls that change nothing, by the last part of their paths. A page makes any other call only as an action, after a
// person has asked for it.

const READS = [
  'list',
  'get',
  'get_by_id',
  'get_tokens',
  'teams',
  'members',
  'invitations',
  'webhooks',
  'webhook_deliveries',
  'versions',
  'reach',
  'download',
  'validate',
  'plan',
  'preview',
  'firings',
  'queue',
  'stats',
  'hub',
  'log',
  'stream',
  'why',
  'tree',
  'history',
  'team',
  'phases',
  'files',
  'logs',
] as const

/** The path of a call that changes nothing. `daemons/reconcile` does so while it names no daemon. */
export type ReadingPath = `${string}/${(typeof READS)[number]}` | `${string}/daemons/reconcile`

export const isReading = (path: string): path is ReadingPath => READS.some(word => path.endsWith(`/${word}`))
