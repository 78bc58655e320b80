// What people set wrong: the key of one of two hubs, the certificate of the proxy, a clock.

import { fakeClock } from '../../tests/support/fake-clock.ts'
import { folder } from '../../tests/support/folder.ts'
import { FAULT_MS } from './database-rows.ts'
import { EndedError } from './program.ts'
import type { Row } from './row.ts'

const wrongKey: Row = {
  name: 'wrong-key',
  async run(world, mark) {
    await world.stopHub(1)
    mark.fault()
    const refusal = await world.startHub(1, { CADRE_HUB_KEY: 'another-key' }).catch((error: unknown) => error)
    await Bun.sleep(FAULT_MS)
    if (!(refusal instanceof EndedError)) throw new Error('a hub starts with a wrong key')
    await world.startHub(1)
    mark.mended()
    return [`the hub ended with ${refusal.code}: ${refusal.said.trim()}`]
  },
}

/** A daemon counts as without a hub a while after the last answer, and the alert waits for more. */
const UNREACHED_MS = 75_000

const wrongCertificate: Row = {
  name: 'wrong-certificate',
  async run(world, mark) {
    await world.stopProxy()
    mark.fault()
    await world.startProxy(folder())
    await Bun.sleep(UNREACHED_MS)
    await world.stopProxy()
    await world.startProxy()
    mark.mended()
    return undefined
  },
}

const AHEAD_MS = 600_000

function aheadClock() {
  const clock = fakeClock()
  if (clock === null) throw new Error('libfaketime is missing (package faketime)')
  return clock
}

function ahead(name: string, whose: 'secondHub' | 'firstDaemon'): Row {
  let clock: ReturnType<typeof aheadClock>
  return {
    name,
    options() {
      clock = aheadClock()
      return { [whose]: clock.env }
    },
    async run(_, mark) {
      clock.set(AHEAD_MS)
      mark.fault()
      await Bun.sleep(FAULT_MS)
      clock.set(0)
      mark.mended()
      return undefined
    },
    isWell: async world => (await Promise.all([world.ready(0), world.ready(1)])).flat().length === 0,
  }
}

export const SETTINGS_ROWS: Row[] = [
  wrongKey,
  wrongCertificate,
  ahead('clock-of-hub-ahead', 'secondHub'),
  ahead('clock-of-daemon-ahead', 'firstDaemon'),
]
