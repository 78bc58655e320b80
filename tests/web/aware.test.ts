// Whoever acts on a page knows where they stand: who was first, what they may, whether the page is up to date, and what waits.

import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { bothPages } from './both-pages.ts'
import { answer, hasBrowser, PATIENCE_MS } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

describe.skipIf(!hasBrowser)('a page', () => {
  // Refusals and lost connections that a test made.
  const { programs, openDaemon, openHub } = bothPages({ mayComplain: /status of 4\d\d|ERR_FAILED/ })

  afterEach(async () => {
    const { daemon } = await programs()
    const { runs } = await daemon.call('/v1/runs/list', { limit: 100 })
    for (const { run_id, completed_at } of runs) {
      if (completed_at === null) await daemon.call('/v1/runs/cancel', { run_id })
    }
  })

  const asks = async (review = 'prompt: "Go?"') => {
    const { daemon } = await programs()
    const phases = `  - { name: ask, type: gate, review: { ${review} } }\n`
    const path = files({ 'team.yml': `name: "@local/asks"\nversion: 1.0.0\nphases:\n${phases}` })
    return (await daemon.call('/v1/runs/start', { path })).run_id as string
  }

  test('says to the second who decided, and what', async () => {
    const { daemon } = await programs()
    const run = await asks()
    const page = await openDaemon(`runs/${run}`)
    const card = page.getByRole('region', { name: 'Review of ask' })
    await card.getByRole('button', { name: 'Approve', exact: true }).click()
    // The page hears nothing of the first decision.
    await page.route('**/v1/runs/**', route => route.abort())
    const { reviews } = await daemon.call('/v1/reviews/list', { run_id: run })
    const owner = { authorization: `Bearer ${daemon.token}` }
    await daemon.call('/v1/reviews/decide', { review_id: reviews[0].id, decision: 'reject' }, owner)
    await card.locator('fieldset.confirm').getByRole('button', { name: 'Approve:' }).click()
    await card.getByText(/has already been decided \(reject by local:\w+\)/).waitFor()
    expect(await page.locator('[role=alert]:focus').count()).toBe(1)
  })

  test('that lost its connection says how old it is, and changes nothing until it is back', async () => {
    const { daemon } = await programs()
    const run = await asks()
    const page = await openDaemon('reviews')
    const approve = page.getByRole('button', { name: 'Approve', exact: true })
    await approve.waitFor()
    await page.route('**/*', route => route.abort())
    const banner = page.getByRole('status').filter({ hasText: 'The connection is lost. What is shown is from' })
    await banner.waitFor()
    expect(await approve.getAttribute('aria-disabled')).toBe('true')
    await approve.click({ force: true })
    expect(await page.locator('fieldset.confirm').count()).toBe(0)
    await page.unrouteAll({ behavior: 'ignoreErrors' })
    await banner.waitFor({ state: 'detached' })
    await answer(page.getByRole('region', { name: 'Review of ask' }), 'Approve')
    expect((await daemon.ended(run)).state).toBe('completed')
  })

  test('shows what a role forbids, and who may', async () => {
    const { world } = await programs()
    const { hub, realm } = world
    await hub.account('reader')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: 'reader', role: 'member' })
    const run = await world.dispatch('release', { inputs: { tag: 'v1' } })
    await world.reached(run, 'awaiting_input')
    const page = await openHub(`runs/${run}`, 'reader')
    for (const name of ['Cancel', 'Approve', 'Reject']) {
      const button = page.getByRole('button', { name, exact: true })
      await button.waitFor()
      expect(await button.getAttribute('aria-disabled')).toBe('true')
      expect(await button.getAttribute('title')).toMatch(/^Operators and admins of .+ do this$/)
      await button.click({ force: true })
    }
    expect(await page.getByText(/^Operators and admins of .+ do this\.$/).count()).toBe(3)
    expect(await page.locator('fieldset.confirm').count()).toBe(0)
    await hub.ok(hub.admin, 'dispatch/cancel', { run_id: run })
  })

  test('says of a review whom it asks and when it expires, and each answer as a command', async () => {
    const { daemon } = await programs()
    const run = await asks('prompt: "Go?", reviewers: [ada, grace], timeout: 2h')
    const page = await openDaemon('reviews')
    const card = page.getByRole('region', { name: 'Review of ask' })
    await card.getByText(/, of ada, grace, expires\s+in 2 h/).waitFor()
    await card.getByRole('button', { name: 'Reject', exact: true }).click()
    const { reviews } = await daemon.call('/v1/reviews/list', { run_id: run })
    const command = await card.getByLabel('The command that does the same').inputValue()
    expect(command).toEndWith(` decide ${reviews[0].id} reject`)
  })

  test('counts what waits in its title and its icon, and tells whoever asked for it', async () => {
    const { daemon } = await programs()
    const page = await openDaemon('reviews')
    await page.getByText('Nothing waits for you.').waitFor()
    const icon = () => page.locator('link[rel=icon]').getAttribute('href')
    const before = await icon()
    expect(await page.title()).toBe('Reviews · cadre')
    await page.evaluate(`{
      globalThis.told = []
      globalThis.Notification = class {
        static permission = 'default'
        static async requestPermission() { return (this.permission = 'granted') }
        constructor(title, { body }) { told.push(body) }
      }
      document.hasFocus = () => false
    }`)
    await page.getByRole('link', { name: 'Runs' }).click()
    await page.getByRole('link', { name: 'Reviews' }).click()
    await page.getByRole('button', { name: 'Notify me in this browser' }).click()
    await page.getByRole('button', { name: 'Notify me in this browser' }).waitFor({ state: 'detached' })
    const run = await asks()
    await until(async () => (await page.title()) === '(1) Reviews · cadre', 'the title', PATIENCE_MS)
    await until(async () => (await page.evaluate('told.join()')) === 'A review waits', 'the notification', PATIENCE_MS)
    expect(await icon()).toStartWith('blob:')
    await daemon.call('/v1/runs/cancel', { run_id: run })
    await until(async () => (await icon()) === before, 'the icon', PATIENCE_MS)
  })

  test('takes no key in a field, and none at all where keys are turned off', async () => {
    const page = await openDaemon('workspaces')
    await page.getByLabel('Folder').fill('')
    await page.getByLabel('Folder').pressSequentially('gr?')
    expect([page.url().split('#')[1], await page.getByLabel('Folder').inputValue()]).toEqual(['/workspaces', 'gr?'])
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('r')
    await page.getByRole('heading', { name: 'Runs' }).waitFor()
    await page.getByRole('button', { name: 'Keys' }).click()
    const dialog = page.getByRole('dialog', { name: 'Keys' })
    await dialog.getByLabel('Single keys work').uncheck()
    await dialog.getByRole('button', { name: 'Close' }).click()
    await page.reload()
    await page.getByRole('heading', { name: 'Runs' }).waitFor()
    for (const key of ['g', 'w', '?']) await page.keyboard.press(key)
    expect([page.url().split('#')[1], await dialog.count()]).toEqual(['/runs', 0])
  })

  test('says that a required text is missing before it is sent, and has the focus after it was opened', async () => {
    const page = await openDaemon('runs')
    await page.getByRole('link', { name: 'Workspaces' }).click()
    await page.getByRole('heading', { name: 'Workspaces' }).waitFor()
    await until(async () => (await page.locator('main:focus').count()) === 1, 'the focus', PATIENCE_MS)
    const sent: string[] = []
    page.on('request', request => sent.push(new URL(request.url()).pathname))
    await page.getByLabel('Folder').fill('   ')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    expect(await page.locator('input:focus:invalid').count()).toBe(1)
    expect(sent).not.toContain('/v1/workspaces/add')
  })
})
