// Pages compute ages and durations by the clock of the server, and name the zone in which they show a time.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD } from '../support/hub.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser, PATIENCE_MS } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

const HOUR_MS = 3_600_000

const TALKS = {
  'team.yml': `name: "@local/talks"
version: 1.0.0
phases:
  - { name: talk, agent: exec, commands: [{ name: c, run: 'until [ -e go ]; do sleep 0.05; done' }] }
`,
}

/** A clock that goes wrong by so much, in the page. */
const clockOff = (by: number) => `{
  const Right = Date
  globalThis.Date = class extends Right {
    constructor(...given) { super(...(given.length === 0 ? [Right.now() + ${by}] : given)) }
    static now() { return Right.now() + ${by} }
  }
}`

describe.skipIf(!hasBrowser)('a page', () => {
  const { programs } = bothPages()

  /** A page in Berlin, whose clock is wrong by so much. */
  async function openOff(by: number, url: string): Promise<Page> {
    const { browser } = await programs()
    const context = await browser.newContext({ timezoneId: 'Europe/Berlin' })
    const page = await context.newPage()
    page.setDefaultTimeout(PATIENCE_MS)
    if (by !== 0) await page.addInitScript(clockOff(by))
    await page.goto(url)
    return page
  }

  const running = {
    daemon: async () => {
      const { daemon } = await programs()
      const path = files(TALKS)
      const { run_id } = await daemon.call('/v1/runs/start', { path })
      const url = `${daemon.url}/#token=${daemon.token}&/runs/${run_id}`
      return { open: (by: number) => openOff(by, url), end: () => writeFileSync(join(path, 'go'), '') }
    },
    hub: async () => {
      const { world } = await programs()
      const place = folder()
      const run = await world.dispatch('waits', { inputs: { place } })
      await world.reached(run, 'running')
      const open = async (by: number) => {
        const page = await openOff(by, `${world.hub.url}/#/runs/${run}`)
        await page.getByLabel('User name').fill('admin')
        await page.getByLabel('Password').fill(ADMIN_PASSWORD)
        await page.getByRole('button', { name: 'Sign in' }).click()
        return page
      }
      return { open, end: () => world.release(place) }
    },
  }
  for (const [program, start] of Object.entries(running)) {
    test(`shows ages and durations by the clock of the server, on the ${program}`, async () => {
      const { open, end } = await start()
      for (const by of [HOUR_MS, -HOUR_MS]) {
        const page = await open(by)
        const facts = page.locator('.facts').first()
        const takes = facts.locator('.number').filter({ hasText: /^(\d+\.\d s|\d+ min .*)$/ })
        await takes.waitFor()
        expect(await facts.locator('time').textContent()).toMatch(/^(just now|\d+ (second|minute)s? ago)$/)
        expect(await takes.textContent()).not.toMatch(/^[5-9]\d min/)
        await page.context().close()
      }
      end()
    })
  }

  test('names the zone of the reader, has UTC on hover, and shows either on request', async () => {
    const { open, end } = await running.daemon()
    const page = await open(0)
    const time = page.locator('.facts time').first()
    const at = new Date(String(await time.getAttribute('datetime')))
    const exact = (zone: string) =>
      new Intl.DateTimeFormat('en-US', { dateStyle: 'medium', timeStyle: 'medium', timeZone: zone }).format(at)
    expect(await time.getAttribute('title')).toBe(`${exact('Europe/Berlin')} Europe/Berlin, ${exact('UTC')} UTC`)
    await page.getByRole('button', { name: 'Keys' }).click()
    const times = page.getByRole('dialog').getByLabel('Times')
    await times.selectOption('in Europe/Berlin')
    expect(await time.textContent()).toBe(exact('Europe/Berlin'))
    await times.selectOption('in UTC')
    expect(await time.textContent()).toBe(`${exact('UTC')} UTC`)
    await page.reload()
    await page
      .getByText(`${exact('UTC')} UTC`)
      .first()
      .waitFor()
    await page.context().close()
    end()
  })
})
