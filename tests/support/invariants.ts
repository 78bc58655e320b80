// What must be true of a home that no process serves, whatever happened to the previous process, and which of its
// contents must not change when the next process continues it.

import { expect } from 'bun:test'
import { chmodSync, existsSync, lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FileRecord } from '../../lib/agent/agent-context.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { openHome } from './home-rows.ts'

/** What has been recorded permanently, by its place. */
export interface Recorded {
  /**
   * The ended phases of every attempt of a run. A phase that waits for its next attempt still has the result of the
   * last one.
   */
  phases: Map<string, string>
  /** The complete log lines, by run. */
  logs: Map<string, string>
}

interface Phase {
  run_id: string
  root_id: string
  position: number
  run_attempt: number
  state: string
  reason: string | null
  text: string | null
  data: string | null
  files: string | null
  completed_at: number | null
}

/** Rules in addition to those of the engine itself. Each query returns the rows that break its rule. */
const RULES: Record<string, string> = {
  'states are those that are known': `
    SELECT id FROM runs WHERE state NOT IN ('queued', 'running', 'awaiting_input', 'completed', 'failed', 'cancelled')
    UNION ALL SELECT run_id FROM phases
      WHERE state NOT IN ('pending', 'running', 'awaiting_input', 'completed', 'failed', 'skipped', 'cancelled')`,
  'the runs above a run are there': `
    SELECT id FROM runs WHERE root_id NOT IN (SELECT id FROM runs) OR parent_id NOT IN (SELECT id FROM runs)`,
  'phases are numbered without a gap': `
    SELECT run_id FROM phases GROUP BY run_id HAVING count(*) <> max(position) + 1`,
  'items are numbered without a gap, and no two have one key': `
    SELECT run_id FROM items GROUP BY run_id, position HAVING count(*) <> max(item) + 1 OR count(*) <> count(DISTINCT key)`,
  'what runs or waits for a person was begun': `
    SELECT run_id FROM phases WHERE state IN ('running', 'awaiting_input') AND (attempt < 1 OR started_at IS NULL)`,
  'a phase that waits for its next attempt knows when that is due': `
    SELECT run_id FROM phases WHERE state = 'pending' AND reason = 'retry' AND due_at IS NULL`,
  'what failed says why': `
    SELECT id FROM runs WHERE state = 'failed' AND error IS NULL
    UNION ALL SELECT run_id FROM phases WHERE state = 'failed' AND error IS NULL`,
  'a completed run has outputs, and no other has': `
    SELECT id FROM runs WHERE (state = 'completed') <> (outputs IS NOT NULL)`,
  'no two files of a phase have one place, and each lies in the folder of a phase': `
    SELECT run_id FROM phases, json_each(phases.files) AS file
    GROUP BY run_id, position, file.value ->> 'path' HAVING count(*) > 1 OR file.value ->> 'path' NOT LIKE 'files/%/%'`,
  'a team phase is completed by its sub-run, or by a person': `
    SELECT phases.run_id FROM phases JOIN runs ON parent_id = phases.run_id AND parent_position = phases.position
    WHERE phases.state = 'completed' AND runs.run_name IS NULL AND runs.state <> 'completed'
      AND runs.item = coalesce((SELECT max(turn) FROM turns
        WHERE turns.run_id = phases.run_id AND turns.position = phases.position), 1) - 1
      AND NOT EXISTS (SELECT 1 FROM reviews WHERE reviews.run_id = phases.run_id AND reviews.position = phases.position
        AND reviews.attempt = phases.attempt AND reviews.decision = 'complete')`,
  'what is recorded of a phase is of a phase': `
    SELECT run_id FROM (SELECT run_id, position FROM receipts UNION ALL SELECT run_id, position FROM reviews
      UNION ALL SELECT run_id, position FROM items) AS kept
    WHERE NOT EXISTS (SELECT 1 FROM phases WHERE phases.run_id = kept.run_id AND phases.position = kept.position)`,
}

/** Small files may exist only in the database until the next start restores them. */
const SMALL_BYTES = 256 * 1024

/**
 * Asserts that the run database is intact and keeps every rule, and that files and logs match it. `settled` says that a
 * process has served the home since the kill and exited by itself, so that every file must be in its place. The files
 * and logs of the top runs in `going` are being deleted.
 */
export function checkInvariants(home: string, settled = false, going: ReadonlySet<string> = new Set()): Recorded {
  const db = openHome(home)
  try {
    expect(db.query('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
    expect(brokenInvariants(db)).toEqual([])
    for (const [rule, sql] of Object.entries(RULES)) expect([rule, db.query(sql).all()]).toEqual([rule, []])
    const runs = db
      .query<{ id: string; root_id: string }, []>('SELECT id, root_id FROM runs')
      .all()
      .filter(run => !going.has(run.root_id))
    const phases = db
      .query<Phase, []>(
        `SELECT phases.*, root_id, runs.attempt AS run_attempt FROM phases JOIN runs ON runs.id = run_id
         WHERE phases.completed_at IS NOT NULL AND runs.state <> 'queued'`,
      )
      .all()
      .filter(phase => !going.has(phase.root_id))
    const isKept = db.query('SELECT 1 FROM small_files WHERE run_id = ? AND path = ?')
    for (const { run_id, files } of phases) {
      for (const file of JSON.parse(files ?? '[]') as FileRecord[]) {
        const place = join(home, 'runs', run_id, file.path)
        if (!settled && file.bytes <= SMALL_BYTES) {
          if (!existsSync(place)) continue
          // A kill cuts a file short that is written behind its row, from which the next start makes it again.
          if (lstatSync(place).size < file.bytes && isKept.get(run_id, file.path)) continue
        }
        expect([place, ...contentOf(place)]).toEqual([place, file.bytes, file.sha256])
      }
    }
    return {
      phases: new Map(
        phases.map(({ run_id, root_id: _, position, run_attempt, ...ended }) => [
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

/** The size and hash of a recorded file, which must be a regular file. A command may have made it unreadable since. */
function contentOf(place: string): [bytes: number | string, sha256: string] {
  const found = lstatSync(place, { throwIfNoEntry: false })
  if (!found?.isFile()) return [found ? 'no regular file' : 'no file', '']
  const readable = (found.mode & 0o400) !== 0
  if (!readable) chmodSync(place, 0o600)
  const bytes = readFileSync(place)
  if (!readable) chmodSync(place, found.mode & 0o777)
  return [bytes.length, new Bun.CryptoHasher('sha256').update(bytes).digest('hex')]
}

/** Asserts that everything in `before` is unchanged: the results of ended phases, and every byte of the logs. */
export function checkKept(before: Recorded, after: Recorded): void {
  for (const [place, result] of before.phases) {
    // A resume opens a run again as another attempt, whose results may differ from the earlier ones.
    if (after.phases.has(place)) expect([place, after.phases.get(place)]).toEqual([place, result])
  }
  for (const [run, text] of before.logs) {
    // A missing run was deleted.
    if (after.logs.has(run)) expect(after.logs.get(run)!.slice(0, text.length)).toBe(text)
  }
}

/** The log up to its last complete line. Its lines must be numbered from 1 without a gap. */
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
