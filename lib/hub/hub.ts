// What the hub's routes share: the database, the clock, and the little state that is kept in memory.

import type { Store } from '../../db/hub/store.ts'
import type { Log } from '../log.ts'
import { type Bell, createBell } from './bell.ts'
import { LastSeen } from './last-seen.ts'
import { createMemo, type Memo } from './memo.ts'
import { PackageChecker } from './packages/packages.ts'
import { createSealer, type Sealer } from './sealer.ts'
import { createThrottle, type Throttle } from './throttle.ts'

export interface Hub {
  readonly store: Store
  readonly log: Log
  /** The current time in epoch milliseconds. */
  readonly now: () => number
  readonly memo: Memo
  readonly lastSeen: LastSeen
  readonly bell: Bell
  readonly throttle: Throttle
  readonly sealer: Sealer
  /** Whether the caller's address is read from `X-Forwarded-For` (`CADRE_TRUST_PROXY`). */
  readonly trustProxy: boolean
  readonly checker: PackageChecker
  close(): Promise<void>
}

export interface HubOptions {
  store: Store
  log: Log
  now?: () => number
  /** Encrypts private dispatch keys at rest (`CADRE_HUB_KEY`). */
  key?: string | undefined
  trustProxy?: boolean
  /** Where agents that the user added lie: in the hub's home, and in the folder `CADRE_AGENTS`. */
  home: string
  agentsFolder?: string | undefined
}

export function createHub(options: HubOptions): Hub {
  const { store, log, now = Date.now, key, trustProxy = false } = options
  if (!key) log.warn('CADRE_HUB_KEY is not set: private dispatch keys are stored unencrypted')
  const checker = new PackageChecker({ home: options.home, extra: options.agentsFolder })
  const lastSeen = new LastSeen(store, log, now)
  return {
    store,
    log,
    now,
    memo: createMemo(() => store.epoch()),
    lastSeen,
    bell: createBell(store.channel),
    throttle: createThrottle(store, now),
    sealer: createSealer(key),
    trustProxy,
    checker,
    async close() {
      await checker.close()
      await lastSeen.close()
      await store.close()
    },
  }
}
