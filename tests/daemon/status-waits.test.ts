// What waits for the hub is seen where people look: `status`, `/metrics` and the call of the page name how much it is, how
// old, and what the log says of why it waits.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { databaseFile } from '../../lib/daemon/home/home.ts'
import { change } from '../support/aged-home.ts'
import { until } from '../support/bounded.ts'
import { certificate } from '../support/certificate.ts'
import { command, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startFront } from '../support/front.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'
import { ACCESS, BUCKET, objectVendor } from '../vendors/objectstore.ts'

const WRITES = `
name: "@admin/writes"
version: 1.0.0
phases:
  - { name: make, agent: exec, commands: [{ name: make, run: 'head -c 2048 /dev/zero > "$CADRE_OUT/large"' }] }
`

const status = async (home: string, env: Record<string, string> = {}) =>
  JSON.parse((await command(['status', '--json'], { home, env })).stdout)

/** The lines of `status` for people. */
const says = async (home: string) => (await command(['status'], { home })).stdout

const metricsOf = async (daemon: RunningDaemon) =>
  new Map(
    (await (await fetch(`${daemon.url}/metrics`)).text())
      .split('\n')
      .filter(line => line !== '' && !line.startsWith('#'))
      .map(line => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
  )

async function enrolled(hub: TestHub, { url = hub.url, home = folder() }: { url?: string; home?: string } = {}) {
  const { id, token } = await hub.realmToken(hub.admin, hub.realm)
  const env = { CADRE_HUB_URL: url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one' }
  return { daemon: await spawnDaemon({ home, env }), home, id }
}

const dispatch = async (hub: TestHub) => {
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/writes' })
  await until(
    async () => (await hub.call(hub.admin, 'runs/get', { run_id })).data?.completed_at != null,
    `the end of run ${run_id}`,
  )
}

test('files for a store that `network.allow` does not have: how many, how old, and the command that allows it', async () => {
  await using vendor = await objectVendor()
  const hub = await startTestHub({
    env: {
      TEST_BEAT_MS: '300',
      CADRE_ARTIFACTS: `s3://${BUCKET}/of/runs/`,
      AWS_ACCESS_KEY_ID: ACCESS.access_key_id,
      AWS_SECRET_ACCESS_KEY: ACCESS.secret_access_key,
      AWS_REGION: ACCESS.region,
      AWS_ENDPOINT_URL_S3: vendor.endpoint,
    },
  })
  await hub.addTeam(WRITES)
  const { daemon, home } = await enrolled(hub)
  expect((await status(home)).hub.unsent).toEqual({
    ...{ changes: 0, lines: 0, bytes: 0, oldest_at: null },
    files: { count: 0, bytes: 0, oldest_at: null, error: null },
  })
  const before = Date.now()
  await dispatch(hub)
  const { files } = await until(async () => {
    const { unsent } = (await status(home)).hub
    return unsent.files.error !== null && unsent
  }, 'a failure')
  expect(files).toMatchObject({ count: 1, bytes: 2_048 })
  expect(files.oldest_at).toBeWithin(before, Date.now() + 1)
  expect(files.error).toContain(`refused to connect to ${vendor.endpoint}: 127.0.0.1 is not a public address`)

  const text = await says(home)
  expect(text).toMatch(/^to send +1 file \(2\.0 KiB, the oldest [\d.]+m?s old\)$/m)
  const problem =
    /^! 1 file of a run \(2\.0 KiB\) could not be sent to the store of the hub yet, the oldest for [\d.]+m?s: .* settings set network\.allow 127\.0\.0\.1$/m
  expect(text).toMatch(problem)
  const metrics = await metricsOf(daemon)
  expect(metrics.get('cadre_outbox_files')).toBe(1)
  expect(metrics.get('cadre_outbox_files_bytes')).toBe(2_048)
  expect(metrics.get('cadre_outbox_files_failing')).toBe(1)
  expect(metrics.get('cadre_outbox_files_oldest_seconds')).toBeWithin(0, 60)
  expect(await daemon.call('/v1/daemon/hub')).toMatchObject({
    ...{ url: hub.url, connected: true, paused: false, troubles: [] },
    waiting: { changes: { count: 0, bytes: 0, oldest_at: null }, lines: 0, files },
  })

  // Without a daemon it is the same, and after a restart the reason is still known.
  await daemon.stop()
  expect((await status(home)).hub.unsent.files).toEqual(files)
  const failures = () => {
    using db = new Database(databaseFile(home))
    return db.query<{ failures: number }, []>('SELECT failures FROM uploads').get()!.failures
  }
  // After so many, the next try comes in ten minutes, unless the address is allowed meanwhile.
  change(home, 'UPDATE uploads SET failures = 15')
  const again = await spawnDaemon({ home })
  await until(() => failures() === 16, 'another failure')
  expect((await command(['settings', 'set', 'network.allow', '127.0.0.1'], { home })).code).toBe(0)
  await until(async () => (await status(home)).hub.unsent.files.count === 0, 'the file is sent')
  expect(await says(home)).toMatch(/^to send +nothing$/m)
  expect((await metricsOf(again)).get('cadre_outbox_files_failing')).toBe(0)
  await again.stop()
  await hub.stop()
}, 120_000)

test('changes that wait: how many bytes, how old, and the failure of the calls', async () => {
  const hub = await startTestHub({ env: { TEST_BEAT_MS: '300' } })
  await hub.addTeam(WRITES)
  await using front = startFront(hub.url)
  const { daemon, home } = await enrolled(hub, { url: front.url })
  front.loses = ({ path }) => (path.endsWith('/runs/sync') ? 'request' : null)
  const before = Date.now()
  await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/writes' })
  const found = await until(async () => {
    const found = await daemon.call('/v1/daemon/hub')
    return found.troubles.length > 0 && found.waiting.changes.count > 3 && found
  }, 'changes that wait')
  expect(found.waiting.changes.bytes).toBeWithin(300, 20_000)
  expect(found.waiting.changes.oldest_at).toBeWithin(before, Date.now() + 1)
  expect(found.troubles).toMatchObject([{ step: 'sync', code: 'unavailable', error: expect.stringContaining('504') }])
  const metrics = await metricsOf(daemon)
  expect(metrics.get('cadre_outbox_changes')).toBeGreaterThan(3)
  expect(metrics.get('cadre_outbox_bytes')).toBeGreaterThan(300)
  expect(metrics.get('cadre_outbox_oldest_seconds')).toBeWithin(0, 60)
  expect(metrics.get('cadre_hub_failing{step="sync",code="unavailable"}')).toBe(1)
  const text = await says(home)
  expect(text).toMatch(/^to send +\d+ changes \([\d.]+ KiB, the oldest [\d.]+m?s old\)/m)
  expect(text).toMatch(/^! the daemon cannot do its work with the hub since [\d:]+: .*504/m)

  front.loses = () => null
  await until(async () => (await metricsOf(daemon)).get('cadre_outbox_changes') === 0, 'everything is sent')
  expect(await daemon.call('/v1/daemon/hub')).toMatchObject({ troubles: [], waiting: { changes: { oldest_at: null } } })
  expect((await status(home)).problems).toEqual([])
  await daemon.stop()
  await hub.stop()
}, 90_000)

test('a certificate that nobody vouches for is named, by a daemon and by `status`', async () => {
  const hub = await startTestHub()
  const place = folder()
  const { cert, key } = certificate(place)
  const server = Bun.serve({
    port: 0,
    tls: { cert: Bun.file(cert), key: Bun.file(key) },
    async fetch(request) {
      const { pathname } = new URL(request.url)
      const { method, headers } = request
      return fetch(hub.url + pathname, { method, headers, body: method === 'GET' ? null : await request.bytes() })
    },
  })
  const url = `https://localhost:${server.port}`
  const { daemon, home } = await enrolled(hub, { url })
  const untrusted = `the certificate of the hub at ${url} is not trusted (DEPTH_ZERO_SELF_SIGNED_CERT)`
  const way = 'start cadre with NODE_EXTRA_CA_CERTS='
  await until(() => daemon.output.stderr.includes(untrusted), 'the log names the certificate')
  // The home has not stored the address of a hub that has not answered.
  const at = { CADRE_HUB_URL: url }
  const { hub: found, problems } = await status(home, at)
  expect(found).toMatchObject({ answers: false, error: expect.stringContaining(untrusted) })
  expect(problems).toEqual([expect.stringContaining(untrusted)])
  expect(problems[0]).toContain(way)

  // Whoever asks may trust it, as the daemon does not.
  const told = await status(home, { ...at, NODE_EXTRA_CA_CERTS: cert })
  expect(told.hub.answers).toBe(true)
  expect(told.problems).toEqual([expect.stringMatching(/^the daemon cannot do its work with the hub since /)])
  expect(told.problems[0]).toContain(untrusted)
  await daemon.stop()
  await server.stop(true)
  await hub.stop()
}, 60_000)

test('a certificate that a daemon trusted before is told as one that has changed', async () => {
  const hub = await startTestHub({ env: { TEST_BEAT_MS: '300' } })
  const [first, second] = [certificate(folder()), certificate(folder())]
  const serve = ({ cert, key }: typeof first, port = 0) =>
    Bun.serve({
      port,
      tls: { cert: Bun.file(cert), key: Bun.file(key) },
      async fetch(request) {
        const { pathname } = new URL(request.url)
        const { method, headers } = request
        return fetch(hub.url + pathname, { method, headers, body: method === 'GET' ? null : await request.bytes() })
      },
    })
  let server = serve(first)
  const url = `https://localhost:${server.port}`
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const env = { CADRE_HUB_URL: url, CADRE_REALM_TOKEN: token, NODE_EXTRA_CA_CERTS: first.cert }
  const daemon = await spawnDaemon({ env })
  await until(async () => (await daemon.call('/v1/daemon/hub')).connected, 'a link')
  const { port } = server
  await server.stop(true)
  server = serve(second, port)
  const changed = `the certificate of the hub at ${url} is not trusted any more (DEPTH_ZERO_SELF_SIGNED_CERT)`
  const told = await until(
    async () =>
      (await daemon.call('/v1/daemon/hub')).troubles.find(({ error }: { error: string }) => error.includes(changed)),
    'the changed certificate',
  )
  expect(told.error).toContain('look first at the proxy before the hub')
  await daemon.stop()
  await server.stop(true)
  await hub.stop()
}, 60_000)

test('a token that was revoked while the daemon ran is named, also where only the daemon has it', async () => {
  const hub = await startTestHub({ env: { TEST_BEAT_MS: '300' } })
  const { daemon, home, id } = await enrolled(hub)
  await hub.ok(hub.admin, 'auth/revoke_token', { id })
  await until(async () => (await daemon.call('/v1/daemon/hub')).troubles.length > 0, 'a refusal')
  const { troubles } = await daemon.call('/v1/daemon/hub')
  expect(troubles[0]).toMatchObject({ step: 'heartbeat', code: 'unauthorized' })
  const refusal = JSON.parse(daemon.output.stderr.split('\n').find(line => line.includes('heartbeat refused'))!)
  expect(JSON.stringify(refusal)).toContain(JSON.stringify(troubles[0].error).slice(1, -1))
  expect((await status(home)).problems).toEqual([expect.stringMatching(/^the hub refuses the realm token: /)])
  await Bun.write(join(home, 'settings.yml'), `hub: { url: ${hub.url} }\n`)
  const { problems } = await status(home)
  expect(problems).toContainEqual(expect.stringContaining(troubles[0].error))
  await daemon.stop()
  await hub.stop()
}, 60_000)

test('a pause by an operator is named, with the command that ends it', async () => {
  const hub = await startTestHub({ env: { TEST_BEAT_MS: '300' } })
  const { daemon, home } = await enrolled(hub)
  const { hub: found } = await status(home)
  const pause = (paused: boolean) => hub.ok(hub.admin, 'daemons/update', { daemon_id: found.daemon_id, paused })
  await pause(true)
  await until(() => daemon.output.stderr.includes('an operator has paused this daemon'), 'the log names the pause')
  const told = await status(home)
  expect(told.hub.paused).toBe(true)
  expect(told.problems).toEqual([
    expect.stringMatching(new RegExp(`^an operator has paused this daemon: .* daemons unpause ${found.daemon_id}$`)),
  ])
  expect((await metricsOf(daemon)).get('cadre_hub_paused')).toBe(1)

  await command(['login', 'admin', '--hub', hub.url], { home, stdin: `${ADMIN_PASSWORD}\n` })
  expect((await command(['daemons', 'unpause', found.daemon_id], { home })).code).toBe(0)
  await until(async () => (await metricsOf(daemon)).get('cadre_hub_paused') === 0, 'the end of the pause')
  expect((await status(home)).problems).toEqual([])
  await daemon.stop()
  await hub.stop()
}, 60_000)

test('an outage that is over is none, although a step of the link still waits to be tried again', async () => {
  const hub = await startTestHub({ env: { TEST_BEAT_MS: '300' } })
  const { daemon, home } = await enrolled(hub)
  const auth = { authorization: `Bearer ${daemon.token}` }
  const troubles = async (): Promise<{ step: string; code: string }[]> =>
    (await daemon.call('/v1/daemon/hub', {}, auth)).troubles
  const isAway = async () => (await troubles()).some(({ step, code }) => step === 'offer' && code === 'unanswered')
  await hub.restart({}, () => until(isAway, 'a step fails'))
  await until(async () => (await daemon.call('/v1/daemon/hub', {}, auth)).connected, 'the hub answers the daemon again')
  expect((await status(home)).problems.filter((text: string) => text.includes('cannot do its work'))).toEqual([])
  await daemon.stop()
  await hub.stop()
}, 90_000)
