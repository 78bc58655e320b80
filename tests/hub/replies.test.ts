// What every route answers is what OpenAPI says that it answers: a walk through all of them.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'
import { checkReply } from '../support/replies.ts'
import { reviewChange } from '../support/sync.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub({ env: { CADRE_ARTIFACTS: Bun.pathToFileURL(folder()).href } })
})
afterAll(() => hub.stop())

/** The SHA-256 of an empty file. */
const EMPTY = new Bun.CryptoHasher('sha256').digest('hex')

const walked = new Set<string>()
/** Walks that came to their end. */
let whole = 0

/** Calls; the test hub holds every reply against the route's declaration. */
async function ok(token: string | null, path: string, body: object = {}) {
  walked.add(`/v1/${path}`)
  return hub.ok(token, path, body)
}

/** Holds the reply to a request that is not a POST against the route's declaration. */
async function whatIsAnswered(path: string, asking: Promise<Response>) {
  const reply = await asking
  const { data } = (await reply.json()) as { data: unknown }
  checkReply(hub.routes, path, reply.status, data)
  walked.add(path)
}

const team = (name: string, version: string) => ({
  path: 'team.yml',
  content_base64: btoa(
    `name: "${name}"\nversion: ${version}\ninputs:\n  - { name: n, type: number, default: 1, choices: [1, 2], description: a }\n` +
      'phases:\n  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n',
  ),
})

test('a reply that lacks, adds or mistypes something is found', () => {
  const deleted = (data: unknown, status = 200) => checkReply(hub.routes, '/v1/orgs/delete', status, data)
  deleted({ id: 1 })
  expect(() => deleted({})).toThrow('/id is required')
  expect(() => deleted({ id: '1' })).toThrow('/id')
  expect(() => deleted({ id: 1, secret: 2 })).toThrow('/secret unknown property')
  expect(() => deleted({ id: 1 }, 201)).toThrow('declares 200')
  expect(() => checkReply(hub.routes, '/v1/orgs/delet', 200, {})).toThrow('is no route')
})

test('people, places and tokens', async () => {
  const { token } = await ok(null, 'session/create', { username: 'admin', password: ADMIN_PASSWORD })
  await ok(token, 'session/delete')
  const ann = await ok(hub.admin, 'users/create', { username: 'ann', password: 'long enough' })
  await ok(hub.admin, 'users/update', { user_id: ann.id, site_admin: false })
  await ok(hub.admin, 'users/list')
  const brief = await ok(hub.admin, 'users/create', { username: 'brief', password: 'long enough' })
  await ok(hub.admin, 'users/delete', { user_id: brief.id })
  const anns = (await ok(null, 'session/create', { username: 'ann', password: 'long enough' })).token
  await ok(anns, 'users/get')
  await ok(anns, 'users/change_password', { password: 'long enough', new_password: 'longer than that' })

  const org = await ok(hub.admin, 'orgs/create', { slug: 'acme', display_name: 'Acme' })
  await ok(hub.admin, 'orgs/update', { org_id: org.id, display_name: 'Acme Inc.' })
  await ok(hub.admin, 'orgs/add_member', { org_id: org.id, username: 'ann', role: 'admin' })
  await ok(anns, 'orgs/list')
  await ok(anns, 'orgs/get_by_id', { org_id: org.id })
  await ok(anns, 'users/get', { username: 'admin' })

  const scope = await ok(anns, 'scopes/create', { org_id: String(org.id), slug: 'acme' })
  await ok(anns, 'scopes/add_member', { scope_id: scope.id, username: 'admin' })
  await ok(anns, 'scopes/list')
  await ok(anns, 'scopes/get', { scope_id: scope.id })
  await ok(anns, 'scopes/remove_member', { scope_id: scope.id, username: 'admin' })

  const realm = await ok(anns, 'realms/create', { org_id: org.id, slug: 'prod', name: 'Production' })
  const realm_id = realm.id
  await ok(anns, 'realms/update', { realm_id, name: 'Prod' })
  await ok(anns, 'realms/list')
  await ok(anns, 'realms/get', { realm_id })
  const revoked = await ok(anns, 'realms/invite', { realm_id })
  await ok(anns, 'realms/invitations', { realm_id })
  await ok(anns, 'realms/revoke_invite', { id: revoked.id })
  const invitation = await ok(anns, 'realms/invite', { realm_id })
  await ok(null, 'realms/accept_invite', { token: invitation.token, username: 'bob', password: 'long enough' })
  await ok(anns, 'realms/add_member', { realm_id, username: 'bob', role: 'operator' })
  await ok(anns, 'realms/members', { realm_id })
  await ok(anns, 'realms/remove_member', { realm_id, username: 'bob' })
  await ok(anns, 'realms/add_team', { realm_id, team: '@acme/x' })
  await ok(anns, 'realms/teams', { realm_id })
  await ok(anns, 'realms/remove_team', { realm_id, team: '@acme/x' })

  const url = 'https://example.com/'
  const webhook = await ok(anns, 'realms/add_webhook', { realm_id, url, events: ['run.failed'] })
  await ok(anns, 'realms/webhooks', { realm_id })
  await ok(anns, 'realms/webhook_take_over', { realm_id, id: webhook.id })
  await ok(anns, 'realms/remove_webhook', { realm_id, id: webhook.id })

  const permissions = { domains: { orgs: [org.id], realms: '*' }, access: { orgs: ['read'] } }
  const made = await ok(anns, 'auth/generate_token', { type: 'user', name: 'x', permissions, expires_in_days: 1 })
  await ok(anns, 'auth/whoami', { realm_id })
  await ok(made.token, 'auth/whoami', { realm_id: hub.realm })
  await ok(anns, 'auth/rotate_token', { id: made.id })
  await ok(anns, 'auth/get_tokens')
  await ok(anns, 'auth/revoke_token', { id: made.id })
  await ok(anns, 'auth/generate_token', { type: 'user', name: 'nothing', permissions: { access: {} } })
  await ok(anns, 'auth/generate_token', { type: 'realm', name: 'enrol', realm_ids: [realm_id] })
  await ok(anns, 'auth/get_tokens', { realm_id })
  await ok(anns, 'dispatch/keys/rotate', { org_id: org.id })
  await ok(anns, 'dispatch/keys/get', { org_id: String(org.id) })
  await ok(hub.admin, 'audit/list')

  await ok(anns, 'realms/delete', { realm_id })
  await ok(anns, 'scopes/delete', { scope_id: scope.id })
  await ok(hub.admin, 'orgs/remove_member', { org_id: org.id, username: 'ann' })
  await ok(hub.admin, 'orgs/delete', { org_id: org.id })
  await ok(hub.admin, 'users/suspend', { user_id: ann.id })
  whole++
})

test('teams, daemons and runs', async () => {
  const realm_id = hub.realm
  await ok(hub.admin, 'teams/publish', { files: [team('@admin/x', '1.0.0')] })
  await ok(hub.admin, 'teams/publish', { files: [team('@admin/x', '1.1.0')] })
  await ok(hub.admin, 'teams/yank', { team: '@admin/x@1.1.0' })
  await ok(hub.admin, 'teams/list')
  await ok(hub.admin, 'teams/get', { team: '@admin/x' })
  await ok(hub.admin, 'teams/versions', { team: '@admin/x' })
  await ok(hub.admin, 'teams/download', { team: '@admin/x' })
  await ok(hub.admin, 'teams/reach', { team: '@admin/x' })
  await ok(hub.admin, 'realms/add_team', { realm_id, team: '@admin/x' })

  const { token } = await hub.realmToken(hub.admin, realm_id)
  await ok(token, 'auth/whoami')
  const agents = [{ name: 'http', version: '1.0.0' }]
  const { daemon_id } = await ok(token, 'daemons/register', { name: 'a', capacity: 4, agents, workspaces: ['src'] })
  const other = (await ok(token, 'daemons/register', { name: 'b', hostname: 'b.example', version: '1' })).daemon_id
  await ok(token, 'daemons/heartbeat', { daemon_id })
  await ok(token, 'auth/acl', { daemon_id })
  await ok(hub.admin, 'daemons/list')
  await ok(hub.admin, 'daemons/get', { daemon_id })

  await ok(hub.admin, 'realms/add_webhook', { realm_id, url: 'http://127.0.0.1:9/', events: ['run.failed'] })
  const dispatch = { realm_id, team: '@admin/x', inputs: { n: 2 } }
  const waits = await ok(hub.admin, 'dispatch/run', { ...dispatch, workspace: 'nowhere', queue_timeout: '1h' })
  await ok(hub.admin, 'dispatch/queue', { realm_id })
  await ok(hub.admin, 'dispatch/cancel', { run_id: waits.run_id })
  const { run_id } = await ok(hub.admin, 'dispatch/run', { ...dispatch, daemon_id, run_name: 'one', workspace: 'src' })
  const { jobs } = await ok(token, 'daemons/poll', { daemon_id, slots: 4 })
  const [{ job_id, lease_id }] = jobs
  await ok(token, 'daemons/ack', { daemon_id, job_id, lease_id, status: 'accepted' })

  const rule = { realm_id, name: 'nightly', kind: 'schedule', team: '@admin/x', cron: '0 6 * * *', inputs: { n: 2 } }
  const { id: trigger_id } = await ok(hub.admin, 'triggers/add', rule)
  await ok(hub.admin, 'triggers/update', { trigger_id, when: 'true', requires: { agents: ['http'] } })
  for (const path of ['pause', 'resume', 'disable', 'enable', 'get', 'preview'])
    await ok(hub.admin, `triggers/${path}`, { trigger_id })
  const fired = await ok(hub.admin, 'triggers/run_now', { trigger_id })
  await ok(hub.admin, 'triggers/refire', { firing_id: fired.id, again: true })
  await ok(hub.admin, 'triggers/firings', { trigger_id })
  await ok(hub.admin, 'triggers/backfill', { trigger_id, from: 0, to: 86_400_000 * 400, most: 1 })
  await ok(hub.admin, 'triggers/list', { realm_id })
  await ok(hub.admin, 'triggers/remove', { trigger_id })

  const review_id = crypto.randomUUID()
  const changes = [
    { kind: 'run', run: { ...RUN, run_id, root_run_id: run_id } },
    { kind: 'phase', phase: PHASE },
    { kind: 'log', lines: [{ seq: 1, phase: 'say', at: 3, stream: 'stdout', text: 'hello' }] },
    reviewChange(run_id, review_id, { run_name: 'one' }),
  ]
  const epoch = crypto.randomUUID()
  const report = async (from_seq: number, list: object[]) => {
    const numbered = list.map((change, index) => ({ seq: from_seq + index, run_id, attempt: 1, ...change }))
    return ok(token, 'runs/sync', { daemon_id, epoch, from_seq, changes: numbered })
  }
  expect(await report(1, changes)).toMatchObject({ acked_seq: 4, rejected: [] })
  await ok(hub.admin, 'runs/artifacts', { run_id })
  const artifact = { phase: 'say', name: 'a', path: 'files/say/a', bytes: 0, sha256: EMPTY }
  expect(await report(5, [{ kind: 'artifact', artifact }, { kind: 'moon' }])).toMatchObject({
    acked_seq: 6,
    rejected: [{ seq: 6, code: 'invalid_request' }],
  })
  for (const path of ['get', 'tree', 'why', 'phases', 'logs', 'artifacts'])
    await ok(hub.admin, `runs/${path}`, { run_id })
  const offered = { daemon_id, run_id, sha256: EMPTY, bytes: 0 }
  expect((await ok(token, 'artifacts/offer', offered)).upload.url).toBeNull()
  const query = new URLSearchParams({ ...offered, bytes: '0' })
  const headers = { authorization: `Bearer ${token}` }
  await whatIsAnswered('/v1/artifacts/put', fetch(`${hub.url}/v1/artifacts/put?${query}`, { method: 'PUT', headers }))
  await ok(token, 'artifacts/keep', offered)
  const { runs } = await ok(hub.admin, 'runs/list')
  await ok(hub.admin, 'runs/teams')
  await ok(hub.admin, 'runs/stats', { team: runs[0].team })
  await ok(hub.admin, 'teams/history', { team: runs[0].team })
  await ok(hub.admin, 'reviews/list')
  await ok(hub.admin, 'reviews/decide', { review_id, decision: 'approve', comment: 'good', values: { a: 1 } })
  await ok(hub.admin, 'dispatch/tokens/mint', { daemon_id, action: 'execute', run_id })
  await ok(hub.admin, 'dispatch/move', { run_id, daemon_id: other })

  const ended = { ...RUN, run_id, root_run_id: run_id, state: 'failed', completed_at: 9 }
  await report(7, [{ kind: 'run', run: { ...ended, error: { code: 'internal', message: 'no' } } }])
  const [message] = (await ok(hub.admin, 'realms/webhook_deliveries', { realm_id })).deliveries
  const failed = { state: 'failed', next_at: null, finished_at: 1 } as const
  await hub.store.write(async tx => void (await tx.update(hub.store.webhookDeliveries).set(failed)))
  await ok(hub.admin, 'realms/redeliver_webhook', { realm_id, id: message.id })
  await ok(hub.admin, 'dispatch/resume', { run_id, from_phase: 'say' })
  await ok(token, 'daemons/poll', { daemon_id, slots: 4 })
  await ok(token, 'daemons/deregister', { daemon_id: other })
  await ok(hub.admin, 'daemons/approve', { daemon_id })
  await ok(hub.admin, 'daemons/update', { daemon_id, paused: true })
  await ok(hub.admin, 'daemons/reconcile', { realm_id })
  await ok(hub.admin, 'daemons/remove', { daemon_id })
  whole++
})

test('routes for those who watch the hub', async () => {
  for (const path of ['/health', '/ready']) await whatIsAnswered(path, fetch(hub.url + path))
})

test('every route was walked, and declares what it answers', () => {
  expect(whole, 'a walk above failed, so the rest of its routes was not called: mend that walk first').toBe(2)
  const answering = hub.routes.filter(({ data }) => data).map(({ path }) => path)
  expect([...walked].sort()).toEqual(answering.sort())
  const silent = hub.routes.filter(({ data, media }) => !data === !media)
  expect(silent.map(({ path }) => path)).toEqual([])
})

const RUN = {
  run_name: 'one',
  parent_run_id: null,
  parent_phase: null,
  call_path: ['@admin/x'],
  call_depth: 0,
  tree_key: '',
  team: '@admin/x',
  version: '1.0.0',
  state: 'awaiting_input',
  reason: 'gate',
  error: null,
  inputs: { n: 2 },
  outputs: null,
  workspace: 'src',
  started_at: 1,
  completed_at: null,
  deliveries: [{ phase: 'tell', event: 'on_start', state: 'done', error: null }],
}

const PHASE = {
  name: 'say',
  index: 0,
  type: 'gate',
  agent: null,
  action: null,
  state: 'awaiting_input',
  reason: 'gate',
  attempt: 1,
  depends_on: [],
  started_at: 1,
  completed_at: null,
  error: null,
  ok: null,
  text: '',
  data: null,
  files: [{ name: 'a', path: 'files/say/a', bytes: 1, sha256: '0'.repeat(64) }],
}
