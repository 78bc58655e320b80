// A real hub in this process, on a port of its own and a database of its own, and the calls that tests make of it.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type Store } from '../../db/hub/store.ts'
import type { Route } from '../../lib/http/api.ts'
import { firstStart } from '../../lib/hub/accounts.ts'
import { createHub } from '../../lib/hub/hub.ts'
import { startHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log.ts'

export const ADMIN_PASSWORD = 'correct horse battery'

// biome-ignore lint/suspicious/noExplicitAny: tests say what they expect by asserting it
type Data = any

export interface Reply<T = Data> {
  status: number
  headers: Headers
  data: T
  error: { code: string; message: string; details?: { path: string; message: string }[] }
}

export interface TestHub {
  url: string
  /** The database, for looking at tables. */
  store: Store
  /** Every route with its rule. */
  routes: Route[]
  /** Lines of the log. */
  log(): Promise<string[]>
  /** From now on the clock is `ms` ahead. */
  skew(ms: number): Promise<void>
  /** Writes the times of use that are kept in memory. */
  flush(): Promise<void>
  /** Posts `body`; `token` null means no credential. */
  call<T = Data>(token: string | null, path: string, body?: unknown): Promise<Reply<T>>
  /** Like `call`, but throws unless it succeeded. */
  ok<T = Data>(token: string | null, path: string, body?: unknown): Promise<T>
  /** A session of the site admin, who owns org 1 and scope `admin`. */
  admin: string
  /** The id of the first realm. */
  realm: string
  /** Adds an account and answers with a session. */
  account(username: string): Promise<{ token: string; id: number }>
  /** A new realm token. */
  realmToken(token: string, ...realmIds: string[]): Promise<{ id: number; token: string }>
  stop(): Promise<void>
}

/**
 * A database of its own: a SQLite file in `folder`, or, for the run of the whole suite that postgres.test.ts starts, a
 * new database on the server of `TEST_POSTGRES_URL`.
 */
async function freshDatabase(folder: string): Promise<{ location: string; drop(): Promise<void> }> {
  const server = process.env.TEST_POSTGRES_URL
  if (process.env.TEST_HUB_ON === 'postgres' && server) return freshPostgres(server)
  return { location: join(folder, 'hub.db'), drop: async () => {} }
}

/** A new database on the PostgreSQL at `server`. */
export async function freshPostgres(server: string): Promise<{ location: string; drop(): Promise<void> }> {
  const sql = new Bun.SQL(server, { max: 1 })
  const name = `hub_${crypto.randomUUID().replaceAll('-', '')}`
  await sql.unsafe(`CREATE DATABASE ${name}`)
  const location = new URL(server)
  location.pathname = name
  return {
    location: location.href,
    async drop() {
      await sql.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)
      await sql.close()
    },
  }
}

export async function startTestHub(): Promise<TestHub> {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-hub-'))
  const lines: string[] = []
  const clock = { skew: 0 }
  const database = await freshDatabase(folder)
  const hub = createHub({
    store: await openStore(database.location),
    log: createLog({ level: 'debug', format: 'json', write: line => lines.push(line) }),
    now: () => Date.now() + clock.skew,
    home: folder,
  })
  await firstStart(hub, { username: 'admin', password: ADMIN_PASSWORD })
  const { api, listening, chores } = startHub(hub, { host: '127.0.0.1', port: 0, keepRunsDays: 30 })

  async function call(token: string | null, path: string, body: unknown = {}): Promise<Reply> {
    const response = await fetch(`${listening.url}/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    })
    const reply = (await response.json()) as { data: unknown; error: Reply['error'] }
    return { status: response.status, headers: response.headers, data: reply.data, error: reply.error }
  }

  async function ok(token: string | null, path: string, body: unknown = {}) {
    const { status, data, error } = await call(token, path, body)
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(error)}`)
    return data
  }

  const { token: admin } = await ok(null, 'session/create', { username: 'admin', password: ADMIN_PASSWORD })
  const { realms } = await ok(admin, 'realms/list')
  const passwordHash = await Bun.password.hash('password of a test', {
    algorithm: 'argon2id',
    memoryCost: 8,
    timeCost: 1,
  })
  return {
    url: listening.url,
    store: hub.store,
    routes: api.routes(),
    log: async () => lines,
    async skew(ms) {
      clock.skew = ms
    },
    flush: () => hub.touches.flush(),
    call,
    ok,
    admin,
    realm: realms[0].id,
    async account(username) {
      const { users } = hub.store
      const values = { username, password_hash: passwordHash, site_admin: false, created_at: hub.now() }
      const [row] = await hub.store.write(tx => tx.insert(users).values(values).returning())
      const { token } = await ok(null, 'session/create', { username, password: 'password of a test' })
      return { token, id: row!.id }
    },
    realmToken: (token, ...realm_ids) => ok(token, 'auth/generate_token', { type: 'realm', name: 'enrol', realm_ids }),
    async stop() {
      clearInterval(chores)
      await listening.stop()
      await hub.close()
      await database.drop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
