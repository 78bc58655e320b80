// A member whose daemon reports large values holds up nobody: lists read and send little, a reply has a budget of bytes,
// and whoever asks for one thing gets the whole of it.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { briefError, cut, ERROR_BYTES, fitting, jsonBytes, REPLY_BYTES, within } from '../../lib/wire/budget.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { phaseChange, reviewChange, runChange } from '../support/sync.ts'

const LARGE = 'x'.repeat(900_000)
/** What a reply has beside its items. */
const FRAME = 10_000

let hub: TestHub
let token: string
let daemon_id: string
let seq = 0
const epoch = crypto.randomUUID()

async function report(...changes: object[]): Promise<void> {
  for (const change of changes) {
    const body = { daemon_id, epoch, from_seq: seq + 1, protocol: 1, changes: [{ attempt: 1, ...change, seq: ++seq }] }
    expect((await hub.ok(token, 'runs/sync', body)).rejected).toEqual([])
  }
}

/** The data of a call, and the bytes of its reply. */
async function measured(path: string, body: object) {
  const reply = await fetch(`${hub.url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${hub.admin}` },
    body: JSON.stringify(body),
  })
  const text = await reply.text()
  expect(reply.status, text.slice(0, 500)).toBe(200)
  return { data: JSON.parse(text).data, bytes: Buffer.byteLength(text) }
}

/** All items of a list, as a caller gets them who goes on by `offset`. */
async function everyItem(path: string, name: string, body: object = {}) {
  const items: { [key: string]: unknown }[] = []
  for (;;) {
    const { data, bytes } = await measured(path, { ...body, limit: 100, offset: items.length })
    expect(bytes).toBeLessThan(REPLY_BYTES + FRAME)
    items.push(...data[name])
    if (items.length >= data.total) return items
    expect(data[name].length).toBeGreaterThan(0)
  }
}

beforeAll(async () => {
  hub = await startTestHub()
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  daemon_id = (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id
})
afterAll(() => hub.stop())

describe('runs', () => {
  const error = { code: 'failed', message: LARGE, phase: 'say' }
  const ended = { state: 'failed', completed_at: 2_000, error }

  test('a hundred runs with 0.9 MB of inputs are listed in a few kilobytes, and no call waits for it', async () => {
    const ids = Array.from({ length: 100 }, () => crypto.randomUUID())
    await report(...ids.map(id => runChange(id, { inputs: { big: LARGE } })))
    let worst = 0
    let listing = true
    const others = (async () => {
      while (listing) {
        const from = performance.now()
        await (await fetch(`${hub.url}/health`)).text()
        worst = Math.max(worst, performance.now() - from)
      }
    })()
    for (let turn = 0; turn < 5; turn++) {
      const { data, bytes } = await measured('runs/list', { limit: 100 })
      expect(data.runs).toHaveLength(100)
      expect(bytes).toBeLessThan(200_000)
      for (const run of data.runs) expect(run).toMatchObject({ inputs: null, inputs_bytes: LARGE.length + 10 })
    }
    listing = false
    await others
    expect(worst).toBeLessThan(400)
    expect((await hub.ok(hub.admin, 'runs/get', { run_id: ids[7] })).inputs).toEqual({ big: LARGE })
  })

  test('up to 2 KiB of inputs and of outputs stand in lists, and 1 KiB of an error', async () => {
    const [small, large] = [crypto.randomUUID(), crypto.randomUUID()]
    const most = { text: 'y'.repeat(2_048 - 11) }
    await report(runChange(small, { inputs: most, outputs: most, state: 'completed', completed_at: 2 }))
    await report(runChange(large, { outputs: { text: 'ä'.repeat(1_100) }, ...ended }))
    const { runs } = await hub.ok(hub.admin, 'runs/list', { limit: 2, search: small })
    expect(runs[0]).toMatchObject({ inputs: most, outputs: most })
    expect(runs[0]).not.toHaveProperty('inputs_bytes')
    const [listed] = (await hub.ok(hub.admin, 'runs/list', { search: large })).runs
    expect(listed).toMatchObject({ outputs: null, outputs_bytes: 2_211 })
    expect(jsonBytes(listed.error)).toBeLessThanOrEqual(ERROR_BYTES)
    expect(listed.error).toMatchObject({ code: 'failed', phase: 'say' })
    const whole = await hub.ok(hub.admin, 'runs/get', { run_id: large })
    expect(whole).toMatchObject({ error, outputs: { text: 'ä'.repeat(1_100) } })
    expect(whole).not.toHaveProperty('outputs_bytes')
  })

  test('a value that becomes small again is in lists, and nothing is left beside it', async () => {
    const run_id = crypto.randomUUID()
    const deliveries = [{ phase: 'tell', event: 'on_complete', state: 'delivered', error: LARGE.slice(0, 9_000) }]
    await report(runChange(run_id, { inputs: { big: LARGE.slice(0, 400_000) }, deliveries }))
    await report(runChange(run_id, { inputs: { big: 1 } }))
    const [run] = (await hub.ok(hub.admin, 'runs/list', { search: run_id })).runs
    expect(run.inputs).toEqual({ big: 1 })
    // A report without deliveries leaves those of the one before.
    expect((await hub.ok(hub.admin, 'runs/get', { run_id })).deliveries).toEqual(deliveries)
    const { largeValues, db } = hub.store
    const left = (await db.select().from(largeValues)).filter(value => value.run_id === run_id)
    expect(left.map(({ name }) => name)).toEqual(['deliveries'])
    await report(runChange(run_id, { deliveries: [] }))
    expect((await hub.ok(hub.admin, 'runs/get', { run_id })).deliveries).toEqual([])
  })

  test('the events of a run do not carry what is large', async () => {
    const run_id = crypto.randomUUID()
    const { phase } = phaseChange(run_id) as { phase: object }
    await report(runChange(run_id, { inputs: { big: LARGE } }))
    await report({ kind: 'phase', run_id, phase: { ...phase, text: LARGE.slice(0, 400_000), data: null } })
    await report(runChange(run_id, { inputs: { big: LARGE.slice(0, 400_000) }, ...ended, error: null }))
    const headers = { authorization: `Bearer ${hub.admin}` }
    const told = await (await fetch(`${hub.url}/v1/runs/stream?run_id=${run_id}`, { headers })).text()
    expect(told).toContain('event: end')
    expect(told.length).toBeLessThan(20_000)
  })

  test('a dispatched run with large inputs is queued, listed and delivered', async () => {
    const text =
      'name: "@admin/large"\nversion: 1.0.0\ninputs:\n  - { name: text, type: string }\nphases:\n  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n'
    const team = await hub.addTeam(text)
    const inputs = { text: 'z'.repeat(600_000) }
    const made = await Promise.all(
      Array.from({ length: 8 }, () => hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, inputs })),
    )
    const queue = await measured('dispatch/queue', { realm_id: hub.realm, limit: 100 })
    expect(queue.data.jobs.map((job: { run_id: string }) => job.run_id).sort()).toEqual(
      made.map(({ run_id }) => run_id).sort(),
    )
    expect(queue.data.jobs[0].team).toBe('@admin/large@1.0.0')
    expect(queue.bytes).toBeLessThan(20_000)
    expect((await hub.ok(hub.admin, 'runs/get', { run_id: made[0].run_id })).inputs).toEqual(inputs)
    const { jobs } = await hub.ok(token, 'daemons/poll', { daemon_id, slots: 1, wait_ms: 0, protocol: 1 })
    expect(jobs[0].payload.inputs).toEqual(inputs)
  })
})

describe('one run', () => {
  test('the phases of a run fit into a reply, the largest results are left out, and one phase is whole', async () => {
    const run_id = crypto.randomUUID()
    await report(runChange(run_id))
    const sizes = [900_000, 10, 800_000, 700_000, 3_000, 600_000, 500_000, 950_000, 400_000]
    const { phase } = phaseChange(run_id) as { phase: object }
    for (const [index, size] of sizes.entries()) {
      const data = { text: 'd'.repeat(size) }
      await report({ kind: 'phase', run_id, phase: { ...phase, name: `p${index}`, index, data, text: 't'.repeat(20) } })
    }
    const { data, bytes } = await measured('runs/phases', { run_id })
    expect(bytes).toBeLessThan(REPLY_BYTES + FRAME)
    const left = data.phases.filter((each: { data: unknown }) => each.data === null)
    expect(left.map(({ name, data_bytes }: { name: string; data_bytes: number }) => [name, data_bytes])).toEqual([
      ['p7', 950_011],
    ])
    expect(data.phases[4].data).toEqual({ text: 'd'.repeat(3_000) })
    expect(data.phases.map((each: { text: string }) => each.text)).toEqual(sizes.map(() => 't'.repeat(20)))
    const one = await hub.ok(hub.admin, 'runs/phases', { run_id, phase: 'p7' })
    expect(one.phases).toHaveLength(1)
    expect(one.phases[0].data).toEqual({ text: 'd'.repeat(950_000) })
    expect((await hub.call(hub.admin, 'runs/phases', { run_id, phase: 'none' })).status).toBe(404)
  })

  test('lines of a log come as many as fit, and the next call goes on behind them', async () => {
    const run_id = crypto.randomUUID()
    await report(runChange(run_id))
    const line = (seq: number) => ({ seq, phase: null, at: seq, stream: 'stdout', text: `${seq} ${LARGE}` })
    for (let seq = 1; seq <= 12; seq++) await report({ kind: 'log', run_id, lines: [line(seq)] })
    const seen: number[] = []
    for (let after_seq = 0; ; ) {
      const { data, bytes } = await measured('runs/logs', { run_id, after_seq, limit: 10_000 })
      expect(bytes).toBeLessThan(REPLY_BYTES + FRAME)
      if (data.lines.length === 0) break
      seen.push(...data.lines.map((each: { seq: number }) => each.seq))
      after_seq = data.next
    }
    expect(seen).toEqual(Array.from({ length: 12 }, (_, at) => at + 1))
  })

  const MANY = process.env.CADRE_SLOW_TESTS ? 100_000 : 20_000
  const root = crypto.randomUUID()

  test('a tree of any number of runs is answered whole, and other calls are answered meanwhile', async () => {
    await report(runChange(root))
    const below = (index: number) =>
      runChange(crypto.randomUUID(), {
        ...{
          root_run_id: root,
          parent_run_id: root,
          parent_phase: 'each',
          tree_key: index.toString(36).padStart(9, '0'),
        },
        ...{ call_path: ['@admin/t', '@admin/u'], call_depth: 1, team: '@admin/u', inputs: {} },
      })
    for (let from = 0; from < MANY; from += 1_000) {
      const changes = Array.from({ length: 1_000 }, (_, at) => ({ ...below(from + at), seq: ++seq }))
      const body = { daemon_id, epoch, from_seq: changes[0]!.seq, protocol: 1, changes }
      expect((await hub.ok(token, 'runs/sync', body)).rejected).toEqual([])
    }
    let worst = 0
    let reading = true
    const others = (async () => {
      while (reading) {
        const from = performance.now()
        await (await fetch(`${hub.url}/health`)).text()
        worst = Math.max(worst, performance.now() - from)
        await Bun.sleep(5)
      }
    })()
    const { data } = await measured('runs/tree', { run_id: root })
    expect(data.runs).toHaveLength(MANY + 1)
    const { phase } = phaseChange(root) as { phase: object }
    await report({ kind: 'phase', run_id: root, phase: { ...phase, name: 'each', index: 0, type: 'map' } })
    const { data: found, bytes } = await measured('runs/phases', { run_id: root })
    expect(bytes).toBeLessThan(REPLY_BYTES)
    expect(found.phases[0].sub_runs_more).toBe(true)
    expect(found.phases[0].sub_runs.length).toBeGreaterThan(1_000)
    reading = false
    await others
    expect(worst).toBeLessThan(400)
  }, 120_000)
})

describe('other lists', () => {
  test('reviews with large questions are listed in part, and one is whole', async () => {
    const run_id = crypto.randomUUID()
    await report(runChange(run_id, { state: 'awaiting_input' }))
    const ids = Array.from({ length: 60 }, () => crypto.randomUUID())
    const prompt = 'p'.repeat(99_000)
    const entries = Array.from({ length: 40 }, (_, at) => `${at} ${'e'.repeat(20_000)}`)
    await report(...ids.map(id => reviewChange(run_id, id, { prompt, entries })))
    const found = await everyItem('reviews/list', 'reviews', { run_id })
    expect(found.map(({ id }) => id).sort()).toEqual(ids.sort())
    for (const review of found) expect(review).toMatchObject({ prompt: null, prompt_bytes: 99_000, entries: [] })
    const [one] = (await hub.ok(hub.admin, 'reviews/list', { review_id: ids[3] })).reviews
    expect(one).toMatchObject({ id: ids[3], prompt, entries })
  })

  test('a review with a large form is decided by its form', async () => {
    const run_id = crypto.randomUUID()
    const id = crypto.randomUUID()
    const choices = Array.from({ length: 500 }, (_, at) => `choice ${at} ${'c'.repeat(40)}`)
    await report(runChange(run_id, { state: 'awaiting_input' }))
    await report(
      reviewChange(run_id, id, {
        inputs: [{ name: 'which', type: 'string', required: true, secret: false, choices }],
        reviewers: ['any'],
      }),
    )
    const decide = (which: string) =>
      hub.call(hub.admin, 'reviews/decide', { review_id: id, decision: 'approve', values: { which } })
    expect((await decide('another')).status).toBe(400)
    expect((await decide(choices[499]!)).status).toBe(200)
  })

  test('daemons that offer much are listed in several replies', async () => {
    const workspaces = Array.from({ length: 1_000 }, (_, at) => `${at} ${'w'.repeat(180)}`)
    const ids = await Promise.all(
      Array.from({ length: 40 }, async (_, at) => {
        return (await hub.ok(token, 'daemons/register', { name: `large ${at}`, workspaces })).daemon_id
      }),
    )
    const found = await everyItem('daemons/list', 'daemons', { realm_id: hub.realm })
    expect(ids.filter(id => !found.some(each => each.id === id))).toEqual([])
  })

  test('versions of a team with large forms are listed without them', async () => {
    const description = 'd'.repeat(9_000)
    const fields = Array.from(
      { length: 60 },
      (_, at) => `  - { name: f${at}, type: string, description: ${description} }\n`,
    )
    for (let version = 0; version < 6; version++) {
      await hub.addTeam(
        `name: "@admin/forms"\nversion: 1.0.${version}\ninputs:\n${fields.join('')}phases:\n  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n`,
      )
    }
    const { data, bytes } = await measured('teams/versions', { team: '@admin/forms' })
    expect(data.versions).toHaveLength(6)
    expect(bytes).toBeLessThan(10_000)
    expect((await hub.ok(hub.admin, 'teams/get', { team: '@admin/forms' })).inputs).toHaveLength(60)
  }, 60_000)
})

describe('the budget of a reply', () => {
  test('an item that alone is larger is given, so that every reader gets on', () => {
    expect(within(['a'.repeat(50), 'b'], jsonBytes, 20)).toEqual(['a'.repeat(50)])
    expect(within([1, 2, 3], () => 5, 12)).toEqual([1, 2])
    expect(within([])).toEqual([])
  })
  test('the largest values are left out first', () => {
    expect(fitting([5, 1, 9, 3], 9)).toEqual([true, true, false, true])
    expect(fitting([5, 1, 9, 3], 3)).toEqual([false, true, false, false])
    expect(fitting([5, 1], 100)).toEqual([true, true])
  })
  test('an error of any size and form is brief', () => {
    const texts = [LARGE, '\u0001'.repeat(5_000), '😀'.repeat(3_000), '"\\'.repeat(4_000), '\ud800'.repeat(2_000)]
    for (const text of texts) {
      for (const error of [
        text,
        { message: text },
        { code: text, message: text, phase: text },
        [text],
        { a: { text } },
      ]) {
        expect(jsonBytes(briefError(error))).toBeLessThanOrEqual(ERROR_BYTES)
      }
      expect(jsonBytes(cut(text, 100))).toBeLessThanOrEqual(100)
    }
    expect(briefError({ code: 'a', message: 'b' })).toEqual({ code: 'a', message: 'b' })
    expect(briefError(null)).toBe(null)
  })
})
