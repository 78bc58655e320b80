// What must be true of the firings of a home, whatever happened to its processes.

import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { join } from 'node:path'
import { slotsOf } from '../../lib/triggers/schedule/slots.ts'

interface TriggerRow {
  id: string
  name: string
  spec: string
  cursor: number
  created_at: number
}

interface FiringRow {
  at: number
  until: number | null
  count: number
  state: string
  run_id: string | null
}

/**
 * Asserts that each slot that a schedule has looked at has one firing, each `started` one has one run of its own, no run
 * is without a firing, and none began before its time. Returns how many firings there are of each state.
 */
export function checkFirings(home: string): Record<string, number> {
  using db = new Database(join(home, 'daemon.db'), { readonly: true })
  const rows = <T>(sql: string, ...values: string[]) => db.query<T, string[]>(sql).all(...values)
  expect(rows('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  for (const { id, name, spec, cursor, created_at } of rows<TriggerRow>('SELECT * FROM triggers')) {
    const { own: schedule } = JSON.parse(spec)
    const firings = rows<FiringRow>('SELECT * FROM firings WHERE trigger_id = ? AND manual IS NULL', id)
    const seen: number[] = []
    for (const { at, until, count } of firings) {
      const slots = until === null ? [at] : slotsOf(schedule, at - 1, until, Infinity)
      expect([name, at, slots.length]).toEqual([name, at, count])
      seen.push(...slots)
    }
    const due = slotsOf(schedule, created_at, cursor, Infinity)
    // With a jitter a slot may come before the adding, and be due after it.
    const since = seen.filter(slot => slot > created_at || schedule.jitter === undefined)
    expect([name, since.sort((one, other) => one - other)]).toEqual([name, due])
  }
  const broken = (rule: string, sql: string) => expect([rule, rows(sql)]).toEqual([rule, []])
  broken(
    'what started has a run, and nothing else has',
    `SELECT firings.id FROM firings LEFT JOIN runs ON runs.id = run_id
     WHERE (firings.state = 'started') <> (runs.id IS NOT NULL) OR (firings.state = 'started') <> (run_id IS NOT NULL)`,
  )
  broken(
    'each has a run of its own',
    'SELECT run_id FROM firings GROUP BY run_id HAVING run_id IS NOT NULL AND count(*) > 1',
  )
  broken(
    'each run has a firing',
    'SELECT id FROM runs WHERE parent_id IS NULL AND id NOT IN (SELECT run_id FROM firings WHERE run_id IS NOT NULL)',
  )
  broken(
    'nothing begins before its time',
    `SELECT firings.id FROM firings LEFT JOIN runs ON runs.id = run_id
     WHERE seen_at < at OR runs.created_at < at`,
  )
  const states: Record<string, number> = {}
  for (const { state, n } of rows<{ state: string; n: number }>(
    'SELECT state, count(*) AS n FROM firings GROUP BY state',
  )) {
    states[state] = n
  }
  return states
}
