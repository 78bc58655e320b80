// An older copy that only daemons can tell, on a hub with two realms: the daemons of each show that its realm lost something.

import { expect, test } from 'bun:test'
import { CopiedHub, sqlitePlace } from '../support/older-copy.ts'

// biome-ignore lint/suspicious/noExplicitAny: the replies of the API.
type Data = any
interface Caller {
  realm: string
  beat(memory?: Data): Promise<Data>
}

/** A daemon as the hub sees it, with a realm of its own. */
async function callerOf(hub: CopiedHub, realm: string): Promise<Caller> {
  const { token } = await hub.ok('auth/generate_token', { type: 'realm', name: 'x', realm_ids: [realm] })
  const call = async (path: string, body: object) => {
    const reply = await fetch(`${hub.url}/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    })
    expect(reply.status).toBe(200)
    return ((await reply.json()) as Data).data
  }
  const { daemon_id } = await call('daemons/register', { name: 'ada' })
  return { realm, beat: memory => call('daemons/heartbeat', { daemon_id, ...(memory && { memory }) }) }
}

/** A hub with two realms that was put back, and what a daemon of each remembers of the commits that were lost. */
async function putBack() {
  const place = sqlitePlace('snapshot')
  const hub = await CopiedHub.start(place.database)
  const { id: other } = await hub.ok('realms/create', { org_id: 1, slug: 'other', name: 'other' })
  const callers = [await callerOf(hub, hub.realm), await callerOf(hub, other)]
  await place.copy()
  for (let n = 0; n < 30; n++) {
    await hub.ok('auth/generate_token', { type: 'realm', name: `lost ${n}`, realm_ids: [hub.realm] })
  }
  const seen: Data[] = []
  for (const { beat } of callers) seen.push((await beat()).memory)
  await hub.restore(place)
  const copies = () =>
    Promise.all(callers.map(async ({ realm }) => (await hub.ok('daemons/reconcile', { realm_id: realm })).older_copy))
  expect(await copies()).toEqual([null, null])
  return { hub, callers, seen, copies }
}

test('each realm is held by what its own daemon has seen, while the other one is', async () => {
  const { hub, callers, seen, copies } = await putBack()
  await using _ = hub
  await callers[0]!.beat(seen[0])
  expect(await copies()).toEqual([expect.objectContaining({ kind: 'behind', lost: true }), null])
  await callers[1]!.beat(seen[1])
  const found = await copies()
  expect(found[1]).toMatchObject({ kind: 'behind', lost: true })
  // Whoever shows the same again shows nothing new.
  for (const [n, { beat }] of callers.entries()) await beat(seen[n])
  expect(await copies()).toEqual(found)
}, 60_000)

test('so is it when both say it at the same time', async () => {
  const { hub, callers, seen, copies } = await putBack()
  await using _ = hub
  await Promise.all(callers.map(({ beat }, n) => beat(seen[n])))
  for (const copy of await copies()) expect(copy).toMatchObject({ kind: 'behind', lost: true })
}, 60_000)
