// backup and restore by command: beside a running hub, whole or not at all, and never over what is there.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { eq } from 'drizzle-orm'
import { backup, restore } from '../../db/hub/backup.ts'
import { openStore } from '../../db/hub/open-store.ts'
import type { Store } from '../../db/hub/store.ts'
import { folder } from '../support/folder.ts'
import { environmentAt, HUB } from '../support/program.ts'

function start(...args: string[]) {
  return Bun.spawn([...HUB, ...args], {
    env: { ...environmentAt(folder()), CADRE_HUB_KEY: 'k' },
    stdout: 'pipe',
    stderr: 'pipe',
  })
}

async function command(...args: string[]) {
  const child = start(...args)
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, out, err }
}

const user = (username: string) => ({ username, password_hash: 'x', site_admin: false, created_at: 1 })
const add = (store: Store, name: string) =>
  store.write(async tx => void (await tx.insert(store.users).values(user(name))))
const has = async (store: Store, name: string) =>
  (await store.db.select().from(store.users).where(eq(store.users.username, name))).length === 1

/** A hub's database with one account, open as a hub has it. */
async function opened() {
  const file = join(folder(), 'hub.db')
  const store = await openStore(file)
  await add(store, 'before')
  return { file, store }
}

test('there and back, while a hub serves the database', async () => {
  const file = join(folder(), "o'hub.db")
  const copy = join(folder(), 'a copy.db')
  const hub = start('serve', '--port', '0', '--database', file)
  await hub.stdout.getReader().read()
  expect(await command('backup', copy, '--database', file)).toMatchObject({ code: 0, err: '' })
  expect(statSync(copy).mode & 0o777).toBe(0o600)
  expect((await command('user', 'add', 'after', '--database', file)).code).toBe(0)

  const inUse = await command('restore', copy, '--database', file, '--replace')
  expect(inUse).toMatchObject({ code: 2, out: '' })
  expect(inUse.err).toContain('in use: stop the hub')
  hub.kill('SIGTERM')
  expect(await hub.exited).toBe(0)

  await expect(restore(file, copy)).rejects.toThrow(/--replace/)
  expect((await command('user', 'list', '--database', file)).out).toContain('after')
  expect(await command('restore', copy, '--database', file, '--replace')).toMatchObject({ code: 0, err: '' })
  const restored = await openStore(file)
  expect([await has(restored, 'admin'), await has(restored, 'after')]).toEqual([true, false])
  await restored.close()
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(dirname(file)).filter(name => name.includes('draft'))).toEqual([])
}, 30_000)

test('the log of a hub that was killed is neither lost nor played into what is restored', async () => {
  const { file, store } = await opened()
  const copy = join(folder(), 'copy.db')
  backup(file, copy)
  await add(store, 'in the log')
  // As a kill leaves it: the last writes are in the log only.
  const crashed = join(folder(), 'hub.db')
  for (const rest of ['', '-wal']) writeFileSync(crashed + rest, readFileSync(file + rest))
  await store.close()
  const second = join(folder(), 'second.db')
  backup(crashed, second)
  const db = new Database(second, { readonly: true })
  expect(db.query('SELECT username FROM users ORDER BY id').values().flat()).toEqual(['before', 'in the log'])
  db.close()
  await restore(crashed, copy, { replace: true })
  const restored = await openStore(crashed)
  expect(await has(restored, 'in the log')).toBe(false)
  await restored.close()
})

test('a restore without a database makes one; a file that is there is never written over', async () => {
  const { file, store } = await opened()
  await store.close()
  const copy = join(folder(), 'copy.db')
  backup(file, copy)
  const before = readFileSync(copy)
  expect(() => backup(file, copy)).toThrow(/already exists/)
  expect(readFileSync(copy).equals(before)).toBe(true)
  const elsewhere = join(folder(), 'new.db')
  await restore(elsewhere, copy)
  const restored = await openStore(elsewhere)
  expect(await has(restored, 'before')).toBe(true)
  await restored.close()
})

test('what is no sound database of a hub is refused, and what was there stays', async () => {
  const { file, store } = await opened()
  await store.close()
  // What the log holds would move into the file when somebody opens it next.
  const last = new Database(file)
  last.run('PRAGMA wal_checkpoint(TRUNCATE)')
  last.close()
  const before = readFileSync(file)
  const at = join(folder(), 'x.db')
  writeFileSync(at, 'not a database, however long it goes on and on\n'.repeat(100))
  await expect(restore(file, at, { replace: true })).rejects.toThrow(/must be a valid database of a hub/)

  const other = join(folder(), 'other.db')
  new Database(other).run('CREATE TABLE notes (id INTEGER)')
  await expect(restore(file, other, { replace: true })).rejects.toThrow(/must be a valid database of a hub/)

  const newer = join(folder(), 'newer.db')
  backup(file, newer)
  const db = new Database(newer)
  db.run('PRAGMA user_version = 999')
  db.close()
  await expect(restore(file, newer, { replace: true })).rejects.toThrow(/version 999.*upgrade/)

  const damaged = join(folder(), 'damaged.db')
  backup(file, damaged)
  const bytes = readFileSync(damaged)
  bytes.fill(0xff, 8 * 4_096, 40 * 4_096)
  writeFileSync(damaged, bytes)
  await expect(restore(file, damaged, { replace: true })).rejects.toThrow(/must be a valid database of a hub/)
  expect(() => backup(damaged, join(folder(), 'y.db'))).toThrow()
  expect(readFileSync(file).equals(before)).toBe(true)
})

test('PostgreSQL and missing files are told apart', async () => {
  const pg = await command('backup', join(folder(), 'x'), '--database', 'postgres://127.0.0.1:1/hub')
  expect(pg.code).toBe(2)
  expect(pg.err).toContain('pg_dump')
  expect((await command('restore', 'x', '--database', 'postgresql://127.0.0.1:1/hub')).err).toContain('pg_restore')
  const missing = join(folder(), 'none.db')
  expect(() => backup(missing, join(folder(), 'x'))).toThrow(/no database at/)
  expect(existsSync(missing)).toBe(false)
  await expect(restore(missing, missing)).rejects.toThrow(/no file/)
})
