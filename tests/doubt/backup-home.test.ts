// A backup of a home is made while its daemon works, is one file with everything that a home needs, and becomes a home
// again at another place, which knows that it is not the first one.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type CountingVendor, countingVendor, homeWithFinds, writer } from '../support/copied-home.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { rowsOf } from '../support/home.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { checkInvariants } from '../support/invariants.ts'
import { randomFrom, seedOf } from '../support/random.ts'

let hub: TestHub
let vendor: CountingVendor
beforeAll(async () => {
  hub = await startTestHub()
  vendor = countingVendor()
})
afterAll(() => Promise.all([hub.stop(), vendor.stop()]))

const standing = async (home: string) => JSON.parse((await command(['status', '--json'], { home })).stdout)

const phasesOf = async (daemon: RunningDaemon, run_id: string): Promise<{ name: string; state: string }[]> =>
  (await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })).phases

test('a backup that is made while a run works becomes a home that holds the run until a person resumes it', async () => {
  const home = homeWithFinds()
  await command(['settings', 'set', 'agents.wiki.api_token', 'a-token-of-the-wiki'], { home })
  writeFileSync(join(home, 'notes.txt'), 'mine')
  vendor.hold('two')
  const daemon = await spawnDaemon({ home })
  const team = files({
    'team.yml': `${writer('finds', vendor, 'one', 'two', 'three')}  - name: keep
    agent: exec
    commands: [{ name: c, run: 'echo kept > "$CADRE_OUT/kept.txt"; ln -s /etc/hostname link; mkfifo pipe' }]
`,
  })
  const { run_id } = await daemon.call('/v1/runs/start', { path: team })
  await vendor.wrote('two')
  const kept = `runs/${run_id}/files/keep/kept.txt`
  // Its commands can run once only.
  const isKept = async () => (await phasesOf(daemon, run_id)).some(p => p.name === 'keep' && p.state === 'completed')
  await until(isKept, 'the end of the phase that keeps a file')

  const file = join(folder(), 'home.backup')
  const made = await command(['backup', file], { home })
  expect(made).toMatchObject({ code: 0, stderr: '' })
  expect(made.stdout).toContain('credentials')
  expect(made.stdout).toContain('notes.txt')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(join(file, '..'))).toEqual(['home.backup'])
  const again = await command(['backup', file], { home })
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('already exists')])
  const paths = pathsIn(file)
  expect(paths).toEqual(expect.arrayContaining(['settings.yml', 'key', 'agents/finds.ts', kept]))
  for (const own of ['token', 'daemon.lock', 'place', 'notes.txt', 'processes']) expect(paths).not.toContain(own)

  vendor.release()
  await daemon.ended(run_id)
  const counts = vendor.written()
  const full = await command(['restore', file], { home })
  expect([full.code, full.stderr]).toEqual([2, expect.stringContaining('is not empty')])
  const other = join(folder(), 'restored')
  const restored = await command(['restore', file], { home: other, cwd: folder() })
  expect(restored).toMatchObject({ code: 0, stderr: '' })
  expect(restored.stdout).toContain('One run was unfinished')
  expect(restored.stdout).toContain(home)
  expect(statSync(other).mode & 0o777).toBe(0o700)
  expect(statSync(join(other, 'settings.yml')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(other, kept), 'utf8')).toBe('kept\n')

  const second = await spawnDaemon({ home: other })
  expect(second.output.stderr).toContain('was restored from the backup')
  expect((await second.call('/v1/runs/get', { run_id })).state).toBe('interrupted')
  expect((await standing(other)).copied).toMatchObject({ runs: 1, from: { folder: home } })
  expect(second.token).not.toBe(daemon.token)
  expect((await command(['resume', run_id], { home: other })).code).toBe(0)
  expect((await second.call('/v1/runs/get', { run_id })).state).toBe('completed')
  expect(vendor.written()).toEqual(counts)
  const set = await command(['settings', 'get', 'agents.wiki.api_token'], { home: other })
  expect(set).toMatchObject({ code: 0, stdout: expect.not.stringContaining('a-token-of') })
}, 60_000)

const pathsIn = (file: string): string[] => {
  using db = new Database(file, { readonly: true })
  return db
    .query<{ path: string }, []>('SELECT path FROM backup_files')
    .all()
    .map(({ path }) => path)
}

test('what is no backup, is damaged or leads elsewhere makes no home, and neither does a restore that was killed', async () => {
  const home = homeWithFinds()
  expect((await command(['run', files({ 'team.yml': writer('finds', vendor, 'small') })], { home })).code).toBe(0)
  const file = join(folder(), 'home.backup')
  expect((await command(['backup', file], { home })).code).toBe(0)
  const at = (name: string) => join(folder(), name)
  const restore = (from: string, to: string, env = {}) =>
    command(['restore', from], { home: to, cwd: folder(), env: { CADRE_HOME: to, ...env } })

  for (const [name, content] of [
    ['text', 'no database'],
    ['database', readFileSync(join(home, 'daemon.db'))],
  ] as const) {
    const from = at(name)
    writeFileSync(from, content)
    const to = at('home')
    const { code, stderr } = await restore(from, to)
    expect([name, code, stderr]).toEqual([name, 2, expect.stringContaining('must be a backup of a home')])
    expect(existsSync(to)).toBe(false)
  }
  const changes = {
    'has other bytes':
      "UPDATE backup_chunks SET bytes = x'00' WHERE file = (SELECT id FROM backup_files WHERE kind = 'file' LIMIT 1)",
    'outside of what a home has': "UPDATE backup_files SET path = '../escaped' WHERE path = 'agents/finds.ts'",
    'which is newer': `UPDATE backup_label SET json = json_set(json, '$.format', 2)`,
  }
  for (const [why, change] of Object.entries(changes)) {
    const from = at('changed')
    writeFileSync(from, readFileSync(file))
    {
      using db = new Database(from)
      db.run(change)
    }
    const to = at('home')
    const { code, stderr } = await restore(from, to)
    expect([code, stderr]).toEqual([2, expect.stringContaining(why)])
    expect(existsSync(to) ? readdirSync(to) : []).toEqual([])
    expect(existsSync(join(to, '../escaped'))).toBe(false)
  }
  const killed = at('killed')
  await restore(file, killed, { CADRE_FAILPOINT: '1' })
  expect(existsSync(join(killed, 'daemon.db'))).toBe(false)
  expect((await command(['backup', at('x')], { home: killed })).stderr).toContain('nothing has run in')
  expect((await restore(file, killed)).stderr).toContain('is not empty')
  expect((await command(['backup', at('x')], { home: folder() })).stderr).toContain('nothing has run in')
}, 60_000)

test('whatever moves meanwhile, each file that a backup names as a result is in it', async () => {
  const random = randomFrom(seedOf('backups'))
  const home = homeWithFinds()
  const team = files({
    'team.yml': `name: "@local/many"
version: 1.0.0
phases:
  - { name: each, type: map, items: "{{ range(40) }}", team: ./one, inputs: { n: "{{ item }}" }, concurrency: 4 }
`.replace('"{{ range(40) }}"', JSON.stringify(Array.from({ length: 40 }, (_, n) => n))),
    'one/team.yml': `name: "@local/one"
version: 1.0.0
inputs: [{ name: n, type: number }]
phases:
  - name: write
    agent: exec
    env: { N: "{{ inputs.n }}" }
    commands: [{ name: c, run: 'head -c $((N * 5000)) /dev/zero > "$CADRE_OUT/data"; echo "$N" > "$CADRE_OUT/n"' }]
`,
  })
  const daemon = await spawnDaemon({ home })
  const started = Array.from({ length: 3 }, () => daemon.call('/v1/runs/start', { path: team }))
  await Promise.all(started)
  for (let round = 0; round < 6; round++) {
    await Bun.sleep(random() * 300)
    const file = join(folder(), 'home.backup')
    expect(await command(['backup', file], { home })).toMatchObject({ code: 0, stderr: '' })
    const other = join(folder(), 'restored')
    expect((await command(['restore', file], { home: other, cwd: folder() })).code).toBe(0)
    checkInvariants(other)
    const phases = rowsOf<{ run_id: string; files: string }>(
      other,
      "SELECT run_id, files FROM phases WHERE state = 'completed' AND files IS NOT NULL",
    )
    for (const { run_id, files } of phases) {
      for (const { path, sha256 } of JSON.parse(files) as { path: string; sha256: string }[]) {
        const bytes = readFileSync(join(other, 'runs', run_id, path))
        expect(new Bun.CryptoHasher('sha256').update(bytes).digest('hex')).toBe(sha256)
      }
    }
  }
  await daemon.kill('SIGKILL')
}, 120_000)

test('a home moves to another machine as the documents say, and is the same daemon at the hub', async () => {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = homeWithFinds()
  mkdirSync(join(home, 'agents/more'))
  symlinkSync('../finds.ts', join(home, 'agents/more/again.ts'))
  const daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token } })
  const id = (await standing(home)).hub.daemon_id
  await daemon.stop()
  const file = join(folder(), 'home.backup')
  expect((await command(['backup', file], { home })).code).toBe(0)
  const other = join(folder(), 'elsewhere')
  expect((await command(['restore', file], { home: other, cwd: folder() })).code).toBe(0)
  expect(await command(['home', 'moved'], { home: other })).toMatchObject({ code: 0, stderr: '' })
  const moved = await spawnDaemon({ home: other })
  expect((await standing(other)).hub).toMatchObject({ daemon_id: id, enrolled: true })
  expect(spawnDaemon({ home })).rejects.toThrow('home moved')
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })
  expect(daemons).toHaveLength(1)
  await moved.stop()
}, 60_000)
