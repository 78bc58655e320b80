// CADRE_HUB_KEY over its life, with hubs as processes: a wrong one is refused at the start, and a new one is given to one
// hub after the other while they serve.

import { afterAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import type { Sealed } from '../../db/hub/columns.ts'
import { openStore } from '../../db/hub/open-store.ts'
import { DatabaseClock } from '../../lib/hub/core/hub-clock.ts'
import { livingHubs } from '../../lib/hub/core/living-hubs.ts'
import { createSealer } from '../../lib/hub/core/sealer.ts'
import { lackKey } from '../../lib/hub/keys/hub-keys.ts'
import { hubName } from '../../lib/hub/keys/refused-starts.ts'
import { sealedTables } from '../../lib/hub/keys/sealed-columns.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from '../support/program.ts'

const PASSWORD = 'a long password'
const server = process.env.TEST_POSTGRES_URL
const started = new Set<Bun.Subprocess>()
afterAll(async () => {
  for (const child of started) child.kill('SIGKILL')
  await Promise.all([...started].map(({ exited }) => exited))
})

function hub(database: string, key: string, ...args: string[]) {
  const home = folder()
  const child = Bun.spawn([...HUB, ...args, '--database', database], {
    env: {
      ...environmentAt(home),
      ...CHEAP_PASSWORDS,
      ...{ CADRE_HOME: home, CADRE_HUB_KEY: key, CADRE_ADMIN_PASSWORD: PASSWORD, CADRE_LOG_FORMAT: 'json' },
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  started.add(child)
  return child
}

async function command(database: string, key: string, ...args: string[]) {
  const child = hub(database, key, ...args)
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, out, err }
}

/** Why a hub does not start. */
async function refusal(database: string, key: string): Promise<string> {
  const { code, out, err } = await command(database, key, 'serve', '--port', '0')
  expect([code, out]).toEqual([2, ''])
  expect(err).toContain('key rotate')
  return err
}

async function serving(database: string, key: string) {
  const child = hub(database, key, 'serve', '--port', '0')
  const reader = child.stdout.getReader()
  let line = ''
  while (!line.includes('\n')) {
    const { value, done } = await reader.read()
    if (done) throw new Error(await child.stderr.text())
    line += new TextDecoder().decode(value)
  }
  const url = line.trim().split(' ').at(-1)!
  const call = async (path: string, body: object = {}, token = '') => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const reply = await fetch(`${url}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    // biome-ignore lint/suspicious/noExplicitAny: what any call answers.
    const { data, error } = (await reply.json()) as any
    if (!reply.ok) throw new Error(`${path}: ${JSON.stringify(error)}`)
    return data
  }
  const { token } = await call('session/create', { username: 'admin', password: PASSWORD })
  const { realms } = await call('realms/list', {}, token)
  return {
    url,
    addWebhook: () =>
      call(
        'realms/add_webhook',
        { realm_id: realms[0].id, url: 'https://example.com/', events: ['run.failed'] },
        token,
      ),
    // biome-ignore lint/suspicious/noExplicitAny: what any call answers.
    ready: async () => ((await (await fetch(`${url}/ready`)).json()) as any).data,
    metrics: async () => (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text(),
    async stop() {
      child.kill()
      expect(await child.exited).toBe(0)
      started.delete(child)
    },
  }
}

/** How many values are sealed with which key, by the place of the key in `keys`. */
async function sealedBy(database: string, keys: string): Promise<Record<string, number>> {
  await using store = Object.assign(await openStore(database), {
    async [Symbol.asyncDispose]() {
      await store.close()
    },
  })
  const sealer = createSealer(keys)
  const counts: Record<string, number> = {}
  for (const { table, sealed } of sealedTables(store)) {
    for (const row of await store.db.select({ text: sealed }).from(table)) {
      const by = sealer.keyOf(row.text)
      const key = keys.split(',')[sealer.keyIds.indexOf(by)] ?? by
      counts[key] = (counts[key] ?? 0) + 1
    }
  }
  return counts
}

test('a hub with a wrong key, or without its key, does not start', async () => {
  const database = join(folder(), 'hub.db')
  await (await serving(database, 'old')).stop()
  expect(await refusal(database, 'other')).toContain('lacks a key')
  expect(await refusal(database, '')).toContain('is not set')
  // Databases of earlier versions do not list the keys.
  const store = await openStore(database)
  await store.write(tx => tx.delete(store.sealingKeys))
  await store.close()
  expect(await refusal(database, 'other')).toContain('lacks a key')
  await (await serving(database, 'old')).stop()
})

test('a key with a comma of before keys were listed still opens what it sealed', () => {
  const former = createSealer('a').seal('text')
  expect(createSealer('b, a').open(former)).toBe('text')
  expect(() => createSealer('b').open(former)).toThrow(/not the key/)
  expect(createSealer('b,a').keyIds).toHaveLength(3)
})

test('a database without a key gets one, and a lost key can be given up', async () => {
  const database = join(folder(), 'hub.db')
  const plain = await serving(database, '')
  await plain.addWebhook()
  await plain.stop()
  expect(await sealedBy(database, 'new')).toEqual({ plain: 2 })
  expect(await command(database, '', 'key', 'rotate')).toMatchObject({ code: 2, out: '' })
  expect((await command(database, 'new', 'key', 'rotate')).out).toContain(
    'sealed again: 1 dispatch key, 1 secret of a webhook\n',
  )
  expect(await sealedBy(database, 'new')).toEqual({ new: 2 })
  await refusal(database, 'third')
  const lost = await command(database, 'third', 'key', 'rotate')
  expect(lost).toMatchObject({ code: 2, out: '' })
  expect(lost.err).toContain('opens 1 dispatch key, 1 secret of a webhook: add')
  await refusal(database, 'third')
  const given = await command(database, 'third', 'key', 'rotate', '--give-up-lost')
  expect([given.code, given.out]).toEqual([
    0,
    expect.stringContaining('given up: 1 dispatch key, 1 secret of a webhook'),
  ])
  await (await serving(database, 'third')).stop()
})

test('what lists a hub as living says which keys it holds from the first moment', async () => {
  const home = folder()
  const store = await openStore(join(home, 'hub.db'))
  const log = createLog({ write: () => {} })
  const clock = new DatabaseClock({ store, log })
  await clock.open()
  const starting = createHub({ store, clock, log, home, key: 'new,old' })
  try {
    await starting.keys.check()
    await starting.lineage.open()
    // Another hub that looks now must not take this one for one that lacks the key.
    const [first] = createSealer('new').keyIds
    const listed = await livingHubs(store)
    expect(listed.map(({ id }) => id)).toEqual([starting.id])
    expect(lackKey(listed, first!)).toEqual([])
  } finally {
    await clock.close()
    await starting.close()
  }
})

const places: [string, () => Promise<{ location: string } & AsyncDisposable>][] = [
  ...(server ? [['two hubs on PostgreSQL', () => freshPostgres(server)] as (typeof places)[number]] : []),
]

test.each(places)(
  '%s: a new key seals only when every hub has it, and then the old one can go',
  async (_, fresh) => {
    await using place = await fresh()
    const { location: database } = place
    const one = await serving(database, 'old')
    expect(await refusal(database, 'other')).toContain('lacks a key')
    await until(async () => (await one.ready()).refused_starts?.join() === 'wrong_key', 'the other hub tells it')
    expect(await one.metrics()).toContain(`cadre_hub_refused_start{hub="${hubName(0)}",reason="wrong_key"} 1`)
    await refusal(database, '')
    await until(async () => (await one.ready()).refused_starts?.join() === 'no_key', 'the newest reason is told')
    const two = await serving(database, 'old')
    await until(async () => (await one.ready()).refused_starts === undefined, 'the hub that starts is told no more')
    await one.stop()
    const renewed = await serving(database, 'new,old')
    // The other hub could not read what the new key seals.
    await renewed.addWebhook()
    expect(await sealedBy(database, 'new,old')).toEqual({ old: 2 })
    expect(await renewed.ready()).toMatchObject({ status: 'ready', lack_key: [expect.any(String)] })
    const early = await command(database, 'new,old', 'key', 'rotate')
    expect([early.code, early.err]).toEqual([2, expect.stringContaining('lacks the new key')])
    await two.stop()
    const other = await serving(database, 'new,old')
    const rotated = await command(database, 'new,old', 'key', 'rotate')
    expect([rotated.code, rotated.err]).toEqual([0, ''])
    expect(await sealedBy(database, 'new,old')).toEqual({ new: 2 })
    await other.addWebhook()
    await renewed.addWebhook()
    expect(await sealedBy(database, 'new,old')).toEqual({ new: 4 })
    await until(async () => !('lack_key' in (await renewed.ready())), 'every hub has the new key')
    await other.stop()
    await renewed.stop()
    await refusal(database, 'old')
    const last = await serving(database, 'new')
    await last.addWebhook()
    await last.stop()
  },
  120_000,
)

test('a rotation that was ended goes on where it was', async () => {
  const database = join(folder(), 'hub.db')
  await (await serving(database, 'old')).stop()
  const store = await openStore(database)
  const [key] = await store.db.select().from(store.dispatchKeys)
  const both = createSealer('new,old')
  const more = Array.from({ length: 450 }, (_, i) => ({ ...key!, kid: `k${i}` }))
  await store.write(tx => tx.insert(store.dispatchKeys).values(more))
  const again: Sealed = both.seal(both.open(key!.private_key))
  const done = eq(store.dispatchKeys.kid, 'k7')
  await store.write(tx => tx.update(store.dispatchKeys).set({ private_key: again }).where(done))
  await store.close()
  const { out } = await command(database, 'new,old', 'key', 'rotate')
  expect(out).toContain('sealed again: 450 dispatch keys\n')
  expect(await sealedBy(database, 'new,old')).toEqual({ new: 451 })
  expect((await command(database, 'new,old', 'key', 'rotate')).out).toContain('was sealed with the new key already\n')
})
