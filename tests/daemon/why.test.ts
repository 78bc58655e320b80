// What `runs/why` says: a line for each fact, the one where the reason arose first, and the commands to go on with.

import { beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'

const BELOW = `name: "@local/below"
version: 1.0.0
inputs: [{ name: nap, type: number, default: 0 }]
phases: [{ name: nap, agent: exec, commands: [{ name: c, env: { NAP: "{{ inputs.nap }}" }, run: 'sleep "$NAP"' }] }]
`
const team = (phase: string) => `name: "@local/top"
version: 1.0.0
phases: [${phase}]
`

let daemon: RunningDaemon
beforeAll(async () => {
  daemon = await spawnDaemon()
})

async function why(phase: string): Promise<string> {
  const path = files({ 'team.yml': team(phase), 'below/team.yml': BELOW })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await daemon.ended(run_id)
  return (await daemon.call('/v1/runs/why', { run_id })).text
}

const phaseNamed = async (run_id: string, phase: string) => {
  const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
  return phases.find(({ name }: { name: string }) => name === phase)
}
const inState = (run_id: string, phase: string, state: string) =>
  until(async () => (await phaseNamed(run_id, phase)).state === state, `phase ${phase} to be ${state}`)

test('the leaf stands first, many lines of a command in one, and the commands to go on with last', async () => {
  const path = files({
    'team.yml': team('{ name: t, type: team, team: ./below }'),
    'below/team.yml': team(
      `{ name: a, agent: exec, commands: [{ name: c, run: "printf 'one\\\\ntwo\\\\n' >&2; exit 3" }] }`,
    ),
  })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  const leaf = (await daemon.ended(run_id)).error!.run_id
  const lines = (await daemon.call('/v1/runs/why', { run_id })).text.split('\n')
  expect(lines).toEqual([
    expect.stringMatching(
      /^Sub-run .* because its phase a \(exec\) failed: command c exited with code 3: one \/ two\.$/,
    ),
    expect.stringMatching(/^Run .* because its phase t \(team\) did\.$/),
    'Written outside: nothing that must happen only once. Writes that can be repeated, such as PUT and uploads, are not listed.',
    expect.stringMatching(/^Started by \S+ \(API\)\.$/),
    expect.stringMatching(new RegExp(`(daemon\\.ts|cadre) logs ${leaf} --phase a$`)),
    expect.stringMatching(new RegExp(`(daemon\\.ts|cadre) resume ${run_id}$`)),
  ])
})

test('a map that could not begin is to blame itself', async () => {
  expect(await why('{ name: each, type: map, items: [1, 1], key: "{{ item }}", team: ./below }')).toContain(
    'because its phase each (map) failed: team.yml:3:',
  )
})

test('so is a phase that took too long, not the sub-run that was cancelled with it', async () => {
  expect(await why('{ name: t, type: team, team: ./below, inputs: { nap: 30 }, timeout: 300ms }')).toContain(
    'because its phase t (team) failed: the attempt took longer than 300ms',
  )
})

test('what failed and was passed over is told, and so is what listeners could not deliver', async () => {
  const hook = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('closed', { status: 403 }) })
  try {
    await daemon.call(
      '/v1/settings/set',
      { key: 'agents.chat.channels', value: { ops: hook.url.href } },
      {
        authorization: `Bearer ${daemon.token}`,
      },
    )
    const phases = `{ name: a, agent: exec, on_failure: continue, commands: [{ name: c, run: "exit 3" }] },
  { name: tell, agent: chat, notify: [on_complete] }`
    const path = files({ 'team.yml': team(phases) })
    const { run_id } = await daemon.call('/v1/runs/start', { path })
    const record = () => daemon.call('/v1/runs/get', { run_id })
    await until(async () => (await record()).deliveries[0]?.state === 'failed', 'the delivery that fails')
    const { text } = await daemon.call('/v1/runs/why', { run_id })
    expect(text).toContain('Failed and passed over: phase a (command c exited with code 3).')
    expect(text).toMatch(
      /Events that listeners did not deliver, or may not have delivered: tell, on_complete \(.*HTTP 403/,
    )
    const { lines } = await daemon.call('/v1/runs/logs', { run_id, phase: 'tell' })
    expect(lines).toMatchObject([{ text: expect.stringMatching(/^on_complete was not delivered: .*HTTP 403/) }])
  } finally {
    await hook.stop(true)
  }
})

test('a long chain of sub-runs is told from both of its ends', async () => {
  const text = await why('{ name: again, type: team, team: . }')
  expect(text.length).toBeLessThan(2_000)
  expect(text).toContain('more sub-runs below it failed the same way.')
  expect(text).toContain('end the recursion with `when`')
})

test('the phase that failed first is the cause, and the others that failed are listed, cleanup included', async () => {
  const phases = `{ name: late, agent: exec, commands: [{ name: c, run: "until [ -e go ]; do sleep 0.02; done; exit 3" }] },
  { name: sums, agent: exec, commands: [{ name: c, run: "exit 4" }] },
  { name: sweep, agent: exec, always: true, depends_on: [late, sums], commands: [{ name: c, run: "exit 5" }] }`
  const path = files({ 'team.yml': team(phases) })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await inState(run_id, 'sums', 'failed')
  writeFileSync(join(path, 'go'), '')
  expect((await daemon.ended(run_id)).error).toMatchObject({ phase: 'sums' })
  const { lines, next, chain } = await daemon.call('/v1/runs/why', { run_id })
  expect(lines.slice(0, 2)).toEqual([
    expect.stringContaining('because its phase sums (exec) failed: command c exited with code 4.'),
    'Failed, too: phase late (command c exited with code 3); cleanup phase sweep (command c exited with code 5).',
  ])
  expect(chain[0]).toMatchObject({ phase: 'sums' })
  // No phase has said anything, so there is no log to print.
  expect(next).toEqual([['resume', run_id]])
})

test('a cancelled run tells which of its cleanup failed', async () => {
  const phases = `{ name: work, agent: exec, commands: [{ name: c, run: "sleep 30" }] },
  { name: sweep, agent: exec, always: true, depends_on: [work], commands: [{ name: c, run: "exit 4" }] }`
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': team(phases) }) })
  await inState(run_id, 'work', 'running')
  await daemon.call('/v1/runs/cancel', { run_id })
  expect((await daemon.ended(run_id)).state).toBe('cancelled')
  const { lines } = await daemon.call('/v1/runs/why', { run_id })
  expect(lines).toEqual([
    expect.stringMatching(/^Run .* was cancelled after /),
    'Failed: cleanup phase sweep (command c exited with code 4).',
    expect.stringContaining('Written outside: nothing that must happen only once'),
    'Because of it phase work did not complete.',
    expect.stringMatching(/^Started by \S+ \(API\)\.$/),
  ])
})

test('while cleanup goes on, a failure is told, and it is tolerated only where the team says so', async () => {
  const phases = `{ name: soft, agent: exec, on_failure: continue, commands: [{ name: c, run: "exit 2" }] },
  { name: work, agent: exec, depends_on: [soft], commands: [{ name: c, run: "exit 3" }] },
  { name: next, agent: exec, depends_on: [work], commands: [{ name: c, run: "true" }] },
  { name: sweep, agent: exec, always: true, depends_on: [work], commands: [{ name: c, run: "until [ -e go ]; do sleep 0.02; done" }] }`
  const path = files({ 'team.yml': team(phases) })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await inState(run_id, 'sweep', 'running')
  const { lines } = await daemon.call('/v1/runs/why', { run_id })
  expect(lines).toEqual([
    expect.stringMatching(/ is in phase sweep \(exec\), attempt 1\.$/),
    'Failed: phase work (command c exited with code 3).',
    'Failed and passed over: phase soft (command c exited with code 2).',
    expect.stringContaining('Written outside: nothing that must happen only once'),
    'Because of it phase next did not complete.',
    expect.stringMatching(/^Started by \S+ \(API\)\.$/),
  ])
  const rowsOfFailed = async () => {
    const { stdout } = await command(['tree', run_id], { home: daemon.home })
    return stdout.split('\n').flatMap(row => /✗ (?:soft|work) .*/.exec(row)?.[0].split(/ {2,}/) ?? [])
  }
  const failed = (name: string, ...notes: string[]) => [`✗ ${name}`, expect.stringMatching(/ms|s$/), 'exec', ...notes]
  const rows = [...failed('soft', 'command c exited with code 2'), ...failed('work', 'command c exited with code 3')]
  expect(await rowsOfFailed()).toEqual(rows)
  writeFileSync(join(path, 'go'), '')
  expect((await daemon.ended(run_id)).state).toBe('failed')
  expect(await rowsOfFailed()).toEqual(rows)
})

test('a resume is not recommended for outputs that do not fit: the team has to be corrected', async () => {
  const text = `${team('{ name: a, agent: exec, commands: [{ name: c, run: "true" }] }')}outputs: [{ name: n, type: number, value: "{{ dyn(phases.a.text) }}" }]
`
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': text }) })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed', reason: 'outputs' })
  const { lines, next } = await daemon.call('/v1/runs/why', { run_id })
  expect(lines[0]).toContain(', but output n could not be made: ')
  expect(lines[1]).toBe(
    'A resume would end the same way, because a run keeps the team.yml of its start: correct team.yml, and start a new run.',
  )
  expect(next).toEqual([['show', run_id]])
})

const EVERY =
  '{ name: each, type: map, items: [0, -1], team: ./below, inputs: { nap: "{{ item }}" }, on_item_failure: continue }'
const MAYBE = '{ name: maybe, agent: exec, on_failure: continue, commands: [{ name: c, run: "exit 3" }] }'

const FROM = ['resume', 'RUN', '--from', 'maybe']
const FAILED = [
  ['tree', 'RUN', '--failed'],
  ['resume', 'RUN', '--failed'],
]

test.each([
  ['a phase that was passed over', { 'team.yml': team(MAYBE) }, [FROM]],
  ['items of a map', { 'team.yml': team(EVERY), 'below/team.yml': BELOW }, FAILED],
  [
    'a map that stopped',
    {
      'team.yml': team(EVERY.replace('on_item_failure: continue', 'on_failure: continue, concurrency: 1')),
      'below/team.yml': BELOW,
    },
    FAILED,
  ],
  [
    'items of a map in a sub-run',
    {
      'team.yml': team('{ name: t, type: team, team: ./middle }'),
      'middle/team.yml': team(EVERY.replace('./below', '../below')),
      'below/team.yml': BELOW,
    },
    FAILED,
  ],
  ['both', { 'team.yml': team(`${MAYBE}, ${EVERY}`), 'below/team.yml': BELOW }, [FROM, ...FAILED]],
])('after %s failed, only what a resume takes is recommended', async (_, texts, expected) => {
  const { run_id } = await daemon.call('/v1/runs/start', { path: files(texts) })
  expect((await daemon.ended(run_id)).state).toBe('completed')
  const { next } = await daemon.call('/v1/runs/why', { run_id })
  expect(next).toEqual([['show', run_id], ...expected.map(args => args.map(arg => (arg === 'RUN' ? run_id : arg)))])
  for (const [command, , option, phase] of expected) {
    if (command !== 'resume') continue
    const what = option === '--failed' ? { failed: true } : { from_phase: phase! }
    await daemon.call('/v1/runs/resume', { run_id, ...what })
    expect((await daemon.ended(run_id)).state).toBe('completed')
  }
})

test('items that failed before the run failed are repeated by an option, which is recommended then', async () => {
  const after = '{ name: sum, agent: exec, depends_on: [each], commands: [{ name: c, run: "exit 4" }] }'
  const path = files({ 'team.yml': team(`${EVERY}, ${after}`), 'below/team.yml': BELOW })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  expect((await daemon.ended(run_id)).state).toBe('failed')
  const { next } = await daemon.call('/v1/runs/why', { run_id })
  expect(next).toEqual([
    ['resume', run_id],
    ['tree', run_id, '--failed'],
    ['resume', run_id, '--failed'],
  ])
})

test('a command at the end of a line can be pasted: no full stop follows it', async () => {
  const path = files({
    'team.yml': `${team('{ name: a, agent: http, sources: [{ name: x, url: "{{ inputs.url }}" }] }')}inputs: [{ name: url, default: "http://127.0.0.1:9" }]\n`,
  })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await daemon.ended(run_id)
  const { lines } = await daemon.call('/v1/runs/why', { run_id })
  expect(lines[0]).toMatch(/(daemon\.ts|cadre) settings set network\.allow 127\.0\.0\.1$/)
})

test('a sub-run cannot be resumed by itself: its top run tells how to go on', async () => {
  const path = files({ 'team.yml': team('{ name: t, type: team, team: ./middle }'), 'middle/team.yml': team(MAYBE) })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await daemon.ended(run_id)
  const { runs } = await daemon.call('/v1/runs/tree', { run_id })
  const below = runs[1].run_id
  const { lines, next } = await daemon.call('/v1/runs/why', { run_id: below })
  expect(lines.join(' ')).toContain('Failed and passed over: phase maybe')
  expect(next).toEqual([
    ['show', below],
    ['why', run_id],
  ])
  expect((await daemon.call('/v1/runs/why', { run_id })).next).toEqual([
    ['show', run_id],
    ['tree', run_id, '--failed'],
    ['resume', run_id, '--failed'],
  ])
})

test('a sub-run that failed and was passed over leads to its top run, which cannot be resumed as it is', async () => {
  const phase = '{ name: t, type: team, team: ./below, on_failure: continue }'
  const path = files({ 'team.yml': team(phase), 'below/team.yml': team(MAYBE.replace('continue', 'fail')) })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  expect((await daemon.ended(run_id)).state).toBe('completed')
  const { runs } = await daemon.call('/v1/runs/tree', { run_id })
  const { next } = await daemon.call('/v1/runs/why', { run_id: runs[1].run_id })
  expect(next).toEqual([['why', run_id]])
  expect((await daemon.call('/v1/runs/why', { run_id })).next).toEqual([
    ['show', run_id],
    ['resume', run_id, '--from', 't'],
  ])
})

test('a file that an output lacks is made again by the command that `why` prints', async () => {
  const path = files({
    'team.yml': `${team('{ name: a, agent: exec, commands: [{ name: c, run: "true" }] }')}outputs: [{ name: page, type: file, value: page.txt }]\n`,
  })
  const { run_id } = await daemon.call('/v1/runs/start', { path, workspace: path })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'failed', reason: 'outputs' })
  const { lines, next } = await daemon.call('/v1/runs/why', { run_id })
  expect(lines[1]).toBe('Put the file there, and make the outputs again.')
  expect(next[1]).toEqual(['resume', run_id, '--outputs'])
  writeFileSync(join(path, 'page.txt'), 'page')
  const planned = await command([...next[1]!, '--plan'], { home: daemon.home })
  expect(planned.stdout).toContain('a')
  const { code } = await command(next[1]!, { home: daemon.home })
  expect(code).toBe(0)
  expect(await daemon.call('/v1/runs/get', { run_id })).toMatchObject({
    state: 'completed',
    outputs: { page: 'page.txt' },
  })
})

test('which items of a map failed, and why, is told by their errors and keys', async () => {
  const each =
    '{ name: each, type: map, items: [4, 5, 6, 7], key: "k{{ item }}", team: ./below, inputs: { n: "{{ item }}" }, on_item_failure: continue }'
  const quiet = '{ name: quiet, agent: exec, commands: [{ name: c, run: "true" }] }'
  const run = 'exit $N'
  const below = `${team(`{ name: a, agent: exec, when: inputs.n != 4, env: { N: "{{ inputs.n == 7 ? 3 : 2 }}" }, commands: [{ name: c, run: "${run}" }] }`)}inputs: [{ name: n, type: number }]\n`
  const path = files({ 'team.yml': team(`${each}, ${quiet}`), 'below/team.yml': below })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  expect((await daemon.ended(run_id)).state).toBe('completed')
  const { lines, items } = await daemon.call('/v1/runs/why', { run_id })
  const codes = ['command c exited with code 2', 'command c exited with code 3']
  expect(items).toEqual([
    {
      ...{ run_id, phase: 'each', total: 4, failed: 3 },
      causes: [
        { message: codes[0], count: 2, keys: ['k5', 'k6'] },
        { message: codes[1], count: 1, keys: ['k7'] },
      ],
    },
  ])
  expect(lines[1]).toBe(`3 of 4 items of each failed: 2 × ${codes[0]} (k5, k6); 1 × ${codes[1]} (k7).`)

  const shown = await command(['tree', run_id, '--failed'], { home: daemon.home })
  expect(shown.stdout).toContain('each')
  expect(shown.stdout).toContain('k7')
  expect(shown.stdout).not.toMatch(/k4|quiet/)
  const json = await command(['tree', run_id, '--failed', '--json'], { home: daemon.home })
  expect(JSON.parse(json.stdout).runs.map((each: { run_name: string }) => each.run_name)).toEqual([
    ...[null, 'k5', 'k6', 'k7'],
  ])
  const phases = await command(['phases', run_id, '--failed'], { home: daemon.home })
  expect(phases.stdout).toContain('each')
  expect(phases.stdout).not.toContain('quiet')
})

const tolerant = (exit: string) => `name: "@local/tolerant"
version: 1.0.0
inputs: [{ name: codes, type: list }]
phases:
  - name: each
    type: map
    items: "{{ inputs.codes }}"
    key: "k{{ index }}"
    on_item_failure: continue
    phases:
      - { name: try, agent: exec, ${exit}env: { N: "{{ item }}" }, commands: [{ name: c, run: 'exit "$N"' }] }
      - { name: then, agent: exec, depends_on: [try], commands: [{ name: t, run: "true" }] }
`

test('a phase that was passed over inside items is told with their keys, and repeated', async () => {
  const path = files({ 'team.yml': tolerant('on_failure: continue, ') })
  const { run_id } = await daemon.call('/v1/runs/start', { path, inputs: { codes: [0, 2, 2, 3] } })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed' })
  const { lines, next, items } = await daemon.call('/v1/runs/why', { run_id })
  const code = (n: number) => `command c exited with code ${n}`
  expect(lines[1]).toBe(
    `3 of 4 items of each failed in phase try, which was passed over: 2 × ${code(2)} (k1, k2); 1 × ${code(3)} (k3).`,
  )
  expect(items).toMatchObject([{ run_id, phase: 'each', passed_over: 'try', total: 4, failed: 3 }])
  const resume = ['resume', run_id, '--failed']
  expect(next).toEqual([['show', run_id], ['tree', run_id, '--failed'], resume])
  const watched = await command(['watch', run_id], { home: daemon.home })
  expect(watched.stderr).toContain('3 of 4 items of each failed in phase try, which was passed over')

  await daemon.call('/v1/runs/resume', { run_id, failed: true })
  await daemon.ended(run_id)
  const attempts = async (key: string) => {
    const { runs } = await daemon.call('/v1/runs/tree', { run_id })
    const item = runs.find(({ run_name }: { run_name: string }) => run_name === key)
    return (await phaseNamed(item.run_id, 'try')).attempt
  }
  expect(await Promise.all(['k0', 'k1', 'k3'].map(attempts))).toEqual([1, 2, 2])
})

test('failed items are told from the top run, at any depth, with the keys of all maps above', async () => {
  const outer = `{ name: work, type: team, team: ./mid }`
  const mid = `name: "@local/mid"\nversion: 1.0.0\nphases:
  - { name: pages, type: map, items: ["{{ [0, 2] }}", "{{ [3] }}", "{{ [0] }}"], key: "p{{ index }}", team: ./tolerant, inputs: { codes: "{{ item }}" } }
  - { name: rest, agent: exec, on_failure: continue, commands: [{ name: r, run: "exit 9" }] }
`
  const path = files({
    'team.yml': team(outer),
    'mid/team.yml': mid,
    'mid/tolerant/team.yml': tolerant(''),
  })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  expect(await daemon.ended(run_id)).toMatchObject({ state: 'completed', error: null })
  const { lines, next } = await daemon.call('/v1/runs/why', { run_id })
  expect(lines.slice(1, 3)).toEqual([
    '2 of 4 items of work/pages/each failed: 1 × command c exited with code 2 (p0/k1); 1 × command c exited with code 3 (p1/k0).',
    'Failed and passed over: phase work/rest (command r exited with code 9).',
  ])
  expect(next).toContainEqual(['resume', run_id, '--failed'])
  const watched = await command(['watch', run_id], { home: daemon.home })
  expect(watched.stderr).toContain('2 of 4 items of work/pages/each failed')
  const plan = await command(['resume', run_id, '--failed', '--plan'], { home: daemon.home })
  expect(plan.stdout.split('\n').slice(1, 4)).toEqual([
    'Runs again: work',
    'work/pages: 2 of 3 items run again: p0, p1',
    'work/pages/each: 2 of 3 items run again: k1, k0',
  ])
})

test('the error of a failed phase is a line of its log, also where no command ran', async () => {
  const phases = [
    '{ name: asks, agent: exec, env: { N: "{{ phases.first.data.gone }}" }, depends_on: [first], commands: [{ name: c, run: "true" }], on_failure: continue }',
    '{ name: first, agent: exec, commands: [{ name: c, run: "echo hello" }] }',
    '{ name: ends, agent: exec, depends_on: [asks], commands: [{ name: c, run: "exit 7" }] }',
  ]
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': team(phases.join(', ')) }) })
  expect((await daemon.ended(run_id)).state).toBe('failed')
  const { lines } = await daemon.call('/v1/runs/logs', { run_id })
  const told = lines.map(({ phase, text }: { phase: string; text: string }) => `${phase}: ${text}`)
  expect(told).toEqual([
    'first: hello',
    expect.stringMatching(/^asks: failed: .*No such key: gone/),
    'ends: failed: command c exited with code 7',
  ])
  const { stdout } = await command(['logs', run_id, '--failed'], { home: daemon.home })
  expect(stdout).toMatch(/asks +\| failed: .*No such key: gone/)
  expect(stdout).toContain('| failed: command c exited with code 7')
  expect(stdout).not.toContain('hello')
  // The error alone is no reason to read the log.
  const { next } = await daemon.call('/v1/runs/why', { run_id })
  expect(next[0]).toEqual(['resume', run_id])
})
