// How a daemon stands, as its hub shows it before a run finds out: what it says with each heartbeat, what its doctors find
// when an operator asks, and the teams that no daemon could run. Hubs and daemons of the version before go on working.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { worriesOf } from '../../lib/wire/worries.ts'
import { until } from '../support/bounded.ts'
import { command, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { ADMIN_PASSWORD, startTestHub, type TestHub } from '../support/hub.ts'

setDefaultTimeout(60_000)

const DAY = 86_400_000
const SECRET = 'canary-of-the-vendor'
const home = folder()
const person = folder()
const said = join(home, 'said.json')
const end = Math.round((Date.now() + 5 * DAY + 3_600_000) / 1_000) * 1_000
let hub: TestHub
let daemon: RunningDaemon

/** What the doctor of the agent answers. */
const answers = (answer: object) => writeFileSync(said, JSON.stringify(answer))

beforeAll(async () => {
  hub = await startTestHub({ env: { TEST_BEAT_MS: '300' } })
  mkdirSync(join(home, 'agents'))
  writeFileSync(
    join(home, 'agents/shop.ts'),
    `import { readFileSync } from 'node:fs'
import { AgentError, agent, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Sells.', settings: Type.Object({ api_token: Type.String() }),
  doctor: async () => {
    const { fails, ...answer } = JSON.parse(readFileSync(${JSON.stringify(said)}, 'utf8'))
    if (fails) throw new AgentError(fails)
    return { who: 'ada', missing: [], ...answer }
  },
  actions: {
    look: { direction: 'source', effect: 'read', entry: Type.Object({ name: Type.String() }), run: async () => ({ text: '', data: null }) },
  },
})
`,
  )
  writeFileSync(join(home, 'settings.yml'), `agents: { shop: { api_token: ${SECRET} } }\n`, { mode: 0o600 })
  answers({ text: `the shop of ${SECRET}`, expires_at: end })
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one' }
  daemon = await spawnDaemon({ home, env })
  const login = await command(['login', 'admin', '--hub', hub.url], { home: person, stdin: `${ADMIN_PASSWORD}\n` })
  expect(login.code).toBe(0)
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

/** A daemon of the hub, by its name. */
const seen = async (name = 'one') =>
  (await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })).daemons.find(
    (each: { name: string }) => each.name === name,
  )
const shopOf = ({ agents }: { agents: { name: string }[] }) => agents.find(({ name }) => name === 'shop')
const says = async (...words: string[]) => {
  const { code, stdout, stderr } = await command(words, { home: person })
  expect([words, code, stderr.includes('error')]).toEqual([words, 0, false])
  return stdout + stderr
}

test('the hub shows how a daemon stands, and names a credential that ends soon', async () => {
  const record = await until(async () => {
    const found = await seen()
    return found.standing?.credentials_expire?.length > 0 && found
  }, 'the end of the credential')
  expect(record.standing).toEqual({
    disk_free: expect.any(Number),
    clock_ms: expect.any(Number),
    last_error: null,
    outbox: { changes: 0, files: 0, oldest_at: null },
    credentials_expire: [{ name: 'shop', at: end }],
  })
  expect(record.standing.disk_free).toBeGreaterThan(1_000_000)
  const found = await until(async () => {
    const shop = shopOf(await seen())
    return shop && 'text' in shop && shop
  }, 'the finding')
  expect(found).toEqual({ name: 'shop', version: '1.0.0', doctor: 'fine', text: 'the shop of ***' } as never)
  // It is in the row, so that every hub shows it.
  await hub.flush()
  const [row] = await hub.store.db.select().from(hub.store.daemons)
  expect(row!.standing!.credentials_expire).toEqual([{ name: 'shop', at: end }])
  expect(await says('daemons', 'list')).toMatch(/^● one +online, the credential of shop ends in 5d/)
  const shown = await says('daemons', 'show', 'one')
  expect(shown).toMatch(/credentials +shop ends in 5d/)
  expect(shown).toMatch(/✓ shop +1\.0\.0 +ready +the shop of \*\*\*/)
  expect(shown).not.toContain(SECRET)
  expect((await command(['doctor', 'shop'], { home })).stdout).toContain('the credential ends in 5d')
})

test('daemons doctor --now asks the doctors with the next heartbeat and shows what they find', async () => {
  await until(async () => shopOf(await seen()), 'the first finding')
  // Nothing asks for ten minutes after the first look.
  answers({ fails: `the shop does not take ${SECRET}` })
  expect(await says('daemons', 'doctor', '--now')).toMatch(/shop +✗ one/)
  const record = await seen()
  expect(shopOf(record)).toMatchObject({ doctor: 'wrong', text: 'the shop does not take ***' } as never)
  expect(record.examined).toBe(record.examine)
  expect(await says('daemons', 'list')).toContain('agent shop is not ready')
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, action: 'daemons/examine' })
  expect(audit).toMatchObject([{ action: 'daemons/examine', target: record.id, username: 'admin' }])
  const nothing = await hub.call(hub.admin, 'daemons/update', { daemon_id: record.id })
  expect([nothing.status, nothing.error.message]).toEqual([400, 'set `paused` or `examine`'])
  answers({ text: 'again', expires_at: null })
  expect(await says('daemons', 'doctor', '--now')).toMatch(/shop +✓ one/)
  await until(async () => (await seen()).standing.credentials_expire.length === 0, 'a credential without an end')
  // An agent may compute the end, with a fraction or out of nothing.
  answers({ text: 'parts', expires_at: end + 0.5 })
  await says('daemons', 'doctor', '--now')
  const first = async () => (await seen()).standing.credentials_expire?.[0]
  expect(await until(first, 'the end')).toEqual({ name: 'shop', at: end })
  answers({ text: 'never', expires_at: 1e300 })
  await says('daemons', 'doctor', '--now')
  await until(async () => (await seen()).standing.credentials_expire?.length === 0, 'an end that is none')
})

test('daemons doctor --now names a daemon that it may not ask, and goes on with the others', async () => {
  const [{ org_id }] = (await hub.ok(hub.admin, 'realms/list')).realms
  const { id: other } = await hub.ok(hub.admin, 'realms/create', { org_id, slug: 'guarded', name: 'guarded' })
  const { token } = await hub.realmToken(hub.admin, other)
  const guarded = await hub.ok(token, 'daemons/register', { name: 'guarded' })
  const { id: user_id } = await hub.account('operator')
  const { realmMembers } = hub.store
  await hub.store.write(tx =>
    tx.insert(realmMembers).values([
      { realm_id: hub.realm, user_id, role: 'operator' },
      { realm_id: other, user_id, role: 'member' },
    ]),
  )
  const there = folder()
  const login = await command(['login', 'operator', '--hub', hub.url], { home: there, stdin: 'password of a test\n' })
  expect(login.code).toBe(0)
  answers({ text: 'here', expires_at: null })
  const { code, stdout, stderr } = await command(['daemons', 'doctor', '--now'], { home: there })
  expect([code, stdout]).toEqual([0, expect.stringMatching(/shop .*✓ one/)])
  expect(stderr).toContain('guarded could not be asked, and what it found before is shown: ')
  expect(stderr).not.toContain('one could not')
  await hub.ok(hub.admin, 'daemons/remove', { daemon_id: guarded.daemon_id })
})

test('a team of the list that no daemon could run is named before a run waits', async () => {
  const team = (name: string, rest: string) =>
    `name: "@admin/${name}"\nversion: 1.0.0\n${rest}phases:\n  - { name: a, agent: exec, commands: [{ name: b, run: 'true' }] }\n`
  await hub.addTeam(team('runs', ''))
  await hub.addTeam(team('draws', 'requires: { labels: [gpu], agents: [crm] }\n'))
  await until(async () => (await seen()).agents.length > 0, 'the agents')
  const list = async () =>
    Object.fromEntries(
      (await hub.ok(hub.admin, 'realms/teams', { realm_id: hub.realm })).teams.map(
        (each: { team: string; lacks?: string }) => [each.team, each.lacks ?? null],
      ),
    )
  const lacks = 'label gpu=yes and agent crm that its doctor finds ready'
  expect(await list()).toEqual({ '@admin/draws': lacks, '@admin/runs': null })
  expect(await says('daemons')).toContain(`no daemon could run @admin/draws: it needs ${lacks}\n`)
  expect(await says('realms', 'show', hub.realm)).toContain(lacks)
  writeFileSync(join(home, 'settings.yml'), `agents: { shop: { api_token: ${SECRET} } }\nlabels: { gpu: true }\n`)
  process.kill(daemon.pid, 'SIGHUP')
  await until(async () => (await list())['@admin/draws'] === lacks.replace('label gpu=yes and ', ''), 'the label')
})

test('a daemon of the version before, and one that says strange things, is taken as far as it goes', async () => {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', {
    name: 'older',
    agents: [{ name: 'x', version: '1.0.0' }],
  })
  const beat = (more: object) => hub.ok(token, 'daemons/heartbeat', { daemon_id, ...more })
  expect(await beat({})).not.toHaveProperty('examine')
  expect((await seen('older')).standing).toBeNull()
  const { examine } = await hub.ok(hub.admin, 'daemons/update', { daemon_id, examine: true })
  // It is said until the daemon has looked, and says for which request.
  expect((await beat({})).examine).toBe(examine)
  expect((await beat({ examined: examine - 1 })).examine).toBe(examine)
  await beat({ examined: examine })
  expect(await beat({})).not.toHaveProperty('examine')
  // What has another form is left out, and what is new is not taken.
  await beat({
    standing: { disk_free: -1, outbox: 'much', last_error: { at: 1, text: 'x'.repeat(501) }, clock_ms: 7, new: 1 },
  })
  expect((await seen('older')).standing).toEqual({ clock_ms: 7 })
  for (const standing of [null, 'well', 3, []]) await beat({ standing })
  // Nobody could show such times, and nobody would look for the rest.
  const never = { credentials_expire: [{ name: 'x', at: 1e300 }], last_error: { at: -1, text: 'x' }, clock_ms: 7 }
  await beat({ standing: never })
  expect((await seen('older')).standing).toEqual({ clock_ms: 7 })
  const more = { more: 'x'.repeat(100_000) }
  const outbox = { changes: 1, files: 0, oldest_at: null }
  const kept = { clock_ms: 7, outbox, credentials_expire: [{ name: 'x', at: 1 }], last_error: { at: 1, text: 'x' } }
  const given = {
    clock_ms: 7,
    outbox: { ...outbox, ...more },
    credentials_expire: [{ name: 'x', at: 1, ...more }],
    last_error: { at: 1, text: 'x', ...more },
  }
  await beat({ standing: given })
  expect((await seen('older')).standing).toEqual(kept)
  await beat({ standing: { clock_ms: 7 } })
  expect((await seen('older')).standing).toEqual({ clock_ms: 7 })
  await beat({ agents: [{ name: 'x', version: '1.0.0', doctor: 'wrong', text: `${'y'.repeat(500)}\ud800` }] })
  expect((await seen('older')).agents).toEqual([
    { name: 'x', version: '1.0.0', doctor: 'wrong', text: 'y'.repeat(300) },
  ])
})

test('what people have to do about a daemon', () => {
  const now = 1_800_000_000_000
  const fine = { disk_free: 5e9, outbox: { changes: 3, files: 0, oldest_at: now - 60_000 }, credentials_expire: [] }
  const agents = [{ name: 'git', version: '1.0.0', doctor: 'fine' }]
  expect(worriesOf({ agents: [] }, now)).toEqual([])
  expect(worriesOf({ agents, standing: null, token_expires_at: null }, now)).toEqual([])
  expect(worriesOf({ agents, standing: fine, token_expires_at: now + 15 * DAY }, now)).toEqual([])
  const standing = {
    disk_free: 4e8,
    outbox: { changes: 1, files: 2, oldest_at: now - 3_600_000 },
    credentials_expire: [
      { name: 'git', at: now - 3_600_000 },
      { name: 'crm', at: now + 2 * DAY },
      { name: 'chat', at: now + 20 * DAY },
    ],
  }
  const wrong = [{ name: 'git', version: '1.0.0', doctor: 'wrong' }]
  expect(worriesOf({ agents: wrong, standing, token_expires_at: now + DAY }, now)).toEqual([
    'the credential of git ended 1h ago',
    'the credential of crm ends in 2d',
    'its realm token ends in 1d',
    '381.5 MiB are free on its disk',
    '1 change and 2 files wait for the hub since 1h',
    'agent git is not ready',
  ])
})
