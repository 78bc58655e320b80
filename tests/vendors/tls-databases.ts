// PostgreSQL and MariaDB as servers of the test's own, with and without TLS. They run as an unprivileged user.

import { chownSync, cpSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { signedCertificate } from '../support/certificate.ts'
import { folder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'

const POSTGRES = '/usr/lib/postgresql'
export const USER = 'tester'
export const PASSWORD = 'canary-of-the-database'

export interface OwnServer {
  port: number
  /** The certificate of the authority that has signed the server's, which names `localhost`. */
  ca: string
  stop(): Promise<void>
}

interface Kind {
  provider: 'postgres' | 'mysql'
  /** Programs that must be there, and the package of Debian that has them. */
  programs: string[]
  debian: string
  /** The user as whom they run when the tests run as root. */
  runsAs: string
  /** Makes the data of a server in `room`. */
  prepare(room: string): string[]
  /** The command of a server whose data are in `room`. */
  serve(room: string, port: number, tls: { cert: string; key: string } | null): string[]
  ready: string
}

export const KINDS: readonly Kind[] = [
  {
    provider: 'postgres',
    programs: ['initdb', 'postgres'],
    debian: 'postgresql',
    runsAs: 'postgres',
    prepare(room) {
      writeFileSync(join(room, 'password'), PASSWORD)
      const account = [`--username=${USER}`, `--pwfile=${join(room, 'password')}`, '--auth=scram-sha-256']
      return ['initdb', `--pgdata=${join(room, 'data')}`, ...account, '--no-sync', '--no-locale', '--encoding=UTF8']
    },
    serve(room, port, tls) {
      const options = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '', fsync: 'off' }
      const secure = tls ? { ssl: 'on', ssl_cert_file: tls.cert, ssl_key_file: tls.key } : { ssl: 'off' }
      const flags = Object.entries({ ...options, ...secure }).flatMap(([name, value]) => ['-c', `${name}=${value}`])
      return ['postgres', '-D', join(room, 'data'), ...flags]
    },
    ready: 'ready to accept connections',
  },
  {
    provider: 'mysql',
    programs: ['mariadb-install-db', 'mariadbd'],
    debian: 'mariadb-server',
    runsAs: 'mysql',
    prepare(room) {
      const account = `CREATE USER ${USER}@'%' IDENTIFIED BY '${PASSWORD}';\nCREATE DATABASE postgres;\nGRANT ALL ON postgres.* TO ${USER}@'%';\n`
      writeFileSync(join(room, 'accounts.sql'), account)
      const normal = '--auth-root-authentication-method=normal'
      return ['mariadb-install-db', '--no-defaults', `--datadir=${join(room, 'data')}`, normal, '--skip-test-db']
    },
    serve(room, port, tls) {
      const files = [
        `--datadir=${join(room, 'data')}`,
        `--socket=${join(room, 'socket')}`,
        `--pid-file=${join(room, 'pid')}`,
      ]
      const address = ['--bind-address=127.0.0.1', `--port=${port}`, '--skip-name-resolve']
      const secure = tls ? [`--ssl-cert=${tls.cert}`, `--ssl-key=${tls.key}`] : ['--skip-ssl']
      return ['mariadbd', '--no-defaults', ...files, ...address, `--init-file=${join(room, 'accounts.sql')}`, ...secure]
    },
    ready: 'ready for connections',
  },
]

/** Debian keeps the programs of servers out of the PATH of ordinary users. */
const PATH = [
  process.env.PATH,
  '/usr/sbin',
  ...(existsSync(POSTGRES) ? readdirSync(POSTGRES).map(version => join(POSTGRES, version, 'bin')) : []),
].join(':')

/** Whether its programs are installed. Says so where they are not. */
export function isInstalled({ programs, debian }: Kind): boolean {
  const missing = programs.filter(program => !Bun.which(program, { PATH }))
  if (missing.length > 0) console.warn(`${missing} not installed (Debian: ${debian}): its tests with TLS are skipped`)
  return missing.length === 0
}

/** Servers of a kind, whose data are made once. */
export function serversOf(kind: Kind) {
  const made = folder()
  const owner = ownerOf(kind)
  const run = [...owner.run, ...kind.prepare(made)]
  owner.own(made)
  const { exitCode, stderr, stdout } = Bun.spawnSync(run, { cwd: made, env: { PATH, HOME: made } })
  if (exitCode !== 0) throw new Error(`${run.join(' ')}: ${stdout}${stderr}`)

  return async (secure: boolean): Promise<OwnServer> => {
    const room = folder()
    const port = freePort()
    cpSync(made, room, { recursive: true })
    const { ca, cert, key } = signedCertificate(room)
    owner.own(room)
    const command = [...owner.run, ...kind.serve(room, port, secure ? { cert, key } : null)]
    const child = Bun.spawn(command, { cwd: room, env: { PATH, HOME: room }, stdout: 'ignore', stderr: 'pipe' })
    let said = ''
    const ready = Promise.withResolvers<void>()
    const read = async () => {
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
        said += text
        if (said.includes(kind.ready)) ready.resolve()
      }
      ready.reject(new Error(`${command.join(' ')}: ${said}`))
    }
    void read()
    await ready.promise
    return {
      port,
      ca,
      async stop() {
        // PostgreSQL ends its connections and then itself; MariaDB knows SIGTERM only.
        child.kill(kind.provider === 'postgres' ? 'SIGINT' : 'SIGTERM')
        await child.exited
      },
    }
  }
}

/** How a command runs as the user of a server, and how that user gets a folder. Neither server runs as root. */
function ownerOf({ runsAs }: Kind): { run: string[]; own(path: string): void } {
  if (process.getuid?.() !== 0) return { run: [], own() {} }
  const [uid, gid] = ['-u', '-g'].map(flag => Number(Bun.spawnSync(['id', flag, runsAs]).stdout.toString()))
  return {
    run: ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'],
    own(path) {
      for (const each of ['', ...new Bun.Glob('**').scanSync({ cwd: path, dot: true, onlyFiles: false })]) {
        if (existsSync(join(path, each))) chownSync(join(path, each), uid!, gid!)
      }
    },
  }
}
