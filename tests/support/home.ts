// Reads the contents of a home while an engine serves it: rows of the run database, phases, questions and deliveries.

import { Database, type SQLQueryBindings } from 'bun:sqlite'
import { join } from 'node:path'
import type { JsonObject } from '../../lib/json.ts'
import { until } from './bounded.ts'
import type { TestEngine } from './engine.ts'

export function rowsOf<T>(home: string, sql: string, ...values: SQLQueryBindings[]): T[] {
  const db = new Database(join(home, 'daemon.db'), { readonly: true })
  try {
    return db.query<T, SQLQueryBindings[]>(sql).all(...values)
  } finally {
    db.close()
  }
}

type Phase = ReturnType<TestEngine['engine']['phases']>['phases'][number]

export function phaseOf({ engine }: TestEngine, runId: string, name: string): Phase {
  return engine.phases(runId).phases.find(phase => phase.name === name)!
}

/** The run id of the only sub-run of a phase, or of the sub-run with this name. */
export function subRunOf(t: TestEngine, runId: string, phase: string, name?: string): string {
  return phaseOf(t, runId, phase).sub_runs.find(run => name === undefined || run.run_name === name)!.run_id
}

/** The `data` of a phase as an object. */
export function dataOf(t: TestEngine, runId: string, name: string): JsonObject {
  return phaseOf(t, runId, name).data as JsonObject
}

interface Question {
  id: string
  run_id: string
  kind: string
  reason: string
}

/** Waits until there are `count` open questions, and returns them. */
export function questions({ home }: TestEngine, count = 1): Promise<Question[]> {
  return until(() => {
    const open = rowsOf<Question>(home, "SELECT id, run_id, kind, reason FROM reviews WHERE state = 'pending'")
    return open.length >= count && open
  }, `${count} open questions`)
}

/** The deliveries of a run in their order. */
export function deliveries({ home }: TestEngine, runId: string) {
  return rowsOf<{ listener: string; event: string; state: string; error: string | null }>(
    home,
    'SELECT listener, event, state, error FROM deliveries WHERE run_id = ? ORDER BY number',
    runId,
  )
}
