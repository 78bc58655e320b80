// From publishing a team to reading its run: the way of a run over a real hub, with the daemon's part played by calls.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let realm: string
let token: string
let daemon_id: string

const file = (path: string, text: string) => ({ path, content_base64: Buffer.from(text).toString('base64') })
const team = (name: string, version = '1.0.0', inputs = '') =>
  file(
    'team.yml',
    `name: "${name}"\nversion: ${version}\n${inputs}phases:\n  - { name: get, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n`,
  )

beforeAll(async () => {
  hub = await startTestHub()
  realm = hub.realm
  token = (await hub.realmToken(hub.admin, realm)).token
  daemon_id = (await hub.ok(token, 'daemons/register', { name: 'one', workspaces: ['src'], protocol: 1 })).daemon_id
})
afterAll(() => hub.stop())

async function listedTeam(name: string, version = '1.0.0', inputs = '') {
  await hub.ok(hub.admin, 'teams/publish', { files: [team(name, version, inputs)] })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm, team: name })
}

const poll = (extra: object = {}) => hub.ok(token, 'daemons/poll', { daemon_id, slots: 4, wait_ms: 0, ...extra })
const ack = (job: { job_id: string; lease_id: string }, status: string, error?: string) =>
  hub.call(token, 'daemons/ack', {
    daemon_id,
    job_id: job.job_id,
    lease_id: job.lease_id,
    status,
    ...(error && { error }),
  })

describe('daemons', () => {
  test('register answers with the enrol bundle', async () => {
    const bundle = await hub.ok(token, 'daemons/register', { daemon_id, name: 'one', workspaces: ['src'], unknown: 1 })
    expect(structuredClone(bundle)).toMatchObject({
      daemon_id,
      realm_id: realm,
      dispatch_public_key: expect.stringContaining('PUBLIC KEY'),
      dispatch_keys: [{ kid: expect.any(String), pem: bundle.dispatch_public_key }],
      acl: { realm_id: realm, allowed: ['admin'], dispatch_public_key: bundle.dispatch_public_key, daemon_id },
      teams: [],
    })
  })
  test('a user token is 401, another realm 403, another token 403', async () => {
    for (const path of ['register', 'heartbeat', 'poll', 'ack', 'deregister']) {
      expect((await hub.call(hub.admin, `daemons/${path}`, { daemon_id, name: 'x' })).status).toBe(401)
    }
    expect((await hub.call(hub.admin, 'runs/sync', {})).status).toBe(401)
    const elsewhere = { name: 'x', realm_id: crypto.randomUUID() }
    expect((await hub.call(token, 'daemons/register', elsewhere)).status).toBe(403)
    const other = await hub.realmToken(hub.admin, realm)
    expect((await hub.call(other.token, 'daemons/heartbeat', { daemon_id })).status).toBe(403)
  })
  test('heartbeat tells keys and time, and the teams only when they changed', async () => {
    const asked = Date.now()
    const first = await hub.ok(token, 'daemons/heartbeat', { daemon_id })
    expect(first).toMatchObject({ status: 'online', next_ms: 15_000, teams: [], clock_believed: true })
    expect(first.server_time).toBeWithin(asked, Date.now() + 1)
    const second = await hub.ok(token, 'daemons/heartbeat', { daemon_id, teams_version: first.teams_version })
    expect(second).not.toHaveProperty('teams')
    await listedTeam('@admin/beat')
    const third = await hub.ok(token, 'daemons/heartbeat', { daemon_id, teams_version: first.teams_version })
    expect(third.teams).toContain('@admin/beat')
  })
  test('a newer protocol is refused, saying which side to upgrade', async () => {
    const reply = await hub.call(token, 'daemons/heartbeat', { daemon_id, protocol: 2 })
    expect(reply.status).toBe(409)
    expect(reply.error.message).toContain('upgrade the hub')
  })
  test('status follows the last call', async () => {
    const status = async () => (await hub.ok(hub.admin, 'daemons/get', { daemon_id })).status
    expect(await status()).toBe('online')
    await hub.skew(46_000)
    expect(await status()).toBe('stale')
    await hub.skew(25 * 3_600_000)
    expect(await status()).toBe('offline')
    await hub.skew(0)
  })
  test('rotating the token keeps the binding; another owner’s token does not get the id', async () => {
    const made = await hub.realmToken(hub.admin, realm)
    const own = await hub.ok(made.token, 'daemons/register', { name: 'two' })
    const { token: fresh } = await hub.ok(hub.admin, 'auth/rotate_token', { id: made.id })
    await hub.ok(fresh, 'daemons/heartbeat', { daemon_id: own.daemon_id })
    const bob = await hub.account('bob')
    await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username: 'bob', role: 'member' })
    const bobs = await hub.realmToken(bob.token, realm)
    const taken = { daemon_id: own.daemon_id, name: 'two' }
    expect((await hub.call(bobs.token, 'daemons/register', taken)).status).toBe(409)
    await hub.ok(hub.admin, 'auth/revoke_token', { id: made.id })
    expect((await hub.call(bobs.token, 'daemons/register', taken)).status).toBe(200)
    await hub.ok(bobs.token, 'daemons/deregister', { daemon_id: own.daemon_id })
    expect((await hub.call(bobs.token, 'daemons/heartbeat', { daemon_id: own.daemon_id })).status).toBe(404)
  })
})

describe('teams', () => {
  test('publish, find, download; a version is immutable', async () => {
    const files = [team('@admin/pub', '1.0.0'), file('notes/a.md', 'hello')]
    const made = await hub.ok(hub.admin, 'teams/publish', { files })
    expect(made).toMatchObject({ name: '@admin/pub', version: '1.0.0' })
    expect(made.sha256).toMatch(/^[0-9a-f]{64}$/)
    expect((await hub.call(hub.admin, 'teams/publish', { files })).status).toBe(409)
    const got = await hub.ok(hub.admin, 'teams/download', { team: '@admin/pub@^1.0.0' })
    expect(got.sha256).toBe(made.sha256)
    expect(got.files.map((each: { path: string }) => each.path)).toEqual(['notes/a.md', 'team.yml'])
    const { teams, total } = await hub.ok(hub.admin, 'teams/list', { query: 'PUB' })
    expect(total).toBe(1)
    expect(teams[0].name).toBe('@admin/pub')
  })
  test('ranges, and yanking that breaks no pin', async () => {
    for (const version of ['1.0.0', '1.2.0', '2.0.0']) {
      await hub.ok(hub.admin, 'teams/publish', { files: [team('@admin/semver', version)] })
    }
    const pick = async (range: string) =>
      (await hub.call(hub.admin, 'teams/get', { team: `@admin/semver${range}` })).data?.version
    expect([await pick(''), await pick('@^1.0.0'), await pick('@~1.0.0'), await pick('@^3')]).toEqual([
      '2.0.0',
      '1.2.0',
      '1.0.0',
      undefined,
    ])
    await hub.ok(hub.admin, 'teams/yank', { team: '@admin/semver@1.2.0' })
    expect([await pick('@^1.0.0'), await pick('@1.2.0')]).toEqual(['1.0.0', '1.2.0'])
    const { versions, total } = await hub.ok(hub.admin, 'teams/versions', { team: '@admin/semver' })
    expect([versions.map((each: { version: string }) => each.version), total]).toEqual([['2.0.0', '1.0.0'], 2])
    expect((await hub.ok(hub.admin, 'teams/get', { team: '@admin/semver@1.2.0' })).yanked_at).toBeNumber()
  })
  test('problems of team.yml are listed with their places', async () => {
    const bad = file(
      'team.yml',
      'name: "@admin/bad"\nversion: 1.0.0\nphases:\n  - { name: a, agent: nothing }\n  - { nam: b }\n',
    )
    const reply = await hub.call(hub.admin, 'teams/publish', { files: [bad] })
    expect(reply.status).toBe(400)
    expect(reply.error.details!.length).toBeGreaterThan(1)
    for (const { message } of reply.error.details!) expect(message).toMatch(/^team\.yml:\d+:\d+: /)
  })
  test('@local is renamed by a scope, and refused without', async () => {
    const files = [
      file('team.yml', 'name: "@local/top"\nversion: 1.0.0\nphases:\n  - { name: s, type: team, team: ./sub }\n'),
      file(
        'sub/team.yml',
        team('@local/sub').content_base64 && Buffer.from(team('@local/sub').content_base64, 'base64').toString(),
      ),
    ]
    expect((await hub.call(hub.admin, 'teams/publish', { files })).status).toBe(400)
    expect(await hub.ok(hub.admin, 'teams/publish', { files, scope: 'admin' })).toMatchObject({ name: '@admin/top' })
    const got = await hub.ok(hub.admin, 'teams/download', { team: '@admin/top' })
    expect(Buffer.from(got.files[0].content_base64, 'base64').toString()).toContain('@admin/sub')
  })
  test.each(['../x', '/x', 'a/../b', 'a//b', '.', 'a\\b', ''])('the path %p is refused', async path => {
    const reply = await hub.call(hub.admin, 'teams/publish', { files: [team('@admin/p'), file(path, 'x')] })
    expect(reply.status).toBe(400)
  })
  test('a scope of others takes nothing and shows nothing', async () => {
    const eve = await hub.account('eve')
    expect((await hub.call(eve.token, 'teams/publish', { files: [team('@admin/evil')] })).status).toBe(404)
    expect((await hub.call(eve.token, 'teams/get', { team: '@admin/pub' })).status).toBe(404)
    expect((await hub.ok(eve.token, 'teams/list')).total).toBe(0)
  })
  test('a realm token downloads what its list needs, and nothing else', async () => {
    await hub.ok(hub.admin, 'teams/publish', { files: [team('@admin/part')] })
    const whole = file(
      'team.yml',
      'name: "@admin/whole"\nversion: 1.0.0\nphases:\n  - { name: s, type: team, team: "@admin/part@^1.0.0" }\n',
    )
    await hub.ok(hub.admin, 'teams/publish', { files: [whole] })
    expect((await hub.call(token, 'teams/download', { team: '@admin/part' })).status).toBe(404)
    await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm, team: '@admin/whole' })
    expect((await hub.call(token, 'teams/download', { team: '@admin/whole' })).status).toBe(200)
    expect((await hub.call(token, 'teams/download', { team: '@admin/part@^1.0.0' })).status).toBe(200)
    expect((await hub.call(token, 'teams/download', { team: '@admin/pub' })).status).toBe(404)
  })
})

describe('dispatch', () => {
  const inputs =
    'inputs:\n  - { name: n, type: number, required: true }\n  - { name: key, type: string, secret: true }\n'
  beforeAll(() => listedTeam('@admin/job', '1.0.0', inputs))
  const run = (extra: object = {}) =>
    hub.call(hub.admin, 'dispatch/run', { realm_id: realm, team: '@admin/job', inputs: { n: 1 }, ...extra })

  test('a run is queued, delivered once, accepted and pinned', async () => {
    const made = await run({ run_name: 'first' })
    expect(made.status).toBe(201)
    expect(made.data.state).toBe('queued')
    const { jobs } = await poll()
    expect(jobs).toHaveLength(1)
    expect(jobs[0]).toMatchObject({
      job_id: made.data.job_id,
      run_id: made.data.run_id,
      kind: 'run',
      attempt: 1,
      payload: { team: '@admin/job@1.0.0', inputs: { n: 1 }, run_name: 'first', workspace: null },
    })
    expect((await poll()).jobs).toHaveLength(0)
    expect((await ack(jobs[0], 'accepted')).status).toBe(200)
    expect((await ack({ ...jobs[0], lease_id: crypto.randomUUID() }, 'done')).status).toBe(409)
    const elsewhere = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'elsewhere', name: 'E' })
    const other = await hub.realmToken(hub.admin, elsewhere.id)
    const foreign = await hub.ok(other.token, 'daemons/register', { name: 'foreign' })
    const { job_id, lease_id } = jobs[0]
    const ackForeign = { daemon_id: foreign.daemon_id, job_id, lease_id, status: 'done' }
    expect((await hub.call(other.token, 'daemons/ack', ackForeign)).status).toBe(404)
    expect((await hub.ok(hub.admin, 'runs/get', { run_id: made.data.run_id })).daemon_id).toBe(daemon_id)
    await hub.ok(hub.admin, 'dispatch/cancel', { run_id: made.data.run_id })
    const [cancel] = (await poll()).jobs
    expect(cancel).toMatchObject({ kind: 'cancel', run_id: made.data.run_id })
    await ack(cancel, 'done')
    await ack(jobs[0], 'done')
  })
  test('one call answers about many jobs, and each answer is taken or refused for itself', async () => {
    const made: { run_id: string; job_id: string }[] = []
    for (const n of [1, 2, 3]) {
      const body = { realm_id: realm, team: '@admin/job', inputs: { n } }
      made.push(await hub.ok(hub.admin, 'dispatch/run', body))
    }
    const { jobs } = await poll()
    expect(jobs).toHaveLength(3)
    await hub.ok(hub.admin, 'dispatch/cancel', { run_id: made[1]!.run_id })
    const about = (job: { job_id: string; lease_id: string }, status: string, error?: string) => ({
      ...{ job_id: job.job_id, lease_id: job.lease_id, status },
      ...(error && { error }),
    })
    const [first, second, third] = made.map(({ job_id }) =>
      jobs.find((job: { job_id: string }) => job.job_id === job_id),
    )
    const others = [
      about(second, 'accepted'),
      about({ ...third, lease_id: 'an older one' }, 'accepted'),
      about({ ...third, job_id: '\ud800' }, 'done'),
      about(third, 'failed', 'broken \ud800\0'),
    ]
    const reply = await hub.call(token, 'daemons/ack', { daemon_id, ...about(first, 'accepted'), others })
    expect(reply).toMatchObject({ status: 200, data: { status: 'accepted' } })
    expect(reply.data.others).toMatchObject([
      { job_id: second.job_id, status: null, error: { code: 'conflict' } },
      { job_id: third.job_id, status: null, error: { code: 'conflict' } },
      { status: null, error: { code: 'not_found' } },
      { job_id: third.job_id, status: 'failed', error: null },
    ])
    const states = await Promise.all(
      made.map(async ({ run_id }) => {
        const { state, daemon_id } = await hub.ok(hub.admin, 'runs/get', { run_id })
        return [state, daemon_id]
      }),
    )
    expect(states).toEqual([
      ['queued', daemon_id],
      ['cancelled', null],
      ['failed', null],
    ])
    // The first is refused with the status of the call, which does not keep the others from being taken.
    const late = { daemon_id, ...about(second, 'accepted'), others: [about(first, 'done')] }
    expect(await hub.call(token, 'daemons/ack', late)).toMatchObject({ status: 409 })
    const { audit } = await hub.ok(hub.admin, 'audit/list', { action: 'daemons/ack', limit: 4 })
    const target = ({ state, at }: { state: string; at: number }) =>
      `${state} run job ${made[at]!.job_id}, run ${made[at]!.run_id}`
    const entries = [
      { state: 'done', at: 0 },
      { state: 'failed', at: 2 },
      { state: 'cancelled', at: 1 },
      { state: 'accepted', at: 0 },
    ]
    expect(audit.map((entry: { target: string }) => entry.target)).toEqual(entries.map(target))
  })
  test('a long poll wakes at once', async () => {
    const waiting = poll({ wait_ms: 10_000 })
    await Bun.sleep(50)
    // Whoever is not woken looks again after five seconds: too late for this one.
    await run({ queue_timeout: '3s' })
    const { jobs } = await waiting
    expect(jobs).toHaveLength(1)
    await ack(jobs[0], 'failed', 'no such team here')
    const record = await hub.ok(hub.admin, 'runs/get', { run_id: jobs[0].run_id })
    expect(record).toMatchObject({
      state: 'failed',
      error: { message: expect.stringMatching(/^daemon .* refused the run: no such team here$/) },
    })
  })
  test('a poll without work ends when it was to, and not before', async () => {
    const end = Date.now() + 300
    expect(await poll({ wait_ms: 300 })).toMatchObject({ jobs: [] })
    expect(Date.now()).toBeGreaterThanOrEqual(end)
  })
  test('what is not taken is delivered again, and given up after five times', async () => {
    const { data } = await run()
    for (let delivery = 1; delivery <= 5; delivery++) {
      expect((await poll()).jobs[0]).toMatchObject({ job_id: data.job_id, attempt: delivery })
      await hub.skew(delivery * 61_000)
    }
    expect((await poll()).jobs).toHaveLength(0)
    const record = await hub.ok(hub.admin, 'runs/get', { run_id: data.run_id })
    expect(record.state).toBe('failed')
    expect(record.error.message).toContain('5 deliveries')
    await hub.skew(0)
  })
  test('a heartbeat keeps the lease', async () => {
    const { data } = await run()
    const [job] = (await poll()).jobs
    await hub.skew(50_000)
    // However many jobs the daemon names, and wherever among them.
    const others = Array.from({ length: 1_500 }, () => crypto.randomUUID())
    await hub.ok(token, 'daemons/heartbeat', { daemon_id, running: [...others, job.job_id] })
    await hub.skew(70_000)
    expect((await poll()).jobs).toHaveLength(0)
    expect((await ack(job, 'accepted')).status).toBe(200)
    await hub.skew(0)
    expect(data.job_id).toBe(job.job_id)
    await ack(job, 'done')
  })
  test('a run that waits is cancelled at once; one that waits too long fails', async () => {
    const waiting = await run({ workspace: 'nowhere' })
    expect(waiting.data.waiting_for).toContain('nowhere')
    expect((await hub.ok(hub.admin, 'dispatch/queue', { realm_id: realm })).jobs[0]).toMatchObject({
      job_id: waiting.data.job_id,
      waiting_for: expect.stringContaining('nowhere'),
    })
    const cancelled = await hub.ok(hub.admin, 'dispatch/cancel', { run_id: waiting.data.run_id })
    expect(cancelled.state).toBe('cancelled')
    const timed = await run({ workspace: 'nowhere', queue_timeout: '1m' })
    await hub.skew(61_000)
    await poll()
    expect(await hub.ok(hub.admin, 'runs/get', { run_id: timed.data.run_id })).toMatchObject({
      state: 'failed',
      reason: 'queue_timeout',
    })
    await hub.skew(0)
    expect((await poll()).jobs).toHaveLength(0)
  })
  test('a run that waits too long fails although no daemon asks', async () => {
    const timed = await run({ workspace: 'nowhere', queue_timeout: '1m' })
    await hub.skew(61_000)
    const state = async () => (await hub.ok(hub.admin, 'runs/get', { run_id: timed.data.run_id })).state
    for (const end = Date.now() + 20_000; (await state()) === 'queued' && Date.now() < end; ) await Bun.sleep(100)
    expect(await state()).toBe('failed')
    await hub.skew(0)
  })
  test('a run that was leased and then cancelled is cancelled although its daemon never answers', async () => {
    const { data } = await run()
    expect((await poll()).jobs).toHaveLength(1)
    expect((await hub.ok(hub.admin, 'dispatch/cancel', { run_id: data.run_id })).state).toBe('queued')
    await hub.skew(61_000)
    const state = async () => (await hub.ok(hub.admin, 'runs/get', { run_id: data.run_id })).state
    for (const end = Date.now() + 20_000; (await state()) === 'queued' && Date.now() < end; ) await Bun.sleep(100)
    expect(await state()).toBe('cancelled')
    await hub.skew(0)
  })
  test('a cancel of a run, or of one above it, that its daemon has not answered is not given a second time', async () => {
    const { data } = await run()
    const [job] = (await poll()).jobs
    await ack(job, 'accepted')
    const sub = { run_id: crypto.randomUUID(), root_run_id: data.run_id, parent_run_id: data.run_id, call_depth: 1 }
    const [row] = await hub.store.db.select().from(hub.store.runs).where(eq(hub.store.runs.run_id, data.run_id))
    await hub.store.write(tx => tx.insert(hub.store.runs).values({ ...row!, ...sub, state: 'running', tree_key: '1' }))
    const cancel = (run_id: string) => hub.ok(hub.admin, 'dispatch/cancel', { run_id })
    // A cancel below comes before that of the whole run, which has to be given as well.
    const below = await cancel(sub.run_id)
    const whole = await cancel(data.run_id)
    expect(below.already_waits ?? whole.already_waits).toBeUndefined()
    expect(await cancel(sub.run_id)).toMatchObject({ job_id: below.job_id, already_waits: true })
    const { jobs } = await poll()
    expect(jobs.map(({ job_id }: { job_id: string }) => job_id).sort()).toEqual([below.job_id, whole.job_id].sort())
    const answered = (id: string) => ack(jobs.find(({ job_id }: { job_id: string }) => job_id === id)!, 'done')
    await answered(below.job_id)
    expect(await cancel(sub.run_id)).toMatchObject({
      run_id: sub.run_id,
      job_id: whole.job_id,
      already_waits: true,
    })
    await answered(whole.job_id)
    const last = await cancel(sub.run_id)
    expect([[below.job_id, whole.job_id].includes(last.job_id), last.already_waits]).toEqual([false, undefined])
    const [cancels] = (await poll()).jobs
    await ack(cancels, 'done')
    await ack(job, 'done')
  })
  test('workspaces choose the daemon, priority the order', async () => {
    await run({ workspace: 'src', priority: 1 })
    const urgent = await run({ priority: 9 })
    const { jobs } = await poll({ slots: 1 })
    expect(jobs.map((job: { job_id: string }) => job.job_id)).toEqual([urgent.data.job_id])
    for (const job of [...jobs, ...(await poll()).jobs]) await ack(job, 'failed', 'enough')
  })
  test('the same idempotency key gives the same run', async () => {
    const first = await run({ idempotency_key: 'k1' })
    const second = await run({ idempotency_key: 'k1' })
    expect(second.data.run_id).toBe(first.data.run_id)
    const other = await run({ idempotency_key: 'k1', priority: 3 })
    expect([other.status, other.error.code]).toEqual([409, 'conflict'])
    const { jobs } = await poll()
    expect(jobs).toHaveLength(1)
    await ack(jobs[0], 'failed', 'enough')
  })
  test.each([
    ['a team that is not on the list', { team: '@admin/pub' }, 409],
    ['a team that is not published', { team: '@admin/nothing' }, 409],
    ['a version that does not exist', { team: '@admin/job@^9' }, 404],
    ['a missing input', { inputs: {} }, 400],
    ['a wrong type', { inputs: { n: '1' } }, 400],
    ['a secret input', { inputs: { n: 1, key: 'x' } }, 400],
    ['a duration without unit', { queue_timeout: '10' }, 400],
    ['neither realm nor daemon', { realm_id: undefined }, 400],
    ['a foreign realm', { realm_id: crypto.randomUUID() }, 404],
  ])('%s is refused', async (_, extra, status) => expect((await run(extra)).status).toBe(status))

  test('dispatch tokens are signed for one daemon', async () => {
    const asked = Date.now()
    const { token: jwt, expires_at } = await hub.ok(hub.admin, 'dispatch/tokens/mint', { daemon_id, action: 'execute' })
    // In whole seconds.
    expect(expires_at - 300_000).toBeWithin(asked - 1_000, Date.now() + 1)
    const { importSPKI, jwtVerify } = await import('jose')
    const { dispatch_keys } = await hub.ok(token, 'daemons/heartbeat', { daemon_id })
    const key = await importSPKI(dispatch_keys[0].pem, 'EdDSA')
    const { payload, protectedHeader } = await jwtVerify(jwt, key, { issuer: 'cadre-hub', audience: daemon_id })
    expect(protectedHeader).toMatchObject({ alg: 'EdDSA', typ: 'dispatch+jwt', kid: dispatch_keys[0].kid })
    expect(payload).toMatchObject({ sub: 'admin', realm_id: realm, action: 'execute', jti: expect.any(String) })
  })
  test('rotation keeps the former key for a day', async () => {
    const before = await hub.ok(hub.admin, 'dispatch/keys/get', { org_id: '1' })
    const after = await hub.ok(hub.admin, 'dispatch/keys/rotate', { org_id: '1' })
    expect(after.kid).not.toBe(before.kid)
    const { dispatch_keys, dispatch_public_key } = await hub.ok(token, 'daemons/heartbeat', { daemon_id })
    expect(dispatch_public_key).toBe(after.dispatch_public_key)
    expect(dispatch_keys).toEqual([
      { kid: after.kid, pem: after.dispatch_public_key },
      { kid: before.kid, pem: before.dispatch_public_key, not_after: expect.any(Number) },
    ])
    expect(dispatch_keys[1].not_after - after.rotated_at).toBe(86_400_000)
    const { token: jwt } = await hub.ok(hub.admin, 'dispatch/tokens/mint', { daemon_id, action: 'access' })
    expect(JSON.parse(atob(jwt.split('.')[0])).kid).toBe(after.kid)
    await hub.skew(86_400_001)
    const kids = (await hub.ok(token, 'daemons/heartbeat', { daemon_id })).dispatch_keys.map(
      (each: { kid: string }) => each.kid,
    )
    expect(kids).toEqual([after.kid])
    expect((await hub.ok(hub.admin, 'dispatch/keys/get', { org_id: 1 })).dispatch_keys).toHaveLength(1)
    await hub.skew(0)
  })
  test('a rotation that revokes ends every former key at once', async () => {
    const kids = async () =>
      (await hub.ok(token, 'daemons/heartbeat', { daemon_id })).dispatch_keys.map((each: { kid: string }) => each.kid)
    const first = await hub.ok(hub.admin, 'dispatch/keys/rotate', { org_id: 1 })
    const second = await hub.ok(hub.admin, 'dispatch/keys/rotate', { org_id: 1, revoke_previous: false })
    expect(await kids()).toEqual(expect.arrayContaining([first.kid, second.kid]))
    const third = await hub.ok(hub.admin, 'dispatch/keys/rotate', { org_id: 1, revoke_previous: true })
    expect(third.dispatch_keys).toEqual([{ kid: third.kid, pem: third.dispatch_public_key }])
    expect(await kids()).toEqual([third.kid])
    const { token: jwt } = await hub.ok(hub.admin, 'dispatch/tokens/mint', { daemon_id, action: 'access' })
    expect(JSON.parse(atob(jwt.split('.')[0])).kid).toBe(third.kid)
  })
})
