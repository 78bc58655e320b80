// Nobody changes something by accident, on the pages of both programs, in a real browser.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { GATE, HELLO } from '../daemon/teams.ts'
import { files } from '../support/daemon.ts'
import { bothPages } from './both-pages.ts'
import { answer, hasBrowser } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

describe.skipIf(!hasBrowser)('a safe page', () => {
  const { programs, forgive, openDaemon, openHub } = bothPages()

  /** The bodies that a page sends to a path. */
  function sentTo(page: Page, path: string): Record<string, unknown>[] {
    const bodies: Record<string, unknown>[] = []
    page.on('request', request => {
      if (request.url().endsWith(path)) bodies.push(request.postDataJSON())
    })
    return bodies
  }
  const focused = (page: Page) => page.locator('*:focus').textContent()

  const gates = {
    daemon: async () => {
      const { daemon } = await programs()
      const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': GATE }) })
      const page = await openDaemon('reviews')
      return { page, field: 'answer', phase: 'ask', ended: async () => (await daemon.ended(run_id)).state }
    },
    hub: async () => {
      const { world } = await programs()
      const run = await world.dispatch('release', { inputs: { tag: 'v1' } })
      await world.reached(run, 'awaiting_input')
      const page = await openHub('reviews')
      return { page, field: 'note', phase: 'approve', ended: async () => (await world.reached(run, 'completed')).state }
    },
  }
  for (const [program, gate] of Object.entries(gates)) {
    test(`no key in a field decides a review, and a double click does not either, on the ${program}`, async () => {
      const { page, field, phase, ended } = await gate()
      const sent = sentTo(page, '/reviews/decide')
      const card = page.getByRole('region', { name: `Review of ${phase}` })
      const comment = card.getByLabel('Comment')
      await comment.fill('Fine')
      await comment.press('Enter')
      await comment.pressSequentially('by me')
      expect(await comment.inputValue()).toBe('Fine\nby me')
      await card.getByLabel(field).fill('gladly')
      await card.getByLabel(field).press('Enter')
      await comment.press('Control+Enter')
      expect(await focused(page)).toBe('Approve')
      expect(await card.locator('fieldset.confirm').count()).toBe(0)

      await card.getByRole('button', { name: 'Approve', exact: true }).dblclick()
      const second = card.getByRole('button', { name: /^Approve: / })
      await second.waitFor()
      await card.getByRole('button', { name: 'No' }).click()
      await page.keyboard.press('Enter')
      await page.locator('.danger:focus').waitFor()
      await page.keyboard.press('Escape')
      await page.locator('button:not(.danger):focus').waitFor()
      expect([await focused(page), sent]).toEqual(['Approve', []])

      // An answer that did not arrive is not shown as one.
      await page.route('**/reviews/decide', route => route.abort(), { times: 1 })
      await answer(card, 'Approve')
      await card.getByRole('alert').waitFor()
      expect(await page.locator('[role=alert]:focus').count()).toBe(1)
      forgive()
      await second.click()
      await page.getByText('Nothing waits for you.').waitFor()
      expect(sent.at(-1)).toMatchObject({ decision: 'approve', comment: 'Fine\nby me', values: { [field]: 'gladly' } })
      expect(await ended()).toBe('completed')
    })
  }

  const forms = {
    daemon: async () => {
      const { daemon } = await programs()
      const page = await openDaemon(`start?team=${encodeURIComponent(files({ 'team.yml': HELLO }))}`)
      await page.getByLabel('Name of the run').fill('Once')
      const runs = async () => (await daemon.call('/v1/runs/list', { search: 'Once' })).runs
      return { page, path: '/runs/start', button: 'Start', runs }
    },
    hub: async () => {
      const { world } = await programs()
      const page = await openHub('dispatch?team=@admin/train')
      await page.getByText('Where and how').click()
      await page.getByLabel('Name of the run').fill('Once')
      const runs = async () => (await world.hub.ok(world.hub.admin, 'runs/list', { search: 'Once' })).runs
      return { page, path: '/dispatch/run', button: 'Dispatch', runs }
    },
  }
  for (const [program, form] of Object.entries(forms)) {
    test(`two clicks start one run, also when the first answer is lost, on the ${program}`, async () => {
      const { page, path, button, runs } = await form()
      const sent = sentTo(page, path)
      await page.route(
        `**${path}`,
        async route => {
          await route.fetch()
          await route.abort()
        },
        { times: 1 },
      )
      const start = page.getByRole('button', { name: button, exact: true })
      await start.click()
      await page.getByRole('alert').waitFor()
      forgive()
      await start.dblclick()
      await page.waitForURL(/runs\/[0-9a-f-]{36}$/)
      expect((await runs()).map(({ run_id }: { run_id: string }) => run_id)).toEqual([page.url().slice(-36)])
      expect(new Set(sent.map(({ idempotency_key }) => idempotency_key)).size).toBe(1)
    })
  }

  test('what happens next stands beside the decision, and the second button names the writes', async () => {
    const { daemon } = await programs()
    const writes = `${GATE}  - { name: post, depends_on: [ask], agent: http, target_entries: [{ name: p, url: "http://127.0.0.1:9/x", method: POST, body: x }] }\n`
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': writes }) })
    const page = await openDaemon('reviews')
    const card = page.getByRole('region', { name: 'Review of ask' })
    const next = card.getByRole('region', { name: 'What happens next' })
    await next.getByText('Then these phases run: post.').waitFor()
    await next.getByText('http://127.0.0.1:9/x').waitFor()
    await card.getByLabel('answer').fill('gladly')
    await card.getByRole('button', { name: 'Approve', exact: true }).click()
    await card.getByRole('button', { name: 'Approve: 1 write to http' }).waitFor()
    await daemon.call('/v1/runs/cancel', { run_id })
  })

  test('the hub shows it, too, or says why it cannot', async () => {
    const { world } = await programs()
    const { hub } = world
    await world.publish({
      'team.yml': `name: "@local/posting"
version: 1.0.0
phases:
  - { name: ask, type: gate, review: { prompt: "Go?", reviewers: [any] } }
  - { name: post, depends_on: [ask], agent: http, target_entries: [{ name: p, url: "https://x.example/", method: POST, body: x }] }
`,
    })
    await hub.ok(hub.admin, 'realms/add_team', { realm_id: world.realm, team: '@admin/posting' })
    const run = await world.dispatch('posting')
    await world.reached(run, 'awaiting_input')
    const page = await openHub(`runs/${run}`)
    const card = page.getByRole('region', { name: 'Review of ask' })
    await card.getByText('Then these phases run: post.').waitFor()
    await card.getByText('https://x.example/').waitFor()
    await card.getByRole('button', { name: 'Approve', exact: true }).click()
    await card.getByRole('button', { name: 'Approve: 1 write to http' }).waitFor()
    await hub.ok(hub.admin, 'dispatch/cancel', { run_id: run })
    await world.reached(run, 'cancelled')
  })

  const CHECKED = `name: "@local/checked"
version: 1.0.0
phases:
  - name: ask
    type: gate
    commands: [{ name: c, run: 'echo looked at 12; echo 12 > "$CADRE_OUT/count.txt"' }]
    review: { prompt: "Go?", reviewers: [any] }
`
  const checked = {
    daemon: async () => {
      const { daemon } = await programs()
      const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': CHECKED }) })
      return { page: await openDaemon(`runs/${run_id}`), end: () => daemon.call('/v1/runs/cancel', { run_id }) }
    },
    hub: async () => {
      const { world } = await programs()
      const { hub, realm } = world
      await world.publish({ 'team.yml': CHECKED })
      await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm, team: '@admin/checked' })
      const run_id = await world.dispatch('checked')
      await world.reached(run_id, 'awaiting_input')
      return { page: await openHub(`runs/${run_id}`), end: () => hub.ok(hub.admin, 'dispatch/cancel', { run_id }) }
    },
  }
  for (const [where, begin] of Object.entries(checked)) {
    test(`what a gate printed and wrote stands in its review, on the ${where}`, async () => {
      const { page, end } = await begin()
      const card = page.getByRole('region', { name: 'Review of ask' })
      await card.getByText('looked at 12').waitFor()
      const link = card.getByRole('list', { name: 'Files that it wrote' }).getByRole('link', { name: 'ask/count.txt' })
      await link.waitFor()
      // This hub keeps no files.
      if (where === 'daemon') {
        await link.click()
        await page.locator('.opened').getByText('12', { exact: true }).waitFor()
      }
      await end()
    })
  }

  test('a run is cancelled only after a question that names it and what stops', async () => {
    const { daemon } = await programs()
    const start = { path: files({ 'team.yml': GATE }), run_name: 'Nightly' }
    const { run_id } = await daemon.call('/v1/runs/start', start)
    const page = await openDaemon(`runs/${run_id}`)
    const sent = sentTo(page, '/runs/cancel')
    await page.getByRole('button', { name: 'Cancel', exact: true }).dblclick()
    const question = page.getByRole('group', {
      name: /^Cancel Nightly\? Running phases and all runs below are stopped, .*: now 1 question\.$/,
    })
    await question.waitFor()
    expect(sent).toEqual([])
    await question.getByRole('button', { name: 'Cancel' }).click()
    await page.locator('.facts .state.cancelled').waitFor()
    expect((await daemon.ended(run_id)).state).toBe('cancelled')
  })

  test('keys in the choice of a role change no rights, and the button says what they are', async () => {
    const { world } = await programs()
    const { hub, realm } = world
    await hub.account('wanda')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: 'wanda', role: 'member' })
    const page = await openHub(`realms/${realm}/members`)
    const sent = sentTo(page, '/realms/add_member')
    const role = page.getByLabel('Role of wanda')
    await role.press('ArrowDown')
    await role.press('ArrowDown')
    expect([await role.inputValue(), sent]).toEqual(['admin', []])
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('wanda may then do everything here').waitFor()
    await page.getByRole('button', { name: 'Make wanda admin' }).click()
    await page.getByRole('button', { name: 'Save' }).waitFor({ state: 'detached' })
    expect(sent).toMatchObject([{ username: 'wanda', role: 'admin' }])
  })

  test('the command of a form says all that the form does, and no text of it names a file', async () => {
    const page = await openHub('dispatch?team=@admin/release')
    await page.getByLabel('tag').fill('@v1')
    await page.getByLabel('Environment').fill('staging')
    await page.getByText('Where and how').click()
    await page.getByLabel('Name of the run').fill('As before')
    const copy = page.getByRole('button', { name: 'Copy command' })
    expect(await copy.getAttribute('title')).toContain(" --name 'As before' --env staging -i tag=@@v1 --hub http")
    // The command line has no option for labels.
    await page.getByLabel('Labels of the daemon').fill('gpu')
    await copy.waitFor({ state: 'detached' })
  })

  test('what a form requires is asked for before it is sent', async () => {
    const { daemon } = await programs()
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': GATE }) })
    const page = await openDaemon('reviews')
    const sent = sentTo(page, '/reviews/decide')
    const card = page.getByRole('region', { name: 'Review of ask' })
    await card.getByRole('button', { name: 'Approve', exact: true }).click()
    expect(await card.locator('input:focus:invalid').count()).toBe(1)
    expect([await card.locator('fieldset.confirm').count(), sent]).toEqual([0, []])
    await answer(card, 'Reject')
    expect((await daemon.ended(run_id)).state).toBe('failed')
  })
})
