// Statements that are built once, and how many of them the calls of a daemon take: as many for many runs as for a few.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq, inArray, sql } from 'drizzle-orm'
import { batchWriter } from '../../db/hub/batch-writer.ts'
import { isAmong, prepared, type Slot } from '../../db/hub/prepared.ts'
import type { Db } from '../../db/hub/store.ts'
import type { Hub } from '../../lib/hub/core/hub.ts'
import { type ClaimingDaemon, claimableJobs, claimJobs } from '../../lib/hub/queue/claims.ts'
import { enqueueJob, type JobAnswer, recordAnswers } from '../../lib/hub/queue/jobs.ts'
import { giveUpJobs } from '../../lib/hub/queue/undeliverable-jobs.ts'
import { applyBatch } from '../../lib/hub/reports/sync.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { statementsOf } from '../support/statements.ts'
import { FILE, phaseChange, runChange } from '../support/sync.ts'

let served: TestHub
let hub: Hub
let token: string
let daemon_id: string

beforeAll(async () => {
  served = await startTestHub({ idle: true })
  await served.ok(served.admin, 'realms/add_team', { realm_id: served.realm, team: '@admin/t' })
  token = (await served.realmToken(served.admin, served.realm)).token
  daemon_id = (await served.ok(token, 'daemons/register', { name: 'd' })).daemon_id
  hub = createHub({ store: served.store, log: createLog({ write: () => {} }), home: folder() })
})
afterAll(() => served.stop())

const ids = (count: number): string[] => Array.from({ length: count }, () => crypto.randomUUID())

const runRow = (run_id: string, more: object = {}) => ({
  ...{ run_id, realm_id: served.realm, root_run_id: run_id, call_path: ['t'], call_depth: 0, tree_key: '', team: 't' },
  ...{
    state: 'running',
    inputs: { a: '\ud83d\ude00' },
    outputs: null,
    attempt: 1,
    created_at: 1,
    log_ended: null,
    log_kept: false,
  },
  ...more,
})

const putRuns = batchWriter(({ runs }) => runs, {
  left: [
    ...([
      'daemon_id',
      'job_id',
      'run_name',
      'environment',
      'parent_run_id',
      'parent_phase',
      'version',
      'reason',
      'error',
    ] as const),
    ...([
      'deliveries',
      'concurrency_key',
      'workspace',
      'started_at',
      'completed_at',
      'lived_ms',
      'tolerated',
      'kept_since',
      'rev',
      'beside',
    ] as const),
    ...(['log_lines', 'log_last', 'log_missing', 'log_bytes', 'log_cut'] as const),
    ...(['started_by', 'starter_kind', 'starter_name'] as const),
  ],
  key: ['run_id'],
  keeps: [
    ...(['realm_id', 'root_run_id', 'call_path', 'call_depth', 'tree_key', 'team'] as const),
    ...(['inputs', 'attempt', 'created_at'] as const),
  ],
  keepsForNull: ['outputs'],
})

const statesOf = prepared((store, db, slot: Slot<'ids'>) =>
  db
    .select()
    .from(store.runs)
    .where(isAmong(store, store.runs.run_id, slot('ids'))),
)

const read = async (db: Db, some: readonly string[]) => statesOf(served.store, db, { ids: JSON.stringify(some) })

test('rows are written however many they are, and those that exist get only what they are to get', async () => {
  const { store } = served
  for (const count of [0, 1, 5, 300]) {
    const some = ids(count)
    await store.write(tx =>
      putRuns(
        store,
        tx,
        some.map(id => runRow(id, { log_kept: false })),
      ),
    )
    const again = some.map(id =>
      runRow(id, { team: 'other', state: 'failed', outputs: { b: 1 }, log_ended: true, log_kept: true }),
    )
    await store.write(tx => putRuns(store, tx, again))
    await store.write(tx =>
      putRuns(
        store,
        tx,
        some.map(id => runRow(id, { state: 'completed', log_kept: true })),
      ),
    )
    const rows = await read(store.db, some)
    expect(rows).toHaveLength(count)
    for (const row of rows) {
      expect(row).toMatchObject({ team: 't', inputs: { a: '\ud83d\ude00' }, state: 'completed', outputs: { b: 1 } })
      expect(row).toMatchObject({ log_ended: null, log_kept: true })
    }
    const nulls = await store.db
      .select({ run_id: store.runs.run_id, error: store.runs.error })
      .from(store.runs)
      .where(inArray(store.runs.run_id, some.length > 0 ? some : ['none']))
    expect(nulls.every(({ error }) => error === null)).toBe(true)
  }
})

test('a kept statement belongs to its transaction: what was undone was never written', async () => {
  const { store } = served
  const [kept, lost] = ids(2) as [string, string]
  await store.write(tx => putRuns(store, tx, [runRow(kept)]))
  const undone = store.write(async tx => {
    await putRuns(store, tx, [runRow(lost), runRow(kept, { state: 'failed' })])
    expect((await read(tx, [kept, lost])).map(({ state }) => state).sort()).toEqual(['failed', 'running'])
    throw new Error('undone')
  })
  expect(await undone.catch((error: Error) => error.message)).toBe('undone')
  expect(await read(store.db, [kept, lost])).toMatchObject([{ run_id: kept, state: 'running' }])
  // The statements are of use afterwards, in another transaction and by several at once.
  await Promise.all([store.write(tx => putRuns(store, tx, [runRow(lost)])), read(store.db, [kept])])
  expect(await read(store.db, [lost])).toHaveLength(1)
})

/** The number of statements of `work`, which reads outside of the transaction too. */
async function statements(tx: Db, work: () => Promise<unknown>): Promise<number> {
  let within: string[] = []
  const outside = await statementsOf(served.store.db, async () => {
    within = await statementsOf(tx, work)
  })
  return within.length + outside.length
}

/** Rows are written by up to four sizes of statement for each table, so a hundred times the rows take some more. */
const SOME = 30

test('a batch of many runs takes about as many statements as one of a few', async () => {
  const epoch = crypto.randomUUID()
  let seq = 0
  const counts: number[] = []
  for (const count of [3, 300]) {
    const done = { state: 'completed', completed_at: 2_000 }
    const runs = ids(count).flatMap(id => [runChange(id), phaseChange(id, []), runChange(id, done)])
    const changes = runs.map((change, at) => ({ ...change, seq: seq + at + 1 }))
    await served.store.write(async tx => {
      const batch = { epoch, from_seq: seq + 1, changes }
      counts.push(
        await statements(tx, async () =>
          expect((await applyBatch(hub, tx, { id: daemon_id, realm_id: served.realm }, batch)).rejected).toEqual([]),
        ),
      )
    })
    seq += changes.length
  }
  expect(counts[1]!).toBeLessThan(counts[0]! + SOME)
})

test('a batch has the same outcome as its changes one by one', async () => {
  const [one, other] = ids(2) as [string, string]
  const file = (name: string) => ({ ...FILE.record, name, path: `files/say/${name}` })
  const artifact = (run_id: string, name: string) => ({
    kind: 'artifact',
    run_id,
    artifact: { phase: 'say', ...file(name) },
  })
  const receipt = (run_id: string, entry: string, state: string) => ({
    kind: 'receipt',
    run_id,
    receipt: { phase: 'say', entry, state },
  })
  const line = (seq: number) => ({ seq, phase: null, at: 1, stream: 'stdout', text: String(seq) })
  const changes = (run_id: string) => [
    runChange(run_id, { log: { lines: 4, ended: false, kept: false } }),
    phaseChange(run_id, []),
    artifact(run_id, 'a'),
    receipt(run_id, 'x', 'sent'),
    receipt(run_id, 'y', 'sent'),
    receipt(run_id, 'x', 'cleared'),
    { kind: 'log', run_id, lines: [line(1), line(2)] },
    { kind: 'event', run_id, event: { name: 'on_start', phase: null, at: 1, data: null } },
    { kind: 'log', run_id, lines: [line(2), line(4)] },
    // A new attempt of the phase writes its files again.
    { ...phaseChange(run_id, [], 2), attempt: 1 },
    artifact(run_id, 'b'),
    receipt(run_id, 'x', 'done'),
    runChange(run_id, { state: 'failed', completed_at: 3_000, deliveries: [{ a: 1 }] }),
    // A second attempt takes it up again; its first end does not come back.
    runChange(run_id, { state: 'running' }, 2),
    runChange(run_id, { state: 'failed', completed_at: 3_000 }, 1),
    runChange(run_id, { state: 'completed', completed_at: 4_000 }, 2),
    runChange(run_id, { state: 'failed', completed_at: 4_000 }, 2),
  ]
  const apart = (await served.ok(token, 'daemons/register', { name: 'apart' })).daemon_id
  const epoch = crypto.randomUUID()
  const send = async (daemon_id: string, from_seq: number, some: object[]) => {
    const numbered = some.map((change, at) => ({ attempt: 1, ...change, seq: from_seq + at }))
    const body = { daemon_id, epoch, from_seq, changes: numbered }
    return (await served.ok(token, 'runs/sync', body)).rejected as { seq: number; code: string }[]
  }
  const rejected: object[] = []
  for (const [at, change] of changes(one).entries()) rejected.push(...(await send(apart, at + 1, [change])))
  const whole = (await served.ok(token, 'daemons/register', { name: 'whole' })).daemon_id
  expect(await send(whole, 1, changes(other))).toEqual(rejected as never)
  expect(rejected).toEqual([
    { seq: 15, code: 'conflict' },
    { seq: 17, code: 'conflict' },
  ])
  const { store } = served
  const rows = async (run_id: string) => {
    const { runs, phases, logs, events, artifacts, receipts } = store
    const tables = [runs, phases, logs, events, artifacts, receipts] as (typeof phases)[]
    const all = await Promise.all(tables.map(table => store.db.select().from(table).where(eq(table.run_id, run_id))))
    const same = (row: object) => ({
      ...row,
      id: 0,
      run_id: '',
      root_run_id: '',
      daemon_id: '',
      rev: 0,
      created_at: 0,
      kept_since: 0,
    })
    return all.map(each => each.map(same).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)))
  }
  const [single, together] = [await rows(one), await rows(other)]
  expect(together).toEqual(single)
  expect(single.map(each => each.length)).toEqual([1, 1, 3, 1, 1, 2])
})

test('answers about many jobs take as many statements as about a few', async () => {
  const { store, realm } = served
  const counts: number[] = []
  for (const count of [2, 200]) {
    await store.write(async tx => {
      const some = ids(count)
      await tx.insert(store.runs).values(some.map(id => runRow(id, { state: 'queued' })))
      const held = { leased_to: daemon_id, lease_id: 'l', lease_until: Date.now() + 60_000, deliveries: 1 }
      const lease = { state: 'leased' as const, ...held }
      const job = { realm_id: realm, kind: 'run' as const, payload: {}, priority: 0, created_at: 1, created_by: 1 }
      await tx.insert(store.jobs).values(some.map(id => ({ id, run_id: id, ...job, ...lease })))
      const given = some.map((jobId): JobAnswer => ({ jobId, leaseId: 'l', status: 'accepted' }))
      const by = { id: daemon_id, realm_id: realm }
      counts.push(await statements(tx, () => recordAnswers(store, tx, by, given, 2)))
    })
  }
  expect(counts[1]).toBe(counts[0]!)
})

test('to find and claim many jobs takes as many statements as one', async () => {
  const { store } = served
  const now = Date.now()
  const { id: realm_id } = await served.ok(served.admin, 'realms/create', { org_id: 1, slug: 'claims', name: 'claims' })
  const taker: ClaimingDaemon = { id: daemon_id, realm_id, workspaces: [], labels: null, agents: [], paused: false }
  await store.write(async tx => {
    const some = ids(40)
    await tx.insert(store.runs).values(some.map(id => runRow(id, { realm_id, state: 'queued' })))
    const job = { realm_id, kind: 'run' as const, payload: {}, created_by: 1 }
    for (const run_id of some) await enqueueJob(store, tx, { ...job, run_id }, now)
  })
  for (const slots of [1, 30]) {
    await store.write(async tx => {
      const here = { ...store, db: tx }
      const count = await statementsOf(tx, async () => {
        const found = await claimableJobs(here, tx, taker, slots, now)
        expect(await giveUpJobs(here, tx, realm_id, now)).toEqual([])
        expect(await claimJobs(here, tx, taker, slots, found!, now, taker)).toHaveLength(slots)
      })
      expect(count).toHaveLength(5)
    })
  }
})

test('on PostgreSQL, what is written is serializable', async () => {
  const { store } = served
  if (store.dialect !== 'postgres') return
  const [row] = await store.write(async tx =>
    tx.select({ level: sql<string>`current_setting('transaction_isolation')` }).from(sql`(SELECT 1) AS one`),
  )
  expect(row!.level).toBe('serializable')
})
