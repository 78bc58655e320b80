// The commands of triggers with `--realm`: they act in the realm, and leave the triggers of the home alone.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Finding } from '../../lib/daemon/runs/agent-checks.ts'
import { command, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { post, signed } from '../support/hooks.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { environmentAt } from '../support/program.ts'
import { TEAM } from '../support/realm-triggers.ts'

const ROOT = join(import.meta.dir, '../..')

let hub: TestHub
let home: string
let key: string
const cadre = (...args: string[]) => command(args, { home, env: { CADRE_HUB_URL: hub.url, CADRE_API_KEY: key } })
const inRealm = async (...args: string[]) => {
  const { code, stdout, stderr } = await cadre(...args, '--realm', 'admin', '--json')
  expect([args, code, code === 0 ? '' : stderr]).toEqual([args, 0, ''])
  return JSON.parse(stdout)
}

beforeAll(async () => {
  hub = await startTestHub()
  home = folder()
  key = (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'ci' })).token
  await hub.addTeam(TEAM)
})
afterAll(() => hub.stop())

test('a schedule of a realm is added, shown, changed and removed', async () => {
  const cron = ['--cron', '0 6 * * 1-5', '--tz', 'Europe/Berlin', '-i', 'day={{ slot }}', '-i', 'many=2']
  const added = await cadre('schedules', 'add', '@admin/digest', ...cron, '--realm', 'admin', '--workspace', 'src/app')
  expect([added.code, added.stdout.split('\n')[0], added.stderr]).toEqual([
    ...[0, 'digest  active  at 06:00, Monday to Friday, Europe/Berlin'],
    'a slot missed by more than 5m is skipped; --catch-up last starts it later\n',
  ])
  const shown = await inRealm('triggers', 'show', 'digest')
  expect(shown).toMatchObject({ owner: 'admin', workspace: 'src/app', inputs: { day: '{{ slot }}', many: 2 } })
  const text = await cadre('triggers', 'show', 'digest', '--realm', hub.realm)
  expect(text.stdout).toContain('admin, with whose rights its runs start')
  expect((await cadre('triggers')).stderr).toStartWith('none\n')
  expect((await inRealm('schedules')).triggers).toHaveLength(1)
  expect((await inRealm('triggers', 'preview', 'digest', '--limit', '3')).slots).toHaveLength(3)
  expect(await inRealm('triggers', 'update', 'digest', '--name', 'weekdays', '--when', 'true')).toMatchObject({
    ...{ name: 'weekdays', when: 'true', revision: 2 },
  })
  expect((await inRealm('triggers', 'pause', 'weekdays', '--reason', 'the wiki is moved')).state).toBe('paused')
  const why = await cadre('why', 'weekdays', '--realm', 'admin')
  expect(why.stdout).toContain('by admin: the wiki is moved')
  expect(why.stdout).toContain('triggers resume weekdays --realm admin')
  expect((await inRealm('triggers', 'resume', 'weekdays')).state).toBe('active')
  expect((await inRealm('triggers', 'take', 'weekdays')).owner).toBe('admin')
  for (const [word, state] of Object.entries({ disable: 'disabled', enable: 'active' })) {
    expect((await inRealm('triggers', word, 'weekdays')).state).toBe(state)
  }
  const removed = await cadre('triggers', 'remove', 'weekdays', '--realm', 'admin')
  expect([removed.code, removed.stdout]).toEqual([0, 'removed weekdays\n'])
  expect((await cadre('why', 'weekdays', '--realm', 'admin')).code).toBe(2)
})

test('a run is started by hand for a daemon of the realm, and once more', async () => {
  await inRealm('schedules', 'add', '@admin/digest', '--cron', '@yearly', '--name', 'yearly')
  const ran = await cadre('triggers', 'run', 'yearly', '--realm', 'admin')
  expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining('a daemon of the realm takes the run')])
  const run_id = ran.stdout.trim()
  expect((await hub.ok(hub.admin, 'runs/get', { run_id })).started_by).toMatchObject({ manual: { by: 'admin' } })
  // It waits for a daemon, so the next one is skipped.
  const again = await cadre('triggers', 'run', 'yearly', '--realm', 'admin')
  expect([again.code, again.stdout]).toEqual([2, expect.stringContaining(run_id)])
  const { firings } = await inRealm('triggers', 'firings', 'yearly')
  expect(firings.map(({ state }: { state: string }) => state)).toEqual(['skipped', 'started'])
  const refired = await inRealm('triggers', 'refire', firings[1].id.slice(0, 30), '--again').catch(() => null)
  expect(refired).toBeNull()
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  expect(await inRealm('triggers', 'refire', firings[1].id, '--again')).toMatchObject({ state: 'started' })
})

test('a chain of a realm is added, changed and tried', async () => {
  await hub.addTeam(TEAM.replace('@admin/digest', '@admin/build'))
  const chain = ['chains', 'add', '@admin/digest', '--after', '@admin/build', '--name', 'after-build']
  const added = await cadre(...chain, '--on', 'completed,failed', '-i', 'day={{ run.state }}', '--realm', 'admin')
  expect([added.code, added.stdout.split('\n')[0]]).toEqual([
    ...[0, 'after-build  active  after each run of @admin/build that has completed or failed'],
  ])
  expect((await inRealm('chains')).triggers).toMatchObject([{ name: 'after-build', after: '@admin/build' }])
  expect(await inRealm('chains', 'update', 'after-build', '--on', 'failed')).toMatchObject({ on: ['failed'] })
  const none = await cadre('triggers', 'run', 'after-build', '--realm', 'admin')
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('no run of @admin/build has failed yet')])
  await inRealm('triggers', 'remove', 'after-build')
})

test('what a package declares is enabled in a realm', async () => {
  const weekly = (day: string, version: string) => `name: "@admin/weekly"
version: ${version}
inputs: [{ name: day, type: string, default: "" }]
triggers:
  - { name: mondays, schedule: { cron: "0 7 * * MON" }, inputs: { day: "${day}" } }
  - { name: told, hook: { scheme: github } }
phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]
`
  await hub.addTeam(weekly('a', '1.0.0'))
  const enabled = await cadre('triggers', 'enable', '@admin/weekly', 'mondays', '--realm', 'admin')
  expect([enabled.code, enabled.stdout.split('\n')[0]]).toEqual([0, 'mondays  active  at 07:00, Monday, UTC'])
  const secret = join(folder(), 'secret')
  await Bun.write(secret, 'a-secret-of-the-sender')
  const told = await inRealm('triggers', 'enable', '@admin/weekly', 'told', '--secret', `@${secret}`)
  expect(told).toMatchObject({ kind: 'hook', scheme: 'github', source: { team: '@admin/weekly', version: '1.0.0' } })
  await hub.addTeam(weekly('b', '1.1.0'))
  const run = await cadre('triggers', 'run', 'mondays', '--realm', 'admin')
  expect([run.code, run.stdout]).toEqual([2, expect.stringContaining('the spec of mondays changed in 1.1.0')])
  expect(await inRealm('triggers', 'update', 'mondays', '--keep')).toMatchObject({
    state: 'active',
    inputs: { day: 'a' },
  })
  expect((await cadre('triggers', 'run', 'mondays', '--realm', 'admin')).code).toBe(0)
  const again = await inRealm('triggers', 'enable', '@admin/weekly', 'mondays')
  expect(again).toMatchObject({ inputs: { day: 'b' }, source: { version: '1.1.0' } })
  for (const name of ['mondays', 'told']) await inRealm('triggers', 'remove', name)
})

test('slots of the past are printed, and started', async () => {
  await inRealm('schedules', 'add', '@admin/digest', '--cron', '0 * * * *', '--name', 'hourly')
  const would = await cadre('schedules', 'backfill', 'hourly', '--from', '1d', '--dry-run', '--realm', 'admin')
  expect([would.code, would.stderr]).toEqual([0, '24 slots would start\n24 of them were due before hourly was added\n'])
  const { firings, left } = await inRealm('schedules', 'backfill', 'hourly', '--from', '1d', '--most', '2')
  expect([firings.length, left]).toEqual([2, 22])
  await inRealm('triggers', 'remove', 'hourly')
})

test('status and doctor name triggers of the realm that are refused, in the same words', async () => {
  const wrong = ['--cron', '@yearly', '--name', 'wrong', '-i', 'day={{ slot == now }}']
  await inRealm('schedules', 'add', '@admin/digest', ...wrong)
  expect((await cadre('triggers', 'run', 'wrong', '--realm', 'admin')).code).toBe(2)
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const enrolled = await command(['enrol', '--hub', hub.url], { home, stdin: token })
  expect([enrolled.code, enrolled.stderr]).toEqual([0, ''])
  const daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: hub.url } })
  const [status, doctor] = [await cadre('status', '--json'), await cadre('doctor', '--json')]
  await daemon.stop()
  const { hub: seen, problems } = JSON.parse(status.stdout)
  expect(seen.wrong_triggers).toEqual([{ name: 'wrong', text: expect.stringContaining('refused at ') }])
  const text = expect.stringMatching(/^trigger wrong of realm admin: refused at .* why wrong --realm admin$/)
  expect(problems).toContainEqual(text)
  const found: Finding[] = JSON.parse(doctor.stdout)
  const { agent, text: why } = found.find(({ state }) => state === 'wrong')!
  expect([doctor.code, problems]).toEqual([1, expect.arrayContaining([`${agent}: ${why}`])])
  await cadre('triggers', 'remove', 'wrong', '--realm', 'admin')
}, 60_000)

test('the hub that does not answer, and the realm that is not there', async () => {
  const away = await command(['triggers', '--realm', 'admin'], {
    home,
    env: { CADRE_HUB_URL: 'http://127.0.0.1:9', CADRE_API_KEY: key },
  })
  expect(away.code).toBe(1)
  expect((await cadre('triggers', '--realm', 'nowhere')).code).toBe(2)
})

test('the commands of docs/triggers.md, as they stand', async () => {
  const text = await Bun.file(join(ROOT, 'docs/triggers.md')).text()
  const [, commands] = /^```sh skip realm\n(.*?)^```$/ms.exec(text)!
  const realm = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'prod', name: 'Production' })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id: realm.id, team: '@admin/digest' })
  const script = `set -e; cadre() { ${[process.execPath, join(ROOT, 'daemon.ts')].map(quoted).join(' ')} "$@"; }\n${commands}`
  const shell = Bun.spawn(['bash', '-c', script.replaceAll('@acme/', '@admin/')], {
    cwd: home,
    env: { ...environmentAt(home), CADRE_HOME: home, CADRE_HUB_URL: hub.url, CADRE_API_KEY: key },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([shell.stdout.text(), shell.stderr.text()])
  expect([await shell.exited, err]).toEqual([0, expect.stringContaining('a daemon of the realm takes the run')])
  expect(out).toEndWith('removed nightly\n')
})

const quoted = (word: string) => `'${word}'`

test('a hook of a realm is added with a secret from a file, and its address is that of the hub', async () => {
  const file = join(home, 'secret.txt')
  await Bun.write(file, 'a secret that nobody guesses\n')
  const hook = ['--scheme', 'github', '--secret', `@${file}`, '--name', 'opened', '-i', 'day={{ body.day }}']
  const added = await cadre('hooks', 'add', '@admin/digest', ...hook, '--realm', 'admin')
  expect([added.code, added.stderr]).toEqual([0, ''])
  expect(added.stdout).toContain('then  In the settings of the repository or organisation, add a webhook with the URL')
  const [, url = ''] = /url +(\S+)/.exec(added.stdout) ?? []
  expect(url).toStartWith(`${hub.url}/v1/hooks/`)
  const body = '{"day":"Monday"}'
  const sent = await post(url, body, signed(body, 'g-1', 'a secret that nobody guesses'))
  expect([sent.status, sent.body.data.state]).toEqual([202, 'started'])
  const { firings } = await inRealm('hooks', 'firings', 'opened', '--body')
  expect(firings[0].delivery.body).toBe(body)
  const { secrets } = await inRealm('hooks', 'show', 'opened')
  await Bun.write(file, 'another secret')
  const changed = await inRealm(
    'hooks',
    'update',
    'opened',
    '--add-secret',
    `@${file}`,
    '--expire-secret',
    secrets[0].id,
  )
  expect(changed.secrets).toHaveLength(2)
  expect((await inRealm('hooks')).triggers).toHaveLength(1)
})
