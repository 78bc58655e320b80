// The pictures of README and docs: bun run pictures [--all FOLDER]
//
// A daemon and a hub with something to see, in a real browser. `--all` makes pictures of every page instead, in light and dark,
// of a phone, and in the colours that somebody has forced, for whoever changes how the pages look.

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Browser, BrowserContextOptions, Page } from 'playwright-core'
import { until } from './support/bounded.ts'
import { files, killProcesses, type RunningDaemon, spawnDaemon } from './support/daemon.ts'
import { removeFolders } from './support/folder.ts'
import { ADMIN_PASSWORD } from './support/hub.ts'
import { startBrowser } from './web/browser.ts'
import { startWorld, type World } from './web/hub-world.ts'

const DOCS = join(import.meta.dir, '../docs')
const { values } = parseArgs({ options: { all: { type: 'string' } } })

const sleepy = (name: string, seconds: number, more = '') =>
  `  - { name: ${name}, agent: exec${more}, commands: [{ name: c, run: 'echo "reading ${name}"; sleep ${seconds}' }] }\n`

const NOTES = {
  'team.yml': `name: "@local/release-notes"
version: 1.2.0
description: Collects what changed, checks it with every service, and publishes it after somebody has read it
inputs: [{ name: version, type: string, default: "2.4" }]
phases:
${sleepy('changes', 1.2)}  - { name: tickets, agent: exec, depends_on: [changes], retry: { attempts: 3, backoff: 1s }, commands: [{ name: c, run: 'sleep 0.8; test -e tried || { touch tried; echo "the tracker is busy" >&2; exit 75; }' }] }
  - { name: check, type: map, depends_on: [changes], items: ["refunds", "invoices", "taxes", "exports", "webhooks", "ledger", "statements", "reminders", "dunning", "credits"], key: "{{ item }}", team: ./service, inputs: { service: "{{ item }}" }, concurrency: 3, on_item_failure: continue }
${sleepy('write', 0.7, ', depends_on: [check]')}  - name: approve
    type: gate
    depends_on: [write]
    review:
      prompt: "Publish the notes of billing {{ inputs.version }} to 214 customers?"
      reviewers: [any]
      inputs: [{ name: space, type: string, required: true, choices: [public, internal], description: Where they are published }]
  - { name: publish, depends_on: [approve], agent: http, target_entries: [{ name: notes, url: "https://status.example.com/notes", method: POST, body: done }] }
`,
  'service/team.yml': `name: "@local/service"
version: 1.0.0
inputs: [{ name: service, type: string, required: true }]
phases:
  - name: probe
    agent: exec
    env: { S: "{{ inputs.service }}" }
    commands: [{ name: c, run: 'exec >&2; sleep 0.\${#S}; echo "$S answers"; [ "$S" != exports ] || { echo "no schema for $S: the table exports_v2 is missing"; exit 1; }' }]
`,
}

interface Look {
  name: string
  options: BrowserContextOptions
}
const DESK = { width: 1280, height: 800 }
const LIGHT: Look = { name: 'light', options: { viewport: DESK, colorScheme: 'light' } }
const DARK: Look = { name: 'dark', options: { viewport: DESK, colorScheme: 'dark' } }
const PHONE: Look = { name: 'phone', options: { viewport: { width: 360, height: 740 }, deviceScaleFactor: 2 } }
const FORCED: Look = { name: 'forced', options: { viewport: DESK, forcedColors: 'active', colorScheme: 'dark' } }

type Open = (page: Page, path: string) => Promise<void>

const onDaemon =
  (daemon: RunningDaemon): Open =>
  async (page, path) => {
    await page.goto(`${daemon.url}/#token=${daemon.token}&/${path}`)
    await settled(page)
  }

const onHub =
  ({ hub }: World): Open =>
  async (page, path) => {
    await page.goto(`${hub.url}/#/${path}`)
    const name = page.getByLabel('User name')
    await page.locator('main h1').waitFor()
    if (await name.isVisible()) {
      await name.fill('admin')
      await page.getByLabel('Password').fill(ADMIN_PASSWORD)
      await page.getByRole('button', { name: 'Sign in' }).click()
    }
    await settled(page)
  }

async function settled(page: Page): Promise<void> {
  await page.locator('main h1').waitFor()
  await until(async () => (await page.locator('[aria-busy]').count()) === 0, 'everything is loaded', 20_000)
  await page.evaluate('document.fonts.ready')
}

async function take(browser: Browser, { options }: Look, open: Open, path: string, file: string): Promise<void> {
  const context = await browser.newContext(options)
  const page = await context.newPage()
  await open(page, path)
  await page.screenshot({ path: file })
  await context.close()
  console.log(file)
}

const [daemon, world, browser] = await Promise.all([spawnDaemon(), startWorld(), startBrowser()])
try {
  const start = async (contents: Record<string, string>, more: object) =>
    (await daemon.call('/v1/runs/start', { path: files(contents), ...more })).run_id as string
  const others = ['Billing 2.3', 'Search 5.1', 'Accounts 1.9'].map(run_name => start(NOTES, { run_name }))
  await Promise.all(others)
  const run = await start(NOTES, { run_name: 'Billing 2.4' })
  const asks = async () => (await daemon.call('/v1/runs/get', { run_id: run })).state === 'awaiting_input'
  await until(asks, 'the run asks', 60_000)
  const dispatched = await world.dispatch('nightly-report')
  await world.reached(dispatched, 'completed')
  const [home, hub] = [onDaemon(daemon), onHub(world)]
  const report = encodeURIComponent('@admin/nightly-report')
  if (values.all) {
    const folder = values.all
    mkdirSync(folder, { recursive: true })
    const tabs = (id: string) => ['', '/graph', '/tree', '/logs', '/files', '/why'].map(tab => `runs/${id}${tab}`)
    const ofHome = [
      'runs',
      ...tabs(run),
      'reviews',
      'start',
      'agents',
      'agents/wiki',
      'workspaces',
      'settings',
      'triggers',
    ]
    const ofHub = ['runs', ...tabs(dispatched), 'reviews', `dispatch?team=${report}`, 'queue', 'daemons', 'packages']
    ofHub.push(`packages/${report}`, 'realms', `realms/${world.realm}`, 'tokens', 'audit', 'account', 'triggers')
    for (const look of [LIGHT, DARK, PHONE, FORCED]) {
      for (const [server, open, paths] of [['daemon', home, ofHome] as const, ['hub', hub, ofHub] as const]) {
        for (const path of paths) {
          const name = path.replace(/[0-9a-f-]{36}/, 'ID').replace(/[^\w]+/g, '-')
          await take(browser, look, open, path, join(folder, `${server}-${name}-${look.name}.png`))
        }
      }
    }
  } else {
    await take(browser, LIGHT, home, `runs/${run}`, join(DOCS, 'dashboard-run.png'))
    await take(browser, DARK, home, `runs/${run}/tree`, join(DOCS, 'dashboard-tree.png'))
    await take(browser, PHONE, home, 'runs', join(DOCS, 'dashboard-phone.png'))
    await take(browser, LIGHT, hub, `packages/${report}`, join(DOCS, 'hub-package.png'))
  }
} finally {
  await browser.close()
  await world.hub.stop()
  await killProcesses()
  removeFolders()
}
process.exit()
