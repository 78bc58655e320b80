// The log of a run as people read it, on the pages of both programs.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser, PATIENCE_MS } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

/** A command that writes to one pipe only: of two, nobody knows which is read first. */
const says = (name: string, script: string) => `{ name: ${name}, run: ${JSON.stringify(`exec >&2\n${script}`)} }`
const phase = (name: string, commands: string[], more = '') =>
  `  - { name: ${name}, agent: exec${more}, commands: [${commands.join(', ')}] }\n`
const team = (name: string, phases: string[]) => ({
  'team.yml': `name: "@local/${name}"\nversion: 1.0.0\nphases:\n${phases.join('')}`,
})

/** What the browser has in its clipboard after a copy of what is selected. */
async function copied(page: Page): Promise<string> {
  await page.evaluate(`window.lastCopy = undefined
    addEventListener('copy', event => { window.lastCopy = event.clipboardData.getData('text/plain') }, { once: true })
    document.execCommand('copy')`)
  return page.evaluate('window.lastCopy')
}

const shownIn = (page: Page) => page.locator('.line .text').allTextContents()

describe.skipIf(!hasBrowser)('a log', () => {
  const { programs, openDaemon, openHub } = bothPages()

  /** Runs a team on both programs, and opens the logs of the two runs. */
  async function both(name: string, given: Record<string, string>, state = 'completed') {
    const { daemon, world } = await programs()
    const { run_id } = await daemon.call('/v1/runs/start', { path: files(given) })
    await world.publish(given)
    await world.hub.ok(world.hub.admin, 'realms/add_team', { realm_id: world.realm, team: `@admin/${name}` })
    const onHub = await world.dispatch(name)
    const [ended] = await Promise.all([daemon.ended(run_id), world.reached(onHub, state)])
    expect((ended as { state: string }).state).toBe(state)
    const opened = [
      { server: 'daemon', run_id: run_id as string, open: (path = 'logs') => openDaemon(`runs/${run_id}/${path}`) },
      { server: 'hub', run_id: onHub, open: (path = 'logs') => openHub(`runs/${onHub}/${path}`) },
    ] as const
    return opened
  }

  test('shows of a line that writes over itself what a terminal does, and gives what was written', async () => {
    const script = `printf '10 %%\\r 50 %%\\r100 %%\\n'; printf 'loading\\r\\033[K\\033[32mdone\\033[0m\\n'; echo end`
    for (const { open } of await both('bars', team('bars', [phase('say', [says('c', script)])]))) {
      const page = await open()
      await page.locator('.line .text', { hasText: 'end' }).waitFor()
      expect(await shownIn(page)).toEqual(['100 %', 'done', 'end'])
      expect(await page.locator('.ansi-green').textContent()).toBe('done')
      expect(await page.locator('.line .seq').allTextContents()).toEqual(['1', '2', '3'])

      await page.evaluate(`const texts = document.querySelectorAll('.line .text')
        getSelection().setBaseAndExtent(texts[0], 0, texts[1], texts[1].childNodes.length)`)
      expect(await copied(page)).toBe('10 %\r 50 %\r100 %\nloading\r\x1b[K\x1b[32mdone\x1b[0m')
      // A part of a line is copied as it is seen, which the browser does.
      await page.evaluate(`const part = document.querySelector('.line .text span').firstChild
        getSelection().setBaseAndExtent(part, 0, part, 2)`)
      expect(await copied(page)).toBe('')

      const saved = page.waitForEvent('download')
      await page.getByRole('button', { name: 'Download' }).click()
      const text = readFileSync((await (await saved).path())!, 'utf8')
      expect(text).toContain('10 %\r 50 %\r100 %\n')
      expect(text).toContain('loading\r\x1b[K\x1b[32mdone\x1b[0m\n')
    }
  })

  test('has an address for a range of lines, which is shown in the middle', async () => {
    const script = 'for i in $(seq 1 900); do echo "row $i"; done'
    for (const { server, run_id, open } of await both('rows', team('rows', [phase('say', [says('c', script)])]))) {
      const page = await open('logs#L400')
      const chosen = page.locator('.line.chosen')
      const range = (first: number, last: number) =>
        until(
          async () => {
            const texts = await chosen.locator('.text').allTextContents()
            return texts.length === last - first + 1 && texts[0] === `row ${first}` && texts.at(-1) === `row ${last}`
          },
          `${server}: ${first} to ${last}`,
          PATIENCE_MS,
        )
      await range(400, 400)
      const number = (seq: number) => page.getByRole('link', { name: `Line ${seq}`, exact: true })
      await number(404).click({ modifiers: ['Shift'] })
      await range(400, 404)
      expect(page.url()).toEndWith(`#/runs/${run_id}/logs#L400-L404`)
      await number(397).click({ modifiers: ['Shift'] })
      await range(397, 400)
      await page.getByText('Lines 397 to 400').waitFor()
      await page.goto(`${page.url().split('#')[0]}#/runs/${run_id}/logs?phase=say#L620-L610`)
      await range(610, 620)
      const isMiddle = async () => {
        const [line, log] = await Promise.all([chosen.nth(5).boundingBox(), page.locator('.virtual.log').boundingBox()])
        return line !== null && log !== null && Math.abs(line.y - log.y - log.height / 2) < log.height / 4
      }
      await until(isMiddle, 'the range is in the middle', PATIENCE_MS)
      await number(615).click()
      await range(615, 615)
    }
  })

  test('goes on from one line in the logs of all runs of the tree', async () => {
    const given = {
      'team.yml': `name: "@local/hosts"
version: 1.0.0
phases:
  - { name: each, type: map, items: [one, two], key: "{{ item }}", concurrency: 1, team: ./host, inputs: { host: "{{ item }}" } }
${phase('after', [says('c', 'echo after all')], ', depends_on: [each]')}`,
      'host/team.yml': `name: "@local/host"
version: 1.0.0
inputs: [{ name: host, type: string, required: true }]
phases:
${phase('say', [says('c', 'echo "begin $HOST"; echo "end $HOST"')], ', env: { HOST: "{{ inputs.host }}" }')}`,
    }
    for (const { open } of await both('hosts', given)) {
      const page = await open()
      const line = (text: string) => page.locator('.line', { hasText: text })
      await line('after all').waitFor()
      expect(await line('from here').count()).toBe(0)
      await line('begin two').getByRole('link').click()
      await page.locator('.line.chosen', { hasText: 'begin two' }).waitFor()
      await page.getByRole('link', { name: 'From here in all sub-runs' }).click()
      await line('after all').waitFor()
      expect(await shownIn(page)).toEqual(['begin two', 'end two', 'after all'])
      expect(page.url()).toMatch(/logs\?from=\d+$/)
      await page.getByRole('link', { name: 'all lines' }).click()
      await line('begin one').waitFor()
    }
  })

  test('has the times that a reader chose, and names their zone', async () => {
    for (const { open } of await both('timed', team('timed', [phase('say', [says('c', 'echo said')])]))) {
      const page = await open()
      const time = page.locator('.line time')
      await time.waitFor()
      const zone = await page.evaluate('Intl.DateTimeFormat().resolvedOptions().timeZone')
      const choice = page.getByLabel('Line times')
      expect(await choice.locator('option').first().textContent()).toBe(`in ${zone}`)
      expect(await time.textContent()).toMatch(/^\d\d:\d\d:\d\d$/)
      expect(await time.getAttribute('title')).toContain('UTC')
      await choice.selectOption('since the start')
      await time.getByText(/^0:00:\d\d\.\d{3}$/).waitFor()
      await page.reload()
      await time.getByText(/^0:00:\d\d\.\d{3}$/).waitFor()
      await choice.selectOption('none')
      await time.waitFor({ state: 'detached' })
      await page.locator('.line', { hasText: 'said' }).waitFor()
    }
  })

  test('of one attempt of a phase has an address, as the attempt has', async () => {
    const script = 'echo x >> tries; echo "try $(wc -l < tries)"; test $(wc -l < tries) -ge 2'
    const given = team('tries', [phase('build', [says('c', script)], ', retry: { attempts: 2, backoff: 300ms }')])
    // A hub does not know the earlier attempts of a phase.
    const [{ run_id, open }] = await both('tries', given)
    const page = await open('?phase=build')
    await page.getByRole('link', { name: 'attempt 1', exact: true }).click()
    await page.locator('.chain > li.chosen', { hasText: 'attempt 1' }).waitFor()
    expect(page.url()).toEndWith(`#/runs/${run_id}?phase=build&attempt=1`)
    await page.getByRole('link', { name: 'Log of attempt 2' }).click()
    await page.getByText('Attempt 2 of build').waitFor()
    await page.locator('.line', { hasText: 'try 2' }).waitFor()
    expect(await page.locator('.line', { hasText: 'try 1' }).count()).toBe(0)
    await page.goto(`${page.url().split('#')[0]}#/runs/${run_id}/logs?phase=build&attempt=1`)
    await page.locator('.line', { hasText: 'try 1' }).waitFor()
    await page.getByText('Attempt 1 of build').waitFor()
    expect(await page.locator('.line', { hasText: 'try 2' }).count()).toBe(0)
  })

  test('folds phases, commands and marked groups, and unfolds what has the error or the linked line', async () => {
    const marked = (name: string) => `echo "::group::${name} outer"; echo "${name} in"; echo "::group::${name} inner"
echo "${name} deep"; echo ::endgroup::; echo ::endgroup::; echo "${name} out"`
    const given = team('folds', [
      phase('build', [
        says('one', marked('one')),
        says('two', `${marked('two')}; echo ::group::open; echo "two last"`),
      ]),
      phase('test', [says('c', 'echo ::group::cases; echo "case 1"; exit 3')], ', depends_on: [build]'),
    ])
    for (const { server, run_id, open } of await both('folds', given, 'failed')) {
      const page = await open()
      const line = (text: string) => page.locator('.line .text').getByText(text, { exact: true })
      const head = (name: RegExp) => page.getByRole('button', { name })
      await page.locator('.line.chosen', { hasText: 'failed: command c exited with code 3' }).waitFor()
      expect(await head(/^one outer 6$/).getAttribute('aria-expanded')).toBe('false')
      await line('two out').waitFor()
      expect(await line('one in').count()).toBe(0)
      // The hub does not know which command printed a line.
      expect(await head(/^one 7$/).count()).toBe(server === 'hub' ? 0 : 1)
      await head(/^one outer/).click()
      await line('one in').waitFor()
      await head(/^one inner/).press('ArrowRight')
      await line('one deep').waitFor()
      await head(/^one inner/).press('Enter')
      await line('one deep').waitFor({ state: 'detached' })
      await head(/^build/).press('ArrowLeft')
      await line('one in').waitFor({ state: 'detached' })
      await page.getByRole('button', { name: 'Unfold all', exact: true }).click()
      await line('two deep').waitFor()
      await page.getByRole('button', { name: 'Fold all', exact: true }).click()
      await line('case 1').waitFor({ state: 'detached' })

      await page.goto(`${page.url().split('#')[0]}#/runs/${run_id}/logs#L4`)
      await page.locator('.line.chosen', { hasText: 'one deep' }).waitFor()
      await page.getByLabel('Groups').uncheck()
      await head(/^build/).waitFor({ state: 'detached' })
      await line('::group::cases').waitFor()
      await page.reload()
      await line('::group::cases').waitFor()
    }
  })

  test('breaks long lines on request, and still shows the chosen one and the end', async () => {
    const script =
      'for i in $(seq 1 300); do printf "row %s" $i; printf " word%.0s" $(seq 1 90); echo; done; echo "the end"'
    for (const { open } of await both('long', team('long', [phase('say', [says('c', script)])]))) {
      const page = await open('logs#L250')
      const chosen = page.locator('.line.chosen')
      await chosen.getByText('row 250').waitFor()
      const heightOf = async () => (await chosen.boundingBox())?.height ?? 0
      expect(await heightOf()).toBe(20)
      await page.getByLabel('Wrap').check()
      await until(async () => (await heightOf()) > 20, 'the line is broken', PATIENCE_MS)
      const log = page.locator('.virtual.log')
      const isSeen = async () => {
        const [line, box] = await Promise.all([chosen.boundingBox(), log.boundingBox()])
        return line !== null && box !== null && line.y >= box.y - 1 && line.y + line.height <= box.y + box.height + 1
      }
      await until(isSeen, 'the chosen line is in sight', PATIENCE_MS)
      await page.reload()
      await until(async () => (await heightOf()) > 20 && (await isSeen()), 'it is kept', PATIENCE_MS)
      await page.evaluate(`const box = document.querySelector('.virtual.log')
        box.addEventListener('scroll', () => box.scrollTo(0, box.scrollHeight))
        box.scrollTo(0, box.scrollHeight)`)
      const end = page.locator('.line', { hasText: 'the end' })
      await end.waitFor({ state: 'attached' })
      const isEnd = async () => {
        const [line, box] = await Promise.all([end.boundingBox(), log.boundingBox()])
        return line !== null && box !== null && line.y + line.height <= box.y + box.height + 1
      }
      await until(isEnd, 'the end is in sight', PATIENCE_MS)
    }
  })

  test('shows a line that has line breaks itself in one row, and as it is where lines may be higher', async () => {
    const { daemon } = await programs()
    const given = team('lines', [phase('say', [says('c', 'echo one; echo two; exit 3')])])
    const { run_id } = await daemon.call('/v1/runs/start', { path: files(given) })
    await daemon.ended(run_id)
    const page = await openDaemon(`runs/${run_id}/logs`)
    const text = page.locator('.line .text', { hasText: 'failed:' })
    await text.waitFor()
    expect(await text.textContent()).toContain('one ↵ two')
    expect((await text.boundingBox())!.height).toBeLessThanOrEqual(20)
    await page.getByLabel('Wrap').check()
    await until(async () => (await text.textContent())!.includes('one\ntwo'), 'the line breaks are kept', PATIENCE_MS)
  })
})
