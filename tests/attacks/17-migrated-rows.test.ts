// A hub's database from before large values lay beside their rows is brought up to date: lists have what is small, and
// whoever asks for one thing gets the whole.

import { expect, test } from 'bun:test'
import { join, resolve } from 'node:path'
import { openStore } from '../../db/hub/open-store.ts'
import { migrate, openDatabase, readMigrations } from '../../db/open.ts'
import { ownerOf, runWithLargeValues, withLargeValues } from '../../lib/hub/reports/large-values.ts'
import { briefError, ERROR_BYTES, jsonBytes } from '../../lib/wire/budget.ts'
import { folder } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'

const MIGRATIONS = resolve(import.meta.dir, '../../db/hub/migrations')
const LARGE = 'x"ä\n'.repeat(5_000)
const ERROR = { code: 'failed', message: LARGE, phase: 'p' }
const FILE = { name: 'a', path: 'files/p/a', bytes: 3, sha256: 'abc' }

const RUN = `INSERT INTO runs (run_id, realm_id, root_run_id, call_path, call_depth, tree_key, team, state, error, inputs,
  outputs, attempt, created_at) VALUES (?, 'r', ?, '["t"]', 0, '', 't', 'failed', ?, ?, ?, 1, 1)`
const PHASE = `INSERT INTO phases (run_id, "index", name, type, state, attempt, depends_on, text, data, files)
  VALUES ('large', 0, 'p', 'standard', 'failed', 1, '[]', ?, ?, ?)`
const LOG = `INSERT INTO logs (run_id, seq, at, stream, text) VALUES ('large', 1, 1, 'stdout', 'ä')`
const REALM = [
  "INSERT INTO orgs (slug, display_name, created_at) VALUES ('o', 'o', 1)",
  "INSERT INTO realms (id, org_id, slug, name, created_at) VALUES ('r', 1, 'r', 'r', 1)",
]

interface Filled {
  sql: string
  values: string[]
}

const ROWS: Filled[] = [
  { sql: RUN, values: ['small', 'small', 'null', '{"a":1}', '{"b":2}'] },
  ...[
    { sql: RUN, values: ['large', 'large', JSON.stringify(ERROR), ...[1, 2].map(n => JSON.stringify({ n, LARGE }))] },
  ],
  { sql: PHASE, values: [LARGE, JSON.stringify([LARGE]), JSON.stringify([FILE, 1, { path: 2 }])] },
  { sql: LOG, values: [] },
]

async function looksRight(location: string): Promise<void> {
  const store = await openStore(location)
  try {
    const { runs, phases, artifacts, db } = store
    const rows = await db.select().from(runs).orderBy(runs.run_id)
    const [large, small] = [rows[0]!, rows[1]!]
    expect(small).toMatchObject({ inputs: { a: 1 }, outputs: { b: 2 }, error: null, beside: null })
    expect(large).toMatchObject({ inputs: {}, outputs: null, log_bytes: 2 })
    expect(large.error).toMatchObject({ code: 'failed' })
    expect(jsonBytes(briefError(large.error))).toBeLessThanOrEqual(ERROR_BYTES)
    const found = await runWithLargeValues(store, db, large)
    expect(found).toMatchObject({ inputs: { n: 1, LARGE }, outputs: { n: 2, LARGE }, error: ERROR })
    expect(large.beside).toMatchObject({ inputs: jsonBytes({ n: 1, LARGE }), error: jsonBytes(ERROR) })
    const [phase] = await db.select().from(phases)
    expect(phase).toMatchObject({ text: '', data: null, files: [] })
    expect(await withLargeValues(store, db, ownerOf.phase(0), phase!)).toMatchObject({ text: LARGE, data: [LARGE] })
    expect(await db.select().from(artifacts)).toEqual([{ run_id: 'large', phase: 'p', ...FILE }])
  } finally {
    await store.close()
  }
}

test('of SQLite', async () => {
  const migrations = await readMigrations(join(MIGRATIONS, 'sqlite'))
  const before = migrations.findIndex(({ name }) => name.includes('large_values'))
  const file = join(folder(), 'hub.db')
  const db = openDatabase(file)
  migrate(db, file, migrations.slice(0, before))
  for (const sql of REALM) db.run(sql)
  for (const { sql, values } of ROWS) db.run(sql, values)
  db.close()
  await looksRight(file)
})

const server = process.env.TEST_POSTGRES_URL
test.skipIf(!server)('of PostgreSQL', async () => {
  await using database = await freshPostgres(server!, { empty: true })
  const journal = await Bun.file(join(MIGRATIONS, 'postgres/meta/_journal.json')).json()
  const entries: { tag: string; when: number }[] = journal.entries
  const before = entries.findIndex(({ tag }) => tag.includes('large_values'))
  const sql = new Bun.SQL(database.location, { max: 1 })
  await sql.unsafe('CREATE TABLE __drizzle_migrations (id serial PRIMARY KEY, hash text NOT NULL, created_at bigint)')
  for (const { tag, when } of entries.slice(0, before)) {
    await sql.unsafe(await Bun.file(join(MIGRATIONS, `postgres/${tag}.sql`)).text())
    await sql`INSERT INTO __drizzle_migrations (hash, created_at) VALUES (${tag}, ${when})`
  }
  for (const each of REALM) await sql.unsafe(each)
  for (const { sql: text, values } of ROWS) {
    let at = 0
    await sql.unsafe(
      text.replaceAll('?', () => `$${++at}`),
      values,
    )
  }
  await sql.close()
  await looksRight(database.location)
})
