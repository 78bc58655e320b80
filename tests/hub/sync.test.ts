// runs/sync and what is read of it: exactly once, in order, and nothing that a daemon has no say in.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { AGAIN, startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

let hub: TestHub
let realm: string
let token: string
let daemon_id: string
let epoch: string
let seq: number

beforeAll(async () => {
  hub = await startTestHub()
  realm = hub.realm
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm, team: '@admin/t' })
  token = (await hub.realmToken(hub.admin, realm)).token
})
afterAll(() => hub.stop())

beforeEach(async () => {
  daemon_id = (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id
  epoch = crypto.randomUUID()
  seq = 0
})

const send = (changes: object[], from_seq = seq + 1) =>
  hub.call(token, 'runs/sync', {
    daemon_id,
    epoch,
    from_seq,
    protocol: 1,
    changes: changes.map((change, index) => ({ seq: from_seq + index, attempt: 1, ...change })),
  })

/** Sends and counts on. */
async function report(...changes: object[]) {
  const { status, data } = await send(changes)
  expect(status).toBe(200)
  seq = data.acked_seq
  return data.rejected.map((each: { seq: number; code: string }) => each.code)
}

const done = { state: 'completed', completed_at: 2_000, outputs: { x: 1 } }
const get = (run_id: string) => hub.ok(hub.admin, 'runs/get', { run_id })

/** What is told of a run. `until` waits for the first event of that name, `end` for everything. */
async function streamOf(run_id: string) {
  const reply = await fetch(`${hub.url}/v1/runs/stream?run_id=${run_id}`, {
    headers: { authorization: `Bearer ${hub.admin}` },
  })
  let text = ''
  const end = (async () => {
    const decoder = new TextDecoder()
    for await (const chunk of reply.body!) text += decoder.decode(chunk, { stream: true })
    return text
  })()
  return { end, until: (event: string) => until(() => text.includes(`event: ${event}\n`), `the event ${event}`) }
}

const phaseChange = (run_id: string, index: number, phase: object = {}) => ({
  kind: 'phase',
  run_id,
  phase: {
    name: `p${index}`,
    index,
    type: 'standard',
    agent: 'http',
    action: null,
    state: 'completed',
    reason: null,
    attempt: 1,
    depends_on: [],
    started_at: 1,
    completed_at: 2,
    error: null,
    ok: true,
    text: 'fine',
    data: { n: index },
    files: [],
    ...phase,
  },
})

describe('delivery', () => {
  test('a batch lands once, however often it is sent', async () => {
    const id = crypto.randomUUID()
    const changes = [
      runChange(id),
      { kind: 'event', run_id: id, event: { name: 'on_start', phase: null, at: 1, data: null } },
    ]
    expect((await send(changes, 1)).data).toMatchObject({ acked_seq: 2, rejected: [] })
    expect((await send(changes, 1)).data).toMatchObject({ acked_seq: 2, rejected: [] })
    const { events, db } = hub.store
    expect((await db.select().from(events)).filter(event => event.run_id === id)).toHaveLength(1)
  })
  test('what overlaps is skipped, what is new is applied', async () => {
    const id = crypto.randomUUID()
    await send([runChange(id)], 1)
    expect((await send([runChange(id), runChange(id, done)], 1)).data.acked_seq).toBe(2)
    expect((await get(id)).state).toBe('completed')
  })
  test('a gap is 409 and says how far it went', async () => {
    await send([runChange(crypto.randomUUID())], 1)
    const reply = await send([runChange(crypto.randomUUID())], 3)
    expect(reply).toMatchObject({ status: 409, error: { code: 'conflict' } })
    expect(reply.error.message).toContain('gap')
    expect(reply.error.details).toEqual([{ path: '/acked_seq', message: '1', value: 1 }])
  })
  test('a new epoch starts at 1', async () => {
    const id = crypto.randomUUID()
    await send([runChange(id)], 1)
    epoch = crypto.randomUUID()
    expect((await send([runChange(id)], 2)).status).toBe(409)
    expect((await send([runChange(id)], 1)).data.acked_seq).toBe(1)
  })
  test('others are answered while a large batch is applied', async () => {
    // As many as fit into 4 MiB.
    const changes = Array.from({ length: 6_000 }, () => runChange(crypto.randomUUID(), done))
    let applied = false
    const batch = send(changes, 1).finally(() => {
      applied = true
    })
    let answers = 0
    while (!applied) {
      expect((await fetch(`${hub.url}/health`)).status).toBe(200)
      answers++
    }
    expect((await batch).data).toMatchObject({ acked_seq: 6_000, rejected: [] })
    // It takes hundreds of milliseconds, of which each answer takes few; held up until its end, one or two were given.
    expect(answers).toBeGreaterThan(5)
  })
  test('a refused change is acknowledged and holds up nothing', async () => {
    const [good, bad] = [crypto.randomUUID(), crypto.randomUUID()]
    const codes = await report(
      runChange(bad, { team: '@admin/unlisted' }),
      { kind: 'moon', run_id: good },
      runChange(good),
    )
    expect(codes).toEqual(['forbidden', 'invalid_request'])
    expect((await hub.call(hub.admin, 'runs/get', { run_id: bad })).status).toBe(404)
    expect((await get(good)).state).toBe('running')
  })
})

describe('what is refused', () => {
  test('another daemon’s run', async () => {
    const id = crypto.randomUUID()
    await report(runChange(id))
    daemon_id = (await hub.ok(token, 'daemons/register', { name: 'other' })).daemon_id
    seq = 0
    expect(await report(runChange(id, done), phaseChange(id, 0))).toEqual(['forbidden', 'forbidden'])
    expect((await get(id)).state).toBe('running')
  })
  test('an older attempt, and a change of what is over', async () => {
    const id = crypto.randomUUID()
    await report(runChange(id, done))
    expect(await report(runChange(id, { state: 'failed', completed_at: 3_000 }))).toEqual(['conflict'])
    expect(await report(runChange(id, {}, 2), runChange(id, done, 1))).toEqual(['conflict'])
    expect(await get(id)).toMatchObject({ state: 'running', attempt: 2, completed_at: null })
  })
  test.each([
    ['a depth that does not fit', { call_depth: 2 }],
    ['a path that does not fit', { call_path: ['@admin/other', '@admin/s'] }],
    ['a place that does not fit', { tree_key: '000' }],
    ['no phase', { parent_phase: null }],
  ])('a sub-run with %s', async (_, wrong) => {
    const [root, sub] = [crypto.randomUUID(), crypto.randomUUID()]
    const place = {
      root_run_id: root,
      parent_run_id: root,
      parent_phase: 'p',
      call_path: ['@admin/t', '@admin/s'],
      call_depth: 1,
      tree_key: '000000000',
      team: '@admin/s',
    }
    await report(runChange(root))
    expect(await report(runChange(sub, { ...place, ...wrong }))).toEqual(['invalid_request'])
    expect(await report(runChange(sub, place))).toEqual([])
  })
  test('a sub-run below another run or phase; another item of the same map is its place', async () => {
    const [root, other, sub] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
    const place = {
      root_run_id: root,
      parent_run_id: root,
      parent_phase: 'p',
      call_path: ['@admin/t', '@admin/s'],
      call_depth: 1,
      tree_key: '000000000',
      team: '@admin/s',
    }
    await report(runChange(root), runChange(other), runChange(sub, place))
    for (const wrong of [{ parent_run_id: other }, { root_run_id: other }, { parent_phase: 'q' }, { tree_key: '' }]) {
      expect(await report(runChange(sub, { ...place, ...wrong }, 2))).toEqual(['conflict'])
    }
    expect(await report(runChange(root, { tree_key: '000000000' }, 2))).toEqual(['conflict'])
    const left = crypto.randomUUID()
    expect(await report(runChange(sub, { ...place, tree_key: '000000001' }, 2), runChange(left, place))).toEqual([])
    const { runs } = await hub.ok(hub.admin, 'runs/tree', { run_id: root })
    expect(runs.map((run: { run_id: string }) => run.run_id)).toEqual([root, left, sub])
  })
  test('times that no date can have', async () => {
    const id = crypto.randomUUID()
    const end = (completed_at: number) => runChange(id, { ...done, completed_at })
    expect(await report(runChange(id), end(-1), end(9e15))).toEqual(['invalid_request', 'invalid_request'])
    expect(await report(end(Date.UTC(9_999, 11, 31)))).toEqual([])
  })
  test('details of a run that nobody knows, and a terminal run without an end', async () => {
    const id = crypto.randomUUID()
    expect(await report(phaseChange(id, 0), runChange(id, { state: 'failed' }))).toEqual([
      'not_found',
      'invalid_request',
    ])
  })
})

describe('reading', () => {
  test('phases, logs, artifacts, reviews', async () => {
    const id = crypto.randomUUID()
    const line = (n: number, phase: string | null) => ({
      seq: n,
      phase,
      at: n,
      stream: 'stdout',
      text: `line ${n}\u0000`,
    })
    await report(
      runChange(id),
      phaseChange(id, 1, { files: [{ name: 'a', path: 'files/p1/a', bytes: 1, sha256: 'x' }] }),
      phaseChange(id, 0),
      { kind: 'log', run_id: id, phase: null, lines: [line(1, 'p0'), line(2, 'p1'), line(3, null)] },
      { kind: 'log', run_id: id, phase: null, lines: [line(3, null)] },
    )
    const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id: id })
    expect(phases.map((phase: { name: string }) => phase.name)).toEqual(['p0', 'p1'])
    expect(phases[0]).toMatchObject({ ok: true, text: 'fine', data: { n: 0 }, sub_runs: [] })
    const { lines, next } = await hub.ok(hub.admin, 'runs/logs', { run_id: id, after_seq: 1 })
    expect(lines.map((each: { seq: number }) => each.seq)).toEqual([2, 3])
    expect(next).toBe(3)
    expect((await hub.ok(hub.admin, 'runs/logs', { run_id: id, phase: 'p1' })).lines).toHaveLength(1)
    const last = async (more: object) => {
      const found = await hub.ok(hub.admin, 'runs/logs', { run_id: id, last: true, ...more })
      return found.lines.map((each: { seq: number }) => each.seq)
    }
    expect([await last({ limit: 2 }), await last({}), await last({ phase: 'p9' })]).toEqual([[2, 3], [1, 2, 3], []])
    expect((await hub.ok(hub.admin, 'runs/artifacts', { run_id: id })).artifacts).toMatchObject([
      { phase: 'p1', name: 'a' },
    ])
  })
  test('sub-runs nest 1,000 deep, in order, whatever phases and items they are of', async () => {
    // One phase that calls itself; and places that no database can store any shorter.
    const digits = () =>
      Math.floor(Math.random() * 36 ** 3)
        .toString(36)
        .padStart(3, '0')
    const anywhere = () => digits() + digits() + digits()
    for (const place of AGAIN ? [anywhere] : [() => '000000000', anywhere]) {
      const root = crypto.randomUUID()
      const path = ['@admin/t']
      const below = (parent: string, key: string) => {
        const id = crypto.randomUUID()
        const where = { root_run_id: root, parent_run_id: parent, parent_phase: 'down', tree_key: key }
        const call_path = [...path, '@admin/s']
        return { id, key, change: runChange(id, { ...where, call_path, call_depth: path.length, team: '@admin/s' }) }
      }
      const chain = [{ id: root, key: '', change: runChange(root) }]
      for (let depth = 1; depth < 1_000; depth++) {
        const { id, key } = chain.at(-1)!
        chain.push(below(id, key + place()))
        path.push('@admin/s')
      }
      const { id: parent, key } = chain.at(-1)!
      const last = ['000000000', '00000000z', 'zzzzzzzzz'].map(step => below(parent, key + step))
      const all = [...chain, ...last.toReversed()].map(({ change }) => change)
      for (let at = 0; at < all.length; at += 150) expect(await report(...all.slice(at, at + 150))).toEqual([])
      const { runs } = await hub.ok(hub.admin, 'runs/tree', { run_id: last[1]!.id })
      const order = [...chain, ...last].map(({ id }) => id)
      expect(runs.map((run: { run_id: string }) => run.run_id)).toEqual(order)
      expect(await report(phaseChange(parent, 0, { name: 'down', type: 'map' }))).toEqual([])
      const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id: parent })
      const subRuns = phases[0].sub_runs.map((run: { run_id: string }) => run.run_id)
      expect(subRuns).toEqual(last.map(({ id }) => id))
      const middle = chain[600]!.id
      const reply = await fetch(`${hub.url}/v1/runs/stream?run_id=${middle}`, {
        headers: { authorization: `Bearer ${hub.admin}` },
      })
      const text = reply.text()
      await report(runChange(middle, { ...chain[600]!.change.run, ...done }, 1))
      const told = [...(await text).matchAll(/"run_id":"([^"]+)"/g)].map(([, id]) => id)
      expect([...new Set(told)]).toEqual(order.slice(600))
    }
  }, 240_000)
  test('the tree is the same from every run of it, depth first', async () => {
    const ids = Array.from({ length: 700 }, () => crypto.randomUUID())
    const [root, ...subs] = ids as [string, ...string[]]
    const changes = subs.map((id, index) =>
      runChange(id, {
        root_run_id: root,
        parent_run_id: root,
        parent_phase: 'each',
        run_name: `i${index}`,
        call_path: ['@admin/t', '@admin/s'],
        call_depth: 1,
        tree_key: `000${index.toString(36).padStart(6, '0')}`,
        team: '@admin/s',
      }),
    )
    // Reported in any order: the tree has its own.
    expect(await report(runChange(root), ...changes.toReversed())).toEqual([])
    const tree = await hub.ok(hub.admin, 'runs/tree', { run_id: root })
    expect(tree.root_run_id).toBe(root)
    expect(tree.runs.map((each: { run_id: string }) => each.run_id)).toEqual(ids)
    expect(tree.runs[0]).toEqual({
      run_id: root,
      run_name: null,
      state: 'running',
      call_path: ['@admin/t'],
      call_depth: 0,
      parent_phase: null,
      started_at: 1_000,
      completed_at: null,
      tolerated: null,
    })
    expect(await hub.ok(hub.admin, 'runs/tree', { run_id: subs[300] })).toEqual(tree)
    await report(phaseChange(root, 0, { name: 'each', type: 'map', agent: null }))
    const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id: root })
    expect(phases[0].sub_runs).toHaveLength(699)
    const roots = await hub.ok(hub.admin, 'runs/list', { realm_id: realm, root_only: true, limit: 1 })
    expect(roots.runs[0].root_run_id).toBe(roots.runs[0].run_id)
  })
  test('how long a run lived is told of ended runs, and an older daemon says it by times only', async () => {
    const [told, older] = [crypto.randomUUID(), crypto.randomUUID()]
    const ended = { state: 'completed', completed_at: 1_000 + 72 * 3_600_000 }
    await report(runChange(told, { ...ended, lived_ms: 42_000 }), runChange(older, ended))
    const lived = async (id: string) => [
      (await get(id)).lived_ms,
      (await hub.ok(hub.admin, 'runs/why', { run_id: id })).lines[0].match(/ after (.*)\./)?.[1],
    ]
    expect(await lived(told)).toEqual([42_000, '42s'])
    expect(await lived(older)).toEqual([null, '3d'])
    const { runs } = await hub.ok(hub.admin, 'runs/list', { begins: told })
    expect(runs).toMatchObject([{ run_id: told, lived_ms: 42_000 }])
    await report(runChange(told, { lived_ms: null }, 2))
    expect((await get(told)).lived_ms).toBeNull()
  })
  test('how many failures a run passed over is told as its daemon says it, and nothing for an older one', async () => {
    const [told, older] = [crypto.randomUUID(), crypto.randomUUID()]
    const ended = { state: 'completed', completed_at: 2_000 }
    await report(runChange(told, { ...ended, tolerated: 3 }), runChange(older, ended))
    const shown = async (id: string) => [
      (await get(id)).tolerated,
      (await hub.ok(hub.admin, 'runs/list', { begins: id })).runs[0].tolerated,
      (await hub.ok(hub.admin, 'runs/tree', { run_id: id })).runs[0].tolerated,
    ]
    expect(await shown(told)).toEqual([3, 3, 3])
    expect(await shown(older)).toEqual([null, null, null])
    await report(runChange(told, { tolerated: null }, 2))
    expect(await shown(told)).toEqual([null, null, null])
  })
  test('a silent daemon’s runs have crashed, until it calls again', async () => {
    const [live, over] = [crypto.randomUUID(), crypto.randomUUID()]
    await report(runChange(live), runChange(over, done))
    await hub.flush()
    await hub.skew(301_000)
    expect([(await get(live)).state, (await get(over)).state]).toEqual(['crashed', 'completed'])
    const crashed = await hub.ok(hub.admin, 'runs/list', { state: 'crashed', root_only: true, limit: 100 })
    expect(crashed.runs.map((run: { run_id: string }) => run.run_id)).toContain(live)
    await hub.ok(token, 'daemons/heartbeat', { daemon_id })
    await hub.flush()
    expect((await get(live)).state).toBe('running')
    await hub.skew(0)
  })
  test('a review reaches people, and their decision the daemon', async () => {
    const [id, review] = [crypto.randomUUID(), crypto.randomUUID()]
    const record = {
      id: review,
      run_name: null,
      phase: 'p',
      entries: [],
      kind: 'gate',
      reason: 'review',
      prompt: 'Publish?',
      state: 'pending',
      decision: null,
      decided_by: null,
      created_at: 1,
      decided_at: null,
    }
    await report(runChange(id, { state: 'awaiting_input' }), { kind: 'review', run_id: id, review: record })
    const { reviews } = await hub.ok(hub.admin, 'reviews/list', { run_id: id, state: 'pending' })
    expect(reviews).toMatchObject([{ id: review, prompt: 'Publish?' }])
    expect((await hub.call(hub.admin, 'reviews/decide', { review_id: review, decision: 'retry' })).status).toBe(400)
    await hub.ok(hub.admin, 'reviews/decide', { review_id: review, decision: 'approve', values: { a: 1 } })
    const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'reviews/decide' })
    expect(audit[0]).toMatchObject({ target: expect.stringContaining(`${review}: approve, run `), username: 'admin' })
    const { jobs } = await hub.ok(token, 'daemons/poll', { daemon_id, slots: 0 })
    expect(jobs).toMatchObject([
      {
        kind: 'decide',
        run_id: id,
        payload: { review_id: review, decision: 'approve', by: 'admin', values: { a: 1 } },
      },
    ])
    await report({
      kind: 'review',
      run_id: id,
      review: { ...record, state: 'decided', decision: 'approve', decided_by: 'admin', decided_at: 2 },
    })
    expect((await hub.call(hub.admin, 'reviews/decide', { review_id: review, decision: 'approve' })).status).toBe(409)
  })
  test('what an approval leads to, and why the hub does not know it', async () => {
    const id = crypto.randomUUID()
    const next = {
      phases: ['deploy'],
      writes: [
        { phase: ['deploy'], agent: 'http', action: null, effect: 'once', to: 'https://a.example', credentials: [] },
      ],
    }
    const record = (more: object) => ({
      ...{
        id: crypto.randomUUID(),
        run_name: null,
        phase: 'p',
        entries: [],
        kind: 'gate',
        reason: 'review',
        prompt: '',
      },
      ...{ state: 'pending', decision: null, decided_by: null, created_at: 1, decided_at: null, ...more },
    })
    const asked = [
      record({ next, keeps_next: false, expires_at: 7_000 }),
      record({ next: null, keeps_next: true }),
      record({}),
      record({ next: { steps: [] }, keeps_next: false }),
      // Its daemon is still finding it out.
      record({ next: null, keeps_next: false }),
    ]
    const changes = asked.map(review => ({ kind: 'review', run_id: id, review }))
    await report(runChange(id, { state: 'awaiting_input' }), ...changes)
    const { reviews } = await hub.ok(hub.admin, 'reviews/list', { run_id: id })
    const found = asked.map(({ id }) => reviews.find((each: { id: string }) => each.id === id))
    expect(
      found.map(each => [each.next, each.expires_at, each.lacks?.replace(/the daemon \S+/, 'it') ?? null]),
    ).toEqual([
      [next, 7_000, null],
      [null, null, 'it knows it and does not report it'],
      [null, null, 'it is too old to report it'],
      [null, null, 'it reports it in a form that this hub does not know'],
      [null, null, null],
    ])
    // A large one is only in the reply for its review.
    const phases = Array.from({ length: 1_000 }, (_, at) => `phase-${at}`)
    const large = record({ next: { phases, writes: [] }, keeps_next: false })
    await report({ kind: 'review', run_id: id, review: large })
    const { reviews: all } = await hub.ok(hub.admin, 'reviews/list', { run_id: id })
    const listed = all.find((each: { id: string }) => each.id === large.id)
    expect([listed.next, listed.next_bytes > 8_192, listed.lacks]).toEqual([null, true, null])
    const { reviews: whole } = await hub.ok(hub.admin, 'reviews/list', { review_id: large.id })
    expect(whole[0].next.phases).toHaveLength(1_000)
  })
  test('how much of a log there is, which lines are missing and which are to come', async () => {
    const id = crypto.randomUUID()
    const line = (seq: number) => ({ seq, phase: null, at: 1, stream: 'stdout', text: `line ${seq}` })
    const log = (seqs: number[], more: object = {}) => ({ kind: 'log', run_id: id, lines: seqs.map(line), ...more })
    const told = async () => {
      const { complete, missing, to_come } = await hub.ok(hub.admin, 'runs/logs', { run_id: id })
      return { complete, missing, to_come }
    }
    await report(runChange(id), log([1, 2]))
    // An older daemon says no more than that.
    expect(await told()).toEqual({ complete: null, missing: [], to_come: null })
    await report(runChange(id, { ...done, log: { lines: 9, ended: false, kept: false } }))
    expect(await told()).toEqual({ complete: false, missing: [], to_come: { from: 3, to: 9 } })
    await report(log([4, 5], { to: 6, last: 9, ended: false }))
    const missing = [
      { from: 3, to: 3 },
      { from: 6, to: 6 },
    ]
    expect(await told()).toEqual({ complete: false, missing, to_come: { from: 7, to: 9 } })
    await report(log([7, 8, 9], { to: 9, last: 9, ended: false }))
    expect(await told()).toEqual({ complete: false, missing, to_come: { from: 10, to: null } })
    await report(log([], { to: 9, last: 9, ended: true }))
    expect(await told()).toEqual({ complete: false, missing, to_come: null })
    // Sent again, as after a loss.
    await report(log([1, 2, 3, 4, 5, 6], { to: 6, last: 9, ended: true }))
    expect(await told()).toEqual({ complete: true, missing: [], to_come: null })
    // The next attempt adds lines.
    await report(runChange(id, { log: { lines: 9, ended: false, kept: false } }, 2))
    expect(await told()).toEqual({ complete: false, missing: [], to_come: { from: 10, to: null } })
    await report(runChange(id, { log: { lines: 0, ended: true, kept: true } }, 3))
    expect(await hub.ok(hub.admin, 'runs/logs', { run_id: id })).toMatchObject({ complete: false, kept: true })
  })
  test('receipts come, change and go', async () => {
    const id = crypto.randomUUID()
    const receipt = (state: string, more: object = {}) => ({
      kind: 'receipt',
      run_id: id,
      receipt: { phase: 'p', entry: 'e', state, ...more },
    })
    const { receipts, db } = hub.store
    const known = async () =>
      (await db.select().from(receipts)).filter(row => row.run_id === id).map(row => [row.state, row.receipt])
    const nothing = { external_id: null, external_url: null }
    expect(await report(runChange(id), receipt('sent'))).toEqual([])
    expect(await known()).toEqual([['sent', nothing]])
    await report(receipt('cleared'))
    expect(await known()).toEqual([])
    await report(
      receipt('sent'),
      receipt('unknown'),
      receipt('done', { external_id: '7', external_url: 'https://x/7' }),
    )
    expect(await known()).toEqual([['done', { external_id: '7', external_url: 'https://x/7' }]])
    // A newer daemon may have more states.
    expect(await report(receipt('lost'))).toEqual([])
    expect(await report(receipt('Lost!'))).toEqual(['invalid_request'])
  })
  test('the stream tells changes and ends with the run', async () => {
    const id = crypto.randomUUID()
    await report(runChange(id))
    const stream = await streamOf(id)
    await stream.until('run')
    await report(phaseChange(id, 0), runChange(id, done))
    const events = [...(await stream.end).matchAll(/^event: (\w+)$/gm)].map(match => match[1])
    expect(events).toEqual(['run', 'run', 'phase', 'end'])
  })
  test('the stream follows what is below the run, and nothing beside it', async () => {
    const [root, here, beside, under] = Array.from({ length: 4 }, () => crypto.randomUUID()) as [
      string,
      string,
      string,
      string,
    ]
    const below = (id: string, parent: string, depth: number, key: string) =>
      runChange(id, {
        ...{ root_run_id: root, parent_run_id: parent, parent_phase: 'p', call_depth: depth, tree_key: key },
        call_path: ['@admin/t', '@admin/s', '@admin/u'].slice(0, depth + 1),
        team: '@admin/s',
      })
    const ended = (change: ReturnType<typeof runChange>) => runChange(change.run_id, { ...change.run, ...done })
    const [one, two] = [below(here, root, 1, '000000000'), below(beside, root, 1, '000000001')]
    expect(await report(runChange(root), one, two)).toEqual([])
    const stream = await streamOf(here)
    await stream.until('run')
    const deep = below(under, here, 2, '000000000000000000')
    const line = { seq: 1, phase: 'p0', at: 1, stream: 'out', text: 'hi' }
    expect(await report(deep, phaseChange(under, 0), phaseChange(beside, 0))).toEqual([])
    await stream.until('phase')
    await report({ kind: 'log', run_id: under, lines: [line] }, ended(deep), ended(two))
    await stream.until('log')
    await report(ended(one))
    const events = (await stream.end)
      .split('\n\n')
      .filter(block => block.includes('event: '))
      .map(block => {
        const data = JSON.parse(/^data: (.*)$/m.exec(block)![1]!)
        return [/^event: (\w+)$/m.exec(block)![1], data.run_id, data.state ?? data.lines[0].text]
      })
    expect(events).toEqual([
      ['run', here, 'running'],
      ['run', under, 'running'],
      ['phase', under, 'completed'],
      ['run', under, 'completed'],
      ['log', under, 'hi'],
      ['run', here, 'completed'],
      ['end', here, 'completed'],
    ])
  })
  test('the stream tells nothing twice, however many runs end while it reads', async () => {
    const root = crypto.randomUUID()
    const subs = Array.from({ length: 60 }, (_, n) =>
      runChange(crypto.randomUUID(), {
        ...{ root_run_id: root, parent_run_id: root, parent_phase: 'p', call_depth: 1, team: '@admin/s' },
        ...{ call_path: ['@admin/t', '@admin/s'], tree_key: String(n).padStart(9, '0') },
      }),
    )
    expect(await report(runChange(root), ...subs)).toEqual([])
    const stream = await streamOf(root)
    await stream.until('run')
    const line = { seq: 1, phase: 'p0', at: 1, stream: 'out', text: 'hi' }
    for (const { run_id, run } of subs) {
      await report({ kind: 'log', run_id, lines: [line] }, runChange(run_id, { ...run, ...done }))
    }
    await report(runChange(root, done))
    const told = (await stream.end)
      .split('\n\n')
      .filter(block => /^event: (run|log)$/m.test(block))
      .map(block => {
        const data = JSON.parse(/^data: (.*)$/m.exec(block)![1]!)
        return `${data.run_id} ${data.state ?? data.lines[0].text}`
      })
    const expected = [...subs.flatMap(({ run_id }) => [`${run_id} hi`, `${run_id} completed`]), `${root} completed`]
    const ends = told.filter(each => !each.endsWith('running'))
    expect(ends.toSorted()).toEqual(expected.toSorted())
  })
  test('a run of a realm that one is not in does not exist', async () => {
    const { token: stranger } = await hub.account(`s${Date.now()}`)
    const id = crypto.randomUUID()
    await report(runChange(id))
    for (const path of ['get', 'tree', 'phases', 'logs', 'artifacts']) {
      expect((await hub.call(stranger, `runs/${path}`, { run_id: id })).status).toBe(404)
    }
    expect((await hub.ok(stranger, 'runs/list')).total).toBe(0)
    expect((await hub.call(stranger, 'dispatch/cancel', { run_id: id })).status).toBe(404)
  })
})
