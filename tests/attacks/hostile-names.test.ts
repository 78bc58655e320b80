// What another program sends as a name, an id or a text never becomes a place on this machine that we did not choose.
// Random texts go through every field that a hub, a package, a caller or a vendor can set. The folder around the home,
// four levels of it, has to stay as it is.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { safeName, writeArtifact } from '../../lib/agent/files.ts'
import { openArtifact } from '../../lib/daemon/runs/artifact-file.ts'
import { messageOf } from '../../lib/error.ts'
import { isSafeName, isSafeSegment } from '../../lib/files/file-name.ts'
import { isRunId } from '../../lib/files/run-id.ts'
import { folderStore } from '../../lib/hub/artifacts/folder.ts'
import { foldersOf } from '../../lib/run/files/handover.ts'
import { problemWithPath } from '../../lib/wire/records/package-files.ts'
import { type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { hostileJson, hostileText, hostileTexts } from '../support/hostile.ts'
import { type HostileHub, jobOf, runOrder, startHostileHub } from '../support/hostile-hub.ts'
import { randomFrom, seedOf } from '../support/random.ts'

const random = randomFrom(seedOf('hostile-names'))
const ROUNDS = process.env.CADRE_SLOW_TESTS ? 2_000 : 200

const ECHO = `name: "@acme/echo"
version: 1.0.0
inputs: [{ name: text, type: string }]
phases: [{ name: say, agent: exec, commands: [{ name: c, run: 'echo said > "$CADRE_OUT/said.txt"' }] }]
`
const KEYS = `name: "@acme/keys"
version: 1.0.0
inputs: [{ name: keys, type: list }]
phases:
  - { name: each, type: map, items: "{{ inputs.keys }}", key: "{{ item }}", team: ./child }
`
const CHILD = `name: "@acme/child"
version: 1.0.0
outputs: [{ name: said, type: file, value: files/say/said.txt }]
phases: [{ name: say, agent: exec, commands: [{ name: c, run: 'echo said > "$CADRE_OUT/said.txt"' }] }]
`

let hub: HostileHub
let daemon: RunningDaemon
let around: string
let home: string
let before: string[]

beforeAll(async () => {
  hub = startHostileHub()
  around = folder()
  home = join(around, 'a/b/c/home')
  for (const place of ['victim', 'a/victim', 'a/b/victim', 'a/b/c/victim']) {
    mkdirSync(join(around, place), { recursive: true })
    writeFileSync(join(around, place, 'kept.txt'), place)
  }
  mkdirSync(home, { mode: 0o700 })
  before = beside()
  daemon = await spawnDaemon({ home, env: hub.env })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

/** Everything around the home, with its contents. */
function beside(): string[] {
  const names = readdirSync(around, { recursive: true, encoding: 'utf8' }).filter(
    name => !/^a\/b\/c\/home(\/|$)/.test(name),
  )
  return names
    .map(name =>
      lstatSync(join(around, name)).isFile() ? `${name}: ${readFileSync(join(around, name), 'utf8')}` : name,
    )
    .sort()
}

/** Nothing was made, changed or removed but in the places that the home has for it. */
function expectUntouched(): void {
  expect(beside()).toEqual(before)
  expect(existsSync('/victim')).toBe(false)
  for (const place of ['runs', 'secrets']) {
    if (existsSync(join(home, place))) expect(readdirSync(join(home, place)).filter(name => !isRunId(name))).toEqual([])
  }
  const packages = join(home, 'packages')
  if (existsSync(packages)) expect(readdirSync(packages)).toEqual(['@acme'])
  const known = [
    'agents',
    'daemon.db',
    'daemon.lock',
    'key',
    'packages',
    'place',
    'processes',
    'runs',
    'secrets',
    'settings.yml',
    'token',
  ]
  expect(readdirSync(home).filter(name => !known.includes(name) && !/^(daemon|search)\.db/.test(name))).toEqual([])
}

/** A job in which one field is hostile. */
function hostileJob(published: { team: string; sha256: string }) {
  const text = hostileText(random)
  const order = runOrder(published)
  const decision = { review_id: crypto.randomUUID(), decision: 'approve', by: 'x' }
  return random.of([
    () => jobOf('run', order, { run_id: text }),
    () => jobOf('run', order, { job_id: text }),
    () => jobOf('run', order, { lease_id: text }),
    () => jobOf(text, order),
    () => jobOf('run', { ...order, team: text }),
    () => jobOf('run', { ...order, team: `@acme/${text}` }),
    () => jobOf('run', { ...order, team: `@acme/echo@${text}` }),
    () => jobOf('run', { ...order, sha256: text }),
    () => jobOf('run', { ...order, workspace: text }),
    () => jobOf('run', { ...order, inputs: { [text]: text } }),
    () => jobOf('run', hostileJson(random) as object),
    () => jobOf('cancel', { reason: text }, { run_id: text }),
    () => jobOf('resume', { from_phase: text }, { run_id: text }),
    () => jobOf('decide', { ...decision, review_id: text }),
    () => jobOf('decide', { ...decision, by: text, comment: text, values: { [text]: text } }),
    () => hostileJson(random),
  ])()
}

test('no field of a job leads out of the home, and the daemon goes on', async () => {
  const published = hub.publish('@acme/echo', ECHO)
  hub.deliver(...Array.from({ length: ROUNDS }, () => hostileJob(published)))
  for (let n = 0; n < 8; n++)
    hub.deliver(
      jobOf('run', runOrder(published, { run_name: hostileText(random), inputs: { text: hostileText(random) } })),
    )
  const last = jobOf('run', runOrder(published))
  hub.deliver(last)
  expect(await hub.outcome(last.job_id)).toMatchObject({ status: 'done' })
  expectUntouched()
})

test('no field of a package leads out of the home', async () => {
  const published = hub.publish('@acme/echo', ECHO)
  for (let n = 0; n < ROUNDS / 4; n++) {
    const text = hostileText(random)
    const file = { path: text, content_base64: Buffer.from(text).toString('base64') }
    const lie = random.of([
      { name: text },
      { version: text },
      { sha256: text },
      { files: [file] },
      { signature: { key: text, value: text } },
    ])
    hub.lie = (call, data) => (call === 'teams/download' ? { ...(data as object), ...lie } : data)
    const job = jobOf('run', runOrder(published, { team: `@acme/echo@2.0.${n}` }))
    hub.deliver(job)
    expect(await hub.outcome(job.job_id)).toMatchObject({ status: 'failed' })
  }
  hub.lie = (_, data) => data
  expectUntouched()
})

test('no field of what a hub says to a register or a heartbeat leads out of the home', async () => {
  const others = ['daemon_id', 'realm_id', 'acl_version', 'teams_version', 'dispatch_public_key']
  for (let n = 0; n < 20; n++) {
    const text = hostileText(random)
    const lie = { [random.of(others)]: text, teams: [text, '@acme/echo'] }
    hub.lie = (call, data) => (/^daemons\/(register|heartbeat)$/.test(call) ? { ...(data as object), ...lie } : data)
    await Bun.sleep(50)
  }
  hub.lie = (_, data) => data
  expectUntouched()
})

test('no key of a map leads out of the folder of its phase', async () => {
  const texts = hostileTexts(random, 400).filter(text => text !== '' && text.length < 300 && text.isWellFormed())
  const keys = [...new Set(Array.from({ length: 40 }, () => random.of(texts)))]
  const published = hub.publish('@acme/keys', { 'team.yml': KEYS, 'child/team.yml': CHILD })
  const job = jobOf('run', runOrder(published, { inputs: { keys } }))
  hub.deliver(job)
  expect(await hub.outcome(job.job_id)).toMatchObject({ status: 'done' })
  const each = join(home, 'runs', job.run_id, 'files/each')
  expect(readdirSync(each)).toHaveLength(keys.length)
  for (const name of readdirSync(each)) expect(readFileSync(join(each, name, 'said.txt'), 'utf8')).toBe('said\n')
  expectUntouched()
})

test('no id or path of a caller leads out of the home', async () => {
  const { run_id } = await daemon.call('/v1/runs/start', { team: '@acme/echo', inputs: { text: 'x' } })
  await daemon.ended(run_id)
  for (let n = 0; n < ROUNDS / 4; n++) {
    const text = hostileText(random)
    // The hub of the tests before may have started a run with this id.
    if (isRunId(text)) continue
    for (const call of ['get', 'logs', 'delete', 'cancel', 'tree', 'why']) {
      const { status, body } = await daemon.post(`/v1/runs/${call}`, { run_id: text })
      expect([call, text, status < 500, body.ok]).toEqual([call, text, true, false])
    }
    for (const path of [text, `files/${text}`, `files/say/${text}`]) {
      const query = new URLSearchParams({ run_id, path })
      expect((await fetch(`${daemon.url}/v1/artifacts/get?${query}`)).status).toBeWithin(400, 500)
    }
    expect((await daemon.post('/v1/workspaces/add', { path: text })).status).toBeLessThan(500)
  }
  // A name that is longer than a disk takes.
  expect((await daemon.post('/v1/workspaces/add', { path: `/etc/${'é'.repeat(200)}` })).status).toBe(400)
  expectUntouched()
})

/** Where the kernel says that a file of a run is. */
async function placeOf(stateDir: string, path: string): Promise<string> {
  await using artifact = await openArtifact(stateDir, 'run', path)
  return readlinkSync(`/proc/self/fd/${artifact.handle.fd}`)
}

test('a name that a vendor gives is stored under a safe one, and one that an agent gives is refused or safe', async () => {
  const place = join(folder(), 'a/b')
  const stateDir = join(place, 'runs/run')
  mkdirSync(stateDir, { recursive: true })
  for (const text of hostileTexts(random, ROUNDS)) {
    expect(isSafeSegment(safeName(text))).toBe(true)
    const written = await writeArtifact(stateDir, 'say', text, 'x').catch(() => null)
    if (written) expect(await placeOf(stateDir, written.path)).toStartWith(join(stateDir, 'files/say') + sep)
    const found = await placeOf(stateDir, text).catch(() => null)
    if (found) expect(found).toStartWith(join(stateDir, 'files') + sep)
  }
  expect(readdirSync(place)).toEqual(['runs'])
  expect(readdirSync(join(place, '..'))).toEqual(['b'])
  expect(readdirSync(stateDir)).toEqual(['files'])
})

test('no id or digest leads out of the folder in which a hub keeps files', async () => {
  const place = folder()
  const root = join(place, 'a/b')
  mkdirSync(root, { recursive: true })
  const store = folderStore(root, 1_000)
  const ids = () => ({
    realm_id: crypto.randomUUID() as string,
    root_run_id: crypto.randomUUID() as string,
    sha256: '0'.repeat(64),
    bytes: 1,
  })
  for (const text of hostileTexts(random, ROUNDS)) {
    for (const field of ['realm_id', 'root_run_id', 'sha256']) {
      const file = { ...ids(), [field]: text }
      if (field === 'sha256' ? /^[0-9a-f]{64}$/.test(text) : isRunId(text)) continue
      const works = [() => store.has(file), () => store.remove(file), () => store.receive!(file, null)]
      for (const work of works) {
        expect(await work().then(() => null, messageOf)).toContain('two UUIDs and its SHA-256')
      }
    }
  }
  expect(readdirSync(place, { recursive: true }).sort()).toEqual(['a', 'a/b'])
})

test('a name that is safe stays in its folder, and can be written', () => {
  const names = [...hostileTexts(random, 3_000), ...Object.keys(Object(hostileJson(random)))]
  for (const name of names) {
    for (const isAllowed of [isSafeName(name), problemWithPath(name) === null]) {
      if (!isAllowed) continue
      expect(join('/home/x', name)).toStartWith(`/home/x${sep}`)
      expect(name).not.toMatch(/(^|\/)\.\.?(\/|$)|[\0-\x1f\x7f-\x9f\\\u2028\u2029\u202a-\u202e\u2066-\u2069]/)
      expect(Math.max(...name.split('/').map(part => Buffer.byteLength(part)))).toBeLessThanOrEqual(200)
    }
  }
  const folders = foldersOf([...new Set(names)])
  expect(new Set(folders.map(name => name.toLowerCase())).size).toBe(folders.length)
  for (const name of folders) expect(name).toMatch(/^(?!\.{1,2}$)[A-Za-z0-9._~-]{1,101}$/)
})
