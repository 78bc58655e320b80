// What a run waits for before it begins or goes on, and how it is started again: as it was, and in part only where a part failed.

import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser, leave, look, PATIENCE_MS, type Seen } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

const exec = (run: string) => `agent: exec, commands: [{ name: c, run: '${run}' }]`
const team = (phases: string, more = '') => ({
  'team.yml': `name: "@local/again"\nversion: 1.0.0\n${more}phases:\n${phases}`,
})
const WAITS = 'until [ -e go ]; do sleep 0.05; done'

describe.skipIf(!hasBrowser)('a page', () => {
  const { programs, openDaemon, openHub } = bothPages()
  const opened: Seen[] = []
  afterEach(async () => {
    expect(await leave((await programs()).browser, opened)).toEqual([])
  })

  test('says which key a queued run waits for, and who holds it', async () => {
    const { daemon } = await programs()
    const path = files(team(`  - { name: work, ${exec(WAITS)} }\n`, 'concurrency: { key: db }\n'))
    const [holder, next] = [
      await daemon.call('/v1/runs/start', { path, run_name: 'Holder' }),
      await daemon.call('/v1/runs/start', { path, run_name: 'Next' }),
    ]
    const page = await openDaemon(`runs/${next.run_id}`)
    await page.locator('.facts', { hasText: `waits for run ${holder.run_id}, which holds the key db` }).waitFor()
    await page.locator('.facts').getByRole('link', { name: holder.run_id }).click()
    await page.getByRole('heading', { name: 'Holder' }).waitFor()
    writeFileSync(join(path, 'go'), '')
    await daemon.ended(next.run_id)
  })

  test('says that a run waits for a free slot of the daemon', async () => {
    const { browser } = await programs()
    const daemon = await spawnDaemon({ env: { CADRE_SLOTS: '1' } })
    const path = files(team(`  - { name: work, ${exec(WAITS)} }\n`))
    await daemon.call('/v1/runs/start', { path })
    const { run_id } = await daemon.call('/v1/runs/start', { path })
    const seen = await look(browser, `${daemon.url}/#token=${daemon.token}&/runs/${run_id}`)
    opened.push(seen)
    const waits = seen.page.locator('.facts', { hasText: 'waits for a free slot of the daemon: work' })
    await waits.waitFor()
    writeFileSync(join(path, 'go'), '')
    await waits.waitFor({ state: 'detached' })
    await daemon.ended(run_id)
  })

  test('of the hub says which daemon a queued run waits for, and starts it again with its labels', async () => {
    const { world } = await programs()
    const run = await world.dispatch('train', { run_name: 'Train', requires: { labels: ['region=eu', 'fast'] } })
    const page = await openHub(`runs/${run}`)
    const facts = page.locator('.facts')
    await facts.filter({ hasText: /waits for a daemon with labels? .*fast=yes.*; online is build-1/ }).waitFor()
    await page.getByRole('link', { name: 'Dispatch again' }).click()
    const labels = page.getByLabel('Labels of the daemon')
    await labels.waitFor()
    // Not that of the team, which asks for it again.
    expect((await labels.inputValue()).split(', ').sort()).toEqual(['fast', 'region=eu'])
    expect(await page.getByLabel('Name of the run').inputValue()).toBe('Train')
    await page.getByRole('form', { name: 'Dispatch' }).getByRole('button', { name: 'Dispatch' }).click()
    await page.getByRole('heading', { name: 'Train' }).waitFor()
    await facts.filter({ hasText: 'fast=yes' }).waitFor()
    const again = page.url().slice(-36)
    expect(again).not.toBe(run)
    for (const run_id of [run, again]) await world.hub.ok(world.hub.admin, 'dispatch/cancel', { run_id })
  })

  test('starts a run again from its folder, in its workspace, with its inputs and its name', async () => {
    const { daemon } = await programs()
    const say = `inputs: [{ name: who, type: string, default: world }]\n`
    const path = files(team(`  - { name: say, ${exec('pwd')} }\n`, say))
    const workspace = realpathSync(folder())
    const inputs = { who: 'Grace' }
    const { run_id } = await daemon.call('/v1/runs/start', { path, workspace, inputs, run_name: 'Greeting' })
    await daemon.ended(run_id)
    const page = await openDaemon(`runs/${run_id}`)
    await page.getByRole('link', { name: 'Start again' }).click()
    await page.getByLabel('who').waitFor()
    const values = ['Team', 'who', 'Name of the run', 'Workspace'].map(name => page.getByLabel(name).inputValue())
    expect(await Promise.all(values)).toEqual([path, 'Grace', 'Greeting', workspace])
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.getByRole('heading', { name: 'Greeting' }).waitFor()
    const again = await daemon.ended(page.url().slice(-36))
    expect([again.run_id === run_id, again.workspace, again.inputs]).toEqual([false, workspace, inputs])
  })

  test('offers to repeat what failed only where something did', async () => {
    const { daemon } = await programs()
    const phases = (run: string) =>
      `  - { name: shaky, on_failure: continue, ${exec(run)} }\n  - { name: done, ${exec('true')} }\n`
    const path = files(team(phases('test -e good')))
    const runs: string[] = []
    for (const good of [false, true]) {
      if (good) writeFileSync(join(path, 'good'), '')
      const { run_id } = await daemon.call('/v1/runs/start', { path })
      expect((await daemon.ended(run_id)).state).toBe('completed')
      runs.push(run_id)
    }
    const repeat = { name: 'Repeat what failed' }
    const page = await openDaemon(`runs/${runs[1]}`)
    await page.getByRole('link', { name: 'Start again' }).waitFor()
    expect(await page.getByRole('button', repeat).count()).toBe(0)
    await page.goto(`${daemon.url}/#/runs/${runs[0]}`)
    await page.getByRole('button', repeat).click()
    const repeated = async () => (await daemon.call('/v1/runs/get', { run_id: runs[0] })).attempt === 2
    await until(repeated, 'it is repeated', PATIENCE_MS)
    await page.getByRole('button', repeat).waitFor({ state: 'detached' })
  })
})
