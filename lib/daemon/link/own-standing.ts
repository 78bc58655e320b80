// How this daemon stands, for its hub.

import { statfs } from 'node:fs/promises'
import { messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { shortText } from '../../text/short-text.ts'
import { MOST_TEXT, type Standing } from '../../wire/standing.ts'
import type { Daemon } from '../runs/daemon.ts'
import { countsOf } from './outbox/outbox.ts'

/** `credentials`: those whose end is known. With `sync: status` no text leaves this machine. */
export async function ownStanding(
  { home, engine, lastError, settings }: Pick<Daemon, 'home' | 'engine' | 'lastError' | 'settings'>,
  credentials: { name: string; at: number }[],
): Promise<Standing> {
  const outbox = countsOf(engine.store)
  const { bavail, bsize } = await statfs(home)
  return {
    disk_free: bavail * bsize,
    ...(settings.value('sync') !== 'status' && {
      last_error: lastError && { at: lastError.at, text: shortText(lastError.text, MOST_TEXT) },
    }),
    outbox,
    credentials_expire: credentials,
  }
}

/** What the next heartbeats say of it. */
export class OwnStanding {
  readonly #look: () => Promise<Standing>
  readonly #log: Pick<Log, 'warn'>
  /** Null before it was looked at. */
  latest: Standing | null = null

  constructor(look: () => Promise<Standing>, log: Pick<Log, 'warn'>) {
    this.#look = look
    this.#log = log
  }

  /** `clock_ms`: by how much the clock is ahead of that of the hub. Never throws. */
  async renew(clock_ms: number): Promise<void> {
    try {
      this.latest = { ...(await this.#look()), clock_ms }
    } catch (error) {
      this.#log.warn('how the daemon stands could not be found out', { error: messageOf(error) })
    }
  }
}
