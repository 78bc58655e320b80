// Only a person offers a workspace to the runs that a hub dispatches. A folder in which somebody once ran something stays
// with that machine.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type HostileHub, jobOf, runOrder, startHostileHub } from '../support/hostile-hub.ts'
import { startTestHub } from '../support/hub.ts'

const LOOK = `name: "@acme/look"
version: 1.0.0
phases: [{ name: look, agent: exec, commands: [{ name: c, run: 'cat secret.txt' }] }]
`

let hub: HostileHub
let daemon: RunningDaemon
let look: { team: string; sha256: string }
/** Folders with a secret: one in which a person ran something, one that was added, one that was offered. */
const places = { ran: '', added: '', offered: '' }

beforeAll(async () => {
  hub = startHostileHub()
  look = hub.publish('@acme/look', LOOK)
  daemon = await spawnDaemon({ env: hub.env })
  for (const name of ['ran', 'added', 'offered'] as const) {
    places[name] = join(folder(), name)
    mkdirSync(places[name])
    writeFileSync(join(places[name], 'secret.txt'), `of ${name}`)
  }
  const path = files({ 'team.yml': LOOK })
  const { run_id } = await daemon.call('/v1/runs/start', { path, workspace: places.ran })
  await daemon.ended(run_id)
  await daemon.call('/v1/workspaces/add', { path: places.added })
  await daemon.call('/v1/workspaces/add', { path: places.offered, offer: true })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

async function dispatched(workspace: string) {
  const job = jobOf('run', runOrder(look, { workspace }))
  hub.deliver(job)
  return { ...(await hub.outcome(job.job_id)), run_id: job.run_id }
}

test('the hub is told of offered workspaces only, and the record says which they are', async () => {
  await until(() => Bun.deepEquals(hub.told('workspaces'), ['offered']), 'the offer')
  const { workspaces } = await daemon.envelope('/v1/workspaces/get', 'workspace_list')
  const offered = workspaces.map(({ name, offered }: { name: string; offered: boolean }) => [name, offered])
  expect(Object.fromEntries(offered)).toMatchObject({ ran: false, added: false, offered: true })
})

test('a dispatched run that names another is refused, whatever it calls it', async () => {
  const { workspaces } = await daemon.envelope('/v1/workspaces/get', 'workspace_list')
  for (const { workspace_id, name, path, offered } of workspaces) {
    if (offered) continue
    for (const workspace of [name, workspace_id, path, `${path}/`]) {
      const { status, error } = await dispatched(workspace)
      expect([workspace, status]).toEqual([workspace, 'failed'])
      expect(error).toContain(`offers no workspace ${workspace}`)
      expect(error).toContain('offered are offered;')
    }
  }
  const { status, run_id } = await dispatched('offered')
  expect(status).toBe('done')
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed', workspace: places.offered })
})

test('workspaces add --offer offers a folder, --no-offer ends that, and a run in it changes nothing', async () => {
  const { home } = daemon
  const add = (...options: string[]) =>
    command(['workspaces', 'add', '.', ...options, '--json'], { home, cwd: places.added })
  expect(JSON.parse((await add('--offer')).stdout)).toMatchObject({ name: 'added', path: places.added, offered: true })
  await until(() => Bun.deepEquals(hub.told('workspaces'), ['added', 'offered']), 'the offer')
  expect((await dispatched('added')).status).toBe('done')
  expect(JSON.parse((await add('--name', 'second')).stdout)).toMatchObject({ name: 'second', offered: true })
  expect(JSON.parse((await add('--no-offer')).stdout)).toMatchObject({ name: 'second', offered: false })
  expect((await dispatched('second')).status).toBe('failed')
  const path = files({ 'team.yml': LOOK })
  await daemon.ended((await daemon.call('/v1/runs/start', { path, workspace: places.added })).run_id)
  expect((await dispatched('second')).status).toBe('failed')
  const { stdout } = await command(['workspaces'], { home })
  expect(stdout).toMatch(/^offered +\S+ +offered/m)
  expect((await command(['workspaces', 'remove', 'second'], { home })).code).toBe(0)
})

test('without a daemon the command changes the home itself', async () => {
  const home = folder()
  const { stdout } = await command(['workspaces', 'add', places.added, '--offer', '--json'], { home })
  expect(JSON.parse(stdout)).toMatchObject({ path: places.added, offered: true })
  const listed = await command(['workspaces', '--json'], { home })
  expect(JSON.parse(listed.stdout).workspaces).toMatchObject([{ offered: true }])
})

test('a home from before goes on offering what dispatched runs have named, and says so, and offers nothing else', async () => {
  const { home } = daemon
  await daemon.stop()
  const db = new Database(join(home, 'daemon.db'))
  db.run('ALTER TABLE workspaces DROP COLUMN reach')
  // As the start of this version makes of what was there before.
  db.run(readFileSync(join(import.meta.dir, '../../db/daemon/migrations/0012_offered.sql'), 'utf8'))
  db.close()
  daemon = await spawnDaemon({ home, env: hub.env })
  await until(() => Bun.deepEquals(hub.told('workspaces'), ['offered']), 'the offer')
  const told = () =>
    daemon.output.stderr.split('\n').find(line => line.includes('workspaces are offered to the realm only'))
  await until(() => told() !== undefined, 'the warning')
  expect(JSON.parse(told()!)).toMatchObject({ level: 'warn', workspaces: ['offered'] })
  expect((await dispatched('offered')).status).toBe('done')
  expect((await dispatched('ran')).status).toBe('failed')
})

test('a dispatch that waits for a workspace says that no daemon offers it', async () => {
  const real = await startTestHub()
  try {
    const { token } = await real.realmToken(real.admin, real.realm)
    await real.ok(token, 'daemons/register', { name: 'one', workspaces: ['other'], protocol: 1 })
    await real.addTeam(LOOK.replace('@acme/', '@admin/'))
    const asked = { realm_id: real.realm, team: '@admin/look', workspace: 'src' }
    const { waiting_for } = await real.ok(real.admin, 'dispatch/run', asked)
    expect(waiting_for).toContain('no daemon offers workspace src')
  } finally {
    await real.stop()
  }
})
