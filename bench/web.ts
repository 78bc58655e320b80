// Measures the dashboard in a real browser, beside an empty page in the same run: a run of 10,000 sub-runs, how soon it is
// there, how long a frame takes while it is scrolled and while it runs, and what the page's process takes; and a log of
// 1,000,000 lines that is followed while it is written. A frame is the time between two callbacks of the browser. Of the
// rounds the best counts, because others use the machine, too. Every line ends with its goal, and with MISSED if the
// goal was not reached.
//
//   bun bench/web.ts [--rounds 3] [--only NAME,NAME]

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Page } from 'playwright-core'
import { killProcesses, spawnDaemon } from '../tests/support/daemon.ts'
import { look, startBrowser } from '../tests/web/browser.ts'

const { values } = parseArgs({ options: { rounds: { type: 'string', default: '3' }, only: { type: 'string' } } })
const rounds = Number(values.rounds)
const only = values.only?.split(',')

const RUNS = 10_000
const WRITERS = 4
const LINES = 250_000
/** Lines that a command writes at once. */
const BURST = 1_000
const SCROLL_MS = 3_000

const folder = mkdtempSync(join(tmpdir(), 'cadre-web-'))
const write = async (name: string, texts: Record<string, string>) => {
  for (const [path, text] of Object.entries(texts)) await Bun.write(join(folder, name, path), text)
  return join(folder, name)
}
const map = await write('map', {
  'team.yml': `name: "@local/map"
version: 1.0.0
inputs: [{ name: items, type: list, required: true }]
phases: [{ name: each, type: map, items: "{{ inputs.items }}", team: ./one, concurrency: 16 }]
`,
  'one/team.yml': `name: "@local/one"
version: 1.0.0
phases: [{ name: work, agent: noop, sources: [{ name: x }] }]
`,
})
const log = await write('log', {
  'team.yml': `name: "@local/log"
version: 1.0.0
phases: [{ name: each, type: map, items: "{{ [${Array.from({ length: WRITERS }, (_, n) => n)}] }}", team: ./writer }]
`,
  'writer/team.yml': `name: "@local/writer"
version: 1.0.0
phases:
  - name: say
    agent: exec
    commands:
      - name: c
        run: n=0; while [ $n -lt ${LINES} ]; do seq -f 'line %.0f' $((n + 1)) $((n + ${BURST})); n=$((n + ${BURST})); sleep 0.03; done
`,
})

mkdirSync(join(folder, 'home'))
const daemon = await spawnDaemon({ home: join(folder, 'home'), env: { CADRE_AGENTS: join(import.meta.dir, 'agents') } })
const browser = await startBrowser()
const empty = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: () =>
    new Response(
      '<!doctype html><title>empty</title><div class="virtual" style="height:600px;overflow:auto"><p class="row" style="height:400000px">.</p></div>',
      {
        headers: { 'content-type': 'text/html' },
      },
    ),
})

function told(name: string, value: string, about: string, goal?: { text: string; met: boolean }): void {
  const end = goal ? `goal ${goal.text}${goal.met ? '' : '  MISSED'}` : ''
  console.log(`${name.padEnd(52)} ${value.padStart(10)}  ${about.padEnd(40)} ${end}`.trimEnd())
}

const least = async (measure: () => Promise<number>): Promise<number> => {
  const all: number[] = []
  for (let round = 0; round < rounds; round++) all.push(await measure())
  return Math.min(...all)
}

/** Milliseconds until the first row is drawn, counted by the page from the beginning of its navigation. */
async function firstPaint(url: string): Promise<number> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
  const page = await context.newPage()
  await page.addInitScript(`
    globalThis.painted = new Promise(done => {
      const look = () => {
        if (document.querySelector('[role=row], .row, .line')) done(performance.now())
        else requestAnimationFrame(look)
      }
      requestAnimationFrame(look)
    })`)
  await page.goto(url)
  const ms = (await page.evaluate('globalThis.painted')) as number
  await context.close()
  return ms
}

/** Records the time of each frame, and the tasks of the page that take over 50 ms, until `stopFrames`. */
const startFrames = (page: Page) =>
  page.evaluate(`(() => {
    globalThis.frames = []
    globalThis.tasks ??= []
    globalThis.observer ??= new PerformanceObserver(list => {
      for (const { duration } of list.getEntries()) globalThis.tasks.push(duration)
    })
    globalThis.observer.observe({ type: 'longtask' })
    let last
    const step = at => {
      if (last !== undefined) globalThis.frames.push(at - last)
      last = at
      if (globalThis.frames) requestAnimationFrame(step)
    }
    requestAnimationFrame(step)
  })()`)

const stopFrames = async (page: Page): Promise<number[]> =>
  (await page.evaluate('(() => { const all = globalThis.frames; globalThis.frames = null; return all })()')) as number[]

/** Scrolls down and up by some rows each frame, and now and then by a jump. */
async function scroll(page: Page): Promise<number[]> {
  await startFrames(page)
  await page.evaluate(`new Promise(done => {
    const box = document.querySelector('.virtual')
    const until = performance.now() + ${SCROLL_MS}
    let by = 300
    let count = 0
    const step = () => {
      const before = box.scrollTop
      if (++count % 40 === 0) box.scrollTop = Math.random() * box.scrollHeight
      else box.scrollTop += by
      if (box.scrollTop === before) by = -by
      if (performance.now() < until) requestAnimationFrame(step)
      else done()
    }
    step()
  })`)
  return stopFrames(page)
}

/** What of the frames was the page's own work. */
const tasksOf = async (page: Page): Promise<string> =>
  `empty ${ms(floor.frame)}; ${await page.evaluate('globalThis.tasks.length')} tasks over 50 ms`

const worst = (frames: readonly number[]): number => Math.max(...frames)

/** The memory of the page's process in MiB, as the kernel reports it; Linux only. */
async function memory(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page)
  await session.send('HeapProfiler.collectGarbage')
  const all = await browser.newBrowserCDPSession()
  const { processInfo } = await all.send('SystemInfo.getProcessInfo')
  const sizes = processInfo
    .filter(({ type }) => type === 'renderer')
    .map(async ({ id }) => {
      const text = await Bun.file(`/proc/${id}/smaps_rollup`)
        .text()
        .catch(() => '')
      return Number(/^Pss:\s+(\d+)/m.exec(text)?.[1] ?? 0) / 1_024
    })
  return Math.max(...(await Promise.all(sizes)))
}

const start = (path: string, inputs = {}): Promise<{ run_id: string }> =>
  daemon.call('/v1/runs/start', { path, inputs })
const at = (runId: string, tab: string) => `${daemon.url}/#/runs/${runId}/${tab}`
const items = Array.from({ length: RUNS }, (_, n) => n)
const ms = (value: number) => `${Math.round(value)} ms`
const mib = (value: number) => `${Math.round(value)} MiB`
const under = (value: number, goal: number, unit: string) => ({ text: `< ${goal} ${unit}`, met: value < goal })

const floor = {
  paint: await least(() => firstPaint(empty.url.href)),
  frame: Number.POSITIVE_INFINITY,
  memory: 0,
}
{
  const { page } = await look(browser, empty.url.href)
  floor.frame = await least(async () => worst(await scroll(page)))
  floor.memory = await memory(page)
  await page.context().close()
}

const programs: Record<string, () => Promise<void>> = {
  async tree() {
    const { run_id } = await start(map, { items })
    const { page } = await look(browser, at(run_id, 'tree'))
    await page.getByRole('row').first().waitFor()
    const frames: number[] = []
    const end = daemon.ended(run_id).then(() => true)
    while (!(await Promise.race([end, Promise.resolve(false)]))) frames.push(worst(await scroll(page)))
    const running = frames.toSorted((a, b) => a - b)[frames.length >> 1]!
    told(
      '10,000 sub-runs: worst frame while it runs',
      ms(running),
      `median of ${frames.length} × 3 s; empty ${ms(floor.frame)}`,
    )
    await page.locator('.facts .state.completed').waitFor()
    await page.context().close()

    const paint = await least(() => firstPaint(at(run_id, 'tree')))
    told('  first useful paint', ms(paint), `empty ${ms(floor.paint)}`, under(paint, 1_000, 'ms'))
    const { page: ended } = await look(browser, at(run_id, 'tree'))
    await ended.getByRole('row').nth(10).waitFor()
    const frame = await least(async () => worst(await scroll(ended)))
    told('  worst frame while it is scrolled', ms(frame), await tasksOf(ended), under(frame, 50, 'ms'))
    const size = await memory(ended)
    told('  memory of the page', mib(size), `empty ${mib(floor.memory)}`, under(size, 150, 'MiB'))
    await ended.goto(at(run_id, 'phases?phase=each'))
    await ended.locator('.opened').waitFor()
    await ended.context().close()
  },
  async log() {
    const { run_id } = await start(log)
    const { page } = await look(browser, at(run_id, 'logs'))
    const whole = page.getByRole('region', { name: `${(WRITERS * LINES).toLocaleString('en')} lines` })
    await page.locator('.line').first().waitFor()
    await startFrames(page)
    const began = performance.now()
    await daemon.ended(run_id)
    const ended = performance.now()
    let lag = 'never'
    try {
      await whole.waitFor({ timeout: 120_000 })
      lag = ms(performance.now() - ended)
    } catch {}
    const frames = (await stopFrames(page)).toSorted((a, b) => a - b)
    const tasks = ((await page.evaluate('globalThis.tasks')) as number[]).toSorted((a, b) => b - a)
    const atEnd = (await page.locator('.line .text').last().textContent()) === `line ${LINES}`
    const clicked = performance.now()
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    const text = await Bun.file((await (await saved).path())!).text()
    const saving = performance.now() - clicked
    // Each line without its time, but with its place: none is there twice, and none is missing.
    const lines = text.trimEnd().split('\n')
    const different = new Set(lines.map(line => line.slice(line.indexOf(' ')))).size
    const about = `written in ${((ended - began) / 1_000).toFixed(1)} s by ${WRITERS} commands`
    const met = atEnd && lines.length === WRITERS * LINES && different === WRITERS * LINES
    told('1,000,000 lines, followed: lines in the page', different.toLocaleString('en'), about, {
      text: 'all, once',
      met,
    })
    told('  from the end of the run to the last line', lag, '')
    told('  saved as a file', ms(saving), '')
    told(
      '  tasks of the page over 50 ms meanwhile',
      String(tasks.length),
      tasks.length > 0 ? `the longest ${ms(tasks[0]!)}` : '',
    )
    told(
      '  worst frame while it is followed',
      ms(frames.at(-1)!),
      `p99 ${ms(frames[Math.floor(frames.length * 0.99)]!)}; empty ${ms(floor.frame)}`,
    )
    told('  memory of the page', mib(await memory(page)), `empty ${mib(floor.memory)}`)
    const frame = await least(async () => worst(await scroll(page)))
    told('  worst frame while it is scrolled', ms(frame), await tasksOf(page), under(frame, 50, 'ms'))
    const asked = performance.now()
    await page.getByLabel('Search').fill('line 249999')
    await page.getByRole('region', { name: /^4 lines/ }).waitFor()
    told('  a search that finds 4 of them', ms(performance.now() - asked), '')
    await page.context().close()
    const paint = await least(() => firstPaint(at(run_id, 'logs')))
    told('  first useful paint once it has ended', ms(paint), `empty ${ms(floor.paint)}`, under(paint, 1_000, 'ms'))
  },
}

try {
  for (const [name, program] of Object.entries(programs)) if (!only || only.includes(name)) await program()
} finally {
  await browser.close()
  await empty.stop(true)
  await daemon.stop().catch(() => killProcesses())
  rmSync(folder, { recursive: true, force: true })
}
process.exit(0)
