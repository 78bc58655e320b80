// Whether the clocks of the machines of hubs differ. What hubs share goes by the clock of the database, so nothing ends early
// or late. But the times in their logs and traces are not comparable, and a store of files refuses what a hub with a wrong
// clock signs.

import { eq } from 'drizzle-orm'
import type { Hub } from '../core/hub.ts'
import { livingHubs } from '../core/living-hubs.ts'

/** Clocks that are set by the network differ by less. */
const MOST_MS = 2_000
/** A smaller change is not written. */
const CHANGE_MS = 250

/** Notes by how much the clock of this hub is ahead, and compares those of all hubs. */
export async function compareClocks({ id, store, clock, log, clocksApart }: Hub): Promise<void> {
  const { hubProcesses } = store
  const ahead = clock.ahead()
  const hubs = await livingHubs(store)
  const mine = hubs.find(hub => hub.id === id)
  if (mine && (mine.clock_ahead === null || Math.abs(mine.clock_ahead - ahead) > CHANGE_MS)) {
    mine.clock_ahead = ahead
    await store.write(tx => tx.update(hubProcesses).set({ clock_ahead: ahead }).where(eq(hubProcesses.id, id)))
  }
  const said = hubs.flatMap(({ id, clock_ahead }) => (clock_ahead === null ? [] : [{ hub: id, ahead_ms: clock_ahead }]))
  const all = said.map(({ ahead_ms }) => ahead_ms)
  const ms = all.length < 2 ? 0 : Math.max(...all) - Math.min(...all)
  if (ms > MOST_MS && clocksApart.ms <= MOST_MS) {
    log.warn('the clocks of hubs differ: set them by the network (NTP)', { apart_ms: ms, this_hub: id, hubs: said })
  }
  if (ms <= MOST_MS && clocksApart.ms > MOST_MS) log.info('the clocks of hubs agree again', { apart_ms: ms })
  clocksApart.ms = ms
}

/** What `/ready` says of clocks that differ. */
export const clocksNotice = ({ clocksApart: { ms } }: Hub): { clocks_apart_ms?: number } =>
  ms > MOST_MS ? { clocks_apart_ms: ms } : {}
