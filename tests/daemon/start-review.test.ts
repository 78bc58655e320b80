// An environment with `review`: a person approves a run before anything of it begins. Nothing of the run happens before, it
// waits over a kill, and who does not approve ends it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { openHome } from '../support/home-rows.ts'

const told = join(folder(), 'told')
const asked = join(folder(), 'asked')
/** Writes each event that it is told, and with which settings, into a file. */
const BELL = `
import { appendFileSync } from 'node:fs'
import { agent, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Rings.', settings: Type.Object({ host: Type.String() }),
  notify: {
    effect: 'idempotent', entry: Type.Object({}),
    async run(_, { event, settings: { host } }) {
      appendFileSync(${JSON.stringify(told)}, event.name + ' in ' + host + '\\n')
      return { text: 'rang' }
    },
  },
})
`
const SETTINGS = {
  agents: { bell: { host: 'plain' } },
  environments: {
    production: {
      agents: { bell: { host: 'production' } },
      secrets: { db: `\${cmd:echo asked >> ${asked}; echo canary-db-of-production}` },
      review: ['any'],
    },
    guarded: { review: ['ada', 'grace'] },
    open: { agents: { bell: { host: 'open' } }, secrets: { db: 'canary-db-of-open' } },
    nobody: { review: [] },
    persons: { review: ['person'] },
  },
}

let daemon: RunningDaemon
const home = folder()
beforeAll(async () => {
  mkdirSync(join(home, 'agents'), { recursive: true })
  writeFileSync(join(home, 'agents/bell.ts'), BELL)
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(SETTINGS), { mode: 0o600 })
  daemon = await spawnDaemon({ home })
}, 30_000)
afterAll(() => daemon.stop())

const WORK =
  '{ name: work, agent: exec, env: { DB: "{{ secrets.db }}" }, commands: [{ name: c, run: \'test -n "$DB"; echo worked >> "$LOG"\', env: { LOG: "{{ inputs.log }}" } }] }'
const team = (more = '', work = WORK) =>
  files({
    'team.yml': `name: "@local/deploy"
version: 1.0.0
${more}
inputs: [{ name: log, type: string, required: true }]
phases:
  - ${work}
  - { name: clean, agent: exec, always: true, depends_on: [work], commands: [{ name: c, run: 'echo cleaned >> "$LOG"', env: { LOG: "{{ inputs.log }}" } }] }
  - { name: tell, agent: bell, notify: [on_start, on_escalate, on_complete, on_cancel] }
`,
  })
const log = () => join(folder(), 'log')
const lines = (file: string) => (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
const start = async (body: object) => (await daemon.call('/v1/runs/start', body)).run_id as string
const get = (run_id: string) => daemon.call('/v1/runs/get', { run_id })
const local = () => ({ authorization: `Bearer ${daemon.token}` })
const decide = (review_id: string, decision: string, more: object = {}) =>
  daemon.post('/v1/reviews/decide', { review_id, decision, ...more }, local())
const reviewsOf = async (run_id: string) => (await daemon.call('/v1/reviews/list', { run_id })).reviews
const statesOf = async (run_id: string) => {
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
  return phases.map(({ name, state }: { name: string; state: string }) => `${name} ${state}`)
}
/** The messages of a run that listeners got, once they have got `count`. */
async function toldAfter(before: number, count: number): Promise<string[]> {
  while (lines(told).length < before + count) await Bun.sleep(10)
  return lines(told).slice(before)
}
async function restart(signal: 'SIGKILL' | 'SIGTERM') {
  if (signal === 'SIGKILL') await daemon.kill(signal)
  else await daemon.stop()
  const db = openHome(home)
  expect(brokenInvariants(db)).toEqual([])
  db.close()
  daemon = await spawnDaemon({ home })
}

test('nothing of a run happens before a person approves it, over a kill', async () => {
  const [file, path] = [log(), team()]
  const before = lines(told).length
  const run_id = await start({ path, environment: 'production', inputs: { log: file } })
  expect(await get(run_id)).toMatchObject({ state: 'awaiting_input', reason: 'review', environment: 'production' })
  const [review, ...others] = await reviewsOf(run_id)
  expect(others).toEqual([])
  expect(review).toMatchObject({
    ...{ run_id, kind: 'start', phase: null, state: 'pending', reason: 'review', form: [] },
    prompt: 'Run @local/deploy@1.0.0 in the environment production?',
  })
  // The message that it waits is none of the environment's, which is for approved runs.
  expect(await toldAfter(before, 1)).toEqual(['on_escalate in plain'])
  await restart('SIGKILL')
  const [kept] = await reviewsOf(run_id)
  expect(kept).toEqual({ ...review, expires_at: kept.expires_at, next: { phases: ['work', 'clean'], writes: [] } })
  // Its clock stood still while no process lived.
  expect(kept.expires_at).toBeGreaterThanOrEqual(review.expires_at)
  expect(await get(run_id)).toMatchObject({ state: 'awaiting_input', attempt: 1 })
  expect(await statesOf(run_id)).toEqual(['work pending', 'clean pending'])
  const why = await daemon.call('/v1/runs/why', { run_id })
  expect(why.lines[0]).toBe(
    `Run ${run_id} of @local/deploy in the environment production waits for an approval before anything of it begins.`,
  )
  expect(why.next).toContainEqual(['decide', review.id])
  expect([lines(file), lines(asked), lines(told).length]).toEqual([[], [], before + 1])

  const stream = await fetch(`${daemon.url}/v1/runs/stream?run_id=${run_id}`)
  const { status, body } = await decide(review.id, 'approve', { comment: 'go' })
  expect([status, body.data.decision]).toEqual([200, 'approve'])
  expect(body.data.decided_by).toStartWith('local:')
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed', reason: null, attempt: 1 })
  expect(await stream.text()).toContain('"state":"completed"')
  expect([lines(file), lines(asked)]).toEqual([['worked', 'cleaned'], ['asked']])
  expect(await toldAfter(before, 3)).toEqual([
    'on_escalate in plain',
    'on_start in production',
    'on_complete in production',
  ])
  expect((await decide(review.id, 'reject')).status).toBe(409)
  await restart('SIGTERM')
}, 60_000)

test('a rejected run ends, cancelled, and cleans nothing up; a resume asks again', async () => {
  const [file, path] = [log(), team()]
  const run_id = await start({ path, environment: 'production', inputs: { log: file } })
  const [review] = await reviewsOf(run_id)
  expect((await decide(review.id, 'complete')).status).toBe(400)
  expect((await decide(review.id, 'reject', { comment: 'not on Friday' })).status).toBe(200)
  const ended = await daemon.ended(run_id)
  expect(ended).toMatchObject({ state: 'cancelled', reason: 'rejected', error: { code: 'rejected' } })
  expect(ended.error?.message).toMatch(/^rejected by local:.*: not on Friday$/)
  expect(await statesOf(run_id)).toEqual(['work cancelled', 'clean cancelled'])
  expect((await daemon.call('/v1/runs/why', { run_id })).lines[0]).toContain('not on Friday')

  await daemon.call('/v1/runs/resume', { run_id })
  expect(await get(run_id)).toMatchObject({ state: 'awaiting_input', reason: 'review', attempt: 2 })
  const [again] = await reviewsOf(run_id)
  expect(again).toMatchObject({ kind: 'start', state: 'pending' })
  await daemon.call('/v1/runs/cancel', { run_id })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'cancelled', reason: 'cancelled' })
  expect(await reviewsOf(run_id)).toMatchObject([{ state: 'decided', decision: 'cancelled' }, { decision: 'reject' }])
  expect((await decide(again.id, 'approve')).status).toBe(409)
  expect(lines(file)).toEqual([])
}, 30_000)

test('an approval is for all attempts of a run, because they execute the same team with the same inputs', async () => {
  const [file, flag] = [log(), join(folder(), 'flag')]
  const path = team('', `{ name: work, agent: exec, commands: [{ name: c, run: 'test -e ${flag}' }] }`)
  const run_id = await start({ path, environment: 'production', inputs: { log: file } })
  const [review] = await reviewsOf(run_id)
  await decide(review.id, 'approve')
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'failed' })
  writeFileSync(flag, '')
  await daemon.call('/v1/runs/resume', { run_id })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed', attempt: 2 })
  expect(await reviewsOf(run_id)).toHaveLength(1)
}, 30_000)

test('only those decide whom the environment names', async () => {
  const path = files({
    'team.yml':
      'name: "@local/quiet"\nversion: 1.0.0\nphases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n',
  })
  const run_id = await start({ path, environment: 'guarded' })
  const [review] = await reviewsOf(run_id)
  const { status, body } = await decide(review.id, 'approve')
  expect(status).toBe(403)
  expect(body.error.message).toContain('the environment of this run asks ada, grace; you are local:')
  expect(await get(run_id)).toMatchObject({ state: 'awaiting_input' })
  expect((await daemon.call('/v1/runs/why', { run_id })).lines[0]).toContain('begins, by ada or grace.')
  await daemon.call('/v1/runs/cancel', { run_id })
  await daemon.ended(run_id)
})

test('a run whose environment asks nobody begins at once, and the form of `review` is checked', async () => {
  const [file, path] = [log(), team()]
  const run_id = await start({ path, environment: 'open', inputs: { log: file } })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed' })
  expect(await reviewsOf(run_id)).toEqual([])
  for (const [environment, text] of [
    ['nobody', 'environments.nobody.review in settings.yml: must be a list of 1 to 100 names of users, or [any]'],
    ['persons', 'environments.persons.review in settings.yml: does not know `person`'],
  ] as const) {
    const { status, body } = await daemon.post('/v1/runs/start', { path, environment, inputs: { log: file } })
    expect([status, body.error.message]).toEqual([400, expect.stringContaining(text)])
  }
})

test('runs of triggers, and of a concurrency key, wait in the same way', async () => {
  const file = log()
  const path = team('environments: { allow: [production] }\nconcurrency: { key: deploy }')
  const schedule = { kind: 'schedule', name: 'nightly', team: path, every: '90m', inputs: { log: file } }
  const added = await daemon.call('/v1/triggers/add', { ...schedule, environment: 'production' }, local())
  const { run_id } = await daemon.call('/v1/triggers/run_now', { trigger_id: added.id }, local())
  expect(await get(run_id)).toMatchObject({ state: 'awaiting_input', started_by: { kind: 'schedule' } })
  const next = await start({ path, environment: 'production', inputs: { log: file } })
  expect(await get(next)).toMatchObject({ state: 'queued' })
  expect(await reviewsOf(next)).toEqual([])
  await decide((await reviewsOf(run_id))[0].id, 'reject')
  await daemon.ended(run_id)
  while ((await get(next)).state === 'queued') await Bun.sleep(10)
  expect(await get(next)).toMatchObject({ state: 'awaiting_input' })
  expect(lines(file)).toEqual([])
  await restart('SIGKILL')
  await decide((await reviewsOf(next))[0].id, 'approve')
  expect(await daemon.ended(next)).toMatchObject({ state: 'completed' })
  expect(lines(file)).toEqual(['worked', 'cleaned'])
}, 60_000)

test('commands: run, plan, reviews, decide, doctor, settings set', async () => {
  const [file, path] = [log(), team()]
  const input = ['-i', `log=${file}`]
  const plan = (await command(['plan', path, '--env', 'production', ...input], { home })).stdout
  expect(plan).toMatch(/approved before it begins\n +by any/)
  const ran = await command(['run', path, '--env', 'production', ...input], { home })
  expect(ran.code).toBe(3)
  expect(ran.stderr).toContain('Run @local/deploy@1.0.0 in the environment production?')
  const shown = (await command(['reviews'], { home })).stdout
  expect(shown).toContain('takes approve or reject')
  const [, id] = /decide ([\w-]{36})/.exec(shown)!
  const wrong = await command(['decide', id!, 'skip'], { home })
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('takes approve or reject, not skip')])
  const decided = await command(['decide', id!, 'approve'], { home })
  expect([decided.code, decided.stderr]).toEqual([0, expect.stringContaining('approved the run')])
  const { runs } = await daemon.call('/v1/runs/list', { limit: 1 })
  expect(await daemon.ended(runs[0].run_id)).toMatchObject({ state: 'completed' })
  expect(lines(file)).toEqual(['worked', 'cleaned'])

  const set = (key: string, value: string) => command(['settings', 'set', key, value], { home })
  expect((await set('environments.qa.review', '["ada","grace"]')).code).toBe(0)
  expect((await set('environments.qa.review', 'any')).code).toBe(0)
  expect((await command(['settings', 'list'], { home })).stdout).toMatch(/environments\.qa\.review +\["any"\]/)
  for (const value of ['[]', '[1]', '["person"]']) expect((await set('environments.qa.review', value)).code).toBe(2)
  expect((await command(['doctor'], { home })).stdout).toMatch(/environments\.nobody\.review +must be a list/)
}, 60_000)
