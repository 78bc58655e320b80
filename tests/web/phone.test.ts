// What somebody decides with one thumb, on a phone of 360 pixels: what is approved is read above, and the decision stays in reach.

import { describe, expect, test } from 'bun:test'
import type { Locator } from 'playwright-core'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser, PATIENCE_MS } from './browser.ts'

const SIZE = { width: 360, height: 740 }
/** What a thumb hits (WCAG 2.5.5). */
const THUMB = 44

const ASKS = `name: "@local/ship"
version: 1.0.0
phases:
  - name: build
    agent: exec
    commands: [{ name: c, run: 'for i in $(seq 1 60); do echo "package $i is built"; done' }]
  - name: approve
    type: gate
    depends_on: [build]
    commands: [{ name: c, run: 'for i in $(seq 1 60); do echo "package $i would be shipped"; done' }]
    review: { prompt: "Ship all of it?", reviewers: [any], inputs: [{ name: note, type: string }] }
  - { name: ship, depends_on: [approve], agent: http, target_entries: [{ name: s, url: "https://ship.example.com/all", method: POST, body: x }] }
`

const isInReach = async (button: Locator): Promise<boolean> => {
  const box = await button.boundingBox()
  return box !== null && box.y >= 0 && box.y + box.height <= SIZE.height && box.height >= THUMB
}

describe.skipIf(!hasBrowser)('on a phone', () => {
  const { programs, openDaemon, openHub } = bothPages()

  test.each(['daemon', 'hub'])('the decision of the %s is in reach while what it is about is read', async server => {
    const { daemon, world } = await programs()
    let run: string
    if (server === 'daemon') {
      run = (await daemon.call('/v1/runs/start', { path: files({ 'team.yml': ASKS }) })).run_id
    } else {
      await world.publish({ 'team.yml': ASKS })
      await world.hub.ok(world.hub.admin, 'realms/add_team', { realm_id: world.realm, team: '@admin/ship' })
      run = await world.dispatch('ship')
      await world.reached(run, 'awaiting_input')
    }
    const page = await (server === 'daemon' ? openDaemon : openHub)(`runs/${run}`)
    await page.setViewportSize(SIZE)
    try {
      const card = page.getByRole('region', { name: 'Review of approve' })
      await card.getByText('package 1 would be shipped').first().waitFor()
      // Also at the beginning of the card, which is longer than the screen.
      await card.getByText('Ship all of it?').scrollIntoViewIfNeeded()
      expect((await card.boundingBox())!.height).toBeGreaterThan(SIZE.height)
      for (const name of ['Approve', 'Reject']) {
        const button = card.getByRole('button', { name, exact: true })
        await until(() => isInReach(button), `${name} is in reach`, PATIENCE_MS)
      }
      await card.getByRole('button', { name: 'Reject', exact: true }).click()
      const second = card.locator('fieldset.confirm').getByRole('button').first()
      await until(() => isInReach(second), 'the second step is in reach', PATIENCE_MS)
      await second.click()
      await page.getByText('reject', { exact: false }).first().waitFor()
      await card.waitFor({ state: 'detached' })
    } finally {
      await page.setViewportSize({ width: 1280, height: 800 })
    }
  })
})
