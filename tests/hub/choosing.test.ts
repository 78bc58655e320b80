// Which daemon gets a job: labels, agents and pauses decide, and a job that nobody may take says what is missing.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type ClaimingDaemon, claimableJobs } from '../../lib/hub/queue/claims.ts'
import { enqueueJob } from '../../lib/hub/queue/jobs.ts'
import { claim } from '../support/claims.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let realm: string
let token: string

const ASK = 'phases:\n  - { name: ask, type: gate, review: { prompt: "Go on?" } }\n'
const READ =
  'phases:\n  - { name: read, agent: helpdesk, action: get_ticket, sources: [{ name: ticket.json, ref: 1 }] }\n'

beforeAll(async () => {
  hub = await startTestHub()
  await publish('plain', ASK)
  await publish('labelled', `requires: { labels: [gpu, region=eu] }\n${ASK}`)
  await publish('reads', READ)
  await publish('strict', `requires: { agents: { helpdesk: ">=1.0.0" } }\n${READ}`)
})
afterAll(() => hub.stop())

beforeEach(async () => {
  const slug = `r${crypto.randomUUID()}`
  realm = (await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug, name: 'choosing' })).id
  for (const name of ['plain', 'labelled', 'reads', 'strict'])
    await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm, team: `@admin/${name}` })
  token = (await hub.realmToken(hub.admin, realm)).token
})

async function publish(name: string, rest: string) {
  const text = `name: "@admin/${name}"\nversion: 1.0.0\n${rest}`
  await hub.ok(hub.admin, 'teams/publish', { files: [{ path: 'team.yml', content_base64: btoa(text) }] })
}

async function daemon(name: string, offer: object = {}) {
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name, ...offer })
  const take = async (slots = 10): Promise<string[]> => {
    const { jobs } = await hub.ok(token, 'daemons/poll', { daemon_id, slots, wait_ms: 0 })
    return jobs.map((job: { run_id: string }) => job.run_id)
  }
  return { daemon_id, take, tell: (offer: object) => hub.ok(token, 'daemons/heartbeat', { daemon_id, ...offer }) }
}

const dispatch = (team: string, more: object = {}) =>
  hub.ok(hub.admin, 'dispatch/run', { realm_id: realm, team: `@admin/${team}`, ...more })

const agent = (doctor?: string, version = '1.2.0') => ({ name: 'helpdesk', version, ...(doctor && { doctor }) })

test('a job goes to a daemon with every label that its team and its dispatch require', async () => {
  const one = await daemon('one', { labels: { os: 'linux' } })
  const two = await daemon('two', { labels: { gpu: 'yes', region: 'eu', os: 'linux' } })
  const three = await daemon('three', { labels: { gpu: 'yes', region: 'eu', os: 'darwin' } })
  const { run_id, waiting_for } = await dispatch('labelled', { requires: { labels: { os: 'darwin' } } })
  expect(waiting_for).toBeUndefined()
  expect(await one.take()).toEqual([])
  expect(await two.take()).toEqual([])
  expect(await three.take()).toEqual([run_id])
})

test('a job that no daemon may take says what is missing, and goes to one that gets it', async () => {
  const one = await daemon('one', { labels: { gpu: 'no' } })
  await daemon('two')
  const { run_id, waiting_for } = await dispatch('plain', { requires: { labels: { gpu: true } } })
  expect(waiting_for).toBe('a daemon with label gpu=yes; online are one, two')
  expect((await hub.ok(hub.admin, 'dispatch/queue', { realm_id: realm })).jobs).toMatchObject([{ waiting_for }])
  expect(await one.take()).toEqual([])
  await one.tell({ labels: { gpu: 'yes' } })
  expect((await hub.ok(hub.admin, 'dispatch/queue', { realm_id: realm })).jobs).toMatchObject([{ waiting_for: null }])
  expect(await one.take()).toEqual([run_id])
})

test('a job waits for nothing when one of many daemons may take it, whichever that is', async () => {
  const many = await Promise.all(
    Array.from({ length: 25 }, (_, n) => daemon(`other ${n}`, { labels: { n: String(n) } })),
  )
  for (const n of [0, 12, 24]) {
    expect((await dispatch('plain', { requires: { labels: { n: String(n) } } })).waiting_for).toBeUndefined()
    expect((await dispatch('plain', { daemon_id: many[n]!.daemon_id })).waiting_for).toBeUndefined()
  }
  const { waiting_for } = await dispatch('plain', { requires: { labels: { n: '25' } } })
  expect(waiting_for).toStartWith('a daemon with label n=25; online are other 0')
  expect((await dispatch('labelled', { daemon_id: many[3]!.daemon_id })).waiting_for).toContain('on daemon other 3')
})

test('daemons of the same name are told by the beginning of their ids too', async () => {
  const [one, two] = [await daemon('vm'), await daemon('vm')]
  await daemon('desk')
  const gpu = { requires: { labels: { gpu: true } } }
  const named = [one, two].map(({ daemon_id }) => `vm (${daemon_id.slice(0, 8)})`).sort()
  const { waiting_for } = await dispatch('plain', gpu)
  expect(waiting_for).toBe(`a daemon with label gpu=yes; online are desk, ${named.join(', ')}`)
  const chosen = await dispatch('labelled', { daemon_id: one.daemon_id })
  expect(chosen.waiting_for).toEndWith(` on daemon vm (${one.daemon_id.slice(0, 8)})`)
})

test('what a chosen daemon lacks is said with its name', async () => {
  const one = await daemon('one')
  const { waiting_for } = await dispatch('labelled', { daemon_id: one.daemon_id })
  expect(waiting_for).toBe('label gpu=yes and label region=eu on daemon one')
  expect(await one.take()).toEqual([])
})

test('two values of one label are refused', async () => {
  const asked = { realm_id: realm, team: '@admin/labelled', requires: { labels: { gpu: 'no' } } }
  const { status, error } = await hub.call(hub.admin, 'dispatch/run', asked)
  expect([status, error.message]).toEqual([
    400,
    'label gpu is required to be yes and to be no, and no daemon can be both',
  ])
  const mistake = { ...asked, requires: { labels: ['=x'] } }
  expect((await hub.call(hub.admin, 'dispatch/run', mistake)).status).toBe(400)
})

test('an agent that phases name: a daemon that has it ready comes first', async () => {
  const without = await daemon('without', { agents: [{ name: 'exec', version: '1.0.0' }] })
  const unset = await daemon('unset', { agents: [agent('unset')] })
  const fine = await daemon('fine', { agents: [agent('fine')] })
  const first = await dispatch('reads')
  expect(await without.take()).toEqual([])
  expect(await unset.take()).toEqual([])
  expect(await fine.take()).toEqual([first.run_id])
  // Nobody else is left: the run begins where the agent is not set up, and says there what it lacks.
  await hub.ok(hub.admin, 'daemons/update', { daemon_id: fine.daemon_id, paused: true })
  const second = await dispatch('reads')
  expect(await without.take()).toEqual([])
  expect(await unset.take()).toEqual([second.run_id])
})

test('an agent that is required by name must be ready, in a version of the range', async () => {
  const one = await daemon('one', { agents: [agent('wrong')] })
  const { run_id, waiting_for } = await dispatch('strict')
  expect(waiting_for).toBe('a daemon with agent helpdesk >=1.0.0; online is one')
  expect(await one.take()).toEqual([])
  await one.tell({ agents: [agent('fine', '0.9.0')] })
  expect(await one.take()).toEqual([])
  await one.tell({ agents: [agent('fine')] })
  expect(await one.take()).toEqual([run_id])
})

test('a paused daemon takes no run and no resumption, keeps what it has, and still gets orders', async () => {
  const one = await daemon('one')
  const first = await dispatch('plain')
  const { jobs } = await hub.ok(token, 'daemons/poll', { daemon_id: one.daemon_id, slots: 1, wait_ms: 0 })
  const { job_id, lease_id } = jobs[0]
  expect(await hub.ok(hub.admin, 'daemons/update', { daemon_id: one.daemon_id, paused: true })).toMatchObject({
    paused: true,
    status: 'online',
  })
  const ack = { daemon_id: one.daemon_id, job_id, lease_id }
  await hub.ok(token, 'daemons/ack', { ...ack, status: 'accepted' })
  const second = await dispatch('plain')
  expect(second.waiting_for).toBe('daemon one, which an operator has paused (daemons/update with `paused: false`)')
  expect(await one.take()).toEqual([])
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id: first.run_id })
  expect(await one.take()).toEqual([first.run_id])
  // Registering again, as each start does, does not end the pause.
  await hub.ok(token, 'daemons/register', { daemon_id: one.daemon_id, name: 'one' })
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: realm })
  expect(daemons).toMatchObject([{ paused: true }])
  expect(await one.take()).toEqual([])
  await hub.ok(hub.admin, 'daemons/update', { daemon_id: one.daemon_id, paused: false })
  expect(await one.take()).toEqual([second.run_id])
})

test('a job waits for the only daemon whose disk is full, or whose process hangs, and says so', async () => {
  const full = await daemon('full')
  // Calls go to the hubs in turn, and each has to hear it, as they do of a daemon that polls every second.
  const poll = async (more: object) => {
    for (let hubs = Number(process.env.TEST_HUBS ?? 1); hubs > 0; hubs--) {
      await hub.ok(token, 'daemons/poll', { daemon_id: full.daemon_id, slots: 0, ...more })
    }
  }
  const waits = async () => (await hub.ok(hub.admin, 'dispatch/queue', { realm_id: realm })).jobs[0].waiting_for
  // A daemon whose slots are taken comes to the job by itself.
  await poll({})
  const first = await dispatch('plain')
  expect([first.waiting_for, await waits()]).toEqual([undefined, null])
  await poll({ full_disk: true })
  const space = 'daemon full, whose disk is full'
  expect([(await dispatch('plain')).waiting_for, await waits()]).toEqual([space, space])
  await full.tell({ stuck: true })
  expect(await waits()).toBe('daemon full, whose process stands still')
  await full.tell({})
  expect(await waits()).toBe(space)
  await poll({})
  expect(await waits()).toBeNull()
  await poll({ full_disk: true })
  const other = await daemon('other')
  expect([(await dispatch('plain')).waiting_for, await waits()]).toEqual([undefined, null])
  await hub.ok(hub.admin, 'daemons/update', { daemon_id: other.daemon_id, paused: true })
  expect(await waits()).toBe(space)
})

test('a lapsed lease goes only to a daemon that may take the job', async () => {
  const two = await daemon('two', { labels: { gpu: 'yes', region: 'eu' } })
  const { run_id } = await dispatch('labelled')
  expect(await two.take()).toEqual([run_id])
  const { store } = hub
  await store.write(tx => tx.update(store.jobs).set({ lease_until: 1 }))
  const one = await daemon('one')
  expect(await one.take()).toEqual([])
  expect(await two.take()).toEqual([run_id])
})

test('a poll passes over the jobs that its daemon may not take, and finds the others oldest first', async () => {
  const { store } = hub
  const plain: ClaimingDaemon = {
    id: 'plain',
    realm_id: realm,
    labels: null,
    agents: [],
    workspaces: [],
    paused: false,
  }
  const { run_id } = await dispatch('plain')
  const needs = (gpu: string) => ({ labels: { gpu }, agents: {}, named: [], workspace: null })
  const job = { realm_id: realm, run_id, kind: 'run' as const, payload: {}, created_by: 1 }
  await store.write(async tx => {
    await tx.delete(store.jobs)
    for (let i = 0; i < 300; i++) await enqueueJob(store, tx, { ...job, needs: needs(String(i % 3)) }, i)
  })
  const now = 1_000
  expect(await claimableJobs(store, store.db, plain, 8, now)).toBeNull()
  expect(await store.write(tx => claim(store, tx, plain, 8, now))).toEqual([])
  const able = { ...plain, labels: { gpu: '2' } }
  expect(await claimableJobs(store, store.db, able, 8, now)).not.toBeNull()
  const rows = await store.write(tx => claim(store, tx, able, 8, now))
  expect(rows.map(({ created_at }) => created_at)).toEqual([2, 5, 8, 11, 14, 17, 20, 23])
})
