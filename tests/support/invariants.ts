// What must hold of a home that nobody serves, whatever happened to the process that did; and what of it may not change
// any more once the next one has continued it.

import { expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../db/open.ts'
import type { FileRecord } from '../../lib/agent/define.ts'
import { rootOf, treeEntries } from '../../lib/run/engine.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'

/** What has been recorded for good, by its place. */
export interface Recorded {
  /** Ended phases of every attempt of a run; one that waits for its next attempt still shows the last. */
  phases: Map<string, string>
  /** Whole lines, by run. */
  logs: Map<string, string>
}

interface Phase {
  run_id: string
  position: number
  run_attempt: number
  state: string
  reason: string | null
  text: string | null
  data: string | null
  files: string | null
  completed_at: number | null
}

/** Asserts that the run database is whole and keeps every rule, and that files and logs are what it says they are. */
export function checkInvariants(home: string): Recorded {
  const db = openDatabase(join(home, 'daemon.db'))
  try {
    expect(db.query('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    expect(brokenInvariants(db)).toEqual([])
    const runs = db.query<{ id: string }, []>('SELECT id FROM runs').all()
    const trees = new Map<string, string[]>()
    for (const { id } of runs) {
      const root = rootOf(db, id)
      if (!trees.has(root))
        trees.set(
          root,
          [...treeEntries(db, root)].map(entry => entry.run_id),
        )
      expect(trees.get(root)).toContain(id)
    }
    const phases = db
      .query<Phase, []>(
        `SELECT phases.*, runs.attempt AS run_attempt FROM phases JOIN runs ON runs.id = run_id
         WHERE phases.completed_at IS NOT NULL AND runs.state <> 'queued'`,
      )
      .all()
    for (const { run_id, files } of phases) {
      for (const file of JSON.parse(files ?? '[]') as FileRecord[]) {
        const bytes = readFileSync(join(home, 'runs', run_id, file.path))
        expect([file.path, bytes.length, new Bun.CryptoHasher('sha256').update(bytes).digest('hex')]).toEqual([
          file.path,
          file.bytes,
          file.sha256,
        ])
      }
    }
    return {
      phases: new Map(
        phases.map(({ run_id, position, run_attempt, ...ended }) => [
          `${run_id} ${position} ${run_attempt}`,
          JSON.stringify(ended),
        ]),
      ),
      logs: new Map(runs.map(({ id }) => [id, wholeLines(join(home, 'runs', id, 'log.jsonl'))])),
    }
  } finally {
    db.close()
  }
}

/** Asserts that what `before` held is unchanged: results of ended phases, and every byte of the logs. */
export function checkKept(before: Recorded, after: Recorded): void {
  for (const [place, result] of before.phases) {
    // A resume opens a run again as another attempt; then its earlier results are another matter.
    if (after.phases.has(place)) expect([place, after.phases.get(place)]).toEqual([place, result])
  }
  for (const [run, text] of before.logs) expect((after.logs.get(run) ?? '').slice(0, text.length)).toBe(text)
}

/** The log up to its last line end. Its lines are numbered from 1 without a gap. */
function wholeLines(file: string): string {
  if (!existsSync(file)) return ''
  const text = readFileSync(file, 'utf8')
  const whole = text.slice(0, text.lastIndexOf('\n') + 1)
  const numbers = whole
    .split('\n')
    .slice(0, -1)
    .map(line => JSON.parse(line).seq)
  expect(numbers).toEqual(numbers.map((_, index) => index + 1))
  return whole
}
