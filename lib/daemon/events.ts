// The events of a run and of all runs below it: first the present state, then every change until the run has ended and
// its listeners have been told, because they may write to its log. Changes that pile up behind a slow reader are merged: it gets the newest state of each run and phase, and every log
// line.

import type { Engine, Notice } from '../run/engine.ts'
import { phaseRecord, type RunRow, readLines, runRecord } from '../run/engine.ts'
import type { RunEvent } from '../wire/run-records.ts'

const PAGE = 200

/** Log lines reach followers with a short delay, so lines that are at most this old are sent again. */
const LATE_MS = 5_000

/**
 * Events of `runId` and all runs below it; `since` (epoch milliseconds, 0: from now) asks for the log lines since then.
 * Ends after `end`, or when `signal` fires. Throws `not_found`.
 */
export async function* runEvents(
  engine: Engine,
  runId: string,
  signal: AbortSignal,
  since = 0,
): AsyncGenerator<RunEvent> {
  const { tree_key: root, root_id } = rowOf(engine, engine.record(runId).run_id)
  const changed = new Map<string, Notice>()
  let wake = () => {}
  const unfollow = engine.follow(notice => {
    if (notice.rootId !== root_id) return
    const key = notice.kind === 'log' ? `log:${changed.size}` : `${notice.kind}:${notice.runId}:${notice.position}`
    changed.set(key, notice)
    wake()
  })
  const stop = () => wake()
  signal.addEventListener('abort', stop)
  try {
    yield* standing(engine, runId, root, root_id)
    if (since > 0) yield* saidSince(engine, root, root_id, since - LATE_MS)
    while (!signal.aborted) {
      const notices = [...changed.values()]
      changed.clear()
      for (const notice of notices) {
        const row = engine.store.runs.get(notice.runId)
        if (row?.tree_key.startsWith(root)) yield* eventsOf(engine, row, notice)
      }
      // The run was deleted meanwhile, so there is no end to report.
      if (!engine.store.runs.get(runId)) return
      const record = engine.record(runId)
      const telling = record.completed_at === null ? null : engine.telling(root_id, root)
      // Lines that were written in this turn are passed on now.
      if (record.completed_at !== null && !telling) engine.logs.flush()
      if (record.completed_at !== null && !telling && changed.size === 0) return yield { event: 'end', data: record }
      if (changed.size === 0) {
        void telling?.finally(() => wake())
        await new Promise<void>(resolve => {
          wake = resolve
          if (signal.aborted || changed.size > 0) resolve()
        })
      }
    }
  } finally {
    unfollow()
    signal.removeEventListener('abort', stop)
  }
}

/** Every run of the tree below `root`, with the phases of the first run and of runs that have not ended. */
function* standing(engine: Engine, runId: string, root: string, rootId: string): Generator<RunEvent> {
  const top = rowOf(engine, runId)
  yield* withPhases(engine, top)
  for (let after = root; ; ) {
    const rows = engine.store.runLists.below(rootId, root, after, PAGE)
    for (const row of rows) {
      if (row.completed_at === null) yield* withPhases(engine, row)
      else yield { event: 'run', data: runRecord(row) }
    }
    if (rows.length < PAGE) return
    after = rows.at(-1)!.tree_key
  }
}

/** The log lines of the runs that were open at `since` or later. */
async function* saidSince(engine: Engine, root: string, rootId: string, since: number): AsyncGenerator<RunEvent> {
  engine.logs.flush()
  for (const id of engine.store.runLists.openSince(rootId, root, since)) {
    for (let afterSeq = 0; ; ) {
      const { lines, next } = await readLines(engine.stateDir(id), { afterSeq, limit: PAGE })
      const fresh = lines.filter(line => line.at >= since)
      if (fresh.length > 0) yield { event: 'log', data: { run_id: id, lines: fresh } }
      if (lines.length < PAGE) break
      afterSeq = next
    }
  }
}

function* withPhases(engine: Engine, row: RunRow): Generator<RunEvent> {
  yield { event: 'run', data: runRecord(row) }
  const count = engine.bundle(row.bundle_id).team(row.team_key).phases.length
  for (let position = 0; position < count; position++) yield phaseEvent(engine, row, position)
}

function* eventsOf(engine: Engine, row: RunRow, { kind, position, lines }: Notice): Generator<RunEvent> {
  if (kind === 'log') yield { event: 'log', data: { run_id: row.id, lines: [...(lines ?? [])] } }
  else if (kind === 'run' || position === null) yield { event: 'run', data: runRecord(row) }
  else yield phaseEvent(engine, row, position)
}

function phaseEvent(engine: Engine, row: RunRow, position: number): RunEvent {
  const { phases } = engine.bundle(row.bundle_id).team(row.team_key)
  const phase = engine.store.phases.get(row.id, position)!
  const { data: _, sub_runs: __, ...record } = phaseRecord({ ...phase, data: null }, phases[position]!, phases, [])
  const items = record.type === 'map' && phase.started_at !== null ? engine.store.phases.total(row.id, position) : null
  const tries = { failures: phase.failures, max_attempts: phases[position]!.retry.attempts }
  return { event: 'phase', data: { run_id: row.id, position, ...record, items, ...tries } }
}

function rowOf(engine: Engine, runId: string): RunRow {
  return engine.store.runs.get(runId)!
}
