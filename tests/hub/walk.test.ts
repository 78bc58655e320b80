// docs/hub.md, run as it stands: every command of the walk succeeds on a new hub.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

test('every command of the walk succeeds', async () => {
  const text = await Bun.file(resolve(import.meta.dir, '../../docs/hub.md')).text()
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(match => match[1]!)
  expect(blocks.length).toBeGreaterThan(5)
  const script = ['set -euo pipefail', ...blocks].join('\n').replaceAll('choose-one', ADMIN_PASSWORD)
  const shell = Bun.spawn(['bash', '-c', script], {
    cwd: folder(),
    env: { PATH: process.env.PATH!, CADRE_HUB_URL: hub.url },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([shell.stdout.text(), shell.stderr.text()])
  expect([await shell.exited, err]).toEqual([0, ''])
  expect(out).toContain('cancelled')
  expect(out).toContain('"username":"una"')
  // Secrets are picked from replies, and no other reply has one.
  expect(out).not.toMatch(/cadre_(tok|dt)_/)
}, 30_000)
