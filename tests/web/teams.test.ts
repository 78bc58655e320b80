// The pages of teams, and what the page of a run says of the runs before it, in a real browser.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { addToHub } from '../support/many-runs.ts'
import { expectAccessible } from './axe.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser, PATIENCE_MS, startBrowser } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

const TEAM = (version: string) => `name: "@local/told"
version: ${version}
inputs: [{ name: code, type: number, default: 0 }]
phases:
  - { name: work, agent: exec, commands: [{ name: c, env: { C: "{{ inputs.code }}" }, run: 'exit "$C"' }] }
  - name: post
    depends_on: [work]
    agent: http
    target_entries: [{ name: p, url: "https://status.example.com/reports", body: "done", method: POST }]
    when: "false"
`

describe.skipIf(!hasBrowser)('teams', () => {
  const { programs, openDaemon, openHub } = bothPages()

  test('of the daemon have their last runs, numbers, folder and writes; a run says what changed', async () => {
    const { daemon } = await programs()
    const path = files({ 'team.yml': TEAM('1.0.0') })
    const run = async (code: number) => {
      const { run_id } = await daemon.call('/v1/runs/start', { path, inputs: { code } })
      return (await daemon.ended(run_id)).run_id
    }
    const good = await run(0)
    await run(3)
    await Bun.write(`${path}/team.yml`, TEAM('1.1.0'))
    const last = await run(4)

    const page = await openDaemon('teams')
    const card = page.locator('.card', { hasText: '@local/told' })
    await card.getByText(path).waitFor()
    expect(await card.locator('.strip .state').allTextContents()).toEqual(['completed', 'failed', 'failed'])
    await card.getByText('Writes: http https://status.example.com/reports').waitFor()
    expect(await card.locator('.numbers tr', { hasText: 'Success' }).locator('td').allTextContents()).toEqual([
      '33 %',
      '33 %',
    ])
    await expectAccessible(page, 'teams')

    await card.locator('.strip a').last().click()
    await page.getByText('version 1.0.0 → 1.1.0; input code 0 → 4').waitFor()
    expect(page.url()).toContain(last)
    await page.getByRole('link', { name: 'last good run' }).click()
    await page.getByText('No run before it completed.').waitFor()
    expect(page.url()).toContain(good)
    expect(await page.locator('.strip [aria-current]').count()).toBe(1)
  })

  test('are asked for again only while they are in view, and one question at a time', async () => {
    const { daemon } = await programs()
    const path = files({ 'team.yml': TEAM('1.0.0').replace('@local/told', '@local/asked') })
    const run = async () => daemon.ended((await daemon.call('/v1/runs/start', { path })).run_id)
    await run()
    // Its clock is set forward, which would stay with a page that other tests use.
    await using browser = await startBrowser()
    const page = await browser.newPage()
    page.setDefaultTimeout(PATIENCE_MS)
    await page.clock.install()
    const HISTORY = /teams\/history$/
    const asked: (() => void)[] = []
    // The first question is answered at once, and each other when the test says so.
    await page.route(HISTORY, async route => {
      if (route.request().postDataJSON().team !== '@local/asked') return route.continue()
      const { promise, resolve } = Promise.withResolvers<void>()
      asked.push(resolve)
      if (asked.length > 1) await promise
      await route.continue()
    })
    await page.goto(`${daemon.url}/#token=${daemon.token}&/teams`)
    const card = page.locator('.card', { hasText: '@local/asked' })
    const isInView = (seen: boolean) =>
      card.evaluate(
        `card => new Promise(resolve => {
          card.style.transform = ${seen} ? '' : 'translateY(9000px)'
          new IntersectionObserver(entries => entries.at(-1).isIntersecting === ${seen} && resolve()).observe(card)
        })`,
      )
    await card.locator('.strip .state').waitFor()
    await run()
    await page.clock.runFor(46_000)
    await until(() => asked.length > 1, 'the second question', PATIENCE_MS)
    // A reply that does not come is not waited for without end.
    await page.clock.runFor(46_000)
    await until(() => asked.length > 2, 'the same question again', PATIENCE_MS)
    await isInView(false)
    const before = asked.length
    for (const answer of asked) answer()
    await card.locator('.strip .state').nth(1).waitFor()
    await page.clock.runFor(46_000)
    await isInView(true)
    await until(() => asked.length > before, 'another question', PATIENCE_MS)
    expect(asked.length).toBeLessThan(before + 3)
    for (const answer of asked) answer()
    await page.unrouteAll({ behavior: 'wait' })
  })

  test('of the hub are those of a realm, with who published them', async () => {
    const { world } = await programs()
    await addToHub(world.hub, world.realm, [
      { number: 1, team: '@a/ran', state: 'failed' },
      { number: 2, team: '@a/ran' },
    ])
    const page = await openHub('teams')
    const card = page.locator('.card', { hasText: '@a/ran' })
    await card.locator('.strip a').first().waitFor()
    expect(await card.locator('.strip .state').allTextContents()).toEqual(['failed', 'completed'])
    await page
      .getByText(/published by admin/)
      .first()
      .waitFor()
    await expectAccessible(page, 'teams')
    await card.locator('.strip a').last().click()
    await page.getByText('No run before it completed.').waitFor()
  })
})
