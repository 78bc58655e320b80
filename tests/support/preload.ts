// A time-out is for what hangs, not for what a busy machine serves late: tests wait for disks and processes. Bun forgets a
// default at the end of each file, so it is set at the head of every one, on its first line: no other line moves.

import { afterAll } from 'bun:test'
import { plugin } from 'bun'
import { killProcesses } from './daemon.ts'
import { removeFolders } from './folder.ts'
import { endLeft } from './left.ts'

const DEFAULT_MS = 20_000
const HEAD = `import { setDefaultTimeout as $setDefaultTimeout } from 'bun:test'; $setDefaultTimeout(${DEFAULT_MS});`

plugin({
  name: 'default time-out',
  setup(build) {
    build.onLoad({ filter: /\/tests\/.*\.test\.ts$/ }, async ({ path }) => ({
      loader: 'ts',
      contents: HEAD + (await Bun.file(path).text()),
    }))
  },
})

afterAll(async () => {
  await killProcesses()
  await endLeft()
  removeFolders()
}, 60_000)
