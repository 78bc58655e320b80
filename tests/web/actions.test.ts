// Pages change something only by actions (lib/web/kit/actions.tsx): no source makes such a call in another way, and no
// control of a page of either program sends one while no action is under way.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Glob } from 'bun'
import type { Page, Request } from 'playwright-core'
import { isObject } from '../../lib/json.ts'
import { isReading } from '../../lib/wire/reads.ts'
import { GATE } from '../daemon/teams.ts'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser, PATIENCE_MS } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(240_000)

const LIB = join(import.meta.dir, '../../lib')
const sourcesOf = (folder: string) =>
  [...new Glob('**/*.{ts,tsx}').scanSync(join(LIB, folder))].map(path => ({
    path,
    text: readFileSync(join(LIB, folder, path), 'utf8'),
  }))

test('only actions have what makes a call that changes something', () => {
  const pages = sourcesOf('web').filter(({ path }) => path !== 'web.ts')
  const naming = (pattern: RegExp) => pages.filter(({ text }) => pattern.test(text)).map(({ path }) => path)
  expect(naming(/\bfetch\(/).sort()).toEqual(['hub/kit/api.ts', 'hub/older-copy.tsx', 'kit/api.ts'])
  expect(naming(/import \{[^}]*(?<!type )\bsend\b[^}]*\} from '[./]*api\.ts'/)).toEqual(['kit/actions.tsx'])
  expect(naming(/\bsendToHub\b/).sort()).toEqual(['hub/kit/api.ts', 'hub/run-calls.ts'])
  expect(naming(/\b(XMLHttpRequest|sendBeacon|WebSocket|EventSource)\b/)).toEqual([])
  // The session of a browser is begun and ended by actions, too.
  for (const { path, text } of pages) {
    if (path === 'hub/kit/api.ts') continue
    const calls = [...text.matchAll(/.*\b(?:signIn|signOut)\b(?!\s*[,}]).*/g)].map(([line]) => line)
    for (const line of calls) expect([path, line]).toEqual([path, expect.stringMatching(/run\(|await signIn\(/)])
  }
})

test('what a page may call without an action changes nothing', async () => {
  const declared = new Map<string, string>()
  for (const { path } of sourcesOf('wire/calls')) {
    const exported: Record<string, unknown> = await import(join(LIB, 'wire/calls', path))
    for (const [name, call] of Object.entries(exported)) {
      if (isObject(call) && typeof call.path === 'string') declared.set(name, call.path)
    }
  }
  // A route that changes something writes to the audit log.
  const changing: string[] = []
  for (const { text } of [...sourcesOf('hub/routes'), ...sourcesOf('daemon/routes')]) {
    for (const [route, name] of text.matchAll(/\banswer\((\w+),(?:(?!\banswer\()[\s\S])*/g)) {
      if (/\brecord\(hub|audit\.(write|during)/.test(route)) changing.push(declared.get(name!)!)
    }
  }
  expect(changing.length).toBeGreaterThan(30)
  expect(changing.filter(isReading)).toEqual([])
})

/** The paths of the calls of some pages, each once. */
const callsOf = (pages: Record<string, readonly string[]>) =>
  [...new Set(Object.values(pages).flat())].map(call => `/v1/${call}`).sort()

/** Fills the forms of a page and uses each of its controls, with the questions that they ask. */
const USE_ALL = `(async () => {
  const used = new Set()
  let quiet = 0
  const rest = ms => new Promise(resolve => setTimeout(resolve, ms))
  const set = (field, value) => {
    Object.getOwnPropertyDescriptor(Object.getPrototypeOf(field), 'value').set.call(field, value)
    field.dispatchEvent(new Event('input', { bubbles: true }))
    field.dispatchEvent(new Event('change', { bubbles: true }))
  }
  const texts = { url: 'https://hooks.example.com/x', number: '1', 'datetime-local': '2026-01-01T00:00', search: '' }
  for (let round = 0; round < 120; round++) {
    for (const part of document.querySelectorAll('main details:not([open])')) part.open = true
    const nameOf = each => each.tagName + ' ' + (each.ariaLabel ?? each.textContent).trim()
    const find = kind => [...document.querySelectorAll('main :is(' + kind + ')')]
      .filter(each => each.offsetParent !== null && !each.closest('fieldset.confirm'))
      .find(each => !used.has(nameOf(each)))
    // A choice may change the form that a button sends.
    const next = find('button') ?? find('select, input[type=checkbox]')
    if (!next) {
      if (++quiet > 4) break
      await rest(150)
      continue
    }
    quiet = 0
    used.add(nameOf(next))
    for (const field of document.querySelectorAll('main input:not([type=checkbox]), main textarea')) {
      if (field.value === '' && !field.readOnly) set(field, texts[field.type] ?? 'x-example')
    }
    await rest(30)
    if (next.tagName === 'SELECT') set(next, next.options[(next.selectedIndex + 1) % next.options.length].value)
    else next.click()
    await rest(60)
    const question = document.querySelector('fieldset.confirm')
    if (!question) continue
    const name = question.querySelector('label')
    if (name) set(question.querySelector('input'), name.textContent.replace('Type ', ''))
    await rest(330)
    question.querySelector('.danger').click()
    await rest(60)
    for (const each of document.querySelectorAll('fieldset.confirm .plain')) each.click()
  }
  return [...used]
})()`

describe.skipIf(!hasBrowser)('the controls of a page', () => {
  // The refusals of this test.
  const { programs, openDaemon, openHub } = bothPages({ mayComplain: /status of 4\d\d/ })

  /** Refuses each call that would change something, and notes whether an action made it. */
  async function watch(page: Page) {
    const sent: { path: string; byAction: boolean }[] = []
    const asked = new Set<Request>()
    let answeredAt = Infinity
    // Streams have no end.
    page.on('request', request => /\/v1\/(?!.*(stream|events))/.test(request.url()) && asked.add(request))
    const answered = (request: Request) => {
      if (asked.delete(request)) answeredAt = performance.now()
    }
    page.on('requestfinished', answered)
    page.on('requestfailed', answered)
    await page.route(/\/v1\//, async (route, request) => {
      const path = new URL(request.url()).pathname.replace('/web/', '/')
      if (request.method() === 'GET' || isReading(path)) return route.fallback()
      if (path === '/v1/daemons/reconcile' && request.postDataJSON().without === undefined) return route.fallback()
      const byAction = (await page.evaluate("document.documentElement.hasAttribute('data-sending')")) as boolean
      sent.push({ path, byAction })
      const error = { code: 'conflict', message: 'not in this test' }
      await route.fulfill({ status: 409, json: { ok: false, type: 'conflict', error, payload: error } })
    })
    return {
      /** Uses the controls of a page that has what it asks for, until they have made these calls. */
      async use(address: string, calls: readonly string[]) {
        const before = sent.length
        const useAll = async () => {
          // Whole: another address of the same document is reached before its content is, and a choice leads elsewhere.
          await page.goto('about:blank')
          asked.clear()
          answeredAt = Infinity
          await page.goto(address)
          await page.locator('main h1').first().waitFor()
          const isAnswered = () => asked.size === 0 && performance.now() - answeredAt > 300
          await until(isAnswered, `${address} has what it asks for`, PATIENCE_MS)
          await page.evaluate(USE_ALL)
          return calls.every(call => sent.slice(before).some(({ path }) => path === `/v1/${call}`))
        }
        await until(useAll, `${address} makes the calls ${calls.join(', ')}`, PATIENCE_MS)
      },
      outside: () => sent.filter(({ byAction }) => !byAction).map(({ path }) => path),
      paths: () => [...new Set(sent.map(({ path }) => path))].sort(),
    }
  }

  test('of a daemon change something only by actions', async () => {
    const { daemon } = await programs()
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': GATE }) })
    const owner = { authorization: `Bearer ${daemon.token}` }
    await daemon.call('/v1/settings/set', { key: 'agents.wiki.email', value: 'a@example.com' }, owner)
    const page = await openDaemon('runs')
    await page.getByRole('heading', { name: 'Runs' }).waitFor()
    const watched = await watch(page)
    const pages = {
      runs: [],
      [`runs/${run_id}`]: ['runs/cancel', 'reviews/decide'],
      reviews: ['reviews/decide'],
      triggers: [],
      agents: ['agents/doctor'],
      workspaces: ['workspaces/add', 'workspaces/remove'],
      settings: ['settings/set'],
    }
    for (const [address, calls] of Object.entries(pages)) await watched.use(`${daemon.url}/#/${address}`, calls)
    expect(watched.outside()).toEqual([])
    expect(watched.paths()).toEqual(callsOf(pages))
    // A control that goes another way would be found.
    await page.evaluate(`fetch('/v1/settings/set', { method: 'POST', body: '{}' })`)
    expect(watched.outside()).toEqual(['/v1/settings/set'])
    await page.unrouteAll()
    await daemon.call('/v1/runs/cancel', { run_id })
  })

  test('of a hub change something only by actions', async () => {
    const { world } = await programs()
    const { hub, realm, daemonId } = world
    await hub.account('walter')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: 'walter', role: 'member' })
    await hub.ok(hub.admin, 'realms/invite', { realm_id: realm, role: 'member' })
    await hub.ok(hub.admin, 'realms/add_webhook', {
      realm_id: realm,
      url: 'https://hooks.example.com/a',
      events: ['run.failed'],
    })
    const run = await world.dispatch('release', { inputs: { tag: 'v1' } })
    const queued = await world.dispatch('train')
    await world.reached(run, 'awaiting_input')
    const page = await openHub('realms')
    const watched = await watch(page)
    const pages = {
      runs: [],
      [`runs/${run}`]: ['dispatch/cancel', 'reviews/decide'],
      reviews: ['reviews/decide'],
      'dispatch?team=@admin/waits': ['dispatch/run'],
      triggers: [],
      queue: ['dispatch/cancel'],
      [`daemons/${daemonId}`]: ['daemons/update', 'daemons/remove'],
      'packages/%40admin%2Frelease': ['teams/yank'],
      realms: ['realms/create'],
      [`realms/${realm}/members`]: ['realms/add_member', 'realms/remove_member', 'realms/delete'],
      [`realms/${realm}/invitations`]: ['realms/invite', 'realms/revoke_invite'],
      [`realms/${realm}/teams`]: ['realms/add_team', 'realms/remove_team'],
      [`realms/${realm}/webhooks`]: ['realms/add_webhook', 'realms/remove_webhook'],
      tokens: ['auth/generate_token', 'auth/rotate_token', 'auth/revoke_token'],
      account: ['users/change_password'],
    }
    for (const [address, calls] of Object.entries(pages)) await watched.use(`${hub.url}/#/${address}`, calls)
    expect(watched.outside()).toEqual([])
    expect(watched.paths()).toEqual(callsOf(pages))
    for (const run_id of [run, queued]) await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  })
})
