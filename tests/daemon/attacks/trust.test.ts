// Attacks by packages on a daemon that lists keys in `packages.trust`: somebody has a hub account that publishes, or the
// hub itself. The hub is real; in front of it stands one that changes its answers as a hostile hub would.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { newSigningKey, type SigningKey } from '../../../lib/program/signing-key.ts'
import type { AnyLeasedJob } from '../../../lib/wire/records/jobs.ts'
import { packageDigest } from '../../../lib/wire/records/package-files.ts'
import { signPackage } from '../../../lib/wire/records/package-signature.ts'
import type { Download, PackageFile } from '../../../lib/wire/records/packages.ts'
import { until } from '../../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../../support/hub.ts'

const ours = newSigningKey()
const theirs = newSigningKey()
const SIGNED = '@admin/signed'
const UNSIGNED = '@admin/unsigned'
type Lie = { [Field in keyof Download]?: Download[Field] | undefined }
/** What a download becomes on its way, and with it what the jobs say of the same version. */
let lie: (sent: Download) => Lie = () => ({})

let hub: TestHub
let front: Bun.Server<undefined>
let daemon: RunningDaemon

beforeAll(async () => {
  hub = await startTestHub()
  front = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: answer })
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = await spawnDaemon({ env: { CADRE_HUB_URL: front.url.origin, CADRE_REALM_TOKEN: token } })
  await publish(SIGNED, ours)
  await publish(UNSIGNED, null)
})
afterAll(async () => {
  await daemon.stop()
  await front.stop(true)
  await hub.stop()
})
beforeEach(async () => {
  lie = () => ({})
  await trust([ours.key])
})

async function answer(request: Request): Promise<Response> {
  const { pathname } = new URL(request.url)
  const { method, headers, signal } = request
  const body = method === 'GET' ? undefined : await request.text()
  const reply = await fetch(hub.url + pathname, { method, headers, ...(body && { body }), signal })
  if (!reply.ok) return new Response(reply.body, { status: reply.status, headers: reply.headers })
  if (pathname === '/v1/teams/download') {
    const { data } = (await reply.json()) as { data: Download }
    return Response.json({ ok: true, data: { ...data, ...lie(data) } })
  }
  if (pathname === '/v1/daemons/poll') {
    const { data } = (await reply.json()) as { data: { jobs: AnyLeasedJob[] } }
    for (const { kind, payload } of data.jobs) {
      if (kind !== 'run') continue
      const published = await hub.ok<Download>(hub.admin, 'teams/download', { team: payload.team })
      payload.sha256 = lie(published).sha256 ?? published.sha256
    }
    return Response.json({ ok: true, data })
  }
  return reply
}

const setting = (key: string, value: unknown) =>
  daemon.call('/v1/settings/set', { key, value }, { authorization: `Bearer ${daemon.token}` })
const trust = (entries: string[] | null) => setting('packages.trust', entries)

const file = (path: string, text: string): PackageFile => ({
  path,
  content_base64: Buffer.from(text).toString('base64'),
})
const team = (name: string, { version = '1.0.0', run = 'true' } = {}) =>
  `name: "${name}"\nversion: ${version}\nphases: [{ name: a, agent: exec, commands: [{ name: c, run: "${run}" }] }]\n`
const calling = (name: string, ref: string) =>
  `name: "${name}"\nversion: 1.0.0\nphases: [{ name: call, type: team, team: "${ref}" }]\n`

/** Publishes a package of one file, signed with `key`, and lists it in the realm. Answers its name. */
async function publish(name: string, key: SigningKey | null, text = team(name), version = '1.0.0'): Promise<string> {
  const contents = [file('team.yml', text)]
  const signature = key && signPackage({ name, version, sha256: packageDigest(contents) }, key)
  await hub.ok(hub.admin, 'teams/publish', { files: contents, ...(signature && { signature }) })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: hub.realm, team: name })
  return name
}

/** The run as the hub has it once it has ended, with its error as a text. */
async function dispatched(reference: string): Promise<{ run_id: string; state: string; error: string }> {
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: reference })
  for (const until = Date.now() + 20_000; Date.now() < until; await Bun.sleep(25)) {
    const { data } = await hub.call(hub.admin, 'runs/get', { run_id })
    if (data?.completed_at != null) return { run_id, state: data.state, error: JSON.stringify(data.error) }
  }
  throw new Error(`${reference} did not end`)
}

const installed = (name: string) => existsSync(join(daemon.home, 'packages', name, '1.0.0'))

test('what a listed key signed runs, and the hub shows the signature everywhere', async () => {
  const name = SIGNED
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
  const { signature } = await hub.ok(hub.admin, 'teams/download', { team: name })
  expect(signature).toEqual({ key: ours.key, value: expect.stringMatching(/^[\w-]{86}$/) })
  expect(await hub.ok(hub.admin, 'teams/get', { team: name })).toMatchObject({ signature })
  const { versions } = await hub.ok(hub.admin, 'teams/versions', { team: name })
  expect(versions).toMatchObject([{ signature }])
})

test('a stolen account that publishes unsigned runs nothing, and whoever asked is told what to do', async () => {
  const name = UNSIGNED
  const { state, error } = await dispatched(name)
  expect(state).toBe('failed')
  expect(error).toContain(`${name}@1.0.0 is not signed`)
  expect(error).toContain(ours.key)
  expect(error).toContain('settings set packages.trust')
  expect(installed(name)).toBe(false)
})

test('a stolen account that signs with a key of its own runs nothing', async () => {
  const name = await publish('@admin/other-key', theirs)
  const { state, error } = await dispatched(name)
  expect(state).toBe('failed')
  expect(error).toContain(`${name}@1.0.0 is signed with ${theirs.key}`)
  expect(installed(name)).toBe(false)
  await trust([ours.key, theirs.key])
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
})

test('the hub takes no signature that is for something else', async () => {
  const name = '@admin/moved'
  const contents = [file('team.yml', team(name))]
  const sha256 = packageDigest(contents)
  const good = signPackage({ name, version: '1.0.0', sha256 }, ours)
  const moved = [
    signPackage({ name: '@admin/another', version: '1.0.0', sha256 }, ours),
    signPackage({ name, version: '1.0.1', sha256 }, ours),
    signPackage({ name, version: '1.0.0', sha256: packageDigest([file('team.yml', team(name, { run: 'id' }))]) }, ours),
    { ...good, key: theirs.key },
    { ...good, value: good.value.slice(1) },
  ]
  for (const signature of moved) {
    const { status, error } = await hub.call(hub.admin, 'teams/publish', { files: contents, signature })
    expect([status, error.details?.[0]?.path.split('/')[1]]).toEqual([400, 'signature'])
  }
  await hub.ok(hub.admin, 'teams/publish', { files: contents, signature: good })
})

const textOf = ({ files }: Download) => Buffer.from(files[0]!.content_base64, 'base64').toString()
const jobsOf = (run_id: string) => hub.store.db.select().from(hub.store.jobs).where(eq(hub.store.jobs.run_id, run_id))
const digestOf = (changed: PackageFile[]) => ({ files: changed, sha256: packageDigest(changed) })

/** Each begins with a package that is signed well. `other`: a signature of another package by the same key. */
const lies: [string, (sent: Download, other: Download) => Lie][] = [
  ['takes the signature away', () => ({ signature: null })],
  ['says nothing of signatures', () => ({ signature: undefined })],
  ['gives the signature of another package', (_, other) => ({ signature: other.signature! })],
  ['signs itself', sent => ({ signature: signPackage(sent, theirs) })],
  ['signs itself in the name of the key', sent => ({ signature: { ...signPackage(sent, theirs), key: ours.key } })],
  ['gives something that is no signature', () => ({ signature: { key: ours.key, value: '' } })],
  ['changes a file', sent => digestOf([file('team.yml', team(sent.name, { run: 'id' }))])],
  ['adds a file', sent => digestOf([file('more.txt', ''), ...sent.files])],
  [
    'renames a file',
    sent => digestOf([...sent.files.map(each => ({ ...each, path: 'more/team.yml' })), ...sent.files]),
  ],
]
test.each(lies)('a hub that %s gains nothing', async (what, change) => {
  const name = await publish(`@admin/${what.replaceAll(' ', '-')}`, ours)
  const other = await hub.ok<Download>(hub.admin, 'teams/download', { team: SIGNED })
  lie = sent => (sent.name === name ? change(sent, other) : {})
  const { state, error } = await dispatched(name)
  expect([state, error]).toEqual(['failed', expect.stringMatching(/is not signed|is signed with|is not what/)])
  expect(error).toContain(`${name}@1.0.0`)
  expect(installed(name)).toBe(false)
  // What it sent was not kept: with the truth the same run starts.
  lie = () => ({})
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
})

test('a hub that sends an older signed version in the place of a newer one gains nothing', async () => {
  const name = await publish('@admin/aged', ours)
  const old = await hub.ok<Download>(hub.admin, 'teams/download', { team: name })
  await publish(name, ours, team(name, { version: '1.1.0' }), '1.1.0')
  const disguises: Lie[] = [old, { ...old, version: '1.1.0' }]
  for (const disguise of disguises) {
    lie = sent => (sent.name === name ? disguise : {})
    const { state, error } = await dispatched(`${name}@1.1.0`)
    expect([state, error]).toEqual(['failed', expect.stringMatching(/it is 1\.0\.0|is not what/)])
  }
  lie = () => ({})
  expect(await dispatched(`${name}@1.1.0`)).toMatchObject({ state: 'completed' })
})

test('a package that another one names is judged by itself', async () => {
  const inner = await publish('@admin/inner', null)
  const outer = await publish('@admin/outer', ours, calling('@admin/outer', inner))
  const { state, error } = await dispatched(outer)
  expect([state, error]).toEqual(['failed', expect.stringContaining(`${inner}@1.0.0 is not signed`)])
  const path = files({ 'team.yml': calling('@local/here', inner) })
  const { status, body } = await daemon.post('/v1/runs/start', { path })
  expect([status, JSON.stringify(body.error)]).toEqual([400, expect.stringContaining(`${inner}@1.0.0 is not signed`)])
})

test('it is the same for who starts a package on the machine, and for who only looks at it', async () => {
  const name = UNSIGNED
  for (const route of ['runs/start', 'teams/validate', 'teams/plan']) {
    const { status, body } = await daemon.post(`/v1/${route}`, { team: name })
    expect([route, status, body.error?.message]).toEqual([route, 403, expect.stringContaining('is not signed')])
  }
  await daemon.call('/v1/runs/start', { team: SIGNED })
})

test('what is installed is judged at each use: by the settings as they are then, and by its files', async () => {
  const name = await publish('@admin/kept', ours)
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
  await trust([theirs.key])
  expect(await dispatched(name)).toMatchObject({ state: 'failed', error: expect.stringContaining('is signed with') })
  await trust([])
  expect(await dispatched(name)).toMatchObject({ state: 'failed', error: expect.stringContaining('lists nothing') })
  await trust([ours.key])
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
  writeFileSync(join(daemon.home, 'packages', name, '1.0.0/team.yml'), team(name, { run: 'exit 7' }))
  lie = () => ({ signature: null })
  expect(await dispatched(name)).toMatchObject({ state: 'failed', error: expect.stringContaining('is not what') })
  lie = () => ({})
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
})

test('what a hub had run before keys were listed does not run after, not even from memory', async () => {
  const name = await publish('@admin/turned', ours)
  await trust(null)
  lie = sent => (sent.name === name ? digestOf([file('team.yml', team(name, { run: 'exit 7' }))]) : {})
  expect(await dispatched(name)).toMatchObject({ state: 'failed', error: expect.stringContaining('7') })
  await trust([ours.key])
  expect(await dispatched(name)).toMatchObject({ state: 'failed', error: expect.stringContaining('is not what') })
  lie = () => ({})
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
})

/** Resumes a run from its first phase, as a person at the machine. */
const resume = (run_id: string) => daemon.post('/v1/runs/resume', { run_id, from_phase: 'a' })

test('a run is not resumed when its package is not trusted any more, at the machine and through the hub', async () => {
  const name = await publish('@admin/resumed', ours)
  const { run_id } = await dispatched(name)
  expect((await resume(run_id)).status).toBe(200)
  await daemon.ended(run_id)
  await trust([theirs.key])
  const refused = await resume(run_id)
  expect([refused.status, refused.body.error?.message]).toEqual([403, expect.stringContaining('is signed with')])
  const { attempt } = await daemon.call('/v1/runs/get', { run_id })
  await hub.ok(hub.admin, 'dispatch/resume', { run_id, from_phase: 'a' })
  await until(async () => (await jobsOf(run_id)).every(({ finished_at }) => finished_at !== null), 'the job')
  expect((await jobsOf(run_id)).at(-1)).toMatchObject({ kind: 'resume', state: 'failed' })
  expect(await daemon.call('/v1/runs/get', { run_id })).toMatchObject({ attempt, state: 'completed' })
  await trust([ours.key])
  expect((await resume(run_id)).status).toBe(200)
})

test('a run goes on with nothing else than what was signed, though the package is signed by now', async () => {
  await trust(null)
  const inner = await publish('@admin/resumed-inner', ours)
  const outer = await publish(
    '@admin/resumed-outer',
    ours,
    calling('@admin/resumed-outer', inner).replace('call,', 'a,'),
  )
  for (const changed of [inner, outer]) {
    // Each is asked of a hub that sends another content, and installed as that.
    const other = `${changed}-as-changed`
    lie = sent => (sent.name === changed ? digestOf([file('team.yml', `${textOf(sent)}# changed\n`)]) : {})
    rmSync(join(daemon.home, 'packages', inner), { recursive: true, force: true })
    rmSync(join(daemon.home, 'packages', outer), { recursive: true, force: true })
    const { run_id, state } = await dispatched(outer)
    expect([other, state]).toEqual([other, 'completed'])
    lie = () => ({})
    await trust([ours.key])
    const { status, body } = await resume(run_id)
    expect([changed, status, body.error?.message]).toEqual([
      changed,
      403,
      expect.stringContaining(`since this run began, and ${changed}@1.0.0 has another content now`),
    ])
    await trust(null)
    expect((await resume(run_id)).status).toBe(200)
    await daemon.ended(run_id)
  }
})

test('a package that came before signatures were asked for is asked for its signature', async () => {
  await trust(null)
  lie = () => ({ signature: undefined })
  const name = await publish('@admin/early', ours)
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
  await trust([ours.key])
  expect(await dispatched(name)).toMatchObject({ state: 'failed' })
  lie = () => ({})
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
})

test('a scope passes as it is, other scopes do not, and one entry that fits is enough', async () => {
  const name = UNSIGNED
  await trust(['@others'])
  expect(await dispatched(name)).toMatchObject({ state: 'failed', error: expect.stringContaining('no trusted scope') })
  await trust(['@others', ours.key])
  expect(await dispatched(SIGNED)).toMatchObject({ state: 'completed' })
  await trust(['@admin', theirs.key])
  expect(await dispatched(name)).toMatchObject({ state: 'completed' })
})

test('a person makes a key, publishes with it, and changes it', async () => {
  const home = folder()
  const env = { CADRE_HUB_URL: hub.url }
  const cadre = async (...args: string[]) => {
    const { code, stdout, stderr } = await command(args, { home, env, stdin: ADMIN_PASSWORD })
    expect([args[0], code, stderr]).toEqual([args[0], 0, expect.any(String)])
    return stdout.trim()
  }
  await cadre('login', 'admin')
  const first = await cadre('keys', 'new')
  expect(statSync(join(home, 'publish-keys.json')).mode & 0o777).toBe(0o600)
  const place = files({
    'team.yml': calling('@local/by-hand', './below'),
    'below/team.yml': team('@local/below'),
    'notes.txt': 'of @local/by-hand',
    'B.txt': '',
  })
  await trust([first])
  await cadre('publish', place, '--scope', 'admin', '--realm', 'admin')
  expect(await dispatched('@admin/by-hand')).toMatchObject({ state: 'completed' })

  const second = await cadre('keys', 'new')
  const keys = async () => JSON.parse(await cadre('keys', '--json')).map((each: { key: string }) => each.key)
  expect(await keys()).toEqual([second, first])
  writeFileSync(join(place, 'team.yml'), calling('@local/by-hand', './below').replace('1.0.0', '1.0.1'))
  await cadre('publish', place, '--scope', 'admin')
  expect(await dispatched('@admin/by-hand')).toMatchObject({ state: 'failed', error: expect.stringContaining(second) })
  await cadre('keys', 'use', first.slice(0, 20))
  expect(await keys()).toEqual([first, second])
  writeFileSync(join(place, 'team.yml'), calling('@local/by-hand', './below').replace('1.0.0', '1.0.2'))
  await cadre('publish', place, '--scope', 'admin', '--no-sign')
  const unsigned = { state: 'failed', error: expect.stringContaining('is not signed') }
  expect(await dispatched('@admin/by-hand')).toMatchObject(unsigned)
  const secrets = JSON.parse(readFileSync(join(home, 'publish-keys.json'), 'utf8'))
  for (const { secret } of secrets) expect(await cadre('keys', '--json')).not.toContain(secret)
})
