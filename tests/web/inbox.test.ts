// The inbox has all that waits, and names it so that a person knows it; tabs of the browser can be told apart.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { bothPages } from './both-pages.ts'
import { answer, hasBrowser, PATIENCE_MS } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

/** Each item asks. */
const MANY = {
  'team.yml': `name: "@local/fleet"
version: 1.0.0
phases:
  - { name: each, type: map, items: ${JSON.stringify(Array.from({ length: 120 }, (_, at) => `host-${at}`))}, key: "{{ item }}", concurrency: 120, team: ./host }
`,
  'host/team.yml': `name: "@local/host"
version: 1.0.0
phases:
  - { name: ask, type: gate, review: { prompt: "Go?" } }
`,
}
const ONE = {
  'team.yml': `name: "@local/first"
version: 1.0.0
phases:
  - { name: approve, type: gate, review: { prompt: "Publish?" } }
`,
}
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-/

describe.skipIf(!hasBrowser)('a page', () => {
  const { programs, openDaemon, openHub } = bothPages()
  const titled = (page: Page, title: string) =>
    until(async () => (await page.title()) === title, `the title ${title}`, PATIENCE_MS)

  test('has all reviews that wait, by team and the oldest first, and none is named by an id', async () => {
    const { daemon } = await programs()
    const first = await daemon.call('/v1/runs/start', { path: files(ONE) })
    const waits = (count: number) =>
      until(
        async () => (await daemon.call('/v1/reviews/list', { state: 'pending', limit: 1 })).total === count,
        `${count} wait`,
        60_000,
      )
    await waits(1)
    const { run_id } = await daemon.call('/v1/runs/start', { path: files(MANY), run_name: 'Fleet' })
    await waits(121)
    const page = await openDaemon('reviews')
    const fleet = page.getByRole('region', { name: 'Reviews of @local/host' })
    await fleet.getByRole('link', { name: /^@local\/host › host-119 › ask$/ }).waitFor()
    const links = page.locator('main').getByRole('link', { name: / › / })
    await until(async () => (await links.count()) === 121, 'all of them', PATIENCE_MS)
    const names = await links.allTextContents()
    expect(names[0]).toBe('@local/first › approve')
    expect(names.filter(name => UUID.test(name))).toEqual([])
    expect(new Set(names).size).toBe(121)
    await fleet.getByRole('list', { name: 'More that wait' }).getByText(/asked/).first().waitFor()
    const badge = page.getByRole('navigation', { name: 'Pages' }).locator('.count')
    expect(await badge.textContent()).toBe('121')
    await titled(page, '(121) Reviews · cadre')
    await answer(page.getByRole('region', { name: 'Review of approve' }), 'Approve')
    expect((await daemon.ended(first.run_id)).state).toBe('completed')
    await until(async () => (await badge.textContent()) === '120', 'the badge', PATIENCE_MS)
    // The next one has its form now.
    await until(async () => (await links.count()) === 120, 'the others', PATIENCE_MS)
    await titled(page, '(120) Reviews · cadre')
    // Nothing changes: an open inbox asks whether anything has, and does not read all again.
    const limits: number[] = []
    page.on('request', request => {
      if (request.url().endsWith('/v1/reviews/list')) limits.push(request.postDataJSON().limit)
    })
    await until(() => limits.length >= 6, 'six looks', PATIENCE_MS)
    expect(limits.filter(limit => limit > 1)).toEqual([])
    await page.goto(`${daemon.url}/#/runs/${run_id}/logs`)
    await titled(page, 'waits for a person · Fleet · Log (120) · cadre')
    await page.goto(`${daemon.url}/#/runs/${first.run_id}`)
    await titled(page, 'completed · @local/first (120) · cadre')
    await daemon.call('/v1/runs/cancel', { run_id })
    await titled(page, 'completed · @local/first · cadre')
    await page.goto(`${daemon.url}/#/runs`)
    await titled(page, 'Runs · cadre')
  })

  test('of the hub names a review by its team, too', async () => {
    const { world } = await programs()
    const run_id = await world.dispatch('release', { inputs: { tag: 'v1' } })
    await world.reached(run_id, 'awaiting_input')
    const page = await openHub('reviews')
    const card = page.getByRole('region', { name: 'Review of approve' })
    await card.getByRole('link', { name: /^@(admin|local)\/release › approve$/ }).waitFor()
    await card.getByRole('link', { name: /^@(admin|local)\/release › approve$/ }).click()
    await titled(page, 'waits for a person · @admin/release (1) · cadre')
    await world.hub.ok(world.hub.admin, 'dispatch/cancel', { run_id })
  })
})
