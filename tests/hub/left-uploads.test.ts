// Temporary files of uploads in a hub's folder of files: which ones are removed, with clocks that the test sets.

import { expect, test } from 'bun:test'
import { existsSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folderStore } from '../../lib/hub/artifacts/folder.ts'
import { folder } from '../support/folder.ts'

const HOUR = 3_600_000
const NOW = 1_800_000_000_000

test('an upload that nobody goes on with for a day is removed, although hubs start daily, and no step of a clock hurries that', async () => {
  const root = folder()
  const path = join(root, `.${crypto.randomUUID()}`)
  const write = (at: number) => {
    writeFileSync(path, 'half')
    utimesSync(path, at / 1_000, at / 1_000)
  }
  let lived = 0
  const hub = () => folderStore(root, 1_000, () => lived)
  write(NOW)

  const one = hub()
  await one.tidy(NOW)
  lived += 2 * HOUR
  await one.tidy(NOW + 2 * HOUR)
  expect(existsSync(path)).toBe(true)

  // The clock is two days ahead while the file grows.
  const two = hub()
  await two.tidy(NOW + 48 * HOUR)
  lived += HOUR
  write(NOW + 1)
  await two.tidy(NOW + 49 * HOUR)
  lived += HOUR - 1
  await two.tidy(NOW + 50 * HOUR)
  expect(existsSync(path)).toBe(true)

  // The next day another process serves, for a little more than an hour.
  const three = hub()
  await three.tidy(NOW + 26 * HOUR)
  expect(existsSync(path)).toBe(true)
  lived += HOUR
  await three.tidy(NOW + 27 * HOUR)
  expect(existsSync(path)).toBe(false)
})
