// A real hub with its own port and database, and the calls that tests make to it. It is served by the process of the
// test, because to start one costs more than most tests. tests/hub/postgres runs the same tests on PostgreSQL:
// `TEST_HUB_DATABASE` is a database that each start empties, and `TEST_HUBS` is the number of hubs that serve it, to which
// calls go in turn. They share the process and nothing else: a hub keeps nothing in variables of modules.

import { join } from 'node:path'
import { openStore } from '../../db/hub/open-store.ts'
import type { Store } from '../../db/hub/store.ts'
import { hubApp } from '../../hub.ts'
import { type Route, routesOf } from '../../lib/http/routes.ts'
import { hashPassword } from '../../lib/hub/access/accounts.ts'
import type { Hub, PasswordCost } from '../../lib/hub/core/hub.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { TEMPLATE } from './begun.ts'
import { folder } from './folder.ts'
import { alternate, startHubProcess } from './hub-processes.ts'
import { checkReply } from './replies.ts'
import { type HubPlace, type ServedHub, serveHub } from './served-hub.ts'

export const ADMIN_PASSWORD = 'correct horse battery'
/** Whether the tests run again on another database. What reaches no table is then not tested again. */
export const AGAIN = process.env.TEST_HUB_DATABASE !== undefined
/** The password of the accounts that tests add. */
const PASSWORD = 'password of a test'

// biome-ignore lint/suspicious/noExplicitAny: tests say what they expect by asserting it
type Data = any

export interface Reply<T = Data> {
  status: number
  headers: Headers
  data: T
  error: { code: string; message: string; details?: { path: string; message: string; value?: number }[] }
}

export interface TestHub {
  url: string
  /** Where the database is: the path of a file, or an address. */
  database: string
  /** The database, for inspecting tables. */
  store: Store
  /** Every route of the API with its access rule. */
  routes: Route[]
  /** The lines of the log. */
  log(): Promise<string[]>
  /** Sets the clock of the hub `ms` ahead. */
  skew(ms: number): Promise<void>
  /** Writes the times of use that are buffered in memory. */
  flush(): Promise<void>
  /** Sends the messages of webhooks that are due by now; the hub looks for them every two seconds. */
  sendWebhooks(): Promise<void>
  /** Posts `body`; `token` null means no credential. */
  call<T = Data>(token: string | null, path: string, body?: unknown): Promise<Reply<T>>
  /** Like `call`, but throws unless it succeeded. */
  ok<T = Data>(token: string | null, path: string, body?: unknown): Promise<T>
  /** A session of the site admin, who owns org 1 and scope `admin`. */
  admin: string
  /** The id of the first realm. */
  realm: string
  /** Adds an account and returns a session for it. */
  account(username: string): Promise<{ token: string; id: number }>
  /**
   * Publishes a team of the site admin, given as the text of its `team.yml` or as texts by path, and adds it to the
   * first realm. Returns its name.
   */
  addTeam(contents: string | Record<string, string>): Promise<string>
  /** Creates a realm token. */
  realmToken(token: string, ...realmIds: string[]): Promise<{ id: number; token: string }>
  /**
   * Stops every hub and starts it again at the same address, with other variables or another clock if given.
   * `meanwhile` is awaited while nobody serves.
   */
  restart(change?: Partial<Pick<HubPlace, 'env' | 'skew'>>, meanwhile?: () => Promise<unknown>): Promise<void>
  stop(): Promise<void>
}

/** No suite takes this long, whose template is used to its end. An older database belongs to tests that were killed. */
const LONGEST_SUITE_MS = 6 * 3_600_000

/**
 * Creates a database on the PostgreSQL at `server`, which is dropped at the end of its scope. In the suite it is migrated,
 * unless it has to be `empty`. Its contents need not survive a power cut. Databases of killed tests are dropped too.
 */
export async function freshPostgres(
  server: string,
  { empty = false }: { empty?: boolean } = {},
): Promise<AsyncDisposable & { location: string }> {
  const sql = new Bun.SQL(server, { max: 1 })
  const left = await sql<{ name: string }[]>`SELECT datname AS name FROM pg_database WHERE datname ~ '^hub_[0-9]{13}_'`
  for (const { name } of left) {
    if (Number(name.split('_')[1]) > Date.now() - LONGEST_SUITE_MS) continue
    await sql.unsafe(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }
  const name = `hub_${Date.now()}_${crypto.randomUUID().replaceAll('-', '')}`
  await sql.unsafe(`CREATE DATABASE ${name}${empty ? '' : TEMPLATE}`)
  await sql.unsafe(`ALTER DATABASE ${name} SET synchronous_commit = off`)
  const location = new URL(server)
  location.pathname = name
  return {
    location: location.href,
    async [Symbol.asyncDispose]() {
      await sql.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)
      await sql.close()
    },
  }
}

/**
 * Empties a database. Its tables stay: to create and migrate them takes a hundred times as long. Remaining connections
 * are closed first.
 */
async function empty(database: string): Promise<void> {
  const sql = new Bun.SQL(database, { max: 1 })
  await sql`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`
  const tables = await sql<{ name: string }[]>`
    SELECT format('%I', tablename) AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> '__drizzle_migrations'`
  const deletions = tables.map(({ name }) => `DELETE FROM ${name};`).join('')
  // Foreign keys are not looked at.
  await sql.unsafe(`SET session_replication_role = replica; ${deletions}`)
  await sql`SELECT setval(seqrelid, seqstart, false) FROM pg_sequence WHERE seqrelid::regclass::text !~ '^__drizzle'`
  await sql.close()
}

/** The lowest cost. With the hub's own, each hash would take a third of a second. */
const LOWEST_COST: PasswordCost = { memoryCost: 8, timeCost: 1 }

interface TestHubOptions {
  passwordCost?: PasswordCost
  /** Variables of the environment of the hubs. */
  env?: Record<string, string>
  /** Whether the hub is a process of its own, for tests that measure it, or write while it stands still. */
  apart?: boolean
  /** Whether hubs in this process do nothing by themselves, for tests that count statements. */
  idle?: boolean
  /** Where another database is, in place of the one of the suite. */
  database?: string
}

export async function startTestHub({
  passwordCost = LOWEST_COST,
  env = {},
  apart = false,
  idle: isIdle = false,
  database: other,
}: TestHubOptions = {}): Promise<TestHub> {
  const home = folder()
  const shared = process.env.TEST_HUB_DATABASE
  if (shared && !other) await empty(shared)
  const database = other ?? shared ?? join(home, 'hub.db')
  const count = Number(process.env.TEST_HUBS ?? 1)
  // All hubs start at the same time: one of them migrates and creates the first account, and the others wait.
  const place = { database, home, password: ADMIN_PASSWORD, passwordCost, env, isIdle }
  const serve: (place: HubPlace) => Promise<ServedHub & { hub?: Hub }> = apart ? startHubProcess : serveHub
  let hubs = await Promise.all(Array.from({ length: count }, () => serve(place)))
  const front = count > 1 ? alternate(hubs.map(({ url }) => url)) : undefined
  const url = front?.url.origin ?? hubs[0]!.url
  let turn = 0
  // Tables and declared routes are inspected with the hub of this process: two connections of one thread to a SQLite
  // database would wait for each other. Beside processes it is one that serves no requests.
  const idle =
    hubs[0]!.hub === undefined
      ? createHub({ store: await openStore(database), log: createLog({ write: () => {} }), home, passwordCost })
      : null
  const own = () => idle ?? hubs[0]!.hub!
  // Those of the pages are hidden, and have their own test (session.test.ts).
  const routes = routesOf(hubApp(own())).filter(({ hidden }) => !hidden)

  async function call(token: string | null, path: string, body: unknown = {}): Promise<Reply> {
    const response = await fetch(`${hubs[turn++ % count]!.url}/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(token !== null && { authorization: `Bearer ${token}` }) },
      body: JSON.stringify(body),
    })
    const isLines = response.headers.get('content-type')?.startsWith('application/x-ndjson')
    const reply = (isLines ? { data: await response.text() } : await response.json()) as {
      data: unknown
      error: Reply['error']
    }
    if (response.ok && !isLines) checkReply(routes, `/v1/${path}`, response.status, reply.data)
    return { status: response.status, headers: response.headers, data: reply.data, error: reply.error }
  }

  async function ok(token: string | null, path: string, body: unknown = {}) {
    const { status, data, error } = await call(token, path, body)
    if (status === 500) throw new Error(`${path}: ${(await log()).findLast(line => line.includes('request failed'))}`)
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(error)}`)
    return data
  }

  const log = async () => (await Promise.all(hubs.map(hub => hub.ask('log')))).flat()

  const { token: admin } = await ok(null, 'session/create', { username: 'admin', password: ADMIN_PASSWORD })
  const { realms } = await ok(admin, 'realms/list')
  const passwordHash = await hashPassword(own(), PASSWORD)
  return {
    url,
    database,
    get store() {
      return own().store
    },
    routes,
    log,
    skew: async ms => void (await Promise.all(hubs.map(hub => hub.ask('skew', ms)))),
    flush: async () => void (await Promise.all(hubs.map(hub => hub.ask('flush')))),
    sendWebhooks: async () => void (await Promise.all(hubs.map(hub => hub.ask('webhooks')))),
    call,
    ok,
    admin,
    realm: realms[0].id,
    async account(username) {
      const { store } = own()
      const { users } = store
      const values = { username, password_hash: passwordHash, site_admin: false, created_at: Date.now() }
      const [row] = await store.write(tx => tx.insert(users).values(values).returning())
      const { token } = await ok(null, 'session/create', { username, password: PASSWORD })
      return { token, id: row!.id }
    },
    async addTeam(contents) {
      const texts = typeof contents === 'string' ? { 'team.yml': contents } : contents
      const files = Object.entries(texts).map(([path, text]) => ({
        path,
        content_base64: Buffer.from(text).toString('base64'),
      }))
      const { name } = await ok(admin, 'teams/publish', { files })
      await ok(admin, 'realms/add_team', { realm_id: realms[0].id, team: name })
      return name
    },
    realmToken: (token, ...realm_ids) => ok(token, 'auth/generate_token', { type: 'realm', name: 'enrol', realm_ids }),
    async restart(change, meanwhile) {
      await Promise.all(hubs.map(hub => hub.stop()))
      await meanwhile?.()
      const ports = hubs.map(hub => Number(new URL(hub.url).port))
      hubs = await Promise.all(ports.map(port => serve({ ...place, ...change, port })))
    },
    async stop() {
      front?.stop(true)
      await Promise.all(hubs.map(hub => hub.stop()))
      await idle?.close()
    },
  }
}
