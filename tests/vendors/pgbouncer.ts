// A real PgBouncer in front of the PostgreSQL of the tests, which gives each transaction any of its two connections.

import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../support/folder.ts'
import { freePort } from '../support/free-port.ts'

/** Whether PgBouncer is installed. Says so where it is not. */
export function pgbouncer(): string | null {
  const program = Bun.which('pgbouncer') ?? Bun.which('/usr/sbin/pgbouncer')
  if (!program) console.warn('pgbouncer is not installed (Debian: pgbouncer): its tests are skipped')
  return program
}

export async function startPgbouncer(program: string, upstream: URL) {
  const room = folder()
  const port = freePort()
  const file = join(room, 'pgbouncer.ini')
  const name = upstream.pathname.slice(1)
  const to = `host=${upstream.hostname} port=${upstream.port || 5432} dbname=${name} user=${upstream.username}`
  const password = upstream.password ? ` password=${upstream.password}` : ''
  writeFileSync(
    file,
    `[databases]
${name} = ${to}${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
`,
  )
  // It refuses to be root, so another user has to read the file.
  chmodSync(room, 0o755)
  chmodSync(file, 0o644)
  const asOther = process.getuid?.() === 0 ? ['-u', 'nobody'] : []
  const child = Bun.spawn([program, ...asOther, file], { stdout: 'ignore', stderr: 'pipe' })
  const url = new URL(upstream)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  for (const until = Date.now() + 20_000; ; await Bun.sleep(50)) {
    const isThere = await Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).then(
      socket => socket.end() || true,
      () => false,
    )
    if (isThere) break
    if (Date.now() > until) throw new Error(`pgbouncer did not start: ${await child.stderr.text()}`)
  }
  return {
    url: url.href,
    async stop() {
      child.kill()
      await child.exited
    },
  }
}
