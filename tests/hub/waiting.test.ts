// Calls that wait, a poll and a stream: whoever loses what let them in gets nothing more by them.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../support/hub.ts'

let hub: TestHub
let realm: string
const TEAM =
  'name: "@admin/waits"\nversion: 1.0.0\nphases:\n  - { name: ask, type: gate, review: { prompt: "Go on?" } }\n'

beforeAll(async () => {
  hub = await startTestHub()
  realm = hub.realm
  await hub.addTeam(TEAM)
})
afterAll(() => hub.stop())

const dispatch = () => hub.ok(hub.admin, 'dispatch/run', { realm_id: realm, team: '@admin/waits' })

/** A daemon in the realm of `minter`’s token. */
async function daemon(minter: string) {
  const { id, token } = await hub.realmToken(minter, realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'waits' })
  const poll = (wait_ms: number) => hub.call(token, 'daemons/poll', { daemon_id, slots: 1, wait_ms })
  return { id, token, daemon_id, poll }
}

async function member(username: string, role = 'member') {
  const { token } = await hub.account(username)
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: realm, username, role })
  return token
}

const leave = (username: string) => hub.ok(hub.admin, 'realms/remove_member', { realm_id: realm, username })

interface Ending {
  id: number
  daemon_id: string
  minter: string
  username: string
}

test.each<[string, number, (by: Ending) => Promise<unknown>]>([
  ['a token that is revoked', 401, ({ id, minter }) => hub.ok(minter, 'auth/revoke_token', { id })],
  ['a secret that is rotated', 401, ({ id, minter }) => hub.ok(minter, 'auth/rotate_token', { id })],
  ['a token whose minter leaves the realm', 403, ({ username }) => leave(username)],
  ['a daemon that is removed', 404, ({ daemon_id }) => hub.ok(hub.admin, 'daemons/remove', { daemon_id })],
])('%s gets no job by the poll that waits', async (_, status, end) => {
  const username = `minter-${crypto.randomUUID()}`
  // What an operator enrols is approved, so that only its end keeps the poll from its job.
  const minter = await member(username, 'operator')
  const taker = await daemon(minter)
  const waiting = taker.poll(20_000)
  await Bun.sleep(200)
  await end({ ...taker, minter, username })
  const { run_id } = await dispatch()
  expect((await waiting).status).toBe(status)
  // Delivered to nobody before.
  const other = await daemon(hub.admin)
  const { jobs } = (await other.poll(0)).data
  expect(jobs).toMatchObject([{ run_id, attempt: 1 }])
  const answer = { daemon_id: other.daemon_id, job_id: jobs[0].job_id, lease_id: jobs[0].lease_id, status: 'failed' }
  await hub.ok(other.token, 'daemons/ack', answer)
})

test('a stream tells nothing more to one who left the realm, and what happens to those who stay', async () => {
  const leaves = await member('leaves')
  const stays = await member('stays')
  const { run_id } = await dispatch()
  /** A stream that has told how things stand, and all that it tells until it ends. */
  const open = async (token: string) => {
    const headers = { authorization: `Bearer ${token}` }
    const reply = await fetch(`${hub.url}/v1/runs/stream?run_id=${run_id}`, { headers })
    expect(reply.status).toBe(200)
    const standing = Promise.withResolvers<void>()
    const read = async () => {
      let text = ''
      try {
        for await (const piece of reply.body!) {
          text += new TextDecoder().decode(piece)
          if (text.includes('"queued"')) standing.resolve()
        }
      } catch {
        // Cut off.
      }
      standing.reject(new Error(`it ended with ${text}`))
      return text
    }
    const whole = read()
    await standing.promise
    return { whole }
  }
  const streams = await Promise.all([open(leaves), open(stays)])
  await leave('leaves')
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  const [left, stayed] = await Promise.all(streams.map(({ whole }) => whole))
  expect(left).not.toContain('"cancelled"')
  expect(stayed).toContain('event: end')
  const log = await hub.log()
  expect(log.filter(line => line.includes('"level":"error"'))).toEqual([])
})
