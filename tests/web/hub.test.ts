// The pages of the hub in a real browser, on a real hub with a real daemon.

import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Browser, Cookie, Page } from 'playwright-core'
import { build } from '../../lib/web/web.ts'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD } from '../support/hub.ts'
import { reviewChange, runChange } from '../support/sync.ts'
import { expectAccessible } from './axe.ts'
import { answer, hasBrowser, leave, look, PATIENCE_MS, type Seen, startBrowser } from './browser.ts'
import { startWorld, type World } from './hub-world.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

test('the first page is below 60 KB compressed', async () => {
  const { html, files } = await build('cadre', 'hub')
  const first = [...html.matchAll(/\/web\/([^"]+)"/g)].map(([, name]) => name!)
  // What a script imports comes with it. What it loads later does not.
  for (const name of first) {
    for (const [, more] of files[name]!.text.matchAll(/(?:from|import)"\.\/([^"]+)"/g)) {
      if (!first.includes(more!)) first.push(more!)
    }
  }
  expect(first.length).toBeGreaterThan(2)
  const sizes = first.map(name => Bun.gzipSync(files[name]!.text).length)
  expect(sizes.reduce((sum, size) => sum + size, Bun.gzipSync(html).length)).toBeLessThan(60_000)
})

test('the page has the addresses of calls, and none of their schemas', async () => {
  const scripts = Object.values((await build('cadre', 'hub')).files).map(({ text }) => text)
  expect(scripts.join('\n')).toContain('/v1/realms/list')
  expect(scripts.filter(text => /additionalProperties|x-expected/.test(text))).toEqual([])
})

describe.skipIf(!hasBrowser)('the pages of the hub', () => {
  const started = hasBrowser ? Promise.all([startWorld(), startBrowser()]) : null
  const opened: Seen[] = []
  const both = async () => (await started) as [World, Browser]
  const worldOf = async () => (await both())[0]

  afterEach(async () => {
    expect(await leave((await both())[1], opened)).toEqual([])
  })
  afterAll(async () => {
    const found = await started
    await found?.[1].close()
    await found?.[0].hub.stop()
  })

  /** A page of somebody who has these cookies; without, of somebody who is not signed in. */
  async function visit(address: string, cookies: readonly Cookie[] = []) {
    const [{ hub }, browser] = await both()
    const seen = await look(browser, `${hub.url}/#/${address}`, cookies)
    opened.push(seen)
    return seen.page
  }
  async function signIn(page: Page, username = 'admin', password = ADMIN_PASSWORD) {
    await page.getByLabel('User name').fill(username)
    await page.getByLabel('Password').fill(password)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('button', { name: 'Sign out' }).waitFor()
  }
  /** The session of the admin, in which most tests go on from each other. */
  let session: Cookie[] | undefined
  async function open(address: string) {
    const page = await visit(address, session)
    if (!session) await signIn(page)
    session ??= await page.context().cookies(`${(await worldOf()).hub.url}/web`)
    return page
  }
  /** Takes out complaints that a test has caused on purpose. The browser reports each reply that is an error. */
  function forgive(expected: RegExp): void {
    for (const seen of opened) {
      seen.complaints.splice(0, Number.POSITIVE_INFINITY, ...seen.complaints.filter(text => !expected.test(text)))
    }
  }
  /** What a person does to what cannot be undone. */
  async function confirm(place: ReturnType<Page['locator']>, name: string, typed?: string) {
    await place.getByRole('button', { name, exact: true }).click()
    const question = place.locator('fieldset.confirm')
    if (typed !== undefined) await question.getByLabel(`Type ${typed}`, { exact: true }).fill(typed)
    await question.getByRole('button', { name, exact: true }).click()
  }

  test('signing in leads to what the address says, and signing out ends the session', async () => {
    const { hub } = await worldOf()
    const page = await visit('packages')
    await page.getByLabel('User name').fill('admin')
    await page.getByLabel('Password').fill('not this one')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('wrong user name or password').waitFor()
    forgive(/status of 401/)
    await signIn(page)
    await page.getByRole('heading', { name: 'Packages' }).waitFor()
    // The session is where no script finds it, and a reload keeps it.
    expect(
      await page.evaluate('document.cookie + JSON.stringify(localStorage) + JSON.stringify(sessionStorage)'),
    ).not.toContain('cadre_tok_')
    await page.reload()
    await page.getByRole('link', { name: '@admin/release' }).waitFor()
    const [cookie] = await page.context().cookies(`${hub.url}/web`)
    expect(cookie).toMatchObject({ name: 'cadre_session', httpOnly: true, sameSite: 'Strict', path: '/web' })

    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    expect((await hub.call(cookie!.value, 'auth/whoami')).status).toBe(401)
  })

  test('a password is changed, which ends the other sessions', async () => {
    const { hub } = await worldOf()
    const { token } = await hub.account('changes')
    const page = await visit('runs')
    await signIn(page, 'changes', 'password of a test')
    await page.getByRole('link', { name: 'changes' }).click()
    await page.getByLabel('Present password').fill('password of a test')
    await page.getByLabel('New password').fill('another good one')
    await page.getByRole('button', { name: 'Change' }).click()
    await page.getByText('The password is changed.').waitFor()
    expect((await hub.call(token, 'auth/whoami')).status).toBe(401)
    await page.reload()
    await page.getByRole('heading', { name: 'Account' }).waitFor()
  })

  test('a session that is revoked elsewhere leads to the page for signing in', async () => {
    const { hub } = await worldOf()
    const page = await visit('queue')
    await signIn(page)
    await page.getByRole('heading', { name: 'Queue' }).waitFor()
    const { tokens } = await hub.ok(hub.admin, 'auth/get_tokens', { limit: 1 })
    expect(tokens[0].kind).toBe('session')
    await hub.ok(hub.admin, 'auth/revoke_token', { id: tokens[0].id })
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await signIn(page)
    await page.getByRole('heading', { name: 'Queue' }).waitFor()
    // Now each request of the revoked session has its answer.
    forgive(/status of 401/)
  })

  test('a team is dispatched from a form, and its run is followed to its end', async () => {
    const world = await worldOf()
    const page = await open('dispatch')
    const place = folder()
    // Another team while the first one is asked for: the form is that of the last.
    await page.getByLabel('Team').locator('option', { hasText: '@admin/waits' }).waitFor({ state: 'attached' })
    await page.evaluate(`(() => {
      const select = [...document.querySelectorAll('select')].find(each => each.labels[0]?.textContent.startsWith('Team'))
      for (const team of ['@admin/nightly-report', '@admin/waits']) {
        select.value = team
        select.dispatchEvent(new Event('change', { bubbles: true }))
      }
    })()`)
    await page.getByRole('heading', { name: '@admin/waits' }).waitFor()
    await page.getByLabel('place').fill(place)
    await page.getByText('Where and how').click()
    await page.getByLabel('Name of the run').fill('From the page')
    await page.getByRole('form', { name: 'Dispatch' }).getByRole('button', { name: 'Dispatch' }).click()
    await page.getByRole('heading', { name: 'From the page' }).waitFor()
    await page.locator('.facts .state.running').waitFor()
    const runId = /#\/runs\/([0-9a-f-]{36})$/.exec(page.url())![1]!
    await page.getByRole('link', { name: 'build-1' }).waitFor()

    await page.getByRole('link', { name: 'Log', exact: true }).click()
    await page.locator('.line .text', { hasText: 'first' }).waitFor()
    world.release(place)
    await page.locator('.line .ansi-green', { hasText: 'last' }).waitFor()
    await page.locator('.facts .state.completed').waitFor()

    // Again, from the same inputs.
    await page.getByRole('link', { name: 'Dispatch again' }).click()
    await page.getByRole('heading', { name: '@admin/waits' }).waitFor()
    expect(await page.getByLabel('place').inputValue()).toBe(place)
    await page.getByRole('form', { name: 'Dispatch' }).getByRole('button', { name: 'Dispatch' }).click()
    await page.getByRole('heading', { name: 'From the page' }).waitFor()
    await page.locator('.facts .state.completed').waitFor()
    expect(page.url()).not.toContain(runId)
  })

  test('the next items of a list come below those that are shown', async () => {
    const { hub } = await worldOf()
    for (let n = 0; n < 101; n++) await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: `token ${n}` })
    const page = await open('tokens')
    const more = page.getByRole('button', { name: /^Show more of 1/ })
    await more.waitFor()
    await page.evaluate(`(() => {
      globalThis.least = Infinity
      const look = () => (globalThis.least = Math.min(least, document.querySelectorAll('tbody tr').length))
      new MutationObserver(look).observe(document.body, { childList: true, subtree: true })
    })()`)
    await more.click()
    await more.waitFor({ state: 'detached' })
    expect(await page.evaluate('globalThis.least')).toBeGreaterThanOrEqual(100)
    expect(await page.locator('tbody tr').count()).toBeGreaterThan(100)
    const { tokens } = await hub.ok(hub.admin, 'auth/get_tokens', { limit: 100 })
    for (const { id, name } of tokens)
      if (name?.startsWith('token ')) await hub.ok(hub.admin, 'auth/revoke_token', { id })
  })

  test('a tree, its files and the reason of a failure are shown', async () => {
    const world = await worldOf()
    const nightly = await world.dispatch('nightly-report', { run_name: 'Nightly' })
    const broken = await world.dispatch('backup-check', { run_name: 'Backup' })
    await world.reached(nightly, 'completed')
    await world.reached(broken, 'failed')
    const page = await open(`runs/${nightly}/tree`)
    await page.getByRole('row').filter({ hasText: 'mail' }).waitFor()
    expect(await page.getByRole('row').count()).toBe(5)
    await page.getByRole('link', { name: 'mail' }).click()
    await page.getByRole('link', { name: 'top run' }).waitFor()
    await page.locator('.phase .name', { hasText: 'probe' }).waitFor()

    // The log of the whole tree, in the order of time.
    await page.goto(`${world.hub.url}/#/runs/${nightly}/logs`)
    await page.locator('.line .text', { hasText: 'wrote the report' }).waitFor()
    // The first lines may be drawn before the last have come.
    const drawn = async () => {
      const texts = await page.locator('.line .text').allTextContents()
      return texts.length === 9 && texts
    }
    const said = await until(drawn, 'all lines', PATIENCE_MS)
    expect([said.slice(4, -1).toSorted(), said.at(-1)]).toEqual([
      ['api answers', 'jobs answers', 'mail answers', 'web answers'],
      'wrote the report',
    ])
    await page.goto(`${world.hub.url}/#/runs/${nightly}/files`)
    await page.getByRole('button', { name: 'write/report.md' }).click()
    await page.getByText('is not kept by this hub, because CADRE_ARTIFACTS is not set').waitFor()
    forgive(/status of 409/)

    await page.goto(`${world.hub.url}/#/runs/${broken}/why`)
    await page.getByText('because its phase restore (exec) failed').waitFor()
    await page.getByRole('link', { name: 'Backup › restore' }).click()
    await page.getByText('relation accounts does not exist').first().waitFor()
    await page.getByRole('button', { name: 'Continue' }).click()
    await until(
      async () => (await world.hub.ok(world.hub.admin, 'runs/get', { run_id: broken })).attempt > 1,
      'the run is continued',
      PATIENCE_MS,
    )
  })

  test('lines of a log that are drawn stay, also when the runs below become known and while words are typed', async () => {
    const world = await worldOf()
    const nightly = await world.dispatch('nightly-report')
    await world.reached(nightly, 'completed')
    const page = await open('runs')
    // The log of the run is there before its tree.
    const tree = Promise.withResolvers<void>()
    await page.route('**/runs/tree', async route => {
      await tree.promise
      await route.continue()
    })
    await page.evaluate(`
      globalThis.fewer = []
      let before = 0
      new MutationObserver(() => {
        const now = document.querySelectorAll('.line').length
        if (now < before) fewer.push([before, now])
        before = now
      }).observe(document.body, { childList: true, subtree: true })
    `)
    await page.goto(`${world.hub.url}/#/runs/${nightly}/logs`)
    await page.locator('.line .text', { hasText: 'wrote the report' }).waitFor()
    tree.resolve()
    // The option to leave them out shows that the runs below are known.
    await page.getByLabel('Runs').waitFor()
    await page.locator('.line .text', { hasText: 'mail answers' }).waitFor()
    expect(await page.evaluate('fewer')).toEqual([])

    await page.getByLabel('Search').pressSequentially('answer')
    await until(async () => (await page.locator('.line').count()) === 4, 'the lines are found', PATIENCE_MS)
    expect(await page.evaluate('fewer.filter(([, now]) => now < 4)')).toEqual([])
  })

  test('a gate is decided in the inbox, with its form', async () => {
    const world = await worldOf()
    const run = await world.dispatch('release', { run_name: 'Release 4.2', inputs: { tag: 'v4.2.0' } })
    await world.reached(run, 'awaiting_input')
    const page = await open('reviews')
    const card = page.getByRole('region', { name: 'Review of approve' })
    await card.getByText('Publish this release?').waitFor()
    await card.getByLabel('note').fill('Faster start')
    await answer(card, 'Approve')
    await world.reached(run, 'completed')
    await page.getByText('Nothing waits for you.').waitFor()
    const { phases } = await world.hub.ok(world.hub.admin, 'runs/phases', { run_id: run })
    expect(phases[1].data).toMatchObject({ note: 'Faster start' })
  })

  test('the queue says what a job waits for, and a job is cancelled there', async () => {
    const world = await worldOf()
    const run = await world.dispatch('train')
    const page = await open('queue')
    const row = page.getByRole('row').filter({ hasText: '@admin/train' })
    await row.getByText('gpu').waitFor()
    await confirm(row, 'Cancel')
    await page.getByText('Nothing waits in').waitFor()
    await world.reached(run, 'cancelled')
  })

  test('a daemon is approved and paused, and one that goes away and comes back is shown so', async () => {
    const world = await worldOf()
    const { hub } = world
    const { token } = await hub.account('plain')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: world.realm, username: 'plain', role: 'member' })
    const enrol = await hub.realmToken(token, world.realm)
    const { daemon_id } = await hub.ok(enrol.token, 'daemons/register', { name: 'laptop', labels: { os: 'darwin' } })
    const page = await open('daemons')
    await page.locator('.card', { hasText: 'laptop' }).getByText('waits for approval').waitFor()
    await page.getByRole('link', { name: 'laptop' }).click()
    await page.getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('button', { name: 'Approve' }).waitFor({ state: 'detached' })
    expect((await hub.ok(hub.admin, 'daemons/get', { daemon_id })).approved).toBe(true)
    // What it says of itself, and what a person has to do about it.
    const standing = {
      disk_free: 400_000_000,
      last_error: { at: Date.now() - 60_000, text: 'the queue is <b>full</b>' },
      outbox: { changes: 1, files: 2, oldest_at: Date.now() - 3_600_000 },
      credentials_expire: [{ name: 'git', at: Date.now() + 2.5 * 86_400_000 }],
    }
    const agents = [{ name: 'git', version: '1.0.0', doctor: 'wrong', text: 'Bad credentials' }]
    await hub.ok(enrol.token, 'daemons/heartbeat', { daemon_id, standing, agents })
    const worries = page.getByRole('list', { name: 'To look at' })
    await worries.getByText('the credential of git ends in 2d').waitFor()
    await worries.getByText('1 change and 2 files wait for the hub since 1h').waitFor()
    await page.getByText('git ends in 3 days').waitFor()
    await page.getByText('the queue is <b>full</b>').waitFor()
    await page.getByText('Bad credentials').waitFor()
    await expectAccessible(page, 'a daemon')
    await page.getByRole('button', { name: 'Examine agents' }).click()
    await until(async () => (await hub.ok(hub.admin, 'daemons/get', { daemon_id })).examine, 'the request')
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.locator('.facts').getByText('paused').waitFor()
    await confirm(page.locator('main'), 'Remove', 'laptop')
    await page.locator('.facts').getByText('removed').waitFor()

    await page.goto(`${hub.url}/#/daemons?show=agents`)
    await page.getByRole('columnheader', { name: 'build-1' }).waitFor()
    await page.getByRole('rowheader', { name: 'exec', exact: true }).waitFor()

    await page.goto(`${hub.url}/#/daemons/${world.daemonId}`)
    await page.locator('.facts').getByText('online').waitFor()
    await page.getByText('right to the second').waitFor()
    await page.getByText('office').waitFor()
    await world.stopDaemon()
    await hub.skew(60_000)
    await page.locator('.facts').getByText('stale').waitFor()
    await world.startDaemon()
    await page.locator('.facts').getByText('online').waitFor()
    await hub.skew(0)
  })

  test('a hub that goes away and comes back is said, and the page goes on', async () => {
    const world = await worldOf()
    const place = folder()
    const run = await world.dispatch('waits', { run_name: 'Through it all', inputs: { place } })
    await world.reached(run, 'running')
    const page = await open(`runs/${run}`)
    await page.locator('.facts .state.running').waitFor()
    const lost = page.getByText('The connection to the hub was lost.')
    await world.hub.restart({}, () => lost.waitFor())
    await lost.waitFor({ state: 'detached' })
    world.release(place)
    await page.locator('.facts .state.completed').waitFor()
    forgive(/net::ERR_/)
  })

  test('people are invited by a link, join with it, and get roles', async () => {
    const { hub } = await worldOf()
    const page = await open('realms')
    await page.getByLabel('Name').fill('Night shift')
    await page.getByRole('button', { name: 'Create' }).click()
    await page.getByRole('heading', { name: 'Night shift' }).waitFor()
    await page.getByRole('link', { name: 'Invitations' }).click()
    await page.getByText('No invitation is open.').waitFor()
    await page.getByLabel('Role').selectOption('operator')
    await page.getByRole('button', { name: 'Create a link' }).click()
    const link = await page.getByLabel('The link of the invitation.').inputValue()
    expect(link).toMatch(/\/#\/join\/\w+$/)
    await page.getByRole('cell', { name: 'whoever has the link' }).waitFor()

    const [, browser] = await both()
    const guest = await look(browser, link)
    opened.push(guest)
    await guest.page.getByLabel('User name').fill('night')
    await guest.page.getByLabel('Password').fill('a good password')
    await guest.page.getByRole('button', { name: 'Join', exact: true }).click()
    await guest.page.getByRole('heading', { name: 'Night shift' }).waitFor()
    await guest.page.getByText('you are operator').waitFor()

    await page.getByText('No invitation is open.').waitFor()
    await page.getByRole('link', { name: 'Members' }).click()
    await page.getByLabel('Role of night').selectOption('member')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Make night member' }).click()
    const realm = (await hub.ok(hub.admin, 'realms/list')).realms.find(
      ({ name }: { name: string }) => name === 'Night shift',
    )
    const roleOf = async () =>
      (await hub.ok(hub.admin, 'realms/members', { realm_id: realm.id })).members.find(
        ({ username }: { username: string }) => username === 'night',
      )?.role
    await until(async () => (await roleOf()) === 'member', 'the role is set', PATIENCE_MS)
    await confirm(page.getByRole('row').filter({ hasText: 'night' }), 'Remove')
    await page.getByLabel('Role of night').waitFor({ state: 'detached' })
    expect(await roleOf()).toBeUndefined()

    await page.getByRole('link', { name: 'Invitations' }).click()
    await page.getByRole('button', { name: 'Create a link' }).click()
    await confirm(page.getByRole('row').filter({ hasText: 'whoever has the link' }), 'Revoke')
    await page.getByText('No invitation is open.').waitFor()
    await guest.page.goto(await page.getByLabel('The link of the invitation.').inputValue())
    await guest.page.getByRole('button', { name: 'Join', exact: true }).click()
    await guest.page.getByText('this invitation was revoked').waitFor()
    // The page of whoever was removed asked once more.
    forgive(/status of (404|410)/)
  })

  test('whoever has no realm, and whoever is a plain member of one, gets pages that say what to do', async () => {
    const { hub, realm } = await worldOf()
    await hub.account('alone')
    const page = await visit('runs')
    await signIn(page, 'alone', 'password of a test')
    const walk = async (told: Record<string, string>) => {
      for (const [place, text] of Object.entries(told)) {
        await page.goto(`${hub.url}/#/${place}`)
        await page.locator('main', { hasText: text }).waitFor()
        expect([place, await page.getByRole('alert').count()]).toEqual([place, 0])
      }
    }
    await walk({
      runs: 'No daemon has reported a run yet.',
      reviews: 'Nothing waits for you.',
      dispatch: 'You are in no realm yet.',
      queue: 'You are in no realm yet.',
      daemons: 'No daemon is enrolled in your realms.',
      packages: 'Nothing is published in your scopes.',
      realms: 'You are in no realm yet.',
      tokens: 'You have no token that works, except your session here.',
      audit: 'Nothing was recorded that you may see.',
      nowhere: 'There is no page nowhere.',
    })
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: 'alone', role: 'member' })
    await page.reload()
    await walk({
      dispatch: 'Operators and admins dispatch',
      queue: 'Nothing waits in',
      daemons: 'build-1',
      packages: '@admin/release',
      [`realms/${realm}`]: 'you are member',
    })
    expect(await page.locator('.tabs a').allTextContents()).toEqual(['Members', 'Teams'])
    const remove = page.getByRole('button', { name: 'Remove', exact: true }).first()
    expect([await remove.getAttribute('aria-disabled'), await remove.getAttribute('title')]).toEqual([
      'true',
      expect.stringMatching(/^Admins of .+ do this$/),
    ])
  })

  test('two versions are compared by what they write and reach, and by their files', async () => {
    const page = await open('packages?search=nightly')
    await page.getByRole('link', { name: '@admin/nightly-report' }).click()
    const found = page.getByRole('region', { name: 'New in what it does' })
    await found.getByText('post: http to https://status.example.com/reports (once)').waitFor()
    await found.locator('li', { hasText: /^\+ https:\/\/status\.example\.com$/ }).waitFor()
    await page.locator('.diff .change.new', { hasText: 'name: post' }).waitFor()
    await page.locator('.diff .change.old', { hasText: 'version: 1.0.0' }).waitFor()
    // Each line stands in a line of its own.
    const [above, below] = await Promise.all(
      ['old', 'new'].map(kind => page.locator(`.diff .change.${kind}`).first().boundingBox()),
    )
    expect(below!.y).toBeGreaterThan(above!.y)
    // The other way round, it is no longer written.
    await page.getByLabel('From').selectOption('1.1.0')
    await page.getByLabel('To').selectOption('1.0.0')
    await found.locator('.change.old', { hasText: 'post: http' }).waitFor()
  })

  test('a token is minted from a matrix, shown once, and revoked', async () => {
    const { hub } = await worldOf()
    const page = await open('tokens')
    await page.getByLabel('Name').fill('reads runs')
    await page.getByText('What it may do').click()
    await page.getByRole('button', { name: 'Nothing' }).click()
    await page.getByLabel('runs: read', { exact: true }).check()
    await page.getByRole('button', { name: 'Mint' }).click()
    const secret = await page.getByLabel('The secret of the token.').inputValue()
    const { data } = await hub.call(secret, 'auth/whoami')
    expect(data.permissions).toEqual({ domains: { orgs: '*', realms: '*' }, access: { runs: ['read'] } })

    await page.locator('summary', { hasText: 'reads runs' }).click()
    const one = page.locator('.token', { hasText: 'reads runs' })
    await one.getByRole('row', { name: /^runs/ }).getByText('✓').waitFor()
    await confirm(one, 'Revoke')
    await one.waitFor({ state: 'detached' })
    expect((await hub.call(secret, 'auth/whoami')).status).toBe(401)
    await page.reload()
    await page.getByRole('heading', { name: 'Tokens', exact: true }).waitFor()
    expect(await page.content()).not.toContain(secret)
  })

  test('the audit log is filtered, and a webhook shows its secret once', async () => {
    const { hub, realm } = await worldOf()
    const page = await open(`realms/${realm}/webhooks`)
    await page.getByLabel('Address').fill('https://hooks.example.com/cadre')
    await page.getByRole('button', { name: 'Add' }).click()
    expect(await page.getByLabel('The secret of the webhook.').inputValue()).toStartWith('whsec_')
    await page.getByRole('cell', { name: 'https://hooks.example.com/cadre' }).waitFor()
    await confirm(page.getByRole('row').filter({ hasText: 'hooks.example.com' }), 'Remove', 'hooks.example.com')
    await page.getByText('No webhook is set up.').waitFor()

    await page.goto(`${hub.url}/#/audit`)
    await page.getByLabel('Action').fill('realms/add_webhook')
    await page.getByRole('row').filter({ hasText: 'realms/add_webhook' }).waitFor()
    await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' })
    expect(page.url()).toContain('action=realms%2Fadd_webhook')
    await page.getByLabel('To').fill('2020-01-01')
    await page.getByText('Nothing fits these filters.').waitFor()
  })

  test('keys lead everywhere', async () => {
    const world = await worldOf()
    await world.reached(await world.dispatch('nightly-report'), 'completed')
    const page = await open('runs')
    await page.locator('.item').first().waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').getByText('queue').waitFor()
    await page.keyboard.press('Escape')
    for (const [key, title] of [
      ['q', 'Queue'],
      ['d', 'Daemons'],
      ['p', 'Packages'],
      ['m', 'Realms'],
      ['t', 'Tokens'],
      ['a', 'Audit'],
      ['v', 'Reviews'],
      ['n', 'Dispatch'],
      ['r', 'Runs'],
    ] as const) {
      await page.keyboard.press('g')
      await page.keyboard.press(key)
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
    }
    await page.locator('.item').first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('no such run')
    await page.getByText('No run fits these filters.').waitFor()
    await page.getByLabel('Search').fill('')
    await page.locator('.item').first().waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await page.locator('.item.chosen').waitFor()
    await page.keyboard.press('Enter')
    await page.locator('.tabs').waitFor()

    // In tables and cards the focus goes along, and what has the focus is opened.
    await page.keyboard.press('g')
    await page.keyboard.press('p')
    await page.locator('.card').first().waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await page.keyboard.press('j')
    const second = await page.locator('.card a').nth(1).textContent()
    expect(await page.evaluate('document.activeElement.textContent')).toBe(second)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name: second! }).waitFor()
  })

  test('markup in names, prompts, descriptions and logs stays text', async () => {
    const world = await worldOf()
    const { hub } = world
    const evil = '<img src=x onerror="globalThis.ran=1">'
    const run = await world.dispatch('hostile', { run_name: evil })
    await world.reached(run, 'awaiting_input')
    await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: evil })
    await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'evil', name: evil })
    const page = await open('runs')
    const team = encodeURIComponent('@admin/hostile')
    const places = ['runs', 'reviews', `runs/${run}`, `runs/${run}?phase=say`, `runs/${run}/tree`, `runs/${run}/logs`]
    for (const place of [...places, `packages/${team}`, 'packages', `dispatch?team=${team}`, 'tokens', 'realms']) {
      await page.goto(`${hub.url}/#/${place}`)
      await page.locator('main :not(option)', { hasText: 'onerror=' }).first().waitFor()
      expect([place, await page.evaluate('globalThis.ran'), await page.locator('img').count()]).toEqual([
        place,
        undefined,
        0,
      ])
    }
    await hub.ok(hub.admin, 'dispatch/cancel', { run_id: run })
    await world.reached(run, 'cancelled')
  })

  test('the list of runs names the environment of a run, and says how long it lived', async () => {
    const { hub } = await worldOf()
    await hub.addTeam('name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: say, type: gate, review: { prompt: x } }]\n')
    const { token } = await hub.realmToken(hub.admin, hub.realm)
    const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'reporter' })
    const ended = { state: 'completed', started_at: Date.now() - 3 * 86_400_000, completed_at: Date.now() }
    const [placed, plain] = [Bun.randomUUIDv7(), Bun.randomUUIDv7()]
    const changes = [
      { ...runChange(placed, { ...ended, environment: 'production', lived_ms: 42_000 }), seq: 1 },
      { ...runChange(plain, ended), seq: 2 },
    ]
    await hub.ok(token, 'runs/sync', { protocol: 1, daemon_id, epoch: crypto.randomUUID(), from_seq: 1, changes })
    const page = await open('runs')
    const item = (id: string) => page.getByRole('listitem').filter({ has: page.locator(`a[href$="${id}"]`) })
    await item(placed).getByText('completed · in production').waitFor()
    await item(placed).getByText('42.0 s').waitFor()
    await item(plain).getByText('3 days', { exact: true }).waitFor()
    expect(await item(plain).locator('.about').textContent()).toBe('completed')
    await hub.ok(token, 'daemons/deregister', { daemon_id })
  })

  test('the inbox shows what a gate printed, and what the hub lacks of it until it comes', async () => {
    const { hub } = await worldOf()
    const { token } = await hub.realmToken(hub.admin, hub.realm)
    const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'printer' })
    const epoch = crypto.randomUUID()
    const send = (from_seq: number, ...changes: object[]) =>
      hub.ok(token, 'runs/sync', {
        ...{ protocol: 1, daemon_id, epoch, from_seq },
        changes: changes.map((change, at) => ({ ...change, seq: from_seq + at })),
      })
    const run_id = Bun.randomUUIDv7()
    const log = { lines: 2, ended: false, kept: false }
    const line = (seq: number) => ({
      ...{ kind: 'log', run_id, attempt: 1, to: seq },
      lines: [{ seq, phase: 'say', at: 5, stream: 'stdout', text: `change ${seq}` }],
    })
    const inputs = { page: 'index', key: '***' }
    const waiting = runChange(run_id, { state: 'awaiting_input', reason: 'review', inputs, log })
    await send(1, waiting, reviewChange(run_id, Bun.randomUUIDv7()), line(1))
    const page = await open('reviews')
    const card = page.getByRole('region', { name: 'Review of say' })
    await card.getByText('The hub lacks lines of the log of this run: line 2 is still to come').waitFor()
    await card.getByText(`logs ${run_id} --phase say`).waitFor()
    expect(await card.getByLabel('Output of say').locator('> div').allTextContents()).toEqual(['change 1'])
    expect(JSON.parse((await card.locator('pre.json').textContent())!)).toEqual(inputs)
    await send(4, line(2))
    await card.getByText('change 2', { exact: true }).waitFor()
    expect(await card.getByText('The hub lacks lines').count()).toBe(0)
    await send(5, runChange(run_id, { state: 'cancelled', reason: 'cancelled', completed_at: 2_000 }))
    await hub.ok(token, 'daemons/deregister', { daemon_id })
  })

  test('another origin can neither act with the session nor frame the page, and /v1 ignores the cookie', async () => {
    const { hub } = await worldOf()
    const page = await open('runs')
    await page.getByRole('heading', { name: 'Runs' }).waitFor()
    const direct = await page.evaluate(
      `fetch('/v1/realms/list', { method: 'POST', credentials: 'include' }).then(reply => reply.status)`,
    )
    expect(direct).toBe(401)
    forgive(/status of 401/)

    // Another port is the same site, so the browser sends the cookie along even though it is SameSite=Strict.
    const attacks = `
      for (const type of ['application/json', 'text/plain']) {
        for (const path of ['realms/create', 'session/delete']) fetch('${hub.url}/web/v1/' + path, {
          method: 'POST', credentials: 'include', mode: type === 'text/plain' ? 'no-cors' : 'cors',
          headers: { 'content-type': type }, body: path === 'session/delete' ? '{}' : '{"org_id":1,"slug":"forged","name":"Forged"}',
        }).then(reply => reply.text()).then(text => { document.title += text }, () => {})
      }
      const form = document.forms[0]
      form.submit()
    `
    const evil = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: () =>
        new Response(
          `<title>evil</title><iframe name=target></iframe><iframe name=framed src="${hub.url}/"></iframe>
          <form method=post enctype=text/plain target=target action="${hub.url}/web/v1/realms/create"><input name='{"org_id":1,"slug":"forged","name":"' value='x"}'></form>
          <script>${attacks}</script>`,
          { headers: { 'content-type': 'text/html' } },
        ),
    })
    try {
      const other = await page.context().newPage()
      await other.goto(evil.url.href)
      await other.waitForLoadState('networkidle')
      const framed = other.frame('framed')!
      expect(await framed.evaluate('document.getElementById("page") === null')).toBe(true)
      expect(await other.title()).toBe('evil')
      expect(await other.frame('target')!.evaluate('document.body.innerText')).toContain(
        'only pages of this hub may call /web',
      )
      const { realms } = await hub.ok(hub.admin, 'realms/list')
      expect(realms.map(({ slug }: { slug: string }) => slug)).not.toContain('forged')
      await page.reload()
      await page.getByRole('button', { name: 'Sign out' }).waitFor()
    } finally {
      await evil.stop(true)
    }
  })

  test('axe finds nothing on any page, light and dark', async () => {
    const world = await worldOf()
    const { hub, realm, daemonId } = world
    const run = await world.dispatch('nightly-report')
    await world.reached(run, 'completed')
    const page = await visit('runs')
    await page.getByRole('heading', { name: 'Sign in' }).waitFor()
    await expectAccessible(page, 'sign-in')
    await signIn(page)
    const team = encodeURIComponent('@admin/nightly-report')
    const places = ['runs', `runs/${run}`, `runs/${run}/tree`, `runs/${run}/logs`, `runs/${run}/why`, 'reviews']
    places.push(`dispatch?team=${team}`, 'queue', 'daemons', 'daemons?show=agents', `daemons/${daemonId}`)
    places.push('packages', `packages/${team}`, 'realms', `realms/${realm}`, `realms/${realm}/invitations`)
    places.push(`realms/${realm}/teams`, `realms/${realm}/webhooks`, 'tokens', 'audit', 'account', 'join/nothing')
    for (const place of places) {
      await page.goto(`${hub.url}/#/${place}`)
      await page.locator('main h1').waitFor()
      const still = async () => (await page.locator('[aria-busy]').count()) === 0
      await until(still, `nothing of ${place} is under way`, PATIENCE_MS)
      for (const part of await page.locator('.token summary, summary', { hasText: /What it may do|enrol/ }).all()) {
        await part.click()
      }
      await expectAccessible(page, place)
    }
  })
})
