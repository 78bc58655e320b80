// A daemon, a hub and a browser for the tests of one file, which end with them. Whatever a page complains about fails the
// test that opened it.

import { afterAll, afterEach, expect } from 'bun:test'
import type { Page } from 'playwright-core'
import { spawnDaemon } from '../support/daemon.ts'
import { ADMIN_PASSWORD } from '../support/hub.ts'
import { hasBrowser, leave, look, type Seen, startBrowser } from './browser.ts'
import { startWorld } from './hub-world.ts'

/** `mayComplain` are complaints that the tests themselves bring about. Called in a `describe`, also in one that is skipped. */
export function bothPages({ mayComplain }: { mayComplain?: RegExp } = {}) {
  const start = async () => {
    const [daemon, world, browser] = await Promise.all([spawnDaemon(), startWorld(), startBrowser()])
    return { daemon, world, browser }
  }
  const started = hasBrowser ? start() : null
  const opened: Seen[] = []

  afterEach(async () => {
    const complaints = await leave((await started)!.browser, opened)
    expect(complaints.filter(text => !mayComplain?.test(text))).toEqual([])
  })
  afterAll(async () => {
    const found = await started
    await found?.browser.close()
    await found?.world.hub.stop()
  })

  async function open(url: string): Promise<Page> {
    const seen = await look((await started)!.browser, url)
    opened.push(seen)
    return seen.page
  }
  return {
    /** Await it in tests only: without a browser nothing is started. */
    programs: async () => (await started)!,
    /** Forgets what the open pages have complained about so far. */
    forgive(): void {
      for (const seen of opened) seen.complaints.length = 0
    },
    async openDaemon(path: string): Promise<Page> {
      const { daemon } = (await started)!
      return open(`${daemon.url}/#token=${daemon.token}&/${path}`)
    },
    /** Signs in as the admin, or as an account of a test. */
    async openHub(path: string, username = 'admin'): Promise<Page> {
      const page = await open(`${(await started)!.world.hub.url}/#/${path}`)
      await page.getByLabel('User name').fill(username)
      await page.getByLabel('Password').fill(username === 'admin' ? ADMIN_PASSWORD : 'password of a test')
      await page.getByRole('button', { name: 'Sign in' }).click()
      await page.getByRole('button', { name: 'Sign out' }).waitFor()
      return page
    },
  }
}
