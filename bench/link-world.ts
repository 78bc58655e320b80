// What the measurements of hub and daemons stand on: a hub in its own process on SQLite or PostgreSQL, its first realm,
// daemons in it that exist or are only rows, jobs that wait, and what the kernel says of a process.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { openStore } from '../db/hub/open-store.ts'
import type { Store } from '../db/hub/store.ts'
import { freshPostgres } from '../tests/support/hub.ts'
import { type Server, serve } from './server.ts'

export type Dialect = 'sqlite' | 'postgres'

// biome-ignore lint/suspicious/noExplicitAny: the data of all calls
type Data = any

export interface World extends AsyncDisposable {
  dialect: Dialect
  hub: Server
  realm: string
  /** A realm token, and a session of the first account. */
  token: string
  admin: string
  database: string
  /** The same database, for rows that would take too long to make by calls. */
  store: Store
  call(path: string, body: object, token?: string): Promise<Data>
  restart(): Promise<void>
}

/** Runs a phase that does nothing, three commands that do nothing, or one that prints numbers. */
const TEAMS = {
  '@admin/noop': 'phases: [{ name: p, agent: noop, sources: [{ name: x }] }]',
  '@admin/commands': `phases:
  - { name: a, agent: exec, commands: [{ name: c, run: "true" }] }
  - { name: b, agent: exec, depends_on: [a], commands: [{ name: c, run: "true" }] }
  - { name: c, agent: exec, depends_on: [b], commands: [{ name: c, run: "true" }] }`,
  '@admin/lines': `inputs: [{ name: lines, type: number, required: true }]
phases: [{ name: p, agent: exec, commands: [{ name: c, env: { N: "{{ inputs.lines }}" }, run: "seq 1 $N" }] }]`,
}
const AGENTS = join(import.meta.dir, 'agents')

export type BenchTeam = keyof typeof TEAMS

export const teamText = (name: BenchTeam) => `name: "${name}"\nversion: 1.0.0\n${TEAMS[name]}\n`

export async function post(url: string, token: string | null, path: string, body: object): Promise<Data> {
  const reply = await fetch(`${url}/v1/${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) },
    body: JSON.stringify(body),
  })
  const { data, error } = (await reply.json()) as { data: Data; error: Data }
  if (!reply.ok) throw new Error(`${path}: ${reply.status} ${JSON.stringify(error)}`)
  return data
}

export async function openWorld(dialect: Dialect): Promise<World> {
  const home = mkdtempSync(join(tmpdir(), 'cadre-bench-'))
  const postgres = dialect === 'postgres' ? await freshPostgres(process.env.TEST_POSTGRES_URL!) : null
  const database = postgres?.location ?? join(home, 'hub.db')
  if (postgres) {
    // The databases of tests need not survive a power cut. A hub's own must, and so must that of a measurement.
    const sql = new Bun.SQL(database, { max: 1 })
    await sql.unsafe(`ALTER DATABASE ${new URL(database).pathname.slice(1)} SET synchronous_commit = on`)
    await sql.close()
  }
  const start = (port = '0') =>
    serve([join(import.meta.dir, '../hub.ts'), 'serve', '--port', port], {
      CADRE_HOME: home,
      CADRE_HUB_DATABASE: database,
      CADRE_ADMIN_PASSWORD: 'bench',
      CADRE_HUB_KEY: 'bench',
      CADRE_LOG_LEVEL: 'error',
      CADRE_AGENTS: AGENTS,
    })
  const hub = await start()
  const { token: admin } = await post(hub.url, null, 'session/create', { username: 'admin', password: 'bench' })
  const realm = (await post(hub.url, admin, 'realms/list', {})).realms[0].id
  const minted = { type: 'realm', name: 'bench', realm_ids: [realm] }
  const { token } = await post(hub.url, admin, 'auth/generate_token', minted)
  for (const name of Object.keys(TEAMS) as BenchTeam[]) {
    const content_base64 = Buffer.from(teamText(name)).toString('base64')
    await post(hub.url, admin, 'teams/publish', { files: [{ path: 'team.yml', content_base64 }] })
    await post(hub.url, admin, 'realms/add_team', { realm_id: realm, team: name })
  }
  const store = await openStore(database)
  const world: World = {
    ...{ dialect, hub, realm, token, admin, database, store },
    call: (path, body, as = admin) => post(world.hub.url, as, path, body),
    async restart() {
      await world.hub.stop()
      world.hub = await start(new URL(hub.url).port)
    },
    async [Symbol.asyncDispose]() {
      await world.hub.stop()
      await store.close()
      await postgres?.[Symbol.asyncDispose]()
      rmSync(home, { recursive: true, force: true })
    },
  }
  return world
}

/** A real daemon; without a hub it works alone. */
export async function startDaemon(home: string, world: World | null): Promise<Server> {
  return serve([join(import.meta.dir, '../daemon.ts'), 'serve', '--home', home, '--port', '0'], {
    HOME: home,
    CADRE_AGENTS: AGENTS,
    CADRE_LOG_LEVEL: 'error',
    ...(world && { CADRE_HUB_URL: world.hub.url, CADRE_REALM_TOKEN: world.token }),
  })
}

/** Registers `count` daemons: the first by a call, the others as copies of its row. */
export async function addDaemons({ store, call, token }: World, count: number): Promise<string[]> {
  const { daemons } = store
  const { daemon_id } = await call('daemons/register', { name: 'bench' }, token)
  const [row] = await store.db.select().from(daemons).where(eq(daemons.id, daemon_id))
  const ids = [daemon_id as string, ...Array.from({ length: count - 1 }, () => crypto.randomUUID() as string)]
  await inChunks(ids.slice(1), 500, some =>
    store.write(tx => tx.insert(daemons).values(some.map(id => ({ ...row!, id })))),
  )
  return ids
}

/** Another realm with the teams, and a token for it. */
export async function addRealm({ call }: World, slug: string): Promise<{ realm: string; token: string }> {
  const { id: realm } = await call('realms/create', { org_id: 1, slug, name: slug })
  for (const team of Object.keys(TEAMS)) await call('realms/add_team', { realm_id: realm, team })
  const minted = { type: 'realm', name: slug, realm_ids: [realm] }
  return { realm, token: (await call('auth/generate_token', minted)).token }
}

/** Lets `count` copies of a dispatched run wait. */
export async function addJobs({ store, call, ...world }: World, count: number, realm = world.realm): Promise<void> {
  const { jobs, runs } = store
  const { run_id, job_id } = await call('dispatch/run', { realm_id: realm, team: '@admin/noop' })
  const [run] = await store.db.select().from(runs).where(eq(runs.run_id, run_id))
  const [job] = await store.db.select().from(jobs).where(eq(jobs.id, job_id))
  const ids = Array.from({ length: count - 1 }, () => Bun.randomUUIDv7())
  await inChunks(ids, 500, some =>
    store.write(async tx => {
      await tx.insert(runs).values(some.map(id => ({ ...run!, run_id: id, root_run_id: id })))
      await tx.insert(jobs).values(some.map(id => ({ ...job!, id, run_id: id, created_at: Date.now() })))
    }),
  )
}

export async function inChunks<T>(all: T[], size: number, work: (some: T[]) => Promise<unknown>): Promise<void> {
  for (let at = 0; at < all.length; at += size) await work(all.slice(at, at + size))
}

/** The memory of a process in MiB, as the kernel reports it; Linux only. */
export async function memory(pid: number, field: 'VmRSS' | 'VmHWM'): Promise<number> {
  const text = await Bun.file(`/proc/${pid}/status`).text()
  return Math.round(Number(new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(text)![1]) / 1_024)
}

/** Seconds of processor time that a process has used; Linux only. */
export async function processorTime(pid: number): Promise<number> {
  const fields = (await Bun.file(`/proc/${pid}/stat`).text()).split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

export function percentile(all: number[], part: number): number {
  const sorted = all.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))]!
}
