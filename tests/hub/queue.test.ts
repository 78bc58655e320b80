// The queue against a model: random daemons take, accept, fall silent, answer late, while time jumps. A job runs at most
// once at a time, is never lost while it may still be delivered, and is never accepted twice.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import fc from 'fast-check'
import { CadreError } from '../../lib/error.ts'
import { enqueueJob, LEASE_MS, recordAnswers } from '../../lib/hub/queue/jobs.ts'
import { giveUpJobs, MOST_DELIVERIES, realmsToSweep } from '../../lib/hub/queue/undeliverable-jobs.ts'
import { claim } from '../support/claims.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

interface Model {
  state: 'waiting' | 'leased' | 'accepted' | 'done' | 'failed' | 'dead'
  holder: string | null
  lease: string | null
  until: number
  deliveries: number
  pin: string | null
}

const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant('add' as const), pin: fc.option(fc.constantFrom('d1', 'd2')) }),
    fc.record({
      kind: fc.constant('claim' as const),
      by: fc.constantFrom('d1', 'd2', 'd3'),
      slots: fc.integer({ min: 0, max: 3 }),
    }),
    fc.record({
      kind: fc.constant('answer' as const),
      by: fc.constantFrom('d1', 'd2', 'd3'),
      about: fc.array(
        fc.record({
          job: fc.nat(5),
          status: fc.constantFrom('accepted' as const, 'done' as const, 'failed' as const),
          stale: fc.boolean(),
        }),
        { minLength: 1, maxLength: 4 },
      ),
    }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.constantFrom(1_000, LEASE_MS - 1, LEASE_MS) }),
    fc.record({ kind: fc.constant('sweep' as const) }),
  ),
  { maxLength: 40 },
)

test('random histories agree with the model', async () => {
  const { store } = hub
  await fc.assert(
    fc.asyncProperty(steps, async history => {
      const { id: realm } = await hub.ok(hub.admin, 'realms/create', {
        org_id: 1,
        slug: `r${crypto.randomUUID()}`,
        name: 'x',
      })
      const jobs = new Map<string, Model>()
      const leases: string[] = []
      let now = 1_000_000
      const lapsed = (job: Model) => job.state === 'leased' && job.until <= now
      for (const step of history) {
        if (step.kind === 'pass') now += step.ms
        else if (step.kind === 'add') {
          const row = await store.write(async tx => {
            const run_id = crypto.randomUUID()
            const place = { root_run_id: run_id, call_path: ['t'], call_depth: 0, tree_key: '', team: 't' }
            await tx
              .insert(store.runs)
              .values({ run_id, realm_id: realm, ...place, state: 'queued', inputs: {}, attempt: 0, created_at: now })
            const job = {
              realm_id: realm,
              run_id,
              kind: 'run' as const,
              payload: {},
              created_by: 1,
              daemon_id: step.pin,
            }
            return enqueueJob(store, tx, job, now)
          })
          jobs.set(row.id, { state: 'waiting', holder: null, lease: null, until: 0, deliveries: 0, pin: step.pin })
        } else if (step.kind === 'sweep') {
          await store.write(tx => giveUpJobs(store, tx, realm, now))
          for (const job of jobs.values()) {
            if ((job.state === 'waiting' || lapsed(job)) && job.deliveries >= MOST_DELIVERIES) job.state = 'dead'
          }
        } else if (step.kind === 'claim') {
          const taker = { id: step.by, realm_id: realm, workspaces: [], labels: null, agents: [], paused: false }
          const rows = await store.write(tx => claim(store, tx, taker, step.slots, now))
          const open = [...jobs.values()].filter(
            job => (job.state === 'waiting' || lapsed(job)) && (job.pin === null || job.pin === step.by),
          )
          expect(rows).toHaveLength(Math.min(step.slots, open.length))
          for (const row of rows) {
            const job = jobs.get(row.id)!
            expect(open).toContain(job)
            Object.assign(job, { state: 'leased', holder: step.by, lease: row.lease_id, until: now + LEASE_MS })
            job.deliveries++
            leases.push(row.lease_id!)
            expect(row).toMatchObject({ deliveries: job.deliveries, lease_until: job.until })
          }
        } else {
          // Answers of one call, also several about one job, count as if each had come alone.
          const given = step.about.flatMap(({ job: at, status, stale }) => {
            const [id, job] = [...jobs][at] ?? []
            const leaseId = stale ? leases.find(each => each !== job?.lease) : job?.lease
            return id && job && leaseId ? [{ jobId: id, leaseId, status, job }] : []
          })
          const by = { id: step.by, realm_id: realm }
          const verdicts = await store.write(tx => recordAnswers(store, tx, by, given, now))
          for (const [at, { job, leaseId, status }] of given.entries()) {
            const ended = ['done', 'failed', 'dead'].includes(job.state)
            const legal = job.holder === step.by && leaseId === job.lease && (!ended || job.state === status)
            expect(verdicts[at] instanceof CadreError).toBe(!legal)
            if (legal) job.state = status
          }
        }
      }
      const rows = await store.db.select().from(store.jobs)
      for (const row of rows.filter(each => each.realm_id === realm)) expect(row.state).toBe(jobs.get(row.id)!.state)
    }),
    { numRuns: 60 },
  )
})

test('a cancel is not given to a daemon that has not accepted the run, and keeps the run from the others', async () => {
  const { store, realm } = hub
  const taker = (id: string) => ({ id, realm_id: realm, workspaces: [], labels: null, agents: [], paused: false })
  const run_id = crypto.randomUUID()
  const place = { root_run_id: run_id, call_path: ['t'], call_depth: 0, tree_key: '', team: 't', inputs: {} }
  const row = { run_id, realm_id: realm, ...place, state: 'queued' as const, attempt: 0, created_at: 1 }
  const order = { realm_id: realm, run_id, payload: {}, created_by: 1 }
  const found = await store.write(async tx => {
    await tx.insert(store.runs).values(row)
    const { id } = await enqueueJob(store, tx, { ...order, kind: 'run' }, 1)
    // The reply is lost, so the daemon does not know the run.
    await claim(store, tx, taker('d1'), 1, 1)
    await enqueueJob(store, tx, { ...order, kind: 'cancel', daemon_id: 'd1' }, 2)
    expect(await claim(store, tx, taker('d1'), 1, 3)).toEqual([])
    const lost = await giveUpJobs(store, tx, realm, LEASE_MS + 1)
    expect(await claim(store, tx, taker('d2'), 1, LEASE_MS + 1)).toEqual([])
    return { id, lost }
  })
  expect(found.lost).toMatchObject([{ job: { id: found.id }, cancelled: true }])
})

test('the chore finds a cancelled run that was delivered with its order, and of which the daemon is gone', async () => {
  const { store } = hub
  const { id: realm_id } = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'gone', name: 'x' })
  const run_id = crypto.randomUUID()
  const order = { realm_id, run_id, payload: {}, created_by: 1 }
  const { jobs, runs } = store
  const place = { call_path: ['t'], call_depth: 0, tree_key: '', team: 't', inputs: {}, attempt: 0, created_at: 1 }
  await store.write(async tx => {
    await tx.insert(runs).values({ run_id, root_run_id: run_id, realm_id, ...place, state: 'queued' })
    for (const kind of ['run', 'cancel'] as const) await enqueueJob(store, tx, { ...order, kind, daemon_id: 'd1' }, 1)
    // Earlier versions delivered both.
    await tx.update(jobs).set({ state: 'leased', lease_until: LEASE_MS }).where(eq(jobs.realm_id, realm_id))
  })
  expect(await realmsToSweep(store, LEASE_MS - 1)).not.toContain(realm_id)
  expect(await realmsToSweep(store, LEASE_MS)).toContain(realm_id)
  const lost = await store.write(tx => giveUpJobs(store, tx, realm_id, LEASE_MS))
  expect(lost).toMatchObject([{ job: { run_id }, cancelled: true }])
  expect(await realmsToSweep(store, LEASE_MS)).not.toContain(realm_id)
})

test('a sweep gives up all jobs that waited too long, however many', async () => {
  const { store, realm } = hub
  const place = { call_path: ['t'], call_depth: 0, tree_key: '', team: 't', inputs: {}, attempt: 0, created_at: 1 }
  const ids = Array.from({ length: 230 }, () => crypto.randomUUID() as string)
  const rows = ids.map(id => ({ run_id: id, root_run_id: id, realm_id: realm, ...place, state: 'queued' }))
  const job = { realm_id: realm, kind: 'run' as const, payload: {}, created_by: 1, expires_at: 1_000 }
  await store.write(async tx => {
    await tx.insert(store.runs).values(rows)
    for (const run_id of ids) await enqueueJob(store, tx, { ...job, run_id }, 1)
    expect(await giveUpJobs(store, tx, realm, 999)).toEqual([])
    const lost = await giveUpJobs(store, tx, realm, 1_000)
    expect(lost.map(each => each.job.run_id).sort()).toEqual(ids.sort())
    expect(await giveUpJobs(store, tx, realm, 1_000)).toEqual([])
  })
})
