// Pages on paper: what is folded, or drawn only where somebody looks, is printed as a whole.

import { describe, expect, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser, PATIENCE_MS } from './browser.ts'

const MAP = files({
  'team.yml': `name: "@local/many"
version: 1.0.0
phases:
  - { name: say, agent: exec, commands: [{ name: c, run: "echo said" }] }
  - { name: each, type: map, items: "{{ lists.range(300) }}", key: "item-{{ string(item) }}", team: ./item }
`,
  'item/team.yml': `name: "@local/item"
version: 1.0.0
phases:
  - { name: none, when: "{{ false }}", agent: exec, commands: [{ name: c, run: "true" }] }
`,
})

/** Waits until `count` visible elements fit `selector` on paper, and returns their texts. */
async function printed(page: Page, selector: string, count: number): Promise<string> {
  await page.emulateMedia({ media: 'print' })
  await page.evaluate("dispatchEvent(new Event('beforeprint'))")
  const shown = page.locator(selector).filter({ visible: true })
  await until(async () => (await shown.count()) === count, `${count} of ${selector} are printed`, PATIENCE_MS)
  const text = (await shown.allTextContents()).join('\n')
  // Nothing is cut off behind a scroll bar.
  const last = (await shown.last().boundingBox())!
  expect(await page.evaluate('document.documentElement.scrollHeight')).toBeGreaterThanOrEqual(last.y + last.height)
  await page.emulateMedia({ media: 'screen' })
  await page.evaluate("dispatchEvent(new Event('afterprint'))")
  await until(async () => (await shown.count()) < 100, 'the screen is drawn as before', PATIENCE_MS)
  return text
}

describe.skipIf(!hasBrowser)('on paper', () => {
  const { programs, openDaemon } = bothPages()

  test('a tree has all of its rows, and phases all that they did', async () => {
    const { daemon } = await programs()
    const { run_id } = await daemon.call('/v1/runs/start', { path: MAP })
    await daemon.ended(run_id)
    const page = await openDaemon(`runs/${run_id}/tree`)
    await page.getByRole('row').filter({ hasText: 'item-0' }).first().waitFor()
    await printed(page, '.branch .name:has-text("item-")', 300)

    await page.goto(`${daemon.url}/#/runs/${run_id}`)
    await page.locator('.phase', { hasText: 'say' }).first().waitFor()
    expect(await printed(page, '.phase .opened', 2)).toContain('said')
    expect(await page.locator('.phase .opened').count()).toBe(0)
  })
})
