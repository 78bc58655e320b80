// The table of a day, as docs/operations.md has it, and what was seen in each row.

import type { Outcome } from './row.ts'
import type { Place } from './watch.ts'

const HEAD = [
  '| row | `/ready` | `status` | alert | calls again | runs again | refused | lost, doubled |',
  '| --- | --- | --- | --- | --- | --- | --- | --- |',
].join('\n')

export const seconds = (ms: number | null): string => (ms === null ? '' : `${(ms / 1_000).toFixed(1)} s`)

export function table(outcomes: readonly Outcome[]): string {
  return [HEAD, ...outcomes.map(rowText)].join('\n')
}

export function rowText({ name, noticed, alerts, callsMs, runsMs, refused, lost, doubled }: Outcome): string {
  const fired = alerts === null ? 'not measured' : alerts.length === 0 ? 'none' : alerts.join(', ')
  const alert = noticed.alert === null ? fired : `${seconds(noticed.alert)}: ${fired}`
  const cells = [`\`${name}\``, seconds(noticed['/ready']), seconds(noticed.status), alert]
  const how = [...refused].map(([code, count]) => `${count} × ${code}`).join(', ') || 'none'
  return `| ${[...cells, seconds(callsMs), seconds(runsMs), how, `${lost}, ${doubled}`].join(' | ')} |`
}

const PLACES: readonly Place[] = ['/ready', 'status', 'page', 'alert']

/** What somebody on call would have read, with the seconds after the fault. */
export function sightsText({ sights, notes, runs }: Outcome): string {
  const lines = PLACES.flatMap(place =>
    sights
      .filter(sight => sight.place === place)
      .map(({ afterMs, line }) => `  ${place} +${(afterMs / 1_000).toFixed(1)} s: ${line}`),
  )
  return [`  ${runs} runs; ${notes.join('; ')}`, ...lines].join('\n')
}
