// The words of watches. They are apart from what scans, which a command line that only lists its options does without.

/** What can happen to a file. */
export const WATCHED = ['added', 'changed', 'removed'] as const
export type Watched = (typeof WATCHED)[number]

export const WATCH_IDENTITIES = ['stat', 'sha256'] as const

/** What a watch does that does not say it. */
export const WATCH_DEFAULTS = {
  ...{ match: ['*'], ignore: [], depth: 1, on: ['added', 'changed'] as Watched[], settle: '2s', batch: null },
  ...{ poll: '30s', initial: false, identity: 'stat', claim: false },
} as const
