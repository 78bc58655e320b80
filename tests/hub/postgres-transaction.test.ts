// Transactions of PostgreSQL that do not wait for what they write: whatever fails, all of it is undone, and the error is that
// of the statement that failed.

import { expect, test } from 'bun:test'
import { eq, sql } from 'drizzle-orm'
import { openStore } from '../../db/hub/open-store.ts'
import { isDuplicate, type Store } from '../../db/hub/store.ts'
import { freshPostgres } from '../support/hub.ts'

const server = process.env.TEST_POSTGRES_URL
const onPostgres = test.skipIf(!server)
if (!server) console.log('skipped: transactions of PostgreSQL (needs TEST_POSTGRES_URL)')

/** A store with a single connection, so that each transaction has that of the one before. */
async function single() {
  const database = await freshPostgres(server!)
  const store = await openStore(database.location, { pool: 1 })
  const { sealingKeys } = store
  return {
    store,
    key: (id: string) => ({ id, created_at: 1 }),
    keys: async () => (await store.db.select({ id: sealingKeys.id }).from(sealingKeys)).map(({ id }) => id).sort(),
    async [Symbol.asyncDispose]() {
      await store.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

const inTransaction = async (store: Store): Promise<boolean> => {
  const [row] = await store.db
    .select({ is: sql<boolean>`now() <> statement_timestamp()` })
    .from(sql`(SELECT pg_sleep(0.001)) AS one`)
  return row!.is
}

onPostgres('a write that nobody waits for undoes the others when it fails, and its error is thrown', async () => {
  await using at = await single()
  const { sealingKeys } = at.store
  await at.store.write(tx => tx.insert(sealingKeys).values(at.key('a')))
  // Nothing is read after it: the commit finds out.
  const last = at.store.write(async tx => {
    await tx.insert(sealingKeys).values(at.key('b'))
    await tx.insert(sealingKeys).values(at.key('a'))
  })
  expect(await last.catch(isDuplicate)).toBe(true)
  // A statement after it is refused because of it, and says so.
  const early = at.store.write(async tx => {
    await tx.insert(sealingKeys).values(at.key('a'))
    try {
      await tx.select().from(sealingKeys)
    } catch (error) {
      throw isDuplicate(error) ? new Error('known') : error
    }
  })
  expect(await early.catch(error => error.message)).toBe('known')
  // Who catches its error has not made it well.
  const caught = at.store.write(async tx => {
    await tx.insert(sealingKeys).values(at.key('c'))
    await tx
      .insert(sealingKeys)
      .values(at.key('a'))
      .returning()
      .catch(() => {})
  })
  expect(await caught.catch(isDuplicate)).toBe(true)
  expect(await at.keys()).toEqual(['a'])
  expect(await inTransaction(at.store)).toBe(false)
})

onPostgres('what comes after the end of a transaction is refused, and not done outside of it', async () => {
  await using at = await single()
  const { sealingKeys } = at.store
  const late: Promise<unknown>[] = []
  const lost = at.store.write(async tx => {
    const slowly = async () => {
      for (let n = 0; n < 5; n++) await tx.select().from(sealingKeys)
      await tx.insert(sealingKeys).values(at.key('late'))
    }
    late.push(slowly().catch(error => String(error.cause ?? error)))
    await tx.select().from(sealingKeys)
    throw new Error('given up')
  })
  expect(await lost.catch(error => error.message)).toBe('given up')
  expect(await late[0]).toContain('after the end of its transaction')
  expect(await at.keys()).toEqual([])
})

onPostgres(
  'a transaction whose connection ends is done again from its beginning, and not on with another one',
  async () => {
    await using at = await single()
    const { sealingKeys } = at.store
    let tries = 0
    await at.store.write(async tx => {
      tries++
      await tx.insert(sealingKeys).values(at.key(`${tries} before`))
      if (tries === 1) {
        const pid = sql<number>`pg_backend_pid()`
        const [row] = await tx.select({ pid }).from(sql`(SELECT 1) AS one`)
        const other = new Bun.SQL(server!, { max: 1 })
        await other`SELECT pg_terminate_backend(${row!.pid})`
        await other.close()
      }
      await tx.insert(sealingKeys).values(at.key(`${tries} after`))
      await tx.select().from(sealingKeys).where(eq(sealingKeys.id, 'a'))
    })
    expect(tries).toBe(2)
    expect(await at.keys()).toEqual(['2 after', '2 before'])
  },
)

onPostgres('statements come in their order, also those that a connection has not had before', async () => {
  await using at = await single()
  const { sealingKeys } = at.store
  const one = at.store.db.select({ one: sql<number>`1` }).from(sql`(SELECT 1) AS one`)
  await one
  // Known statements follow one that has to be prepared first: it must not be overtaken by them, nor by the commit.
  for (let n = 0; n < 5; n++) {
    const found = await at.store.write(async tx => {
      await tx.select({ id: sealingKeys.id }).from(sealingKeys)
      const id = sql<string>`${sql.raw(`'${n}'`)} || ${String(n)}`
      await tx.insert(sealingKeys).values({ id, created_at: n })
      const all = tx.select({ id: sealingKeys.id }).from(sealingKeys)
      // It begins with a bracket, and is a read all the same.
      return all.unionAll(tx.select({ id: sealingKeys.id }).from(sealingKeys).where(eq(sealingKeys.id, 'none')))
    })
    expect(found).toHaveLength(n + 1)
  }
})
