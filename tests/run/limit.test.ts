// `limit` of a phase: how many entries begin below it within a time. Time passes only when the test says so.

import { afterEach, describe, expect, test } from 'bun:test'
import { AgentError } from '../../lib/agent/cadre.ts'
import { type PaceClock, type PaceLimit, Paces } from '../../lib/run/attempt/paces.ts'
import { until } from '../support/bounded.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'
import { faultServer } from '../support/faults.ts'
import { folder } from '../support/folder.ts'
import { checkInvariants } from '../support/invariants.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { type Act, act, keyed, scripted, shell, team } from '../support/scripted.ts'

/** A clock that stands still until it is driven. It counts how often somebody wanted to be woken at the same time. */
function standing(): PaceClock & { pass(ms: number): void; most: number } {
  let now = 0
  const rings = new Set<{ at: number; ring: () => void }>()
  return {
    most: 0,
    now: () => now,
    ringAfter(ms, ring) {
      const each = { at: now + ms, ring }
      rings.add(each)
      this.most = Math.max(this.most, rings.size)
      return () => rings.delete(each)
    },
    pass(ms) {
      const end = now + ms
      for (;;) {
        const next = [...rings].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
        if (!next) break
        rings.delete(next)
        now = Math.max(now, next.at)
        next.ring()
      }
      now = end
    },
  }
}

describe('a pace', () => {
  const ten: PaceLimit = { key: 'a', name: 'a', count: 10, per: 1_000 }
  const signal = new AbortController().signal

  test('lets no more begin within any time than it says, in the order in which they came, with one timer', async () => {
    const clock = standing()
    const paces = new Paces(clock)
    const random = randomFrom(seedOf('paces'))
    const begun: { at: number; number: number }[] = []
    for (let number = 0; number < 500; number++) {
      if (random() < 0.3) clock.pass(random() * 150)
      if (paces.begin([ten])) begun.push({ at: clock.now(), number })
      else {
        void paces.wait([ten], signal).then(turn => {
          turn.begin()
          begun.push({ at: clock.now(), number })
        })
      }
      await Bun.sleep(0)
    }
    while (begun.length < 500) {
      clock.pass(50)
      await Bun.sleep(0)
    }
    expect(begun.map(({ number }) => number)).toEqual(Array.from({ length: 500 }, (_, number) => number))
    for (const [at, each] of begun.entries()) {
      const tenth = begun[at + 10]
      if (tenth) expect(tenth.at - each.at).toBeGreaterThanOrEqual(1_000)
    }
    expect(clock.most).toBe(1)
  })

  test('lets entries of a short time begin one after the other, as often as it says, and of a long one at once', async () => {
    const clock = standing()
    const paces = new Paces(clock)
    const forty = { ...ten, count: 40 }
    const begun: number[] = []
    for (let number = 0; number < 400; number++) {
      void paces.wait([forty], signal).then(turn => {
        turn.begin()
        begun.push(clock.now())
      })
    }
    // A timer of this machine rings up to some milliseconds late.
    while (begun.length < 400 && clock.now() < 20_000) {
      clock.pass(7)
      await Bun.sleep(0)
    }
    const most = (ms: number) => Math.max(...begun.map(at => begun.filter(each => each >= at && each < at + ms).length))
    expect([most(1_000) <= 40, most(100) <= 9, begun.at(-1)! < 10_100]).toEqual([true, true, true])
    const hundred = { key: 'hour', name: 'hour', count: 100, per: 3_600_000 }
    expect(Array.from({ length: 101 }, () => paces.begin([hundred])).filter(each => each)).toHaveLength(100)
  })

  test('keeps the place of an entry that may begin, and gives it back when the entry does not', async () => {
    const clock = standing()
    const paces = new Paces(clock)
    const one = { ...ten, count: 1 }
    expect(paces.begin([one])).toBe(true)
    const [first, second] = [paces.wait([one], signal), paces.wait([one], signal)]
    clock.pass(1_000)
    const turn = await first
    clock.pass(5_000)
    expect(paces.begin([one])).toBe(false)
    turn.drop()
    turn.begin()
    ;(await second).begin()
    expect(paces.begin([one])).toBe(false)
  })

  test('counts an entry in all of its limits, and leaves out one that is given up', async () => {
    const clock = standing()
    const paces = new Paces(clock)
    const slow = { key: 'slow', name: 'slow', count: 1, per: 10_000 }
    expect(paces.begin([ten, slow])).toBe(true)
    expect(paces.begin([ten, slow])).toBe(false)
    expect(paces.begin([ten])).toBe(true)
    const given = new AbortController()
    const up = paces.wait([ten, slow], given.signal)
    const stays = paces.wait([ten, slow], signal)
    given.abort(new Error('given up'))
    await expect(up).rejects.toThrow('given up')
    clock.pass(10_000)
    ;(await stays).begin()
  })
})

describe('the limit of a phase', () => {
  let t: TestEngine
  let clock = standing()
  afterEach(async () => {
    await t.close()
    checkInvariants(t.home)
  })

  async function engine(acts: Record<string, Act>, slots = 64) {
    const { agents, calls } = scripted(acts)
    clock = standing()
    t = await testEngine({ home: folder(), agents, slots, paceClock: clock })
    return { calls }
  }

  const limit = (count: number) => ({ limit: { count, per: '1h' } })
  const child = team([act('work', 'work', { value: '{{ inputs.n }}' })], {
    name: '@local/child',
    inputs: [{ name: 'n', type: 'number' }],
  })
  const items = (n: number) => Array.from({ length: n }, (_, at) => at)
  /** What the phases of a run and of those below it wait for. */
  const waits = (runId: string): string[] =>
    t.engine
      .phases(runId)
      .phases.flatMap(({ waiting, sub_runs }) => [
        ...(waiting ? [waiting.reason] : []),
        ...sub_runs.flatMap(({ run_id }) => waits(run_id)),
      ])

  test('all items of a map share its limit, and those that wait keep no slot', async () => {
    const { calls } = await engine({ work: () => ({}), other: () => ({}) }, 2)
    const map = keyed(items(5), './child', { inputs: { n: '{{ item }}' }, ...limit(2) })
    const { run_id } = await t.start({ 'team.yml': team([map]), 'child/team.yml': child })
    const shown = () => waits(run_id).filter(reason => reason === 'the limit of each (2 per 1h)')
    await until(() => shown().length === 3, 'three that wait')
    expect(calls).toEqual(['work 0', 'work 1'])
    // Another run gets the slots.
    expect((await t.run(team([act('other', 'other')]))).state).toBe('completed')
    clock.pass(3_600_000)
    await until(() => shown().length === 1, 'one that waits')
    expect(calls.filter(call => call !== 'other')).toEqual(['work 0', 'work 1', 'work 2', 'work 3'])
    clock.pass(3_600_000)
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(calls).toHaveLength(6)
    expect(t.engine.load.slots).toBe(0)
  })

  test('a cancel ends the wait, and the place goes to nobody', async () => {
    const { calls } = await engine({ work: () => ({}) }, 1)
    const map = keyed(items(3), './child', { inputs: { n: '{{ item }}' }, ...limit(1) })
    const { run_id } = await t.start({ 'team.yml': team([map]), 'child/team.yml': child })
    await until(() => waits(run_id).filter(reason => reason.startsWith('the limit')).length === 2, 'those that wait')
    await t.engine.cancel(run_id)
    expect((await t.engine.ended(run_id)).state).toBe('cancelled')
    expect(calls).toEqual(['work 0'])
    expect((await t.run(team([act('work', 'work')]))).state).toBe('completed')
  })

  test('each attempt counts, each entry of a phase, and its clock stands meanwhile', async () => {
    let fails = true
    const { calls } = await engine({
      a() {
        if (!fails) return {}
        fails = false
        throw new AgentError('not now', { retryable: true })
      },
      b: () => ({}),
    })
    const two = { name: 'both', agent: 'act', sources: [{ name: 'a' }, { name: 'b' }] }
    const retry = { retry: { attempts: 2, backoff: '1ms' }, timeout: '200ms' }
    const { run_id } = await t.start(team([{ ...two, ...retry, ...limit(2) }]))
    await until(() => waits(run_id).includes('the limit of both (2 per 1h)'), 'the third')
    expect(calls).toEqual(['a', 'a'])
    await Bun.sleep(400)
    clock.pass(3_600_000)
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(calls).toEqual(['a', 'a', 'b'])
  })

  test('a request that is sent again counts like the first', async () => {
    using server = faultServer()
    let asked = 0
    server.on('/', () =>
      asked++ === 0 ? new Response('', { status: 429, headers: { 'retry-after': '0' } }) : new Response('done'),
    )
    const { calls } = await engine({
      async a(context) {
        await (await context.fetch(server.url)).text()
      },
      b: () => ({}),
    })
    const two = { name: 'both', agent: 'act', sources: [{ name: 'a' }, { name: 'b' }] }
    const { run_id } = await t.start(team([{ ...two, ...limit(2) }]))
    await until(() => waits(run_id).includes('the limit of both (2 per 1h)'), 'the second entry')
    expect([asked, calls]).toEqual([2, ['a']])
    clock.pass(3_600_000)
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(calls).toEqual(['a', 'b'])
  })

  test('its wait is shown, and the clock of the attempt stands meanwhile', async () => {
    using server = faultServer()
    let asked = 0
    server.on('/', () =>
      asked++ === 0 ? new Response('', { status: 429, headers: { 'retry-after': '0' } }) : new Response('done'),
    )
    await engine({
      async a(context) {
        await (await context.fetch(server.url)).text()
      },
    })
    const { run_id } = await t.start(team([act('one', 'a', { timeout: '300ms', ...limit(1) })]))
    await until(() => waits(run_id).includes('the limit of one (1 per 1h)'), 'the request that is sent again')
    await Bun.sleep(600)
    expect([asked, t.engine.record(run_id).state]).toEqual([1, 'running'])
    clock.pass(3_600_000)
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(asked).toBe(2)
  })

  test('of commands each counts, also those of a gate below', async () => {
    await engine({})
    const below = team(
      [
        { name: 'gate', type: 'gate', commands: [{ name: 'g', run: 'echo g >> "$CADRE_FILES/../seen"' }] },
        {
          ...shell('run', ''),
          depends_on: ['gate'],
          commands: ['a', 'b'].map(name => ({ name, run: `echo ${name} >> "$CADRE_FILES/../seen"` })),
        },
      ],
      { name: '@local/below' },
    )
    const { run_id } = await t.start({
      'team.yml': team([{ name: 'down', type: 'team', team: './below', ...limit(2) }]),
      'below/team.yml': below,
    })
    await until(() => waits(run_id).includes('the limit of down (2 per 1h)'), 'the third command')
    const [sub] = t.engine.phases(run_id).phases[0]!.sub_runs
    const seen = () => Bun.file(`${t.engine.stateDir(t.engine.idOf(sub!.run_id))}/seen`).text()
    expect(await seen()).toBe('g\na\n')
    clock.pass(3_600_000)
    expect((await t.engine.ended(run_id)).state).toBe('completed')
    expect(await seen()).toBe('g\na\nb\n')
  })

  test('limits of several levels hold together', async () => {
    const { calls } = await engine({ work: () => ({}) })
    const each = keyed(items(4), './child', { inputs: { n: '{{ item }}' }, ...limit(3) })
    const inner = team([act('work', 'work', { value: '{{ inputs.n }}', ...limit(1) })], {
      name: '@local/child',
      inputs: [{ name: 'n', type: 'number' }],
    })
    const { run_id } = await t.start({ 'team.yml': team([each]), 'child/team.yml': inner })
    await until(
      () => calls.length === 3 && waits(run_id).some(reason => reason.startsWith('the limit of')),
      'the fourth',
    )
    expect(waits(run_id)).toContain('the limit of work (1 per 1h), the limit of each (3 per 1h)')
    clock.pass(3_600_000)
    expect((await t.engine.ended(run_id)).state).toBe('completed')
  })
})
