// A column of the hub is never forgotten: whoever writes the rows of a table gives each column a value, or names it as
// left out, and what daemons report has a column. tsc decides that, so most of these are types. And daemons set no
// columns but those that they are to report.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core'
import { batchWriter } from '../../db/hub/batch-writer.ts'
import type * as statements from '../../lib/hub/reports/report-statements.ts'
import type { SyncChange } from '../../lib/wire/records/changes.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { phaseChange, reviewChange, runChange } from '../support/sync.ts'

let hub: TestHub

beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

const grown = sqliteTable('grown', { id: text().primaryKey(), count: integer().notNull(), added: text() })

type RowOf<Write extends (...given: never[]) => unknown> = Parameters<Write>[2] extends readonly (infer Row)[]
  ? Row
  : never

test('a column that nobody gives a value or leaves out by name does not compile', () => {
  const all = batchWriter(() => grown, { key: ['id'] })
  const some = batchWriter(() => grown, { left: ['added'] })
  const whole: RowOf<typeof all> = { id: 'a', count: 1, added: null }
  const fewer: RowOf<typeof some> = { id: 'a', count: 1 }
  // @ts-expect-error: nobody has said what the added column gets
  const forgotten: RowOf<typeof all> = { id: 'a', count: 1 }
  // @ts-expect-error: the table has no such column
  batchWriter(() => grown, { left: ['nothing'] })
  expect(Object.keys(whole)).toContain('added')
  expect([fewer, forgotten]).toEqual([whole, whole].map(({ added: _, ...row }) => row))
})

/** `true` where what daemons report with a change all has a column, besides `Elsewhere`. */
type Stored<Reported, Row, Elsewhere extends string = never> = [
  Exclude<keyof Reported, keyof Row | Elsewhere>,
] extends [never]
  ? true
  : false

test('what a daemon reports and no column takes does not compile', () => {
  const stored: [
    Stored<SyncChange<'run'>['run'], statements.RunReport, 'log' | 'why'>,
    Stored<SyncChange<'phase'>['phase'], RowOf<typeof statements.putPhases>>,
    Stored<SyncChange<'log'>['lines'][number], RowOf<typeof statements.putLogs>>,
    Stored<SyncChange<'event'>['event'], RowOf<typeof statements.putEvents>>,
    Stored<SyncChange<'artifact'>['artifact'], RowOf<typeof statements.putArtifacts>>,
    Stored<SyncChange<'receipt'>['receipt'], RowOf<typeof statements.putReceipts>, 'external_id' | 'external_url'>,
    Stored<SyncChange<'review'>['review'], RowOf<typeof statements.putReviews>>,
  ] = [true, true, true, true, true, true, true]
  // @ts-expect-error: the log and the explanation of a run have no column
  const unstored: Stored<SyncChange<'run'>['run'], statements.RunReport> = true
  expect([...stored, unstored]).not.toContain(false)
})

test('a daemon sets no column that only the hub fills', async () => {
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'd' })
  const [run_id, review_id] = [crypto.randomUUID(), crypto.randomUUID()]
  const others = { realm_id: 'r', daemon_id: 'd', attempt: 7, job_id: 'j', concurrency_key: 'k', rev: 9, id: review_id }
  const log = { log_lines: 9, log_last: 9, log_missing: [{ from: 1, to: 2 }], log_ended: true, log_kept: true }
  const foreign = { ...others, ...log, log_bytes: 9, log_cut: true, beside: { inputs: 9 }, deliveries: [] }
  const phase = phaseChange(run_id)
  const changes = [
    runChange(run_id, foreign),
    { ...phase, phase: { ...foreign, run_id: review_id, ...phase.phase } },
    reviewChange(run_id, review_id, { ...foreign, run_id: review_id }),
  ].map((change, at) => ({ ...change, seq: at + 1 }))
  const body = { daemon_id, epoch: crypto.randomUUID(), from_seq: 1, changes }
  expect((await hub.ok(token, 'runs/sync', body)).rejected).toEqual([])
  const { db, runs, phases, reviews } = hub.store
  expect(await db.select().from(runs).where(eq(runs.run_id, run_id))).toMatchObject([
    {
      ...{ realm_id: hub.realm, daemon_id, attempt: 1, job_id: null, concurrency_key: null, rev: 1, beside: null },
      ...{
        log_lines: null,
        log_last: 0,
        log_missing: null,
        log_ended: null,
        log_kept: false,
        log_bytes: 0,
        log_cut: false,
      },
    },
  ])
  expect(await db.select().from(phases).where(eq(phases.run_id, run_id))).toMatchObject([{ attempt: 1, beside: null }])
  const [review] = await db.select().from(reviews).where(eq(reviews.id, review_id))
  expect(review).toMatchObject({ run_id, realm_id: hub.realm, beside: null })
})
