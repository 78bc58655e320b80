// A dispatched run is held until the hub has answered that it belongs to the daemon, and orders about runs are carried
// out once: with real daemons, a real hub, and a network between them that loses calls.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { until } from '../support/bounded.ts'
import { command, type SpawnOptions, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type Front, startFront } from '../support/front.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { openHome } from '../support/sandbox.ts'
import { type ServedDaemon, serveDaemon } from '../support/served-daemon.ts'

const LEASE_MS = 60_000

let hub: TestHub
let token: string
let skewed = 0

beforeAll(async () => {
  hub = await startTestHub()
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  await hub.addTeam(`
name: "@admin/trace"
version: 1.0.0
inputs: [{ name: file, type: string, required: true }]
phases:
  - { name: write, agent: exec, commands: [{ name: w, env: { FILE: "{{ inputs.file }}" }, run: 'echo begun >> "$FILE"' }] }
`)
  await hub.addTeam(`
name: "@admin/tidy"
version: 1.0.0
inputs: [{ name: file, type: string, required: true }]
phases:
  - { name: work, agent: exec, commands: [{ name: w, env: { FILE: "{{ inputs.file }}" }, run: 'echo begun >> "$FILE"; sleep 60' }] }
  - { name: tidy, agent: exec, always: true, depends_on: [work], commands: [{ name: t, env: { FILE: "{{ inputs.file }}" }, run: 'sleep 2; echo tidied >> "$FILE"' }] }
`)
  await hub.addTeam(`
name: "@admin/ask"
version: 1.0.0
inputs: [{ name: file, type: string, required: true }]
phases:
  - { name: ask, type: gate, review: { prompt: Go on?, inputs: [{ name: why }] } }
`)
})
afterAll(() => hub.stop())

/** Lets the leases of all daemons lapse that do not renew them. */
async function passLease(): Promise<void> {
  skewed += LEASE_MS + 1_000
  await hub.skew(skewed)
}

let daemons = 0
interface Enrolment {
  home?: string
  name?: string
  slots?: number
}
const enrolled = (url: string, options: Enrolment = {}) => enrolledBy(serveDaemon, url, options)
const killable = (url: string, options: Enrolment = {}) => enrolledBy(spawnDaemon, url, options)

async function enrolledBy<D>(start: (options: SpawnOptions) => Promise<D>, url: string, options: Enrolment) {
  const name = options.name ?? `daemon-${++daemons}`
  const daemon = await start({
    home: options.home ?? openHome(),
    env: {
      CADRE_HUB_URL: url,
      CADRE_REALM_TOKEN: token,
      CADRE_DAEMON_NAME: name,
      ...(options.slots !== undefined && { CADRE_SLOTS: String(options.slots) }),
    },
  })
  const { daemons: all } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })
  const id = all.find((each: { name: string }) => each.name === name).daemon_id as string
  return { daemon, id, name }
}

const leave = async (id: string, daemon: Pick<ServedDaemon, 'stop'>) => {
  await daemon.stop()
  await hub.ok(hub.admin, 'daemons/remove', { daemon_id: id })
}

const dispatch = (daemon_id: string, team: string, file: string) =>
  hub.ok(hub.admin, 'dispatch/run', { daemon_id, team, inputs: { file } }) as Promise<{
    run_id: string
    job_id: string
  }>

const traceFile = () => join(folder(), 'trace.txt')
const lines = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
const onHub = async (run_id: string) => (await hub.ok(hub.admin, 'runs/get', { run_id })) as { state: string }
const becomes = (run_id: string, state: string) =>
  until(async () => (await onHub(run_id)).state === state, `the run becomes ${state} on the hub`)
const isHere = async ({ post }: ServedDaemon, run_id: string) => (await post('/v1/runs/get', { run_id })).status === 200

const acks = ({ seen }: Front, status: string) =>
  seen.filter(({ path, body }) => path === '/v1/daemons/ack' && body.status === status)

test('nothing of a run executes before the hub has answered, however often it has to be asked', async () => {
  await using front = startFront(hub.url)
  const { daemon, id } = await enrolled(front.url)
  front.loses = ({ path }) => (path === '/v1/daemons/ack' ? 'request' : null)
  const file = traceFile()
  const { run_id } = await dispatch(id, '@admin/trace', file)
  await until(() => acks(front, 'accepted').length >= 3, 'three questions')
  expect([lines(file), await isHere(daemon, run_id), (await onHub(run_id)).state]).toEqual([[], false, 'queued'])
  front.loses = () => null
  await becomes(run_id, 'completed')
  expect(lines(file)).toEqual(['begun'])
  await leave(id, daemon)
})

test('a daemon that was cut off drops the run that another one has got meanwhile', async () => {
  await using front = startFront(hub.url)
  const cut = await enrolled(front.url)
  const other = await enrolled(hub.url)
  const file = traceFile()
  let dark = false
  front.loses = ({ path }) => {
    // Everything is lost from the first question on, so the lease is not renewed either.
    dark ||= path === '/v1/daemons/ack'
    return dark ? 'request' : null
  }
  const { run_id, job_id } = await dispatch(cut.id, '@admin/trace', file)
  await until(() => dark, 'the first question')
  const { jobs } = hub.store
  await hub.store.write(tx => tx.update(jobs).set({ daemon_id: null }).where(eq(jobs.id, job_id)))
  await passLease()
  await becomes(run_id, 'completed')
  expect(lines(file)).toEqual(['begun'])
  front.loses = () => null
  const asked = acks(front, 'accepted').length
  await until(() => acks(front, 'accepted').length > asked, 'the question after the cut')
  await until(() => cut.daemon.output.stderr.includes('a held run was dropped'), 'the run is dropped')
  expect([lines(file), await isHere(cut.daemon, run_id), await isHere(other.daemon, run_id)]).toEqual([
    ['begun'],
    false,
    true,
  ])
  await leave(cut.id, cut.daemon)
  await leave(other.id, other.daemon)
})

test('after kill -9 a held run asks first: it begins if the hub agreed, and is dropped if the lease is over', async () => {
  for (const lost of ['reply', 'request'] as const) {
    await using front = startFront(hub.url)
    const { daemon, id, name } = await killable(front.url)
    front.loses = ({ path }) => (path === '/v1/daemons/ack' ? lost : null)
    const file = traceFile()
    const { run_id, job_id } = await dispatch(id, '@admin/trace', file)
    await until(() => acks(front, 'accepted').length > 0, 'the first question')
    await daemon.kill('SIGKILL')
    expect(lines(file)).toEqual([])
    if (lost === 'request') {
      const { jobs } = hub.store
      const gone = { state: 'cancelled' as const, lease_id: crypto.randomUUID() }
      await hub.store.write(tx => tx.update(jobs).set(gone).where(eq(jobs.id, job_id)))
    }
    const before = acks(front, 'accepted').length
    front.loses = () => null
    const again = await enrolled(front.url, { home: daemon.home, name })
    await until(() => acks(front, 'accepted').length > before, 'the question after the restart')
    if (lost === 'reply') await becomes(run_id, 'completed')
    else await until(() => again.daemon.output.stderr.includes('a held run was dropped'), 'the run is dropped')
    expect(lines(file)).toEqual(lost === 'reply' ? ['begun'] : [])
    await leave(id, again.daemon)
  }
}, 60_000)

/** This daemon, which has begun a run of which the clean-up leaves a line. */
async function working<D>(begun: { daemon: D; id: string; name: string }) {
  const file = traceFile()
  const { run_id } = await dispatch(begun.id, '@admin/tidy', file)
  await until(() => lines(file).length === 1, 'the work')
  return { ...begun, file, run_id }
}

test('a cancel that is delivered twice is one cancel, and is answered twice', async () => {
  await using front = startFront(hub.url)
  const { daemon, id, file, run_id } = await working(await killable(front.url))
  // The first answer arrives nowhere, so the hub delivers the cancel again. A second cancel would end the clean-up.
  let lost = 0
  front.loses = ({ path, body }) =>
    path === '/v1/daemons/heartbeat' || (path === '/v1/daemons/ack' && body.status === 'done' && lost++ === 0)
      ? 'request'
      : null
  const { job_id } = await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  await until(() => lost > 0, 'the first answer')
  await daemon.kill('SIGKILL')
  await passLease()
  front.loses = () => null
  const again = await enrolled(front.url, { home: daemon.home, name: `daemon-${daemons}` })
  const { jobs, db } = hub.store
  const job = async () => (await db.select().from(jobs).where(eq(jobs.id, job_id)))[0]!
  await until(async () => (await job()).state === 'done', 'the cancel is answered')
  await becomes(run_id, 'cancelled')
  expect([lines(file), (await job()).error]).toEqual([['begun', 'tidied'], null])
  await leave(id, again.daemon)
}, 60_000)

test('a daemon with more slots than a poll may ask for gets runs', async () => {
  const { daemon, id } = await enrolled(hub.url, { slots: 1_001 })
  const { run_id } = await dispatch(id, '@admin/trace', traceFile())
  await becomes(run_id, 'completed')
  await leave(id, daemon)
}, 60_000)

/** Calls a command about the hub as somebody who is signed in elsewhere. */
async function elsewhere(...args: string[]) {
  const { token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'elsewhere' })
  return command([...args, '--hub', hub.url], { home: folder(), env: { CADRE_API_KEY: token } })
}

const cancel = (run_id: string) =>
  hub.ok(hub.admin, 'dispatch/cancel', { run_id }) as Promise<{ job_id: string; already_waits?: boolean }>

test('cancels that wait for a daemon that is away are one cancel, and do not stop its clean-up', async () => {
  const { daemon, id, name, file, run_id } = await working(await killable(hub.url))
  await becomes(run_id, 'running')
  await daemon.kill('SIGKILL')
  const first = await elsewhere('cancel', run_id)
  expect([first.code, first.stderr]).toEqual([0, expect.stringMatching(/^cancelling; its daemon ends it: .* watch /)])
  const second = await elsewhere('cancel', run_id)
  expect([second.code, second.stderr]).toEqual([
    0,
    expect.stringMatching(
      /^a cancel already waits for the daemon of the run, which ends it: .* watch \S+ --hub \S+\n$/,
    ),
  ])
  const again = await enrolled(hub.url, { home: daemon.home, name })
  await becomes(run_id, 'cancelled')
  expect(lines(file).at(-1)).toBe('tidied')
  await leave(id, again.daemon)
}, 60_000)

test('a cancel that was delivered and not answered counts once, and one after it was carried out stops the clean-up', async () => {
  await using front = startFront(hub.url)
  const { daemon, id, file, run_id } = await working(await enrolled(front.url))
  front.loses = ({ path, body }) => (path === '/v1/daemons/ack' && body.status === 'done' ? 'request' : null)
  const first = await cancel(run_id)
  expect(first.already_waits).toBeUndefined()
  await until(() => acks(front, 'done').length > 0, 'the answer')
  expect(await cancel(run_id)).toMatchObject({ job_id: first.job_id, already_waits: true })
  front.loses = () => null
  const { jobs, db } = hub.store
  const isAnswered = async (job_id: string) =>
    (await db.select().from(jobs).where(eq(jobs.id, job_id)))[0]!.state === 'done'
  await until(() => isAnswered(first.job_id), 'the cancel is answered')
  await becomes(run_id, 'cancelled')
  expect(lines(file)).toEqual(['begun', 'tidied'])

  const other = traceFile()
  const { run_id: next } = await dispatch(id, '@admin/tidy', other)
  await until(() => lines(other).length === 1, 'the work')
  const { job_id } = await cancel(next)
  await until(() => isAnswered(job_id), 'the cancel is answered')
  const second = await cancel(next)
  expect([second.job_id === job_id, second.already_waits]).toEqual([false, undefined])
  await becomes(next, 'cancelled')
  expect(lines(other)).toEqual(['begun'])
  await leave(id, daemon)
}, 60_000)

test('a decision for a daemon that is away waits for it, and no other one is taken meanwhile', async () => {
  const { daemon, id, name } = await killable(hub.url)
  const { run_id } = await dispatch(id, '@admin/ask', traceFile())
  const [review] = await until(async () => {
    const { reviews } = await hub.ok(hub.admin, 'reviews/list', { run_id })
    return reviews.length > 0 && reviews
  }, 'the review')
  await daemon.kill('SIGKILL')
  const decide = async (...args: string[]) => {
    const { code, stderr } = await elsewhere('decide', review.id, ...args)
    return [code, stderr]
  }
  const approve = ['approve', '--values', '{"why":"it is"}']
  expect(await decide(...approve)).toEqual([
    0,
    expect.stringMatching(/^decided: approve ask\nits daemon gets the decision: .* watch \S+ --hub \S+\n$/),
  ])
  expect(await decide(...approve)).toEqual([
    0,
    expect.stringMatching(
      /^decided: approve ask\nthis decision already waits for its daemon: .* watch \S+ --hub \S+\n$/,
    ),
  ])
  const first = 'admin has decided approve, and this decision waits for the daemon of the run'
  expect(await decide('reject')).toEqual([2, expect.stringContaining(first)])
  const again = await enrolled(hub.url, { home: daemon.home, name })
  await becomes(run_id, 'completed')
  await leave(id, again.daemon)
}, 60_000)

test('a run that is cancelled while it is held never begins', async () => {
  await using front = startFront(hub.url)
  const { daemon, id } = await enrolled(front.url)
  front.loses = ({ path }) => (path === '/v1/daemons/ack' ? 'request' : null)
  const file = traceFile()
  const { run_id } = await dispatch(id, '@admin/trace', file)
  await until(() => acks(front, 'accepted').length > 0, 'the first question')
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  front.loses = () => null
  await becomes(run_id, 'cancelled')
  await until(() => daemon.output.stderr.includes('a held run was dropped'), 'the run is dropped')
  expect([lines(file), await isHere(daemon, run_id)]).toEqual([[], false])
  await leave(id, daemon)
})

test('a daemon without a free slot still takes orders about its runs', async () => {
  const { daemon, id } = await enrolled(hub.url, { slots: 1 })
  const file = traceFile()
  const { run_id } = await dispatch(id, '@admin/tidy', file)
  await until(() => lines(file).length === 1, 'the work')
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  await becomes(run_id, 'cancelled')
  expect(lines(file)).toEqual(['begun', 'tidied'])
  await leave(id, daemon)
})
