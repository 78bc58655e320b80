// A hub that starts on a database of an earlier version while another session holds a lock that the migration needs. Needs
// `TEST_POSTGRES_URL`, a server where databases may be created.

import { expect, test } from 'bun:test'
import { openStore } from '../../../db/hub/open-store.ts'
import { migratePostgres } from '../../../db/hub/postgres-migration.ts'
import { createLog } from '../../../lib/log/log.ts'
import { until, within } from '../../support/bounded.ts'
import { firstVersion } from '../../support/first-version.ts'
import { folder as temporary } from '../../support/folder.ts'
import { freshPostgres } from '../../support/hub.ts'
import { environmentAt, HUB } from '../../support/program.ts'

const server = process.env.TEST_POSTGRES_URL

/** Keeps a lock on the table of runs until `release` is called. */
async function holdRuns(sql: Bun.SQL) {
  const { promise: over, resolve } = Promise.withResolvers<void>()
  const held = Promise.withResolvers<number>()
  const holding = sql.begin(async tx => {
    const [{ pid }] = await tx`SELECT pg_backend_pid() AS pid, (SELECT count(*) FROM runs)`
    held.resolve(pid)
    await over
  })
  const release = () => {
    resolve()
    return holding
  }
  return { pid: await held.promise, release }
}

test.skipIf(!server)(
  'it says for whom it waits, and lets others read meanwhile',
  async () => {
    await using database = await freshPostgres(server!, { empty: true })
    const sql = new Bun.SQL(database.location, { max: 3 })
    await firstVersion(sql)
    const lines: string[] = []
    const log = createLog({ format: 'json', write: line => lines.push(line) })
    const { pid, release } = await holdRuns(sql)
    const opened = openStore(database.location, { log })
    const said = await until(() => lines.find(line => line.includes('waits for a lock')), 'the log says it')
    expect(JSON.parse(said)).toMatchObject({
      level: 'warn',
      lock: 'runs',
      sessions: [{ pid, state: 'idle in transaction' }],
    })
    // They would queue up behind the migration until the other session ends.
    for (let n = 0; n < 3; n++) await within(sql`SELECT count(*) FROM runs`, 'another session reads')
    await release()
    const store = await opened
    expect(await store.problem()).toBeNull()
    expect(await store.db.select().from(store.runs)).toEqual([])
    await Promise.all([store.close(), sql.close()])
  },
  120_000,
)

test.skipIf(!server)(
  'so does a command',
  async () => {
    await using database = await freshPostgres(server!, { empty: true })
    const sql = new Bun.SQL(database.location, { max: 2 })
    await firstVersion(sql)
    const { release } = await holdRuns(sql)
    const child = Bun.spawn([...HUB, 'user', 'list', '--database', database.location], {
      env: environmentAt(temporary()),
      stdout: 'pipe',
      stderr: 'pipe',
    })
    let said = ''
    const reading = (async () => {
      for await (const chunk of child.stderr) said += new TextDecoder().decode(chunk)
    })()
    await until(() => said.includes('waits for a lock'), 'the command says it')
    await release()
    expect(await child.exited).toBe(0)
    await Promise.all([reading, sql.close()])
  },
  120_000,
)

test.skipIf(!server)(
  'no deadline of the user or of the database ends a statement that takes longer',
  async () => {
    await using database = await freshPostgres(server!, { empty: true })
    const sql = new Bun.SQL(database.location, { max: 2 })
    await firstVersion(sql)
    await sql.unsafe(`ALTER DATABASE ${new URL(database.location).pathname.slice(1)} SET statement_timeout = '500ms'`)
    const { release } = await holdRuns(sql)
    const opened = openStore(database.location)
    opened.catch(() => {})
    await Bun.sleep(2_000)
    await release()
    const store = await opened
    expect(await store.problem()).toBeNull()
    await Promise.all([store.close(), sql.close()])
  },
  120_000,
)

test.skipIf(!server)(
  'hubs that start at the same moment migrate an empty database one after the other',
  async () => {
    for (let round = 0; round < 3; round++) {
      await using database = await freshPostgres(server!, { empty: true })
      const hubs = Array.from({ length: 8 }, () => migratePostgres(database.location, undefined))
      expect(await Promise.all(hubs)).toEqual(hubs.map(() => undefined))
    }
  },
  120_000,
)
