// The databases of the tests: the gate's PostgreSQL in a schema of its own, MariaDB where it answers, and SQLite files.

import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { folder } from '../support/folder.ts'

const POSTGRES = process.env.TEST_POSTGRES_URL
const MYSQL = process.env.TEST_MYSQL_URL ?? 'mysql://root@127.0.0.1:3306/test'

export interface TestDatabase {
  provider: 'postgres' | 'mysql' | 'sqlite'
  settings: Record<string, unknown>
  /** Runs a statement beside the agent, and gives its rows. */
  sql(text: string): Promise<Record<string, unknown>[]>
  /** The name of a table in a place of its own. */
  table(name: string): string
  close(): Promise<void>
}

const own = () => `cadre_${crypto.randomUUID().slice(0, 8)}`

export async function postgresDatabase(): Promise<TestDatabase | null> {
  if (!POSTGRES) return skipped('PostgreSQL', 'TEST_POSTGRES_URL is not set')
  const client = new Bun.SQL(POSTGRES, { max: 1 })
  const schema = own()
  await client.unsafe(`CREATE SCHEMA ${schema}`)
  return {
    provider: 'postgres',
    settings: { url: POSTGRES },
    sql: text => client.unsafe(text),
    table: name => `${schema}.${name}`,
    async close() {
      await client.unsafe(`DROP SCHEMA ${schema} CASCADE`)
      await client.close()
    },
  }
}

export async function mysqlDatabase(): Promise<TestDatabase | null> {
  const client = new Bun.SQL(MYSQL, { max: 1 })
  try {
    await client.unsafe('SELECT 1')
  } catch {
    await client.close({ timeout: 0 })
    return skipped('MariaDB', `${new URL(MYSQL).host} does not answer`)
  }
  const prefix = own()
  return {
    provider: 'mysql',
    settings: { url: MYSQL },
    sql: text => client.unsafe(text),
    table: name => `${prefix}_${name}`,
    async close() {
      for (const row of await client.unsafe(`SHOW TABLES LIKE '${prefix}\\_%'`)) {
        await client.unsafe(`DROP TABLE ${Object.values(row as object)[0]}`)
      }
      await client.close()
    },
  }
}

export async function sqliteDatabase(): Promise<TestDatabase> {
  const file = join(folder(), 'data.db')
  const database = new Database(file)
  database.run('PRAGMA journal_mode = WAL')
  return {
    provider: 'sqlite',
    settings: { provider: 'sqlite', database: file },
    sql: async text => database.query(text).all() as Record<string, unknown>[],
    table: name => name,
    async close() {
      database.close()
    },
  }
}

function skipped(name: string, why: string): null {
  console.warn(`${why}: the tests with ${name} are skipped`)
  return null
}
