// What axe finds on pages of the dashboard, in light and in dark: nothing is passed over. Only two rules look at colours, so
// that the dark page is asked only about these.

import { expect } from 'bun:test'
import axe from 'axe-core'
import type { Page } from 'playwright-core'

const RULES_OF_COLOUR = ['color-contrast', 'link-in-text-block']

/** `place` of the daemon's dashboard is opened, and looked at when `shown` can be seen. */
export async function expectAccessibleAt(page: Page, url: string, place: string, shown: string): Promise<void> {
  await page.goto(`${url}/#/${place}`)
  await page.locator('main h1').waitFor()
  await page.locator(shown).first().waitFor()
  await expectAccessible(page, place)
}

/** Looks at the page as it stands. At 640 pixels it is as one of 1280 at a zoom of 200 %. */
export async function expectAccessible(page: Page, place: string): Promise<void> {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.evaluate(axe.source)
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  expect([place, 'light', ...(await findingsOf(page, {}))]).toEqual([place, 'light'])
  // Somebody who asks for less motion sees none.
  expect([place, await page.evaluate('document.getAnimations().map(each => each.animationName)')]).toEqual([place, []])
  const size = page.viewportSize()!
  for (const width of [640, 360]) {
    await page.setViewportSize({ width, height: 740 })
    expect([place, await page.evaluate('document.documentElement.scrollWidth')]).toEqual([place, width])
  }
  await page.setViewportSize(size)
  await page.emulateMedia({ colorScheme: 'dark' })
  expect([place, 'dark', ...(await findingsOf(page, { runOnly: RULES_OF_COLOUR }))]).toEqual([place, 'dark'])
}

/** Axe describes all elements that pass, too, unless only violations are asked for. */
async function findingsOf(page: Page, options: axe.RunOptions): Promise<string[]> {
  const { violations, passes } = (await page.evaluate(
    `axe.run(${JSON.stringify({ ...options, resultTypes: ['violations'] })})`,
  )) as axe.AxeResults
  expect(passes.length).toBeGreaterThan(0)
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 150)).join(' | ')}`)
}
