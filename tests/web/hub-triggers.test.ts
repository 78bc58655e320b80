// The pages of a realm's triggers in a real browser, on a real hub whose clock is moved.

import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { until } from '../support/bounded.ts'
import { post, signed } from '../support/hooks.ts'
import { ADMIN_PASSWORD, startTestHub } from '../support/hub.ts'
import { expectAccessible } from './axe.ts'
import { hasBrowser, leave, look, PATIENCE_MS, type Seen, startBrowser } from './browser.ts'

setDefaultTimeout(180_000)

const MINUTE = 60_000
const TEAM = `name: "@admin/digest"
version: 1.0.0
description: Writes a digest
inputs: [{ name: day, type: string, default: "" }, { name: key, type: string, secret: true }]
phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]
`

describe.skipIf(!hasBrowser)('the pages of triggers of a realm', () => {
  async function begin() {
    const [hub, browser] = await Promise.all([startTestHub(), startBrowser()])
    const team = await hub.addTeam(TEAM)
    const { token } = await hub.realmToken(hub.admin, hub.realm)
    await hub.ok(token, 'daemons/register', { name: 'd' })
    const fields = { realm_id: hub.realm, kind: 'schedule', team, cron: '*/5 * * * *' }
    const { id } = await hub.ok(hub.admin, 'triggers/add', { ...fields, name: 'often', requires: { labels: ['gpu'] } })
    // Just past a slot: the next one, which would find the run of this one still going on, is five minutes away.
    await hub.skew(5 * MINUTE - (Date.now() % (5 * MINUTE)) + 1_000)
    await until(
      async () => (await hub.ok(hub.admin, 'triggers/get', { trigger_id: id })).last.length > 0,
      'a slot was due',
      PATIENCE_MS,
    )
    const member = await hub.account('watches')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'watches', role: 'member' })
    const other = await hub.account('operates')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'operates', role: 'operator' })
    return { hub, browser, team, id: id as string, member, other }
  }
  const started = hasBrowser ? begin() : null
  const opened: Seen[] = []

  afterEach(async () => {
    expect(await leave((await started)!.browser, opened)).toEqual([])
  })
  afterAll(async () => {
    const found = await started
    await found?.browser.close()
    await found?.hub.stop()
  })

  async function open(address: string, username = 'admin') {
    const world = (await started)!
    const seen = await look(world.browser, `${world.hub.url}/#/${address}`)
    opened.push(seen)
    const { page } = seen
    await page.getByLabel('User name').fill(username)
    await page.getByLabel('Password').fill(username === 'admin' ? ADMIN_PASSWORD : 'password of a test')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
    return { ...world, page }
  }
  const confirm = async (page: Page, name: string) => {
    await page.getByRole('button', { name, exact: true }).click()
    await page.locator('fieldset.confirm').getByRole('button', { name, exact: true }).click()
  }

  test('a schedule is added from a form, and the page of its team says so', async () => {
    const { page, hub, team } = await open('packages/%40admin%2Fdigest')
    await page.getByRole('region', { name: 'What starts it' }).getByRole('link', { name: 'often' }).waitFor()
    await page.getByRole('link', { name: 'Add a trigger' }).click()
    expect(await page.getByLabel('Team', { exact: true }).inputValue()).toBe(team)
    await page.getByText('key: a trigger keeps its inputs').waitFor()
    await page.getByLabel('Name', { exact: true }).fill('written')
    await page.getByLabel('Minute, hour').fill('0 6 * * 1-5')
    await page.getByText('at 06:00, Monday to Friday, UTC').waitFor()
    await page.getByLabel('day', { exact: true }).fill('{{ slot }}')
    await page.getByText('More', { exact: true }).click()
    await page.getByLabel('Labels of the daemon').fill('gpu, region=eu')
    await page.getByLabel('Wait for a daemon at most').fill('2h')
    await page.getByRole('button', { name: 'Add it' }).click()
    await page.getByRole('heading', { name: 'written' }).waitFor()
    await page.getByText('runs with the rights of admin').waitFor()
    await page.getByText('gpu, region=eu').waitFor()
    const added = await hub.ok(hub.admin, 'triggers/get', { realm_id: hub.realm, name: 'written' })
    expect(added).toMatchObject({ queue_timeout: '2h', inputs: { day: '{{ slot }}' }, priority: 0 })
    // What is not touched is not changed.
    await page.getByRole('link', { name: 'Edit' }).click()
    await page.getByText('More', { exact: true }).click()
    await page.getByLabel('Priority').fill('5')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.locator('.facts', { hasText: 'revision 2' }).waitFor()
    const changed = await hub.ok(hub.admin, 'triggers/get', { realm_id: hub.realm, name: 'written' })
    expect(changed).toMatchObject({ ...added, priority: 5, revision: 2, next: changed.next })
  })

  test('a chain of a realm is added from the form, which has no watches', async () => {
    const { page, hub, team } = await open('triggers/new?kind=chain')
    await page.getByLabel('After each run of').waitFor()
    expect(await page.getByLabel('It starts runs').locator('option').count()).toBe(3)
    await page.getByLabel('Team', { exact: true }).fill(team)
    await page.getByLabel('Name', { exact: true }).fill('follows')
    await page.getByLabel('After each run of').fill('@admin/build')
    await page.getByText('after each run of @admin/build that has completed').waitFor()
    await page.getByLabel('day', { exact: true }).fill('{{ run.run_id }}')
    await page.getByRole('button', { name: 'Add it' }).click()
    await page.getByRole('heading', { name: 'follows' }).waitFor()
    const which = { realm_id: hub.realm, name: 'follows' }
    const added = { kind: 'chain', after: '@admin/build', on: ['completed'], again: false }
    expect(await hub.ok(hub.admin, 'triggers/get', which)).toMatchObject(added)
    await hub.ok(hub.admin, 'triggers/remove', which)
  })

  test('a hook of a realm is added from the form, and takes a delivery', async () => {
    const { page, hub, team } = await open('triggers/new?kind=hook')
    await page.getByLabel('Team', { exact: true }).fill(team)
    await page.getByLabel('Name', { exact: true }).fill('sent')
    await page.getByLabel('Only when').fill('body.day != ""')
    await page.getByLabel('day', { exact: true }).fill('{{ body.day }}')
    await page.getByRole('button', { name: 'Add it' }).click()
    const secret = await page.getByLabel('The secret of the hook.').inputValue()
    const url = await page.getByLabel('The URL of the hook').inputValue()
    // The hub of this test knows no public address; the page knows where it is.
    expect(url).toStartWith(`${hub.url}/v1/hooks/`)
    expect(await page.getByText('a tunnel that ends here').count()).toBe(0)
    const body = JSON.stringify({ day: 'Monday' })
    expect((await post(url, body, signed(body, 'one', secret))).body.data.state).toBe('started')
    await hub.ok(hub.admin, 'triggers/remove', { realm_id: hub.realm, name: 'sent' })
  })

  test('slots of the past of a realm are shown before they are started', async () => {
    const { page, hub, team } = await open('triggers')
    const rule = { kind: 'schedule', cron: '0 6 * * *', tz: 'UTC', inputs: { day: '{{ slot }}' } }
    const { id } = await hub.ok(hub.admin, 'triggers/add', { realm_id: hub.realm, name: 'past', team, ...rule })
    await page.goto(`${hub.url}/#/triggers/${id}`)
    await page.getByRole('button', { name: 'Backfill' }).click()
    await page.getByRole('button', { name: 'Show the slots' }).click()
    await page.getByText('due before this trigger was added').waitFor()
    await confirm(page, 'Start them')
    await page.getByText(/^\d runs start, one after the other, the oldest first\.$/).waitFor()
    const { firings } = await hub.ok(hub.admin, 'triggers/firings', { trigger_id: id })
    expect(firings.every(({ manual }: { manual: object | null }) => manual !== null)).toBe(true)
    await hub.ok(hub.admin, 'triggers/remove', { trigger_id: id })
  })

  test('the list, the calendar and the runs of a realm say what its triggers did', async () => {
    const { page, id } = await open('triggers')
    const row = page.getByRole('row', { name: /^often/ })
    await row.getByText('every 5 minutes, every day, UTC').waitFor()
    await row.getByRole('link', { name: 'its run' }).waitFor()
    await page.getByRole('link', { name: 'Calendar' }).click()
    await page.locator('.calendar a', { hasText: 'often' }).first().waitFor()
    await page.locator('.calendar .state.queued, .calendar .state.running').first().waitFor()
    await page.getByRole('link', { name: 'List' }).click()
    await row.getByRole('link', { name: 'often' }).click()
    await page.waitForURL(`**/#/triggers/${id}`)
    await page.getByRole('button', { name: 'Run now' }).click()
    await page.locator('.told', { hasText: 'an earlier run was still going on' }).waitFor()
    await confirm(page, 'Run it all the same')
    await page.locator('.told').getByRole('link', { name: 'the run' }).click()
    await page.getByRole('link', { name: /^schedule often, for / }).click()
    await page.getByRole('link', { name: 'Its runs' }).click()
    await page.locator('.item').nth(1).waitFor()
    expect(await page.getByLabel('Started by').inputValue()).toBe('schedule:often')
  })

  test('a member looks and changes nothing, and an operator takes a trigger over', async () => {
    const { id } = (await started)!
    const { page, hub, other } = await open(`triggers/${id}`, 'watches')
    await page.getByText('ask one of them for that role').waitFor()
    await page.locator('.firing').first().waitFor()
    expect(await page.locator('main').getByRole('button').count()).toBe(0)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByLabel('User name').waitFor()
    const operator = await open(`triggers/${id}`, 'operates')
    await confirm(operator.page, 'Take over')
    await operator.page.getByText('runs with the rights of operates').waitFor()
    await until(
      async () => (await operator.page.getByRole('button', { name: 'Take over' }).count()) === 0,
      'it is offered no more',
      PATIENCE_MS,
    )
    expect((await hub.ok(other.token, 'triggers/get', { trigger_id: id })).owner).toBe('operates')
  })

  test('axe finds nothing on any of the pages, light and dark', async () => {
    const { page, hub, id } = await open('triggers')
    const places = {
      triggers: 'tbody tr',
      'triggers/calendar': '.calendar',
      'triggers/new': '.preview',
      'triggers/new?kind=hook': '.preview',
      [`triggers/${id}`]: '.firing',
      [`triggers/${id}/edit`]: '.preview .slots',
      'packages/%40admin%2Fdigest': '.chain',
    }
    for (const [place, shown] of Object.entries(places)) {
      await page.goto(`${hub.url}/#/${place}`)
      await page.locator(shown).first().waitFor()
      await expectAccessible(page, place)
    }
  })
})
