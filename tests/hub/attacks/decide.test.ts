// Attacks by decisions: a gate's form is the same at the hub as at the daemon.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../../support/hub.ts'
import { runChange } from '../../support/sync.ts'

let hub: TestHub
let token: string
let daemon_id: string
let seq = 0
const epoch = crypto.randomUUID()

beforeAll(async () => {
  hub = await startTestHub()
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: '@admin/t' })
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  daemon_id = (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id
})
afterAll(() => hub.stop())

const FORM = [
  { name: 'why', type: 'string', required: true, secret: false },
  { name: 'level', type: 'number', required: false, secret: false, choices: [1, 2] },
]

/** A review that waits, as a daemon reports it. */
async function review(more: object): Promise<string> {
  const [id, run_id] = [crypto.randomUUID(), crypto.randomUUID()]
  const record = { id, run_name: null, phase: 'p', entries: [], kind: 'gate', reason: 'review', prompt: 'Fine?' }
  const open = { state: 'pending', decision: null, decided_by: null, created_at: 1, decided_at: null }
  const changes = [
    runChange(run_id, { state: 'awaiting_input' }),
    { kind: 'review', run_id, attempt: 1, review: { ...record, ...open, ...more } },
  ].map((change, index) => ({ ...change, seq: seq + 1 + index }))
  const { acked_seq, rejected } = await hub.ok(token, 'runs/sync', { daemon_id, epoch, from_seq: seq + 1, changes })
  expect(rejected).toEqual([])
  seq = acked_seq
  return id
}

const decide = (review_id: string, values?: object, decision = 'approve') =>
  hub.call(hub.admin, 'reviews/decide', { review_id, decision, ...(values && { values }) })

test('an answer that does not fit the form is refused, with what is wrong', async () => {
  const id = await review({ reviewers: ['any'], inputs: FORM })
  const wrong: [object | undefined, string][] = [
    [undefined, '/values/why'],
    [{}, '/values/why'],
    [{ why: 1 }, '/values/why'],
    [{ why: 'x', level: 3 }, '/values/level'],
    [{ why: 'x', other: 1 }, '/values/other'],
  ]
  for (const [values, path] of wrong) {
    const { status, error } = await decide(id, values)
    expect([values, status, error?.details?.map(detail => detail.path)]).toEqual([values, 400, [path]])
  }
  expect((await decide(id, { why: 'x', level: 2 })).status).toBe(200)
})

test('a gate without a form takes no values, and a rejection needs none', async () => {
  expect((await decide(await review({ reviewers: ['any'], inputs: [] }), { a: 1 })).status).toBe(400)
  expect((await decide(await review({ reviewers: ['any'], inputs: FORM }), undefined, 'reject')).status).toBe(200)
})

test('while a decision waits for its daemon, the same one is that job, and no other one is taken', async () => {
  const id = await review({ reviewers: ['any'], inputs: FORM })
  const given = await decide(id, { why: 'x' })
  expect([given.status, given.data.already_waits]).toEqual([200, undefined])
  const { job_id } = given.data
  expect((await decide(id, { why: 'x' })).data).toMatchObject({ job_id, already_waits: true })
  const other = await decide(id, undefined, 'reject')
  expect([other.status, other.error.code]).toEqual([409, 'conflict'])
  expect(other.error.message).toContain('admin has decided approve, and this decision waits for the daemon of the run')
  expect((await decide(id, { why: 'y' })).error).toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('admin has decided approve with other values,'),
  })
  const { jobs } = await hub.ok(token, 'daemons/poll', { daemon_id, slots: 0 })
  const { lease_id } = jobs.find((each: { job_id: string }) => each.job_id === job_id)
  expect((await decide(id, undefined, 'reject')).status).toBe(409)
  await hub.ok(token, 'daemons/ack', { daemon_id, job_id, lease_id, status: 'failed', error: 'no such review' })
  const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'daemons/ack' })
  expect(audit[0].target).toMatch(new RegExp(`^failed decide job ${job_id}, run \\S+: no such review$`))
  expect((await decide(id, undefined, 'reject')).data.job_id).not.toBe(job_id)
})

test('a gate that asks others is refused before its form', async () => {
  expect((await decide(await review({ reviewers: ['una'], inputs: FORM }), {})).status).toBe(403)
})

test('a form that this hub does not know is left to the daemon', async () => {
  const odd = [{ name: 'why', type: 'colour', required: true, secret: false }]
  expect((await decide(await review({ reviewers: ['any'], inputs: odd }), { why: 'red' })).status).toBe(200)
  for (const inputs of [[null], [1], [{ name: 'a' }], [{ ...FORM[1], choices: 1 }]]) {
    expect((await decide(await review({ reviewers: ['any'], inputs }), { a: 1 })).status).toBe(200)
  }
})
