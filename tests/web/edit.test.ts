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

  /** Opens the editor of a folder. */
  async function edit(path: string) {
    const [daemon, browser] = (await started)!
    await daemon.call('/v1/workspaces/add', { path })
    const at = `/edit?path=${encodeURIComponent(path)}`
    const seen = await look(browser, `${daemon.url}/#token=${daemon.token}&${at}`)
    opened.push(seen)
    const { page } = seen
    return {
      page,
      at,
      area: page.getByLabel('team.yml', { exact: true }),
      save: page.getByRole('button', { name: 'Save', exact: true }),
      others: page.getByRole('region', { name: 'What somebody else saved' }),
      isSaved: page.getByText('As it is on the disk.'),
      disk: (name = 'team.yml') => readFileSync(join(path, name), 'utf8'),
    }
  }
  const MINE = MORE.replace('1.0.0', '2.0.0')
  const OTHER = TEAM.replace('1.0.0', '3.0.0')

  test('saves no draft over what somebody else saved while another page was shown', async () => {
    const path = files({ 'team.yml': TEAM })
    const { page, at, area, save, others, disk } = await edit(path)
    await area.fill(MINE)
    await page.evaluate(`location.hash = '#/settings'`)
    await area.waitFor({ state: 'detached' })
    writeFileSync(join(path, 'team.yml'), OTHER)
    await page.evaluate(`location.hash = '#${at}'`)
    await area.waitFor()
    expect(await area.inputValue()).toBe(MINE)
    const [reply] = await Promise.all([page.waitForResponse(/teams\/save$/), save.click()])
    expect(reply.status()).toBe(409)
    await others.getByText('version: 3.0.0').waitFor()
    expect(await area.inputValue()).toBe(MINE)
    expect(disk()).toBe(OTHER)
  })

  test('keeps what is typed while it saves, and each text in its file', async () => {
    const cases = 'cases: []\n'
    const { page, area, save, isSaved, disk } = await edit(files({ 'team.yml': TEAM, 'a.test.yml': cases }))
    const held = Promise.withResolvers<void>()
    await page.route(/teams\/save$/, async route => {
      await held.promise
      await route.continue()
    })
    await area.fill(MORE)
    await Promise.all([page.waitForRequest(/teams\/save$/), save.click()])
    await area.fill(MINE)
    const choice = page.getByRole('combobox', { name: 'File' })
    await choice.selectOption('a.test.yml')
    const tests = page.getByLabel('a.test.yml', { exact: true })
    await tests.waitFor()
    held.resolve()
    await page.locator('html:not([data-sending])').waitFor()
    expect(await tests.inputValue()).toBe(cases)
    expect(disk()).toBe(MORE)
    await choice.selectOption('team.yml')
    await page.getByText('Not saved.').waitFor()
    expect(await area.inputValue()).toBe(MINE)
    await save.click()
    await isSaved.waitFor()
    expect(disk()).toBe(MINE)
    expect(disk('a.test.yml')).toBe(cases)
  })

  test('has the text of the disk once a draft is dropped', async () => {
    const path = files({ 'team.yml': TEAM })
    const { page, area, save, others, isSaved, disk } = await edit(path)
    await area.fill(MINE)
    writeFileSync(join(path, 'team.yml'), OTHER)
    await save.click()
    await others.waitFor()
    await page.getByRole('button', { name: 'Drop the changes' }).click()
    await page.getByRole('button', { name: 'Drop it' }).click()
    await isSaved.waitFor()
    expect(await area.inputValue()).toBe(OTHER)
    await area.fill(MINE)
    await save.click()
    await isSaved.waitFor()
    expect(disk()).toBe(MINE)
  })
})
