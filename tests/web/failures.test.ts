// A person finds what failed: it comes first, however much is green, and nobody takes a tolerated failure for a success.

import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { Page } from 'playwright-core'
import { type Branch, countsOf, failureAfter, openRows, ranked } from '../../lib/web/run/failures.ts'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { bothPages } from './both-pages.ts'
import { hasBrowser, PATIENCE_MS } from './browser.ts'

// A browser on a busy machine takes its time.
setDefaultTimeout(180_000)

/** Runs in depth-first order, as `depth name state`. */
const treeOf = (text: string): Branch[] =>
  text
    .trim()
    .split('\n')
    .map(row => {
      const [depth, name, state] = row.trim().split(' ') as [string, string, string]
      return {
        run_id: name,
        run_name: name,
        state,
        call_path: [],
        call_depth: Number(depth),
        parent_phase: null,
        started_at: null,
        completed_at: null,
      }
    })
const TREE = treeOf(`
  0 top running
  1 done completed
  2 below completed
  1 runs running
  1 deep completed
  2 deeper completed
  3 broken failed
  2 fine completed
  1 asks awaiting_input
  1 broken-too failed
  1 strange hibernating
  1 queued queued`)
const namesOf = (rows: readonly { run: Branch }[]) => rows.map(({ run }) => run.run_id).join(' ')

test('what failed comes first, then what waits, runs and is done, at every level', () => {
  const rows = ranked(TREE)
  expect(namesOf(rows)).toBe('top deep deeper broken fine broken-too asks runs queued strange done below')
  // A run above others in its state is not counted besides them.
  expect(countsOf(rows)).toEqual([
    ['failed', 2],
    ['awaiting_input', 1],
    ['running', 1],
    ['queued', 1],
    ['hibernating', 1],
    ['completed', 3],
  ])
  expect(namesOf(openRows(rows, new Set(), 'failed'))).toBe('top deep deeper broken broken-too')
  expect(namesOf(openRows(rows, new Set(['deep']), 'failed'))).toBe('top deep broken-too')
  expect([null, 'broken', 'broken-too', 'nowhere'].map(id => failureAfter(rows, id))).toEqual([
    'broken',
    'broken-too',
    'broken',
    'broken',
  ])
  expect(ranked([])).toEqual([])
  // Whoever fails because of others is no failure of its own.
  expect(
    ranked(treeOf('0 top failed\n1 one failed\n2 two failed\n2 three completed')).filter(each => each.cause),
  ).toHaveLength(1)
})

test('a tree of 100,000 runs is put in order in the time of a blink', () => {
  const runs = Array.from({ length: 100_000 }, (_, index) => ({
    ...TREE[0]!,
    run_id: `run ${index}`,
    call_depth: index === 0 ? 0 : 1 + (index % 3),
    state: index % 1_000 === 999 ? 'failed' : 'completed',
  }))
  expect(
    ranked(runs)
      .slice(1, 2)
      .map(({ states }) => states & 1),
  ).toEqual([1])
  expect(
    ranked(treeOf(Array.from({ length: 1_000 }, (_, depth) => `${depth} r${depth} completed`).join('\n'))),
  ).toHaveLength(1_000)
})

/**
 * A map whose items complete without a process, but for three. These write to one pipe only: of two, nobody knows which
 * is read first.
 */
const items = (count: number, more = '') => ({
  'team.yml': `name: "@local/fleet"
version: 1.0.0
phases:
  - { name: check, type: map, items: ${JSON.stringify(Array.from({ length: count }, (_, index) => `host-${index}`))}, key: "{{ item }}", team: ./host, inputs: { host: "{{ item }}" }, on_item_failure: continue }
${more}`,
  'host/team.yml': `name: "@local/host"
version: 1.0.0
inputs: [{ name: host, type: string, required: true }]
phases:
  - name: probe
    when: '{{ inputs.host in ["host-7", "host-20", "host-${count - 10}"] }}'
    agent: exec
    env: { HOST: "{{ inputs.host }}" }
    commands: [{ name: c, run: 'exec >&2; for i in $(seq 1 300); do echo "try $i"; done; echo "no route to $HOST"; exit 3' }]
`,
})

const JUDGE = `  - { name: judge, depends_on: [check], agent: exec, commands: [{ name: c, run: 'echo judging; echo "three are too many" >&2; exit 1' }] }
`

/** A run that completes although three phases of it fail: one of its own, and one in each item. */
const LENIENT = {
  'team.yml': `name: "@local/lenient"
version: 1.0.0
phases:
  - { name: lint, agent: exec, on_failure: continue, commands: [{ name: c, run: 'echo two warnings >&2; exit 1' }] }
  - { name: each, type: map, items: [a, b], key: "{{ item }}", team: ./item }
`,
  'item/team.yml': `name: "@local/item"
version: 1.0.0
phases:
  - { name: tidy, agent: exec, on_failure: continue, commands: [{ name: c, run: 'echo no broom >&2; exit 2' }] }
`,
}

describe.skipIf(!hasBrowser)('a page', () => {
  const { programs, openDaemon, openHub } = bothPages()
  const run = async (path: string) => {
    const { daemon } = await programs()
    const { run_id } = await daemon.call('/v1/runs/start', { path, run_name: 'Fleet' })
    return (await daemon.ended(run_id)) as { run_id: string; state: string }
  }

  test('of a map of 500 items with 3 failed shows these first, and why, and jumps from one to the next', async () => {
    const { run_id, state } = await run(files(items(500)))
    expect(state).toBe('completed')
    const page = await openDaemon(`runs/${run_id}`)
    await page.locator('header.top .badge', { hasText: '3 failed' }).waitFor()
    await page.locator('.phase .badge', { hasText: '3 failed' }).waitFor()
    const head = page.getByRole('region', { name: 'What went wrong' })
    await head.getByText('3 of 500 items of check failed').waitFor()
    const lines = head.getByRole('region', { name: 'Last lines of probe' }).locator('> *')
    await lines.first().waitFor()
    const texts = await lines.allTextContents()
    expect(texts).toHaveLength(10)
    expect(texts.slice(-2).join('\n')).toContain('no route to host-')

    await page.goto(`${page.url().split('#')[0]}#/runs/${run_id}/tree`)
    const rows = page.getByRole('treegrid').getByRole('row')
    await rows.nth(4).waitFor()
    const shown = async () => (await rows.locator('.name > a').allTextContents()).slice(0, 5)
    expect(await shown()).toEqual(['Fleet', 'host-7', 'host-20', 'host-490', 'host-0'])
    const failed = page.getByRole('button', { name: /^failed 3$/ })
    await page.getByRole('button', { name: /^completed 497$/ }).waitFor()
    await failed.click()
    await until(async () => (await rows.count()) === 4, 'only what failed', PATIENCE_MS)
    expect(await failed.getAttribute('aria-pressed')).toBe('true')
    const chosen = page.locator('.branch.chosen .name > a')
    for (const name of ['host-7', 'host-20', 'host-490', 'host-7']) {
      await page.keyboard.press('f')
      await until(async () => (await chosen.textContent()) === name, name, PATIENCE_MS)
    }
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'host-7' }).waitFor()
    await head.getByText('1 of 3 in this tree').waitFor()
    await head.getByText('no route to host-7', { exact: true }).waitFor()
    await page.keyboard.press('f')
    await page.getByRole('heading', { name: 'host-20' }).waitFor()
    await page.getByRole('button', { name: 'Next failure' }).click()
    await page.getByRole('heading', { name: 'host-490' }).waitFor()
    await page.evaluate("localStorage.setItem('cadre-keys-off', '1')")
    await page.reload()
    await page.getByRole('heading', { name: 'host-490' }).waitFor()
    await head.getByText('3 of 3 in this tree').waitFor()
    await page.keyboard.press('f')
    expect(await page.getByRole('heading', { name: 'host-490' }).count()).toBe(1)
  })

  /** The list and the tree say of a run of `LENIENT` what its page says. */
  async function sayHowMany(page: Page, run_id: string): Promise<void> {
    const place = page.url().split('#')[0]
    await page.goto(`${place}#/runs/${run_id}/tree`)
    const rows = page.getByRole('treegrid').getByRole('row')
    await rows.nth(2).waitFor()
    const told = await Promise.all((await rows.all()).map(row => row.locator('.badge').textContent()))
    expect(told).toEqual(['3 failed, tolerated', '1 failed, tolerated', '1 failed, tolerated'])
    // No run of the tree failed, so there is nothing to say here.
    expect(await page.getByRole('region', { name: 'What went wrong' }).count()).toBe(0)
    await page.goto(`${place}#/runs`)
    const row = page.getByRole('listitem').filter({ has: page.locator(`a[href$="${run_id}"]`) })
    await row.locator('.badge', { hasText: '3 failed, tolerated' }).waitFor()
  }

  test('says of a run that completed what failed in it and was passed over, also below it', async () => {
    const { run_id, state } = await run(files(LENIENT))
    expect(state).toBe('completed')
    const page = await openDaemon(`runs/${run_id}`)
    await page.locator('header.top .badge', { hasText: '3 failed' }).waitFor()
    await page.locator('.phase', { hasText: 'each' }).locator('.badge', { hasText: '2 failed' }).waitFor()
    await page.locator('.phase', { hasText: 'lint' }).getByText('tolerated').waitFor()
    const head = page.getByRole('region', { name: 'What went wrong' })
    await head.getByText('2 of 2 items of each failed in tidy, which was passed over').waitFor()
    await head.getByText(/^Failed and passed over: phase lint \(.*two warnings/).waitFor()
    await sayHowMany(page, run_id)
  })

  test('of a failure opens its log at the error, and a line has an address', async () => {
    const loud = (name: string, end: string, more = '') =>
      `  - { name: ${name}, agent: exec${more}, commands: [{ name: c, run: 'exec >&2; for i in $(seq 1 900); do echo "${name} $i"; done; ${end}' }] }\n`
    const { run_id, state } = await run(
      files({
        'team.yml': `name: "@local/loud"\nversion: 1.0.0\nphases:\n${loud('try', 'echo broken; exit 3')}${loud('clean', 'true', ', always: true, depends_on: [try]')}`,
      }),
    )
    expect(state).toBe('failed')
    const page = await openDaemon(`runs/${run_id}`)
    const place = page.url().split('#')[0]
    await page
      .getByRole('region', { name: 'What went wrong' })
      .getByRole('link', { name: 'The log at this error' })
      .click()
    const chosen = page.locator('.line.chosen .text')
    await chosen.getByText('failed: command c exited with code 3').waitFor()
    const isSeen = async () => {
      const [line, log] = await Promise.all([chosen.boundingBox(), page.locator('.virtual.log').boundingBox()])
      return line !== null && log !== null && line.y >= log.y && line.y + line.height <= log.y + log.height
    }
    await until(isSeen, 'the error is in sight', PATIENCE_MS)
    await page.goto(`${place}#/runs/${run_id}/logs`)
    await until(isSeen, 'the error is in sight of all lines', PATIENCE_MS)
    await page.locator('.line .text', { hasText: /^clean 1$/ }).waitFor({ state: 'attached' })

    // In the middle, so that what comes above the log later does not push it out of sight.
    const isMiddle = async () => {
      const [line, log] = await Promise.all([chosen.boundingBox(), page.locator('.virtual.log').boundingBox()])
      return line !== null && log !== null && Math.abs(line.y - log.y - log.height / 2) < log.height / 4
    }
    await page.reload()
    await until(isMiddle, 'the error is in the middle', PATIENCE_MS)

    await page.goto(`${place}#/runs/${run_id}/logs#L120`)
    await chosen.getByText('try 120', { exact: true }).waitFor()
    await until(isSeen, 'line 120 is in sight', PATIENCE_MS)
    await page.getByRole('link', { name: 'Line 118', exact: true }).click()
    await chosen.getByText('try 118', { exact: true }).waitFor()
    expect(page.url()).toEndWith(`#/runs/${run_id}/logs#L118`)
    await page.reload()
    await chosen.getByText('try 118', { exact: true }).waitFor()
  })

  test('of the hub says why a run failed, and on its phase and in its tree what was tolerated before', async () => {
    const { world } = await programs()
    await world.publish(items(40, JUDGE))
    await world.hub.ok(world.hub.admin, 'realms/add_team', { realm_id: world.realm, team: '@admin/fleet' })
    const run_id = await world.dispatch('fleet', { run_name: 'Fleet' })
    await world.reached(run_id, 'failed')
    const page = await openHub(`runs/${run_id}`)
    await page.locator('.phase .badge', { hasText: '3 failed' }).waitFor()
    const head = page.getByRole('region', { name: 'What went wrong' })
    await head.getByText('3 of 40 items of check failed').waitFor()
    await head
      .getByRole('region', { name: 'Last lines of judge' })
      .getByText('three are too many', { exact: true })
      .waitFor()
    await page.getByRole('link', { name: 'The log at this error' }).click()
    await page.locator('.line.chosen .text', { hasText: 'failed: command c exited with code 1' }).waitFor()
    await page.getByRole('link', { name: 'Tree' }).click()
    await page.getByRole('row').filter({ hasText: 'host-7' }).first().waitFor()
    await page.keyboard.press('f')
    await until(
      async () => (await page.locator('.branch.chosen .name > a').textContent()) === 'host-7',
      'the first failure',
      PATIENCE_MS,
    )
  })

  test('of the hub says in lists, too, that failures in a run that completed were tolerated', async () => {
    const { world } = await programs()
    await world.publish(LENIENT)
    await world.hub.ok(world.hub.admin, 'realms/add_team', { realm_id: world.realm, team: '@admin/lenient' })
    const run_id = await world.dispatch('lenient', {})
    await world.reached(run_id, 'completed')
    const page = await openHub(`runs/${run_id}`)
    await page.locator('header.top .badge', { hasText: '3 failed' }).waitFor()
    await page.locator('.phase', { hasText: 'each' }).locator('.badge', { hasText: '2 failed' }).waitFor()
    await sayHowMany(page, run_id)
  })
})
