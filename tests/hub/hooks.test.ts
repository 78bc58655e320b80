// Hooks of a realm over HTTP: what becomes of deliveries, what is kept of them, and who may change what.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq, getTableColumns, getTableName, is, sql, Table } from 'drizzle-orm'
import type { Sealed } from '../../db/hub/columns.ts'
import { sealedTables } from '../../lib/hub/keys/sealed-columns.ts'
import { deleteOldBodies } from '../../lib/hub/triggers/hook-table.ts'
import { post, SECRET, signed } from '../support/hooks.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { type RealmTriggerHub, realmTriggers } from '../support/realm-triggers.ts'

let hub: TestHub
let t: RealmTriggerHub
let names = 0

const HUB = 'hub.example.com'

beforeAll(async () => {
  const env = { CADRE_HUB_PUBLIC_URL: `https://${HUB}/`, CADRE_HOOK_HOSTS: `${HUB},127.0.0.1`, CADRE_HUB_KEY: 'k' }
  t = await realmTriggers(() => startTestHub({ env }))
  hub = t.hub
})
afterAll(() => hub.stop())

const addHook = (fields: object = {}) =>
  t.call('add', {
    ...{ realm_id: hub.realm, name: `h${++names}`, kind: 'hook', team: t.team, scheme: 'github', secret: SECRET },
    ...fields,
  })
/** The address of the test's hub, whose public one is another. */
const here = ({ url }: { url: string }) => hub.url + new URL(url).pathname
const send = (hook: { url: string }, body: string, id?: string, secret = SECRET) =>
  post(here(hook), body, signed(body, id, secret))
const OPENED = '{"action":"opened","n":"x"}'

test('a delivery starts a run with its values, and gets the same run when it comes again', async () => {
  const added = await addHook({ when: 'body.action == "opened"', inputs: { day: '{{ body.n }}' } })
  expect(added).toMatchObject({ state: 'active', owner: 'admin', overlap: 'allow', next: [], keep_body: 7 })
  expect(added.url).toMatch(/^https:\/\/hub\.example\.com\/v1\/hooks\/[A-Za-z0-9_-]{22}$/)
  expect(added.secrets).toMatchObject([{ expires_at: null }])
  expect(JSON.stringify(added)).not.toContain('Secret to Everybody')
  const first = await send(added, OPENED, 'g-1')
  expect([first.status, first.body.data]).toMatchObject([202, { delivery: 'g-1', state: 'started' }])
  const again = await send(added, OPENED, 'g-1')
  expect([again.status, again.body.data]).toEqual([202, { ...first.body.data, duplicate: true }])
  const { run_id, firing } = first.body.data
  const started_by = { kind: 'hook', trigger: added.id, name: added.name, firing, delivery: 'g-1' }
  expect(await hub.ok(hub.admin, 'runs/get', { run_id })).toMatchObject({ inputs: { day: 'x' }, started_by })
  const skipped = await send(added, '{"action":"closed"}', 'g-2')
  expect(skipped.body.data).toMatchObject({ state: 'skipped', reason: 'when', run_id: null })
  expect((await send(added, OPENED, 'g-2')).body.data).toMatchObject({ state: 'skipped', duplicate: true })
  // The key is that of one hook.
  expect((await send(await addHook(), OPENED, 'g-1')).body.data).not.toHaveProperty('duplicate')
  const rows = (await t.call('firings', { trigger_id: added.id })).firings
  expect(rows.map((row: { occasion: string; deliveries: number }) => [row.occasion, row.deliveries])).toEqual([
    ['g-2', 2],
    ['g-1', 2],
  ])
})

test('concurrent first deliveries answer the same run', async () => {
  const added = await addHook()
  const replies = await Promise.all(Array.from({ length: 24 }, () => send(added, OPENED, 'g-1')))
  expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([202]))
  expect(new Set(replies.map(({ body }) => body.data.run_id)).size).toBe(1)
  expect(replies.filter(({ body }) => body.data.duplicate !== true)).toHaveLength(1)
  const { firings } = await t.call('firings', { trigger_id: added.id })
  expect(firings).toMatchObject([{ state: 'started', deliveries: 24 }])
})

test('changed bytes are 401, and a stranger has no id of its own', async () => {
  const added = await addHook()
  const good = signed(OPENED, 'g-1')
  const name = 'x-hub-signature-256'
  for (const at of [0, 7, 8, 40, good[name].length - 1]) {
    const text = good[name]
    const other = text[at] === 'a' ? 'b' : 'a'
    const bad = { ...good, [name]: text.slice(0, at) + other + text.slice(at + 1) }
    expect((await post(here(added), OPENED, bad)).status).toBe(401)
  }
  const { status, body } = await post(here(added), `${OPENED} `, good)
  expect([status, body.error]).toEqual([401, { code: 'unauthorized', message: 'the signature does not fit' }])
  const { firings } = await t.call('firings', { trigger_id: added.id })
  expect(firings).toHaveLength(6)
  expect(firings[0]).toMatchObject({ state: 'refused', reason: 'signature' })
  expect(firings[0].occasion).toStartWith('rejected:')
  expect((await send(added, OPENED, 'g-1')).body.data.state).toBe('started')
})

test('unknown, disabled and removed hooks are answered alike, other methods with 405, other hosts with 403', async () => {
  const added = await addHook()
  const unknown = await post(`${here(added).slice(0, -22)}${'A'.repeat(22)}`, OPENED, signed(OPENED))
  await t.call('disable', { trigger_id: added.id })
  const disabled = await send(added, OPENED)
  await t.call('enable', { trigger_id: added.id })
  expect((await post(here(added), OPENED, { ...signed(OPENED), host: HUB })).status).toBe(202)
  expect((await post(here(added), OPENED, { ...signed(OPENED), host: 'evil.example.com' })).status).toBe(403)
  await t.remove(added)
  const removed = await send(added, OPENED)
  for (const each of [unknown, disabled, removed]) expect([each.status, each.text]).toEqual([404, unknown.text])
  for (const method of ['GET', 'HEAD', 'PUT']) {
    expect([method, (await fetch(here(added), { method })).status]).toEqual([method, 405])
  }
})

test('what is too large is 413, what is encoded 415, and what is no JSON 400, until it is', async () => {
  const added = await addHook({ max_bytes: 100 })
  expect((await send(added, JSON.stringify({ text: 'x'.repeat(200) }))).status).toBe(413)
  expect((await post(here(added), OPENED, { ...signed(OPENED), 'content-encoding': 'gzip' })).status).toBe(415)
  expect((await send(added, '{"n":', 'g-1')).status).toBe(400)
  expect((await send(added, '{"n":1}', 'g-1')).body.data.state).toBe('started')
  expect((await t.rows(added)).sort()).toEqual(['refused too_large', 'started'])
})

test('what was refused is judged anew when it comes again', async () => {
  const added = await addHook({ inputs: { day: '{{ body.n }}' } })
  const refused = await send(added, '{"n":7}', 'g-1')
  expect([refused.status, refused.body.data]).toMatchObject([202, { state: 'refused', reason: 'inputs' }])
  expect((await send(added, '{"m":7}', 'g-2')).body.data).toMatchObject({ state: 'refused', reason: 'expression' })
  await t.call('update', { trigger_id: added.id, inputs: { day: '{{ string(body.n) }}' } })
  const mended = await send(added, '{"n":7}', 'g-1')
  expect(mended.body.data).toMatchObject({ state: 'started', firing: refused.body.data.firing })
  const row = (await t.firings(added)).find(({ id }) => id === refused.body.data.firing)
  expect(row).toMatchObject({ deliveries: 2, reason: null, detail: null })
})

test('a refused delivery has one run, whether it comes again or is fired again, and keeps it', async () => {
  const added = await addHook({ inputs: { day: '{{ body.m }}' } })
  const ids = ['g-1', 'g-2', 'g-3']
  const refused = await Promise.all(ids.map(id => send(added, OPENED, id)))
  await t.call('update', { trigger_id: added.id, inputs: { day: '{{ body.n }}' } })
  for (const [n, id] of ids.entries()) {
    const firing_id = refused[n]!.body.data.firing
    const refire = () => hub.call(hub.admin, 'triggers/refire', { firing_id })
    await Promise.all([send(added, OPENED, id), refire(), send(added, '{bad', id), refire(), send(added, OPENED, id)])
    const { data } = (await send(added, OPENED, id)).body
    expect(data).toMatchObject({ delivery: id, state: 'started', duplicate: true })
    expect((await refire()).status).toBe(409)
  }
  expect((await t.rows(added)).filter(row => row.startsWith('started'))).toHaveLength(3)
})

test('a pause records each, and a refire starts it with its body', async () => {
  const added = await addHook({ inputs: { day: '{{ body.n }}' } })
  await t.call('pause', { trigger_id: added.id, reason: 'moving' })
  const paused = await send(added, OPENED, 'g-1')
  expect([paused.status, paused.body.data]).toMatchObject([202, { state: 'skipped', reason: 'paused' }])
  await t.call('resume', { trigger_id: added.id })
  const fired = await t.call('refire', { firing_id: paused.body.data.firing })
  expect(fired).toMatchObject({ occasion: 'g-1#2', state: 'started', manual: { by: 'admin' }, deliveries: null })
  const { inputs, started_by } = await hub.ok(hub.admin, 'runs/get', { run_id: fired.run_id })
  expect([inputs, started_by]).toMatchObject([{ day: 'x' }, { kind: 'hook', delivery: 'g-1', manual: { by: 'admin' } }])
})

test('those that wait start later, with their bodies, which are gone then', async () => {
  const added = await addHook({ inputs: { day: '{{ body.n }}' }, overlap: 'queue', queue_max: 5, keep_body: 0 })
  const held = await send(added, '{"n":"1"}', 'g-1')
  const next = await send(added, '{"n":"2"}', 'g-2')
  expect([held.body.data.state, next.body.data]).toMatchObject(['started', { state: 'waiting', run_id: null }])
  const { hookBodies, db } = hub.store
  const kept = () => db.select().from(hookBodies).where(eq(hookBodies.firing_id, next.body.data.firing))
  expect(await kept()).toHaveLength(1)
  await t.end(held.body.data.run_id)
  const started = await t.firing(added, { occasion: 'g-2', state: 'started' })
  expect((await hub.ok(hub.admin, 'runs/get', { run_id: started.run_id })).inputs).toMatchObject({ day: '2' })
  expect(await kept()).toHaveLength(0)
})

test('the body is sealed, masked where it is shown, and deleted after its days', async () => {
  const added = await addHook()
  const body = JSON.stringify({ secret: SECRET, text: 'a word that is in the body' })
  const headers = { ...signed(body, 'g-1'), authorization: 'Bearer of-the-sender', cookie: 'a=b' }
  const { firing } = (await post(`${here(added)}?from=there`, body, headers)).body.data
  const shown = async () => {
    const { firings } = await t.call('firings', { trigger_id: added.id, with_body: true })
    return firings.at(-1).delivery
  }
  const { headers: stored, query, body: text } = await shown()
  expect(stored).toMatchObject({ 'x-github-event': 'issues', 'x-github-delivery': 'g-1' })
  for (const name of ['authorization', 'cookie', 'x-hub-signature-256']) expect(stored).not.toHaveProperty(name)
  expect(query).toEqual({ from: 'there' })
  expect(text).toContain('a word that is in the body')
  expect(text).not.toContain('Secret to Everybody')
  expect((await t.call('firings', { trigger_id: added.id })).firings[0]).not.toHaveProperty('delivery')
  const { db, hookBodies, hookSecrets } = hub.store
  for (const { sealed } of [...(await db.select().from(hookBodies)), ...(await db.select().from(hookSecrets))]) {
    expect(sealed).toStartWith('sealed:')
  }
  const DAY = 86_400_000
  const sweep = { store: hub.store } as Parameters<typeof deleteOldBodies>[0]
  await deleteOldBodies(sweep, Date.now() + 6 * DAY, 100)
  expect((await shown()).body).not.toBeNull()
  await deleteOldBodies(sweep, Date.now() + 8 * DAY, 100)
  expect((await shown()).body).toBeNull()
  expect((await hub.call(hub.admin, 'triggers/refire', { firing_id: firing, again: true })).status).toBe(409)
})

test('a secret that its sender writes into the body is in no run', async () => {
  const added = await addHook({ inputs: { day: 'of {{ body.secret }}' } })
  const { run_id } = (await send(added, JSON.stringify({ secret: SECRET }))).body.data
  const run = await hub.ok(hub.admin, 'runs/get', { run_id })
  expect(run.inputs.day).toStartWith('of ')
  const { db, jobs } = hub.store
  const rows = await db.select().from(jobs)
  expect(JSON.stringify([run, rows])).not.toContain(SECRET)
  expect(rows.map(row => row.run_id)).toContain(run_id)
})

test('two secrets fit at a time, and the scheme has to fit them', async () => {
  const { id: trigger_id, secrets, url } = await addHook()
  const change = (given: object) => hub.call(hub.admin, 'triggers/update', { trigger_id, ...given })
  const statusWith = async (secret: string) => (await send({ url }, OPENED, undefined, secret)).status
  expect((await change({ expire_secret: secrets[0].id })).status).toBe(409)
  const added = (await change({ add_secret: 'the second secret' })).data
  expect([added.revision, added.secrets.length]).toEqual([2, 2])
  expect([await statusWith(SECRET), await statusWith('the second secret')]).toEqual([202, 202])
  expect((await change({ add_secret: 'a third secret' })).status).toBe(409)
  expect((await change({ expire_secret: secrets[0].id })).status).toBe(200)
  expect([await statusWith(SECRET), await statusWith('the second secret')]).toEqual([401, 202])
  expect((await change({ expire_secret: secrets[0].id })).status).toBe(404)
  expect((await change({ secret: 'another secret' })).status).toBe(400)
  expect((await change({ scheme: 'gitlab' })).status).toBe(400)
  expect((await hub.call(hub.admin, 'triggers/add', { ...ADDED(), secret: undefined })).status).toBe(400)
})

const ADDED = () => ({ realm_id: hub.realm, name: `h${++names}`, kind: 'hook', team: t.team, scheme: 'github' })

test('a preview says what a delivery would do, and writes nothing', async () => {
  const { id: trigger_id } = await addHook({ when: 'body.action == "opened"', inputs: { day: '{{ body.n }}' } })
  const outcome = async (given: object) => (await t.call('preview', given)).outcome
  expect(await outcome({ trigger_id, body: { action: 'opened', n: 'x' } })).toEqual({
    ...{ state: 'starts', reason: null, detail: null, inputs: { day: 'x' } },
  })
  expect(await outcome({ trigger_id, body: { action: 'closed' } })).toMatchObject({ state: 'skipped', reason: 'when' })
  expect(await outcome({ trigger_id, body: { action: 'opened', n: 1 } })).toMatchObject({ reason: 'inputs' })
  const spec = {
    realm_id: hub.realm,
    scheme: 'github',
    team: t.team,
    inputs: { day: '{{ headers["x-github-event"] }}' },
  }
  expect(await outcome({ ...spec, headers: { 'x-github-event': 'push' } })).toMatchObject({ inputs: { day: 'push' } })
  expect(await t.firings({ id: trigger_id })).toEqual([])
})

test('members see hooks and may not change them, and a run starts with the rights of the owner', async () => {
  const added = await addHook()
  const member = await t.person('mel', 'member')
  const { data } = await hub.call(member, 'triggers/get', { trigger_id: added.id })
  expect(data.url).toBe(added.url)
  expect((await hub.call(member, 'triggers/update', { trigger_id: added.id, add_secret: 'a new secret' })).status).toBe(
    403,
  )
  expect((await hub.call(member, 'triggers/add', { ...ADDED(), secret: SECRET })).status).toBe(403)
  const ann = await t.person('ann')
  await hub.ok(ann, 'triggers/update', { trigger_id: added.id, owner: 'me' })
  expect((await send(added, OPENED)).body.data.state).toBe('started')
  await hub.ok(hub.admin, 'realms/remove_member', { realm_id: hub.realm, username: 'ann' })
  const refused = await send(added, OPENED, 'g-1')
  expect([refused.status, refused.body.data]).toMatchObject([202, { state: 'refused', reason: 'owner' }])
  expect((await t.call('get', { trigger_id: added.id })).state).toBe('broken')
  await t.call('update', { trigger_id: added.id, owner: 'me' })
  expect((await send(added, OPENED, 'g-1')).body.data.state).toBe('started')
})

test('what cannot be recorded is answered with 503, and taken when it comes again', async () => {
  const added = await addHook()
  const isPostgres = hub.store.dialect === 'postgres'
  await using sql = new Bun.SQL(isPostgres ? hub.database : `sqlite://${hub.database}`, { max: 1 })
  await sql.unsafe('ALTER TABLE hook_bodies RENAME TO away')
  const away = await send(added, OPENED, 'g-1')
  await sql.unsafe('ALTER TABLE away RENAME TO hook_bodies')
  expect([away.status, away.headers.get('retry-after')]).toEqual([503, '30'])
  expect(await t.firings(added)).toEqual([])
  expect((await send(added, OPENED, 'g-1')).body.data).toMatchObject({ state: 'started' })
  expect(await t.rows(added)).toEqual(['started'])
})

test('without the key of its secret a hook is broken, and takes deliveries when the key is back', async () => {
  const added = await addHook()
  const { hookSecrets, write } = hub.store
  const its = eq(hookSecrets.trigger_id, added.id)
  const [row] = await hub.store.db.select().from(hookSecrets).where(its)
  const seal = (sealed: string) =>
    write(tx =>
      tx
        .update(hookSecrets)
        .set({ sealed: sealed as Sealed })
        .where(its),
    )
  // As a restart with another key sees it.
  await seal(`sealed:v1:${Buffer.alloc(64).toString('base64')}`)
  const away = await send(added, OPENED, 'g-1')
  expect([away.status, away.headers.get('retry-after')]).toEqual([503, '30'])
  const get = () => t.call('get', { trigger_id: added.id })
  expect(await get()).toMatchObject({ state: 'broken', problem: { reason: 'internal' } })
  await seal(row!.sealed)
  expect((await send(added, OPENED, 'g-1')).body.data.state).toBe('started')
  expect((await get()).state).toBe('active')
})

test('sealed text stands in the columns that a rotation of the key seals again, and in no other', async () => {
  const { store } = hub
  await send(await addHook(), OPENED, 'g-1')
  const url = 'https://example.com/'
  await hub.ok(hub.admin, 'realms/add_webhook', { realm_id: hub.realm, url, events: ['run.failed'] })
  const found: string[] = []
  for (const table of Object.values(store).filter(each => is(each, Table))) {
    for (const column of Object.values(getTableColumns(table))) {
      const sealed = sql`CAST(${column} AS text) LIKE '%sealed:v1:%'`
      const rows = await store.db.select({ one: sql`1` }).from(table).where(sealed).limit(1)
      if (rows.length > 0) found.push(`${getTableName(table)}.${column.name}`)
    }
  }
  const known = sealedTables(store).map(({ table, sealed }) => `${getTableName(table)}.${sealed.name}`)
  expect(found.sort()).toEqual(known.sort())
})

test('behind a proxy that is trusted, bad signatures are counted by the address that it reports', async () => {
  await hub.restart({ env: { CADRE_TRUST_PROXY: '1', CADRE_HUB_KEY: 'k' } })
  const added = await addHook()
  const from = async (address: string) => {
    const headers = { ...signed(OPENED, 'x', 'wrong'), 'x-forwarded-for': `203.0.113.9, ${address}` }
    return (await post(hub.url + added.url, OPENED, headers)).status
  }
  const statuses: number[] = []
  for (let n = 0; n < 60 && !statuses.includes(429); n++) statuses.push(await from('198.51.100.7'))
  expect([statuses.at(-1), await from('198.51.100.8')]).toEqual([429, 401])
})
