// PostgreSQL servers of our own: one alone, or one with a standby and one address for both, where whoever connects reaches
// the server that serves at present. The servers and their files are removed at the end.

import { chmodSync, chownSync, closeSync, existsSync, openSync, readFileSync, rmSync } from 'node:fs'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { until } from './bounded.ts'
import { folder } from './folder.ts'
import { freePort } from './free-port.ts'

/** PostgreSQL does not run as root, so its programs are those of this user then. */
const USER = process.getuid?.() === 0 ? 'postgres' : null
const SETPRIV = Bun.which('setpriv')

/**
 * How its programs are begun. They end with the process that begins them, however that ends: a server of `pg_ctl` would
 * stay when somebody kills the tests. Only Linux can do that.
 */
const BEGIN =
  SETPRIV === null
    ? []
    : [SETPRIV, '--pdeathsig', 'QUIT', ...(USER ? ['--reuid', USER, '--regid', USER, '--init-groups'] : [])]

/** Where the programs of PostgreSQL are; null without them. */
export const BIN: string | null = (() => {
  if (USER !== null && SETPRIV === null) return null
  const config = Bun.which('pg_config')
  const asked = config ? Bun.spawnSync([config, '--bindir']).stdout.toString().trim() : ''
  const all = [asked, ...new Bun.Glob('/usr/lib/postgresql/*/bin').scanSync({ onlyFiles: false, absolute: true })]
  return all.find(path => path !== '' && existsSync(join(path, 'initdb'))) ?? null
})()

async function run(program: string, ...args: string[]): Promise<void> {
  const child = Bun.spawn([...BEGIN, join(BIN!, program), ...args], {
    cwd: '/',
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = await child.stderr.text()
  if ((await child.exited) !== 0) throw new Error(`${program} ${args.join(' ')}: ${said}`)
}

/** A start of many at once on a busy machine. */
const START_MS = 60_000

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

/** The signals by which a server ends: at once with a checkpoint, or as if it were killed. */
const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

class Cluster {
  readonly data: string
  readonly port = freePort()
  readonly #log: string
  #server: Bun.Subprocess | null = null

  constructor(place: string, name: string) {
    this.data = join(place, name)
    this.#log = join(place, `${name}.log`)
  }

  get isUp(): boolean {
    return this.#server !== null
  }

  /** `env`: more variables of its processes. */
  async start(env: Record<string, string> = {}): Promise<void> {
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`)
    const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off', 'shared_buffers=16MB']
    const options = ['-D', this.data, '-p', String(this.port), ...settings.flatMap(setting => ['-c', setting])]
    const log = openSync(this.#log, 'a')
    const output = { stdin: 'ignore', stdout: log, stderr: log } as const
    const server = Bun.spawn([...BEGIN, 'env', ...variables, join(BIN!, 'postgres'), ...options], {
      cwd: '/',
      ...output,
    })
    closeSync(log)
    this.#server = server
    const isReady = () => {
      if (server.exitCode !== null || server.signalCode !== null) {
        this.#server = null
        throw new Error(`postgres has ended: ${readFileSync(this.#log, 'utf8')}`)
      }
      const file = join(this.data, 'postmaster.pid')
      const [pid, ...more] = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
      return Number(pid) === server.pid && /^(ready|standby) *$/.test(more[6] ?? '')
    }
    await until(isReady, `postgres is ready, which says ${this.#log}`, START_MS)
  }

  async stop(mode: keyof typeof SIGNALS): Promise<void> {
    const server = this.#server
    this.#server = null
    server?.kill(SIGNALS[mode])
    await server?.exited
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
