// What a resume repeats, and what it needs: conditions are decided anew, tolerated failures can be repeated, secrets are
// given again, a person's answer leaves what it found.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { AgentError } from '../../../lib/agent/cadre.ts'
import { deleteTree } from '../../../lib/daemon/runs/delete-tree.ts'
import type { JsonObject } from '../../../lib/json.ts'
import type { ResumeOptions } from '../../../lib/run/engine.ts'
import { runHistory } from '../../../lib/run/engine.ts'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { dataOf, phaseOf, questions, rowsOf, subRunOf } from '../../support/home.ts'
import { act, keyed, scripted, shell, team } from '../../support/scripted.ts'

/** Values that `work` cannot do, and how often `flaky` still fails. */
const broken = new Set<unknown>()
let failures = 0
let hold: Promise<void> | null = null
const { agents, calls } = scripted({
  work: (_, value) => {
    if (broken.has(value)) throw new AgentError(`${value} is broken`)
    return { value }
  },
  flaky: () => {
    if (failures-- > 0) throw new AgentError('not yet', { retryable: true })
  },
  wait: async () => {
    await hold
  },
})

let t: TestEngine
beforeEach(() => {
  broken.clear()
  calls.length = 0
  hold = null
})
afterEach(async () => {
  await t.close()
})
const ended = (runId: string) => within(t.engine.ended(runId), 'the end of the run')
const resumed = async (runId: string, given?: ResumeOptions) => {
  await within(t.engine.resume(runId, given), 'the resume')
  return ended(runId)
}
const stateOf = (runId: string, name: string) => {
  const { state, reason } = phaseOf(t, runId, name)
  return [state, reason]
}

describe('`when`', () => {
  test('waits for a phase that runs again, also behind one that completed before', async () => {
    t = await testEngine({ agents })
    broken.add('a')
    const { run_id } = await t.run(
      team([
        act('a', 'work', { value: 'a' }),
        act('b', 'work', { value: 'b', depends_on: ['a'], always: true }),
        act('c', 'work', { value: 'c', depends_on: ['b'], always: true, when: "phases.a.state == 'completed'" }),
        act('d', 'work', { value: 'd', depends_on: ['b'], always: true }),
      ]),
    )
    expect(['a', 'b', 'c', 'd'].map(name => stateOf(run_id, name)[0])).toEqual([
      'failed',
      'completed',
      'skipped',
      'completed',
    ])
    broken.clear()
    calls.length = 0
    expect(await resumed(run_id)).toMatchObject({ state: 'completed' })
    expect(stateOf(run_id, 'c')).toEqual(['completed', null])
    expect(calls.toSorted()).toEqual(['work a', 'work b', 'work c', 'work d'])
  })

  test('is no way around what is repeated: all behind a phase runs again, a cleanup that completed too', async () => {
    t = await testEngine({ agents })
    broken.add('x').add('other')
    const { run_id } = await t.run(
      team([
        act('x', 'work', { value: 'x' }),
        act('alw', 'work', { value: 'alw', depends_on: ['x'], always: true }),
        act('b', 'work', { value: '{{ phases.x.state }}', depends_on: ['alw'] }),
        act('other', 'work', { value: 'other' }),
      ]),
    )
    expect(dataOf(t, run_id, 'b')).toMatchObject({ value: 'failed' })
    broken.delete('x')
    calls.length = 0
    const { kept, repeated } = t.engine.planResume(run_id)
    expect([kept.length, repeated.map(({ phase }) => phase)]).toEqual([0, ['x', 'alw', 'b', 'other']])
    expect(await resumed(run_id)).toMatchObject({ state: 'failed' })
    expect(dataOf(t, run_id, 'b')).toMatchObject({ value: 'completed' })
    calls.length = 0
    // Nothing of it is repeated where only the other phase failed.
    broken.clear()
    expect(await resumed(run_id)).toMatchObject({ state: 'completed' })
    expect(calls).toEqual(['work other'])
  })

  test('is evaluated again, but not where a completed phase depends on it', async () => {
    t = await testEngine({ agents })
    broken.add('first').add('other')
    const { run_id } = await t.run(
      team([
        act('first', 'work', { value: 'first', on_failure: 'continue' }),
        act('second', 'work', { value: 'second', depends_on: ['first'], when: "phases.first.state == 'completed'" }),
        act('instead', 'work', { value: 'instead', depends_on: ['first'], when: "phases.first.state == 'failed'" }),
        act('never', 'work', { value: 'never', depends_on: ['first'], when: '1 > 2' }),
        act('after', 'work', { value: 'after', depends_on: ['second'] }),
        act('other', 'work', { value: 'other' }),
      ]),
    )
    expect(stateOf(run_id, 'second')).toEqual(['skipped', 'when'])
    expect(stateOf(run_id, 'instead')).toEqual(['completed', null])
    broken.clear()
    calls.length = 0
    expect(await resumed(run_id)).toMatchObject({ state: 'completed' })
    // `instead` ran because of the failure, and `after` because of the skip.
    expect(stateOf(run_id, 'first')).toEqual(['failed', null])
    expect(stateOf(run_id, 'second')).toEqual(['skipped', 'when'])
    expect(stateOf(run_id, 'never')).toEqual(['skipped', 'when'])
    expect(calls.sort()).toEqual(['work other'])
  })

  test('is evaluated again inside a sub-run, too', async () => {
    t = await testEngine({ agents })
    broken.add('first').add('other')
    const { run_id } = await t.run({
      'team.yml': team([{ name: 'down', type: 'team', team: './child' }]),
      'child/team.yml': team([
        act('first', 'work', { value: 'first', on_failure: 'continue' }),
        act('second', 'work', { value: 'second', depends_on: ['first'], when: "phases.first.state == 'completed'" }),
        act('other', 'work', { value: 'other' }),
      ]),
    })
    broken.clear()
    expect(await resumed(run_id)).toMatchObject({ state: 'completed' })
    expect(stateOf(subRunOf(t, run_id, 'down'), 'second')).toEqual(['completed', null])
  })

  test('that cannot be evaluated heeds `on_failure: escalate`', async () => {
    t = await testEngine({ agents })
    const { run_id } = await t.start(
      team([
        act('first', 'work', { value: 1 }),
        act('second', 'work', {
          depends_on: ['first'],
          when: 'phases.first.data.missing.more > 1',
          on_failure: 'escalate',
          value: 2,
        }),
      ]),
    )
    const [question] = await within(questions(t), 'the question')
    expect(question).toMatchObject({ run_id, kind: 'escalation' })
    expect(stateOf(run_id, 'second')[0]).toBe('awaiting_input')
    // It cannot be evaluated the second time either: the phase does not begin because of that.
    await t.engine.decide(question!.id, { decision: 'retry', by: 'somebody' })
    expect(stateOf(run_id, 'second')[0]).toBe('awaiting_input')
    await t.engine.decide(question!.id, { decision: 'skip', by: 'somebody' })
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    expect(stateOf(run_id, 'second')).toEqual(['skipped', 'person'])
  })
})

describe('with `failed`', () => {
  const map = {
    'team.yml': team(
      [
        keyed(['a', 'b', 'c', 'd'], './one', { inputs: { v: '{{ item }}' }, on_item_failure: 'continue' }),
        act('after', 'work', { depends_on: ['each'], value: '{{ phases.each.data.failed }} failed' }),
        act('beside', 'work', { value: 'beside' }),
      ],
      { outputs: [{ name: 'failed', type: 'number', value: '{{ phases.each.data.failed }}' }] },
    ),
    'one/team.yml': team([act('first', 'work', { value: 'first' }), act('work', 'work', { value: '{{ inputs.v }}' })], {
      inputs: [{ name: 'v', type: 'string' }],
    }),
  }

  test('the failed items of a map that completed by `continue` are repeated, with what depends on it', async () => {
    t = await testEngine({ agents })
    broken.add('b').add('d')
    const { run_id } = await t.run(map)
    expect(t.engine.record(run_id)).toMatchObject({ state: 'completed', outputs: { failed: 2 } })
    const before = phaseOf(t, run_id, 'each').sub_runs.map(run => run.run_id)
    expect(t.engine.planResume(run_id, { failed: true })).toMatchObject({
      kept: [{ phase: 'beside' }],
      repeated: [
        { phase: 'each', whole: false, renewed: false, runs: { kept: 2, repeated: 2, names: ['b', 'd'] } },
        { phase: 'after', whole: true },
      ],
    })
    broken.delete('b')
    calls.length = 0
    expect(await resumed(run_id, { failed: true })).toMatchObject({ state: 'completed', outputs: { failed: 1 } })
    expect(calls.sort()).toEqual(['work 1 failed', 'work b', 'work d'])
    const { attempts } = runHistory(t.engine.store, run_id, id => t.engine.bundle(id))
    const earlier = attempts.map(({ phase, attempt }) => `${phase} ${attempt}`)
    expect(earlier.sort()).toEqual(['after 1', 'each 1'])
    expect(dataOf(t, run_id, 'each')).toMatchObject({ total: 4, completed: 3, failed: 1 })
    expect(phaseOf(t, run_id, 'each').sub_runs.map(run => run.run_id)).toEqual(before)
    broken.clear()
    calls.length = 0
    expect(await resumed(run_id, { failed: true })).toMatchObject({ state: 'completed', outputs: { failed: 0 } })
    expect(calls.sort()).toEqual(['work 0 failed', 'work d'])
  })

  test('maps below a team phase and below a map are looked through as well', async () => {
    t = await testEngine({ agents })
    broken.add('b')
    const child = Object.fromEntries(Object.entries(map).map(([path, text]) => [`child/${path}`, text]))
    const { run_id } = await t.run({
      'team.yml': team([
        { name: 'down', type: 'team', team: './child' },
        { name: 'twice', type: 'map', items: [1, 2], team: './child' },
      ]),
      ...child,
    })
    expect(t.engine.record(run_id).state).toBe('completed')
    broken.clear()
    calls.length = 0
    expect(await resumed(run_id, { failed: true })).toMatchObject({ state: 'completed' })
    expect(calls.sort()).toEqual([...Array(3).fill('work 0 failed'), ...Array(3).fill('work b')])
  })

  test('failed phases and phases that a failed run left open are repeated, too', async () => {
    t = await testEngine({ agents })
    broken.add('b').add('beside')
    const { run_id } = await t.run(map)
    expect(t.engine.record(run_id)).toMatchObject({ state: 'failed' })
    broken.clear()
    calls.length = 0
    expect(await resumed(run_id, { failed: true })).toMatchObject({ state: 'completed', outputs: { failed: 0 } })
    expect(calls.sort()).toEqual(['work 0 failed', 'work b', 'work beside'])
  })
})

describe('what is repeated is closed under `depends_on`', () => {
  const instead = team([
    act('primary', 'work', { value: 'primary', on_failure: 'continue' }),
    act('fallback', 'work', {
      value: 'fallback',
      depends_on: ['primary'],
      when: "phases.primary.state == 'failed'",
    }),
    act('last', 'work', {
      depends_on: ['primary', 'fallback'],
      value: '{{ phases.primary.state }} {{ phases.fallback.state }}',
    }),
  ])

  test('a failure because of which another phase completed stays at a resume', async () => {
    t = await testEngine({ agents })
    broken.add('primary').add('failed completed')
    const { run_id } = await t.run(instead)
    expect(t.engine.record(run_id).state).toBe('failed')
    broken.clear()
    calls.length = 0
    const { kept, repeated } = t.engine.planResume(run_id)
    expect([kept, repeated].map(list => list.map(({ phase }) => phase))).toEqual([['primary', 'fallback'], ['last']])
    expect(await resumed(run_id)).toMatchObject({ state: 'completed' })
    expect(calls).toEqual(['work failed completed'])
  })

  test('`failed` repeats it, with all that depends on it', async () => {
    t = await testEngine({ agents })
    broken.add('primary')
    const { run_id } = await t.run(instead)
    expect(t.engine.record(run_id).state).toBe('completed')
    broken.clear()
    calls.length = 0
    expect(await resumed(run_id, { failed: true })).toMatchObject({ state: 'completed' })
    expect(stateOf(run_id, 'fallback')).toEqual(['skipped', 'when'])
    expect(calls).toEqual(['work primary', 'work completed skipped'])
    const none = t.engine.resume(run_id, { failed: true })
    await expect(none).rejects.toMatchObject({ code: 'invalid_state' })
  })

  test('`failed` reaches the rest of a map that stopped, and repeats no item that completed', async () => {
    t = await testEngine({ agents })
    broken.add('b')
    const stops = { inputs: { v: '{{ item }}' }, concurrency: 1, on_failure: 'continue' }
    const { run_id } = await t.run({
      'team.yml': team([
        keyed(['a', 'b', 'c'], './one', stops),
        act('after', 'work', { depends_on: ['each'], value: '{{ phases.each.data.completed }} completed' }),
      ]),
      'one/team.yml': team([act('work', 'work', { value: '{{ inputs.v }}' })], {
        inputs: [{ name: 'v', type: 'string' }],
      }),
    })
    expect(t.engine.record(run_id).state).toBe('completed')
    expect(calls).toEqual(['work a', 'work b', 'work 1 completed'])
    broken.clear()
    calls.length = 0
    expect(t.engine.planResume(run_id, { failed: true }).repeated).toMatchObject([
      { phase: 'each', whole: false, runs: { kept: 1, repeated: 2, names: ['b'] } },
      { phase: 'after' },
    ])
    expect(await resumed(run_id, { failed: true })).toMatchObject({ state: 'completed' })
    expect(calls).toEqual(['work b', 'work c', 'work 3 completed'])
  })

  test('a map behind it gets the items that are new, and keeps those that completed and are the same', async () => {
    t = await testEngine({ agents })
    broken.add('b').add('a+')
    const one = (suffix: string) =>
      team([act('work', 'work', { value: `{{ inputs.v + '${suffix}' }}` })], {
        inputs: [{ name: 'v', type: 'string' }],
        outputs: [{ name: 'v', type: 'string', value: '{{ phases.work.data.value }}' }],
      })
    const each = { inputs: { v: '{{ item }}' }, concurrency: 1, on_item_failure: 'continue' }
    const { run_id } = await t.run({
      'team.yml': team([
        keyed(['a', 'b', 'c'], './one', each),
        {
          ...{ name: 'then', type: 'map', depends_on: ['each'], team: './two', key: '{{ item }}', ...each },
          items: "{{ phases.each.data.items.filter(i, i.state == 'completed').map(i, i.outputs.v) }}",
        },
      ]),
      'one/team.yml': one(''),
      'two/team.yml': one('+'),
    })
    expect(calls).toEqual(['work a', 'work b', 'work c', 'work a+', 'work c+'])
    broken.clear()
    calls.length = 0
    const before = phaseOf(t, run_id, 'then').sub_runs.map(run => run.run_id)
    expect(await resumed(run_id, { failed: true })).toMatchObject({ state: 'completed' })
    expect(calls).toEqual(['work b', 'work a+', 'work b+'])
    const { sub_runs } = phaseOf(t, run_id, 'then')
    expect(sub_runs.map(run => [run.run_name, run.state])).toEqual(['a', 'b', 'c'].map(key => [key, 'completed']))
    expect([sub_runs[0]!.run_id, sub_runs[2]!.run_id]).toEqual(before)
  })

  test('`failed` reaches what was passed over inside of sub-runs that failed, and of items that completed', async () => {
    t = await testEngine({ agents })
    broken.add('soft').add('2 hard')
    const { run_id } = await t.run({
      'team.yml': team([
        {
          ...{ name: 'each', type: 'map', items: [1, 2], key: 'k{{ item }}', team: './one', concurrency: 1 },
          ...{ inputs: { n: '{{ item }}' }, on_item_failure: 'continue' },
        },
      ]),
      'one/team.yml': team(
        [
          act('soft', 'work', { value: 'soft', on_failure: 'continue' }),
          act('then', 'work', { value: 'then', depends_on: ['soft'] }),
          act('hard', 'work', { value: '{{ inputs.n }} hard', depends_on: ['then'] }),
          act('beside', 'work', { value: 'beside' }),
        ],
        { inputs: [{ name: 'n', type: 'number' }], concurrency: 1 },
      ),
    })
    broken.clear()
    calls.length = 0
    expect(await resumed(run_id, { failed: true })).toMatchObject({ state: 'completed' })
    expect(calls).toEqual(['work soft', 'work then', 'work 1 hard', 'work soft', 'work then', 'work 2 hard'])
  })
})

describe('secret inputs', () => {
  const SECRET = 'a-value-nobody-sees'
  const secret = (go: string, told: string) =>
    team(
      [
        shell('use', '[ -e "$GO" ] || exit 1; printf %s "$T" > "$TOLD"; echo "$T"', {
          env: { GO: go, TOLD: told, T: '{{ inputs.token }}' },
        }),
      ],
      {
        inputs: [
          { name: 'token', type: 'string', required: true, secret: true },
          { name: 'plain', type: 'string' },
        ],
      },
    )
  const place = () => {
    const at = folder()
    return [join(at, 'go'), join(at, 'told')] as const
  }

  test('are given again at a resume, and are named when they are missing', async () => {
    t = await testEngine()
    const [go, told] = place()
    const { run_id } = await t.run(secret(go, told), { token: SECRET, plain: 'seen' })
    expect(t.engine.record(run_id).state).toBe('failed')
    await until(() => !existsSync(join(t.home, 'secrets', run_id)), 'the secret is forgotten')
    writeFileSync(go, '')
    const refused = await t.engine.resume(run_id).catch((error: Error) => error)
    expect(refused).toBeInstanceOf(Error)
    expect((refused as Error).message).toMatch(/\btoken\b/)
    expect(t.engine.record(run_id)).toMatchObject({ state: 'failed', attempt: 1 })

    expect(await resumed(run_id, { inputs: { token: SECRET } })).toMatchObject({
      state: 'completed',
      attempt: 2,
      inputs: { plain: 'seen' },
    })
    expect(await Bun.file(told).text()).toBe(SECRET)
    const shown = JSON.stringify([t.engine.record(run_id), t.engine.phases(run_id)])
    expect(shown).not.toContain(SECRET)
    await until(() => !existsSync(join(t.home, 'secrets', run_id)), 'the secret is forgotten again')
  })

  test('are not kept where the resume is refused', async () => {
    t = await testEngine()
    const { run_id } = await t.run(secret(...place()), { token: SECRET, plain: 'seen' })
    const kept = join(t.home, 'secrets', run_id)
    await until(() => !existsSync(kept), 'the secret is forgotten')
    const refused = await t.engine.resume(run_id, { from: 'absent', inputs: { token: SECRET } }).catch(error => error)
    expect(refused).toMatchObject({ code: 'invalid_request' })
    await until(() => !existsSync(kept), 'the secret is forgotten again')
  })

  test('are not kept where the process ended before the resume was recorded', async () => {
    const home = folder()
    t = await testEngine({ home })
    const { run_id } = await t.run(secret(...place()), { token: SECRET, plain: 'seen' })
    const kept = join(home, 'secrets', run_id)
    await until(() => !existsSync(kept), 'the secret is forgotten')
    await until(
      () => rowsOf<{ settled: number }>(home, 'SELECT settled FROM runs')[0]!.settled === 1,
      'the work after its end',
    )
    await t.close()
    writeFileSync(kept, 'sealed')
    t = await testEngine({ home })
    expect(existsSync(kept)).toBe(false)
  })

  test('are there over a restart in the middle of what was resumed', async () => {
    const home = folder()
    t = await testEngine({ home })
    const [go, told] = place()
    const text = team(
      [
        shell('use', '[ -e "$GO" ] || exit 1; [ -e "$GO.on" ] || sleep 60; printf %s "$T" > "$TOLD"', {
          env: { GO: go, TOLD: told, T: '{{ inputs.token }}' },
        }),
      ],
      { inputs: [{ name: 'token', type: 'string', required: true, secret: true }] },
    )
    const { run_id } = await t.run(text, { token: SECRET })
    writeFileSync(go, '')
    await t.engine.resume(run_id, { inputs: { token: SECRET } })
    await until(() => phaseOf(t, run_id, 'use').state === 'running', 'the phase')
    await t.close()
    writeFileSync(`${go}.on`, '')
    t = await testEngine({ home })
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    expect(await Bun.file(told).text()).toBe(SECRET)
  })

  describe('of a run whose key file was replaced', () => {
    const replaced = async () => {
      const home = folder()
      const [go, told] = place()
      t = await testEngine({ home })
      const text = secret(go, told).replace('exit 1', 'sleep 60')
      const { run_id } = await t.start(text, { token: SECRET })
      await until(() => phaseOf(t, run_id, 'use').state === 'running', 'the phase')
      await t.close()
      rmSync(join(home, 'key'))
      writeFileSync(join(home, 'key'), crypto.getRandomValues(new Uint8Array(32)), { mode: 0o600 })
      writeFileSync(go, '')
      t = await within(testEngine({ home }), 'the next start')
      return { run_id, told }
    }

    test('keep no other run from being started, and the run can be cancelled and deleted', async () => {
      const { run_id } = await replaced()
      expect((await within(t.run(team([shell('other', 'true')])), 'another run')).state).toBe('completed')
      const { state } = t.engine.record(run_id)
      if (state === 'running') await within(t.engine.cancel(run_id), 'the cancel')
      expect(['cancelled', 'failed']).toContain((await ended(run_id)).state)
      await within(deleteTree(t.engine, run_id), 'the deletion')
      expect(rowsOf(t.home, 'SELECT id FROM runs WHERE id = ?', run_id)).toEqual([])
      expect(existsSync(t.engine.stateDir(run_id))).toBe(false)
      expect(existsSync(join(t.home, 'secrets', run_id))).toBe(false)
    })

    test('are given again at a resume, which completes', async () => {
      const { run_id, told } = await replaced()
      if (t.engine.record(run_id).state === 'running') await within(t.engine.cancel(run_id), 'the cancel')
      await ended(run_id)
      expect(await resumed(run_id, { inputs: { token: SECRET } })).toMatchObject({ state: 'completed' })
      expect(await Bun.file(told).text()).toBe(SECRET)
    })
  })
})

describe('a reopened phase', () => {
  test('does not show times of an earlier attempt, neither while it waits nor after it has started', async () => {
    let offset = 0
    t = await testEngine({ agents, now: () => Date.now() + offset })
    broken.add('a')
    const { run_id } = await t.run({
      'team.yml': team([
        act('first', 'wait'),
        act('second', 'work', { depends_on: ['first'], value: 'a' }),
        { name: 'down', type: 'team', team: './child', depends_on: ['second'] },
      ]),
      'child/team.yml': team([act('work', 'work', { value: 'b' })]),
    })
    broken.clear()
    expect((await resumed(run_id)).state).toBe('completed')
    offset = 3_600_000
    const since = Date.now() + offset
    const held = Promise.withResolvers<void>()
    hold = held.promise
    await t.engine.resume(run_id, { from: 'first' })
    await until(() => phaseOf(t, run_id, 'first').state === 'running', 'the first phase')
    expect(phaseOf(t, run_id, 'first').started_at).toBeGreaterThanOrEqual(since)
    for (const name of ['second', 'down']) {
      expect(phaseOf(t, run_id, name)).toMatchObject({ state: 'pending', started_at: null, completed_at: null })
    }
    held.resolve()
    expect((await ended(run_id)).state).toBe('completed')
    for (const name of ['first', 'second', 'down']) {
      expect(phaseOf(t, run_id, name).started_at).toBeGreaterThanOrEqual(since)
    }
    expect(phaseOf(t, subRunOf(t, run_id, 'down'), 'work').started_at).toBeGreaterThanOrEqual(since)
  })

  test('that is skipped or cancelled this time shows no start of an earlier attempt', async () => {
    t = await testEngine({ agents })
    const { run_id } = await t.run(
      team([act('first', 'work', { value: 'a' }), act('second', 'work', { depends_on: ['first'], value: 'b' })]),
    )
    broken.add('a')
    expect((await resumed(run_id, { from: 'first' })).state).toBe('failed')
    expect(phaseOf(t, run_id, 'second')).toMatchObject({ state: 'skipped', reason: 'upstream', started_at: null })
  })
})

describe('a person', () => {
  const asked = async (files: Parameters<TestEngine['start']>[0]) => {
    const { run_id } = await t.start(files)
    const [question] = await questions(t)
    return { run_id, question: question! }
  }

  test('an escalated map that a person fails keeps its data and files', async () => {
    t = await testEngine({ agents })
    broken.add('b')
    const { run_id, question } = await asked({
      'team.yml': team([
        keyed(['a', 'b'], './one', { inputs: { v: '{{ item }}' }, concurrency: 1, on_failure: 'escalate' }),
      ]),
      'one/team.yml': team(
        [shell('make', 'echo made > "$CADRE_OUT/doc"'), act('work', 'work', { value: '{{ inputs.v }}' })],
        {
          inputs: [{ name: 'v', type: 'string' }],
          outputs: [{ name: 'doc', type: 'file', value: 'files/make/doc' }],
        },
      ),
    })
    await t.engine.decide(question.id, { decision: 'fail', by: 'somebody' })
    expect(await ended(run_id)).toMatchObject({ state: 'failed' })
    const { state, reason, data, files } = phaseOf(t, run_id, 'each')
    expect({ state, reason }).toEqual({ state: 'failed', reason: 'person' })
    expect(data as JsonObject).toMatchObject({
      total: 2,
      completed: 1,
      failed: 1,
      items: [
        { key: 'a', state: 'completed' },
        { key: 'b', state: 'failed' },
      ],
    })
    expect(files.map(file => file.path)).toEqual(['files/each/a/doc'])
  })

  test('a retry by a person gives the phase all its attempts again', async () => {
    t = await testEngine({ agents })
    failures = 5
    const retry = { attempts: 3, backoff: '1ms' }
    const { run_id, question } = await asked(team([act('work', 'flaky', { retry, on_failure: 'escalate' })]))
    expect(calls).toHaveLength(3)
    await t.engine.decide(question.id, { decision: 'retry', by: 'somebody' })
    // Two more fail, and the third of the new attempts does not.
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    expect(calls).toHaveLength(6)
    expect(phaseOf(t, run_id, 'work')).toMatchObject({ state: 'completed', attempt: 6 })
  })
})
