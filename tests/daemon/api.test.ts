// The daemon's API over real HTTP: forms, refusals, and a run from start to artifacts.

import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { FIVE_MISTAKES, HELLO, NESTED, SLEEPS } from './teams.ts'

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon()
})

const local = () => ({ authorization: `Bearer ${daemon.token}` })

async function run(path: string, more: object = {}): Promise<string> {
  const { run_id } = await daemon.call('/v1/runs/start', { path, ...more })
  await daemon.ended(run_id)
  return run_id
}

describe('start', () => {
  test('stdout has the listening line and nothing else', () => {
    expect(daemon.output.stdout).toMatch(/^daemon listening on http:\/\/127\.0\.0\.1:\d+\n$/)
  })

  test('health needs no credential', async () => {
    const reply = await fetch(`${daemon.url}/health`)
    expect(reply.status).toBe(200)
    expect(await reply.json()).toMatchObject({ ok: true, data: { status: 'ok', version: expect.any(String) } })
  })

  test('so does ready, which looks at the database', async () => {
    const reply = await fetch(`${daemon.url}/ready`)
    expect([reply.status, await reply.json()]).toEqual([200, { ok: true, data: { status: 'ready' } }])
  })

  test('the home and the token are the owner’s alone', () => {
    expect(statSync(daemon.home).mode & 0o777).toBe(0o700)
    expect(statSync(join(daemon.home, 'token')).mode & 0o777).toBe(0o600)
  })
})

describe('refusals', () => {
  const cases: [
    what: string,
    path: string,
    body: unknown,
    headers: Record<string, string>,
    status: number,
    code: string,
  ][] = [
    ['a malformed body', '/v1/runs/list', '{"limit":', {}, 400, 'invalid_request'],
    ['an unknown property', '/v1/runs/list', { colour: 1 }, {}, 400, 'invalid_request'],
    ['a limit of 101', '/v1/runs/list', { limit: 101 }, {}, 400, 'invalid_request'],
    ['an unknown path', '/v1/runs/none', {}, {}, 404, 'not_found'],
    ['another content type', '/v1/runs/list', '{}', { 'content-type': 'text/plain' }, 415, 'unsupported_media_type'],
    ['a foreign Host', '/v1/runs/list', {}, { host: 'rebound.example' }, 403, 'forbidden'],
    ['a foreign Origin', '/v1/runs/list', {}, { origin: 'https://pages.example' }, 403, 'forbidden'],
    ['the Origin of another local port', '/v1/runs/list', {}, { origin: 'http://localhost:3000' }, 403, 'forbidden'],
    ['an opaque Origin', '/v1/runs/list', {}, { origin: 'null' }, 403, 'forbidden'],
    ['a page of another site', '/v1/runs/list', {}, { 'sec-fetch-site': 'cross-site' }, 403, 'forbidden'],
    ['a wrong Bearer', '/v1/runs/list', {}, { authorization: 'Bearer nonsense' }, 401, 'unauthorized'],
    ['a realm token', '/v1/runs/list', {}, { authorization: 'Bearer cadre_dt_x' }, 401, 'unauthorized'],
    ['an unsigned token', '/v1/runs/list', {}, { authorization: 'Bearer a.b.c' }, 401, 'unauthorized'],
    ['settings without token', '/v1/settings/list', {}, {}, 401, 'unauthorized'],
    ['decisions without token', '/v1/reviews/decide', {}, {}, 401, 'unauthorized'],
    ['a run that is not there', '/v1/runs/get', { run_id: 'none' }, {}, 404, 'not_found'],
    ['the tree of a run that is not there', '/v1/runs/tree', { run_id: 'none' }, {}, 404, 'not_found'],
    ['neither team nor path', '/v1/runs/start', {}, {}, 400, 'invalid_request'],
    ['a relative path', '/v1/runs/start', { path: 'team' }, {}, 400, 'invalid_request'],
    ['a team that is not installed', '/v1/runs/start', { team: '@acme/none' }, {}, 404, 'not_found'],
  ]
  for (const [what, path, body, headers, status, code] of cases) {
    test(`${what}: ${status}`, async () => {
      const reply = await daemon.post(path, body, headers)
      expect(reply.body).toMatchObject({ ok: false, error: { code, message: expect.any(String) } })
      expect(reply.status).toBe(status)
      expect(reply.headers.get('x-request-id')).toBeTruthy()
    })
  }

  test('another method: 405 with Allow', async () => {
    const reply = await fetch(`${daemon.url}/v1/runs/list`)
    expect(reply.status).toBe(405)
    expect(reply.headers.get('allow')).toBe('POST')
  })

  test('names and addresses of this machine pass', async () => {
    const port = new URL(daemon.url).port
    for (const host of [`localhost:${port}`, `127.8.9.1:${port}`, `[::1]:${port}`]) {
      expect((await daemon.post('/v1/runs/list', {}, { host })).status).toBe(200)
    }
    expect(
      (await daemon.post('/v1/runs/list', {}, { origin: daemon.url, 'sec-fetch-site': 'same-origin' })).status,
    ).toBe(200)
  })
})

describe('envelope', () => {
  const message = { type: 'workspace_list', version: 1, id: 'm-1', timestamp: 1, run_id: 'r-1', payload: {} }

  test('the reply echoes id and run_id and names the instance', async () => {
    const { status, body } = await daemon.post('/v1/workspaces/get', message)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      type: 'ok',
      version: 1,
      id: 'm-1',
      run_id: 'r-1',
      payload: { data: { workspaces: expect.any(Array) } },
    })
    expect(body.instance_id).toMatch(/^[0-9a-f-]{36}$/)
    expect(Math.abs(body.timestamp - Date.now())).toBeLessThan(10_000)
  })

  const wrong: [string, object][] = [
    ['version 2', { ...message, version: 2 }],
    ['another type', { ...message, type: 'run_phases' }],
    ['an empty id', { ...message, id: '' }],
    ['no payload', { ...message, payload: undefined }],
    ['an unknown payload field', { ...message, payload: { x: 1 } }],
  ]
  for (const [what, body] of wrong) {
    test(`${what} is 400 in an envelope`, async () => {
      const reply = await daemon.post('/v1/workspaces/get', body)
      expect(reply.status).toBe(400)
      expect(reply.body).toMatchObject({ type: 'error', version: 1, payload: { code: 'invalid_request' } })
      expect(reply.body.payload.details.length).toBeGreaterThan(0)
    })
  }

  test('a run that is not there is 404 in an envelope', async () => {
    const body = { ...message, type: 'run_phases', payload: { run_id: 'none' } }
    const reply = await daemon.post('/v1/runs/phases', body)
    expect([reply.status, reply.body.type, reply.body.payload.code]).toEqual([404, 'error', 'not_found'])
  })
})

describe('a run', () => {
  test('is told by get, list, phases, logs and artifacts', async () => {
    const path = files({ 'team.yml': HELLO })
    const runId = await run(path, { inputs: { who: 'ada' }, run_name: 'first' })
    const record = await daemon.call('/v1/runs/get', { run_id: runId })
    expect(record).toEqual({
      run_id: runId,
      run_name: 'first',
      root_run_id: runId,
      parent_run_id: null,
      parent_phase: null,
      call_path: ['@local/hello'],
      call_depth: 0,
      team: '@local/hello',
      version: '1.0.0',
      state: 'completed',
      reason: null,
      error: null,
      inputs: { who: 'ada', times: 1 },
      outputs: { greeting: 'files/greet/hello.txt', times: 1 },
      workspace: path,
      environment: null,
      attempt: 1,
      started_at: expect.any(Number),
      started_by: { kind: 'person', name: expect.any(String), via: 'api' },
      completed_at: expect.any(Number),
      lived_ms: expect.any(Number),
      tolerated: 0,
      deliveries: [],
      folder: path,
    })
    const { deliveries: _, folder: __, ...listed } = record
    expect((await daemon.call('/v1/runs/list', { team: '@local/hello' })).runs).toEqual([listed])

    const { phases, ...head } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: runId })
    expect(head).toEqual({ run_id: runId, state: 'completed' })
    expect(phases).toMatchObject([
      { name: 'greet', agent: 'exec', state: 'completed', ok: true, files: [{ name: 'hello.txt', bytes: 10 }] },
    ])

    const { lines, next } = await daemon.call('/v1/runs/logs', { run_id: runId })
    expect(lines).toMatchObject([{ seq: 1, phase: 'greet', stream: 'stdout', text: 'hello ada' }])
    expect((await daemon.call('/v1/runs/logs', { run_id: runId, after_seq: next })).lines).toEqual([])
    expect((await daemon.call('/v1/runs/logs', { run_id: runId, last: true, limit: 1 })).lines).toEqual(lines.slice(-1))

    const { artifacts, total } = await daemon.call('/v1/artifacts/list', { run_id: runId })
    expect(total).toBe(1)
    const file = await fetch(`${daemon.url}/v1/artifacts/get?run_id=${runId}&path=${artifacts[0].path}`)
    expect(await file.text()).toBe('hello ada\n')
    expect(Object.fromEntries(file.headers)).toMatchObject({
      'content-disposition': "attachment; filename*=UTF-8''hello.txt",
      'content-security-policy': 'sandbox',
      'x-content-type-options': 'nosniff',
    })
  })

  test('gives no file that lies outside', async () => {
    const runId = await run(files({ 'team.yml': HELLO }))
    for (const path of [
      'log.jsonl',
      'files/../log.jsonl',
      'files/greet/../../log.jsonl',
      '/etc/hosts',
      'files/greet',
      'files/none',
    ]) {
      const reply = await fetch(`${daemon.url}/v1/artifacts/get?run_id=${runId}&path=${encodeURIComponent(path)}`)
      expect([path, reply.status]).toEqual([path, 404])
      await reply.body?.cancel()
    }
  })

  test('of three levels has one tree, whatever run of it is asked', async () => {
    const runId = await run(files(NESTED))
    const tree = await daemon.call('/v1/runs/tree', { run_id: runId })
    expect(tree.root_run_id).toBe(runId)
    expect(
      tree.runs.map((entry: Record<string, unknown>) => [
        entry.call_depth,
        entry.parent_phase,
        (entry.call_path as string[]).join(' '),
      ]),
    ).toEqual([
      [0, null, '@local/top'],
      [1, 'each', '@local/top @local/middle'],
      [2, 'down', '@local/top @local/middle @local/leaf'],
      [1, 'last', '@local/top @local/middle'],
      [2, 'down', '@local/top @local/middle @local/leaf'],
    ])
    for (const { run_id } of tree.runs) expect(await daemon.call('/v1/runs/tree', { run_id })).toEqual(tree)
  })

  test('is streamed from how things stand to the end', async () => {
    const runId = await run(files(NESTED))
    const reply = await fetch(`${daemon.url}/v1/runs/stream?run_id=${runId}`, { headers: { 'last-event-id': '7' } })
    const events = (await reply.text()).split('\n\n').filter(block => block.startsWith('id:'))
    expect(reply.headers.get('content-type')).toBe('text/event-stream')
    expect(events[0]).toMatch(/^id: \d+\nevent: run\ndata: \{/)
    const ids = events.map(block => Number(/^id: (\d+)/.exec(block)?.[1]))
    expect(ids).toEqual([...new Set(ids)].sort((a, b) => a - b))
    expect(events.at(-1)).toContain('event: end\n')
    expect(events.filter(block => block.includes('event: run\n'))).toHaveLength(5)
  })

  test('is cancelled with all that it runs within five seconds', async () => {
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': SLEEPS }) })
    const stream = fetch(`${daemon.url}/v1/runs/stream?run_id=${run_id}`).then(reply => reply.text())
    await Bun.sleep(100)
    const started = performance.now()
    await daemon.call('/v1/runs/cancel', { run_id })
    expect(await daemon.ended(run_id)).toMatchObject({ state: 'cancelled', reason: 'cancelled' })
    expect(performance.now() - started).toBeLessThan(5_000)
    expect(await stream).toContain('event: end\n')
    expect((await daemon.post('/v1/runs/cancel', { run_id })).body.error.code).toBe('invalid_state')
  })
})

describe('what is wrong is told at once', () => {
  test('every mistake of a team with its place', async () => {
    const path = files({ 'team.yml': FIVE_MISTAKES })
    for (const call of ['/v1/teams/validate', '/v1/runs/start']) {
      const { status, body } = await daemon.post(call, { path })
      expect([status, body.error.code]).toEqual([400, 'invalid_request'])
      const places = body.error.details.map(({ message }: { message: string }) =>
        message.split(':').slice(0, 2).join(':'),
      )
      expect(places).toEqual(['team.yml:3', 'team.yml:5', 'team.yml:7', 'team.yml:10', 'team.yml:11'])
    }
  })

  test('every input that is missing, wrong or unknown', async () => {
    const path = files({ 'team.yml': HELLO })
    const before = (await daemon.call('/v1/runs/list')).total
    const { status, body } = await daemon.post('/v1/runs/start', { path, inputs: { who: 3, colour: 'red' } })
    expect(status).toBe(400)
    expect(body.error.details.map(({ path }: { path: string }) => path)).toEqual(['/inputs/who', '/inputs/colour'])
    expect((await daemon.call('/v1/runs/list')).total).toBe(before)
  })
})

describe('workspaces', () => {
  test('a run registers its folder; add, name and remove', async () => {
    const path = files({ 'team.yml': HELLO })
    await run(path)
    const { workspaces } = await daemon.envelope('/v1/workspaces/get', 'workspace_list')
    const own = workspaces.find((each: { path: string }) => each.path === path)
    expect(own).toMatchObject({ teams: ['@local/hello'], active_runs: 0, created_at: expect.any(Number) })
    expect(await daemon.call('/v1/workspaces/add', { path, name: 'mine' })).toMatchObject({
      workspace_id: own.workspace_id,
      name: 'mine',
    })
    const runId = await run(files({ 'team.yml': HELLO }), { workspace: 'mine' })
    expect((await daemon.call('/v1/runs/get', { run_id: runId })).workspace).toBe(path)
    await daemon.call('/v1/workspaces/remove', { workspace_id: 'mine' })
    expect(existsSync(path)).toBe(true)
    expect((await daemon.post('/v1/workspaces/remove', { workspace_id: 'mine' })).status).toBe(404)
    expect((await daemon.post('/v1/runs/start', { path, workspace: 'mine' })).status).toBe(400)
    const refused = await daemon.post('/v1/workspaces/add', { path: join(path, 'none') })
    expect([refused.status, refused.body.error.details[0].path]).toEqual([400, '/path'])
  })
})

describe('settings', () => {
  test('are set and masked, with the local token', async () => {
    expect(
      await daemon.call('/v1/settings/set', { key: 'hub.api_key', value: 'a long secret value' }, local()),
    ).toEqual({
      key: 'hub.api_key',
      value: '***',
    })
    expect((await daemon.call('/v1/settings/list', {}, local())).settings).toEqual([
      { key: 'hub.api_key', value: '***' },
    ])
    const runId = await run(files({ 'team.yml': HELLO }), { inputs: { who: 'a long secret value' } })
    const { lines } = await daemon.call('/v1/runs/logs', { run_id: runId })
    expect(lines[0].text).toBe('hello ***')
    await daemon.call('/v1/settings/set', { key: 'hub.api_key', value: null }, local())
    expect((await daemon.call('/v1/settings/list', {}, local())).settings).toEqual([])
    expect((await daemon.post('/v1/settings/get', { key: 'hub.api_key' }, local())).status).toBe(404)
  })
})
