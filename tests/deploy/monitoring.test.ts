// deploy/alerts.yml and deploy/dashboard.json, against what a hub and a daemon serve: each metric and each label that they
// name is there, each alert has its section of docs/operations.md, and Prometheus' own tool finds nothing to mend.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import dashboard from '../../deploy/dashboard.json'
import { until } from '../support/bounded.ts'
import { type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { METRICS_TOKEN } from '../support/served-hub.ts'

const ROOT = join(import.meta.dir, '../..')
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

interface Alert {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; runbook_url: string }
}

const alerts = (parse(read('deploy/alerts.yml')) as { groups: { rules: Alert[] }[] }).groups.flatMap(
  ({ rules }) => rules,
)
const expressions = [
  ...alerts.map(({ alert, expr }) => [alert, expr] as const),
  ...dashboard.panels.flatMap(({ title, targets = [] }) => targets.map(({ expr }) => [title, expr] as const)),
]

const promtool = Bun.which('promtool')
if (promtool === null) console.warn('promtool is missing (package prometheus): its checks are skipped')

const TEAM = `name: "@admin/watched"
version: 1.0.0
phases:
  - { name: say, agent: exec, commands: [{ name: c, run: "true" }] }
`

let hub: TestHub
let daemon: RunningDaemon
/** What the hub and the daemon say. */
let said: { hub: string; daemon: string }
beforeAll(async () => {
  hub = await startTestHub()
  const team = await hub.addTeam(TEAM)
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = await spawnDaemon({ env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team })
  await until(
    async () => (await hub.call(hub.admin, 'runs/get', { run_id })).data?.completed_at != null,
    `the end of ${run_id}`,
  )
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
  const [ofHub, ofDaemon] = await Promise.all([
    fetch(`${hub.url}/metrics`, { headers }),
    fetch(`${daemon.url}/metrics`),
  ])
  said = { hub: await ofHub.text(), daemon: await ofDaemon.text() }
}, 60_000)
afterAll(() => hub.stop())

/** The metrics of a text, by their names, and the names of their samples. */
function namesIn(text: string): Set<string> {
  const declared = Array.from(text.matchAll(/^# TYPE (\w+) (\w+)$/gm), ([, name, type]) =>
    type === 'histogram' ? ['_bucket', '_sum', '_count'].map(end => name! + end) : [name!],
  )
  return new Set(declared.flat())
}

const WORDS = new Set('by without on ignoring group_left group_right and or unless offset bool'.split(' '))

/** The names of metrics in an expression: what is neither a label, a text, a duration, a function nor a word of PromQL. */
function metricsIn(expr: string): string[] {
  const bare = expr
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\[[^\]]*\]/g, '')
    .replace(/\b(by|without|on|ignoring)\s*\([^)]*\)/g, '')
  const called = new Set(bare.match(/\b\w+(?=\s*\()/g))
  return (bare.match(/\b[a-z_]\w*/g) ?? []).filter(word => !WORDS.has(word) && !called.has(word))
}

function labelsIn(expr: string): string[] {
  const matched = Array.from(expr.matchAll(/\{([^}]*)\}/g), ([, inside]) =>
    Array.from(inside!.matchAll(/(\w+)\s*[=!]/g), ([, label]) => label!),
  )
  const grouped = Array.from(expr.matchAll(/\b(?:by|on)\s*\(([^)]*)\)/g), ([, inside]) => inside!.split(/\s*,\s*/))
  return [...matched, ...grouped].flat()
}

test('the names of metrics are found in expressions', () => {
  const expr = 'sum by (job, le) (rate(a_bucket{job="b",c=~"d"}[5m])) > 2 * (time() - max(e offset 1h)) or vector(0)'
  expect([metricsIn(expr), labelsIn(expr)]).toEqual([
    ['a_bucket', 'e'],
    ['job', 'c', 'job', 'le'],
  ])
})

test.each(expressions)('%s names metrics and labels that are served', (_, expr) => {
  // Prometheus adds these itself.
  const names = new Set(['up', ...namesIn(said.hub), ...namesIn(said.daemon)])
  const metrics = metricsIn(expr)
  expect(metrics.length).toBeGreaterThan(0)
  expect(metrics.filter(name => !names.has(name))).toEqual([])
  expect(labelsIn(expr).filter(label => !LABELS.has(label) && !hasLabel(label))).toEqual([])
})

const hasLabel = (label: string): boolean =>
  [said.hub, said.daemon].some(text => text.includes(`{${label}="`) || text.includes(`,${label}="`))

/** Those that Prometheus adds, and those that the documents name: some have values only after a failure. */
const LABELS = new Set([
  ...['job', 'instance'],
  ...[read('docs/hub.md'), read('docs/operations.md')].flatMap(text =>
    Array.from(text.matchAll(/^\| `\w+\{([a-z_,]+)\}`/gm), ([, labels]) => labels!.split(',')).flat(),
  ),
])

describe.each([
  ['hub', 'docs/hub.md'],
  ['daemon', 'docs/operations.md'],
] as const)('metrics of the %s', (of, document) => {
  test('each has a line in the table of its document', () => {
    const rows = read(document)
      .split('\n')
      .filter(line => line.startsWith('| `'))
      .join('\n')
    const families = Array.from(said[of].matchAll(/^# TYPE (\w+) /gm), ([, name]) => name!)
    const known = (name: string) => new RegExp(`\`${name}[\`{]`).test(spelledOut(rows))
    expect(families.filter(name => !known(name) && !renamed(said[of]).has(name))).toEqual([])
    expect(families.length).toBeGreaterThan(15)
  })

  test.skipIf(promtool === null)('satisfy promtool, except for names of the last release', () => {
    expect(check(['metrics'], current(said[of]))).toEqual([0, ''])
  })
})

/** `a_{p50,p99}_seconds` as the names that it means. */
const spelledOut = (text: string): string =>
  text.replace(/`(\w+)\{([\w,]+)\}(\w+)`/g, (_, start, middles, end) =>
    (middles as string)
      .split(',')
      .map(middle => `\`${start}${middle}${end}\``)
      .join(' '),
  )

/** The names under which the next release serves nothing. */
const renamed = (text: string): Set<string> =>
  new Set(Array.from(text.matchAll(/^# HELP (\w+) Renamed to /gm), ([, name]) => name!))

function current(text: string): string {
  const old = renamed(text)
  const nameOf = (line: string) => /^(?:# (?:HELP|TYPE) )?(\w+)/.exec(line)?.[1] ?? ''
  return text
    .split('\n')
    .filter(line => !old.has(nameOf(line)))
    .join('\n')
}

function check(what: string[], stdin: string): [code: number | null, text: string] {
  const { exitCode, stdout, stderr } = Bun.spawnSync([promtool!, 'check', ...what], { stdin: Buffer.from(stdin) })
  return [exitCode, exitCode === 0 && what[0] === 'rules' ? '' : `${stdout}${stderr}`]
}

describe('deploy/alerts.yml', () => {
  const document = read('docs/operations.md')
  const sections = document
    .split(/^##+ /m)
    .filter(text => text.startsWith('Cadre'))
    .map(text => ({ name: text.split('\n', 1)[0]!, text: text.slice(text.indexOf('\n')).trim() }))

  test('each alert links to its section, and each section has its alert', () => {
    expect(sections.map(({ name }) => name).sort()).toEqual(alerts.map(({ alert }) => alert).sort())
    for (const { alert, annotations, labels } of alerts) {
      // As GitHub names the anchor of a heading.
      expect(annotations.runbook_url).toBe(`docs/operations.md#${alert.toLowerCase()}`)
      expect(['warning', 'critical']).toContain(labels.severity)
      expect(annotations.summary).toEndWith('.')
    }
    // What it means, what to look at, what to do.
    for (const { name, text } of sections) expect([name, text.split(/[.:;] /).length >= 3]).toEqual([name, true])
  })

  test.skipIf(promtool === null)('satisfies promtool', () => {
    expect(check(['rules', join(ROOT, 'deploy/alerts.yml')], '')).toEqual([0, ''])
  })

  test.skipIf(promtool === null)('fires when it should, as tests/deploy/alerts.yml says', () => {
    const { exitCode, stdout, stderr } = Bun.spawnSync([
      promtool!,
      'test',
      'rules',
      join(import.meta.dir, 'alerts.yml'),
    ])
    expect([exitCode, `${stdout}${stderr}`]).toEqual([0, expect.stringContaining('SUCCESS')])
  })
})

test('the panels of the dashboard have numbers of their own, and do not overlap', () => {
  const { panels } = dashboard
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)} ${y + Math.floor(cell / w)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
})
