// Files of runs in the store of the hub: sent by daemons that have no key of it, had by those who may read the run,
// removed with the run; whatever is lost, killed or forged.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startFront } from '../support/front.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { METRICS_TOKEN } from '../support/served-hub.ts'
import { phaseChange, runChange } from '../support/sync.ts'
import { ACCESS, BUCKET, type ObjectVendor, objectVendor } from '../vendors/objectstore.ts'
import { hasSwift, ACCESS as SWIFT, swift } from '../vendors/swift.ts'

interface Place {
  env: Record<string, string>
  /** The keys of everything in the store. */
  keys(): Promise<string[]>
  /** Refuses the next removal of a file. */
  refuseOneRemoval?(): void
  close(): Promise<void>
}

const keysOf = ({ access_key_id, secret_access_key, region }: typeof ACCESS, endpoint: string) => ({
  AWS_ACCESS_KEY_ID: access_key_id,
  AWS_SECRET_ACCESS_KEY: secret_access_key,
  AWS_REGION: region,
  AWS_ENDPOINT_URL_S3: endpoint,
})

function sharedFolder(): Place {
  const path = join(folder(), 'shared files')
  mkdirSync(path)
  const names = () => readdirSync(path, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  return {
    env: { CADRE_ARTIFACTS: Bun.pathToFileURL(path).href },
    keys: async () => names().map(({ parentPath, name }) => join(parentPath, name).slice(path.length + 1)),
    close: async () => {},
  }
}

/** The keys below the prefix. Swift lists ten at a time. */
async function keysIn(client: Bun.S3Client): Promise<string[]> {
  const keys: string[] = []
  for (let startAfter: string | undefined; ; ) {
    const { contents = [], isTruncated } = await client.list(startAfter === undefined ? {} : { startAfter })
    keys.push(...contents.map(({ key }) => key))
    if (!isTruncated) return keys.map(key => key.replace('of/runs/', ''))
    startAfter = keys.at(-1)
  }
}

async function bucket(vendor: ObjectVendor): Promise<Place> {
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, region } = ACCESS
  const { endpoint } = vendor
  const client = new Bun.S3Client({ endpoint, accessKeyId, secretAccessKey, region, bucket: BUCKET })
  return {
    env: { CADRE_ARTIFACTS: `s3://${BUCKET}/of/runs/`, ...keysOf(ACCESS, endpoint) },
    keys: () => keysIn(client),
    refuseOneRemoval() {
      vendor.before = ({ method }) => {
        if (method !== 'DELETE') return null
        vendor.before = () => null
        return new Response(null, { status: 403 })
      }
    },
    close: () => vendor[Symbol.asyncDispose](),
  }
}

async function swiftBucket(): Promise<Place> {
  const { endpoint, client, close } = await swift()
  return {
    env: { CADRE_ARTIFACTS: `s3://${BUCKET}/of/runs`, ...keysOf(SWIFT, endpoint) },
    keys: () => keysIn(client),
    close,
  }
}

const PAGE = '<script>alert(1)</script>'

const TEAM = {
  'team.yml': `
name: "@admin/files"
version: 1.0.0
inputs: [{ name: text, type: string, default: hello }]
phases:
  - name: make
    agent: exec
    commands:
      - { name: make, env: { TEXT: "{{ inputs.text }}" }, run: 'printf %s "$TEXT" > "$CADRE_OUT/a.txt"; : > "$CADRE_OUT/empty"; mkdir "$CADRE_OUT/deep"; printf %s "$TEXT" > "$CADRE_OUT/deep/same"' }
  - { name: below, type: team, team: ./leaf }
`,
  'leaf/team.yml': `
name: "@admin/leaf"
version: 1.0.0
phases:
  - { name: page, agent: exec, commands: [{ name: page, run: 'head -c 3000000 /dev/zero > "$CADRE_OUT/large"; printf %s "${PAGE}" > "$CADRE_OUT/page.html"' }] }
`,
}

async function daemonOf(hub: TestHub, url = hub.url, home = folder()): Promise<{ daemon: RunningDaemon; env: Env }> {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  writeFileSync(join(home, 'settings.yml'), 'network: { allow: [127.0.0.1] }\n', { mode: 0o600 })
  const env = { CADRE_HUB_URL: url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one' }
  return { daemon: await spawnDaemon({ home, env }), env }
}
type Env = Record<string, string>

const dispatch = async (hub: TestHub, team: string, inputs: object = {}) =>
  (await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, inputs })).run_id as string

const ended = (hub: TestHub, run_id: string) =>
  until(async () => {
    const { data } = await hub.call(hub.admin, 'runs/get', { run_id })
    return data?.completed_at != null && data
  }, `the end of run ${run_id}`)

interface Listed {
  path: string
  sha256: string
  bytes: number
  stored: boolean
}

/** The files of a run once all of them are stored. */
const stored = (hub: TestHub, run_id: string): Promise<Listed[]> =>
  until(
    async () => {
      const { artifacts } = await hub.ok(hub.admin, 'runs/artifacts', { run_id })
      return artifacts.length > 0 && artifacts.every((file: Listed) => file.stored) && artifacts
    },
    `the files of run ${run_id}`,
    60_000,
  )

/** How many files began to be in a state, since the hub started. */
async function counted(hub: TestHub, state: string): Promise<number> {
  const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
  const text = await (await fetch(`${hub.url}/metrics`, { headers })).text()
  return Number(new RegExp(`^cadre_files_total\\{state="${state}"\\} (\\d+)$`, 'm').exec(text)![1])
}

const get = (hub: TestHub, run_id: string, path: string, token = hub.admin, redirect: 'follow' | 'manual' = 'follow') =>
  fetch(`${hub.url}/v1/artifacts/get?${new URLSearchParams({ run_id, path })}`, {
    headers: { authorization: `Bearer ${token}` },
    redirect,
  })

const kinds: [string, () => Promise<Place>][] = [
  ['a folder', async () => sharedFolder()],
  ['a bucket', async () => bucket(await objectVendor())],
]
if (hasSwift && process.env.CADRE_SLOW_TESTS) kinds.push(['a bucket of Swift', swiftBucket])

describe.each(kinds)('%s', (_, open) => {
  let place: Place
  let hub: TestHub
  let daemon: RunningDaemon
  beforeAll(async () => {
    place = await open()
    hub = await startTestHub({ env: place.env })
    ;({ daemon } = await daemonOf(hub))
    await hub.addTeam(TEAM)
  }, 60_000)
  afterAll(async () => {
    await daemon?.stop()
    await hub?.stop()
    await place?.close()
  })

  test('has the files of a tree, each content once, and gives them as downloads', async () => {
    const run_id = await dispatch(hub, '@admin/files')
    await ended(hub, run_id)
    const files = await stored(hub, run_id)
    expect(files.map(({ path }) => path)).toEqual(['files/make/a.txt', 'files/make/deep/same', 'files/make/empty'])
    expect(await (await get(hub, run_id, 'files/make/a.txt')).text()).toBe('hello')
    expect(await (await get(hub, run_id, 'files/make/empty')).text()).toBe('')
    const { runs } = await hub.ok(hub.admin, 'runs/tree', { run_id })
    const leaf = runs[1].run_id
    await stored(hub, leaf)
    const page = await get(hub, leaf, 'files/page/page.html')
    expect(await page.text()).toBe(PAGE)
    expect(page.headers.get('content-type')).toBe('application/octet-stream')
    expect(page.headers.get('content-disposition')).toBe("attachment; filename*=UTF-8''page.html")
    expect((await (await get(hub, leaf, 'files/page/large')).bytes()).byteLength).toBe(3_000_000)
    const keys = (await place.keys()).filter(key => key.includes(run_id))
    expect(keys.every(key => new RegExp(`^${hub.realm}/${run_id}/[0-9a-f]{64}$`).test(key))).toBe(true)
    expect(keys).toHaveLength(4)
  }, 30_000)

  test('gives nothing to whoever may not read the run, and no path leaves it', async () => {
    const run_id = await dispatch(hub, '@admin/files')
    await stored(hub, run_id)
    const { token } = await hub.account(`stranger-${crypto.randomUUID().slice(0, 8)}`)
    expect((await get(hub, run_id, 'files/make/a.txt', token)).status).toBe(404)
    for (const path of ['files/make/../make/a.txt', 'files/../log.jsonl', '/etc/passwd', 'files/make', '']) {
      expect([path, (await get(hub, run_id, path)).status]).toEqual([path, path === '' ? 400 : 404])
    }
  }, 30_000)

  test('takes a file only from the daemon of its run, and only what was announced', async () => {
    const run_id = await dispatch(hub, '@admin/files')
    await stored(hub, run_id)
    const { token } = await hub.realmToken(hub.admin, hub.realm)
    const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'other' })
    const sha256 = new Bun.CryptoHasher('sha256').update('mine').digest('hex')
    const foreign = await hub.call(token, 'artifacts/offer', { daemon_id, run_id, sha256, bytes: 4 })
    expect([foreign.status, foreign.error?.message]).toEqual([404, `there is no run ${run_id} that this daemon holds`])

    const mine = crypto.randomUUID()
    const file = { name: 'mine.txt', path: 'files/say/mine.txt', bytes: 4, sha256 }
    const changes = [
      { seq: 1, ...runChange(mine, { team: '@admin/files', call_path: ['@admin/files'] }) },
      { seq: 2, ...phaseChange(mine, [file]) },
    ]
    await hub.ok(token, 'runs/sync', { daemon_id, epoch: crypto.randomUUID(), from_seq: 1, changes })
    const offered = { daemon_id, run_id: mine, sha256, bytes: 4 }
    const put = async (content: string) => {
      const { upload } = await hub.ok(token, 'artifacts/offer', offered)
      const query = new URLSearchParams({ ...offered, bytes: '4' })
      const url = upload.url ?? `${hub.url}/v1/artifacts/put?${query}`
      const { 'content-length': _, ...headers } = upload.headers
      const own = upload.url === null ? { authorization: `Bearer ${token}` } : {}
      return fetch(url, { method: 'PUT', headers: { ...headers, ...own }, body: content })
    }
    for (const other of ['mine and more', 'm', '']) expect((await put(other)).ok).toBe(false)
    expect((await hub.call(token, 'artifacts/keep', offered)).status).toBe(409)
    expect((await put('mine')).ok).toBe(true)
    expect(await hub.ok(token, 'artifacts/keep', offered)).toEqual({ stored: true })
    expect(await hub.ok(token, 'artifacts/keep', offered)).toEqual({ stored: true })
    expect(await hub.ok(token, 'artifacts/offer', offered)).toEqual({ stored: true, upload: null })
    const huge = await hub.call(token, 'artifacts/offer', { ...offered, bytes: 6 * 1024 ** 3 })
    expect([huge.status, huge.error?.message]).toEqual([413, 'this hub keeps files of at most 5.0 GiB'])
  }, 30_000)

  test('no key of it lies on the daemon', async () => {
    const secret = place.env.AWS_SECRET_ACCESS_KEY ?? 'no key'
    const seen = readdirSync(daemon.home, { recursive: true, withFileTypes: true })
      .filter(entry => entry.isFile())
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1'))
    expect(seen.length).toBeGreaterThan(3)
    for (const text of [...seen, daemon.output.stderr]) expect(text.includes(secret)).toBe(false)
  })

  test('loses the files of a run when the hub deletes the run', async () => {
    const run_id = await dispatch(hub, '@admin/files')
    await ended(hub, run_id)
    const distinct = new Set((await stored(hub, run_id)).map(({ sha256 }) => sha256)).size
    expect((await place.keys()).some(key => key.includes(run_id))).toBe(true)
    expect(await counted(hub, 'stored')).toBeGreaterThanOrEqual(distinct)
    expect(await counted(hub, 'awaited')).toBeGreaterThanOrEqual(await counted(hub, 'stored'))
    // What the store refuses is tried again in seconds, and not in an hour.
    place.refuseOneRemoval?.()
    await hub.restart({ skew: 40 * 86_400_000 })
    await until(async () => !(await place.keys()).some(key => key.includes(run_id)), 'the removal of the files')
    const { keptFiles, db } = hub.store
    const isForgotten = async () => (await db.select().from(keptFiles)).every(file => file.root_run_id !== run_id)
    await until(isForgotten, 'the removal of the rows')
    expect(await counted(hub, 'removed')).toBeGreaterThanOrEqual(distinct)
    await hub.restart({ skew: 0 })
  }, 60_000)
})

describe('a bucket', () => {
  let vendor: ObjectVendor
  let hub: TestHub
  beforeAll(async () => {
    vendor = await objectVendor()
    hub = await startTestHub({ env: (await bucket(vendor)).env })
    await hub.addTeam(TEAM)
  }, 60_000)
  afterAll(async () => {
    await hub.stop()
    await vendor[Symbol.asyncDispose]()
  })

  test('is reached by readers with a URL for one file, a minute and a download', async () => {
    await using front = startFront(hub.url)
    const { daemon } = await daemonOf(hub, front.url)
    const run_id = await dispatch(hub, '@admin/files')
    await stored(hub, run_id)
    const reply = await get(hub, run_id, 'files/make/a.txt', hub.admin, 'manual')
    expect([reply.status, reply.headers.get('cache-control')]).toEqual([302, 'no-store'])
    const url = new URL(reply.headers.get('location')!)
    expect(url.searchParams.get('X-Amz-Expires')).toBe('60')
    expect(url.searchParams.get('response-content-type')).toBe('application/octet-stream')
    for (const [name, value] of [
      ['response-content-type', 'text/html'],
      ['X-Amz-Expires', '6000'],
    ] as const) {
      const forged = new URL(url)
      forged.searchParams.set(name, value)
      expect((await fetch(forged)).status).toBe(403)
    }
    expect((await fetch(url, { method: 'PUT', body: 'x' })).status).toBe(403)
    expect((await fetch(url)).status).toBe(200)
    await daemon.stop()
  }, 30_000)

  test('a content that has two names is sent once, however long that takes', async () => {
    vendor.fault = async request => {
      if (request.method === 'PUT') await Bun.sleep(500)
      return null
    }
    const { daemon } = await daemonOf(hub)
    const before = vendor.seen.length
    const run_id = await dispatch(hub, '@admin/files', { text: 'slowly' })
    const [file] = await stored(hub, run_id)
    vendor.fault = () => null
    const sent = vendor.seen.slice(before).filter(line => line.startsWith('PUT ') && line.includes(run_id))
    expect(sent.filter(line => line.includes(file!.sha256))).toHaveLength(1)
    await daemon.stop()
  }, 60_000)

  test('a content that takes long, and has many names, keeps no other waiting', async () => {
    const names = 'for n in 1 2 3 4 5 6; do printf slow > "$CADRE_OUT/a$n"; done; printf quick > "$CADRE_OUT/z"'
    await hub.addTeam({
      'team.yml': `
name: "@admin/names"
version: 1.0.0
phases: [{ name: make, agent: exec, commands: [{ name: make, run: '${names}' }] }]
`,
    })
    const { daemon } = await daemonOf(hub)
    const sha = new Bun.CryptoHasher('sha256').update('slow').digest('hex')
    const quick = Promise.withResolvers<void>()
    vendor.fault = async request => {
      if (request.method === 'PUT' && request.url.includes(sha)) await quick.promise
      return null
    }
    const run_id = await dispatch(hub, '@admin/names')
    const isStored = async (path: string) => {
      const { artifacts } = await hub.ok(hub.admin, 'runs/artifacts', { run_id })
      return artifacts.some((file: Listed) => file.path === path && file.stored)
    }
    await until(() => isStored('files/make/z'), 'the other file')
    quick.resolve()
    await stored(hub, run_id)
    vendor.fault = () => null
    await daemon.stop()
  }, 60_000)

  test('a lost answer sends nothing twice', async () => {
    await using front = startFront(hub.url)
    const lost = new Set<string>()
    front.loses = ({ path, body }) => {
      const once = `${path} ${body?.sha256}`
      if (!path.startsWith('/v1/artifacts/') || lost.has(once)) return null
      lost.add(once)
      return 'reply'
    }
    const { daemon } = await daemonOf(hub, front.url)
    const before = vendor.seen.length
    const run_id = await dispatch(hub, '@admin/files', { text: 'lost' })
    const files = await stored(hub, run_id)
    const sent = vendor.seen.slice(before).filter(line => line.startsWith('PUT ') && line.includes(run_id))
    expect(sent.filter(line => line.includes(files[0]!.sha256))).toHaveLength(1)
    expect([...lost].some(call => call.startsWith('/v1/artifacts/keep'))).toBe(true)
    await daemon.stop()
  }, 60_000)

  test('a daemon that is killed while it sends goes on after its restart', async () => {
    const { daemon, env } = await daemonOf(hub)
    const sending = Promise.withResolvers<void>()
    vendor.fault = async request => {
      if (request.method !== 'PUT') return null
      sending.resolve()
      await new Promise(resolve => request.signal.addEventListener('abort', resolve))
      return new Response(null, { status: 500 })
    }
    const run_id = await dispatch(hub, '@admin/files', { text: 'killed' })
    await sending.promise
    await daemon.kill('SIGKILL')
    vendor.fault = () => null
    expect((await hub.ok(hub.admin, 'runs/artifacts', { run_id })).artifacts.some((file: Listed) => file.stored)).toBe(
      false,
    )
    const again = await spawnDaemon({ home: daemon.home, env })
    await stored(hub, run_id)
    expect(await (await get(hub, run_id, 'files/make/a.txt')).text()).toBe('killed')
    await again.stop()
  }, 60_000)

  test('a store that fails delays only the files', async () => {
    const { daemon } = await daemonOf(hub)
    vendor.fault = request => (request.method === 'PUT' ? new Response('busy', { status: 503 }) : null)
    const run_id = await dispatch(hub, '@admin/files', { text: 'later' })
    expect((await ended(hub, run_id)).state).toBe('completed')
    vendor.fault = () => null
    await stored(hub, run_id)
    await daemon.stop()
  }, 90_000)

  test('the hub cannot make a daemon send files to an address of its network', async () => {
    const home = folder()
    const { daemon, env } = await daemonOf(hub, hub.url, home)
    await daemon.stop()
    writeFileSync(join(home, 'settings.yml'), '{}\n', { mode: 0o600 })
    const closed = await spawnDaemon({ home, env })
    const before = vendor.seen.length
    const run_id = await dispatch(hub, '@admin/files', { text: 'refused' })
    await ended(hub, run_id)
    await until(() => closed.output.stderr.includes('settings set network.allow 127.0.0.1'), 'the refusal')
    expect(vendor.seen.slice(before).filter(line => line.startsWith('PUT '))).toEqual([])
    await closed.stop()
  }, 60_000)
})

test('a hub without a store is asked nothing, and says where a file lies; with one it gets the files', async () => {
  // A daemon hears by a heartbeat that the hub keeps files.
  const hub = await startTestHub({ env: { TEST_BEAT_MS: '500' } })
  const front = startFront(hub.url)
  await hub.addTeam(TEAM)
  const { daemon } = await daemonOf(hub, front.url)
  const run_id = await dispatch(hub, '@admin/files')
  const { daemon_id } = await ended(hub, run_id)
  const seen = () => front.seen.filter(({ path }) => path.startsWith('/v1/artifacts/')).length
  const reply = await get(hub, run_id, 'files/make/a.txt')
  const { error } = (await reply.json()) as { error: { message: string } }
  expect([reply.status, error.message]).toEqual([
    409,
    `files/make/a.txt of run ${run_id} lies on daemon one (${daemon_id}) and is not kept by this hub, ` +
      'because CADRE_ARTIFACTS is not set',
  ])
  expect(seen()).toBe(0)
  await hub.restart({ env: sharedFolder().env })
  await stored(hub, run_id)
  expect(seen()).toBeGreaterThan(0)
  expect(await (await get(hub, run_id, 'files/make/a.txt')).text()).toBe('hello')
  await daemon.stop()
  await front[Symbol.asyncDispose]()
  await hub.stop()
}, 90_000)

describe('a folder', () => {
  let hub: TestHub
  beforeAll(async () => {
    hub = await startTestHub({ env: { ...sharedFolder().env, CADRE_ARTIFACTS_MAX_MB: '300' }, apart: true })
  })
  afterAll(() => hub.stop())

  test('a file that was changed after it was recorded, or is too large, stays where it is', async () => {
    const run = 'printf 1 > "$CADRE_OUT/kept"; printf 2 > "$CADRE_OUT/moving"; truncate -s 301M "$CADRE_OUT/huge"'
    const team = await hub.addTeam({
      'team.yml': `
name: "@admin/moving"
version: 1.0.0
phases:
  - { name: make, agent: exec, commands: [{ name: make, run: '${run}' }] }
  - { name: change, agent: exec, depends_on: [make], commands: [{ name: change, run: 'printf 3 > "$CADRE_OUT/../make/moving"' }] }
`,
    })
    await using front = startFront(hub.url)
    front.loses = ({ path }) => (path === '/v1/artifacts/offer' ? 'request' : null)
    const { daemon } = await daemonOf(hub, front.url)
    const run_id = await dispatch(hub, team)
    expect((await ended(hub, run_id)).state).toBe('completed')
    front.loses = () => null
    await until(() => daemon.output.stderr.split('stays on this machine only').length === 3, 'both refusals')
    expect(daemon.output.stderr).toContain('this hub keeps files of at most 300.0 MiB')
    expect(daemon.output.stderr).toContain('it was changed after its phase had recorded it')
    const { artifacts } = await until(async () => {
      const list = await hub.ok(hub.admin, 'runs/artifacts', { run_id })
      return list.artifacts.some((file: Listed) => file.stored) && list
    }, 'the file that is kept')
    expect(artifacts.map(({ path, stored }: Listed) => [path, stored])).toEqual([
      ['files/make/huge', false],
      ['files/make/kept', true],
      ['files/make/moving', false],
    ])
    const lies = (await (await get(hub, run_id, 'files/make/moving')).json()) as { error: { message: string } }
    expect(lies.error.message).toContain('has not been sent to the hub yet')
    await daemon.stop()
  }, 60_000)

  test('what a resumed phase writes again replaces what it wrote before', async () => {
    const team = await hub.addTeam({
      'team.yml': `
name: "@admin/again"
version: 1.0.0
phases:
  - { name: make, agent: exec, commands: [{ name: make, run: 'echo x >> tries; cat tries > "$CADRE_OUT/tries"' }] }
  - { name: check, agent: exec, depends_on: [make], commands: [{ name: check, run: 'test "$(wc -l < tries)" = 2' }] }
`,
    })
    const { daemon } = await daemonOf(hub)
    const run_id = await dispatch(hub, team)
    expect((await ended(hub, run_id)).state).toBe('failed')
    await stored(hub, run_id)
    expect(await (await get(hub, run_id, 'files/make/tries')).text()).toBe('x\n')
    await hub.ok(hub.admin, 'dispatch/resume', { run_id, from_phase: 'make' })
    await until(async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state === 'completed', 'the end')
    await stored(hub, run_id)
    expect(await (await get(hub, run_id, 'files/make/tries')).text()).toBe('x\nx\n')
    await daemon.stop()
  }, 60_000)

  test('more files than one change holds are listed, too', async () => {
    const name = 'n'.repeat(180)
    const team = await hub.addTeam({
      'team.yml': `
name: "@admin/many"
version: 1.0.0
phases:
  - { name: make, agent: exec, commands: [{ name: make, run: 'cd "$CADRE_OUT"; for n in $(seq 2050); do : > ${name}$n; done' }] }
`,
    })
    const { daemon } = await daemonOf(hub)
    const run_id = await dispatch(hub, team)
    await ended(hub, run_id)
    const total = async () => (await hub.ok(hub.admin, 'runs/artifacts', { run_id })).total
    await until(async () => (await total()) === 2_050, 'all files', 60_000)
    await daemon.stop()
  }, 120_000)

  test.if(process.platform === 'linux')(
    'a large file passes through both without filling their memory',
    async () => {
      const team = await hub.addTeam({
        'team.yml': `
name: "@admin/large"
version: 1.0.0
phases:
  - { name: make, agent: exec, commands: [{ name: make, run: 'head -c 251658240 /dev/zero > "$CADRE_OUT/large"' }] }
`,
      })
      const { daemon } = await daemonOf(hub)
      const before = [peakMib(daemon.pid), ...hubPids().map(peakMib)]
      const run_id = await dispatch(hub, team)
      await stored(hub, run_id)
      const after = [peakMib(daemon.pid), ...hubPids().map(peakMib)]
      process.stdout.write(`a file of 240 MiB: peaks of daemon and hubs ${before} MiB before, ${after} MiB after\n`)
      for (const [index, peak] of after.entries()) expect(peak - before[index]!).toBeLessThan(120)
      const reply = await get(hub, run_id, 'files/make/large')
      expect(Number(reply.headers.get('content-length'))).toBe(240 * 1024 ** 2)
      await reply.body?.cancel()
      await daemon.stop()
    },
    60_000,
  )
})

const peakMib = (pid: number): number =>
  Math.round(Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024)

/** The processes of the hubs of this test. */
function hubPids(): number[] {
  const children = readdirSync('/proc/self/task').flatMap(task =>
    readFileSync(`/proc/self/task/${task}/children`, 'utf8').split(' ').filter(Boolean),
  )
  return children.filter(pid => readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('hub-process.ts')).map(Number)
}
