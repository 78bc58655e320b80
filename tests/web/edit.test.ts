// The editor of a team in a real browser: it checks and plans while somebody types, and saves nothing over another's text.

import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { files, spawnDaemon } from '../support/daemon.ts'
import { hasBrowser, leave, look, type Seen, startBrowser } from './browser.ts'

const TEAM =
  'name: "@local/edited"\nversion: 1.0.0\nphases:\n  - { name: one, agent: exec, commands: [{ name: c, run: "true" }] }\n'
const MORE = `${TEAM}  - { name: two, agent: exec, depends_on: [one], commands: [{ name: c, run: "true" }] }\n`

setDefaultTimeout(180_000)

describe.skipIf(!hasBrowser)('the editor of a team', () => {
  const started = hasBrowser ? Promise.all([spawnDaemon(), startBrowser()]) : null
  const opened: Seen[] = []
  afterEach(async () => {
    const complaints = await leave((await started)![1], opened)
    // The browser reports each reply that is an error: those about drafts with mistakes, and the conflict.
    expect(complaints.filter(text => !/status of (400|409)/.test(text))).toEqual([])
  })
  afterAll(async () => (await started)?.[1].close())

  test('shows mistakes and the plan, saves, and keeps both texts when somebody else saved', async () => {
    const [daemon, browser] = (await started)!
    const path = files({ 'team.yml': TEAM })
    await daemon.call('/v1/workspaces/add', { path })
    const seen = await look(browser, `${daemon.url}/#token=${daemon.token}&/edit?path=${encodeURIComponent(path)}`)
    opened.push(seen)
    const { page } = seen
    const area = page.getByLabel('team.yml', { exact: true })
    const plan = page.getByRole('region', { name: 'Plan', exact: true })
    await plan.locator('.node', { hasText: 'one' }).waitFor()
    await area.fill(TEAM.replace('agent: exec', 'agent: nothing'))
    await page.getByRole('list', { name: 'Mistakes' }).getByText('unknown agent').waitFor()
    await page.getByRole('button', { name: 'Line 4' }).click()
    expect(await area.evaluate('document.activeElement.tagName')).toBe('TEXTAREA')
    await area.fill(MORE)
    await plan.locator('.node', { hasText: 'two' }).waitFor()
    expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(TEAM)
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('As it is on the disk.').waitFor()
    expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(MORE)

    const other = MORE.replace('1.0.0', '3.0.0')
    writeFileSync(join(path, 'team.yml'), other)
    await area.fill(MORE.replace('1.0.0', '2.0.0'))
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('region', { name: 'What somebody else saved' }).getByText('version: 3.0.0').waitFor()
    expect(await area.inputValue()).toContain('version: 2.0.0')
    expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(other)
    await page.getByRole('button', { name: 'Save mine over it' }).click()
    await page.getByRole('button', { name: 'Save mine', exact: true }).click()
    await page.getByText('As it is on the disk.').waitFor()
    expect(readFileSync(join(path, 'team.yml'), 'utf8')).toBe(MORE.replace('1.0.0', '2.0.0'))
  })
})
