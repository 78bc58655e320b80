// A hub as a process whose database is put back from an older copy, and daemons in this process that execute what is
// dispatched meanwhile. Each run of its team adds a line to a file outside, so that nothing is executed twice unseen.

import { cpSync, existsSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './bounded.ts'
import { collect } from './daemon.ts'
import { folder } from './folder.ts'
import { freePort } from './free-port.ts'
import { CHEAP_PASSWORDS, environmentAt, HUB } from './program.ts'
import { openHome } from './sandbox.ts'
import { type ServedDaemon, serveDaemon } from './served-daemon.ts'

export const PASSWORD = 'correct horse battery'
const TEAM = '@admin/writes'

const team = (file: string) => `
name: "${TEAM}"
version: 1.0.0
inputs: [{ name: text, type: string, required: true }]
phases:
  - { name: write, agent: exec, commands: [{ name: w, env: { TEXT: "{{ inputs.text }}" }, run: 'echo "$TEXT"; echo "$TEXT $CADRE_OUT" >> ${file}' }] }
`

// biome-ignore lint/suspicious/noExplicitAny: the replies of the API.
type Data = any

/** A database that can be copied, and whose copy can be put in its place while no hub serves it. */
export interface Place {
  database: string
  /** The hub may serve it meanwhile. */
  copy(): Promise<void>
  put(): Promise<void>
}

/** The database is a file, and the copy is made by `way`. */
export function sqlitePlace(way: 'restore' | 'copied file' | 'written over' | 'renamed file' | 'snapshot'): Place {
  const database = join(folder(), 'hub.db')
  const kept = join(folder(), 'kept.db')
  const remove = (path: string) => {
    for (const end of ['', '-wal', '-shm']) rmSync(path + end, { force: true })
  }
  return {
    database,
    async copy() {
      remove(kept)
      await hubCommand('backup', kept, '--database', database)
      cpSync(`${database}.mark`, `${kept}.mark`)
    },
    async put() {
      if (way === 'restore') return hubCommand('restore', kept, '--replace', '--database', database)
      // A hub that was killed leaves its log, which would be applied to any database of this name.
      for (const end of ['-wal', '-shm']) rmSync(database + end, { force: true })
      if (way === 'written over' || way === 'snapshot') {
        await Bun.write(Bun.file(database), Bun.file(kept))
        // As with the snapshot of a machine, everything is as it was.
        if (way === 'snapshot') await Bun.write(Bun.file(`${database}.mark`), Bun.file(`${kept}.mark`))
      } else if (way === 'copied file') {
        rmSync(database)
        cpSync(kept, database)
      } else {
        cpSync(kept, `${kept}.2`)
        renameSync(`${kept}.2`, database)
      }
    },
  }
}

/** A database of the PostgreSQL at `server`. The copy is one beside it, which then gets its name. */
export async function postgresPlace(
  server: string,
  { tellsPlace = true, inPlace = false } = {},
): Promise<Place & AsyncDisposable> {
  const name = `hub_${Date.now()}_${crypto.randomUUID().replaceAll('-', '')}`
  const location = new URL(server)
  location.pathname = name
  const sql = new Bun.SQL(server, { max: 1 })
  // One whose server does not tell the place to its owner, as some services do not.
  const role = tellsPlace ? null : `role_${name}`
  if (role) {
    await sql.unsafe(`CREATE ROLE ${role} LOGIN`)
    location.username = role
  }
  const created = async (database: string) => {
    await sql.unsafe(`CREATE DATABASE ${database} ${role ? `OWNER ${role}` : ''}`)
    if (role === null) return
    const inside = new URL(server)
    inside.pathname = database
    const its = new Bun.SQL(inside.href, { max: 1 })
    await its.unsafe('REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC')
    await its.close()
  }
  await created(name)
  const dump = join(folder(), 'dump')
  const run = async (...words: string[]) => {
    const child = Bun.spawn(words, { stdout: 'pipe', stderr: 'pipe' })
    const said = await child.stderr.text()
    if ((await child.exited) !== 0) throw new Error(`${words[0]}: ${said}`)
  }
  return {
    database: location.href,
    async copy() {
      rmSync(dump, { force: true })
      await run('pg_dump', '--format=custom', '--no-privileges', '--file', dump, location.href)
    },
    async put() {
      if (inPlace) return run('pg_restore', '--clean', '--if-exists', '--dbname', location.href, dump)
      const beside = new URL(location)
      beside.pathname = `${name}_beside`
      await created(`${name}_beside`)
      await run('pg_restore', '--dbname', beside.href, dump)
      await sql.unsafe(`DROP DATABASE ${name} WITH (FORCE)`)
      await sql.unsafe(`ALTER DATABASE ${name}_beside RENAME TO ${name}`)
    },
    async [Symbol.asyncDispose]() {
      for (const each of [name, `${name}_beside`]) await sql.unsafe(`DROP DATABASE IF EXISTS ${each} WITH (FORCE)`)
      if (role) await sql.unsafe(`DROP ROLE ${role}`)
      await sql.close()
    },
  }
}

export async function hubCommand(...args: string[]): Promise<void> {
  const child = Bun.spawn([...HUB, ...args], {
    env: environmentAt(folder()),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const said = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(`hub ${args[0]}: ${said}`)
}

export class CopiedHub implements AsyncDisposable {
  readonly url: string
  readonly #database: string
  readonly #port = freePort()
  readonly #home = folder()
  readonly linesFile = join(folder(), 'lines')
  readonly #daemons = new Map<string, ServedDaemon | null>()
  readonly #homes = new Map<string, { home: string; env: Record<string, string> }>()
  #child: Bun.Subprocess<'ignore', 'pipe', 'pipe'> | null = null
  token = ''
  realm = ''
  stderr = ''

  readonly #env: Record<string, string>

  private constructor(database: string, env: Record<string, string>) {
    this.#database = database
    this.#env = env
    this.url = `http://127.0.0.1:${this.#port}`
  }

  static async start(database: string, env: Record<string, string> = {}): Promise<CopiedHub> {
    const hub = new CopiedHub(database, env)
    await hub.serve()
    const [realm] = (await hub.ok('realms/list')).realms
    hub.realm = realm.id
    await hub.publish(TEAM, team(hub.linesFile))
    return hub
  }

  async publish(name: string, text: string): Promise<void> {
    const files = [{ path: 'team.yml', content_base64: Buffer.from(text).toString('base64') }]
    await this.ok('teams/publish', { files })
    await this.ok('realms/add_team', { realm_id: this.realm, team: name })
  }

  /** Starts the hub, and signs in. */
  async serve(signsIn = true): Promise<void> {
    const args = ['serve', '--port', String(this.#port), '--database', this.#database]
    const child = Bun.spawn([...HUB, ...args], {
      env: {
        ...environmentAt(this.#home),
        ...CHEAP_PASSWORDS,
        CADRE_HOME: this.#home,
        CADRE_ADMIN_PASSWORD: PASSWORD,
        CADRE_HUB_KEY: 'k',
        ...this.#env,
      },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    this.#child = child
    void collect(child.stderr, text => (this.stderr += text))
    const first = await child.stdout.getReader().read()
    if (first.done) throw new Error(`the hub ended: ${this.stderr}`)
    if (signsIn) await this.signIn()
  }

  async signIn(): Promise<void> {
    this.token = (await this.ok('session/create', { username: 'admin', password: PASSWORD })).token
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    this.#child?.kill(signal)
    await this.#child?.exited
    this.#child = null
  }

  /** Puts a copy in place of the database, and starts the hub on it. */
  async restore(place: Place, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.stop(signal)
    await place.put()
    await this.serve()
  }

  async call(path: string, body: object = {}): Promise<{ status: number; data: Data; error: Data }> {
    const reply = await fetch(`${this.url}/v1/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(this.token && { authorization: `Bearer ${this.token}` }) },
      body: JSON.stringify(body),
    })
    const { data, error } = (await reply.json()) as Data
    return { status: reply.status, data, error }
  }

  async ok(path: string, body: object = {}): Promise<Data> {
    const { status, data, error } = await this.call(path, body)
    const why = status === 500 ? this.stderr.slice(-2_000) : ''
    if (status >= 300) throw new Error(`${path}: ${status} ${JSON.stringify(error)} ${why}`)
    return data
  }

  /** Starts a daemon, with the home that it had before. */
  async daemon(name: string): Promise<ServedDaemon> {
    let place = this.#homes.get(name)
    if (!place) {
      const { token } = await this.ok('auth/generate_token', { type: 'realm', name, realm_ids: [this.realm] })
      const env = { CADRE_HUB_URL: this.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: name }
      place = { home: openHome(), env }
      this.#homes.set(name, place)
    }
    const daemon = await serveDaemon(place)
    this.#daemons.set(name, daemon)
    return daemon
  }

  /** Makes these daemons known to the hub, and leaves them stopped. */
  async enrol(...names: string[]): Promise<void> {
    await Promise.all(names.map(name => this.daemon(name)))
    await Promise.all(names.map(name => this.leave(name)))
  }

  async leave(name: string): Promise<void> {
    await this.#daemons.get(name)?.stop()
    this.#daemons.set(name, null)
  }

  async dispatch(text: string, more: object = {}): Promise<string> {
    const body = { realm_id: this.realm, team: TEAM, inputs: { text }, ...more }
    return (await this.ok('dispatch/run', body)).run_id
  }

  /** What was executed, as often as it was, and in which home. */
  get executed(): { text: string; daemon: string }[] {
    const lines = existsSync(this.linesFile) ? readFileSync(this.linesFile, 'utf8').split('\n').filter(Boolean) : []
    return lines.map(each => {
      const [text, out] = each.split(' ') as [string, string]
      const [daemon] = [...this.#homes].find(([, { home }]) => out.startsWith(home))!
      return { text, daemon }
    })
  }

  /** What was executed, as often as it was. */
  get lines(): string[] {
    return this.executed.map(({ text }) => text).sort()
  }

  async stateOf(run_id: string): Promise<string | null> {
    return (await this.call('runs/get', { run_id })).data?.state ?? null
  }

  async completed(runs: readonly string[], ms = 20_000): Promise<void> {
    for (const run of runs)
      await until(async () => (await this.stateOf(run)) === 'completed', `the end of run ${run}`, ms)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#daemons.values()].map(daemon => daemon?.stop()))
    await this.stop('SIGKILL')
  }
}
