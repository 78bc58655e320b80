// Tests wait for disks and processes, which a busy machine serves late. A time-out is for what hangs, not for what is slow.

import { afterAll, setDefaultTimeout } from 'bun:test'
import { removeFolders } from './folder.ts'

setDefaultTimeout(60_000)

afterAll(removeFolders)
