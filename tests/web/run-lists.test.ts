// The lists of runs of both pages in a real browser: their filters, which the server applies to all runs.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import type { Page } from 'playwright-core'
import { HELLO } from '../daemon/teams.ts'
import { change as changeHome } from '../support/aged-home.ts'
import { files } from '../support/daemon.ts'
import { addToHome, addToHub, type MadeRun, madeId } from '../support/many-runs.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

const PROGRAMS = ['daemon', 'hub'] as const

describe.skipIf(!hasBrowser)('the list of runs', () => {
  const { programs, openDaemon, openHub } = bothPages()
  const folder = files({ 'team.yml': HELLO })
  const open = { daemon: openDaemon, hub: openHub }
  const add = {
    daemon: async (made: MadeRun[]) => {
      const { daemon } = await programs()
      await daemon.call('/v1/runs/start', { path: folder, idempotency_key: 'lends its team' })
      addToHome(daemon.home, made)
    },
    hub: async (made: MadeRun[]) => addToHub((await programs()).world.hub, (await programs()).world.realm, made),
  }

  const change = {
    daemon: async (number: number, state: string) => {
      const { home } = (await programs()).daemon
      changeHome(home, 'UPDATE runs SET state = ? WHERE id = ?', state, madeId(number))
    },
    hub: async (number: number, state: string) => {
      const { store } = (await programs()).world.hub
      await store.write(tx =>
        tx
          .update(store.runs)
          .set({ state })
          .where(eq(store.runs.run_id, madeId(number))),
      )
    },
  }

  test.each(PROGRAMS)('of the %s offers every team that ever ran, and finds its runs', async program => {
    await add[program]([
      { number: 1, team: '@old/rare', run_name: 'The oldest' },
      ...Array.from({ length: 120 }, (_, n) => ({ number: 1_000 + n, team: '@a/many' })),
    ])
    const page = await open[program]('runs')
    const team = page.getByLabel('Team')
    await team.locator('option', { hasText: '@old/rare' }).waitFor({ state: 'attached' })
    await team.selectOption('@old/rare')
    await page.getByText('1 run', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'The oldest' }).waitFor()
    expect(page.url()).toContain('team=%40old%2Frare')
  })

  const names = (page: Page) => page.locator('.item .name').allTextContents()
  const place = (page: Page) => page.evaluate("document.querySelector('.virtual.list').scrollTop")
  const scroll = (page: Page, top: number) =>
    page.evaluate(`document.querySelector('.virtual.list').scrollTop = ${top}`)
  const batch = (from: number, count: number, team: string): MadeRun[] =>
    Array.from({ length: count }, (_, n) => ({ number: from + n, team, run_name: `${team} ${from + n}` }))

  test.each(PROGRAMS)(
    'of the %s holds its rows once it is touched, and new runs wait behind a button',
    async program => {
      await add[program](batch(5_000, 30, '@a/held'))
      const page = await open[program]('runs?team=held')
      const first = page.locator('.item .name').first()
      await page.mouse.move(0, 0)
      await page.getByText('30 runs', { exact: true }).waitFor()
      // Untouched, it shows what comes.
      await add[program](batch(5_030, 1, '@a/held'))
      await page.getByRole('link', { name: '@a/held 5030' }).waitFor()
      const list = page.locator('.virtual.list')
      const box = (await list.boundingBox())!
      await page.mouse.move(box.x + 200, box.y + 30)
      const held = await names(page)
      await add[program]([{ number: 5_031, team: '@a/held', run_name: 'The newest' }, ...batch(5_032, 4, '@a/held')])
      const button = page.getByRole('button', { name: '5 new' })
      await button.waitFor()
      expect(await names(page)).toEqual(held)
      expect(await list.boundingBox()).toEqual(box)
      await button.click()
      await page.getByRole('link', { name: 'The newest' }).waitFor()
      expect(await first.textContent()).toBe('@a/held 5035')
      await button.waitFor({ state: 'detached' })

      // Further down as well, without a pointer.
      await page.mouse.move(0, 0)
      await scroll(page, 300)
      await page.getByText('36 runs', { exact: true }).waitFor()
      await add[program](batch(5_036, 1, '@a/held'))
      await page.getByRole('button', { name: '1 new' }).waitFor()
      expect(await place(page)).toBe(300)
    },
  )

  test.each(PROGRAMS)('of the %s keeps a run in its row that no longer fits the filters', async program => {
    await add[program]([
      { number: 6_000, team: '@a/fits', state: 'failed', run_name: 'Stays' },
      { number: 6_001, team: '@a/fits', state: 'failed', run_name: 'Leaves' },
      { number: 6_002, team: '@a/fits', state: 'failed', run_name: 'Above' },
    ])
    const page = await open[program]('runs?team=fits&state=failed')
    await page.locator('.item', { hasText: 'Above' }).hover()
    await change[program](6_001, 'completed')
    await page.locator('.item', { hasText: 'Leaves' }).getByText('completed').first().waitFor()
    expect(await names(page)).toEqual(['Above', 'Leaves', 'Stays'])
    await page.mouse.move(0, 0)
    await page.getByText('2 runs', { exact: true }).waitFor()
    expect(await names(page)).toEqual(['Above', 'Stays'])
  })

  test.each(PROGRAMS)('of the %s is the same place when its reader comes back', async program => {
    await add[program](batch(10_000, 250, '@a/back'))
    const page = await open[program]('runs?team=back')
    await page.getByText('250 runs', { exact: true }).waitFor()
    await scroll(page, 56 * 150 + 20)
    const row = page.locator('.item', { hasText: '@a/back 10095' })
    await row.waitFor()
    const [before, address] = [await row.boundingBox(), page.url()]
    await row.getByRole('link').click()
    await page.getByRole('heading', { name: '@a/back 10095' }).waitFor()
    await add[program](batch(10_250, 2, '@a/back'))
    await page.goBack()
    await row.waitFor()
    expect(page.url()).toBe(address)
    expect(await row.boundingBox()).toEqual(before)
    expect(await page.locator('.item.chosen .name').textContent()).toBe('@a/back 10095')
    await page.getByRole('button', { name: '2 new' }).waitFor()
    expect(await row.boundingBox()).toEqual(before)
    // A link begins at the top.
    await page.getByRole('navigation').getByRole('link', { name: 'Runs' }).click()
    await page.getByLabel('Team').selectOption('@a/back')
    await page.getByText('252 runs', { exact: true }).waitFor()
    expect(await place(page)).toBe(0)
  })

  test.each(PROGRAMS)('of the %s has views: filters under a name, which the address says', async program => {
    await add[program]([
      { number: 50_000, team: '@v/viewed', state: 'failed', run_name: 'Seen in a view' },
      { number: 50_001, team: '@v/viewed', run_name: 'Not in that view' },
    ])
    const page = await open[program]('runs')
    await page.getByLabel('Team').selectOption('@v/viewed')
    await page.getByLabel('State').selectOption('failed')
    await page.getByLabel('Search').fill('seen in')
    await page.getByText('1 run', { exact: true }).waitFor()
    const address = page.url()
    await page.getByRole('button', { name: 'Save view' }).click()
    await page.keyboard.type('Broken ones')
    await page.keyboard.press('Enter')
    const view = page.locator('.views select')
    await view.waitFor()
    expect(await view.inputValue()).toBe('Broken ones')

    await page.getByRole('navigation').getByRole('link', { name: 'Runs' }).click()
    await page.getByRole('link', { name: 'Not in that view' }).waitFor()
    expect(await view.inputValue()).toBe('')
    await view.selectOption('Broken ones')
    await page.getByText('1 run', { exact: true }).waitFor()
    expect(page.url()).toBe(address)
    expect(await page.getByLabel('Search').inputValue()).toBe('seen in')
    await page.goBack()
    await page.getByRole('link', { name: 'Not in that view' }).waitFor()
    await page.goForward()
    await page.reload()
    await page.getByRole('link', { name: 'Seen in a view' }).waitFor()
    await page.getByRole('button', { name: 'Delete view' }).click()
    await view.waitFor({ state: 'detached' })
    expect(page.url()).toBe(address)
    await page.getByRole('button', { name: 'Save view' }).waitFor()
  })
})
