// The hub's page on an older copy: it says so, and an admin of the realm goes on without a daemon that is gone.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { CopiedHub, PASSWORD, sqlitePlace } from '../support/older-copy.ts'
import { expectAccessible } from '../web/axe.ts'
import { hasBrowser, look, startBrowser } from '../web/browser.ts'

test.skipIf(!hasBrowser)(
  'the queue says what it waits for, and the button ends that',
  async () => {
    const place = sqlitePlace('restore')
    await using hub = await CopiedHub.start(place.database)
    await hub.daemon('ada')
    await hub.leave('ada')
    await hub.dispatch('one')
    await place.copy()
    await hub.restore(place)
    const browser = await startBrowser()
    try {
      const { page, complaints } = await look(browser, `${hub.url}/#/queue`)
      await page.getByLabel('User name').fill('admin')
      await page.getByLabel('Password').fill(PASSWORD)
      await page.getByRole('button', { name: 'Sign in' }).click()
      const notice = page.getByRole('region', { name: 'Older copy of the database' })
      await notice.getByText('ada: has not called since').waitFor()
      await page.getByRole('cell', { name: 'daemon ada to report' }).waitFor()
      await expectAccessible(page, 'queue')
      await notice.getByRole('button', { name: 'Go on without it' }).click()
      await notice.locator('fieldset.confirm').getByRole('button', { name: 'Go on without it' }).click()
      await notice.waitFor({ state: 'detached' })
      expect(complaints).toEqual([])
      const waits = async () => (await hub.ok('dispatch/queue', { realm_id: hub.realm })).jobs[0]
      await until(async () => (await waits()).state === 'waiting', 'the job is released')
    } finally {
      await browser.close()
    }
  },
  120_000,
)
