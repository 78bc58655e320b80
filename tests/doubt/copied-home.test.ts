// A home that was copied knows it: what was unfinished in the copy waits for a person, and nothing that may have been
// written since is written again without asking. Real daemons, real copies in the middle of a run, a vendor that counts.

import { afterEach, expect, test } from 'bun:test'
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type CountingVendor, copyOf, countingVendor, homeWithFinds, writer } from '../support/copied-home.ts'
import { command, files, type SpawnOptions, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { rowsOf } from '../support/home.ts'
import { type ServedDaemon, serveDaemon } from '../support/served-daemon.ts'
import { standing } from '../support/standing.ts'

const vendors: CountingVendor[] = []
afterEach(() => Promise.all(vendors.splice(0).map(vendor => vendor.stop())))

function vendorOf(): CountingVendor {
  const vendor = countingVendor()
  vendors.push(vendor)
  return vendor
}

const stateOf = async (daemon: Pick<ServedDaemon, 'call'>, run_id: string) =>
  (await daemon.call('/v1/runs/get', { run_id })).state
const start = (daemon: Pick<ServedDaemon, 'call'>, path: string) =>
  daemon.call<{ run_id: string }>('/v1/runs/start', { path }).then(({ run_id }) => run_id)

/** A run that has written `one`, is writing `two`, and will write `three`, and a copy of its home from that moment. */
const copied = (agent: 'finds' | 'chooses' | 'http') => copiedFrom(serveDaemon, agent)

async function copiedFrom<D extends Pick<ServedDaemon, 'home' | 'call'>>(
  serve: (options: SpawnOptions) => Promise<D>,
  agent: 'finds' | 'chooses' | 'http',
) {
  const vendor = vendorOf()
  vendor.hold('two')
  const original = await serve({ home: homeWithFinds() })
  const run = await start(original, files({ 'team.yml': writer(agent, vendor, 'one', 'two', 'three') }))
  await vendor.wrote('two')
  return { vendor, original, run, copy: copyOf(original.home) }
}

const ONCE_EACH = { one: 1, two: 1, three: 1 }

test('a copy goes on with nothing until a person resumes it, and then finds what was written', async () => {
  const { vendor, original, run, copy } = await copied('finds')
  vendor.release()
  expect((await original.ended(run)).state).toBe('completed')
  expect(vendor.written()).toEqual(ONCE_EACH)

  const second = await serveDaemon({ home: copy })
  expect(second.output.stderr).toContain('this home was copied')
  expect(second.output.stderr).toContain(original.home)
  expect(await stateOf(second, run)).toBe('interrupted')
  // The daemon has begun to do what it will do by itself.
  const other = await start(second, files({ 'team.yml': writer('finds', vendor, 'other') }))
  expect((await second.ended(other)).state).toBe('completed')
  expect(await stateOf(second, run)).toBe('interrupted')

  const said = await command(['status'], { home: copy })
  expect(said.stdout).toContain('was copied')
  expect(said.stdout).toContain(`resume`)
  const { problems, copied: told } = await standing(copy)
  expect(told).toMatchObject({ runs: 1, from: { folder: original.home } })
  expect(problems.join('\n')).toContain('1 run was unfinished')
  expect((await command(['why', run], { home: copy })).stdout).toContain('copied')

  const { data: health } = (await (await fetch(`${second.url}/health`)).json()) as { data: { copied: object } }
  expect(health.copied).toEqual({ at: expect.any(Number), runs: 1 })

  // A restart is no answer.
  await second.stop()
  const third = await serveDaemon({ home: copy })
  expect(await stateOf(third, run)).toBe('interrupted')
  expect(vendor.written()).toEqual({ ...ONCE_EACH, other: 1 })

  expect((await command(['resume', run], { home: copy })).code).toBe(0)
  expect(vendor.written()).toEqual({ ...ONCE_EACH, other: 1 })
  expect(await stateOf(third, run)).toBe('completed')
  const { copied: after } = await standing(copy)
  expect(after.runs).toBe(0)
}, 60_000)

test('where nobody can be asked, a person is, and a person is asked once', async () => {
  const { vendor, original, run, copy } = await copied('http')
  vendor.release()
  expect((await original.ended(run)).state).toBe('completed')
  const second = await serveDaemon({ home: copy })
  const resumed = await command(['resume', run], { home: copy })
  expect([resumed.code, vendor.written()]).toEqual([3, ONCE_EACH])
  const open = async () => (await second.call('/v1/reviews/list', { state: 'pending' })).reviews
  const [asked] = await until(async () => (await open()).length > 0 && open(), 'the first question')
  expect(asked).toMatchObject({ phase: 'two', entries: ['it'] })
  expect(asked.prompt).toContain('copied')
  const decide = (id: string, decision: string) =>
    second.call('/v1/reviews/decide', { review_id: id, decision }, { authorization: `Bearer ${second.token}` })
  await decide(asked.id, 'complete')
  // The copy has no receipt of the third write, which the original sent after the copy was made.
  const [next] = await until(async () => (await open()).length > 0 && open(), 'the second question')
  expect([next.phase, next.prompt, vendor.written()]).toEqual(['three', expect.stringContaining('copied'), ONCE_EACH])
  // This person wants it again, and is not asked the same again.
  await decide(next.id, 'retry')
  expect((await second.ended(run)).state).toBe('completed')
  expect(vendor.written()).toEqual({ ...ONCE_EACH, three: 2 })
}, 60_000)

test('what the original wrote under an id that it chose after the copy is not taken for absent', async () => {
  const { vendor, original, run, copy } = await copied('chooses')
  vendor.release()
  expect((await original.ended(run)).state).toBe('completed')
  const second = await serveDaemon({ home: copy, env: { CADRE_SETTLE: '100ms' } })
  expect((await command(['resume', run], { home: copy })).code).toBe(3)
  const { reviews } = await second.call('/v1/reviews/list', { state: 'pending' })
  // The id of the second write stands in the copy, so that one was found.
  expect(reviews).toMatchObject([{ phase: 'three', prompt: expect.stringContaining('only the other home knows') }])
  expect(vendor.written()).toEqual(ONCE_EACH)
}, 60_000)

test('nothing of a sub-run that only one of the two homes knows is concluded from a search', async () => {
  const vendor = vendorOf()
  vendor.hold('gate')
  const path = files({
    'team.yml': `name: "@local/each"
version: 1.0.0
phases:
  - { name: gate, agent: finds, target_entries: [{ name: it, url: "${vendor.url}/gate" }] }
  - { name: each, type: map, depends_on: [gate], items: [a, b], team: ./one, inputs: { name: "{{ item }}" } }
`,
    'one/team.yml': `name: "@local/one"
version: 1.0.0
inputs: [{ name: name, type: string }]
phases:
  - { name: write, agent: finds, target_entries: [{ name: it, url: "${vendor.url}/of-{{ inputs.name }}" }] }
`,
  })
  const original = await serveDaemon({ home: homeWithFinds() })
  const run = await start(original, path)
  await vendor.wrote('gate')
  const copy = copyOf(original.home)
  vendor.release()
  expect((await original.ended(run)).state).toBe('completed')
  const second = await serveDaemon({ home: copy })
  expect((await command(['resume', run], { home: copy })).code).toBe(3)
  expect(vendor.written()).toEqual({ gate: 1, 'of-a': 1, 'of-b': 1 })
  const { reviews } = await second.call('/v1/reviews/list', { state: 'pending' })
  expect(reviews.map(({ phase }: { phase: string }) => phase)).toEqual(['write', 'write'])
}, 60_000)

test('a question of a copy is answered only after its run was resumed, and messages are not sent again', async () => {
  const vendor = vendorOf()
  const hook = `${vendor.url}/told`
  const path = files({
    'team.yml': `name: "@local/asks"
version: 1.0.0
phases:
  - { name: gate, type: gate, review: { prompt: Go?, reviewers: [any] } }
  - { name: after, agent: http, depends_on: [gate], target_entries: [{ name: it, url: "${vendor.url}/after", method: POST, body: x }] }
  - name: tell
    agent: chat
    notify: { on_start: { channels: [team] } }
`,
  })
  const home = homeWithFinds()
  const settings = `agents: { chat: { channels: { team: "${hook}" } } }\n`
  writeFileSync(join(home, 'settings.yml'), settings, { mode: 0o600 })
  vendor.hold('told')
  const original = await serveDaemon({ home })
  const run = await start(original, path)
  await vendor.wrote('told')
  await until(async () => (await stateOf(original, run)) === 'awaiting_input', 'the question')
  const copy = copyOf(home)
  vendor.release()
  await original.stop()

  const second = await serveDaemon({ home: copy })
  const { reviews } = await second.call('/v1/reviews/list', { state: 'pending' })
  const answer = { review_id: reviews[0].id, decision: 'approve' }
  const local = { authorization: `Bearer ${second.token}` }
  const refused = await second.post('/v1/reviews/decide', answer, local)
  expect([refused.status, refused.body.error.code]).toEqual([409, 'invalid_state'])
  expect(refused.body.error.message).toContain('resume')
  await second.call('/v1/runs/resume', { run_id: run })
  await second.call('/v1/reviews/decide', answer, local)
  const { deliveries } = await second.call('/v1/runs/get', { run_id: run })
  expect(deliveries).toMatchObject([{ event: 'on_start', state: 'unknown' }])
  expect(vendor.written()).toEqual({ told: 1 })
}, 60_000)

test('a copy can be cancelled, and what was not begun is not begun', async () => {
  const { vendor, original, run, copy } = await copied('http')
  vendor.release()
  await original.ended(run)
  const second = await serveDaemon({ home: copy })
  expect((await command(['cancel', run], { home: copy })).code).toBe(0)
  expect((await second.ended(run)).state).toBe('cancelled')
  expect(vendor.written()).toEqual(ONCE_EACH)
}, 60_000)

test('a command without a daemon holds the runs of a copy back, too', async () => {
  const { vendor, original, run, copy } = await copied('finds')
  vendor.release()
  await original.ended(run)
  // Before anything was started there, the copy is known as one, too.
  const before = await standing(copy)
  expect(before.problems.join('\n')).toContain('not where it was')
  expect(before.problems.join('\n')).not.toContain('to continue')
  const path = files({ 'team.yml': writer('finds', vendor, 'other') })
  const ran = await command(['run', path], { home: copy })
  expect([ran.code, ran.stderr]).toEqual([0, expect.stringMatching(/was copied or moved.*status/)])
  expect(ran.stderr).not.toContain('serve')
  const second = await serveDaemon({ home: copy })
  expect(await stateOf(second, run)).toBe('interrupted')
  expect(vendor.written()).toEqual({ ...ONCE_EACH, other: 1 })
}, 60_000)

test('the same home at the same place goes on by itself, whatever becomes of the process', async () => {
  const { vendor, original, run } = await copiedFrom(spawnDaemon, 'finds')
  const { home } = original
  await original.kill('SIGKILL')
  // The start dies at each of its steps in turn: no half step looks like a copy.
  for (let step = 1; step <= 4; step++) {
    await spawnDaemon({ home, env: { CADRE_FAILPOINT: String(step) } }).then(
      daemon => daemon.kill('SIGKILL'),
      () => {},
    )
  }
  // The name of the folder is no part of its identity.
  const renamed = join(folder(), 'renamed')
  renameSync(home, renamed)
  vendor.release()
  const again = await serveDaemon({ home: renamed })
  expect(again.output.stderr).not.toContain('copied')
  expect((await again.ended(run)).state).toBe('completed')
  expect(vendor.written()).toEqual(ONCE_EACH)
}, 60_000)

test('a database that was put back from an earlier copy in its own file is noticed', async () => {
  // Processes, for this one would keep the files open.
  const { vendor, original, run, copy } = await copiedFrom(spawnDaemon, 'finds')
  vendor.release()
  await original.ended(run)
  await original.stop()
  const { home } = original
  await (await spawnDaemon({ home })).stop()
  // The files stay the same ones, and get the content of the copy.
  for (const file of ['daemon.db', 'daemon.db-wal', 'place'])
    writeFileSync(join(home, file), readFileSync(join(copy, file)))
  rmSync(join(home, 'daemon.db-shm'), { force: true })
  const again = await serveDaemon({ home })
  expect(await stateOf(again, run)).toBe('interrupted')
  expect(again.output.stderr).toContain('an earlier copy')
  expect(vendor.written()).toEqual(ONCE_EACH)
}, 60_000)

test('a lock that was copied along is no lock, and processes of the original are left alone', async () => {
  const original = await spawnDaemon({ home: homeWithFinds() })
  const marker = join(folder(), 'pid')
  const run = await start(
    original,
    files({
      'team.yml': `name: "@local/long"
version: 1.0.0
phases:
  - { name: long, agent: exec, commands: [{ name: wait, run: "echo $$ > ${marker}; exec sleep 600" }] }
`,
    }),
  )
  await until(() => existsSync(marker) && readFileSync(marker, 'utf8').trim() !== '', 'the command')
  const pid = Number(readFileSync(marker, 'utf8'))
  const copy = copyOf(original.home)
  expect(JSON.parse(readFileSync(join(copy, 'daemon.lock'), 'utf8')).pid).toBe(original.pid)
  // A command does not work through the process of the original, and the copy can be served beside it.
  expect((await standing(copy)).daemon).toBeNull()
  const second = await serveDaemon({ home: copy })
  expect(await stateOf(second, run)).toBe('interrupted')
  expect(await stateOf(original, run)).toBe('running')
  expect(() => process.kill(pid, 0)).not.toThrow()
  await original.call('/v1/runs/cancel', { run_id: run })
}, 60_000)

test('a copy of a copy holds back what the first copy had resumed', async () => {
  const { vendor, original, run, copy } = await copied('http')
  vendor.release()
  await original.ended(run)
  const second = await spawnDaemon({ home: copy })
  expect((await command(['resume', run], { home: copy })).code).toBe(3)
  const again = copyOf(copy)
  await command(['decide', 'last', 'complete'], { home: copy })
  const third = await serveDaemon({ home: again })
  const trees = [copy, again].map(home => rowsOf(home, 'SELECT root_id, found_at, last_row FROM copied_trees'))
  expect(trees[1]).toEqual(trees[0]!)
  const answer = await command(['decide', 'last', 'retry'], { home: again })
  expect([answer.code, answer.stderr]).toEqual([2, expect.stringContaining('was unfinished when this home was copied')])
  await third.call('/v1/runs/resume', { run_id: run })
  await command(['decide', 'last', 'complete'], { home: again })
  expect(vendor.written()).toEqual(ONCE_EACH)
  await second.stop()
}, 60_000)

test('a mark that somebody removed counts as another place, and says so', async () => {
  const { vendor, original, run } = await copiedFrom(spawnDaemon, 'finds')
  const { home } = original
  await original.kill('SIGKILL')
  rmSync(join(home, 'place'))
  const again = await serveDaemon({ home })
  expect(again.output.stderr).toContain(`${join(home, 'place')} is missing`)
  expect(await stateOf(again, run)).toBe('interrupted')
  expect(vendor.written()).toEqual({ one: 1, two: 1 })
}, 60_000)
