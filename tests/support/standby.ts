// PostgreSQL servers of our own: one alone, or one with a standby and one address for both, where whoever connects reaches
// the server that serves at present. The servers and their files are removed at the end.

import { chmodSync, chownSync, existsSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { until } from './bounded.ts'
import { folder } from './folder.ts'
import { freePort } from './free-port.ts'

/** Where the programs of PostgreSQL are; null without them. */
export const BIN: string | null = (() => {
  const config = Bun.which('pg_config')
  const asked = config ? Bun.spawnSync([config, '--bindir']).stdout.toString().trim() : ''
  const all = [asked, ...new Bun.Glob('/usr/lib/postgresql/*/bin').scanSync({ onlyFiles: false, absolute: true })]
  return all.find(path => path !== '' && existsSync(join(path, 'initdb'))) ?? null
})()

/** PostgreSQL does not run as root, so its programs are those of this user then. */
const USER = process.getuid?.() === 0 ? 'postgres' : null

function run(program: string, ...args: string[]): Promise<void> {
  return runWith({}, program, ...args)
}

/** The same with more variables of the environment. */
async function runWith(env: Record<string, string>, program: string, ...args: string[]): Promise<void> {
  const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const command = ['env', ...variables, join(BIN!, program), ...args]
  const quoted = command.map(word => `'${word}'`).join(' ')
  const child = Bun.spawn(USER ? ['su', USER, '-s', '/bin/sh', '-c', quoted] : command, {
    cwd: '/',
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(`${program} ${args.join(' ')}: ${said}`)
}

/** The files of an empty server, which are copied, because initdb takes seconds. */
let initialised: Promise<string> | null = null

async function initialise(): Promise<string> {
  const place = folder()
  open(place)
  const data = join(place, 'empty')
  await run('initdb', '--pgdata', data, '--username', 'postgres', '--auth', 'trust', '--no-sync')
  return data
}

/** Makes a folder one of the user that PostgreSQL runs as. */
function open(place: string): void {
  chmodSync(place, 0o755)
  if (USER === null) return
  const [uid, gid] = ['-u', '-g'].map(flag => Number(Bun.spawnSync(['id', flag, USER]).stdout.toString()))
  chownSync(place, uid!, gid!)
}

class Cluster {
  readonly data: string
  readonly port = freePort()
  readonly #log: string
  isUp = false

  constructor(place: string, name: string) {
    this.data = join(place, name)
    this.#log = join(place, `${name}.log`)
  }

  async start(env: Record<string, string> = {}): Promise<void> {
    const options = `-p ${this.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off -c shared_buffers=16MB`
    await runWith(env, 'pg_ctl', '--pgdata', this.data, '--log', this.#log, '--options', options, '--wait', 'start')
    this.isUp = true
  }

  async stop(mode: 'fast' | 'immediate'): Promise<void> {
    if (!this.isUp) return
    this.isUp = false
    await run('pg_ctl', '--pgdata', this.data, '--mode', mode, '--wait', 'stop')
  }

  ask<T>(text: string, database = 'postgres'): Promise<T[]> {
    const sql = new Bun.SQL(`postgres://postgres@127.0.0.1:${this.port}/${database}`, { max: 1 })
    return (sql.unsafe(text) as Promise<T[]>).finally(() => sql.close())
  }
}

/** A server with an empty database, whose processes have the variables `env`. */
export async function startPostgres(env: Record<string, string>): Promise<AsyncDisposable & { location: string }> {
  const place = folder()
  open(place)
  initialised ??= initialise()
  const server = new Cluster(place, 'server')
  Bun.spawnSync(['cp', '-a', await initialised, server.data])
  await server.start(env)
  await server.ask('CREATE DATABASE hub')
  return {
    location: `postgres://postgres@127.0.0.1:${server.port}/hub`,
    async [Symbol.asyncDispose]() {
      await server.stop('immediate')
      rmSync(place, { recursive: true, force: true })
    },
  }
}

export class StandbyPair implements AsyncDisposable {
  readonly #place = folder()
  readonly #primary = new Cluster(this.#place, 'primary')
  readonly #standby = new Cluster(this.#place, 'standby')
  #serving = this.#primary
  readonly #front: Server
  readonly #sockets = new Set<Socket>()
  #port = 0

  private constructor() {
    this.#front = createServer(client => {
      const server = connect(this.#serving.port, '127.0.0.1')
      for (const socket of [client, server]) {
        this.#sockets.add(socket)
        socket.on('error', () => {})
        socket.on('close', () => this.#sockets.delete(socket))
      }
      client.pipe(server).pipe(client)
      client.on('close', () => server.destroy())
      server.on('close', () => client.destroy())
    })
  }

  static async start(): Promise<StandbyPair> {
    const pair = new StandbyPair()
    const { promise, resolve } = Promise.withResolvers<void>()
    pair.#front.listen(0, '127.0.0.1', () => resolve())
    await promise
    const address = pair.#front.address()
    pair.#port = address !== null && typeof address === 'object' ? address.port : 0
    open(pair.#place)
    initialised ??= initialise()
    // With the owner.
    Bun.spawnSync(['cp', '-a', await initialised, pair.#primary.data])
    await pair.#primary.start()
    await pair.#primary.ask('CREATE DATABASE hub')
    const from = ['--host', '127.0.0.1', '--port', String(pair.#primary.port), '--username', 'postgres']
    await run(
      'pg_basebackup',
      ...from,
      '--pgdata',
      pair.#standby.data,
      '--checkpoint',
      'fast',
      '--write-recovery-conf',
      '--no-sync',
    )
    await pair.#standby.start()
    return pair
  }

  get location(): string {
    return `postgres://postgres@127.0.0.1:${this.#port}/hub`
  }

  /** Waits until the standby has everything. */
  async catchUp(): Promise<void> {
    const [{ lsn }] = (await this.#primary.ask<{ lsn: string }>('SELECT pg_current_wal_lsn() AS lsn')) as [
      { lsn: string },
    ]
    const reached = async () => {
      const [row] = await this.#standby.ask<{ has: boolean }>(`SELECT pg_last_wal_replay_lsn() >= '${lsn}' AS has`)
      return row!.has
    }
    await until(reached, 'the standby has everything')
  }

  /** From now on the standby gets nothing. */
  async cut(): Promise<void> {
    await this.#standby.stop('fast')
  }

  /** The primary dies, and the standby serves in its place. */
  async promote(): Promise<void> {
    await this.#primary.stop('immediate')
    for (const socket of this.#sockets) socket.destroy()
    if (!this.#standby.isUp) await this.#standby.start()
    await run('pg_ctl', '--pgdata', this.#standby.data, '--wait', 'promote')
    this.#serving = this.#standby
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#front.close()
    for (const socket of this.#sockets) socket.destroy()
    await Promise.all([this.#primary, this.#standby].map(each => each.stop('immediate')))
    rmSync(this.#place, { recursive: true, force: true })
  }
}
