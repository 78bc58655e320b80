// What the dashboard shows of a run beyond its state: attempts and waits, what it wrote elsewhere, its graph, the log of
// the whole tree, documents that it wrote, the plan of a team, and what the doctor finds.

import { afterAll, afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { expectAccessibleAt } from './axe.ts'
import { hasBrowser, leave, look, PATIENCE_MS, type Seen, startBrowser } from './browser.ts'
import { frontOf } from './front.ts'

setDefaultTimeout(180_000)

/** An agent whose writes have a page, and which refuses its credential. */
const VENDOR = `import { agent, AgentError, secret, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Makes releases.',
  settings: Type.Object({ token: secret({ description: 'The token.' }) }),
  doctor: async () => ({ who: 'release-bot', missing: ['releases:write'], text: 'reads only' }),
  actions: { publish: { direction: 'target', effect: 'once', description: 'Publishes.',
    entry: Type.Object({ name: Type.String({ description: 'n' }), title: Type.String({ description: 't' }) }),
    async run({ title }) { return { text: 'published ' + title, data: {}, external: { id: title, url: 'https://example.com/releases/' + title } } } } },
})
`

const RELEASE = {
  'team.yml': `name: "@local/release"
version: 1.0.0
inputs:
  - { name: version, type: string, required: true }
  - { name: key, type: string, secret: true }
phases:
  - name: build
    agent: exec
    retry: { attempts: 2, backoff: 300ms }
    commands:
      - { name: c, run: 'echo x >> tries; echo "try $(wc -l < tries)"; test $(wc -l < tries) -ge 2' }
  - { name: regions, type: map, depends_on: [build], items: [eu, us], key: "{{ item }}", team: ./region, inputs: { region: "{{ item }}" } }
  - name: report
    agent: exec
    depends_on: [build]
    commands:
      - { name: c, run: 'cp report.md slow.md deep.json "$CADRE_OUT/"; printf "a,b\\n1,\\"x, y\\"\\n" > "$CADRE_OUT/table.csv"; echo "{\\"total\\":7}" > "$CADRE_OUT/sum.json"' }
  - { name: publish, agent: vendor, action: publish, depends_on: [regions, report], target_entries: [{ name: release, title: "{{ inputs.version }}" }] }
  - { name: check, agent: exec, depends_on: [publish], commands: [{ name: c, run: 'echo checked; exit $(cat code)' }] }
`,
  'region/team.yml': `name: "@local/region"
version: 1.0.0
inputs: [{ name: region, type: string, required: true }]
phases:
  - { name: say, agent: exec, env: { R: "{{ inputs.region }}" }, commands: [{ name: c, run: 'echo "hello from $R"' }] }
`,
  'report.md':
    '# Report\n\nAll **green**.\n\n| region | builds |\n| - | -: |\n| eu | 412 |\n\n- [x] done\n\n[more](https://example.com/more)\n',
  'slow.md': `${'*a_'.repeat(1_500)}\n`.repeat(20),
  'deep.json': '['.repeat(50_000) + ']'.repeat(50_000),
  code: '3',
}

describe.skipIf(!hasBrowser)('what the dashboard shows of a run', () => {
  async function begin() {
    const agents = folder()
    writeFileSync(join(agents, 'vendor.ts'), VENDOR)
    const [daemon, browser] = await Promise.all([spawnDaemon({ env: { CADRE_AGENTS: agents } }), startBrowser()])
    const auth = { authorization: `Bearer ${daemon.token}` }
    await daemon.call('/v1/settings/set', { key: 'agents.vendor.token', value: 'the-token-of-the-vendor' }, auth)
    const path = files(RELEASE)
    const inputs = { version: 'v2.4.0', key: 'the-key-of-the-release' }
    const { run_id } = await daemon.call('/v1/runs/start', { path, run_name: 'Release', inputs })
    expect((await daemon.ended(run_id)).state).toBe('failed')
    return { daemon, browser, path, run_id }
  }
  const started = hasBrowser ? begin() : null
  const opened: Seen[] = []

  afterEach(async () => {
    expect(await leave((await started)!.browser, opened)).toEqual([])
  })
  afterAll(async () => (await started)?.browser.close())

  async function open(place: (runId: string) => string) {
    const { daemon, browser, path, run_id } = (await started)!
    const seen = await look(browser, `${daemon.url}/#token=${daemon.token}&/${place(run_id)}`)
    opened.push(seen)
    return { daemon, page: seen.page, path, run_id }
  }

  test('a phase shows its attempts, the waits between them, and what it was given', async () => {
    const { page } = await open(id => `runs/${id}?phase=build`)
    const chain = page.locator('.opened .chain > li')
    await chain.first().waitFor()
    expect(await chain.count()).toBe(2)
    expect(await chain.first().textContent()).toContain('exited with code 1')
    const bar = page.locator('.phase .bar').first()
    // On a busy machine it may also have waited for its first attempt.
    const drawn = await bar.locator('> *').evaluateAll(all =>
      all.slice(-3).map(each => {
        const { left, width } = each.getBoundingClientRect()
        return { what: each.className, left, width }
      }),
    )
    expect(drawn.map(({ what }) => what)).toEqual(['failed', 'wait', 'completed'])
    // The wait takes the place between the attempts.
    expect(drawn[1]!.width).toBeGreaterThan(1)
    expect(Math.abs(drawn[0]!.left + drawn[0]!.width - drawn[1]!.left)).toBeLessThan(5)
    await page.getByRole('heading', { name: 'Inputs, as the team has them' }).waitFor()
    await page.locator('.opened .json', { hasText: 'echo x >> tries' }).waitFor()
  })

  test('an outside write is a link to the page of the vendor', async () => {
    const { page } = await open(id => `runs/${id}?phase=publish`)
    const link = page.locator('.opened').getByRole('link', { name: 'v2.4.0' })
    await link.waitFor()
    expect([await link.getAttribute('href'), await link.getAttribute('target')]).toEqual([
      'https://example.com/releases/v2.4.0',
      '_blank',
    ])
  })

  test('the graph puts each phase below those that it waits for, and leads to it', async () => {
    const { page } = await open(id => `runs/${id}/graph`)
    await page.locator('.node').first().waitFor()
    const places = await page
      .locator('.node')
      .evaluateAll(all => all.map(each => [each.getAttribute('title'), each.getBoundingClientRect().top] as const))
    const top = new Map(places.map(([name, y]) => [name!, y]))
    expect([...top.keys()]).toEqual(['build', 'regions', 'report', 'publish', 'check'])
    expect(top.get('regions')).toBe(top.get('report')!)
    for (const [above, below] of [
      ['build', 'regions'],
      ['regions', 'publish'],
      ['publish', 'check'],
    ] as const) {
      expect(top.get(above)!).toBeLessThan(top.get(below)!)
    }
    expect(await page.locator('.drawing > svg > path').count()).toBe(5)
    await page.locator('.node', { hasText: 'report' }).click()
    await page.locator('.phase[open]', { hasText: 'report' }).waitFor()
  })

  test('the log of the whole tree is one scroll that is searched, narrowed and saved', async () => {
    const { page } = await open(id => `runs/${id}/logs`)
    const line = page.locator('.line')
    await line.filter({ hasText: 'hello from eu' }).waitFor()
    expect((await page.locator('.line .text').allInnerTexts()).toSorted()).toEqual(
      [
        'try 1',
        'try 2',
        'hello from eu',
        'hello from us',
        'checked',
        'failed: command c exited with code 3',
      ].toSorted(),
    )
    expect(await line.filter({ hasText: 'hello from us' }).locator('.phase-name').textContent()).toBe('regions/us/say')
    await page.getByLabel('Search').fill('HELLO')
    await until(async () => (await line.count()) === 2, 'two lines fit', PATIENCE_MS)
    const saved = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Download' }).click()
    const text = readFileSync((await (await saved).path())!, 'utf8')
    expect(
      text
        .trim()
        .split('\n')
        .map(each => each.replace(/^\S+ /, ''))
        .toSorted(),
    ).toEqual(['regions/eu/say hello from eu', 'regions/us/say hello from us'])
    await page.getByLabel('Search').fill('')
    await page.getByLabel('Runs').selectOption('only this')
    await until(async () => (await line.count()) === 4, 'its own lines', PATIENCE_MS)
    await page.getByLabel('Phase').selectOption('check')
    await until(async () => (await line.count()) === 2, 'one phase', PATIENCE_MS)
    expect(page.url()).toContain('phase=check&below=no')
  })

  test('no line is lost with the connection', async () => {
    const { daemon, browser } = (await started)!
    const path = files({
      'team.yml': `name: "@local/talks"
version: 1.0.0
phases: [{ name: each, type: map, items: [a, b], key: "{{ item }}", team: ./one, inputs: { who: "{{ item }}" } }]
`,
      'one/team.yml': `name: "@local/one"
version: 1.0.0
inputs: [{ name: who, type: string, required: true }]
phases:
  - name: talk
    agent: exec
    env: { W: "{{ inputs.who }}" }
    commands:
      - { name: c, run: 'for n in 1 2 3; do until [ -e go$n ]; do sleep 0.02; done; for k in $(seq 1500); do echo "$W $n $k"; done; done' }
`,
    })
    const { run_id } = await daemon.call('/v1/runs/start', { path })
    let front = frontOf(daemon.url, 0)
    const { port } = front
    try {
      const seen = await look(browser, `${front.url.origin}/#token=${daemon.token}&/runs/${run_id}/logs`)
      opened.push(seen)
      const lines = (count: string) => seen.page.getByRole('region', { name: `${count} lines` })
      await seen.page.getByText('Nothing was logged yet.').waitFor()
      writeFileSync(join(path, 'go1'), '')
      await lines('3,000').waitFor()
      await front.stop(true)
      await seen.page.getByText('The connection to the daemon was lost.').waitFor()
      writeFileSync(join(path, 'go2'), '')
      await until(
        async () => {
          const reply = await fetch(`${daemon.url}/v1/runs/log?run_id=${run_id}`)
          return (await reply.text()).includes('"b 2 1500"')
        },
        'it was said meanwhile',
        PATIENCE_MS,
      )
      front = frontOf(daemon.url, port!)
      await lines('6,000').waitFor()
      writeFileSync(join(path, 'go3'), '')
      await lines('9,000').waitFor()
      await seen.page.locator('.facts .state.completed').waitFor()
      seen.complaints.splice(0, Number.POSITIVE_INFINITY, ...seen.complaints.filter(text => !/net::ERR_/.test(text)))
    } finally {
      await front.stop(true)
    }
  })

  test('documents are shown as what they are', async () => {
    const { page, daemon, run_id } = await open(id => `runs/${id}/files?path=files/report/report.md`)
    await page.locator('.markdown h3', { hasText: 'Report' }).waitFor()
    expect(await page.locator('.markdown strong').textContent()).toBe('green')
    expect(await page.locator('.markdown td').allInnerTexts()).toEqual(['eu', '412'])
    expect(await page.locator('.markdown input').isChecked()).toBe(true)
    expect(await page.getByRole('link', { name: 'more' }).getAttribute('href')).toBe('https://example.com/more')
    await page.getByLabel('Source').check()
    await page.locator('pre.prose', { hasText: '**green**' }).waitFor()
    await page.goto(`${daemon.url}/#/runs/${run_id}/files?path=files/report/table.csv`)
    await page.locator('.opened td').first().waitFor()
    expect(await page.locator('.opened td').allInnerTexts()).toEqual(['1', 'x, y'])
    await page.goto(`${daemon.url}/#/runs/${run_id}/files?path=files/report/sum.json`)
    await page.locator('.opened .json', { hasText: '"total": 7' }).waitFor()
    // What cannot be drawn is shown as it is written, or not at all, and the page goes on.
    await page.goto(`${daemon.url}/#/runs/${run_id}/files?path=files/report/slow.md`)
    await page
      .locator('.opened', { hasText: 'shown as it is written' })
      .locator('pre.prose', { hasText: '*a_' })
      .waitFor()
    await page.goto(`${daemon.url}/#/runs/${run_id}/files?path=files/report/deep.json`)
    await page.locator('.opened', { hasText: 'This file cannot be shown' }).waitFor()
    await page.getByRole('button', { name: 'table.csv' }).click()
    await page.locator('.opened td').first().waitFor()
  })

  test('the plan says what would be written where and with whose credential, at every depth', async () => {
    const { page, path } = await open(() => 'start')
    await page.getByLabel('Team').fill(path)
    await page.getByRole('button', { name: 'Open' }).click()
    // Before it starts, the picture marks what writes outside, and says what is needed and what lacks.
    const plan = page.getByRole('region', { name: 'Plan', exact: true })
    await plan.locator('.node', { has: page.getByRole('img', { name: 'writes to vendor' }) }).waitFor()
    expect(await plan.locator('.node .mark').count()).toBe(1)
    await plan.getByText('1 of 5 phases writes to other systems').waitFor()
    await plan.locator('.fields', { hasText: 'agents.vendor.token' }).waitFor()
    await plan.getByText('input version is required').waitFor()
    await page.getByLabel('version').fill('v3')
    await plan.getByText('input version is required').waitFor({ state: 'detached' })
    await page.getByLabel('key', { exact: true }).fill('never-in-an-address')
    await page.getByRole('link', { name: 'All phases of the plan' }).click()
    await page.getByRole('heading', { name: 'Plan of @local/release' }).waitFor()
    expect(decodeURIComponent(page.url())).toContain('"version":"v3"')
    expect(page.url()).not.toContain('never-in-an-address')
    expect(await page.locator('main td').allInnerTexts()).toEqual([
      'publish',
      'vendor.publish',
      'vendor',
      'agents.vendor.token',
      'once, and never twice',
    ])
    await page.getByRole('button', { name: /regions/ }).click()
    await page.locator('.opened .node', { hasText: 'say' }).waitFor()
  })

  test('the doctor says whose a credential is and what it lacks', async () => {
    const { page } = await open(() => 'agents/vendor')
    await page.getByRole('button', { name: 'Check the credential' }).click()
    const found = page.locator('.chain > li')
    await found.waitFor()
    expect(await found.textContent()).toContain('release-bot')
    expect(await found.textContent()).toContain('lacks releases:write')
  })

  test('axe finds nothing on these pages', async () => {
    const { page, daemon, path, run_id } = await open(() => 'runs')
    const places = {
      [`runs/${run_id}?phase=build`]: '.opened .chain',
      [`runs/${run_id}?phase=publish`]: '.opened .chain',
      [`runs/${run_id}/graph`]: '.node',
      [`runs/${run_id}/logs`]: '.line',
      [`runs/${run_id}/files?path=files/report/report.md`]: '.markdown',
      [`runs/${run_id}/files?path=files/report/table.csv`]: '.opened td',
      [`plan?team=${encodeURIComponent(path)}`]: '.graph',
    }
    for (const [place, shown] of Object.entries(places)) await expectAccessibleAt(page, daemon.url, place, shown)
  })

  test('a resume asks again for the values of secret inputs', async () => {
    const { page, daemon, path, run_id } = await open(id => `runs/${id}`)
    writeFileSync(join(path, 'code'), '0')
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByLabel('key', { exact: true }).fill('the-key-of-the-release')
    await page.locator('form.card').getByRole('button', { name: 'Continue' }).click()
    await page.locator('.facts .state.completed').waitFor()
    opened[0]!.complaints.splice(0, 1)
    expect((await daemon.ended(run_id)).attempt).toBe(2)
    // What was written before is not written again, and the phase that failed has two attempts now.
    await page.locator('summary', { hasText: 'check' }).click()
    await page.locator('.opened .chain > li').nth(1).waitFor()
    expect(await page.locator('.opened .chain > li').first().textContent()).toContain('exited with code 3')
  })
})
