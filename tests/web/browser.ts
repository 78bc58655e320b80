// A real browser for tests of the dashboard: Debian's Chromium, driven by playwright-core. Everything that a page
// complains about is collected. Its program without a window does the same with half the processor time.

import { existsSync } from 'node:fs'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

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

/** Starts the browser with an empty profile of its own. */
export const startBrowser = (): Promise<Browser> =>
  chromium.launch({ executablePath: program!, headless: true, args: ARGS })

export interface Seen {
  page: Page
  /** Errors of the console, scripts that threw, and everything that the content security policy refused. */
  complaints: string[]
}

/** Opens an address in a context of its own, so with an empty session. */
export async function look(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Seen> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options })
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
  await page.goto(url)
  return { page, complaints }
}
