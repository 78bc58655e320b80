// What the command line says about runs that stumble: attempts that failed, logs without lines, answers that do not
// fit, teams by a bare name, plans, and listeners that could not deliver.

import { beforeAll, expect, test } from 'bun:test'
import { readChoice } from '../../lib/daemon/cli/kit/form.ts'
import { drawRun } from '../../lib/daemon/cli/terminal/draw-run.ts'
import { RunModel } from '../../lib/daemon/cli/terminal/run-model.ts'
import { createPaint } from '../../lib/text/printable.ts'
import type { RunEvent } from '../../lib/wire/records/run-records.ts'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon()
})

const team = (name: string, phases: string) =>
  files({
    'team.yml': `name: "@local/${name}"
version: 1.0.0
phases: [${phases}]
`,
  })
const say = (...args: string[]) => command(args, { home: daemon.home })

test('an attempt that is followed by another one is told with its error; a log without lines says so', async () => {
  const phase =
    '{ name: work, agent: exec, retry: { attempts: 2, backoff: 500ms }, commands: [{ name: c, run: "exit 3" }] }'
  const { code, stderr } = await say('run', team('tries', phase))
  expect(code).toBe(1)
  expect(stderr.split('\n').map(line => line.slice(10))).toContainEqual(
    expect.stringMatching(/^tries again +work {2}attempt 1 of 2: command c exited with code 3$/),
  )
  const { stdout } = await say('logs', 'last', '--failed')
  expect(stdout.slice(10)).toBe('work | failed: command c exited with code 3\n')
  expect(await say('logs', 'last', '--phase', 'work')).toEqual({ code: 0, stdout, stderr: '' })
  const since = await say('logs', 'last', '--since', '2999-01-01')
  expect(since).toEqual({ code: 0, stdout: '', stderr: 'no lines\n' })
  const misspelt = await say('logs', 'last', '--phase', 'wrok')
  expect([misspelt.code, misspelt.stderr]).toEqual([
    2,
    'error  there is no phase wrok (did you mean `work`?): there are work\n',
  ])
})

test('the drawn tree keeps the error of the last attempt while the next one runs', () => {
  const model = new RunModel('r')
  const run = {
    run_id: 'r',
    run_name: null,
    root_run_id: 'r',
    parent_run_id: null,
    parent_phase: null,
    team: '@local/t',
  }
  const times = { started_at: 1, completed_at: null }
  const apply = (event: string, data: object) => model.apply({ event, data: { ...run, ...times, ...data } } as RunEvent)
  const draw = () =>
    drawRun(model.root!, { paint: createPaint({}), now: 2, live: false, columns: 100, rows: 20 })
      .slice(1)
      .map(String)
  apply('run', { state: 'running', error: null })
  const phase = { name: 'work', type: 'standard', position: 0, items: null, max_attempts: 3 }
  const failed = {
    state: 'pending',
    reason: 'retry',
    attempt: 1,
    failures: 1,
    error: { code: 'x', message: 'no\nspace' },
  }
  apply('phase', { ...phase, ...failed })
  expect(draw()).toEqual(['  ○ work  tries again', '    attempt 1 of 3: no / space'])
  apply('phase', { ...phase, state: 'running', reason: null, attempt: 2, failures: 1, error: null })
  expect(draw()).toEqual([expect.stringMatching(/^ {2}● work/), '    attempt 1 of 3: no / space'])
  apply('phase', { ...phase, state: 'completed', reason: null, attempt: 2, failures: 1, error: null })
  expect(draw()).toHaveLength(1)
})

test('the drawn tree names the environment of its run in its first line, where it has one', () => {
  const firstLine = (environment?: string | null) => {
    const model = new RunModel('r')
    const run = { run_id: 'r', root_run_id: 'r', parent_run_id: null, parent_phase: null, run_name: 'night' }
    const data = {
      ...run,
      team: '@local/t',
      state: 'running',
      error: null,
      started_at: 1,
      completed_at: null,
      environment,
    }
    model.apply({ event: 'run', data } as RunEvent)
    return String(drawRun(model.root!, { paint: createPaint({}), now: 2, live: false, columns: 100, rows: 20 })[0])
  }
  expect(firstLine('production')).toMatch(/ @local\/t night in production /)
  expect(firstLine(null)).toMatch(/ @local\/t night {2}/)
  expect(firstLine()).toBe(firstLine(null))
})

test('an answer that is wrong is told what is missing, once', async () => {
  expect(readChoice('', ['approve', 'reject'])).toEqual({ wrong: 'please answer: approve, reject' })
  expect(readChoice('re', ['retry', 'reject'])).toEqual({ wrong: 're may be retry or reject' })
  expect(readChoice('nope', ['approve', 'reject'])).toEqual({ wrong: 'nope is not an answer: approve, reject' })
  expect(readChoice(' App', ['approve', 'reject'])).toEqual({ choice: 'approve' })

  const gate =
    '{ name: ask, type: gate, review: { prompt: Ship?, reviewers: [any], inputs: [{ name: version, type: string, required: true }] } }'
  expect((await say('run', team('asks', gate))).code).toBe(3)
  expect(await say('decide', 'last', 'approve')).toMatchObject({
    code: 2,
    stderr: `error  the form lacks version (string): give it with --values '{"version":"…"}'\n`,
  })
  const fails = '{ name: work, agent: exec, on_failure: escalate, commands: [{ name: c, run: "echo out; exit 3" }] }'
  expect((await say('run', team('escalates', fails))).code).toBe(3)
  expect(await say('decide', 'last', 'approve')).toMatchObject({
    code: 2,
    stderr: 'error  this review is an escalation, which takes retry, skip, complete or fail, not approve\n',
  })

  // What the attempts of its phase said stands apart.
  const escalation = async () => {
    const { reviews } = await daemon.call('/v1/reviews/list', { state: 'pending' })
    return (reviews as { id: string; kind: string }[]).find(({ kind }) => kind === 'escalation')?.id
  }
  const first = await escalation()
  const token = { authorization: `Bearer ${daemon.token}` }
  await daemon.call('/v1/reviews/decide', { review_id: first, decision: 'retry' }, token)
  await until(async () => ![first, undefined].includes(await escalation()), 'the review of the second attempt')
  expect((await say('reviews')).stdout).toContain('\n  | out\n  | (attempt 2)\n  | out\n')
})

test('a plan shows attempts, time-outs, cleanup, what a failure does, and which gate asks a person', async () => {
  const phases = `{ name: copy, agent: exec, retry: { attempts: 3, backoff: 1s }, timeout: 5m, commands: [{ name: c, run: "true" }] },
  { name: look, depends_on: [copy], type: gate, commands: [{ name: c, run: "true" }] },
  { name: ask, depends_on: [look], type: gate, review: { prompt: Ship?, reviewers: [ada, bob] } },
  { name: any, depends_on: [ask], type: gate, on_failure: escalate, review: { prompt: Ship?, reviewers: [any] } },
  { name: sweep, agent: exec, always: true, on_failure: continue, depends_on: [any], commands: [{ name: c, run: "true" }] }`
  const { stdout } = await say('plan', team('planned', phases))
  expect(stdout.split('\n').slice(1, 6)).toEqual([
    expect.stringMatching(/^ {2}copy +exec +3 attempts; timeout 5m$/),
    expect.stringMatching(/^ {2}look +gate +after copy$/),
    expect.stringMatching(/^ {2}ask +gate +after look; asks ada, bob$/),
    expect.stringMatching(/^ {2}any +gate +after ask; asks a person; on_failure: escalate$/),
    expect.stringMatching(/^ {2}sweep +exec +after any; always; on_failure: continue$/),
  ])
})

test('runs of a team are found by its bare name, too', async () => {
  expect((await say('run', team('bare', '{ name: a, agent: exec, commands: [{ name: c, run: "true" }] }'))).code).toBe(
    0,
  )
  expect(await say('runs', '--team', 'bare')).toMatchObject({
    stdout: expect.stringContaining('@local/bare'),
    stderr: '',
  })
  expect((await daemon.call('/v1/runs/list', { team: 'bar' })).total).toBe(0)
})

test('a listener that could not deliver is mentioned at the end, with what to do', async () => {
  using hook = Bun.serve({
    ...{ port: 0, hostname: '127.0.0.1' },
    fetch: ({ url }) => new Response('closed', { status: url.endsWith('/gone') ? 404 : 403 }),
  })
  const token = { authorization: `Bearer ${daemon.token}` }
  await daemon.call(
    '/v1/settings/set',
    { key: 'agents.chat.channels', value: { ops: hook.url.href, dev: `${hook.url}gone` } },
    token,
  )
  const phases = `{ name: a, agent: exec, commands: [{ name: c, run: "true" }] },
  { name: tell, agent: chat, notify: { on_start: { channels: [ops] }, on_complete: { channels: [ops] },
    on_phase_complete: { channels: [dev] } } }`
  const { code, stderr } = await say('run', team('tells', phases))
  expect(code).toBe(0)
  const told = stderr.split('\n').filter(line => line.includes('could not deliver'))
  const line = (events: string, status: number) =>
    expect.stringMatching(
      new RegExp(
        `^listener tell could not deliver ${events}, and does not try again: .*HTTP ${status}.*\\. Check its settings: (bun \\S+daemon\\.ts|\\S*cadre) doctor$`,
      ),
    )
  expect(told).toEqual([line('on_start, on_complete', 403), line('on_phase_complete', 404)])
})

test('the help says what `last` is, and a sub-run is told with the command that resumes its top run', async () => {
  expect((await say('why', '--help')).stdout).toContain('last: the newest top run, by its creation')
  const below = `name: "@local/below"\nversion: 1.0.0\nphases: [{ name: a, agent: exec, commands: [{ name: c, run: "exit 1" }] }]\n`
  const top = `name: "@local/over"\nversion: 1.0.0\nphases: [{ name: t, type: team, team: ./below }]\n`
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': top, 'below/team.yml': below }) })
  const leaf = (await daemon.ended(run_id)).error!.run_id!
  const { code, stderr } = await say('resume', leaf)
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(new RegExp(`with: (bun \\S+daemon\\.ts|\\S*cadre) resume ${run_id}\n$`)),
  ])
})
