// The events of a run and of all runs below it: first the present state, then every change until the run has ended and
// its listeners have its events, because they may write to its log. For a slow reader, changes are merged: it
// gets the newest state of each run and phase, and every log line, which is read from the file if many wait.

import type { Engine, Notice } from '../../run/engine.ts'
import { phaseRecord, type RunHead, type RunRow, readLines, runHead, START } from '../../run/engine.ts'
import { cut, VALUE_BYTES } from '../../wire/budget.ts'
import type { LogLine, RunEvent } from '../../wire/records/run-records.ts'

const PAGE = 200
/** The log lines of one event. */
const PIECE = { limit: 1_000, maxBytes: 256 * 1024 }
/** What is held of the log lines of a run that a slow reader has not taken, in characters. */
const HELD_MOST = 256 * 1024

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
  for await (const [event] of datedEvents(engine, runId, signal, since)) yield event
}

/**
 * The same, each with the time (epoch milliseconds) up to which all was told before it: whoever has heard no more than it
 * asks for what came since then.
 */
export async function* datedEvents(
  engine: Engine,
  runId: string,
  signal: AbortSignal,
  since: number,
): AsyncGenerator<[event: RunEvent, told: number]> {
  const { tree_key: root, root_id } = rowOf(engine, engine.record(runId).run_id)
  const changed = new Map<string, Notice | WaitingLines>()
  /** When the first of the changes came that wait. */
  let waitsSince = 0
  let wake = () => {}
  const unfollow = engine.follow(notice => {
    if (notice.rootId !== root_id) return
    if (changed.size === 0) waitsSince = Date.now()
    const key = `${notice.kind}:${notice.runId}:${notice.position}`
    if (notice.kind !== 'log') changed.set(key, notice)
    else if (notice.lines?.length) changed.set(key, withMoreLines(changed.get(key) as WaitingLines | undefined, notice))
    wake()
  })
  const stop = () => wake()
  signal.addEventListener('abort', stop)
  try {
    const begun = since > 0 ? since : Date.now()
    for (const event of currentStates(engine, runId, root, root_id)) yield [event, begun]
    if (since > 0) for await (const event of linesSince(engine, root, root_id, since - LATE_MS)) yield [event, begun]
    while (!signal.aborted) {
      const notices = [...changed.values()]
      const told = notices.length > 0 ? waitsSince : Date.now()
      changed.clear()
      for (const notice of notices) {
        const row = engine.store.runs.get(notice.runId)
        if (!row?.tree_key.startsWith(root)) continue
        if ('first' in notice) for await (const event of linesOf(engine, row.id, notice)) yield [event, told]
        else for (const event of eventsOf(engine, row, notice)) yield [event, told]
      }
      // The run was deleted meanwhile, so there is no end to report.
      if (!engine.store.runs.get(runId)) return
      const record = engine.record(runId)
      const sending = record.completed_at === null ? null : engine.untilSent(root_id, root)
      // Lines that were written in this turn are passed on now.
      if (record.completed_at !== null && !sending) engine.logs.flush()
      if (record.completed_at !== null && !sending && changed.size === 0)
        return yield [{ event: 'end', data: runHead(rowOf(engine, runId)) }, told]
      if (changed.size === 0) {
        void sending?.finally(() => wake())
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
function* currentStates(engine: Engine, runId: string, root: string, rootId: string): Generator<RunEvent> {
  const top = rowOf(engine, runId)
  yield* withPhases(engine, top)
  for (let after = root; ; ) {
    const rows = engine.store.runLists.below(rootId, root, after, PAGE)
    for (const row of rows) {
      if (row.completed_at === null) yield* withPhases(engine, row)
      else yield { event: 'run', data: runHead(row) }
    }
    if (rows.length < PAGE) return
    after = rows.at(-1)!.tree_key
  }
}

/** The log lines of the runs that were open at `since` or later. */
async function* linesSince(engine: Engine, root: string, rootId: string, since: number): AsyncGenerator<RunEvent> {
  engine.logs.flush()
  for (const id of engine.store.runLists.openSince(rootId, root, since)) {
    for (let afterSeq = 0; ; ) {
      const { lines, next, isLast } = await readLines(engine.stateDir(id), { ...PIECE, afterSeq })
      const fresh = lines.filter(line => line.at >= since)
      if (fresh.length > 0) yield { event: 'log', data: { run_id: id, lines: fresh } }
      if (isLast) break
      afterSeq = next
    }
  }
}

function* withPhases(engine: Engine, row: RunRow | RunHead): Generator<RunEvent> {
  yield { event: 'run', data: runHead(row) }
  const count = engine.bundle(row.bundle_id).team(row.team_key).phases.length
  for (let position = 0; position < count; position++) yield phaseEvent(engine, row, position)
}

/** Log lines of a run that wait. */
interface WaitingLines {
  runId: string
  /** Null when there are too many to be held. */
  lines: readonly LogLine[] | null
  /** Of their texts. */
  length: number
  /** The numbers of the first and the last one. */
  first: number
  last: number
}

function withMoreLines(before: WaitingLines | undefined, { runId, lines: more = [] }: Notice): WaitingLines {
  const length = more.reduce((sum, { text }) => sum + text.length, before?.length ?? 0)
  const first = before?.first ?? more[0]!.seq
  const held = before === undefined ? more : before.lines && [...before.lines, ...more]
  return { runId, lines: length > HELD_MOST ? null : held, length, first, last: more.at(-1)!.seq }
}

async function* linesOf(
  engine: Engine,
  run_id: RunRow['id'],
  { lines, first, last }: WaitingLines,
): AsyncGenerator<RunEvent> {
  if (lines) return yield { event: 'log', data: { run_id, lines: [...lines] } }
  for (let afterSeq = first - 1; afterSeq < last; ) {
    const page = await readLines(engine.stateDir(run_id), { ...PIECE, afterSeq })
    const wanted = page.lines.filter(({ seq }) => seq <= last)
    if (wanted.length === 0) return
    yield { event: 'log', data: { run_id, lines: wanted } }
    afterSeq = wanted.at(-1)!.seq
  }
}

function* eventsOf(engine: Engine, row: RunRow, { kind, position }: Notice): Generator<RunEvent> {
  if (kind === 'run' || position === null || position === START) yield { event: 'run', data: runHead(row) }
  else yield phaseEvent(engine, row, position)
}

function phaseEvent(engine: Engine, row: RunRow | RunHead, position: number): RunEvent {
  const { phases } = engine.bundle(row.bundle_id).team(row.team_key)
  const phase = engine.store.phases.get(row.id, position)!
  const withoutData = { ...phase, data: null, text: phase.text && cut(phase.text, VALUE_BYTES) }
  const { data: _, ...record } = { ...phaseRecord(engine.store, withoutData, phases[position]!, phases), waiting: null }
  const items = record.type === 'map' && phase.started_at !== null ? engine.store.phases.total(row.id, position) : null
  const tries = { failures: phase.failures, max_attempts: phases[position]!.retry.attempts }
  return { event: 'phase', data: { run_id: row.id, position, ...record, items, ...tries } }
}

function rowOf(engine: Engine, runId: string): RunRow {
  return engine.store.runs.get(runId)!
}
