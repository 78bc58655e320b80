// Ctrl+K goes to runs, teams, reviews and pages, and does the actions of the page that is shown, on both programs.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { files } from '../support/daemon.ts'
import { expectAccessible } from './axe.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

const WAITS = {
  'team.yml': `name: "@local/slow-report"
version: 1.0.0
phases:
  - { name: wait, agent: exec, commands: [{ name: c, run: 'until [ -e go ]; do sleep 0.05; done' }] }
`,
}
const ASKS = {
  'team.yml': `name: "@local/asks-first"
version: 1.0.0
phases:
  - { name: approve, type: gate, review: { prompt: "Publish it?" } }
`,
}

describe.skipIf(!hasBrowser)('Ctrl+K', () => {
  const { programs, openDaemon, openHub } = bothPages()

  /** Types into the field what is to be found, and waits until it is the chosen one. */
  async function find(page: Page, text: string, option: string | RegExp): Promise<void> {
    // The one before closes a moment after its page has opened.
    await page.locator('dialog').waitFor({ state: 'detached' })
    await page.keyboard.press('Control+k')
    const field = page.getByRole('combobox', { name: 'Go to, or do' })
    await field.waitFor()
    await field.fill(text)
    const wanted = page.getByRole('option', { name: option }).first()
    await wanted.waitFor()
    while ((await wanted.getAttribute('aria-selected')) !== 'true') await page.keyboard.press('ArrowDown')
    const active = await field.getAttribute('aria-activedescendant')
    expect([active, await page.locator('input:focus').count()]).toEqual([await wanted.getAttribute('id'), 1])
  }
  const heading = (page: Page, name: string) => page.locator('main').getByRole('heading', { name }).waitFor()

  test('goes to a run, a team, a review and a page of a daemon, and does an action', async () => {
    const { daemon } = await programs()
    const path = files(WAITS)
    const { run_id } = await daemon.call('/v1/runs/start', { path, run_name: 'Numbers of May' })
    const asked = await daemon.call('/v1/runs/start', { path: files(ASKS) })
    const page = await openDaemon('runs')
    await heading(page, 'Runs')
    await find(page, 'of may', /Numbers of May/)
    await page.keyboard.press('Enter')
    await heading(page, 'Numbers of May')
    // An action asks as it does when its button is pressed, and nothing was sent.
    await find(page, 'cancel', /^(Actions of this page )?Cancel/)
    await page.keyboard.press('Enter')
    await page.locator('fieldset.confirm .danger:focus').waitFor()
    await page.keyboard.press('Escape')
    await page.locator('button:focus', { hasText: 'Cancel' }).waitFor()
    await find(page, run_id.slice(0, 20), new RegExp(run_id))
    await page.keyboard.press('Escape')
    await page.locator('dialog').waitFor({ state: 'detached' })
    await page.locator('button:focus', { hasText: 'Cancel' }).waitFor()

    await find(page, 'slow-report runs', /@local\/slow-report/)
    await page.keyboard.press('Enter')
    await page.waitForURL(/#\/runs\?team=%40local%2Fslow-report$/)
    await find(page, 'publish it', /@local\/asks-first › approve/)
    await page.keyboard.press('Enter')
    await page.getByRole('region', { name: 'Review of approve' }).waitFor()
    await find(page, 'works', /Workspaces.*g w/)
    await page.keyboard.press('Enter')
    await heading(page, 'Workspaces')
    // It opens from a field, too, and by its button.
    await page.getByLabel('Folder').focus()
    await find(page, '', /Runs.*g r/)
    await expectAccessible(page, 'palette')
    await page.keyboard.press('Escape')
    await page.locator('input:focus').waitFor()
    await page.getByRole('button', { name: /^Find/ }).click()
    await page.getByRole('combobox', { name: 'Go to, or do' }).fill('no such thing at all')
    await page.getByText('Nothing was found.').waitFor()
    writeFileSync(join(path, 'go'), '')
    await daemon.call('/v1/runs/cancel', { run_id: asked.run_id })
    await daemon.ended(run_id)
  })

  test('goes to a run and a page of a hub, and shows what the reader may not', async () => {
    const { world } = await programs()
    const { hub, realm } = world
    await hub.account('looker')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: 'looker', role: 'member' })
    const run = await world.dispatch('train', { run_name: 'Model of May' })
    const page = await openHub('daemons', 'looker')
    await find(page, 'model of', /Model of May/)
    await page.keyboard.press('Enter')
    await heading(page, 'Model of May')
    await find(page, 'cancel', /Operators and admins of .* do this/)
    await page.keyboard.press('Enter')
    expect(await page.locator('dialog[open]').count()).toBe(1)
    await page.keyboard.press('Escape')
    await find(page, 'packages', /Packages.*g p/)
    await page.getByRole('option', { name: /Packages/ }).click()
    await heading(page, 'Packages')
    await hub.ok(hub.admin, 'dispatch/cancel', { run_id: run })
  })
})
