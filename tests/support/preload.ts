// Tests wait for disks and processes, which a busy machine serves late. A time-out is for what hangs, not for what is slow.

import { setDefaultTimeout } from 'bun:test'

setDefaultTimeout(60_000)
