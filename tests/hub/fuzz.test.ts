// Bodies of the right shape with odd contents, on every route: never 500, never slow, always our form of reply.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { AGAIN, startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let realmToken: string
let daemon: string
beforeAll(async () => {
  hub = await startTestHub()
  realmToken = (await hub.realmToken(hub.admin, hub.realm)).token
  daemon = (await hub.ok(realmToken, 'daemons/register', { name: 'd' })).daemon_id
})
afterAll(() => hub.stop())

const NAMES = [
  ...[
    'realm_id',
    'daemon_id',
    'run_id',
    'org_id',
    'scope_id',
    'user_id',
    'id',
    'review_id',
    'job_id',
    'lease_id',
    'epoch',
  ],
  ...[
    'username',
    'password',
    'new_password',
    'slug',
    'name',
    'display_name',
    'role',
    'team',
    'token',
    'type',
    'action',
  ],
  ...[
    'limit',
    'offset',
    'inputs',
    'files',
    'changes',
    'from_seq',
    'slots',
    'status',
    'decision',
    'permissions',
    'realm_ids',
  ],
  ...[
    'state',
    'query',
    'scope',
    'phase',
    'queue_timeout',
    'since',
    'protocol',
    'running',
    'agents',
    '__proto__',
    'constructor',
  ],
]

test('no body makes a fault', async () => {
  const paths = hub.routes
    .filter(({ path }) => path.startsWith('/v1/') && path !== '/v1/runs/stream')
    .map(({ path }) => path.slice(4))
  const value = fc.oneof(
    fc.constantFrom<unknown>(
      hub.realm,
      daemon,
      crypto.randomUUID(),
      1,
      2,
      '1',
      'admin',
      '@admin/x',
      'member',
      'x\u0000y',
      '%_\\',
      '10m',
    ),
    fc.constantFrom<unknown>(
      0,
      -1,
      2 ** 31 - 1,
      2 ** 53,
      1e308,
      '',
      null,
      true,
      [],
      {},
      ['a'],
      '\ud800',
      "'; DROP TABLE users; --",
    ),
    fc.jsonValue({ maxDepth: 3 }),
  )
  const body = fc.dictionary(fc.constantFrom(...NAMES), value, { maxKeys: 8 })
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      fc.constantFrom(hub.admin, realmToken),
      body,
      async (path, token, given) => {
        // Passwords cost time on purpose, sessions must not end, and polls may wait.
        if (/session|password|users\/|accept_invite|poll|revoke|rotate_token/.test(path)) return
        const { status, data, error } = await hub.call(token, path, given)
        expect([path, given, status]).not.toEqual([path, given, 500])
        expect(status < 300 ? data : error?.code).toBeDefined()
      },
    ),
    { numRuns: AGAIN ? 1_000 : 3_000 },
  )
  expect((await hub.log()).filter(line => line.includes('"error"') && line.includes('request failed'))).toEqual([])
}, 120_000)
