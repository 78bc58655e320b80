// Concurrency keys of a realm: which dispatched runs may go to daemons, and which wait, whoever asks and whatever ends.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

interface Job {
  job_id: string
  lease_id: string
  run_id: string
  kind: string
  payload: { reason?: string }
}

let hub: TestHub
let realm: string
let token: string

const PHASES = 'phases:\n  - { name: ask, type: gate, review: { prompt: "Go on?" } }\n'
const INPUTS = 'inputs: [{ name: env, type: string, default: prod }]\n'
const TEAMS = {
  deploy: '{ key: "deploy-{{ inputs.env }}" }',
  two: '{ key: "deploy-{{ inputs.env }}", limit: 2 }',
  skip: '{ key: "deploy-{{ inputs.env }}", when_full: skip }',
  newest: '{ key: "deploy-{{ inputs.env }}", when_full: cancel_oldest }',
}

beforeAll(async () => {
  hub = await startTestHub()
  for (const [name, concurrency] of Object.entries(TEAMS)) {
    const text = `name: "@admin/${name}"\nversion: 1.0.0\n${INPUTS}concurrency: ${concurrency}\n${PHASES}`
    await hub.ok(hub.admin, 'teams/publish', { files: [{ path: 'team.yml', content_base64: btoa(text) }] })
  }
})
afterAll(() => hub.stop())

beforeEach(async () => {
  const slug = `r${crypto.randomUUID()}`
  realm = (await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug, name: 'keys' })).id
  for (const name of Object.keys(TEAMS))
    await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm, team: `@admin/${name}` })
  token = (await hub.realmToken(hub.admin, realm)).token
})

const dispatch = (team: keyof typeof TEAMS = 'deploy', more: object = {}) =>
  hub.ok(hub.admin, 'dispatch/run', { realm_id: realm, team: `@admin/${team}`, ...more })
const order = (what: string, run: { run_id: string }, more: object = {}) =>
  hub.call(hub.admin, `dispatch/${what}`, { run_id: run.run_id, ...more })
const get = (run: { run_id: string }) => hub.ok(hub.admin, 'runs/get', { run_id: run.run_id })
const queue = async () => (await hub.ok(hub.admin, 'dispatch/queue', { realm_id: realm, limit: 100 })).jobs
const waits = (run: { run_id: string }) => `run ${run.run_id}, which holds the key deploy-prod`

async function daemon() {
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'one', protocol: 1 })
  const epoch = crypto.randomUUID()
  let seq = 0
  const poll = async (): Promise<Job[]> =>
    (await hub.ok(token, 'daemons/poll', { daemon_id, slots: 100, wait_ms: 0 })).jobs
  const ack = ({ job_id, lease_id }: Job, status: string, error?: string) =>
    hub.call(token, 'daemons/ack', { daemon_id, job_id, lease_id, status, ...(error && { error }) })
  return {
    daemon_id,
    poll,
    ack,
    /** Takes the runs that may begin, accepts them, and returns their ids. */
    async begin(): Promise<string[]> {
      const jobs = await poll()
      for (const job of jobs) expect((await ack(job, 'accepted')).status).toBe(200)
      return jobs.filter(({ kind }) => kind === 'run').map(({ run_id }) => run_id)
    },
    async tell(run_id: string, state: string, attempt = 1, name = 'deploy') {
      const completed_at = ['completed', 'failed', 'cancelled'].includes(state) ? 2_000 + attempt : null
      const team = `@admin/${name}`
      const fields = { state, completed_at, team, call_path: [team], inputs: {} }
      const change = { ...runChange(run_id, fields, attempt), seq: seq + 1 }
      const reply = await hub.ok(token, 'runs/sync', { daemon_id, epoch, from_seq: seq + 1, changes: [change] })
      expect(reply.rejected).toEqual([])
      seq++
    },
  }
}

test('a run waits for the one that holds its key, and no poll gets it before', async () => {
  const one = await daemon()
  const first = await dispatch()
  expect([first.state, first.waiting_for]).toEqual(['queued', undefined])
  const [second, third] = [await dispatch(), await dispatch()]
  expect([second.state, second.waiting_for]).toEqual(['queued', waits(first)])
  expect(third.waiting_for).toBe(`${waits(first)}, and 1 run that waits before it`)
  const other = await dispatch('deploy', { inputs: { env: 'test' } })
  expect(other.waiting_for).toBeUndefined()
  expect((await get(second)).reason).toBe('waits for the key deploy-prod')
  expect(
    (await queue()).map(({ state, waiting_for }: Job & { state: string; waiting_for: string }) => [state, waiting_for]),
  ).toEqual([
    ['waiting', null],
    ['blocked', waits(first)],
    ['blocked', third.waiting_for],
    ['waiting', null],
  ])
  expect(await one.begin()).toEqual([first.run_id, other.run_id])
  expect(await one.begin()).toEqual([])
  await one.tell(first.run_id, 'running')
  expect(await one.begin()).toEqual([])
  await one.tell(first.run_id, 'completed')
  expect(await one.begin()).toEqual([second.run_id])
  expect((await get(second)).reason).toBeNull()
  await one.tell(second.run_id, 'failed')
  expect(await one.begin()).toEqual([third.run_id])
})

test('runs have their turns in the order in which they came, although the clock was set back', async () => {
  const one = await daemon()
  const first = await dispatch()
  await hub.skew(86_400_000)
  const second = await dispatch()
  await hub.skew(0)
  const third = await dispatch()
  expect(third.waiting_for).toBe(`${waits(first)}, and 1 run that waits before it`)
  expect(await one.begin()).toEqual([first.run_id])
  await one.tell(first.run_id, 'completed')
  expect(await one.begin()).toEqual([second.run_id])
  await one.tell(second.run_id, 'completed')
  expect(await one.begin()).toEqual([third.run_id])
})

test('a limit of two, and each run goes by the limit of its own team', async () => {
  const one = await daemon()
  const [first, second, third, alone] = [
    await dispatch('two'),
    await dispatch('two'),
    await dispatch('two'),
    await dispatch(),
  ]
  expect(await one.begin()).toEqual([first.run_id, second.run_id])
  await one.tell(second.run_id, 'completed', 1, 'two')
  expect(await one.begin()).toEqual([third.run_id])
  await one.tell(first.run_id, 'completed', 1, 'two')
  expect(await one.begin()).toEqual([])
  await one.tell(third.run_id, 'completed', 1, 'two')
  expect(await one.begin()).toEqual([alone.run_id])
})

test('a key that is no short text is refused', async () => {
  const call = { realm_id: realm, team: '@admin/deploy', inputs: { env: 'x'.repeat(300) } }
  const { status, error } = await hub.call(hub.admin, 'dispatch/run', call)
  expect([status, error.message]).toEqual([400, expect.stringContaining('must be text of 1 to 200 characters')])
})

test('a run that is cancelled while it waits, or waits too long, ends and lets the next one pass', async () => {
  const one = await daemon()
  const first = await dispatch()
  const second = await dispatch()
  const third = await dispatch('deploy', { queue_timeout: '1m' })
  const fourth = await dispatch()
  expect((await order('cancel', second)).data.state).toBe('cancelled')
  expect(await get(second)).toMatchObject({ state: 'cancelled', reason: 'cancelled' })
  await hub.skew(61_000)
  await until(async () => (await get(third)).state === 'failed', 'the queue_timeout passes')
  await hub.skew(0)
  expect((await get(third)).reason).toBe('queue_timeout')
  expect((await queue()).map((job: Job) => job.run_id)).toEqual([first.run_id, fourth.run_id])
  // The one that has the place may end in the queue as well.
  await order('cancel', first)
  expect(await one.begin()).toEqual([fourth.run_id])
})

test('a run that its daemon refuses gives up its place', async () => {
  const one = await daemon()
  const [first, second] = [await dispatch(), await dispatch()]
  const [job] = await one.poll()
  expect((await one.ack(job!, 'failed', 'no')).status).toBe(200)
  expect((await get(first)).state).toBe('failed')
  expect(await one.begin()).toEqual([second.run_id])
})

test('skip: a run that finds its key full is cancelled at once, with the reason', async () => {
  const one = await daemon()
  const first = await dispatch()
  const second = await dispatch('skip')
  expect([second.state, second.waiting_for]).toEqual(['cancelled', undefined])
  expect(await get(second)).toMatchObject({
    state: 'cancelled',
    reason: 'skipped',
    error: { message: `run ${first.run_id} held the key deploy-prod, and the team says \`when_full: skip\`` },
  })
  expect(await one.begin()).toEqual([first.run_id])
  await one.tell(first.run_id, 'completed')
  const third = await dispatch('skip')
  expect([third.state, await one.begin()]).toEqual(['queued', [third.run_id]])
})

test('cancel_oldest: whoever is in the way is cancelled, in the queue at once and on a daemon by an order', async () => {
  const one = await daemon()
  const first = await dispatch('newest')
  expect(await one.begin()).toEqual([first.run_id])
  const second = await dispatch('newest')
  expect(second.waiting_for).toBe(waits(first))
  const reason = `superseded by run ${second.run_id}`
  const [cancel, ...more] = await one.poll()
  expect([more, cancel]).toMatchObject([[], { kind: 'cancel', run_id: first.run_id, payload: { reason } }])
  // The one before it is asked once, and the one that waits makes room for the newest.
  const third = await dispatch('newest')
  expect((await get(second)).state).toBe('cancelled')
  expect(await one.poll()).toEqual([])
  await one.ack(cancel!, 'done')
  await one.tell(first.run_id, 'cancelled', 1, 'newest')
  expect(await one.begin()).toEqual([third.run_id])
})

test('a run that was asked to end is not asked again for a newer one', async () => {
  const one = await daemon()
  const first = await dispatch('newest')
  await one.begin()
  await order('cancel', first)
  await dispatch('newest')
  expect((await one.poll()).map(({ kind, payload }) => [kind, payload])).toEqual([['cancel', {}]])
})

test('a run whose daemon is silent for five minutes does not count, and counts again when the daemon is back', async () => {
  const [one, two] = [await daemon(), await daemon()]
  const first = await dispatch()
  expect(await one.begin()).toEqual([first.run_id])
  await one.tell(first.run_id, 'running')
  const [second, third] = [await dispatch(), await dispatch()]
  await hub.skew(301_000)
  try {
    await hub.flush()
    await until(async () => (await two.begin())[0] === second.run_id, 'the second run passes the first one')
    expect((await get(first)).state).toBe('crashed')
    await one.tell(first.run_id, 'running')
    await hub.flush()
    await two.tell(second.run_id, 'completed')
    expect([await one.begin(), await two.begin()]).toEqual([[], []])
    await one.tell(first.run_id, 'completed')
    expect(await one.begin()).toEqual([third.run_id])
  } finally {
    await hub.skew(0)
  }
})

test('a resumed run waits for its turn, and a resumption that comes to nothing frees the key', async () => {
  const one = await daemon()
  const [first, second] = [await dispatch(), await dispatch()]
  await one.begin()
  await one.tell(first.run_id, 'failed')
  expect(await one.begin()).toEqual([second.run_id])
  const third = await dispatch()
  expect((await order('resume', first)).status).toBe(200)
  expect(await one.poll()).toEqual([])
  expect((await queue()).map((job: Job & { waiting_for: string }) => [job.run_id, job.kind, job.waiting_for])).toEqual([
    [third.run_id, 'run', waits(second)],
    [first.run_id, 'resume', `${waits(second)}, and 1 run that waits before it`],
  ])
  await one.tell(second.run_id, 'completed')
  expect(await one.begin()).toEqual([third.run_id])
  const fourth = await dispatch()
  await one.tell(third.run_id, 'completed')
  const [resume] = await one.poll()
  expect([resume!.kind, resume!.run_id]).toEqual(['resume', first.run_id])
  await one.ack(resume!, 'done')
  await one.tell(first.run_id, 'running', 2)
  expect(await one.poll()).toEqual([])
  // The report of the first attempt is repeated by nobody, and its place belongs to the second.
  await one.tell(first.run_id, 'failed', 2)
  expect(await one.begin()).toEqual([fourth.run_id])
  await one.tell(fourth.run_id, 'completed')
  await order('resume', first)
  const [refused] = await one.poll()
  const fifth = await dispatch()
  expect(await one.poll()).toEqual([])
  await one.ack(refused!, 'failed', 'its secret inputs are gone')
  expect(await one.begin()).toEqual([fifth.run_id])
})

test('a resumption with `skip` that finds the key full is refused', async () => {
  const one = await daemon()
  const first = await dispatch('skip')
  await one.begin()
  await one.tell(first.run_id, 'failed', 1, 'skip')
  const second = await dispatch()
  const { status, error } = await order('resume', first)
  expect([status, error.message]).toEqual([
    409,
    expect.stringContaining(`run ${second.run_id} held the key deploy-prod`),
  ])
  expect(await one.begin()).toEqual([second.run_id])
})

test('a run that was resumed on its own machine counts without having waited', async () => {
  const one = await daemon()
  const first = await dispatch()
  await one.begin()
  await one.tell(first.run_id, 'failed')
  await one.tell(first.run_id, 'running', 2)
  const second = await dispatch()
  expect(second.waiting_for).toBe(waits(first))
  await one.tell(first.run_id, 'completed', 2)
  expect(await one.begin()).toEqual([second.run_id])
})

test('a moved run waits for the end of the old one, also with `skip`', async () => {
  const [one, two] = [await daemon(), await daemon()]
  const first = await dispatch('skip', { daemon_id: one.daemon_id })
  await one.begin()
  await one.tell(first.run_id, 'running', 1, 'skip')
  const { data: moved } = await order('move', first, { daemon_id: two.daemon_id })
  expect(await two.begin()).toEqual([])
  await one.tell(first.run_id, 'cancelled', 1, 'skip')
  expect(await two.begin()).toEqual([moved.run_id])
})

test('of dispatches at the same moment no more begin than the limit allows, while others end', async () => {
  const one = await daemon()
  const runs = await Promise.all(Array.from({ length: 12 }, () => dispatch('two')))
  const left = new Set(runs.map(({ run_id }) => run_id))
  let more = 6
  while (left.size > 0) {
    const begun = await one.begin()
    expect(begun.length).toBeGreaterThan(0)
    expect(begun.length).toBeLessThanOrEqual(2)
    const states = (await queue()).map((job: Job & { state: string }) => job.state)
    expect(new Set(states)).toEqual(new Set(states.length > 0 ? ['blocked'] : []))
    // Ends and dispatches meet.
    const dispatches = more > 0 ? [dispatch('two'), dispatch('two')] : []
    more -= dispatches.length
    const ends = (async () => {
      for (const id of begun) await one.tell(id, 'completed', 1, 'two')
    })()
    for (const { run_id } of await Promise.all(dispatches)) left.add(run_id)
    await ends
    for (const id of begun) left.delete(id)
  }
  const { concurrencyKeys } = hub.store
  const open = (await hub.store.db.select().from(concurrencyKeys)).filter(
    row => row.realm_id === realm && row.state !== 'ended',
  )
  expect(open).toEqual([])
})

test('a key with a NUL character is refused with the place in the team', async () => {
  const body = { realm_id: realm, team: '@admin/deploy', inputs: { env: 'a\0b' } }
  const { status, error } = await hub.call(hub.admin, 'dispatch/run', body)
  expect([status, error.message]).toEqual([400, expect.stringMatching(/^concurrency\.key:1:8: .* NUL character$/)])
})
