// A call that was admitted while its token was valid, and whose token ends before the call writes, writes nothing. The
// test keeps the writes of a hub waiting, ends the token, and lets them go on in their order.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { hubApp } from '../../hub.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { until } from '../support/bounded.ts'
import { drivenClock } from '../support/driven-clock.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { tablesOf } from '../support/tables.ts'

let hub: TestHub
let ahead = 0
/** Writes wait for it. */
let gate: Promise<unknown> = Promise.resolve()
let waiting = 0
let here: ReturnType<typeof createHub>
let app: ReturnType<typeof hubApp>
beforeAll(async () => {
  hub = await startTestHub()
  await hub.addTeam(
    'name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: a, agent: exec, commands: [{ name: c, run: "true" }] }]\n',
  )
  const write: typeof hub.store.write = async work => {
    waiting++
    await gate
    return hub.store.write(work)
  }
  const log = createLog({ write: () => {} })
  here = createHub({
    store: { ...hub.store, write },
    log,
    clock: drivenClock(() => Date.now() + ahead),
    home: folder(),
  })
  app = hubApp(here)
})
afterAll(async () => {
  await here.lastSeen.close()
  await hub.stop()
})

async function call(token: string, path: string, body: object): Promise<number> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  return (
    await app.handle(new Request(`http://hub/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) }))
  ).status
}

let made = 0
/** A site admin with a token that ends in a day, and with a realm token that does. */
async function makeOwner() {
  const username = `owner${++made}`
  const { id, token: session } = await hub.account(username)
  await hub.ok(hub.admin, 'users/update', { user_id: id, site_admin: true })
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username, role: 'admin' })
  const mint = (body: object) => hub.ok(session, 'auth/generate_token', { name: 'x', expires_in_days: 1, ...body })
  return {
    id,
    session,
    user: await mint({ type: 'user' }),
    realm: await mint({ type: 'realm', realm_ids: [hub.realm] }),
  }
}
type Owner = Awaited<ReturnType<typeof makeOwner>>

/** What happens to a token between the admission of a call and its write, and what the call answers then: null when it succeeds. */
const ENDS: [string, (owner: Owner, token: { id: number }) => unknown, number | null][] = [
  ['rotated', ({ session }, { id }) => hub.ok(session, 'auth/rotate_token', { id }), 401],
  ['revoked', ({ session }, { id }) => hub.ok(session, 'auth/revoke_token', { id }), 401],
  ['expired', () => (ahead = 86_400_000 + 60_000), 401],
  ['of a suspended owner', ({ id }) => hub.ok(hub.admin, 'users/suspend', { user_id: id }), 401],
  ['of a demoted site admin', ({ id }) => hub.ok(hub.admin, 'users/update', { user_id: id, site_admin: false }), 403],
  ['as it was', () => {}, null],
]

/** Calls that write, one of each way to write: for a user, in a shared transaction, for a realm token. */
const CALLS: [string, 'user' | 'realm', () => object][] = [
  ['users/create', 'user', () => ({ username: `made${made}`, password: 'long enough' })],
  ['dispatch/run', 'user', () => ({ realm_id: hub.realm, team: '@admin/t' })],
  ['daemons/register', 'realm', () => ({ name: `made${made}` })],
]

async function countRows(): Promise<number[]> {
  const { users, runs, jobs, daemons } = await tablesOf(hub.store)
  return [users, runs, jobs, daemons].map(rows => rows!.length)
}

test.each(ENDS.flatMap(end => CALLS.map(call => [end[0], call[0], end, call] as const)))(
  'a token that is %s when %s writes',
  async (_, path, [, end, status], [, kind, body]) => {
    const owner = await makeOwner()
    const before = await countRows()
    const open = Promise.withResolvers<void>()
    waiting = 0
    gate = open.promise
    const reply = call(owner[kind].token, path, body())
    try {
      await until(() => waiting > 0, 'the call waits for its write')
      await end(owner, owner[kind])
      open.resolve()
      if (status === null) expect(await reply).toBeLessThan(300)
      else expect(await reply).toBe(status)
    } finally {
      open.resolve()
      ahead = 0
    }
    const after = await countRows()
    if (status === null) expect(after).not.toEqual(before)
    else expect(after).toEqual(before)
  },
)
