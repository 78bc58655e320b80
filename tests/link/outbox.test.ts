// What waits for the hub: a long backlog is read as it is sent, and not as a whole; newer runs do not wait behind it; and
// a number means the same change however often it is sent.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Batch, SyncOutbox } from '../../lib/daemon/link/outbox/outbox.ts'
import type { RunId } from '../../lib/files/run-id.ts'
import { createLog } from '../../lib/log/log.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'

let t: TestEngine
let outbox: SyncOutbox
beforeEach(async () => {
  t = await testEngine()
  outbox = open()
})
afterEach(() => t.close())

const lines: string[] = []
const log = createLog({ format: 'json', write: line => lines.push(line) })

/** The outbox as the next process opens it. */
function open() {
  const { engine } = t
  return new SyncOutbox({
    store: engine.store,
    commit: engine.commit,
    mode: 'full',
    stateDir: runId => engine.stateDir(runId),
    bundle: id => engine.bundle(id),
    lived: () => engine.lived,
    log,
  })
}

/** A run that has ended and is reported to the hub, with a log of `lines` lines of `bytes`. */
async function run(lines: number, bytes = 20): Promise<RunId> {
  const team =
    'name: "@local/quiet"\nversion: 1.0.0\nphases: [{ name: p, agent: exec, commands: [{ name: c, run: "true" }] }]\n'
  const { run_id } = await t.run(team)
  const { store } = t.engine
  mkdirSync(t.engine.stateDir(run_id), { recursive: true })
  const line = (seq: number) =>
    JSON.stringify({ seq, phase: 'p', at: 1, stream: 'log', text: `${seq}`.padEnd(bytes, 'é') })
  const text = Array.from({ length: lines }, (_, at) => `${line(at + 1)}\n`).join('')
  if (lines > 0) appendFileSync(join(t.engine.stateDir(run_id), 'log.jsonl'), text)
  store.db.run('UPDATE runs SET synced = 1 WHERE id = ?', [run_id])
  outbox.rows.insert(run_id, run_id, 1, 'run', JSON.stringify({ run: { run_id } }))
  outbox.endLog(run_id, lines)
  return run_id
}

/** Acknowledges batch after batch until nothing waits, and returns them. */
async function drain(maxBytes: number, from = outbox): Promise<Batch[]> {
  const batches: Batch[] = []
  for (let batch = await from.take(maxBytes); batch; batch = await from.take(maxBytes)) {
    batches.push(batch)
    await from.acknowledge()
  }
  return batches
}

// biome-ignore lint/suspicious/noExplicitAny: changes of all kinds
const changesOf = (batches: Batch[]): any[] => batches.flatMap(({ changes }) => changes)

const linesOf = (batches: Batch[], run_id: string): number[] =>
  changesOf(batches)
    .filter(change => change.kind === 'log' && change.run_id === run_id)
    .flatMap(change => change.lines.map(({ seq }: { seq: number }) => seq))

test('sending a few changes does not read all waiting changes into memory', async () => {
  const { store } = t.engine
  store.db.run('BEGIN')
  for (let n = 0; n < 150; n++) {
    const body = JSON.stringify({ run: { text: `${n}`.padEnd(900_000, 'x'), log: null } })
    outbox.rows.insert(`run ${n}`, `run ${n}`, 1, 'run', body)
  }
  store.db.run('COMMIT')
  Bun.gc(true)
  const before = process.memoryUsage.rss()
  const batch = await outbox.take(4_000_000)
  const grown = process.memoryUsage.rss() - before
  expect(batch!.changes.map(({ seq }) => seq)).toEqual([1, 2, 3, 4])
  // All of them are 135 MB, and twice that as objects.
  expect(grown).toBeLessThan(60_000_000)
  await outbox.acknowledge()
  expect(await outbox.take(1)).toMatchObject({ from_seq: 5, changes: [{ seq: 5 }] })
})

test('every line is sent once, in order, however long the lines are', async () => {
  const ids = [await run(3_000), await run(40, 60_000), await run(0), await run(1)]
  const batches = await drain(300_000)
  expect(ids.map(id => linesOf(batches, id).length)).toEqual([3_000, 40, 0, 1])
  for (const id of ids) expect(linesOf(batches, id)).toEqual(linesOf(batches, id).toSorted((a, b) => a - b))
  const numbers = changesOf(batches).map(({ seq }) => seq)
  expect(numbers).toEqual(numbers.map((_, at) => at + 1))
  for (const { changes } of batches) expect(Buffer.byteLength(JSON.stringify(changes))).toBeLessThan(800_000)
  // The last change of a log says that it is complete.
  for (const id of ids) {
    const told = changesOf(batches).filter(({ kind, run_id }) => kind === 'log' && run_id === id)
    expect(told.map(({ ended }) => ended)).toEqual([...Array(told.length - 1).fill(false), true])
  }
  expect(outbox.left).toEqual({ changes: 0, lines: 0 })
})

test('a newer run waits behind no backlog, and the oldest run goes on too', async () => {
  const old = await run(20_000)
  await drain(3_500_000)
  outbox.rows.logAgain(old)
  await outbox.take(100_000)
  await outbox.acknowledge()
  const fresh = await run(50)
  const two = [(await outbox.take(100_000))!]
  await outbox.acknowledge()
  two.push((await outbox.take(100_000))!)
  await outbox.acknowledge()
  expect(two[0]!.changes[0]).toMatchObject({ kind: 'run', run_id: fresh })
  expect(linesOf(two, fresh)).toHaveLength(50)
  expect(linesOf(two, old).length).toBeGreaterThan(500)
})

test('the changes of a tree stay in their order, while those of other trees pass them', async () => {
  for (let n = 0; n < 3_000; n++) {
    const tree = `tree ${n % 3}`
    outbox.rows.insert(tree, tree, 1, 'phase', JSON.stringify({ n }))
  }
  const sent = changesOf(await drain(10_000))
  expect(sent).toHaveLength(3_000)
  for (const tree of ['tree 0', 'tree 1', 'tree 2']) {
    const order = sent.filter(({ run_id }) => run_id === tree).map(({ n }) => n)
    expect(order).toEqual(order.toSorted((a, b) => a - b))
  }
})

test('a batch is the same after a restart, until it is acknowledged', async () => {
  await run(10)
  const { from_seq, changes } = (await outbox.take(1_000_000))!
  const id = await run(10)
  const again = open()
  const same = (await again.take(1_000_000))!
  expect(same.from_seq).toBe(from_seq)
  expect(same.changes).toEqual(changes)
  await again.acknowledge()
  expect(changesOf(await drain(1_000_000, open())).some(({ run_id }) => run_id === id)).toBe(true)
})

test('a batch that nothing takes is sent in parts, whose changes keep their numbers', async () => {
  for (let n = 0; n < 40; n++)
    outbox.rows.insert('tree', 'tree', 1, 'phase', JSON.stringify({ n, text: 'x'.repeat(9_000) }))
  const whole = (await outbox.take(1_000_000))!
  expect(whole.changes).toHaveLength(40)
  const some = (await outbox.take(100_000))!
  expect(some).toMatchObject({ from_seq: 1, changes: whole.changes.slice(0, some.changes.length) })
  expect(some.changes.length).toBeGreaterThan(5)
  expect(JSON.stringify(some.changes).length).toBeLessThan(101_000)
  // The hub has applied that much, and then both are started again.
  await outbox.acknowledge()
  const again = open()
  const rest = (await again.take(1_000_000))!
  expect(rest).toMatchObject({ from_seq: some.changes.length + 1, changes: whole.changes.slice(some.changes.length) })
  // One change is sent however large it is.
  expect((await again.take(10))!.changes).toEqual(rest.changes.slice(0, 1))
  await again.acknowledge()
  const numbers = changesOf(await drain(200_000, again)).map(({ seq }) => seq)
  expect(numbers).toEqual(rest.changes.slice(1).map(({ seq }) => seq))
  expect(again.left).toEqual({ changes: 0, lines: 0 })
})

test('lines that were deleted before they were sent are told to be missing', async () => {
  const id = await run(10)
  rmSync(t.engine.stateDir(id), { recursive: true })
  const told = changesOf(await drain(1_000_000)).find(({ kind }) => kind === 'log')
  expect(told).toMatchObject({ run_id: id, to: 10, last: 10, ended: true, lines: [] })
})

test('a run that cannot be explained is reported all the same, and holds up no other', async () => {
  const failing =
    'name: "@local/bad"\nversion: 1.0.0\nphases: [{ name: p, agent: exec, commands: [{ name: c, run: "false" }] }]\n'
  const { run_id } = await t.run(failing)
  t.engine.store.db.run('UPDATE runs SET synced = 1')
  outbox.rows.insert(run_id, run_id, 1, 'run', JSON.stringify({ run: { run_id, state: 'failed', attempt: 1 } }))
  const second = await run(0)
  // As after an upgrade whose compiler refuses what an older one took.
  const reopened = new SyncOutbox({
    store: t.engine.store,
    commit: t.engine.commit,
    mode: 'full',
    stateDir: id => t.engine.stateDir(id),
    bundle: () => {
      throw new Error('the bundle cannot be read')
    },
    lived: () => t.engine.lived,
    log,
  })
  const reported = changesOf(await drain(1_000_000, reopened)).filter(({ kind }) => kind === 'run')
  expect(reported.map(change => change.run_id).sort()).toEqual([run_id, second].sort())
  expect(lines.join('')).toContain(run_id)
  expect(lines.join('')).toContain('the bundle cannot be read')
})

test('with `sync: status`, what another system answered to a message stays on the machine', async () => {
  const run_id = await run(0)
  const { store } = t.engine
  store.db.run(
    `INSERT INTO deliveries (run_id, number, listener, event, payload, state, error) VALUES (?, 0, 'tell', 'on_complete', '{}', 'failed', 'the server knows no such customer')`,
    [run_id],
  )
  store.db.run(`UPDATE outbox SET body = ? WHERE run_id = ? AND kind = 'run'`, [
    JSON.stringify({ run: { run_id, state: 'completed', attempt: 1 } }),
    run_id,
  ])
  const bare = new SyncOutbox({
    store,
    commit: t.engine.commit,
    mode: 'status',
    stateDir: id => t.engine.stateDir(id),
    bundle: id => t.engine.bundle(id),
    lived: () => t.engine.lived,
    log,
  })
  const text = JSON.stringify(await drain(1_000_000, bare))
  expect(text).toContain('on_complete')
  expect(text).not.toContain('no such customer')
})
