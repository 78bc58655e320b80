// A day of faults in an installation at work: two hubs on PostgreSQL behind Caddy, four daemons, a bucket, and Prometheus
// with deploy/alerts.yml. Each row brings a fault about, and prints when it was noticed and where, when work went on, what
// was refused, and whether a run was lost or executed twice. Needs root, PostgreSQL, Caddy and faketime of Debian.
//
//   bun bench/day.ts [--only NAME,…] [--from COMMIT]

import { parseArgs } from 'node:util'
import { killProcesses } from '../tests/support/daemon.ts'
import { removeFolders } from '../tests/support/folder.ts'
import { FACTOR, INTERVAL, prometheusProgram } from './day/prometheus.ts'
import { type Outcome, runRow } from './day/row.ts'
import { ROWS } from './day/rows.ts'
import { rowText, sightsText, table } from './day/table.ts'

/** The last one before hubs learned to go on through these faults. */
const FROM = '66e0b876'

const { values } = parseArgs({ options: { only: { type: 'string' }, from: { type: 'string', default: FROM } } })
const only = values.only?.split(',') ?? ROWS.map(({ name }) => name)
const unknown = only.filter(name => !ROWS.some(row => row.name === name))
if (unknown.length > 0) {
  console.error(`no row is called ${unknown.join(', ')}: there are ${ROWS.map(({ name }) => name).join(', ')}`)
  process.exit(2)
}

const prometheus = await prometheusProgram()
console.log(
  prometheus === null
    ? 'Prometheus is neither installed nor to be had: no alert is measured'
    : `Prometheus evaluates every ${INTERVAL}; each \`for:\` of the rules is divided by ${FACTOR}`,
)
const outcomes: Outcome[] = []
let hasFailed = false
for (const row of ROWS.filter(({ name }) => only.includes(name))) {
  const began = performance.now()
  try {
    const outcome = await runRow(row, { from: values.from, prometheus })
    outcomes.push(outcome)
    hasFailed ||= outcome.lost + outcome.doubled > 0
    console.log(
      `${row.name}, ${Math.round((performance.now() - began) / 1_000)} s\n${rowText(outcome)}\n${sightsText(outcome)}`,
    )
  } catch (error) {
    hasFailed = true
    console.error(`${row.name} failed: ${error instanceof Error ? error.stack : error}`)
  }
}
console.log(`\n${table(outcomes)}`)
await killProcesses()
removeFolders()
process.exit(hasFailed ? 1 : 0)
