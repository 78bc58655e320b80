// What `status` says of a hub that does not do all of its work: the cause, as the hub or what stands before it tells it, and
// where to look.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { command } from '../support/daemon.ts'
import { fakeClock } from '../support/fake-clock.ts'
import { folder } from '../support/folder.ts'
import { DATABASES, startHub, stop } from '../support/served-hubs.ts'

const onPostgres = DATABASES.find(({ name }) => name === 'PostgreSQL')

const problems = async (url: string, env?: Record<string, string>): Promise<string[]> => {
  const { stdout } = await command(['status', '--hub', url, '--json'], { home: folder(), ...(env && { env }) })
  return JSON.parse(stdout).problems
}

test('a proxy that reaches no hub is not taken for one', async () => {
  const proxy = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(null, { status: 503 }) })
  try {
    const [said] = await problems(proxy.url.origin)
    expect(said).toBe(
      `a proxy before ${proxy.url.origin} answered 503: it reaches no hub that is ready; ask each hub behind it for /ready, which says why; runs go on, and the daemon reports them when the hub is back`,
    )
  } finally {
    await proxy.stop(true)
  }
})

test.skipIf(!onPostgres)(
  'a database that takes no writes, and one that does not answer, are named',
  async () => {
    await using database = await onPostgres!.open()
    const hub = await startHub(database.location)
    const name = new URL(database.location).pathname.slice(1)
    const server = new URL(database.location)
    server.pathname = 'postgres'
    await using admin = new Bun.SQL(server.href, { max: 1 })
    const reconnected = async (text: string) => {
      await admin.unsafe(text)
      await admin`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = ${name}`
    }
    try {
      expect(await problems(hub.url)).toEqual([])
      await reconnected(`ALTER DATABASE ${name} SET default_transaction_read_only = on`)
      expect(await problems(hub.url)).toEqual([
        'the database of the hub is read-only, as a standby is: reads work, and changes are refused until it takes writes again',
      ])
      await reconnected(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`)
      expect(await problems(hub.url)).toEqual([`the hub at ${hub.url} is not ready: the database does not answer`])
      await reconnected(`ALTER DATABASE ${name} ALLOW_CONNECTIONS true`)
    } finally {
      await stop([hub])
    }
  },
  60_000,
)

test('a clock that differs from that of the hub is told as that of this machine, with which of them is ahead', async () => {
  const clock = fakeClock()
  if (!clock) return
  const place = folder()
  const hub = await startHub(join(place, 'hub.db'))
  const end = 'that of the hub: let NTP set both, and see by `date` which is wrong'
  const said = async (ms: number) => {
    clock.set(ms)
    return (await problems(hub.url, clock.env)).join().replace(/10m( \d+s)?|9m 5\ds/, '10m')
  }
  try {
    expect(await said(600_000)).toBe(`the clock of this machine is 10m ahead of ${end}`)
    expect(await said(-600_000)).toBe(`the clock of this machine is 10m behind ${end}`)
    expect(await said(0)).toBe('')
  } finally {
    await stop([hub])
  }
}, 60_000)
