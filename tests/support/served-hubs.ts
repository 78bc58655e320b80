// Hubs as processes on a database of their own, which a test may kill.

import { expect } from 'bun:test'
import { join } from 'node:path'
import { openStore } from '../../db/hub/open-store.ts'
import { folder } from './folder.ts'
import { freshPostgres } from './hub.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from './program.ts'

const server = process.env.TEST_POSTGRES_URL

/** On SQLite one hub serves, and on PostgreSQL two. */
export const DATABASES = [
  {
    name: 'SQLite',
    hubs: 1,
    open: async () => ({ location: join(folder(), 'hub.db'), [Symbol.asyncDispose]: async () => {} }),
  },
  ...(server ? [{ name: 'PostgreSQL', hubs: 2, open: () => freshPostgres(server) }] : []),
]

/** A hub that may take its time to start. */
export function spawnHub(database: string, env: Record<string, string> = {}) {
  const home = folder()
  const child = Bun.spawn([...HUB, 'serve', '--port', '0', '--database', database], {
    env: {
      ...environmentAt(home),
      ...CHEAP_PASSWORDS,
      CADRE_HOME: home,
      CADRE_ADMIN_PASSWORD: 'known',
      CADRE_HUB_KEY: 'k',
      ...env,
    },
    stdout: 'pipe',
    stderr: Bun.file(join(home, 'log')),
  })
  const log = () => Bun.file(join(home, 'log')).text()
  /** Where it is served, once it is. */
  const served = async () => {
    const { value } = await child.stdout.getReader().read()
    const [url] = /http:\S+/.exec(new TextDecoder().decode(value)) ?? []
    if (url === undefined) throw new Error(`the hub did not start: ${await log()}`)
    return { child, url, log }
  }
  return { child, log, served }
}

export const startHub = (database: string, env: Record<string, string> = {}) => spawnHub(database, env).served()

export type HubProcess = Awaited<ReturnType<typeof startHub>>

export async function stop(hubs: readonly HubProcess[]): Promise<void> {
  for (const { child } of hubs) child.kill('SIGTERM')
  expect(await Promise.all(hubs.map(({ child }) => child.exited))).toEqual(hubs.map(() => 0))
}

export async function rowsIn(location: string) {
  const store = await openStore(location)
  const { firings, runs, db } = store
  const found = { firings: await db.select().from(firings), runs: await db.select().from(runs) }
  await store.close()
  return found
}

export type Call = Awaited<ReturnType<typeof signedIn>>['call']

/** What the first account may call of a hub whose address may change, and its realm. */
export async function signedIn(url: () => string) {
  let token = ''
  const call = async (path: string, body: object = {}, as = token) => {
    const headers = { 'content-type': 'application/json', ...(as && { authorization: `Bearer ${as}` }) }
    const reply = await fetch(`${url()}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    expect([path, reply.ok]).toEqual([path, true])
    // biome-ignore lint/suspicious/noExplicitAny: what the hub answers.
    return ((await reply.json()) as any).data
  }
  token = (await call('session/create', { username: 'admin', password: 'known' })).token
  const realm_id: string = (await call('realms/list')).realms[0].id
  return { call, realm_id }
}

/** Publishes a team, and puts it on the list of a realm. */
export async function publish(call: Call, realm_id: string, team: string, text: string): Promise<void> {
  await call('teams/publish', { files: [{ path: 'team.yml', content_base64: Buffer.from(text).toString('base64') }] })
  await call('realms/add_team', { realm_id, team })
}
