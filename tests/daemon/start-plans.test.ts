// A start takes as long in a home of a million ended runs as in an empty one: its statements read no table, and of runs
// only indexes in which what has ended and is settled is not.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { serveDaemon } from '../support/served-daemon.ts'

/** What a start reads from end to end: each holds only what is open, waits or was declared. */
const SMALL = [
  'copied_trees',
  'deletions',
  'deliveries USING INDEX deliveries_open',
  'firings USING COVERING INDEX firings_waiting',
  'hook_secrets',
  'looks',
  'runs USING INDEX runs_log_open',
  'runs USING INDEX runs_open',
  'runs USING INDEX runs_open_by_state',
  'runs USING INDEX runs_unsettled',
  'tells USING INDEX tells_open',
  'triggers USING INDEX triggers_chains',
  'triggers USING INDEX triggers_declared',
  'triggers USING INDEX triggers_watches',
  'watch_claims',
  // The ends that a chain follows, a row for each state.
  'ends VIRTUAL TABLE INDEX 3:',
  // A row for each team and what starts it.
  'run_groups',
  'run_groups USING COVERING INDEX sqlite_autoindex_run_groups_1',
]

/** The statements that are prepared on any database while `work` lasts. */
async function statementsDuring<T>(work: () => Promise<T>): Promise<{ made: T; texts: Set<string> }> {
  const texts = new Set<string>()
  const { query } = Database.prototype
  Database.prototype.query = function (this: Database, text: string) {
    texts.add(text)
    return query.call(this, text)
  } as typeof query
  try {
    return { made: await work(), texts }
  } finally {
    Database.prototype.query = query
  }
}

test('a start reads no table and no index of ended runs from end to end', async () => {
  const first = await serveDaemon()
  await first.stop()
  const { made: daemon, texts } = await statementsDuring(() => serveDaemon({ home: first.home }))
  await daemon.stop()
  using db = new Database(join(first.home, 'daemon.db'), { readonly: true })
  const changes = [...texts].filter(text => /^\s*(SELECT|WITH|INSERT|UPDATE|DELETE)\b/.test(text))
  expect(changes.filter(text => /\bruns\b/.test(text)).length).toBeGreaterThan(5)
  const scans = changes.flatMap(text =>
    db
      .query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${text}`)
      .all()
      .flatMap(({ detail }) => /^SCAN (?!CONSTANT ROW|\d+-ROW VALUES CLAUSE|json_each)(.*)/.exec(detail)?.[1] ?? []),
  )
  expect([...new Set(scans)].filter(scan => !SMALL.includes(scan))).toEqual([])
})
