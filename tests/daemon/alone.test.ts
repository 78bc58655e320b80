// Without a daemon: `run` holds the home and serves it to other commands meanwhile; interrupted runs are left alone, shown
// as such, and continued by whoever is asked to.

import { expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, files, spawnDaemon, startCommand } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { GATE, HELLO } from './teams.ts'

/**
 * Until somebody writes `done`. It also ends by itself when its folder is removed, and after a minute, which is longer
 * than any test takes: these tests kill what would end it, and may be killed themselves.
 */
const LOOP = 'n=0; until [ -e done ] || [ ! -e begun ] || [ $((n += 1)) -gt 1200 ]; do sleep 0.05; done'

/** Begins, says so in `begun`, and ends once `done` is there. */
const WAITS = `name: "@local/waits"
version: 1.0.0
outputs: [{ name: end, value: "{{ phases.wait.text }}" }]
phases:
  - { name: before, agent: exec, commands: [{ name: c, run: "echo x >> before" }] }
  - name: wait
    agent: exec
    depends_on: [before]
    commands: [{ name: c, run: "echo begun; echo x >> begun; ${LOOP}" }]
`

const lines = (file: string): number => readFileSync(file, 'utf8').split('\n').length - 1

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(20)
}

/** Starts the team and waits until its second phase has begun. */
async function waiting(home: string) {
  const path = files({ 'team.yml': WAITS })
  const child = startCommand(['run', path], { home, cwd: path })
  await until(() => existsSync(join(path, 'begun')))
  return { path, child, end: () => writeFileSync(join(path, 'done'), '') }
}

/** One that kill -9 has interrupted. */
async function interrupted(home: string) {
  const { path, child, end } = await waiting(home)
  child.kill('SIGKILL')
  await child.exited
  const { runs } = await json(home, 'runs')
  return { path, end, runId: runs[0].run_id as string }
}

async function json(home: string, ...args: string[]) {
  const { code, stdout, stderr } = await command([...args, '--json'], { home })
  if (code !== 0) throw new Error(`${args.join(' ')} exited with ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

const holder = (home: string) => JSON.parse(readFileSync(join(home, 'daemon.lock'), 'utf8'))

async function served(home: string): Promise<string> {
  for (;;) {
    const { address } = holder(home)
    if (address !== null) return address
    await Bun.sleep(20)
  }
}

test('a plan without a daemon hides secrets of agents that the team does not use', async () => {
  const home = folder()
  const key = 'sk-0123456789abcdef'
  for (const [name, value] of [
    ['agents.llm.provider', 'openai'],
    ['agents.llm.api_key', key],
  ] as const) {
    expect(await command(['settings', 'set', name, '-'], { home, stdin: value })).toMatchObject({ code: 0 })
  }
  const path = files({ 'team.yml': HELLO })
  const plan = await command(['plan', path, '-i', `who=${key}`], { home })
  expect(plan).toMatchObject({ code: 0, stderr: '' })
  expect(plan.stdout).toContain('***')
  expect(plan.stdout).not.toContain(key)
})

test('commands work through the process that runs a team, a second run too', async () => {
  const home = folder()
  const { path, child, end } = await waiting(home)
  const url = await served(home)
  expect((await fetch(`${url}/health`)).status).toBe(200)
  const { runs } = await json(home, 'runs')
  expect(runs).toMatchObject([{ state: 'running', team: '@local/waits' }])
  const runId = runs[0].run_id
  expect((await command(['logs', runId], { home })).stdout).toContain('begun')
  expect((await command(['phases', runId], { home })).code).toBe(0)
  const hello = files({ 'team.yml': HELLO })
  expect(await command(['validate', hello], { home })).toMatchObject({ code: 0, stdout: `${hello} is valid\n` })
  expect((await command(['plan', hello, '-i', 'who=ada'], { home })).code).toBe(0)
  expect(await command(['run', hello, '-i', 'who=ada'], { home })).toMatchObject({
    code: 0,
    stdout: expect.stringContaining('times     1'),
  })
  const same = startCommand(['run', path], { home, cwd: path })
  await until(() => lines(join(path, 'begun')) === 2)

  const asking = await command(['run', files({ 'team.yml': GATE })], { home })
  expect(asking.code).toBe(3)
  const { reviews } = await json(home, 'reviews')
  const decided = await command(['decide', reviews[0].id, 'approve', '--values', '{"answer":"yes"}'], { home })
  expect(decided.code).toBe(0)

  const serve = await command(['serve', '--port', '0'], { home })
  expect(serve.code).toBe(2)
  expect(serve.stderr).toContain(`process ${child.pid}, which runs a team (\`run\`) and serves the home at ${url}`)
  end()
  expect([await child.exited, await same.exited]).toEqual([0, 0])
  expect(existsSync(join(home, 'daemon.lock'))).toBe(false)
  const all = await json(home, 'runs')
  expect(all.runs.map((run: { state: string }) => run.state)).toEqual(Array(4).fill('completed'))
})

test('it ends with the last run that it holds, and cancel reaches those of others', async () => {
  const home = folder()
  const first = await waiting(home)
  await served(home)
  const second = await waiting(home)
  first.end()
  const said = first.child.stderr.text()
  expect(await Promise.race([first.child.exited, Bun.sleep(1_500)])).toBeUndefined()
  expect(holder(home).pid).toBe(first.child.pid)
  const { runs } = await json(home, 'runs')
  expect(runs).toMatchObject([{ state: 'running' }, { state: 'completed' }])
  expect((await command(['cancel', runs[0].run_id], { home })).code).toBe(0)
  expect(await second.child.exited).toBe(1)
  expect(await first.child.exited).toBe(0)
  expect(await said).toContain('runs of other commands go on in this process')
  expect(existsSync(join(home, 'daemon.lock'))).toBe(false)
})

test('many runs at once share the home, whoever was first', async () => {
  const home = folder()
  const path = files({ 'team.yml': HELLO })
  const ran = await Promise.all(Array.from({ length: 5 }, () => command(['run', path], { home })))
  expect(ran.map(({ code, stderr }) => [code, code === 0 ? '' : stderr])).toEqual(Array(5).fill([0, '']))
  expect((await json(home, 'runs')).total).toBe(5)
}, 60_000)

test('a start that is asked for twice under one id is one run', async () => {
  const home = folder()
  const { child, end } = await waiting(home)
  const url = await served(home)
  const run_id = Bun.randomUUIDv7()
  const start = async () => {
    const body = JSON.stringify({ path: files({ 'team.yml': HELLO }), run_id })
    const headers = { 'content-type': 'application/json' }
    const reply = await fetch(`${url}/v1/runs/start`, { method: 'POST', headers, body })
    return ((await reply.json()) as { data: { run_id: string } }).data.run_id
  }
  expect(await Promise.all([start(), start()])).toEqual([run_id, run_id])
  expect((await json(home, 'runs')).total).toBe(2)
  end()
  expect(await child.exited).toBe(0)
})

test('a run whose process is killed ends for those who watch it, as interrupted', async () => {
  const home = folder()
  const first = await waiting(home)
  await served(home)
  const second = await waiting(home)
  first.child.kill('SIGKILL')
  expect(await second.child.exited).toBe(130)
  expect(await second.child.stderr.text()).toMatch(
    /interrupted {2}@local\/waits[^\n]*\n +(?:bun \S*daemon\.ts|\S*cadre) resume \S+\n$/,
  )
})

test('an interrupted run is shown as that, left alone, and continued when asked', async () => {
  const home = folder()
  const { path, runId, end } = await interrupted(home)
  expect((await json(home, 'runs')).runs).toMatchObject([{ state: 'interrupted' }])
  expect((await json(home, 'tree', runId)).runs).toMatchObject([{ state: 'interrupted' }])
  expect((await json(home, 'phases', runId)).phases).toMatchObject([{ state: 'completed' }, { state: 'interrupted' }])
  expect((await command(['why', runId], { home })).stdout).toContain(` resume ${runId}`)
  // Nothing more will come, so there is nothing to follow. What was said a moment before the kill may be lost.
  const followed = await command(['logs', runId, '--follow'], { home })
  expect([followed.code, ['', 'no lines\n'].includes(followed.stderr)]).toEqual([0, true])

  const other = await waiting(home)
  await served(home)
  expect((await json(home, 'runs')).runs).toMatchObject([{ state: 'running' }, { state: 'interrupted' }])
  expect((await json(home, 'tree', runId)).runs).toMatchObject([{ state: 'interrupted' }])
  other.end()
  expect(await other.child.exited).toBe(0)
  expect(await other.child.stderr.text()).toMatch(
    new RegExp(
      `^run ${runId} of @local/waits was interrupted; continue it with: (bun \\S+daemon\\.ts|\\S*cadre) resume ${runId}$`,
      'm',
    ),
  )
  expect(lines(join(path, 'begun'))).toBe(1)

  end()
  const resumed = await command(['resume', runId, '--json'], { home })
  expect(resumed.code).toBe(0)
  expect(JSON.parse(resumed.stdout)).toMatchObject({ run_id: runId, state: 'completed', attempt: 1 })
  expect([lines(join(path, 'before')), lines(join(path, 'begun'))]).toEqual([1, 2])
})

test('resume of an interrupted run leaves the others alone; serve continues them all', async () => {
  const home = folder()
  const [one, two, three] = [await interrupted(home), await interrupted(home), await interrupted(home)]
  one.end()
  expect((await command(['resume', one.runId], { home })).code).toBe(0)
  expect([lines(join(two.path, 'begun')), lines(join(three.path, 'begun'))]).toEqual([1, 1])
  const ran = await command(['run', files({ 'team.yml': HELLO })], { home })
  expect(ran.stderr).toMatch(/^2 runs were interrupted; continue them all with: (bun \S+daemon\.ts|\S*cadre) serve$/m)
  const daemon = await spawnDaemon({ home })
  two.end()
  three.end()
  for (const { runId } of [two, three]) expect(await daemon.ended(runId)).toMatchObject({ state: 'completed' })
})

test('a process that left a run alone takes it up when another command asks', async () => {
  const home = folder()
  const [resumed, cancelled] = [await interrupted(home), await interrupted(home)]
  const holding = await waiting(home)
  await served(home)
  const refused = await command(['resume', resumed.runId, '--from', 'wait'], { home })
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('resume it without options')])
  const child = startCommand(['resume', resumed.runId], { home })
  await until(() => lines(join(resumed.path, 'begun')) === 2)
  expect((await command(['cancel', cancelled.runId], { home })).code).toBe(0)
  for (const { end } of [resumed, holding]) end()
  expect([await child.exited, await holding.child.exited]).toEqual([0, 0])
  const states = new Map(
    (await json(home, 'runs')).runs.map((run: { run_id: string; state: string }) => [run.run_id, run.state]),
  )
  expect([states.get(resumed.runId), states.get(cancelled.runId)]).toEqual(['completed', 'cancelled'])
})

test('cancel without a daemon ends an interrupted run, and begins nothing of it anew', async () => {
  const home = folder()
  const { path, runId } = await interrupted(home)
  expect((await command(['cancel', runId], { home })).code).toBe(0)
  expect((await json(home, 'runs')).runs).toMatchObject([{ state: 'cancelled' }])
  expect(lines(join(path, 'begun'))).toBe(1)
})

test('a run that waits for a person and for nothing else is resumed and decided without a daemon', async () => {
  const home = folder()
  const asking = await command(['run', files({ 'team.yml': GATE })], { home })
  expect(asking.code).toBe(3)
  const { runs } = await json(home, 'runs')
  expect(runs).toMatchObject([{ state: 'awaiting_input' }])
  expect((await command(['resume', runs[0].run_id], { home })).code).toBe(3)
  const { reviews } = await json(home, 'reviews')
  const refused = await command(['decide', reviews[0].id, 'approve'], { home })
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('the form lacks answer')])
  const args = ['decide', reviews[0].id, 'approve', '--values', '{"answer":"yes"}']
  expect(await command(args, { home })).toMatchObject({ code: 0, stdout: 'said  yes\n' })
})

test('cancel says which cleanup phases still run, and what cancels those', async () => {
  const home = folder()
  const path = files({
    'team.yml': `name: "@local/cleans"
version: 1.0.0
phases:
  - { name: work, agent: exec, commands: [{ name: c, run: "exit 1" }] }
  - name: clean
    agent: exec
    depends_on: [work]
    always: true
    commands: [{ name: c, run: "touch begun; trap '' TERM; sleep 60 & wait; sleep 60" }]
`,
  })
  const child = startCommand(['run', path], { home, cwd: path })
  await until(() => existsSync(join(path, 'begun')))
  await served(home)
  const { runs } = await json(home, 'runs')
  const { code, stderr } = await command(['cancel', runs[0].run_id], { home })
  expect([code, stderr]).toEqual([0, 'cancelling; cleanup phases still run (clean): cancel again to stop them\n'])
  expect(await command(['cancel', runs[0].run_id], { home })).toMatchObject({
    code: 0,
    stdout: '',
    stderr: expect.stringMatching(/^cancelling; it ends within 5 s: .* watch |^the run had already failed: .* why /),
  })
  expect(await child.exited).toBe(1)
})

test('the plan of a resume without a daemon refuses the inputs that the resume refuses', async () => {
  const home = folder()
  const path = files({
    'team.yml': `name: "@local/word"
version: 1.0.0
inputs: [{ name: word, type: string, default: one }]
phases: [{ name: bad, agent: exec, commands: [{ name: c, run: "exit 1" }] }]
`,
  })
  expect((await command(['run', path], { home })).code).toBe(1)
  const resume = ['resume', 'last', '--from', 'bad', '-i', 'word=3']
  const [told, planned] = [await command(resume, { home }), await command([...resume, '--plan'], { home })]
  expect([planned.code, planned.stderr]).toEqual([told.code, told.stderr])
  expect(planned.stderr).toContain('input word is not secret')
})
