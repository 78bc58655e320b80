// Uploads into a hub's folder of files: which temporary files are removed, with clocks that the test sets, and whose disk is
// full.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folderStore } from '../../lib/hub/artifacts/folder.ts'
import { smallDisk } from '../support/disk.ts'
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

const disk = smallDisk()
afterAll(() => disk?.[Symbol.dispose]())
test.skipIf(disk === null)('a full disk is told as that of the store, and keeps nothing of the upload', async () => {
  const content = new Uint8Array(100_000).fill(1)
  const sha256 = new Bun.CryptoHasher('sha256').update(content).digest('hex')
  const place = {
    realm_id: crypto.randomUUID(),
    root_run_id: crypto.randomUUID(),
    run_id: crypto.randomUUID(),
    path: 'files/a/b',
  }
  const file = { ...place, bytes: content.byteLength, sha256 }
  const store = folderStore(disk!.path, 1_000_000)
  const send = () => store.receive!(file, new Blob([content]).stream())
  disk!.fill()
  await expect(send()).rejects.toMatchObject({
    code: 'unavailable',
    message: 'the disk of the store of CADRE_ARTIFACTS takes no more writes: free some space there',
  })
  disk!.free()
  expect(readdirSync(disk!.path).filter(name => name.startsWith('.'))).toEqual([])
  await send()
  expect(await store.has(file)).toBe(true)
})
