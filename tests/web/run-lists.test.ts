// The lists of runs of both pages in a real browser: their filters, which the server applies to all runs.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { addToHome, addToHub, type MadeRun } from '../support/many-runs.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

const PROGRAMS = ['daemon', 'hub'] as const

describe.skipIf(!hasBrowser)('the list of runs', () => {
  const { programs, openDaemon, openHub } = bothPages()
  const open = { daemon: openDaemon, hub: openHub }
  const add = {
    daemon: async (made: MadeRun[]) => addToHome((await programs()).daemon.home, made),
    hub: async (made: MadeRun[]) => addToHub((await programs()).world.hub, (await programs()).world.realm, made),
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
})
