import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { runPhases, treeEntries } from '../../lib/run/engine.ts'
import { until } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'

let active = 0
let most = 0
const flaky = new Map<string, number>()

const echo = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Gives back what it was given.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), value: Type.Optional(Type.Any()), fail: Type.Optional(Type.Any()) }),
    async run({ value, fail }, context) {
      active++
      most = Math.max(most, active)
      await Bun.sleep(1)
      active--
      if (fail === 'retryable') {
        const tries = (flaky.get(context.run.id) ?? 0) + 1
        flaky.set(context.run.id, tries)
        if (tries < 3) throw new AgentError('try again', { retryable: true })
      } else if (fail === 'wait') {
        context.signal.throwIfAborted()
        await new Promise((_, reject) => context.signal.addEventListener('abort', () => reject(new Error('aborted'))))
      } else if (fail) throw new AgentError(String(fail), { code: 'broken', hint: 'mend it' })
      return { text: `value ${value}`, data: { value: value ?? null } }
    },
  },
})

const reader = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Reads a file.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), file: Type.String() }),
    run: async ({ file }, context) => ({ text: await (await context.read(file)).text() }),
  },
})

/** As many characters as its entry says, of two bytes each, as `data` and, if asked, in a file as well. */
const bulk = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Gives much.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), size: Type.Integer(), file: Type.Optional(Type.Boolean()) }),
    async run({ name, size, file }, context) {
      const value = 'é'.repeat(size)
      if (file) await context.write(name, value)
      return { text: 'much', data: { value } }
    },
  },
})

let t: TestEngine
beforeAll(async () => {
  t = await testEngine({ agents: { echo, reader, bulk } })
})
afterAll(() => t.close())

const phasesOf = (runId: string) => runPhases(t.engine.store, runId, id => t.engine.bundle(id)).phases

const chain = `
name: "@local/chain"
version: 1.0.0
inputs: [{ name: n, type: number, required: true }]
outputs: [{ name: sum, type: number, value: "{{ phases.b.data.value + 1 }}" }]
phases:
  - { name: a, agent: echo, sources: [{ name: x, value: "{{ inputs.n }}" }] }
  - { name: b, agent: echo, depends_on: [a], sources: [{ name: x, value: "{{ phases.a.data.value + 1 }}" }] }
`

describe('standard phases', () => {
  test('a result is available to dependent phases and to the outputs', async () => {
    const run = await t.run(chain, { n: 40 })
    expect(run).toMatchObject({ state: 'completed', outputs: { sum: 42 }, error: null, call_depth: 0 })
    expect(
      phasesOf(run.run_id).map(({ name, state, attempt, ok, data }) => ({ name, state, attempt, ok, data })),
    ).toEqual([
      { name: 'a', state: 'completed', attempt: 1, ok: true, data: { value: 40, entries: { x: { value: 40 } } } },
      { name: 'b', state: 'completed', attempt: 1, ok: true, data: { value: 41, entries: { x: { value: 41 } } } },
    ])
    expect(run.completed_at!).toBeGreaterThanOrEqual(run.started_at!)
  })

  test('a failure skips dependent phases, and other branches continue', async () => {
    const run = await t.run(`
name: "@local/fail"
version: 1.0.0
phases:
  - { name: bad, agent: echo, sources: [{ name: x, fail: boom }] }
  - { name: after, agent: echo, depends_on: [bad], sources: [{ name: x }] }
  - { name: anyway, agent: echo, depends_on: [bad], always: true, sources: [{ name: x }] }
  - { name: later, agent: echo, depends_on: [after], sources: [{ name: x }] }
  - { name: other, agent: echo, sources: [{ name: x }] }
`)
    expect(run).toMatchObject({
      state: 'failed',
      error: { code: 'broken', message: 'boom', hint: 'mend it', phase: 'bad' },
    })
    expect(phasesOf(run.run_id).map(({ name, state, reason }) => [name, state, reason])).toEqual([
      ['bad', 'failed', null],
      ['after', 'skipped', 'upstream'],
      ['anyway', 'completed', null],
      ['later', 'skipped', 'upstream'],
      ['other', 'completed', null],
    ])
  })

  test('on_failure continue lets dependants run and the run complete', async () => {
    const run = await t.run(`
name: "@local/go-on"
version: 1.0.0
phases:
  - { name: bad, agent: echo, on_failure: continue, sources: [{ name: x, fail: boom }] }
  - { name: after, agent: echo, depends_on: [bad], sources: [{ name: x, value: "{{ phases.bad.state }}" }] }
`)
    expect(run.state).toBe('completed')
    expect(phasesOf(run.run_id)[1]!.data).toMatchObject({ value: 'failed' })
  })

  test('when skips, and a skip by when lets dependants run', async () => {
    const run = await t.run(`
name: "@local/when"
version: 1.0.0
phases:
  - { name: a, agent: echo, when: "1 > 2", sources: [{ name: x }] }
  - { name: b, agent: echo, depends_on: [a], sources: [{ name: x, value: "{{ phases.a.data }}" }] }
`)
    expect(run.state).toBe('completed')
    expect(phasesOf(run.run_id).map(({ state, reason, text }) => [state, reason, text])).toEqual([
      ['skipped', 'when', ''],
      ['completed', null, 'value null'],
    ])
  })

  test('a retryable failure is tried again, each time as a new attempt', async () => {
    const run = await t.run(`
name: "@local/retry"
version: 1.0.0
phases:
  - { name: a, agent: echo, retry: { attempts: 3, backoff: 1ms }, sources: [{ name: x, fail: retryable }] }
`)
    expect(run.state).toBe('completed')
    expect(phasesOf(run.run_id)[0]).toMatchObject({ attempt: 3, error: null })
  })

  test('a phase fails at its own time-out, and a run at the time-out of the run', async () => {
    const phase = await t.run(`
name: "@local/slow"
version: 1.0.0
phases:
  - { name: a, agent: echo, timeout: 20ms, sources: [{ name: x, fail: wait }] }
`)
    expect(phase).toMatchObject({ state: 'failed', error: { code: 'timeout', phase: 'a' } })
    const whole = await t.run(`
name: "@local/slow"
version: 1.0.0
timeout: 20ms
phases:
  - { name: a, agent: echo, sources: [{ name: x, fail: wait }] }
`)
    expect(whole).toMatchObject({
      state: 'failed',
      reason: 'timeout',
      error: { code: 'timeout', message: 'the run took longer than its timeout of 20ms' },
    })
  })

  test('a team or map phase that takes too long fails, and cancels what runs below', async () => {
    const slow = `
name: "@local/below"
version: 1.0.0
phases:
  - { name: a, agent: echo, sources: [{ name: x, fail: wait }] }
`
    for (const phase of ['type: team', 'type: map, items: [1, 2, 3], concurrency: 2, on_item_failure: continue']) {
      const run = await t.run({
        'team.yml': `
name: "@local/slow"
version: 1.0.0
phases:
  - { name: p, ${phase}, team: ./below, timeout: 300ms }
  - { name: after, agent: echo, depends_on: [p], sources: [{ name: x }] }
`,
        'below/team.yml': slow,
      })
      expect(run).toMatchObject({
        state: 'failed',
        error: { code: 'timeout', phase: 'p', message: 'the attempt took longer than 300ms' },
      })
      expect(phasesOf(run.run_id).map(({ state }) => state)).toEqual(['failed', 'skipped'])
      const below = [...treeEntries(t.engine.store.db, run.run_id)].filter(entry => entry.call_depth === 1)
      expect(below.map(({ state }) => state)).toEqual(
        phase === 'type: team' ? ['cancelled'] : ['cancelled', 'cancelled'],
      )
    }
  })

  test('a declared file that a sub-run did not write fails the sub-run and the phase above', async () => {
    const run = await t.run({
      'team.yml': `
name: "@local/above"
version: 1.0.0
phases:
  - { name: p, type: team, team: ./below }
`,
      'below/team.yml': `
name: "@local/below"
version: 1.0.0
outputs: [{ name: report, type: file, value: files/a/none.txt }]
phases:
  - { name: a, agent: echo, sources: [{ name: x }] }
`,
    })
    expect(run).toMatchObject({ state: 'failed', error: { code: 'sub_run_failed', phase: 'p' } })
    expect(run.error!.message).toContain('there is no file files/a/none.txt')
  })

  test('an error in a template fails the phase with its place', async () => {
    const run = await t.run(
      `
name: "@local/template"
version: 1.0.0
inputs: [{ name: o, type: object, required: true }]
phases:
  - { name: a, agent: echo, sources: [{ name: x, value: "{{ inputs.o.missing }}" }] }
`,
      { o: {} },
    )
    expect(run.error!.message).toMatch(/^team\.yml:6:\d+: .*missing/)
  })

  test('concurrency bounds the phases of one run', async () => {
    most = 0
    const phases = Array.from({ length: 12 }, (_, n) => `  - { name: p${n}, agent: echo, sources: [{ name: x }] }`)
    const run = await t.run(`name: "@local/many"\nversion: 1.0.0\nconcurrency: 3\nphases:\n${phases.join('\n')}\n`)
    expect(run.state).toBe('completed')
    expect(most).toBe(3)
  })

  test('concurrency bounds phases with sub-runs, too', async () => {
    most = 0
    const phases = ['type: team', 'type: map, items: [1], concurrency: 1', 'type: team'].map(
      (type, n) => `  - { name: p${n}, ${type}, team: ./below }\n`,
    )
    const run = await t.run({
      'team.yml': `name: "@local/one"\nversion: 1.0.0\nconcurrency: 1\nphases:\n${phases.join('')}`,
      'below/team.yml': `
name: "@local/below"
version: 1.0.0
phases:
  - { name: a, agent: echo, sources: [{ name: x }] }
`,
    })
    expect(run.state).toBe('completed')
    expect(most).toBe(1)
  })

  test('slots bound the leaf phases of all runs, and nesting cannot starve', async () => {
    const small = await testEngine({ agents: { echo }, slots: 2 })
    most = 0
    const runs = await Promise.all(Array.from({ length: 5 }, () => small.run(tree)))
    expect(runs.map(run => run.state)).toEqual(Array(5).fill('completed'))
    expect(most).toBe(2)
    await small.close()
  })
})

test('a null in env is an empty variable: of a phase, of a command, of a gate, of a cleanup', async () => {
  const print = (name: string) => `{ name: ${name}, run: 'printf "<%s%s>" "\${A-unset}" "\${B-unset}"', env: { B: `
  const missing = '"{{ phases.copy.data.tmp }}" } }'
  const run = await t.run(`
name: "@local/nulls"
version: 1.0.0
inputs: [{ name: given }]
phases:
  - { name: copy, agent: echo, on_failure: continue, sources: [{ name: x, fail: broken }] }
  - { name: clean, always: true, depends_on: [copy], agent: exec, env: { A: "{{ inputs.given }}" }, commands: [${print('c')}${missing}] }
  - { name: check, type: gate, env: { A: "{{ inputs.given }}" }, commands: [${print('c')}null } }] }
`)
  expect(run).toMatchObject({ state: 'completed' })
  const printed = phasesOf(run.run_id).slice(1)
  expect(printed.map(({ data }) => (data as { commands: { stdout: string }[] }).commands[0]!.stdout)).toEqual([
    '<>',
    '<>',
  ])
})

test('a text for a number, as databases give decimals, is told how to become one', async () => {
  const below = `
name: "@local/below"
version: 1.0.0
inputs: [{ name: n, type: number }]
phases:
  - { name: a, agent: echo, sources: [{ name: x, value: "67.50" }] }
`
  const given = (to: string, value: string) => ({
    'below/team.yml': `${below}outputs: [{ name: sum, ${to} }]\n`,
    'team.yml': `
name: "@local/above"
version: 1.0.0
phases: [{ name: down, type: team, team: ./below, inputs: { n: ${value} } }]
`,
  })
  const message = async (to: string, value = '1') => (await t.run(given(to, value))).error!.message
  expect(await message('type: number, value: "{{ phases.a.data.value }}"')).toMatch(
    /below\/team.yml:\S+ output sum is declared number, got "67.50": write `\{\{ double\(phases.a.data.value\) \}\}`$/,
  )
  expect(await message('type: number, value: "{{ dyn(phases.a.text) }}"')).toMatch(/got "value 67.50"$/)
  expect(await message('type: string, value: "{{ dyn(size(phases.a.text)) }}"')).toEndWith(
    'got 11: write `{{ string(dyn(size(phases.a.text))) }}`',
  )
  expect(await message('value: x', '"{{ dyn(\'67.50\') }}"')).toEndWith(
    'input n: expected a number, not text; `double(…)` makes a number of this text',
  )
})

const leaf = `
name: "@local/leaf"
version: 1.0.0
inputs: [{ name: v, type: number, required: true }]
outputs: [{ name: v, type: number, value: "{{ phases.a.data.value }}" }, { name: doc, type: file, value: "{{ phases.b.files[0].path }}" }]
phases:
  - { name: a, agent: echo, sources: [{ name: x, value: "{{ inputs.v * 10 }}" }] }
  - { name: b, agent: exec, commands: [{ name: w, run: 'echo "$V" > "$CADRE_OUT/doc.txt"', env: { V: "{{ inputs.v }}" } }] }
`
const middle = `
name: "@local/middle"
version: 1.0.0
inputs: [{ name: v, type: number, required: true }]
outputs: [{ name: v, type: number, value: "{{ phases.down.data.v }}" }, { name: doc, type: file, value: "{{ phases.down.data.doc }}" }]
phases:
  - { name: down, type: team, team: ./leaf, inputs: { v: "{{ inputs.v + 1 }}" } }
`
const top = `
name: "@local/top"
version: 1.0.0
outputs: [{ name: all, type: list, value: "{{ phases.each.data.items.map(i, i.outputs.v) }}" }]
phases:
  - { name: list, agent: echo, sources: [{ name: x, value: [1, 2, 3] }] }
  - { name: each, type: map, depends_on: [list], items: "{{ phases.list.data.value }}", key: "k{{ item }}", team: ./middle, inputs: { v: "{{ item }}" } }
  - name: join
    agent: exec
    depends_on: [each]
    commands: [{ name: cat, run: 'cat "$CADRE_FILES"/each/*/doc.txt > "$CADRE_OUT/all.txt"' }]
`
const tree = { 'team.yml': top, 'middle/team.yml': middle, 'middle/leaf/team.yml': leaf }

describe('sub-runs', () => {
  test('three levels: outputs reach the top, files are handed over, the tree is in order', async () => {
    const run = await t.run(tree)
    expect(run).toMatchObject({ state: 'completed', outputs: { all: [20, 30, 40] } })
    const [, each, join_] = phasesOf(run.run_id)
    expect(each!.data).toMatchObject({ total: 3, completed: 3, failed: 0, cancelled: 0 })
    expect((each!.data as { items: { key: string; outputs: unknown }[] }).items[1]).toMatchObject({
      key: 'k2',
      outputs: { v: 30, doc: 'files/each/k2/doc.txt' },
    })
    expect(each!.files.map(file => file.path)).toEqual([1, 2, 3].map(n => `files/each/k${n}/doc.txt`))
    expect(await Bun.file(join(t.engine.stateDir(run.run_id), join_!.files[0]!.path)).text()).toBe('2\n3\n4\n')
    const entries = [...treeEntries(t.engine.store.db, run.run_id)]
    expect(
      entries.map(entry => [entry.run_name, entry.call_depth, entry.parent_phase, entry.call_path.at(-1)]),
    ).toEqual([
      [null, 0, null, '@local/top'],
      ...[1, 2, 3].flatMap(n => [
        [`k${n}`, 1, 'each', '@local/middle'],
        [null, 2, 'down', '@local/leaf'],
      ]),
    ])
    expect(entries.every(entry => entry.state === 'completed' && entry.completed_at! >= entry.started_at!)).toBe(true)
  })

  test('a file that a sub-run is given can be read by its agents; a file of another tree cannot', async () => {
    const team = {
      'team.yml': `
name: "@local/lend"
version: 1.0.0
inputs: [{ name: foreign, type: string, default: "" }]
phases:
  - { name: make, agent: exec, commands: [{ name: m, run: 'echo lent > "$CADRE_OUT/a.txt"' }] }
  - { name: down, type: team, depends_on: [make], team: ./reader, inputs: { doc: "{{ inputs.foreign == '' ? phases.make.files[0].path : inputs.foreign }}" } }
`,
      'reader/team.yml': `
name: "@local/reader"
version: 1.0.0
inputs: [{ name: doc, type: file, required: true }]
phases:
  - { name: read, agent: reader, sources: [{ name: x, file: "{{ inputs.doc }}" }] }
`,
    }
    const first = await t.run(team)
    expect(first.state).toBe('completed')
    const foreign = join(t.engine.stateDir(first.run_id), 'files/make/a.txt')
    const second = await t.run(team, { foreign })
    expect(second).toMatchObject({ state: 'failed', error: { message: expect.stringContaining('lies outside') } })
  })

  const items = (body: string) => ({
    'team.yml': `
name: "@local/items"
version: 1.0.0
phases:
  - { name: each, type: map, team: ./one, inputs: { v: "{{ item }}" }, ${body} }
`,
    'one/team.yml': `
name: "@local/one"
version: 1.0.0
inputs: [{ name: v, type: number, required: true }]
outputs: [{ name: v, type: number, value: "{{ inputs.v }}" }]
phases:
  - { name: a, agent: echo, sources: [{ name: x, fail: "{{ inputs.v == 2 ? 'two' : '' }}" }] }
`,
  })

  test('on_item_failure continue completes and counts', async () => {
    const run = await t.run(items('items: [1, 2, 3], on_item_failure: continue'))
    expect(run.state).toBe('completed')
    expect(phasesOf(run.run_id)[0]!.data).toMatchObject({ total: 3, completed: 2, failed: 1 })
  })

  test('the outputs of an item that did not complete are null by name', async () => {
    const { 'team.yml': team, ...one } = items('items: [1, 2, 3], on_item_failure: continue')
    const outputs = 'outputs: [{ name: all, type: list, value: "{{ phases.each.data.items.map(i, i.outputs.v) }}" }]'
    const run = await t.run({ 'team.yml': `${team}${outputs}\n`, ...one })
    expect(run.outputs).toEqual({ all: [1, null, 3] })
  })

  test('on_item_failure stop starts no more items, and the map fails with its data kept', async () => {
    const run = await t.run(items('items: [1, 2, 3, 4, 5], concurrency: 1'))
    expect(run).toMatchObject({ state: 'failed', error: { code: 'item_failed', phase: 'each' } })
    const [each] = phasesOf(run.run_id)
    expect(each!.data).toMatchObject({ total: 5, completed: 1, failed: 1 })
    const notBegun = { state: 'pending', run_id: null, outputs: { v: null } }
    expect(each!.data).toMatchObject({ items: { 4: notBegun } })
    expect(each!.sub_runs.map(run => run.state)).toEqual(['completed', 'failed'])
    expect(run.error!.message).toStartWith('4 of 5 items did not complete, 3 of which were not begun: 1 failed (')
    expect(run.error!.message).toContain('two')
    const last = await t.run(items('items: [1, 2], concurrency: 1'))
    expect(last.error!.message).toStartWith('1 of 2 items did not complete: 1 failed (')
    const next = await t.run(items('items: [1, 2, 3], concurrency: 1'))
    expect(next.error!.message).toStartWith('2 of 3 items did not complete, 1 of which was not begun: 1 failed (')
  })

  test('an empty list completes; a duplicate key names both indexes; a wrong type fails', async () => {
    expect((await t.run(items('items: []'))).state).toBe('completed')
    expect((await t.run(items('items: "{{ [1, 3] }}"'))).state).toBe('completed')
    const twice = await t.run(items(`items: [1, 3, 1], key: "k{{ item }}"`))
    expect(twice.error!.message).toMatch(/items 0 and 2 have the same key "k1"/)
    const wrong = await t.run(items(`items: ["text"]`))
    expect(wrong).toMatchObject({ state: 'failed' })
    expect(wrong.error!.message).toMatch(/item 0: .*input v: expected a number/)
  })

  test('recursion ends at depth 1,000 with an error, not a crash', async () => {
    const run = await t.run({
      'team.yml': `
name: "@local/self"
version: 1.0.0
phases:
  - { name: again, type: team, team: ./loop }
`,
      'loop/team.yml': `
name: "@local/loop"
version: 1.0.0
phases:
  - { name: again, type: team, team: ../loop }
`,
    })
    expect(run).toMatchObject({ state: 'failed' })
    expect(run.error!.message).toMatch(/nest at most 1000 levels deep/)
    expect([...treeEntries(t.engine.store.db, run.run_id)]).toHaveLength(1_001)
  })
})

describe('data above 1 MiB', () => {
  const HEAD = (name: string) => `name: "@local/${name}"\nversion: 1.0.0\n`
  const error = (runId: string, phase: string) => phasesOf(runId).find(({ name }) => name === phase)?.error

  test('fails the phase, which is told the file to use instead', async () => {
    const run = await t.run(`${HEAD('much')}phases:
  - { name: filed, agent: bulk, sources: [{ name: a.txt, size: 9, file: true }, { name: b.txt, size: 600000, file: true }] }
  - { name: bare, agent: bulk, sources: [{ name: a.txt, size: 600000 }] }
`)
    expect(error(run.run_id, 'filed')).toMatchObject({ code: 'too_large', message: expect.any(String) })
    expect(error(run.run_id, 'filed')?.message).toContain('use the file files/filed/b.txt instead')
    expect(error(run.run_id, 'bare')?.message).toContain('write a file files/bare/<name> instead')
  })

  const gives = (size: number) => `${HEAD('gives')}phases:
  - { name: a, agent: bulk, sources: [{ name: a.txt, size: ${size} }] }
outputs:
  - { name: one, type: string, value: "{{ phases.a.data.value }}" }
  - { name: two, type: string, value: "{{ phases.a.data.value }}" }
  - { name: three, type: string, value: "{{ phases.a.data.value }}" }
`

  test('of a team phase is no different', async () => {
    const run = await t.run({
      'team.yml': `${HEAD('above')}phases:\n  - { name: sub, type: team, team: ./sub }\n`,
      'sub/team.yml': gives(200_000),
    })
    expect(run.state).toBe('failed')
    expect(error(run.run_id, 'sub')?.code).toBe('too_large')
  })

  test('of a map is cut by its bytes, and whole in a file', async () => {
    const run = await t.run({
      'team.yml': `${HEAD('map')}phases:\n  - { name: each, type: map, team: ./sub, items: "{{ [1, 2, 3] }}" }\n`,
      'sub/team.yml': gives(80_000),
    })
    const [each] = phasesOf(run.run_id)
    expect(each).toMatchObject({ state: 'completed', data: { total: 3, completed: 3, truncated: true } })
    expect(Buffer.byteLength(JSON.stringify(each!.data))).toBeLessThanOrEqual(1_048_576)
    expect((each!.data as { items: unknown[] }).items).toHaveLength(2)
    const whole = await Bun.file(join(t.engine.stateDir(run.run_id), 'files/each/items.json')).json()
    expect(whole).toHaveLength(3)
  })
})

test('more teams than are kept in memory can all be read', async () => {
  const team = (n: number) => `name: "@local/nr"
version: 1.0.${n}
phases:
  - { name: p${n}, agent: echo, sources: [{ name: a, value: ${n} }] }
`
  const runs = await Promise.all(Array.from({ length: 120 }, (_, n) => t.run(team(n))))
  for (const [n, { run_id }] of runs.entries()) expect(phasesOf(run_id)).toMatchObject([{ name: `p${n}` }])
})

test('a phase says what it waits for', async () => {
  const run = await t.start(`
name: "@local/waits"
version: 1.0.0
concurrency: 1
phases:
  - { name: a, agent: echo, sources: [{ name: x, fail: wait }] }
  - { name: b, agent: echo, sources: [{ name: x }] }
  - { name: c, agent: echo, depends_on: [a, b], sources: [{ name: x }] }
`)
  const reasons = () => t.engine.phases(run.run_id).phases.map(phase => phase.waiting?.reason ?? null)
  // The runs before may have their slots for a moment longer.
  await until(() => reasons()[0] === null, 'the first phase has a slot')
  expect(reasons()).toEqual([null, 'concurrency of @local/waits', 'a, b'])
  await t.engine.cancel(run.run_id)
  await t.engine.ended(run.run_id)
  expect(reasons()).toEqual([null, null, null])
})

describe('cancel', () => {
  test('reaches every descendant and process', async () => {
    const run = await t.start({
      'team.yml': `
name: "@local/long"
version: 1.0.0
phases:
  - { name: down, type: team, team: ./sub }
  - { name: after, agent: echo, depends_on: [down], sources: [{ name: x }] }
`,
      'sub/team.yml': `
name: "@local/sub"
version: 1.0.0
phases:
  - { name: sleep, agent: exec, commands: [{ name: s, run: "sleep 60 & sleep 60" }] }
  - { name: wait, agent: echo, sources: [{ name: x, fail: wait }] }
`,
    })
    await Bun.sleep(50)
    await t.engine.cancel(run.run_id)
    const ended = await t.engine.ended(run.run_id)
    expect(ended).toMatchObject({ state: 'cancelled', reason: 'cancelled' })
    expect([...treeEntries(t.engine.store.db, run.run_id)].map(entry => entry.state)).toEqual([
      'cancelled',
      'cancelled',
    ])
    expect(phasesOf(run.run_id).map(phase => phase.state)).toEqual(['cancelled', 'cancelled'])
    expect(t.engine.load).toMatchObject({ runs: 0, slots: 0 })
    await expect(t.engine.cancel(run.run_id)).rejects.toMatchObject({ code: 'invalid_state' })
  })
})
