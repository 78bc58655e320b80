// A real browser for tests of the dashboard: Debian's Chromium, driven by playwright-core. Everything that a page
// complains about is collected. Its program without a window does the same with half the processor time.

import { existsSync } from 'node:fs'
import { type Browser, type Cookie, chromium, type Locator, type Page } from 'playwright-core'

const PROGRAMS = ['/usr/bin/chromium-headless-shell', '/usr/bin/chromium']
const program = PROGRAMS.find(path => existsSync(path))

export const hasBrowser = program !== undefined
if (!hasBrowser) console.warn(`${PROGRAMS.join(' and ')} are missing: the tests of the dashboard are skipped`)

/** How long a test waits for what it expects. */
export const PATIENCE_MS = 60_000

const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const VIEWPORT = { width: 1280, height: 800 }

/** Starts the browser with an empty profile of its own. */
export const startBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: program!, headless: true, args: ARGS })

export interface Seen {
  page: Page
  /** Errors of the console, scripts that threw, and everything that the content security policy refused. */
  complaints: string[]
}

/** Pages that nobody uses, by their browser: a new one costs a process that loads and compiles every script anew. */
const left = new WeakMap<Browser, Seen[]>()

/** Opens an address in a session that has only these cookies. */
export async function look(browser: Browser, url: string, cookies: readonly Cookie[] = []): Promise<Seen> {
  const seen = left.get(browser)?.pop() ?? (await newPage(browser))
  await seen.page.context().addCookies(cookies)
  await seen.page.goto(url)
  return seen
}

async function newPage(browser: Browser): Promise<Seen> {
  const context = await browser.newContext({ viewport: VIEWPORT })
  const page = await context.newPage()
  const complaints: string[] = []
  page.on('console', message => {
    if (message.type() === 'error' || /content security policy/i.test(message.text())) complaints.push(message.text())
  })
  page.on('pageerror', error => complaints.push(String(error)))
  await page.addInitScript(() => {
    const { document, console } = globalThis as unknown as {
      document: EventTarget
      console: { error(text: string): void }
    }
    document.addEventListener('securitypolicyviolation', event => {
      const { violatedDirective, sample } = event as unknown as { violatedDirective: string; sample: string }
      console.error(`content security policy: ${violatedDirective} ${sample}`)
    })
  })
  page.setDefaultTimeout(PATIENCE_MS)
  return { page, complaints }
}

/** Answers a review as a person does, in two steps. */
export async function answer(card: Locator, decision: string): Promise<void> {
  await card.getByRole('button', { name: decision, exact: true }).click()
  await card
    .locator('fieldset.confirm')
    .getByRole('button', { name: `${decision}:` })
    .click()
}

/** Ends the sessions of a test, which leaves its pages to the next one. Returns what they complained about. */
export async function leave(browser: Browser, opened: Seen[]): Promise<string[]> {
  const complaints: string[] = []
  for (const seen of opened.splice(0)) {
    complaints.push(...seen.complaints.splice(0))
    await empty(seen.page)
    // What a page says while it is left is not its test's.
    seen.complaints.length = 0
    left.set(browser, [...(left.get(browser) ?? []), seen])
  }
  return complaints
}

async function empty(page: Page): Promise<void> {
  const context = page.context()
  for (const other of context.pages()) if (other !== page) await other.close()
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  for (const event of ['request', 'requestfinished', 'requestfailed'] as const) page.removeAllListeners(event)
  await page.emulateMedia({ colorScheme: null, reducedMotion: null })
  await page.setViewportSize(VIEWPORT)
  // Storage belongs to the origin of the page.
  await page.evaluate('sessionStorage.clear(); localStorage.clear()').catch(() => {})
  await context.clearCookies()
  await page.goto('about:blank')
}
