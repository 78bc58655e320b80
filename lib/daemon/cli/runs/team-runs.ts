// `runs stats` and `runs history`: what became of the runs of a team.

import { formatDuration } from '../../../duration.ts'
import { line } from '../../../text/printable.ts'
import { GetRunStats } from '../../../wire/calls/runs.ts'
import { GetTeamHistory } from '../../../wire/calls/teams.ts'
import { backendOf } from '../backend/home-backend.ts'
import type { BackendOptions } from '../backend/run-backend.ts'
import { printHowMany, show, took } from '../kit/print.ts'
import { stateWord, symbol } from '../terminal/state-symbols.ts'
import { clock } from '../terminal/table.ts'

interface StatsOptions extends BackendOptions {
  json?: boolean
  since?: number
}

export async function runStats(team: string, options: StatsOptions): Promise<void> {
  const { json, since } = options
  const backend = await backendOf(options)
  const stats = await backend.ask(runs => runs.call(GetRunStats, { team, ...(since !== undefined && { since }) }))
  const { completed, failed, p50_ms, p95_ms } = stats
  const ended = completed + failed
  const time = (ms: number | null) => (ms === null ? '' : formatDuration(ms))
  show(json, stats, paint => [
    ['runs', String(stats.runs)],
    ['completed', String(completed)],
    ['failed', failed === 0 ? '0' : paint.red(String(failed))],
    ['success', ended === 0 ? '' : `${Math.floor((100 * completed) / ended)} %`],
    ['half within', time(p50_ms)],
    ['95 % within', time(p95_ms)],
    ...stats.days
      .filter(day => day.completed + day.failed > 0)
      .map(day => [day.day, line`${day.completed} completed, ${day.failed} failed`]),
  ])
}

interface HistoryOptions extends BackendOptions {
  json?: boolean
  limit?: number
  offset?: number
}

export async function teamHistory(team: string, options: HistoryOptions): Promise<void> {
  const { json, limit = 20, offset = 0 } = options
  const backend = await backendOf(options)
  const found = await backend.ask(runs => runs.call(GetTeamHistory, { team, limit, offset }))
  show(json, found, paint =>
    found.runs.map(run => [
      line`${symbol(paint, run.state)} ${stateWord(paint, run.state)}`,
      clock(run.started_at),
      took(run),
      run.version,
      run.changed.join(', '),
      paint.dim(run.run_id),
    ]),
  )
  if (!json) printHowMany({ ...found, offset, shown: found.runs.length })
}
