// Sets a long default time-out: it is meant for tests that hang, not for tests that wait for disks and processes on a
// busy machine. Bun resets the default after each file, so it is set in every file. It is inserted into the first line,
// so that no other line number changes.

import { afterAll } from 'bun:test'
import { plugin } from 'bun'
import { killProcesses } from './daemon.ts'
import { removeFolders } from './folder.ts'
import { endLeft } from './left.ts'

const DEFAULT_MS = 60_000
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
