// Attacks on the dashboard in a real browser: markup in everything that teams, vendors, logs and files say, files that
// look for the session, frames, and pages of other origins. Nothing runs, nothing is asked elsewhere, nothing leaks.

import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { pageAddress } from '../../lib/http/page-address.ts'
import { until } from '../support/bounded.ts'
import { spawnDaemon } from '../support/daemon.ts'
import { hasBrowser, leave, look, PATIENCE_MS, type Seen, startBrowser } from './browser.ts'
import { hostileAgents, hostileTeam, NAME } from './hostile.ts'

setDefaultTimeout(180_000)

/** What markup of a run would have brought into the page. */
const INTRUDERS =
  'main :is(script, iframe, object, embed, base, meta, link, style, form[action], [onerror], [onload], image, a[href^="javascript:" i], a[href^="data:" i])'

describe.skipIf(!hasBrowser)('attacks on the dashboard', () => {
  const hits: string[] = []
  /** Another origin, which markup asks for things, and which has pages of its own. */
  const stranger = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      const { pathname } = new URL(request.url)
      if (pathname.startsWith('/page/')) {
        return new Response(PAGES[pathname.slice(6)], { headers: { 'content-type': 'text/html' } })
      }
      if (pathname !== '/favicon.ico') hits.push(pathname)
      return new Response(null, { status: 204 })
    },
  })
  const trap = stranger.url.origin
  const PAGES: Record<string, string> = {}
  const started = hasBrowser
    ? Promise.all([spawnDaemon({ env: { CADRE_AGENTS: hostileAgents(trap) } }), startBrowser()])
    : null
  const opened: Seen[] = []

  afterEach(async () => {
    expect(await leave((await started)![1], opened)).toEqual([])
    expect(hits).toEqual([])
  })
  afterAll(async () => {
    await (await started)?.[1].close()
    await stranger.stop(true)
  })

  /** A page of the dashboard with the local token. Everything that it asks for is recorded. */
  async function open() {
    const [daemon, browser] = (await started)!
    const seen = await look(browser, `${daemon.url}/#token=${daemon.token}&/runs`)
    opened.push(seen)
    const asked: string[] = []
    seen.page.on('request', request => asked.push(request.url()))
    return { daemon, page: seen.page, asked }
  }

  async function unharmed(page: Page, place: string, token: string): Promise<void> {
    const found = await page.evaluate(
      `[globalThis.ran, [...document.querySelectorAll(${JSON.stringify(INTRUDERS)})].map(each => each.outerHTML.slice(0, 200)),
        document.documentElement.outerHTML.includes(${JSON.stringify(token)}), frames.length, sessionStorage['cadre-local-token']]`,
    )
    expect([place, found]).toEqual([place, [undefined, [], false, 0, token]])
  }

  test('markup stays text on every page, and nothing is asked elsewhere', async () => {
    const { daemon, page, asked } = await open()
    const auth = { authorization: `Bearer ${daemon.token}` }
    const path = hostileTeam(trap)
    const { run_id } = await daemon.call('/v1/runs/start', { path, run_name: NAME })
    await daemon.call('/v1/settings/set', { key: 'agents.evil.place', value: NAME }, auth)
    const reviews = () => daemon.call('/v1/reviews/list', { run_id, state: 'pending' })
    await until(async () => (await reviews()).total === 1, 'the gate asks', PATIENCE_MS)
    const phases = async () => (await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })).phases
    type Phase = { name: string; completed_at: number | null; waiting: { reason: string } | null }
    const rest = (all: Phase[]) => all.filter(({ name }) => name !== 'ask' && name !== 'wait')
    await until(
      async () => rest(await phases()).every(({ completed_at }) => completed_at !== null),
      'all others have ended',
      PATIENCE_MS,
    )

    const team = encodeURIComponent(path)
    const walk = async (places: string[]) => {
      for (const place of places) {
        await page.goto(`${daemon.url}/#/${place}`)
        await page.locator('main').getByText('onerror=').filter({ visible: true }).first().waitFor()
        await unharmed(page, place, daemon.token)
      }
    }
    const opens = (phase: string) => `runs/${run_id}?phase=${phase}`
    await walk(['runs', 'reviews', 'workspaces', 'agents', 'agents/evil', 'settings', `start?team=${team}`])
    await walk([`plan?team=${team}`, `start?like=${run_id}`, ...['say', 'read', 'write', 'break', 'each'].map(opens)])
    await walk(['wait', 'ask'].map(opens))
    await walk(['graph', 'tree', 'logs', 'files', 'why'].map(tab => `runs/${run_id}/${tab}`))

    // What is only there when something is opened.
    await page.goto(`${daemon.url}/#/${opens('read')}`)
    await page.getByRole('heading', { name: 'Attempts' }).waitFor()
    await page.getByText('Notifications').click()
    await page.locator('details[open] .chain', { hasText: 'told, on_start' }).waitFor()
    await page.locator('summary', { hasText: 'Inputs' }).click()
    await page.goto(`${daemon.url}/#/${opens('write')}`)
    const receipts = page.locator('.opened .chain > li')
    await page.getByRole('heading', { name: 'Written outside' }).waitFor()
    expect(await receipts.locator('a').evaluateAll(all => all.map(each => each.getAttribute('href')))).toEqual([
      'https://example.com/made',
    ])
    await unharmed(page, 'opened', daemon.token)
    await page.goto(`${daemon.url}/#/agents`)
    await page.getByRole('button', { name: 'Check all credentials' }).click()
    await page.locator('.chain', { hasText: 'lacks' }).waitFor()
    await unharmed(page, 'doctor', daemon.token)

    const files = await daemon.call('/v1/artifacts/list', { run_id })
    expect(files.artifacts.map(({ name }: { name: string }) => name)).toContain(`${NAME}.md`)
    for (const { path: file } of files.artifacts) {
      await page.goto(`${daemon.url}/#/runs/${run_id}/files?path=${encodeURIComponent(file)}`)
      const content = page.locator('.files .opened').locator(file.endsWith('.md') ? '.markdown' : 'pre, td')
      // The daemon hands out no file of such a name. A picture that is none is drawn as nothing.
      if (file.includes('<')) await page.locator('.files .opened [role=alert]', { hasText: 'has no file' }).waitFor()
      else if (file.endsWith('.png')) await page.locator('.files .opened img').waitFor({ state: 'attached' })
      else await content.filter({ hasText: /ran=1/ }).first().waitFor()
      await unharmed(page, file, daemon.token)
    }
    const { complaints } = opened[0]!
    expect(complaints.splice(0).filter(text => !/status of 404/.test(text))).toEqual([])
    const links = page.locator('.markdown a')
    await page.goto(`${daemon.url}/#/runs/${run_id}/files?path=${encodeURIComponent('files/say/page.md')}`)
    await links.first().waitFor()
    const led = await links.evaluateAll(all => all.map(each => [each.getAttribute('href')!, each.getAttribute('rel')]))
    expect(led.filter(([href, rel]) => !/^https?:/.test(href!) || rel !== 'noopener noreferrer')).toEqual([])
    const hrefs = led.map(([href]) => href)
    for (const href of [`${trap}/md`, 'https://example.com/a', 'https://example.com/b']) expect(hrefs).toContain(href)

    const [review] = (await reviews()).reviews
    await daemon.call(
      '/v1/reviews/decide',
      { review_id: review.id, decision: 'approve', comment: NAME, values: { why: NAME } },
      auth,
    )
    await daemon.call('/v1/runs/cancel', { run_id })
    await walk(['reviews?state=decided', opens('ask'), `runs/${run_id}/why`])
    const own = [`${daemon.url}/`, `${pageAddress(daemon.url)}/`, 'blob:']
    expect(asked.filter(url => !own.some(each => url.startsWith(each)))).toEqual([])
  })

  test('a file of a run that is opened by its address is a download without rights', async () => {
    const { daemon, page } = await open()
    const { runs } = await daemon.call('/v1/runs/list', { root_only: true })
    for (const kind of ['html', 'svg', 'md']) {
      const address = `/v1/artifacts/get?${new URLSearchParams({ run_id: runs[0].run_id, path: `files/say/page.${kind}` })}`
      const headers = await fetch(daemon.url + address).then(reply => reply.headers)
      expect(headers.get('content-disposition')).toStartWith('attachment')
      expect(headers.get('content-security-policy')).toContain('sandbox')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      const download = page.waitForEvent('download')
      await page.evaluate(`location.href = ${JSON.stringify(address)}`)
      await (await download).delete()
      expect(await page.evaluate('globalThis.ran')).toBeUndefined()
      // A frame in the page itself would need the policy to allow it.
      expect(
        await page.evaluate(`(() => {
        try { document.body.append(Object.assign(document.createElement('iframe'), { srcdoc: '<script>parent.ran=1</script>' })) } catch (error) { return error.name }
      })()`),
      ).toBe('TypeError')
    }
    const { complaints } = opened.at(-1)!
    // Each of the three is told by the browser and by the event.
    await until(() => complaints.length >= 6, 'the policy complains of each frame', PATIENCE_MS)
    expect(complaints.splice(0).filter(text => !/TrustedHTML|srcdoc/.test(text))).toEqual([])
  })

  test('no page frames the dashboard', async () => {
    const [daemon, browser] = (await started)!
    PAGES.frame = `<iframe src="${daemon.url}/#/reviews" width="800" height="600"></iframe>`
    const seen = await look(browser, `${trap}/page/frame`)
    opened.push(seen)
    await until(
      () => seen.complaints.some(text => /frame-ancestors|X-Frame-Options/i.test(text)),
      'it is refused',
      PATIENCE_MS,
    )
    seen.complaints.splice(0)
    const [, frame] = seen.page.frames()
    expect(await frame!.evaluate('document.querySelector("#page")')).toBe(null)
    for (const url of [daemon.url, pageAddress(daemon.url)]) expect(frame!.url()).not.toStartWith(url)
  })

  test('a page of another origin starts nothing, reads nothing and gets no hold of the window', async () => {
    const { daemon } = await open()
    const [, browser] = (await started)!
    const { runs, total } = await daemon.call('/v1/runs/list', { root_only: true })
    const { run_id } = runs[0]
    PAGES.calls = `<script>
      const base = ${JSON.stringify(daemon.url)}, out = []
      const told = async (name, work) => { try { out.push([name, await work()]) } catch (error) { out.push([name, error.name]) } }
      const post = (path, body, more) => fetch(base + path, { method: 'POST', body: JSON.stringify(body), ...more })
      const json = { headers: { 'content-type': 'application/json' } }
      const start = { path: ${JSON.stringify(hostileTeam(trap))} }
      const load = (tag, at, address) => new Promise(done => {
        const made = document.createElement(tag)
        made.onload = () => done('loaded'); made.onerror = () => done('refused')
        made[at] = address; if (tag === 'link') made.rel = 'stylesheet'
        document.head.append(made)
      })
      globalThis.done = (async () => {
        await told('json', () => post('/v1/runs/start', start, json).then(r => r.status))
        await told('text', () => post('/v1/runs/start', start).then(r => r.status))
        await told('blind', () => post('/v1/runs/start', start, { mode: 'no-cors' }).then(r => r.type + r.status))
        await told('list', () => fetch(base + '/v1/runs/list', { method: 'POST' }).then(r => r.text()))
        await told('stream', () => new Promise(done => { const s = new EventSource(base + '/v1/runs/stream?run_id=${run_id}'); s.onmessage = s.onopen = () => done('open'); s.onerror = () => { s.close(); done('refused') } }))
        await told('log', () => fetch(base + '/v1/runs/log?run_id=${run_id}').then(r => r.text()))
        await told('file', () => fetch(base + '/v1/artifacts/get?run_id=${run_id}&path=files/say/page.html').then(r => r.text()))
        await told('page', () => fetch(base + '/').then(r => r.text()))
        await told('script', () => load('script', 'src', base + SCRIPT))
        await told('image', () => load('img', 'src', base + '/v1/artifacts/get?run_id=${run_id}&path=files/say/page.svg'))
        const made = open(base + '/#/settings')
        for (const end = Date.now() + 30_000; !made.closed && Date.now() < end; ) await new Promise(done => setTimeout(done, 50))
        await told('window', async () => made.closed ? 'gone' : made.sessionStorage.length)
        return out
      })()
    </script>`
    const html = await fetch(daemon.url).then(reply => reply.text())
    PAGES.calls = PAGES.calls.replace('SCRIPT', JSON.stringify(/src="([^"]+)"/.exec(html)![1]))
    const seen = await look(browser, `${trap}/page/calls`)
    opened.push(seen)
    expect(await seen.page.evaluate('globalThis.done')).toEqual([
      ['json', 'TypeError'],
      ['text', 'TypeError'],
      ['blind', 'opaque0'],
      ['list', 'TypeError'],
      ['stream', 'refused'],
      ['log', 'TypeError'],
      ['file', 'TypeError'],
      ['page', 'TypeError'],
      ['script', 'refused'],
      ['image', 'refused'],
      ['window', 'gone'],
    ])
    seen.complaints.splice(0)
    expect((await daemon.call('/v1/runs/list', { root_only: true })).total).toBe(total)
  })
})
