// A real hub and a real daemon: enrol, dispatch, run, sync the tree back; also while either is away.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import manifest from '../../package.json'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startFront } from '../support/front.ts'
import { HEAD } from '../support/head.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let daemon: RunningDaemon
let env: Record<string, string>

beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one' }
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), 'network: { allow: [127.0.0.1] }\npackages: { sandbox: none }\n', {
    mode: 0o600,
  })
  daemon = await spawnDaemon({ home, env })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

const tree = {
  'team.yml': `
name: "@admin/top"
version: 1.0.0
inputs: [{ name: items, type: list, required: true }]
outputs: [{ name: done, type: number, value: "{{ phases.each.data.completed }}" }]
phases:
  - { name: each, type: map, items: "{{ inputs.items }}", key: "k{{ item }}", team: ./middle, inputs: { v: "{{ item }}" }, on_item_failure: continue }
`,
  'middle/team.yml': `
name: "@admin/middle"
version: 1.0.0
inputs: [{ name: v, type: number, required: true }]
phases:
  - { name: down, type: team, team: ./leaf, inputs: { v: "{{ inputs.v }}" } }
`,
  'middle/leaf/team.yml': `
name: "@admin/leaf"
version: 1.0.0
inputs: [{ name: v, type: number, required: true }]
phases:
  - name: say
    agent: exec
    commands: [{ name: say, env: { V: "{{ inputs.v }}" }, run: 'echo "item $V"; sleep 0.0$V; test "$V" != 3' }]
`,
}

const LATE = `
name: "@admin/late"
version: 1.0.0
phases:
  - { name: wait, agent: exec, commands: [{ name: w, run: sleep 1 }] }
`

const dispatch = (team: string, inputs: object) =>
  hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, inputs }) as Promise<{ run_id: string }>

const endedOnHub = (run_id: string) =>
  until(async () => {
    const { data: run } = await hub.call(hub.admin, 'runs/get', { run_id })
    return run?.completed_at != null && run
  }, `the end of run ${run_id} on the hub`)

test('a dispatched run gives the same tree on both sides, for every run of it', async () => {
  await hub.addTeam(tree)
  const { run_id } = await dispatch('@admin/top', { items: [1, 2, 3] })
  const run = await endedOnHub(run_id)
  expect(run).toMatchObject({ state: 'completed', team: '@admin/top', version: '1.0.0', outputs: { done: 2 } })
  const here = await daemon.call('/v1/runs/tree', { run_id })
  expect(here.runs).toHaveLength(7)
  expect(here.runs.map((entry: { state: string }) => entry.state)).toEqual([
    'completed',
    ...['completed', 'completed'],
    ...['completed', 'completed'],
    ...['failed', 'failed'],
  ])
  for (const entry of here.runs) {
    expect(await hub.ok(hub.admin, 'runs/tree', { run_id: entry.run_id })).toEqual(here)
    expect(await daemon.call('/v1/runs/tree', { run_id: entry.run_id })).toEqual(here)
  }
})

test('phases and logs of each run arrive', async () => {
  const { run_id } = await dispatch('@admin/top@1.0.0', { items: [1] })
  await endedOnHub(run_id)
  const { runs } = await daemon.call('/v1/runs/tree', { run_id })
  const leaf = runs.at(-1).run_id
  const [say] = (await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: leaf })).phases
  const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id: leaf })
  expect(phases).toMatchObject([{ name: 'say', state: 'completed', agent: 'exec', attempt: 1, data: say.data }])
  const lines = await until(async () => {
    const { lines } = await hub.ok(hub.admin, 'runs/logs', { run_id: leaf })
    return lines.length > 0 && lines
  }, 'the lines')
  expect(lines).toMatchObject([{ seq: 1, phase: 'say', text: 'item 1' }])
})

test('the turns of a phase arrive, and why it failed', async () => {
  await hub.addTeam({
    'team.yml': `
name: "@admin/poll"
version: 1.0.0
phases:
  - name: poll
    agent: exec
    commands: [{ name: look, run: 'true' }]
    repeat: { until: "has(result.data.done)", every: 1ms, most: 2 }
`,
  })
  const { run_id } = await dispatch('@admin/poll', {})
  expect(await endedOnHub(run_id)).toMatchObject({ state: 'failed', reason: 'repeat', error: { code: 'repeat' } })
  const [here] = (await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })).phases
  const { phases } = await hub.ok(hub.admin, 'runs/phases', { run_id })
  expect(here.turns).toMatchObject([
    { turn: 1, state: 'completed' },
    { turn: 2, state: 'completed' },
  ])
  expect(phases).toMatchObject([{ name: 'poll', state: 'failed', reason: 'repeat', turns: here.turns }])
  expect((await hub.ok(hub.admin, 'runs/why', { run_id })).text).toContain('failed in turn 2 of 2')
})

test('what cannot start is told to the hub, with what is wrong', async () => {
  await hub.addTeam({
    'team.yml': `
name: "@admin/unset"
version: 1.0.0
phases:
  - { name: ask, agent: helpdesk, action: get_ticket, sources: [{ name: ticket.json, ref: 1 }] }
`,
  })
  const { run_id } = await dispatch('@admin/unset', {})
  const run = await endedOnHub(run_id)
  expect(run).toMatchObject({ state: 'failed', reason: 'not_started', started_at: null })
  // Each setting once.
  const told: string = run.error.message
  expect(told).toMatch(/^the run cannot start: agents\.helpdesk\.\w+ is not set; set it with: /)
  expect(told.split('agents.helpdesk.api_token is not set')).toHaveLength(2)
  expect(told).not.toMatch(/(agents\.\S+) \1/)
  await expect(dispatch('@admin/top', { items: 'text' })).rejects.toThrow('expected a list')
})

test('a job of another form is refused to the hub, with what is wrong', async () => {
  const { store } = hub
  const { run_id } = await dispatch('@admin/top', { items: [1] })
  const { daemon_id } = await endedOnHub(run_id)
  const id = crypto.randomUUID()
  const place = { id, realm_id: hub.realm, run_id, daemon_id, created_by: 1, created_at: Date.now() }
  const queued = { kind: 'decide', state: 'waiting', priority: 0, deliveries: 0 } as const
  await store.write(tx => tx.insert(store.jobs).values({ ...place, ...queued, payload: { decision: 'approve' } }))
  const job = async () => (await store.db.select().from(store.jobs).where(eq(store.jobs.id, id)))[0]!
  await until(async () => (await job()).state === 'failed', 'the refusal')
  expect((await job()).error).toContain('the job of kind decide does not have the form that this daemon knows')
  expect((await job()).error).toContain('/review_id is required')
})

test('cancel from the hub ends the run on the daemon', async () => {
  await hub.addTeam({
    'team.yml': `
name: "@admin/slow"
version: 1.0.0
phases:
  - { name: wait, agent: exec, commands: [{ name: wait, run: "sleep 60" }] }
`,
  })
  const { run_id } = await dispatch('@admin/slow', {})
  await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state === 'running', 'the run')
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  expect((await endedOnHub(run_id)).state).toBe('cancelled')
  expect((await daemon.ended(run_id)).state).toBe('cancelled')
})

test('a daemon killed in the middle goes on, and the hub hears everything once and in order', async () => {
  const { run_id } = await dispatch('@admin/top', { items: [11, 12, 13, 14, 15, 16, 17, 18, 19] })
  // Begun, for a busy hub may hear of the whole run at once.
  await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state !== 'queued', 'the run')
  const { home } = daemon
  await daemon.kill('SIGKILL')
  daemon = await spawnDaemon({ home, env })
  expect((await endedOnHub(run_id)).outputs).toEqual({ done: 9 })
  expect(await hub.ok(hub.admin, 'runs/tree', { run_id })).toEqual(await daemon.call('/v1/runs/tree', { run_id }))
})

test('what was written outside and whom a gate asks are known to the hub', async () => {
  const posts: string[] = []
  const vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      posts.push(await request.text())
      return new Response('made', { status: 201 })
    },
  })
  await hub.addTeam({
    'team.yml': `
name: "@admin/writes"
version: 1.0.0
phases:
  - { name: post, agent: http, target_entries: [{ name: note, url: "${vendor.url}", file: note.txt, method: POST }], depends_on: [make] }
  - { name: make, agent: exec, commands: [{ name: make, run: "echo hello > note.txt" }] }
  - name: ask
    type: gate
    depends_on: [post]
    review: { prompt: Fine?, reviewers: [admin, una], inputs: [{ name: why, type: string }] }
`,
  })
  const { run_id } = await dispatch('@admin/writes', {})
  const [review] = await until(async () => {
    const { reviews } = await hub.ok(hub.admin, 'reviews/list', { run_id })
    return reviews.length > 0 && reviews
  }, 'the review')
  expect(review).toMatchObject({ reviewers: ['admin', 'una'], inputs: [{ name: 'why', type: 'string' }] })
  expect(posts).toEqual(['hello\n'])
  const { receipts, db } = hub.store
  const written = (await db.select().from(receipts)).filter(receipt => receipt.run_id === run_id)
  expect(written).toMatchObject([{ phase: 'post', entry: 'note', state: 'done' }])
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'other' })
  const moved = await hub.call(hub.admin, 'dispatch/move', { run_id, daemon_id })
  expect([moved.status, moved.error?.message]).toEqual([409, expect.stringContaining('force')])
  await hub.ok(hub.admin, 'reviews/decide', { review_id: review.id, decision: 'approve', values: { why: 'it is' } })
  expect((await endedOnHub(run_id)).state).toBe('completed')
  vendor.stop(true)
})

test('a write that a kill left in doubt is in doubt for the hub too', async () => {
  const reached = Promise.withResolvers<void>()
  const vendor = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch() {
      reached.resolve()
      return new Promise<Response>(() => {})
    },
  })
  await hub.addTeam({
    'team.yml': `
name: "@admin/doubt"
version: 1.0.0
phases:
  - { name: make, agent: exec, commands: [{ name: make, run: "echo hello > note.txt" }] }
  - { name: post, agent: http, depends_on: [make], target_entries: [{ name: note, url: "${vendor.url}", file: note.txt, method: POST }] }
`,
  })
  const { run_id } = await dispatch('@admin/doubt', {})
  await reached.promise
  const { home } = daemon
  await daemon.kill('SIGKILL')
  daemon = await spawnDaemon({ home, env })
  const { receipts, db } = hub.store
  await until(async () => {
    const known = (await db.select().from(receipts)).find(receipt => receipt.run_id === run_id)
    return known?.state === 'unknown'
  }, 'the doubt')
  const { reviews } = await until(async () => {
    const asked = await hub.ok(hub.admin, 'reviews/list', { run_id })
    return asked.total > 0 && asked
  }, 'the review')
  await hub.ok(hub.admin, 'reviews/decide', { review_id: reviews[0].id, decision: 'fail' })
  expect((await endedOnHub(run_id)).state).toBe('failed')
  vendor.stop(true)
})

test('a hub that lost what it had acknowledged hears everything again', async () => {
  const { run_id } = await dispatch('@admin/top', { items: [1] })
  await endedOnHub(run_id)
  const leaf = (await daemon.call('/v1/runs/tree', { run_id })).runs.at(-1).run_id
  const told = async () => ({
    tree: await hub.ok(hub.admin, 'runs/tree', { run_id }),
    phases: await hub.ok(hub.admin, 'runs/phases', { run_id: leaf }),
    lines: (await hub.ok(hub.admin, 'runs/logs', { run_id: leaf })).lines,
  })
  const before = await until(async () => {
    const seen = await told()
    return seen.lines.length > 0 && seen
  }, 'the lines')
  const { runs, daemons } = hub.store
  await hub.store.write(async tx => {
    await tx.delete(runs)
    await tx.update(daemons).set({ acked_seq: 0 })
  })
  await endedOnHub((await dispatch('@admin/top', { items: [] })).run_id)
  const again = async () => (await hub.call(hub.admin, 'runs/logs', { run_id: leaf })).data?.lines.length > 0
  await until(again, 'the lines again')
  expect(await told()).toEqual(before)
})

test('a resume that moves items, and ends some before they began, is the same tree on both sides', async () => {
  const at = folder()
  const say = (items: number[]) => writeFileSync(join(at, 'items.json'), JSON.stringify({ items }))
  await hub.addTeam({
    'team.yml': `
name: "@admin/moving"
version: 1.0.0
inputs: [{ name: at, type: string, required: true }]
phases:
  - { name: list, agent: exec, commands: [{ name: list, env: { AT: "{{ inputs.at }}" }, run: 'cat "$AT/items.json" > "$CADRE_RESULT"' }] }
  - { name: each, type: map, depends_on: [list], items: "{{ phases.list.data.items }}", key: "k{{ item }}", team: ./middle, inputs: { v: "{{ item }}", at: "{{ inputs.at }}" }, concurrency: 1 }
`,
    'middle/team.yml': `
name: "@admin/moving-middle"
version: 1.0.0
inputs: [{ name: v, type: number, required: true }, { name: at, type: string, required: true }]
phases:
  - { name: down, type: team, team: ./leaf, inputs: { v: "{{ inputs.v }}", at: "{{ inputs.at }}" } }
`,
    'middle/leaf/team.yml': `
name: "@admin/moving-leaf"
version: 1.0.0
inputs: [{ name: v, type: number, required: true }, { name: at, type: string, required: true }]
phases:
  - { name: do, agent: exec, commands: [{ name: do, env: { AT: "{{ inputs.at }}", V: "{{ inputs.v }}" }, run: 'test ! -e "$AT/broken-$V"' }] }
`,
  })
  /** The trees and all phases of both sides, once the hub has heard of the end of this attempt. */
  const both = async (run_id: string, attempt: number) => {
    await until(async () => {
      const { data: run } = await hub.call(hub.admin, 'runs/get', { run_id })
      return run?.attempt === attempt && run.completed_at !== null
    }, `the end of attempt ${attempt}`)
    const { runs } = await daemon.call('/v1/runs/tree', { run_id })
    expect((await hub.ok(hub.admin, 'runs/tree', { run_id })).runs).toEqual(runs)
    for (const entry of runs) {
      const [here, there] = await Promise.all([
        daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: entry.run_id }),
        hub.ok(hub.admin, 'runs/phases', { run_id: entry.run_id }),
      ])
      const states = ({ phases }: { phases: { name: string; state: string; reason: string; attempt: number }[] }) =>
        phases.map(({ name, state, reason, attempt }) => [name, state, reason, attempt])
      expect([entry.run_name, states(there as never)]).toEqual([entry.run_name, states(here as never)])
    }
    return runs.map((entry: { run_name: string; state: string }) => [entry.run_name, entry.state])
  }
  say([1, 2, 3])
  const { run_id } = await dispatch('@admin/moving', { at })
  await both(run_id, 1)
  say([3, 4, 2])
  writeFileSync(join(at, 'broken-3'), '')
  await hub.ok(hub.admin, 'dispatch/resume', { run_id, from_phase: 'list' })
  expect(await both(run_id, 2)).toEqual([
    [null, 'failed'],
    ['k3', 'failed'],
    [null, 'failed'],
    ['k2', 'cancelled'],
    [null, 'cancelled'],
    ['k1', 'completed'],
    [null, 'completed'],
  ])
  rmSync(join(at, 'broken-3'))
  await hub.ok(hub.admin, 'dispatch/resume', { run_id })
  const names = [null, ...['k3', 'k4', 'k2', 'k1'].flatMap(key => [key, null])]
  expect(await both(run_id, 3)).toEqual(names.map(name => [name, 'completed']))
})

test('a run that the daemon starts by itself is synced when its team is on the list, and only then', async () => {
  const listed = await daemon.call('/v1/runs/start', { team: '@admin/top', inputs: { items: [] } })
  expect((await endedOnHub(listed.run_id)).state).toBe('completed')
  const path = files({ 'team.yml': tree['team.yml'].replace('@admin/top', '@local/top'), ...middle() })
  const own = await daemon.call('/v1/runs/start', { path, inputs: { items: [] } })
  await daemon.ended(own.run_id)
  expect(await hub.call(hub.admin, 'runs/get', { run_id: own.run_id })).toMatchObject({ status: 404 })
})

test('credentials of both never reach the home, but for the settings', () => {
  const paths = readdirSync(daemon.home, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
  expect(paths.length).toBeGreaterThan(3)
  const holding = paths.filter(path => readFileSync(path, 'latin1').includes(env.CADRE_REALM_TOKEN!))
  expect(holding).toEqual([join(daemon.home, 'settings.yml')])
  expect(daemon.output.stderr + daemon.output.stdout).not.toContain(env.CADRE_REALM_TOKEN!)
})

test('a session token as api key is refused at start, and so is a user token as realm token', async () => {
  const session = { ...env, CADRE_API_KEY: hub.admin }
  await expect(spawnDaemon({ home: folder(), env: session })).rejects.toThrow(/exited with 2.*durable/s)
  const user = { ...env, CADRE_REALM_TOKEN: hub.admin }
  await expect(spawnDaemon({ home: folder(), env: user })).rejects.toThrow(/exited with 2.*realm token/s)
})

function middle(): Record<string, string> {
  const { 'team.yml': _, ...rest } = tree
  return rest
}

test('the hub shows all slots of a daemon, whatever it does when it starts, and none of a command', async () => {
  const seen = async (name: string) => {
    const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm, limit: 100 })
    return daemons.find((each: { name: string }) => each.name === name)
  }
  const three = { ...env, CADRE_DAEMON_NAME: 'three', CADRE_SLOTS: '3' }
  const { home, kill } = await spawnDaemon({ env: three })
  const { daemon_id } = await seen('three')
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { daemon_id, team: '@admin/slow' })
  await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state === 'running', 'the run')
  await kill('SIGKILL')
  const again = await spawnDaemon({ home, env: three })
  expect(await seen('three')).toMatchObject({
    capacity: 3,
    version: manifest.version,
    commit: HEAD,
    labels: { cadre: manifest.version },
  })
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  await endedOnHub(run_id)
  await again.stop()
  // A command enrols the home when it has another token, and when it is new.
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const run = ['run', files({ 'team.yml': LATE })]
  expect(await command(run, { home, env: { ...three, CADRE_REALM_TOKEN: token } })).toMatchObject({ code: 0 })
  const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'daemons/takeover' })
  expect(audit[0].target).toStartWith(daemon_id)
  expect((await seen('three')).capacity).toBe(3)
  expect(await command(run, { home: folder(), env: { ...env, CADRE_DAEMON_NAME: 'new' } })).toMatchObject({ code: 0 })
  expect((await seen('new')).capacity).toBeNull()
}, 60_000)

// The last one: nothing is dispatched any more that this daemon might have been offered instead.
test('a run whose acceptance does not get through is asked for again', async () => {
  await hub.addTeam({ 'team.yml': LATE })
  const answers: string[] = []
  await using way = startFront(hub.url)
  way.loses = ({ path, body }) => (path === '/v1/daemons/ack' && answers.push(body.status) === 1 ? 'request' : null)
  const behind = await spawnDaemon({ env: { ...env, CADRE_HUB_URL: way.url, CADRE_DAEMON_NAME: 'behind' } })
  try {
    const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })
    const { id } = daemons.find(({ name }: { name: string }) => name === 'behind')
    const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { daemon_id: id, team: '@admin/late', inputs: {} })
    expect(await endedOnHub(run_id)).toMatchObject({ state: 'completed', error: null })
    expect(answers.slice(0, 2)).toEqual(['accepted', 'accepted'])
  } finally {
    await behind.stop()
  }
})

test('hub and daemon say the same of who dispatched a run', async () => {
  const team = await hub.addTeam(LATE.replace('@admin/late', '@admin/named'))
  const minted = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'ci' })
  const { run_id } = await hub.ok(minted.token, 'dispatch/run', { realm_id: hub.realm, team })
  await endedOnHub(run_id)
  const by = { kind: 'token', name: 'ci', owner: 'admin', via: 'api' }
  expect((await hub.ok(hub.admin, 'runs/get', { run_id })).started_by).toEqual(by)
  expect((await daemon.call('/v1/runs/get', { run_id })).started_by).toEqual(by)
  const { runs } = await daemon.call('/v1/runs/list', { started_by: 'token:ci' })
  expect(runs.map((run: { run_id: string }) => run.run_id)).toEqual([run_id])
})
