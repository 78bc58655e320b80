// PgBouncer in front of a PostgreSQL, in transaction mode, where it is installed. It does not run as root.

import { chmodSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { until } from './bounded.ts'
import { folder } from './folder.ts'
import { freePort } from './free-port.ts'

const PROGRAM = Bun.which('pgbouncer', { PATH: `${process.env.PATH}:/usr/sbin` })

export const hasPgBouncer = PROGRAM !== null
if (!hasPgBouncer) console.log('pgbouncer is not installed: the tests of poolers are skipped')

export interface Pooler extends AsyncDisposable {
  /** The address of the same database by the pooler. */
  location: string
}

/** A connection of a client has a server's only for the time of a transaction, and of those there are `size`. */
export async function startPgBouncer(database: string, { size = 6 }: { size?: number } = {}): Promise<Pooler> {
  const { hostname, port: serverPort, username, password } = new URL(database)
  const place = folder()
  const port = freePort()
  const file = join(place, 'pgbouncer.ini')
  const login = `user=${username || 'root'}${password && ` password='${password}'`}`
  writeFileSync(
    file,
    `[databases]
* = host=${hostname} port=${serverPort || 5432} ${login}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${size}
`,
  )
  // Whom it becomes reads it, too.
  chmodSync(place, 0o755)
  const child = Bun.spawn([PROGRAM!, ...(process.getuid?.() === 0 ? ['--user=nobody'] : []), file], {
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = child.stderr.text()
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`pgbouncer ended: ${await said}`)
    return accepts(port)
  }, 'PgBouncer listens')
  const location = new URL(database)
  location.host = `127.0.0.1:${port}`
  return {
    location: location.href,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
    },
  }
}

function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(port, '127.0.0.1')
  socket.on('connect', () => resolve(true)).on('error', () => resolve(false))
  return promise.finally(() => socket.destroy())
}
