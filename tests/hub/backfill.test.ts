// Backfill in a realm: slots of the past that were missed start after all, one after the other.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { HOUR, MINUTE, type RealmTriggerHub, realmTriggers } from '../support/realm-triggers.ts'

let hub: TestHub
let t: RealmTriggerHub
beforeAll(async () => {
  t = await realmTriggers(startTestHub)
  hub = t.hub
})
afterAll(() => hub.stop())

/** Ten or eleven slots were missed while the clock jumped, and the newest started. */
async function missed(fields: object = {}) {
  const added = await t.schedule({ inputs: { day: '{{ slot }}' }, ...fields })
  const from = t.now()
  await t.later(HOUR)
  const newest = await t.firing(added, { state: 'started' })
  await t.end(newest.run_id)
  const fill = (more: object = {}) =>
    t.call('backfill', { trigger_id: added.id, from, to: t.now() + HOUR, most: 3, ...more })
  return { added, fill, from }
}

test.each(['skip', 'queue', 'cancel_running', 'allow'])(
  'one after the other, the oldest first, whatever `overlap: %s` says',
  async overlap => {
    const { added, fill } = await missed({ overlap })
    const would = await fill({ dry_run: true })
    expect([would.slots.length, would.left, would.firings]).toEqual([3, 8, []])
    expect(await t.rows(added)).toEqual(['skipped missed x11', 'started'])
    const { slots, left, firings } = await fill()
    expect([slots, left]).toEqual([would.slots, 8])
    expect(firings).toMatchObject(
      slots.map(({ at }: { at: number }) => ({ at, state: 'waiting', manual: { by: 'admin' } })),
    )
    for (const [n, { id, at }] of firings.entries()) {
      const { run_id, occasion } = await t.firing(added, { id, state: 'started' })
      const states = (await t.firings(added)).filter(({ state }) => state === 'waiting')
      expect(states).toHaveLength(2 - n)
      const run = await hub.ok(hub.admin, 'runs/get', { run_id })
      const slot = `${new Date(at).toISOString().slice(0, 16)}Z`
      expect([occasion.split('#')[0], run.inputs.day, run.state]).toEqual([slot, slot, 'queued'])
      expect(run.started_by).toMatchObject({ kind: 'schedule', slot, manual: { by: 'admin' } })
      await t.end(run_id)
    }
    // They have their rows now.
    expect((await fill({ dry_run: true })).slots[0].at).toBe(slots[2].at + 5 * MINUTE)
    const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, limit: 50 })
    const entry = audit.find(({ action }: { action: string }) => action === 'triggers/backfill')
    expect(entry).toMatchObject({ username: 'admin', target: `${added.name}: 3`, realm_id: hub.realm })
    await t.remove(added)
  },
)

test('two who ask at once have each slot once', async () => {
  const { added, fill } = await missed()
  const both = await Promise.all([1, 2].map(() => fill({ most: 5 })))
  const all = both.flatMap(({ firings }) => firings.map(({ at }: { at: number }) => at))
  expect(new Set(all).size).toBe(all.length)
  expect((await t.firings(added)).filter(({ run_id, state }) => state === 'waiting' || run_id !== null)).toHaveLength(
    all.length + 1,
  )
  await t.remove(added)
})

test('what may have started before an older copy was found needs a yes', async () => {
  const { added, fill, from } = await missed()
  const copy = {
    id: crypto.randomUUID(),
    kind: 'restored' as const,
    realm_id: hub.realm,
    count: 0,
    raised: 0,
    process: 'p',
  }
  const times = { found_at: from + 12 * MINUTE, found_lived: null, written_at: from, ended_at: from, lost: true }
  await hub.store.write(tx => tx.insert(hub.store.copies).values({ ...copy, ...times }))
  const { status, error } = await hub.call(hub.admin, 'triggers/backfill', {
    ...{ trigger_id: added.id, from, to: t.now() },
  })
  expect([status, error?.message]).toEqual([
    409,
    expect.stringContaining('may have been started; `yes` starts them here'),
  ])
  expect((await fill({ from: from + 15 * MINUTE })).firings).toHaveLength(3)
  expect((await fill({ yes: true, most: 1 })).firings).toHaveLength(1)
  await t.remove(added)
})

test('only schedules have slots, and only operators start them', async () => {
  await hub.addTeam(
    'name: "@admin/other"\nversion: 1.0.0\nphases: [{ name: a, type: gate, review: { prompt: "?" } }]\n',
  )
  const rule = { realm_id: hub.realm, name: 'follow', kind: 'chain', team: '@admin/other', after: 'build' }
  const chain = await t.call('add', rule)
  const of = (trigger_id: string, token = hub.admin) =>
    hub.call(token, 'triggers/backfill', { trigger_id, from: 0, to: t.now(), most: 1 })
  expect((await of(chain.id)).error?.message).toContain('is a chain')
  const { added } = await missed()
  expect((await of(added.id, await t.person('mia', 'member'))).status).toBe(403)
  await t.call('disable', { trigger_id: added.id })
  expect(await of(added.id)).toMatchObject({ status: 409, error: { code: 'invalid_state' } })
  for (const each of [chain, added]) await t.remove(each)
})
