// PostgreSQL as networks leave it: connections that fall silent, a server that refuses, statements that take too long.

import { expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { openStore } from '../../db/hub/open-store.ts'
import { PostgresPool } from '../../db/hub/postgres-pool.ts'
import { asFailure } from '../../lib/http/reply.ts'
import { createNotifier } from '../../lib/hub/core/notifier.ts'
import { until } from '../support/bounded.ts'
import { freshPostgres } from '../support/hub.ts'
import { silentProxy } from '../support/silent-proxy.ts'

const server = process.env.TEST_POSTGRES_URL
const onPostgres = test.skipIf(!server)
if (!server) console.log('skipped: PostgreSQL that falls silent (needs TEST_POSTGRES_URL)')

/** A database of its own behind a proxy, and a store on it whose statements may take half a second. */
async function throughProxy() {
  const database = await freshPostgres(server!)
  const url = new URL(database.location)
  const proxy = await silentProxy(url.hostname, Number(url.port || 5432))
  url.host = `127.0.0.1:${proxy.port}`
  const store = await openStore(url.href, { pool: 4, statementMs: 500 })
  return {
    proxy,
    store,
    database: database.location,
    one: () => store.db.select({ one: sql<number>`1` }).from(sql`(SELECT 1) AS one`),
    async [Symbol.asyncDispose]() {
      await store.close()
      await proxy[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
}

/** The code of an error, and whether it says when to try again. */
const refused = (work: Promise<unknown>) =>
  work.then(
    () => 'done',
    error => [asFailure(error, 'the hub')].map(({ code, retryAfter }) => [code, retryAfter])[0],
  )

onPostgres('connections that fall silent are replaced, all of them, without a restart', async () => {
  await using at = await throughProxy()
  await Promise.all(Array.from({ length: 4 }, at.one))
  at.proxy.silence()
  // One waits for the deadline, takes the idle connections with it, and asks again on another one.
  expect(await at.one()).toEqual([{ one: 1 }])
  // A transaction that has not come to its commit is done again.
  let runs = 0
  await at.store.write(async tx => {
    await tx.insert(at.store.sealingKeys).values({ id: `k${++runs}`, created_at: 1 })
    if (runs > 1) return
    at.proxy.silence()
    await tx.select().from(at.store.users)
  })
  expect(await at.store.db.select({ id: at.store.sealingKeys.id }).from(at.store.sealingKeys)).toEqual([{ id: 'k2' }])
})

onPostgres('connections that were begun while no answer came keep nobody from those that work', async () => {
  await using at = await throughProxy()
  const url = new URL(at.database)
  url.host = `127.0.0.1:${at.proxy.port}`
  const pool = new PostgresPool(url.href, { size: 4, statementMs: 2_000 })
  try {
    const work = () => pool.use(({ sql }) => sql.unsafe('SELECT pg_sleep(0.02)'))
    await work()
    at.proxy.isDeaf = true
    await Promise.all(Array.from({ length: 4 }, work))
    at.proxy.isDeaf = false
    // Three connections are waited for until their time is over. Then there are three others.
    await until(async () => {
      await Promise.all(Array.from({ length: 8 }, work))
      return pool.figures.idle === 4
    }, 'further connections')
  } finally {
    await pool.close()
  }
})

onPostgres(
  'who listens on a silent connection listens on another one soon',
  async () => {
    await using at = await throughProxy()
    await using other = Object.assign(await openStore(at.database), {
      async [Symbol.asyncDispose]() {
        await other.close()
      },
    })
    const notifier = createNotifier(at.store.channel)
    using news = notifier.subscribe('realm a')
    at.proxy.silence()
    const woken = news.wait(60_000, new AbortController().signal)
    let isWoken = false
    void woken.then(() => {
      isWoken = true
    })
    await until(() => isWoken, 'the missed word', 30_000)
    const again = news.wait(60_000, new AbortController().signal)
    let isHeard = false
    void again.then(() => {
      isHeard = true
    })
    other.channel!.send('realm a')
    await until(() => isHeard, 'the next word')
  },
  60_000,
)

onPostgres('a statement that takes too long is ended by the server, and only it', async () => {
  await using at = await throughProxy()
  const slow = at.store.db.select({ slept: sql`pg_sleep(20)` }).from(sql`(SELECT 1) AS one`)
  expect(await refused(Promise.resolve(slow))).toEqual(['unavailable', 1])
  const { open } = at.proxy
  expect(await at.one()).toEqual([{ one: 1 }])
  expect(at.proxy.open).toBe(open)
  // Chores may take longer.
  const slept = at.store.forChores.db.select({ one: sql`pg_sleep(1)::text` }).from(sql`(SELECT 1) AS one`)
  expect(await slept).toHaveLength(1)
})

onPostgres('a database that takes no writes says so, and goes on with reads', async () => {
  await using at = await throughProxy()
  const name = new URL(at.database).pathname.slice(1)
  await using admin = new Bun.SQL(at.database, { max: 1 })
  await admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
  at.proxy.silence()
  const write = () => at.store.write(tx => tx.insert(at.store.sealingKeys).values({ id: 'k', created_at: 1 }))
  expect(await refused(write())).toEqual(['unavailable', 1])
  expect(await at.one()).toEqual([{ one: 1 }])
  expect(await at.store.degraded()).toBe('database_read_only')
  await admin.unsafe(`ALTER DATABASE ${name} SET default_transaction_read_only = off`)
  at.proxy.silence()
  await write()
  expect(await at.store.degraded()).toBeNull()
})

onPostgres('a statement that was prepared before a table changed works after it', async () => {
  await using at = await throughProxy()
  await using admin = new Bun.SQL(at.database, { max: 1 })
  await admin`CREATE TABLE changing (a int)`
  const all = () => at.store.db.select({ a: sql`a` }).from(sql`changing`)
  await all()
  await admin`INSERT INTO changing VALUES (1)`
  await admin`ALTER TABLE changing ALTER a TYPE text`
  expect(await all()).toHaveLength(1)
})

onPostgres('a transaction whose connection ends before its commit is done once, on another one', async () => {
  await using at = await throughProxy()
  let runs = 0
  await at.store.write(async tx => {
    const [row] = await tx.select({ pid: sql<number>`pg_backend_pid()` }).from(sql`(SELECT 1) AS one`)
    await tx.insert(at.store.sealingKeys).values({ id: `k${runs}`, created_at: 1 })
    if (++runs > 1) return
    await using admin = new Bun.SQL(at.database, { max: 1 })
    await admin`SELECT pg_terminate_backend(${row!.pid})`
    await tx.select().from(at.store.users)
  })
  expect(await at.store.db.select({ id: at.store.sealingKeys.id }).from(at.store.sealingKeys)).toEqual([{ id: 'k1' }])
})

onPostgres('while PostgreSQL refuses, everybody is refused at once, and work begins again by itself', async () => {
  await using at = await throughProxy()
  await at.one()
  await at.proxy.refuse(true)
  const began = performance.now()
  const answers = await Promise.all(Array.from({ length: 50 }, () => refused(Promise.resolve(at.one()))))
  expect(answers.every(answer => answer !== 'done')).toBe(true)
  // A bound for a fault, not a measure: waiting for a connection would take seconds for each.
  expect(performance.now() - began).toBeLessThan(5_000)
  await at.proxy.refuse(false)
  await until(async () => (await refused(Promise.resolve(at.one()))) === 'done', 'work goes on')
})

onPostgres(
  'a database that is away for a moment is told as unavailable, and is used again when it is back',
  async () => {
    await using at = await throughProxy()
    const name = new URL(at.database).pathname.slice(1)
    await using admin = new Bun.SQL(server!, { max: 1 })
    const rename = async (from: string, to: string) => {
      await admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${from}`
      await admin.unsafe(`ALTER DATABASE ${from} RENAME TO ${to}`)
    }
    await rename(name, `${name}_away`)
    try {
      for (let n = 0; n < 5; n++) expect(await refused(Promise.resolve(at.one()))).toEqual(['unavailable', 1])
      const write = at.store.write(tx => tx.insert(at.store.sealingKeys).values({ id: 'k', created_at: 1 }))
      expect(await refused(write)).toEqual(['unavailable', 1])
    } finally {
      await rename(`${name}_away`, name)
    }
    await until(async () => (await refused(Promise.resolve(at.one()))) === 'done', 'work goes on')
  },
)

onPostgres('where the server takes no further connections, those that are open serve the calls', async () => {
  await using at = await throughProxy()
  await at.one()
  const name = new URL(at.database).pathname.slice(1)
  await using admin = new Bun.SQL(at.database, { max: 1 })
  // A limit does not hold for superusers, so the hub is one no more.
  const role = `role_${name}`
  await admin.unsafe(`CREATE ROLE ${role} LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO ${role}`).simple()
  const url = new URL(at.database)
  url.username = role
  const pool = new PostgresPool(url.href, { size: 8, statementMs: 2_000 })
  try {
    const [{ one }] = await pool.reads.unsafe('SELECT 1 AS one')
    expect(one).toBe(1)
    await admin.unsafe(`ALTER ROLE ${role} CONNECTION LIMIT 1`)
    const slowly = () => pool.use(({ sql }) => sql.unsafe('SELECT pg_sleep(0.02)'))
    const all = await Promise.allSettled(Array.from({ length: 40 }, slowly))
    expect(all.filter(({ status }) => status === 'rejected')).toEqual([])
    expect(pool.figures.busy + pool.figures.idle).toBe(1)
    await admin.unsafe(`ALTER ROLE ${role} CONNECTION LIMIT 3`)
    await until(async () => {
      await Promise.all(Array.from({ length: 20 }, slowly))
      return pool.figures.idle === 3
    }, 'further connections')
  } finally {
    await pool.close()
    await admin.unsafe(`DROP OWNED BY ${role}; DROP ROLE ${role}`).simple()
  }
})

onPostgres(
  'a bounded number of calls waits for a connection, for a bounded time, and all others are refused',
  async () => {
    const pool = new PostgresPool(server!, { size: 1, statementMs: 60_000, mostWaiting: 2, waitMs: 1_000 })
    try {
      let free = () => {}
      const held = Promise.withResolvers<void>()
      const holder = pool.use(() => {
        held.resolve()
        return new Promise<void>(resolve => {
          free = resolve
        })
      })
      await held.promise
      const first = pool.use(async () => 'in time')
      const second = refused(pool.use(async () => 'in time, too'))
      // There is room for two.
      expect(await refused(pool.use(async () => 'late'))).toEqual(['unavailable', 1])
      expect(pool.figures).toMatchObject({ busy: 1, idle: 0, waiting: 2, refused: 1 })
      free()
      await holder
      expect([await first, await second]).toEqual(['in time', 'done'])
      expect(pool.figures).toMatchObject({ waiting: 0, waited: 3, refused: 1 })
      expect(pool.figures.waitedMs).toBeGreaterThan(0)
      const again = Promise.withResolvers<void>()
      const other = pool.use(() => {
        again.resolve()
        return new Promise<void>(resolve => {
          free = resolve
        })
      })
      await again.promise
      // Nobody frees the connection before the time of these is over.
      const late = [pool.use(async () => 'late'), Promise.resolve(pool.reads.unsafe('SELECT 1'))]
      const busy = 'the hub has more to do than its database can; try again'
      expect(await Promise.all(late.map(told))).toEqual([busy, busy])
      expect(await Promise.all(late.map(refused))).toEqual([
        ['unavailable', 1],
        ['unavailable', 1],
      ])
      expect(pool.figures).toMatchObject({ busy: 1, waiting: 0, waited: 3, refused: 3 })
      free()
      await other
      expect(await pool.use(async () => 'later')).toBe('later')
    } finally {
      await pool.close()
    }
  },
)

onPostgres(
  'a call that gets no connection from a silent database is not told that the hub has too much to do',
  async () => {
    const url = new URL(server!)
    await using proxy = await silentProxy(url.hostname, Number(url.port || 5432))
    url.host = `127.0.0.1:${proxy.port}`
    const pool = new PostgresPool(url.href, { size: 1, statementMs: 4_000, waitMs: 2_500 })
    try {
      await pool.use(({ sql }) => sql.unsafe('SELECT 1'))
      proxy.silence()
      const silent = told(pool.use(({ sql }) => sql.unsafe('SELECT 1')))
      expect(await told(pool.use(async () => 'late'))).toBe('the database did not answer in time; try again')
      expect(await silent).toBe('the database did not answer in time; try again')
      expect(pool.figures.refused).toBe(1)
    } finally {
      await pool.close()
    }
  },
  30_000,
)

const told = (work: Promise<unknown>) => work.catch(error => error.message)

/** Work that keeps a connection for itself until `free` is called. */
function holding(pool: PostgresPool) {
  const [held, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const done = pool.use(() => {
    held.resolve()
    return over.promise
  })
  return { held: held.promise, done, free: over.resolve }
}
const pausing = (pool: PostgresPool) => Promise.resolve(pool.reads.unsafe('SELECT pg_sleep(0.02)'))

onPostgres('a few connections go on with reads while transactions wait for one', async () => {
  const pool = new PostgresPool(server!, { size: 5, statementMs: 60_000 })
  const holders = Array.from({ length: 4 }, () => holding(pool))
  await Promise.all(holders.map(({ held }) => held))
  // Reads one behind the other, so that their connection is never free.
  let last = pausing(pool)
  await Bun.sleep(0)
  const waiting = holding(pool)
  for (let n = 0; n < 20; n++) {
    const next = pausing(pool)
    await last
    last = next
  }
  expect(pool.figures).toMatchObject({ busy: 5, waiting: 1 })
  holders[0]!.free()
  // It gets the next one that is free.
  await waiting.held
  for (const { free, done } of [...holders, waiting]) {
    free()
    await done
  }
  await last
  await pool.close()
})

onPostgres('where there are few connections, reads do not keep a transaction from its own', async () => {
  const pool = new PostgresPool(server!, { size: 1, statementMs: 60_000 })
  const order: string[] = []
  const first = pausing(pool).then(() => order.push('read'))
  await Bun.sleep(0)
  const alone = pool.use(async ({ sql }) => {
    await sql.unsafe('SELECT pg_sleep(0.02)')
    order.push('transaction')
  })
  const second = pausing(pool).then(() => order.push('later read'))
  await Promise.all([first, alone, second])
  expect(order).toEqual(['read', 'transaction', 'later read'])
  await pool.close()
})

onPostgres('a full disk is known until a transaction is done, whatever hubs tell each other meanwhile', async () => {
  await using at = await throughProxy()
  const full = at.store.write(async () => {
    throw Object.assign(new Error('could not extend file'), { errno: '53100' })
  })
  expect(await refused(full)).toEqual(['unavailable', 1])
  const notifier = createNotifier(at.store.channel)
  using news = notifier.subscribe('realm a')
  at.store.channel!.send('realm a')
  await news.wait(10_000, new AbortController().signal)
  expect(await at.store.degraded()).toBe('database_full')
  await at.store.write(tx => tx.insert(at.store.sealingKeys).values({ id: 'k', created_at: 1 }))
  expect(await at.store.degraded()).toBeNull()
})
