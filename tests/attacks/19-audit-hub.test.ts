// The audit log of a hub: one hash chain an org and one for what belongs to none, its export, its retention, and the
// webhooks that are told of it. The suite of PostgreSQL repeats these with two hubs on one database.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { and, desc, eq, isNull } from 'drizzle-orm'
import { Webhook } from 'standardwebhooks'
import { jsonLines, verifyAudit } from '../../lib/audit/audit-verify.ts'
import { deleteOldEntries } from '../../lib/hub/webhooks/audit-chain.ts'
import { until } from '../support/bounded.ts'
import { command } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

setDefaultTimeout(60_000)

let hub: TestHub
let acme: { id: number; realm: string }
let owner: { token: string; id: number }

beforeAll(async () => {
  hub = await startTestHub()
  owner = await hub.account('owner')
  const { id } = await hub.ok(hub.admin, 'orgs/create', { slug: 'acme', display_name: 'Acme' })
  await hub.ok(hub.admin, 'orgs/add_member', { org_id: id, username: 'owner', role: 'owner' })
  const realm = (await hub.ok(owner.token, 'realms/create', { org_id: id, slug: 'prod', name: 'prod' })).id
  acme = { id, realm }
})
afterAll(() => hub.stop())

interface Line {
  type?: string
  chain: string
  seq: number
  hash: string
  action: string
  username: string | null
  org_id: number | null
  realm_id: string | null
  target: string
  at: number
  cursor: number
  unsealed?: number
}

async function asked(token: string | null, body: object = {}): Promise<Response> {
  return fetch(`${hub.url}/v1/audit/export`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  })
}

async function exported(token: string, body: object = {}): Promise<Line[]> {
  const reply = await asked(token, body)
  expect([reply.status, reply.headers.get('content-type')]).toEqual([200, 'application/x-ndjson'])
  const text = await reply.text()
  return text.split('\n').flatMap(line => (line === '' ? [] : [JSON.parse(line)]))
}

const entries = (lines: readonly Line[]) => lines.filter(({ type }) => type === undefined)
const bytes = async function* (lines: readonly Line[]) {
  for (const line of lines) yield Buffer.from(`${JSON.stringify(line)}\n`)
}
const verdict = async (lines: readonly Line[], from?: string) =>
  verifyAudit(jsonLines(bytes(lines)), from === undefined ? {} : { from })

test('each org has a chain, what belongs to none has one, and an export shows them whole', async () => {
  const lines = await exported(hub.admin)
  const { whole, chains } = await verdict(lines)
  expect(whole).toBe(true)
  expect(chains.map(({ chain }) => chain).sort()).toEqual(['hub', `org:${acme.id}`])
  for (const chain of ['hub', `org:${acme.id}`]) {
    const own = entries(lines).filter(each => each.chain === chain)
    expect(own.map(({ seq }) => seq)).toEqual(own.map((_, at) => at + 1))
  }
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: acme.id })
  const told = audit.toReversed().map(({ action, hash }: Line) => ({ action, hash }))
  expect(
    entries(lines)
      .filter(({ org_id }) => org_id === acme.id)
      .map(({ action, hash }) => ({ action, hash })),
  ).toEqual(told)
})

test('an owner exports the org alone, a stranger and a narrower token get nothing', async () => {
  const lines = await exported(owner.token)
  expect([...new Set(lines.map(({ chain }) => chain))]).toEqual([`org:${acme.id}`])
  expect((await verdict(lines)).whole).toBe(true)
  expect(entries(await exported(owner.token, { org_id: acme.id }))).toEqual(entries(lines))
  expect((await asked(owner.token, { org_id: 1 })).status).toBe(404)
  expect((await asked(null)).status).toBe(401)
  const { token: stranger } = await hub.account('stranger')
  expect(await exported(stranger)).toEqual([])
  const permissions = { domains: { orgs: [acme.id] }, access: { orgs: ['write'] } }
  const narrow = await hub.ok(owner.token, 'auth/generate_token', { type: 'user', name: 'n', permissions })
  expect((await asked(narrow.token)).status).toBe(403)
  const daemon = await hub.realmToken(owner.token, acme.realm)
  expect((await asked(daemon.token)).status).toBe(403)
})

test('an export goes on behind a cursor, and its parts verify together', async () => {
  const whole = entries(await exported(hub.admin))
  const parts: Line[] = []
  for (let cursor = 0; ; ) {
    const part = await exported(hub.admin, { cursor, limit: 3 })
    const some = entries(part)
    if (some.length === 0) break
    parts.push(...part)
    cursor = some.at(-1)!.cursor
  }
  expect(entries(parts).slice(0, whole.length)).toEqual(whole)
  expect((await verdict(parts)).whole).toBe(true)
  const at = whole[4]!.at
  const [early, late] = [await exported(hub.admin, { until: at }), await exported(hub.admin, { since: at })]
  expect(entries([...early, ...late]).slice(0, whole.length)).toEqual(whole)
})

test('an entry that was changed, removed, inserted or moved is found', async () => {
  const { audit, db } = hub.store
  const of = (seq: number) => and(eq(audit.org_id, acme.id), eq(audit.seq, seq))
  const kept = await db.select().from(audit).where(eq(audit.org_id, acme.id))
  const set = (seq: number, row: object) =>
    hub.store.write(async tx => void (await tx.update(audit).set(row).where(of(seq))))
  const broken = async () => {
    const { whole, report } = await verdict(await exported(owner.token))
    return [whole, report[0]] as const
  }
  const back = (seq: number) => {
    const { position, hash, username, target, at } = kept.find(each => each.seq === seq)!
    return set(seq, { position, hash, username, target, at })
  }
  for (const change of [{ username: 'somebody' }, { target: 'x' }, { at: 1 }, { hash: 'x' }]) {
    await set(2, change)
    expect(await broken()).toEqual([false, expect.stringContaining('BROKEN at entry 2')])
    await back(2)
    expect((await broken())[0]).toBe(true)
  }
  // It cannot be put back, because the database numbers entries itself: the rest of the test has another chain.
  const gone = await hub.ok(hub.admin, 'orgs/create', { slug: 'gone', display_name: 'Gone' })
  for (const name of ['a', 'b', 'c', 'd'])
    await hub.ok(hub.admin, 'orgs/update', { org_id: gone.id, display_name: name })
  const verdictOfGone = async () => (await verdict(await exported(hub.admin, { org_id: gone.id }))).report[0]
  expect(await verdictOfGone()).toContain('whole, entries 1 to 5')
  const last = and(eq(audit.org_id, gone.id), eq(audit.seq, 5))
  await hub.store.write(async tx => void (await tx.delete(audit).where(last)))
  expect(await verdictOfGone()).toContain('the chain has 5 entries, but ends after 4')
  const third = and(eq(audit.org_id, gone.id), eq(audit.seq, 3))
  await hub.store.write(async tx => void (await tx.delete(audit).where(third)))
  expect(await verdictOfGone()).toContain('BROKEN at entry 3')
})

test('calls at the same time, to every hub, make one chain without gaps', async () => {
  const { id } = await hub.ok(hub.admin, 'orgs/create', { slug: 'busy', display_name: 'Busy' })
  await Promise.all(
    Array.from({ length: 60 }, (_, n) => hub.ok(hub.admin, 'orgs/update', { org_id: id, display_name: `n${n}` })),
  )
  const { whole, chains } = await verdict(await exported(hub.admin, { org_id: id }))
  expect([whole, chains[0]!.head.seq, chains[0]!.unsealed]).toEqual([true, 61, 0])
})

test('entries of a hub that was killed before it sealed them are sealed by the next', async () => {
  const { audit } = hub.store
  // As such a hub leaves them: committed, without a place in the chain.
  await hub.store.write(async tx => {
    const left = { at: Date.now(), action: 'orgs/update', target: 'left', org_id: acme.id }
    await tx.insert(audit).values([left, left])
  })
  const sealed = async () => {
    const rows = await hub.store.db.select().from(audit).where(isNull(audit.position))
    return rows.length === 0
  }
  await until(sealed, 'the seals', 30_000)
  const lines = await exported(owner.token)
  expect(
    entries(lines)
      .slice(-2)
      .map(({ target }) => target),
  ).toEqual(['left', 'left'])
  expect((await verdict(lines)).whole).toBe(true)
})

test('retention leaves an anchor with hash, count and time, from which the rest is verified', async () => {
  const { audit, auditChains, db } = hub.store
  const before = entries(await exported(owner.token))
  const old = before[2]!
  // What the chore does every hour, at a time when the first three entries are too old.
  while ((await deleteOldEntries({ store: hub.store }, old.at + 1, 1)) > 0) {
    // Removed in parts.
  }
  const rest = await exported(owner.token)
  const removed = before.filter(entry => !entries(rest).some(({ hash }) => hash === entry.hash))
  expect(removed.length).toBeGreaterThanOrEqual(3)
  expect(rest[0]).toMatchObject({
    type: 'begin',
    seq: removed.length,
    hash: removed.at(-1)!.hash,
    removed_until: removed.at(-1)!.at,
  })
  const { whole, report } = await verdict(rest, before.at(-1)!.hash)
  expect([whole, report[0]]).toEqual([true, expect.stringContaining(`(after entry ${removed.length}, removed until`)])
  const [chain] = await db
    .select()
    .from(auditChains)
    .where(eq(auditChains.chain, `org:${acme.id}`))
  expect(chain).toMatchObject({ anchor_seq: removed.length, anchor_hash: removed.at(-1)!.hash })
  const first = and(eq(audit.org_id, acme.id), eq(audit.seq, removed.length + 1))
  const [next] = await db.select().from(audit).where(first).orderBy(desc(audit.id))
  expect(next).toBeDefined()
})

test('a list of more than 10,000 entries says that it stopped counting', async () => {
  const { id } = await hub.ok(hub.admin, 'orgs/create', { slug: 'long', display_name: 'Long' })
  const row = { at: Date.now(), action: 'orgs/update', target: 'x', org_id: id }
  for (let some = 0; some < 20; some++) {
    await hub.store.write(async tx => void (await tx.insert(hub.store.audit).values(Array(500).fill(row))))
  }
  const list = () => hub.ok(hub.admin, 'audit/list', { org_id: id, limit: 1 })
  expect(await list()).toMatchObject({ total: 10_000, total_more: true })
  expect('total_more' in (await hub.ok(hub.admin, 'audit/list', { org_id: acme.id, limit: 1 }))).toBe(false)
  const { whole, chains } = await verdict(await exported(hub.admin, { org_id: id }))
  expect([whole, chains[0]!.head.seq]).toEqual([true, 10_001])
})

test('a webhook for audit.* gets the entries of its realm and org, signed, and of nobody else', async () => {
  const got: { type: string; data: Line }[] = []
  // A message may come before the reply that has the secret.
  const secret = Promise.withResolvers<string>()
  using server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const text = await request.text()
      got.push(
        new Webhook(await secret.promise).verify(text, Object.fromEntries(request.headers)) as (typeof got)[number],
      )
      return new Response()
    },
  })
  const url = `http://127.0.0.1:${server.port}/`
  const add = (token: string, events: string[]) =>
    hub.call(token, 'realms/add_webhook', { realm_id: acme.realm, url, events })
  // An admin of the realm who does not administer the org must not read its log by a webhook.
  const { token: limited } = await hub.account('limited')
  await hub.ok(owner.token, 'realms/add_member', { realm_id: acme.realm, username: 'limited', role: 'admin' })
  expect((await add(limited, ['audit.*'])).status).toBe(403)
  expect((await add(owner.token, ['audit'])).status).toBe(400)
  const added = await add(owner.token, ['audit.*'])
  secret.resolve(added.data.secret)
  const other = await hub.ok(owner.token, 'realms/create', { org_id: acme.id, slug: 'other', name: 'other' })
  await hub.ok(owner.token, 'realms/update', { realm_id: other.id, name: 'not told' })
  await hub.ok(owner.token, 'realms/update', { realm_id: acme.realm, name: 'told' })
  await hub.ok(owner.token, 'orgs/update', { org_id: acme.id, display_name: 'told' })
  await hub.ok(hub.admin, 'orgs/update', { org_id: 1, display_name: 'not told' })
  const isTold = () =>
    got.some(({ type }) => type === 'audit.orgs/update') && got.some(({ type }) => type === 'audit.realms/update')
  await until(async () => isTold(), 'the messages', 30_000)
  const lines = entries(await exported(owner.token))
  for (const { type, data } of got) {
    expect(type).toBe(`audit.${data.action}`)
    expect(data.org_id).toBe(acme.id)
    expect([null, acme.realm]).toContain(data.realm_id)
    expect(lines.find(({ hash }) => hash === data.hash)).toMatchObject({ seq: data.seq, target: data.target })
  }
  expect(JSON.stringify(got)).not.toContain('whsec_')
  // Whoever administers the org no longer is told nothing of it any more.
  await hub.ok(hub.admin, 'orgs/add_member', { org_id: acme.id, username: 'stranger', role: 'owner' })
  await hub.ok(hub.admin, 'orgs/add_member', { org_id: acme.id, username: 'owner', role: 'member' })
  const count = got.length
  await hub.ok(hub.admin, 'orgs/update', { org_id: acme.id, display_name: 'a secret of the org' })
  await exported(hub.admin, { org_id: acme.id })
  await hub.sendWebhooks()
  await Bun.sleep(300)
  expect(got.slice(count).filter(({ data }) => data.action === 'orgs/update')).toEqual([])
  await hub.ok(hub.admin, 'orgs/add_member', { org_id: acme.id, username: 'owner', role: 'owner' })
})

test('audit export and verify at the command line speak of a hub with --hub, and verify what was exported', async () => {
  const home = folder()
  const env = { CADRE_HUB_URL: hub.url, CADRE_API_KEY: '' }
  const permissions = { domains: { orgs: '*', realms: '*' }, access: { orgs: ['admin'] } }
  const { token } = await hub.ok(owner.token, 'auth/generate_token', { type: 'user', name: 'cli', permissions })
  const cli = (...args: string[]) => command(args, { home, env: { ...env, CADRE_API_KEY: token } })
  const { code, stdout } = await cli('audit', 'verify', '--hub', hub.url)
  expect([code, stdout]).toEqual([0, expect.stringContaining(`org:${acme.id}: whole`)])
  const file = join(home, 'audit.jsonl')
  writeFileSync(file, (await cli('audit', 'export', '--hub', hub.url, '--org', 'acme')).stdout)
  expect((await cli('audit', 'verify', file)).code).toBe(0)
  writeFileSync(file, (await Bun.file(file).text()).replace('"orgs/', '"orgz/'))
  expect((await cli('audit', 'verify', file)).code).toBe(1)
})
