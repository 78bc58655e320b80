// The pages of triggers in a real browser, on a real home with two weeks of firings.

import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { HOOK_SCHEMES } from '../../lib/triggers/hook/schemes.ts'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { post, SECRET, signed } from '../support/hooks.ts'
import { serveDaemon } from '../support/served-daemon.ts'
import { DAY, HOUR, MINUTE, triggerHome, WATCHED } from '../support/triggers.ts'
import { expectAccessible, expectAccessibleAt } from './axe.ts'
import { hasBrowser, leave, look, PATIENCE_MS, type Seen, startBrowser } from './browser.ts'

setDefaultTimeout(180_000)

const FAILS = `name: "@local/fails"
version: 1.0.0
phases: [{ name: no, agent: exec, commands: [{ name: c, run: 'exit 3' }] }]
`
/** Markup, and a character that reverses what follows. */
const HOSTILE = `<img src=x onerror="globalThis.ran=1"> \u202Egnp.exe`

/** When the triggers of the home are due each day: an hour ago, so that nothing is due while the tests run. */
const slot = new Date(Math.floor(Date.now() / MINUTE) * MINUTE - HOUR)
const CLOCK = slot.toISOString().slice(11, 16)
const CRON = `${slot.getUTCMinutes()} ${slot.getUTCHours()} * * *`
const DAYS = 13

/** A home whose triggers have fired for two weeks. It looked once a day, and not on the fifth day. */
async function madeHome(): Promise<string> {
  const home = folder()
  await using t = await triggerHome(home, slot.getTime() - DAYS * DAY - HOUR)
  const fails = files({ 'team.yml': FAILS })
  await t.add({ name: 'daily', cron: CRON })
  await t.add({ name: 'asks', cron: CRON, inputs: { hold: true } })
  await t.add({ name: 'fails', cron: CRON, team: fails })
  await t.add({ name: 'often', cron: '*/5 * * * *', when: 'false' })
  await t.add({ name: 'off', cron: CRON })
  const broken = files({ 'team.yml': WATCHED })
  await t.add({ name: 'broken', cron: CRON, team: broken })
  writeFileSync(join(broken, 'team.yml'), HOSTILE)
  t.clock.now += HOUR + 30_000
  for (let day = 0; day <= DAYS; day++) {
    if (day !== 4) await t.look()
    await until(() => t.runs().every(({ state }) => state !== 'running'), 'the runs have ended')
    if (day < DAYS) t.clock.now += DAY
  }
  t.triggers.disable({ name: 'off' }, 'local:ada')
  await t.add({ name: 'minutely', cron: '* * * * *', when: 'false' })
  await t.add({ name: 'paused', cron: CRON })
  t.triggers.pause({ name: 'paused' }, HOSTILE, HOSTILE)
  return home
}

describe.skipIf(!hasBrowser)('the pages of triggers', () => {
  async function begin() {
    const [daemon, browser] = await Promise.all([madeHome().then(home => serveDaemon({ home })), startBrowser()])
    return { daemon, browser }
  }
  const started = hasBrowser ? begin() : null
  const opened: Seen[] = []

  afterEach(async () => {
    expect(await leave((await started)!.browser, opened)).toEqual([])
  })
  afterAll(async () => (await started)?.browser.close())

  async function open(path: string, { token = true } = {}) {
    const { daemon, browser } = (await started)!
    const seen = await look(browser, `${daemon.url}/#${token ? `token=${daemon.token}&` : ''}/${path}`)
    opened.push(seen)
    const auth = { authorization: `Bearer ${daemon.token}` }
    const call = (path: string, body: object) => daemon.call(`/v1/triggers/${path}`, body, auth)
    return { daemon, page: seen.page, call }
  }
  async function pageOf(name: string) {
    const { daemon } = (await started)!
    const { id } = await daemon.call('/v1/triggers/get', { name })
    return { ...(await open(`triggers/${id}`)), id: id as string }
  }
  function forgive(expected: RegExp): void {
    for (const seen of opened) {
      seen.complaints.splice(0, Number.POSITIVE_INFINITY, ...seen.complaints.filter(text => !expected.test(text)))
    }
  }
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true })
  /** A second click, which the first one asks for. */
  const confirm = async (page: Page, name: string) => {
    await button(page, name).click()
    await page.locator('fieldset.confirm').getByRole('button', { name, exact: true }).click()
  }

  test('the list has the state, what is next and what came last of each, by kind', async () => {
    const { page } = await open('triggers')
    const row = (name: string) => page.getByRole('row', { name: new RegExp(`^${name}`) })
    await row('daily').getByText(`at ${CLOCK}, every day, UTC`).waitFor()
    await row('daily').getByText('+00:00').waitFor()
    await row('daily').getByRole('link', { name: 'its run' }).waitFor()
    await row('asks').getByText('an earlier run was still going on').waitFor()
    await row('paused').locator('.state.interrupted', { hasText: 'paused' }).waitFor()
    await row('broken').locator('.state.failed', { hasText: 'broken' }).waitFor()
    await row('off').locator('.state.cancelled', { hasText: 'disabled' }).waitFor()
    await page.getByLabel('Kind').selectOption('hook')
    await page.getByText('There are no hooks here.').waitFor()
    expect(page.url()).toEndWith('/#/triggers?kind=hook')
  })

  test('the calendar says of each day what became of it, without colours too', async () => {
    const { page } = await open('triggers/calendar')
    await page.getByRole('heading', { name: 'Today and the next six days' }).waitFor()
    const days = page.locator('.calendar > li')
    expect(await days.count()).toBe(21)
    expect(await page.locator('[aria-current=date]').count()).toBe(1)
    const marks = (text: string) => days.filter({ hasText: text })
    expect(await marks('waits for a person').count()).toBe(1)
    expect(await marks('run failed').count()).toBe(DAYS)
    expect(await marks('refused').count()).toBeGreaterThan(0)
    const names = await page.getByRole('list', { name: 'Legend' }).locator('.state').allTextContents()
    expect(names).toEqual(['planned', 'waits for a person', 'done', 'run failed', 'skipped', 'refused'])
    const planned = days.nth(1).locator('li', { hasText: 'daily' })
    expect(await planned.textContent()).toBe(`planned${CLOCK} daily`)
    // Of every five minutes there is a number.
    for (const day of [1, 6]) {
      expect(await days.nth(day).locator('li', { hasText: 'often' }).textContent()).toBe('planned288 × often')
      expect(await days.nth(day).locator('li', { hasText: 'minutely' }).textContent()).toBe('planned1,000+ × minutely')
    }
    await page.setViewportSize({ width: 390, height: 800 })
    const box = (await days.nth(1).boundingBox())!
    expect(box.width).toBeGreaterThan(300)
    expect(await page.evaluate('document.querySelector("main").scrollWidth <= innerWidth')).toBe(true)
    await planned.getByRole('link').click()
    await page.getByRole('heading', { name: 'daily' }).waitFor()
  })

  test('a trigger says why each occasion started or did not, and its runs are listed', async () => {
    const { page } = await pageOf('asks')
    await page.getByText('asks local:ada since').first().waitFor()
    // The slot of the day without a look is missed.
    expect(await page.locator('.firing').count()).toBe(DAYS + 1)
    expect(await page.locator('.firing').last().textContent()).toContain('run waits for a person')
    await page.getByLabel('Reason').selectOption('overlap')
    await until(
      async () => (await page.locator('.firing').count()) === DAYS - 1,
      'only those of the reason',
      PATIENCE_MS,
    )
    await page.getByRole('link', { name: 'Its runs' }).click()
    await page.locator('.item').first().waitFor()
    expect(await page.locator('.item').count()).toBe(1)
    expect(await page.getByLabel('Started by').inputValue()).toBe('schedule:asks')
    await page.locator('.item .name').click()
    await page.getByRole('link', { name: /^schedule asks, for / }).click()
    await page.getByRole('heading', { name: 'asks' }).waitFor()
  })

  test('run now starts a run, and where an earlier one holds it a second click forces it', async () => {
    const { page, daemon } = await pageOf('asks')
    await button(page, 'Run now').click()
    await page.locator('.told', { hasText: 'Nothing started: an earlier run was still going on.' }).waitFor()
    await confirm(page, 'Run it all the same')
    await page.locator('.told').getByRole('link', { name: 'the run' }).click()
    await page.locator('.facts', { hasText: 'schedule asks' }).waitFor()
    const { started_by } = await daemon.call('/v1/runs/get', { run_id: page.url().split('/').at(-1) })
    expect(started_by).toMatchObject({ kind: 'schedule', name: 'asks', manual: { by: expect.any(String) } })
  })

  test('an occasion is started after all, and once more only when a person says so', async () => {
    const { page, call, id } = await pageOf('daily')
    await page.locator('.firing').first().waitFor()
    await page.getByLabel('State').selectOption('skipped')
    await page.locator('.firing', { hasText: 'nothing looked at it in time' }).first().waitFor()
    await button(page, 'Start it after all').first().click()
    await page.getByText('It runs.').waitFor()
    await page.getByLabel('State').selectOption('started')
    const first = page.locator('.firing').last()
    await first.getByRole('button', { name: 'Start again' }).click()
    await first.getByText('A second one does its work again.').waitFor()
    await first.getByRole('button', { name: 'No' }).click()
    await first.getByRole('button', { name: 'Start again' }).click()
    await first.locator('fieldset').getByRole('button', { name: 'Start again' }).click()
    await first.getByText('It runs.').waitFor()
    const { firings } = await call('firings', { trigger_id: id, state: 'started', limit: 2 })
    expect(firings.map(({ occasion }: { occasion: string }) => occasion.split('#')[1])).toEqual(['2', '2'])
  })

  test('a trigger is paused with a reason, resumed with a choice, disabled, enabled and removed', async () => {
    const { daemon } = (await started)!
    const auth = { authorization: `Bearer ${daemon.token}` }
    const team = files({ 'team.yml': WATCHED })
    const spec = { name: 'handled', kind: 'schedule', team, cron: '0 0 1 1 *', tz: 'UTC' }
    await daemon.call('/v1/triggers/add', spec, auth)
    const { page, call } = await pageOf('handled')
    await button(page, 'Pause').click()
    await page.getByLabel('Why').fill('the wiki is being moved')
    await button(page, 'Pause it').click()
    await page.locator('.notice', { hasText: 'the wiki is being moved' }).waitFor()
    expect((await call('get', { name: 'handled' })).paused.reason).toBe('the wiki is being moved')
    await page.getByText('Nothing until it is resumed.').waitFor()
    await button(page, 'Resume').click()
    const choices = await page.getByLabel('Of what was due during the pause, start').locator('option').allTextContents()
    expect(choices).toEqual(['none of them', 'the newest of them'])
    await button(page, 'Resume it').click()
    await page.locator('.facts .state.completed', { hasText: 'active' }).waitFor()
    await confirm(page, 'Disable')
    await page.locator('.facts .state', { hasText: 'disabled' }).waitFor()
    await confirm(page, 'Enable')
    await page.locator('.facts .state', { hasText: 'active' }).waitFor()
    await confirm(page, 'Remove')
    await page.getByRole('heading', { name: 'Triggers' }).waitFor()
    await until(
      async () => (await page.getByRole('link', { name: 'handled' }).count()) === 0,
      'it is not listed',
      PATIENCE_MS,
    )
  })

  test('a schedule is added with a preview, and a change shows what it moves before it is saved', async () => {
    const { page, daemon, call } = await open('triggers')
    await page.getByRole('link', { name: 'Add a trigger' }).click()
    await page.getByLabel('Team', { exact: true }).fill(files({ 'team.yml': WATCHED }))
    await page.getByLabel('Name', { exact: true }).fill('written')
    const preview = page.getByRole('region', { name: 'Preview' })
    await page.getByLabel('Minute, hour').fill('61 2 * * *')
    await preview.locator('.bad').waitFor()
    forgive(/status of 400/)
    await page.getByLabel('Minute, hour').fill('30 2 * * *')
    await page.getByLabel('Zone').fill('Europe/Berlin')
    await preview.getByText('at 02:30, every day, Europe/Berlin').waitFor()
    await preview.locator('.notes', { hasText: 'moved' }).waitFor()
    await page.getByLabel('day', { exact: true }).fill('{{ slot }}')
    await button(page, 'Add it').click()
    await page.getByRole('heading', { name: 'written' }).waitFor()
    const added = await call('get', { name: 'written' })
    expect(added).toMatchObject({ cron: '30 2 * * *', tz: 'Europe/Berlin', inputs: { day: '{{ slot }}' }, revision: 1 })
    // Another one of the same team at the same times.
    await call('add', {
      ...{ name: 'twin', kind: 'schedule', team: added.team },
      ...{ cron: added.cron, tz: added.tz },
    })
    await confirm(page, 'Disable')
    await confirm(page, 'Enable')
    const warned = page.getByRole('status').getByText('twin starts this team on the same occasions')
    await warned.waitFor()
    await page.getByRole('link', { name: 'Triggers' }).first().click()
    await page.getByRole('link', { name: 'written' }).click()
    await page.getByRole('heading', { name: 'written' }).waitFor()
    expect(await warned.count()).toBe(0)
    await call('remove', { name: 'twin' })

    await page.getByRole('link', { name: 'Edit' }).click()
    await page.getByLabel('Minute, hour').fill('*/20 2 * * *')
    await preview.locator('.notes', { hasText: 'missing' }).waitFor()
    await preview.locator('.notes', { hasText: 'twice' }).waitFor()
    await preview.getByText('As it is now').waitFor()
    await preview.getByText('· new').first().waitFor()
    // Somebody else changes it meanwhile.
    await call('update', { trigger_id: added.id, run_name: 'By another' })
    await button(page, 'Save').click()
    await page.getByText('Somebody changed this trigger after you opened it').waitFor()
    forgive(/status of 409/)
    expect((await call('get', { name: 'written' })).cron).toBe('30 2 * * *')
    await button(page, 'Load it as it is now').click()
    expect(await page.getByLabel('Minute, hour').inputValue()).toBe('30 2 * * *')
    await page.getByLabel('Minute, hour').fill('*/20 2 * * *')
    await page.getByText('More', { exact: true }).click()
    expect(await page.getByLabel('Name of its runs').inputValue()).toBe('By another')
    await page.getByLabel('Spread the starts over').fill('2m')
    await button(page, 'Save').click()
    await page.locator('.facts', { hasText: 'revision 5' }).waitFor()
    expect(await call('get', { name: 'written' })).toMatchObject({ jitter: '2m', inputs: { day: '{{ slot }}' } })

    await page.getByRole('link', { name: 'Edit' }).click()
    await page.getByText('More', { exact: true }).click()
    await page.getByLabel('Spread the starts over').fill('')
    await page.getByLabel('Name of its runs').fill('')
    await button(page, 'Save').click()
    await page.locator('.facts', { hasText: 'revision 6' }).waitFor()
    const last = await call('get', { name: 'written' })
    expect([last.jitter, last.run_name, last.cron]).toEqual([undefined, null, '*/20 2 * * *'])
    await daemon.call('/v1/triggers/remove', { name: 'written' }, { authorization: `Bearer ${daemon.token}` })
  })

  test('a watch is added with the files that would count, and changed', async () => {
    const at = files({ 'a.pdf': 'a', 'b.txt': 'b', 'c.tiff': 'cc' })
    const { page, call } = await open('triggers?kind=watch')
    await page.getByRole('link', { name: 'Add a trigger' }).first().click()
    const preview = page.getByRole('region', { name: 'Preview' })
    await page.getByLabel('Team', { exact: true }).fill(files({ 'team.yml': WATCHED }))
    await page.getByLabel('Name', { exact: true }).fill('papers')
    await page.getByLabel('Folder on this machine').fill(`${at}/none`)
    await preview.locator('.bad').waitFor()
    forgive(/status of 400/)
    await page.getByLabel('Folder on this machine').fill(at)
    await page.getByLabel('Files that count').fill('*.pdf\n*.{tiff,png}')
    await preview.getByText('c.tiff').waitFor()
    expect(await preview.getByText('b.txt').count()).toBe(0)
    await page.getByLabel('is removed').check()
    await page.getByLabel('day', { exact: true }).fill('{{ files[0].name }}')
    await page.getByText('More', { exact: true }).click()
    await page.getByLabel('A file has to stay the same for').fill('5s')
    await button(page, 'Add it').click()
    await page.getByRole('heading', { name: 'papers' }).waitFor()
    const added = await call('get', { name: 'papers' })
    const own = {
      folder: at,
      match: ['*.pdf', '*.{tiff,png}'],
      ignore: [],
      on: ['added', 'changed', 'removed'],
      depth: 1,
    }
    expect(added).toMatchObject({ ...own, kind: 'watch', settle: '5s', poll: '30s', batch: null, overlap: 'allow' })
    expect(added.inputs).toEqual({ day: '{{ files[0].name }}' })

    await page.getByRole('link', { name: 'Edit' }).click()
    expect(await page.getByLabel('is removed').isChecked()).toBe(true)
    await page.getByLabel('is removed').uncheck()
    await page.getByText('More', { exact: true }).click()
    await page.getByLabel('A file has to stay the same for').fill('')
    await page.getByLabel('One run for all files').fill('10s')
    await page.getByLabel('Files that do not count').fill('old-*')
    await page.getByLabel('Move files away').check()
    await button(page, 'Save').click()
    await page.locator('.facts', { hasText: 'revision 2' }).waitFor()
    const on = ['added', 'changed']
    const changed = { on, settle: '2s', batch: '10s', ignore: ['old-*'], claim: true, initial: false }
    expect(await call('get', { name: 'papers' })).toMatchObject({ ...own, ...changed })
    await page.getByText('.cadre-claimed before their run begins').waitFor()
    await call('remove', { name: 'papers' })
  })

  test('a chain is added with its words, and warned of a team that nothing here has', async () => {
    const { page, call } = await open('triggers/new')
    await page.getByLabel('It starts runs').selectOption('chain')
    await page.getByLabel('Team', { exact: true }).fill(files({ 'team.yml': FAILS }))
    await page.getByLabel('Name', { exact: true }).fill('follows')
    await page.getByLabel('After each run of').fill('@local/wached')
    await page.getByLabel('failed', { exact: true }).check()
    const preview = page.getByRole('region', { name: 'Preview' })
    await preview.getByText('after each run of @local/wached that has completed or failed').waitFor()
    await button(page, 'Add it').click()
    await page.getByRole('heading', { name: 'follows' }).waitFor()
    await page.getByRole('status').getByText('did you mean `@local/watched`?').waitFor()
    await page.getByRole('link', { name: 'Edit' }).click()
    await page.getByLabel('After each run of').fill('@local/watched')
    await page.getByLabel('completed', { exact: true }).uncheck()
    await page.getByLabel('Also after each attempt').check()
    await button(page, 'Save').click()
    await page.locator('.facts', { hasText: 'revision 2' }).waitFor()
    const changed = { after: '@local/watched', on: ['failed'], again: true, kind: 'chain' }
    expect(await call('get', { name: 'follows' })).toMatchObject(changed)
    expect(await page.getByText('did you mean').count()).toBe(0)
    await call('remove', { name: 'follows' })
  })

  test('slots of the past are shown before they are started', async () => {
    const { page, call } = await pageOf('fails')
    const missed = slot.getTime() - (DAYS - 4) * DAY
    const local = (at: number) =>
      page.evaluate(time => {
        const date = new Date(time)
        return new Date(time - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 16)
      }, at)
    await button(page, 'Backfill').click()
    const form = page.getByRole('form', { name: 'Backfill' })
    await form.getByLabel('From').fill(await local(missed + HOUR))
    await form.getByLabel('Before').fill(await local(missed + 2 * HOUR))
    await button(page, 'Show the slots').click()
    await form.getByText('No slot in this time is left').waitFor()
    await form.getByLabel('From').fill(await local(missed - 30 * DAY))
    await button(page, 'Show the slots').click()
    await form.getByText('due before this trigger was added').waitFor()
    await form.getByLabel('From').fill(await local(missed - HOUR))
    await button(page, 'Show the slots').click()
    await form.locator('.slots > li').waitFor()
    expect(await form.getByText('due before this trigger was added').count()).toBe(0)
    await confirm(page, 'Start them')
    await form.getByText('One run starts, the oldest first.').waitFor()
    const filled = async () => {
      const { firings } = await call('firings', { name: 'fails', state: 'started', limit: 100 })
      return firings.some(({ at }: { at: number }) => at === missed)
    }
    await until(filled, 'the run of the slot')
  })

  test('a hook has its address and secrets, and says of each delivery what came and what became of it', async () => {
    const { daemon } = (await started)!
    const auth = { authorization: `Bearer ${daemon.token}` }
    const spec = { kind: 'hook', name: 'told', team: files({ 'team.yml': WATCHED }), scheme: 'github', secret: SECRET }
    const when = 'body.action == "opened"'
    const { url } = await daemon.call('/v1/triggers/add', { ...spec, when, inputs: { day: '{{ body.day }}' } }, auth)
    const send = (body: object, id: string) => post(url, JSON.stringify(body), signed(JSON.stringify(body), id))
    const hostile = { action: 'opened', day: HOSTILE, token: SECRET }
    await send(hostile, 'one')
    await send(hostile, 'one')
    await send({ action: 'closed' }, 'two')
    await post(url, '{}', signed('{}', 'three', 'another secret'))

    const { page, call } = await pageOf('told')
    await page.getByText(url, { exact: true }).waitFor()
    const firing = (text: string) => page.locator('.firing', { hasText: text })
    await firing('refused: the signature did not fit').waitFor()
    expect(await firing('the signature did not fit').getByRole('button').count()).toBe(0)
    await firing('skipped: its condition was not met').getByText('two', { exact: true }).waitFor()
    const first = firing('came 2 times')
    await first.getByText('What was delivered').click()
    await first.getByText('x-github-event: issues').waitFor()
    const sent = await first.locator('pre').last().textContent()
    expect(sent).toContain('onerror=')
    // The sender has put the secret into the body; it is masked. So is the character that would reverse the text.
    expect(sent).not.toContain(SECRET)
    expect(sent).not.toContain('\u202E')
    expect([await page.evaluate('globalThis.ran'), await page.locator('img').count()]).toEqual([undefined, 0])
    await expectAccessible(page, 'a hook')

    await first.getByRole('button', { name: 'Start again' }).click()
    await first.locator('fieldset').getByRole('button', { name: 'Start again' }).click()
    await first.getByText('It runs.').waitFor()
    expect((await call('firings', { name: 'told', state: 'started' })).total).toBe(2)

    await page.getByText('Change the secret').click()
    await page.getByLabel('The secret is').selectOption('typed')
    await page.getByLabel('Secret', { exact: true }).fill('the next secret of the sender')
    await button(page, 'Add').click()
    const secrets = page.locator('.slots > li')
    await until(async () => (await secrets.count()) === 2, 'both secrets are listed', PATIENCE_MS)
    await secrets.first().getByRole('button', { name: 'Let it expire' }).click()
    await secrets.first().locator('fieldset').getByRole('button', { name: 'Let it expire' }).click()
    await page.getByText('fits no more since').waitFor()
    expect(await page.content()).not.toContain('the next secret')
    // The page makes one as well, and shows it once.
    await page.getByLabel('The secret is').selectOption('made')
    await button(page, 'Add').click()
    const made = await page.getByLabel('The secret of the hook.').inputValue()
    const closed = JSON.stringify({ action: 'closed' })
    expect((await post(url, closed, signed(closed, 'three', made))).status).toBe(202)
    // Two fit then, and a third one does not.
    await button(page, 'Add').click()
    await page.getByText('a hook has at most 2 secrets that fit').waitFor()
    forgive(/status of 409/)
    await page.reload()
    await until(async () => (await secrets.count()) === 2, 'the page is there again', PATIENCE_MS)
    expect(await page.getByLabel('The secret of the hook.').count()).toBe(0)

    await page.getByRole('link', { name: 'Edit' }).click()
    const preview = page.getByRole('region', { name: 'Preview' })
    await preview.getByRole('button', { name: 'Take the last delivery' }).click()
    await until(
      async () => (await preview.getByLabel('Body').inputValue()).includes('closed'),
      'the body is there',
      PATIENCE_MS,
    )
    await preview.getByRole('button', { name: 'Try it' }).click()
    await preview.locator('.state.skipped').waitFor()
    await page.getByText('More', { exact: true }).click()
    await page.getByLabel('Only when').fill('body.action == "closed"')
    await page.getByLabel('day', { exact: true }).fill('{{ body.action }}')
    await preview.getByRole('button', { name: 'Try it' }).click()
    await preview.locator('.state.completed', { hasText: 'starts' }).waitFor()
    await preview.locator('.json', { hasText: '"closed"' }).waitFor()
    await button(page, 'Save').click()
    await page.getByRole('heading', { name: 'What it starts' }).waitFor()
    const saved = await call('get', { name: 'told' })
    expect(saved).toMatchObject({ when: 'body.action == "closed"', inputs: { day: '{{ body.action }}' } })
    expect(saved).toMatchObject({ scheme: 'github', overlap: 'allow', url })
    await daemon.call('/v1/triggers/remove', { name: 'told' }, auth)
  })

  test('a hook is added with a secret that the page makes and shows once', async () => {
    const { page, call, daemon } = await open('triggers?kind=hook')
    const asked: string[] = []
    page.on('request', request => asked.push(`${request.url()} ${request.postData() ?? ''}`))
    await page.getByRole('link', { name: 'Add a trigger' }).first().click()
    const senders = page.getByLabel('Who sends').locator('option')
    expect(await senders.evaluateAll(all => all.map(each => (each as unknown as { value: string }).value))).toEqual([
      ...HOOK_SCHEMES,
    ])
    await page.getByLabel('Team', { exact: true }).fill(files({ 'team.yml': WATCHED }))
    await page.getByLabel('Name', { exact: true }).fill('sent')
    await page.getByLabel('Only when').fill('body.action == "opened"')
    await page.getByLabel('day', { exact: true }).fill('{{ body.day }}')
    const preview = page.getByRole('region', { name: 'Preview' })
    await preview.getByLabel('Body').fill('{"action": "opened", "day": "Monday"}')
    await preview.getByRole('button', { name: 'Try it' }).click()
    await preview.locator('.state.completed', { hasText: 'starts' }).waitFor()
    await preview.locator('.json', { hasText: '"Monday"' }).waitFor()
    // The server says at the field what is wrong with it.
    await page.getByLabel('The secret is').selectOption('typed')
    await page.getByLabel('Secret', { exact: true }).fill(' canary-secret')
    await page.getByLabel('Only when').fill('body.action ==')
    await button(page, 'Add it').click()
    const problem = (label: string) =>
      page.getByLabel(label, { exact: true }).evaluate(field => {
        const { ariaInvalid, ariaDescribedByElements: [about] = [] } = field as unknown as {
          ariaInvalid: string
          ariaDescribedByElements: { textContent: string }[]
        }
        return [ariaInvalid, about?.textContent]
      })
    await page.getByLabel('Secret', { exact: true }).and(page.locator('[aria-invalid]')).waitFor()
    expect(await problem('Secret')).toEqual(['true', expect.stringContaining('begins or ends with a blank')])
    expect(await problem('Only when (a CEL expression)')).toEqual(['true', expect.any(String)])
    forgive(/status of 400/)
    await page.getByLabel('Only when').fill('body.action == "opened"')
    await page.getByLabel('The secret is').selectOption('made')
    await button(page, 'Add it').click()
    await page.getByRole('heading', { name: 'sent', exact: true }).waitFor()
    const { url } = await call('get', { name: 'sent' })
    const secret = await page.getByLabel('The secret of the hook.').inputValue()
    expect(secret).toMatch(/^[0-9a-f]{64}$/)
    expect(await page.getByLabel('The URL of the hook').inputValue()).toBe(url)
    await page.getByText('add a webhook with the URL, the secret and the content type').waitFor()
    await expectAccessible(page, 'a hook that was added')
    const body = JSON.stringify({ action: 'opened', day: 'Monday' })
    expect((await post(url, body, signed(body, 'one', secret))).body.data.state).toBe('started')

    // It was sent once, and is kept nowhere.
    expect(asked.filter(text => text.includes(secret)).map(text => text.split(' ')[0])).toEqual([
      // The page of a home is at this name, whatever address led to it.
      `${daemon.url.replace('127.0.0.1', 'localhost')}/v1/triggers/add`,
    ])
    const kept = '[location.href, JSON.stringify(history.state), ...[localStorage, sessionStorage].map(JSON.stringify)]'
    expect(String(await page.evaluate(kept))).not.toMatch(new RegExp(`${secret}|canary-secret`))
    await page.getByRole('link', { name: 'Triggers' }).first().click()
    await page.getByRole('link', { name: 'sent', exact: true }).click()
    await page.getByText(url, { exact: true }).waitFor()
    expect(await page.getByLabel('The secret of the hook.').count()).toBe(0)
    // What is not touched is not changed.
    await page.getByRole('link', { name: 'Edit' }).click()
    await button(page, 'Save').click()
    await page.getByRole('heading', { name: 'What it starts' }).waitFor()
    expect(await call('get', { name: 'sent' })).toMatchObject({ scheme: 'github', when: 'body.action == "opened"' })
    await call('remove', { name: 'sent' })
  })

  test('each scheme has the fields that it needs, and its hook is added', async () => {
    const { page, call } = await open('triggers/new?kind=hook')
    const team = files({ 'team.yml': WATCHED })
    const add = async (scheme: string, fields: Record<string, string> = {}, choices: Record<string, string> = {}) => {
      await page.getByLabel('Team', { exact: true }).fill(team)
      await page.getByLabel('Name', { exact: true }).fill(scheme.replace('_', '-'))
      await page.getByLabel('Who sends').selectOption(scheme)
      for (const [label, value] of Object.entries(choices)) await page.getByLabel(label).selectOption(value)
      for (const [label, text] of Object.entries(fields)) await page.getByLabel(label, { exact: true }).fill(text)
      await button(page, 'Add it').click()
      await page.getByRole('heading', { name: 'Where the sender posts to' }).waitFor()
      const shown = await page.getByLabel('The secret of the hook.').count()
      const added = await call('get', { name: scheme.replace('_', '-') })
      await call('remove', { trigger_id: added.id })
      await page.goto(page.url().replace(/#.*/, '#/triggers/new?kind=hook'))
      await page.getByLabel('Who sends').waitFor()
      return [added, shown]
    }
    for (const scheme of ['gitea', 'gitlab', 'gitlab_token', 'jira', 'bitbucket', 'bearer']) {
      expect(await add(scheme)).toEqual([expect.objectContaining({ scheme }), 1])
    }
    for (const scheme of ['slack', 'shopify']) {
      expect(await add(scheme, { Secret: 'a secret of the sender' })).toEqual([expect.objectContaining({ scheme }), 0])
    }
    // Nobody can know the secret of these before the sender has the URL.
    for (const scheme of ['stripe', 'standard', 'zendesk']) {
      expect(await add(scheme)).toEqual([expect.objectContaining({ scheme }), 0])
    }
    const signature = { 'Header of the signature': 'X-Signature', 'What stands before it': 'v=' }
    const same = 'Two deliveries are the same when'
    expect(await add('hmac', { ...signature, 'Header of the id': 'X-Id' }, { 'It is written in': 'base64' })).toEqual([
      expect.objectContaining({ header: 'X-Signature', prefix: 'v=', encoding: 'base64', id_header: 'X-Id' }),
      1,
    ])
    expect(await add('hmac', { ...signature, Template: '{{ body.id }}' }, { [same]: 'template' })).toEqual([
      expect.objectContaining({ dedup: '{{ body.id }}' }),
      1,
    ])
    expect(await add('graph')).toEqual([expect.objectContaining({ dedup: 'body' }), 1])
    expect(await add('graph', {}, { [same]: 'none' })).toEqual([expect.objectContaining({ dedup: 'none' }), 1])
    await page.getByLabel('Who sends').selectOption('stripe')
    await page.getByText('Stripe then shows its signing secret').waitFor()
  })

  test('a trigger whose file says something else is kept, or takes what the file says', async () => {
    const { daemon } = (await started)!
    const auth = { authorization: `Bearer ${daemon.token}` }
    const declaring = (hour: number) =>
      `${WATCHED}triggers: [{ name: declared, schedule: { cron: "0 ${hour} * * *", tz: UTC } }]\n`
    const team = files({ 'team.yml': declaring(6) })
    const { id } = await daemon.call('/v1/triggers/enable', { team, name: 'declared' }, auth)
    const breakIt = async (hour: number) => {
      writeFileSync(join(team, 'team.yml'), declaring(hour))
      // An occasion looks at the file, as a tick does later.
      await daemon.call('/v1/triggers/run_now', { trigger_id: id }, auth)
      expect((await daemon.call('/v1/triggers/get', { trigger_id: id })).state).toBe('broken')
    }
    await breakIt(7)
    const { page } = await pageOf('declared')
    await page.getByText('the spec of declared changed in 1.0.0; enable it again').first().waitFor()
    await page.getByText('stands in the team.yml of @local/watched 1.0.0').waitFor()
    expect(await page.getByRole('link', { name: 'Edit' }).count()).toBe(0)
    await confirm(page, 'Take what the file says')
    await page.getByText('at 07:00, every day, UTC').waitFor()
    await breakIt(8)
    await confirm(page, 'Keep it as it was')
    await page.locator('.facts .state', { hasText: 'active' }).waitFor()
    await page.getByText('at 07:00, every day, UTC').waitFor()
    await daemon.call('/v1/triggers/remove', { name: 'declared' }, auth)
  })

  test('on paper a page is whole, dark on white, and without what is clicked', async () => {
    const { page } = await pageOf('often')
    await page.locator('.firing').first().waitFor()
    await page.emulateMedia({ media: 'print', colorScheme: 'dark' })
    expect(await page.locator('.frame').isVisible()).toBe(false)
    expect(await button(page, 'Run now').isVisible()).toBe(false)
    const [ground, hidden] = await page.evaluate<[string, number]>(`[
      getComputedStyle(document.documentElement).backgroundColor,
      document.querySelector('main').scrollHeight - document.querySelector('main').clientHeight,
    ]`)
    expect([ground, hidden]).toEqual(['rgb(251, 251, 253)', 0])
    await page.emulateMedia({ media: 'screen' })
  })

  test('a printed calendar cuts no name, and has every line of a day', async () => {
    const { page, call } = await open('triggers/calendar')
    const names = Array.from({ length: 6 }, (_, at) => `a-report-of-everything-that-happened-in-the-week-${at}`)
    const team = files({ 'team.yml': WATCHED })
    for (const name of names) await call('add', { name, kind: 'schedule', team, cron: CRON, tz: 'UTC' })
    await page.reload()
    const lines = page.locator('.calendar > li').nth(1).locator('a')
    await lines.filter({ hasText: names[0]! }).waitFor()
    // The width of a page of A4.
    await page.setViewportSize({ width: 718, height: 1_000 })
    await page.emulateMedia({ media: 'print' })
    expect((await lines.allTextContents()).filter(text => names.includes(text.split(' ')[1]!))).toHaveLength(6)
    const cut = await page.evaluate<string[]>(`[...document.querySelectorAll('.calendar a')]
      .filter(each => each.scrollWidth > each.clientWidth || !each.checkVisibility({ contentVisibilityAuto: true }))
      .map(each => each.textContent)`)
    expect(cut).toEqual([])
    await page.emulateMedia({ media: 'screen' })
    for (const name of names) await call('remove', { name })
  })

  test('without the local token nothing can be changed, and the page says how to get it', async () => {
    const { daemon } = (await started)!
    const { id } = await daemon.call('/v1/triggers/get', { name: 'daily' })
    const { page } = await open(`triggers/${id}`, { token: false })
    await page.getByText(/(daemon\.ts|cadre) dashboard/).waitFor()
    await page.locator('.firing').first().waitFor()
    expect(await page.locator('main').getByRole('button').allTextContents()).toEqual(['Use it'])
  })

  test('texts of others stay texts', async () => {
    const { page, daemon } = await open('triggers')
    for (const name of ['paused', 'broken']) {
      const { id } = await daemon.call('/v1/triggers/get', { name })
      for (const place of ['triggers', 'triggers/calendar', `triggers/${id}`, `triggers/${id}/edit`]) {
        await page.goto(`${daemon.url}/#/${place}`)
        await page.locator('.calendar, table, h2').first().waitFor()
        expect([place, await page.evaluate('globalThis.ran'), await page.locator('img').count()]).toEqual([
          place,
          undefined,
          0,
        ])
      }
    }
    const { id } = await daemon.call('/v1/triggers/get', { name: 'paused' })
    await page.goto(`${daemon.url}/#/triggers/${id}`)
    const notice = await page.locator('.notice', { hasText: 'Paused by' }).textContent()
    expect(notice).toContain('onerror=')
    expect(notice).not.toContain('\u202E')
    forgive(/status of 400/)
  })

  test('axe finds nothing on any of the pages, light and dark', async () => {
    const { page, daemon } = await open('triggers')
    const id = async (name: string) => (await daemon.call('/v1/triggers/get', { name })).id
    const places = {
      triggers: 'tbody tr',
      'triggers/calendar': '.calendar',
      'triggers/new': '.preview',
      'triggers/new?kind=watch': '.preview',
      'triggers/new?kind=chain': '.preview',
      'triggers/new?kind=hook': '.preview',
      [`triggers/${await id('asks')}`]: '.firing',
      [`triggers/${await id('paused')}`]: '.notice',
      [`triggers/${await id('broken')}`]: '.notice.failed',
      [`triggers/${await id('daily')}/edit`]: '.preview .slots',
      'runs?started_by=schedule%3Adaily': '.item',
    }
    for (const [place, shown] of Object.entries(places)) await expectAccessibleAt(page, daemon.url, place, shown)
    await page.goto(`${daemon.url}/#/triggers/${await id('asks')}`)
    await button(page, 'Pause').click()
    await button(page, 'Remove').click()
    await page.setViewportSize({ width: 390, height: 800 })
    await expectAccessible(page, 'a trigger with its forms')
    // Names and times of a phone do not make the page wider than it is.
    for (const place of Object.keys(places)) {
      await page.goto(`${daemon.url}/#/${place}`)
      await page.locator('main h1').waitFor()
      expect([place, await page.evaluate('document.querySelector("main").scrollWidth <= innerWidth')]).toEqual([
        place,
        true,
      ])
    }
  })
})
