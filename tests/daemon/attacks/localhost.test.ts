// The page of a home is at `localhost`, which browsers look for at ::1 first. Another user of the machine must not be there.

import { expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import { spawnDaemon, startCommand } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'

const hasLoopback6 = Object.values(networkInterfaces()).some(all => all?.some(({ address }) => address === '::1'))
if (!hasLoopback6) console.log('skipped: localhost at ::1 (this machine has no IPv6 loopback)')

test.skipIf(!hasLoopback6)(
  'a daemon answers at both addresses of localhost, and knows its callers at each',
  async () => {
    const daemon = await spawnDaemon()
    const { port } = new URL(daemon.url)
    const list = (headers: Record<string, string>) =>
      fetch(`http://[::1]:${port}/v1/runs/list`, { method: 'POST', headers, body: '{}' })
    const headers = { 'content-type': 'application/json' }
    expect((await list(headers)).status).toBe(200)
    expect((await list({ ...headers, host: 'evil.example' })).status).toBe(403)
    expect((await fetch(`http://[::1]:${port}/`, { redirect: 'manual' })).headers.get('location')).toBe(
      `http://localhost:${port}/`,
    )
    await daemon.stop()
    expect(await list(headers).catch(({ code }: { code: string }) => code)).toBe('ECONNREFUSED')
  },
)

test.skipIf(!hasLoopback6)('a daemon does not start where somebody else answers in its name', async () => {
  const other = Bun.serve({ hostname: '::1', port: 0, fetch: () => new Response('of somebody else') })
  try {
    const child = startCommand(['serve', '--port', String(other.port)], { home: folder() })
    const [said, code] = await Promise.all([child.stderr.text(), child.exited])
    expect([code, said]).toEqual([
      2,
      expect.stringContaining(`cannot listen on ::1 port ${other.port}: it is in use; choose another with --port`),
    ])
  } finally {
    await other.stop(true)
  }
})
