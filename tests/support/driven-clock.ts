// The clocks of a hub whose time a test says: all of it was lived and is believed.

import { type HubClock, momentOf } from '../../lib/hub/core/hub-clock.ts'

export const drivenClock = (now: () => number): HubClock => ({
  ...{ now, lived: now, believed: now, keptSince: now },
  ahead: () => 0,
  inStatement: () => momentOf(now()),
})
