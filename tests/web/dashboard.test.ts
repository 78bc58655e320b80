// The dashboard in a real browser, on a real daemon with real runs.

import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Browser, Response } from 'playwright-core'
import { pageAddress } from '../../lib/http/page-address.ts'
import { GATE, HELLO, NESTED } from '../daemon/teams.ts'
import { change } from '../support/aged-home.ts'
import { until } from '../support/bounded.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { expectAccessibleAt } from './axe.ts'
import { answer, hasBrowser, leave, look, PATIENCE_MS, type Seen, startBrowser } from './browser.ts'
import { frontOf } from './front.ts'

const WAITS = `name: "@local/waits"
version: 1.0.0
phases:
  - name: talk
    agent: exec
    commands: [{ name: c, run: 'echo first; while [ ! -e "$PWD/go" ]; do sleep 0.05; done; printf "\\033[32mlast\\033[0m\\n"' }]
  - { name: after, depends_on: [talk], agent: exec, commands: [{ name: c, run: "echo done" }] }
`

/** Its gate prints more than is shown, in colours. */
const PRINTS = `name: "@local/prints"
version: 1.0.0
inputs: [{ name: page, type: string, required: true }, { name: key, type: string, secret: true }]
phases:
  - name: ask
    type: gate
    commands: [{ name: c, run: 'for i in $(seq 1 250); do printf "\\033[32mchange %s\\033[0m\\n" $i; done' }]
    review: { prompt: "Go on?", reviewers: [any] }
`

/** Runs in the page if markup from a run becomes markup of the page. */
const EVIL = '<img src=x onerror="globalThis.ran=1"><script>globalThis.ran=1</script>'
const HOSTILE = `name: "@local/hostile"
version: 1.0.0
inputs: [{ name: text, type: string, default: '${EVIL}' }]
phases:
  - name: say
    agent: exec
    env: { TEXT: "{{ inputs.text }}" }
    commands:
      - { name: c, run: 'echo "$TEXT"; for kind in html md csv svg; do echo "$TEXT" > "$CADRE_OUT/page.$kind"; done' }
  - name: ask
    type: gate
    depends_on: [say]
    review: { prompt: "{{ inputs.text }}", reviewers: [any] }
`

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

describe.skipIf(!hasBrowser)('the dashboard', () => {
  const started = hasBrowser ? Promise.all([spawnDaemon(), startBrowser()]) : null
  const opened: Seen[] = []

  afterEach(async () => {
    expect(await leave((await started)![1], opened)).toEqual([])
  })
  afterAll(async () => (await started)?.[1].close())

  /** A page of the dashboard, opened as `dashboard` opens it. */
  async function open(path: string, { token = true } = {}) {
    const [daemon, browser] = (await started) as [Awaited<ReturnType<typeof spawnDaemon>>, Browser]
    const seen = await look(browser, `${daemon.url}/#${token ? `token=${daemon.token}&` : ''}/${path}`)
    opened.push(seen)
    return { daemon, page: seen.page }
  }
  const daemonOf = async () => (await started)![0]
  /** Takes out complaints that a test has caused on purpose. The browser reports each reply that is an error. */
  function forgive(expected: RegExp): void {
    for (const seen of opened) {
      seen.complaints.splice(0, Number.POSITIVE_INFINITY, ...seen.complaints.filter(text => !expected.test(text)))
    }
  }

  test('a deep link shows a run, and follows it to its end', async () => {
    const daemon = await daemonOf()
    const folder = files({ 'team.yml': WAITS })
    const { run_id } = await daemon.call('/v1/runs/start', { path: folder, run_name: 'Nightly' })
    const { page } = await open(`runs/${run_id}`, { token: false })
    await page.locator('h1', { hasText: 'Nightly' }).waitFor()
    await page.locator('.facts .state.running').waitFor()
    await page.locator('.phase .state.pending').waitFor()

    await page.getByRole('link', { name: 'Log' }).click()
    await page.locator('.line .text', { hasText: 'first' }).waitFor()
    expect(page.url()).toBe(`${pageAddress(daemon.url)}/#/runs/${run_id}/logs`)
    await Bun.write(`${folder}/go`, '')
    await page.locator('.line .ansi-green', { hasText: 'last' }).waitFor()
    await page.locator('.line .text', { hasText: 'done' }).waitFor()
    await page.locator('.facts .state.completed').waitFor()
    expect(await page.locator('.line').count()).toBe(3)

    await page.getByRole('link', { name: 'Phases' }).click()
    await page.locator('.phase .state.completed').nth(1).waitFor()
  })

  test('a lost connection is said, and the page goes on when it is back', async () => {
    const [daemon, browser] = (await started)!
    const folder = files({ 'team.yml': WAITS })
    const { run_id } = await daemon.call('/v1/runs/start', { path: folder })
    let front = frontOf(daemon.url, 0)
    const { port } = front
    try {
      const seen = await look(browser, `${front.url.origin}/#token=${daemon.token}&/runs/${run_id}`)
      opened.push(seen)
      await seen.page.locator('.facts .state.running').waitFor()
      await front.stop(true)
      await seen.page.getByText('The connection to the daemon was lost.').waitFor()
      await Bun.write(`${folder}/go`, '')
      await daemon.ended(run_id)
      front = frontOf(daemon.url, port!)
      await seen.page.locator('.facts .state.completed').waitFor()
      await seen.page.getByText('The connection to the daemon was lost.').waitFor({ state: 'detached' })
      forgive(/net::ERR_/)
    } finally {
      await front.stop(true)
    }
  })

  test('a gate is decided in the inbox, with its form', async () => {
    const daemon = await daemonOf()
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': GATE }), run_name: 'Asks' })
    const { page } = await open('reviews')
    expect(page.url()).toBe(`${pageAddress(daemon.url)}/#/reviews`)
    const card = page.getByRole('region', { name: 'Review of ask' })
    await card.getByText('Go on?').waitFor()
    await card.getByLabel('answer').fill('gladly')
    await answer(card, 'Approve')
    await page.getByText('Nothing waits for you.').waitFor()
    expect((await daemon.ended(run_id)).outputs).toEqual({ said: 'gladly' })
  })

  test('the inbox shows what the run was given and what its gate printed, from its beginning', async () => {
    const daemon = await daemonOf()
    const inputs = { page: 'index', key: 'canary-of-the-key' }
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': PRINTS }), inputs })
    const { page } = await open('reviews')
    const card = page.getByRole('region', { name: 'Review of ask' })
    const given = await card.locator('pre.json').textContent()
    expect(JSON.parse(given!)).toEqual({ page: 'index', key: '***' })
    const output = card.getByLabel('Output of ask').locator('> div')
    await output.first().waitFor()
    const shown = await output.allTextContents()
    expect(shown).toEqual(Array.from({ length: 200 }, (_, at) => `change ${at + 1}`))
    await card.getByText('50 lines are not shown').waitFor()
    expect(await page.content()).not.toContain('canary-of-the-key')
    await card.getByRole('link', { name: 'the whole log' }).click()
    // The log follows a run that goes on, so its end is in view.
    await page.getByText('change 250', { exact: true }).waitFor()
    expect(page.url()).toContain(`runs/${run_id}/logs?phase=ask`)
    await page.goBack()
    await answer(card, 'Reject')
    await page.getByText('Nothing waits for you.').waitFor()
    expect((await daemon.ended(run_id)).state).toBe('failed')
  })

  test('the start of a run in an environment is approved in the inbox', async () => {
    const daemon = await daemonOf()
    const key = 'environments.production.review'
    const set = (value: string[] | null) =>
      daemon.call('/v1/settings/set', { key, value }, { authorization: `Bearer ${daemon.token}` })
    await set(['any'])
    const start = { path: files({ 'team.yml': HELLO }), environment: 'production' }
    const { run_id } = await daemon.call('/v1/runs/start', start)
    const { page } = await open(`runs/${run_id}/why`)
    await page.getByText('The start waits for an answer.').waitFor()
    await page.getByText('in production', { exact: true }).waitFor()
    await page.getByText('waits for an approval before anything of it begins').waitFor()
    await page.getByRole('link', { name: 'Phases' }).click()
    const card = page.getByRole('region', { name: 'Review of the run' })
    await card.getByText(/^Run @local\/hello@.* in the environment production\?$/).waitFor()
    await answer(card, 'Approve')
    await page.locator('.facts .state.completed').waitFor()
    expect((await daemon.ended(run_id)).state).toBe('completed')
    await set(null)

    // Its machine slept for three days, which only the clock of the machine says.
    const slept = 'UPDATE runs SET started_at = started_at - 259200000, lived_ms = 42000 WHERE id = ?'
    change(daemon.home, slept, run_id)
    await page.reload()
    await page.locator('.facts').getByText('took 42.0 s').waitFor()
    await page.getByRole('link', { name: 'Runs', exact: true }).first().click()
    const items = page.getByRole('list', { name: 'Runs' }).getByRole('listitem')
    const item = items.filter({ has: page.locator(`a[href$="${run_id}"]`) })
    await item.getByText('· in production').waitFor()
    await item.getByText('42.0 s').waitFor()
    const places = await items.locator('.about').allTextContents()
    expect(places.filter(text => text.includes('· in '))).toHaveLength(1)
  })

  test('without the local token a decision is not offered, and the page says how to get it', async () => {
    const daemon = await daemonOf()
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': GATE }) })
    const { page } = await open(`runs/${run_id}`, { token: false })
    await page.getByText(/(daemon\.ts|cadre) dashboard/).waitFor()
    expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0)
    await page.getByLabel('Local token').fill(daemon.token)
    await page.getByRole('button', { name: 'Use it' }).click()
    await answer(page.getByRole('region', { name: 'Review of ask' }), 'Reject')
    await page.locator('.facts .state.failed').waitFor()
    await page.getByRole('link', { name: 'Why' }).click()
    await page.locator('.chain').waitFor()
  })

  test('a run is started from a form of its inputs', async () => {
    const { page, daemon } = await open('start')
    const path = files({ 'team.yml': HELLO })
    await page.getByLabel('Team').fill(path)
    await page.getByRole('button', { name: 'Open' }).click()
    expect(await page.getByLabel('who').inputValue()).toBe('world')
    await page.getByLabel('who').fill('Grace')
    await page.getByLabel('times').fill('3')
    await page.getByText('What it would write', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Start', exact: true }).click()
    await page.locator('.facts .state.completed').waitFor()
    const runId = /runs\/(.*)$/.exec(page.url())![1]!
    expect((await daemon.ended(runId)).inputs).toEqual({ who: 'Grace', times: 3 })

    await page.getByRole('link', { name: 'Files' }).click()
    await page.getByRole('button', { name: /hello\.txt/ }).click()
    await page.locator('.opened pre', { hasText: 'hello Grace' }).waitFor()
    await page.getByRole('link', { name: 'Start again' }).click()
    await page.getByLabel('who').waitFor()
    expect(await page.getByLabel('who').inputValue()).toBe('Grace')
  })

  test('the tree is a treegrid that folds by keyboard', async () => {
    const daemon = await daemonOf()
    const { run_id } = await daemon.call('/v1/runs/start', { path: files(NESTED), run_name: 'Nested' })
    await daemon.ended(run_id)
    const { page } = await open(`runs/${run_id}/tree`)
    const rows = page.getByRole('treegrid').getByRole('row')
    await rows.first().waitFor()
    expect(await rows.count()).toBe(5)
    await page.keyboard.press('ArrowLeft')
    await until(async () => (await rows.count()) === 1, 'the branch is folded', PATIENCE_MS)
    await page.keyboard.press('ArrowRight')
    await until(async () => (await rows.count()) === 5, 'the branch is open', PATIENCE_MS)
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.getByText('top run').waitFor()
  })

  test('the list is searched and walked by keyboard', async () => {
    const daemon = await daemonOf()
    for (const run_name of ['Needle one', 'Needle two']) {
      const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': HELLO }), run_name })
      await daemon.ended(run_id)
    }
    const { page } = await open('start')
    await page.getByRole('button', { name: 'Open' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('r')
    await page.locator('.item').first().waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('needle')
    await until(async () => (await page.locator('.item').count()) === 2, 'two runs fit', PATIENCE_MS)
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await page.locator('h1', { hasText: 'Needle one' }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
  })

  test('a secret can be set and is never shown', async () => {
    const { page } = await open('settings')
    await page.getByLabel('Key', { exact: true }).fill('agents.wiki.api_token')
    await page.getByLabel('Value').fill('the-secret-of-the-wiki')
    await page.getByRole('button', { name: 'Set', exact: true }).click()
    await page.getByRole('cell', { name: 'agents.wiki.api_token' }).waitFor()
    expect(await page.content()).not.toContain('the-secret-of-the-wiki')
    await page.getByRole('button', { name: 'Remove' }).click()
    await page.locator('fieldset.confirm').getByRole('button', { name: 'Remove' }).click()
    await page.getByText('Nothing is set.').waitFor()
  })

  test('a token of a stranger’s link is dropped, and nothing is in the address', async () => {
    const daemon = await daemonOf()
    const { page } = await open('runs', { token: false })
    const answers: Promise<Response | null>[] = []
    page.on('request', request => {
      if (request.headers().authorization === 'Bearer wrong') answers.push(request.response())
    })
    await page.goto(`${daemon.url}/#token=wrong&/workspaces`)
    await page.getByRole('heading', { name: 'Workspaces' }).waitFor()
    await until(async () => (await page.evaluate('sessionStorage.length')) === 0, 'the token is dropped', PATIENCE_MS)
    expect(page.url()).toBe(`${pageAddress(daemon.url)}/#/workspaces`)
    // Several calls may have been under way with the token. The browser reports each, and the last one may come late.
    const refused = (await Promise.all(answers)).filter(answer => answer?.status() === 401).length
    const reported = () =>
      opened.flatMap(({ complaints }) => complaints).filter(text => /status of 401/.test(text)).length
    await until(() => reported() === refused, 'each refused call is reported', PATIENCE_MS)
    forgive(/status of 401/)
  })

  test('markup in names, prompts, logs and files stays text', async () => {
    const daemon = await daemonOf()
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': HOSTILE }), run_name: EVIL })
    const { page } = await open(`runs/${run_id}`)
    await page.locator('.prompt').waitFor()
    const places = ['runs', 'reviews', `runs/${run_id}?phase=say`, `runs/${run_id}/tree`, `runs/${run_id}/logs`]
    const previews = ['html', 'md', 'csv', 'svg'].map(kind => `runs/${run_id}/files?path=files/say/page.${kind}`)
    for (const place of [...places, ...previews]) {
      await page.goto(`${daemon.url}/#/${place}`)
      await page.getByText('onerror=').first().waitFor()
      if (place.includes('files?')) await page.locator('.opened', { hasText: 'onerror' }).waitFor()
      expect([place, await page.evaluate('globalThis.ran'), await page.locator('img').count()]).toEqual([
        place,
        undefined,
        0,
      ])
    }
  })

  test('axe finds nothing on any page, light and dark', async () => {
    const daemon = await daemonOf()
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': GATE }) })
    const nested = await daemon.call('/v1/runs/start', { path: files(NESTED) })
    const path = files({ 'team.yml': HELLO })
    const hello = await daemon.call('/v1/runs/start', { path })
    await daemon.ended(nested.run_id)
    await daemon.ended(hello.run_id)
    const { page } = await open('runs')
    const team = encodeURIComponent(path)
    const places = {
      runs: '.item',
      reviews: '.card',
      'reviews?state=decided': '.chain, .empty',
      agents: '.card',
      'agents/wiki': '.fields',
      workspaces: '.card',
      settings: '.empty, table',
      [`start?team=${team}`]: 'form.card',
      [`plan?team=${team}`]: '.graph',
      [`runs/${run_id}`]: '.phase',
      [`runs/${run_id}/why`]: '.prose',
      [`runs/${nested.run_id}/graph`]: '.node',
      [`runs/${nested.run_id}/tree`]: '.branch a',
      [`runs/${nested.run_id}/logs`]: '.line',
      [`runs/${hello.run_id}?phase=greet`]: '.opened pre',
      [`runs/${hello.run_id}/files?path=files/greet/hello.txt`]: '.opened pre',
    }
    for (const [place, shown] of Object.entries(places)) await expectAccessibleAt(page, daemon.url, place, shown)
  })
})
