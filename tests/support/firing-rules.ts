// What must be true of the firings of a home, or of a realm, whatever happened to its processes.

import { Database } from 'bun:sqlite'
import { expect } from 'bun:test'
import { join } from 'node:path'
import { slotsOf } from '../../lib/triggers/schedule/slots.ts'
import type { ScheduleSpec } from '../../lib/triggers/schedule/spec.ts'

export interface FiringRows {
  triggers: { id: string; name: string; spec: string; cursor: number; created_at: number }[]
  firings: {
    id: string
    trigger_id: string
    at: number
    until: number | null
    seen_at: number
    count: number
    state: string
    manual: string | null
    run_id: string | null
  }[]
  /** The top runs. `created_at`: where it is by the clock of the slots. */
  runs: { id: string; created_at: number | null }[]
}

export function checkFirings(home: string): Record<string, number> {
  using db = new Database(join(home, 'daemon.db'), { readonly: true })
  const rows = <T>(sql: string) => db.query<T, []>(sql).all()
  expect(rows('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
  return checkFiringRows({
    triggers: rows('SELECT * FROM triggers'),
    firings: rows('SELECT * FROM firings'),
    runs: rows('SELECT id, created_at FROM runs WHERE parent_id IS NULL'),
  })
}

/**
 * Asserts that each slot that a schedule has looked at has one firing, each `started` one has one run of its own, no run
 * is without a firing, and none began before its time. Returns how many firings there are of each state.
 */
export function checkFiringRows({ triggers, firings, runs }: FiringRows): Record<string, number> {
  const ofTrigger = Map.groupBy(firings, ({ trigger_id }) => trigger_id)
  for (const { id, name, spec, cursor, created_at } of triggers) {
    const { own }: { own: ScheduleSpec } = JSON.parse(spec)
    const seen = (ofTrigger.get(id) ?? []).flatMap(({ at, until, count, manual }) => {
      if (manual !== null) return []
      const slots = until === null ? [at] : slotsOf(own, at - 1, until, Infinity)
      expect([name, at, slots.length]).toEqual([name, at, count])
      return slots
    })
    const due = slotsOf(own, created_at, cursor, Infinity)
    // With a jitter a slot may come before the adding, and be due after it.
    const since = seen.filter(slot => slot > created_at || own.jitter === undefined)
    expect([name, since.sort((one, other) => one - other)]).toEqual([name, due])
  }
  const created = new Map(runs.map(({ id, created_at }) => [id, created_at]))
  const started = firings.flatMap(({ state, run_id }) => (state === 'started' ? [run_id] : []))
  const others = firings.filter(({ state, run_id }) => state !== 'started' && run_id !== null)
  expect(['only what started has a run', others]).toEqual(['only what started has a run', []])
  expect(['each has a run of its own', new Set(started).size]).toEqual(['each has a run of its own', started.length])
  const those = ['what started has a run, and each run a firing', [...created.keys()].sort()]
  expect(['what started has a run, and each run a firing', started.sort()]).toEqual(those)
  const early = firings.filter(
    ({ at, seen_at, run_id }) => seen_at < at || (run_id !== null && (created.get(run_id) ?? at) < at),
  )
  expect(['nothing begins before its time', early]).toEqual(['nothing begins before its time', []])
  return Object.fromEntries([...Map.groupBy(firings, ({ state }) => state)].map(([state, all]) => [state, all.length]))
}
