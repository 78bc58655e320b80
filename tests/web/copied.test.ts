// The page of a home that was copied says so above its runs, until nothing waits for a person because of it.

import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { copyOf, countingVendor, homeWithFinds, writer } from '../support/copied-home.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { hasBrowser, look, PATIENCE_MS, startBrowser } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

const vendor = countingVendor()
afterAll(() => vendor.stop())

test.skipIf(!hasBrowser)('a copied home says so above its runs', async () => {
  const original = await spawnDaemon({ home: homeWithFinds() })
  vendor.hold('two')
  const path = files({ 'team.yml': writer('finds', vendor, 'one', 'two') })
  const { run_id } = await original.call('/v1/runs/start', { path })
  await vendor.wrote('two')
  const second = await spawnDaemon({ home: copyOf(original.home) })
  vendor.release()
  const browser = await startBrowser()
  try {
    const { page, complaints } = await look(browser, `${second.url}/#token=${second.token}&/runs`)
    const notice = page.getByRole('status').filter({ hasText: 'This home was copied or moved' })
    await notice.waitFor({ timeout: PATIENCE_MS })
    expect(await notice.textContent()).toContain('One run was unfinished')
    await second.call('/v1/runs/cancel', { run_id })
    await notice.waitFor({ state: 'detached', timeout: PATIENCE_MS })
    expect(complaints).toEqual([])
  } finally {
    await browser.close()
  }
})
