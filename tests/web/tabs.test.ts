// Tabs of one browser know the same: the local token of a home, which each keeps for itself, and who is signed in to a hub.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { until } from '../support/bounded.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser, PATIENCE_MS } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

describe.skipIf(!hasBrowser)('tabs', () => {
  const { programs, openDaemon, openHub } = bothPages({ mayComplain: /ERR_FAILED|status of 401/ })

  async function another(page: Page, url: string): Promise<Page> {
    const tab = await page.context().newPage()
    tab.setDefaultTimeout(PATIENCE_MS)
    await tab.goto(url)
    return tab
  }
  const kept = (page: Page, storage: 'localStorage' | 'sessionStorage') =>
    page.evaluate(`JSON.stringify({ ...${storage} })`) as Promise<string>

  test('of a home hand each other the token, keep it nowhere else, and forget it together', async () => {
    const { daemon } = await programs()
    const first = await openDaemon('settings')
    await first.getByRole('button', { name: 'Set', exact: true }).waitFor()
    // Whoever comes by the other name of this machine is led to the same origin, and to the same place.
    const second = await another(first, `${daemon.url}/#/settings`)
    await second.getByRole('button', { name: 'Set', exact: true }).waitFor()
    expect(second.url()).toBe(`http://localhost:${new URL(daemon.url).port}/#/settings`)
    for (const tab of [first, second]) {
      expect(await kept(tab, 'sessionStorage')).toContain(daemon.token)
      expect(await kept(tab, 'localStorage')).not.toContain(daemon.token)
    }
    expect(JSON.stringify(await first.context().cookies())).not.toContain(daemon.token)
    await second.getByRole('button', { name: 'Forget the token' }).click()
    await second.locator('fieldset.confirm').getByRole('button', { name: 'Forget the token' }).click()
    for (const tab of [first, second]) {
      await tab.getByLabel('Local token').waitFor()
      expect(await kept(tab, 'sessionStorage')).not.toContain(daemon.token)
    }
    // A new one finds none.
    const third = await another(first, `${daemon.url}/#/settings`)
    await third.getByLabel('Local token').fill(daemon.token)
    await third.getByRole('button', { name: 'Use it' }).click()
    for (const tab of [first, second, third]) {
      await until(async () => (await kept(tab, 'sessionStorage')).includes(daemon.token), 'the token', PATIENCE_MS)
    }
  })

  test('of a home ask the others for another token once theirs is refused', async () => {
    const { daemon } = await programs()
    const first = await openDaemon('settings')
    const set = (tab: Page) => tab.getByRole('button', { name: 'Set', exact: true })
    await set(first).waitFor()
    // A tab that was opened before the token changed: it has one, so that it asks nobody at its start.
    const { origin } = new URL(first.url())
    const second = await another(first, `${origin}/health`)
    await second.evaluate(`sessionStorage.setItem('cadre-local-token', 'old')`)
    await second.goto(`${origin}/#/settings`)
    await set(second).waitFor()
    expect(await kept(second, 'sessionStorage')).toContain(daemon.token)
  })

  test('of a home take no token that was refused', async () => {
    const { daemon } = await programs()
    const first = await openDaemon('settings')
    const { origin } = new URL(first.url())
    const second = await another(first, `${origin}/health`)
    await first.goto('about:blank')
    // It answers with the refused token before the valid one.
    await second.evaluate(`
      globalThis.asked = 0
      globalThis.channel = new BroadcastChannel('cadre-token')
      channel.onmessage = ({ data }) => {
        if (data !== 'ask') return
        asked++
        for (const token of ['old', '${daemon.token}']) channel.postMessage({ token })
      }
    `)
    await first.goto(`${origin}/health`)
    await first.evaluate(`sessionStorage.setItem('cadre-local-token', 'old')`)
    await first.goto(`${origin}/#/settings`)
    await first.getByRole('button', { name: 'Set', exact: true }).waitFor()
    expect(await kept(first, 'sessionStorage')).toContain(daemon.token)
    expect(await second.evaluate('asked')).toBe(1)
  })

  test('of a hub are signed out together', async () => {
    const { world } = await programs()
    const first = await openHub('account')
    const second = await another(first, `${world.hub.url}/#/account`)
    await second.getByRole('button', { name: 'Sign out' }).waitFor()
    // It hears of it without asking the hub.
    await first.route('**/*', route => route.abort())
    await second.getByRole('button', { name: 'Sign out' }).click()
    for (const tab of [first, second]) await tab.getByRole('heading', { name: 'Sign in' }).waitFor()
  })
})
