// Resume from a phase: everything that depends on it is repeated with new inputs. A sub-run keeps its run id where its
// phase (team) or its key (map) is the same; what was written outside is not written again.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { deleteTree } from '../../lib/daemon/runs/delete-tree.ts'
import type { Json } from '../../lib/json.ts'
import { runPhases, treeEntries } from '../../lib/run/engine.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'

/** What `look` gives by name, what was posted, and how often each value was worked on. */
let outside: {
  given: Record<string, Json>
  posted: string[]
  worked: string[]
  broken: string
  hold: Promise<void> | null
  ring: Promise<void> | null
}

const look = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Gives what lies outside now.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String() }),
    async run({ name }) {
      if (outside.broken === name) throw new AgentError(`${name} is broken`)
      return { text: name, data: { value: outside.given[name] ?? null } }
    },
  },
})

const work = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Works on a value and writes it into a file.',
  settings: Type.Object({}),
  source: {
    effect: 'idempotent',
    entry: Type.Object({ name: Type.String(), file: Type.Optional(Type.String()), value: Type.Any() }),
    async run({ name, file, value }, context) {
      if (outside.broken !== String(value)) await outside.hold
      context.signal.throwIfAborted()
      outside.worked.push(String(value))
      if (outside.broken === String(value)) throw new AgentError(`${value} is broken`)
      await context.write(file ?? name, String(value))
      return { text: name, data: { value } }
    },
  },
  target: {
    effect: 'once',
    entry: Type.Object({ name: Type.String(), title: Type.String() }),
    async run({ title }, context) {
      outside.posted.push(`${title} ${context.key}`)
      return { text: title, data: { title }, external: { id: title } }
    },
  },
})

const bell = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Takes its time to tell.',
  settings: Type.Object({}),
  notify: {
    effect: 'read',
    entry: Type.Object({}),
    async run() {
      await outside.ring
      return { text: 'rang' }
    },
  },
})

let t: TestEngine
beforeEach(async () => {
  outside = { given: {}, posted: [], worked: [], broken: '', hold: null, ring: null }
  t = await testEngine({ agents: { look, work, bell } })
})
afterEach(async () => {
  expect(brokenInvariants(t.engine.store.db)).toEqual([])
  expect(t.engine.load).toMatchObject({ runs: 0, slots: 0 })
  await t.close()
})

const phasesOf = (runId: string) => runPhases(t.engine.store, runId, id => t.engine.bundle(id)).phases
const phaseOf = (runId: string, name: string) => phasesOf(runId).find(phase => phase.name === name)!
const treeOf = (runId: string) => [...treeEntries(t.engine.store.db, runId)]
const resumed = async (runId: string, from: string | null = null) => {
  await t.engine.resume(runId, { from })
  return t.engine.ended(runId)
}
const posted = () => outside.posted.map(line => line.split(' ')[0]!).sort()
/** The sub-runs of a phase by their names. */
const idsOf = (runId: string, phase: string) =>
  Object.fromEntries(phaseOf(runId, phase).sub_runs.map(run => [run.run_name, run.run_id]))

const one = (name: string, extra = '') => `
name: "@local/${name}"
version: 1.0.0
inputs: [{ name: v, type: string, required: true }]
outputs: [{ name: v, type: string, value: "{{ phases.act.data.value }}" }, { name: doc, type: file, value: "{{ phases.act.files[0].path }}" }]
phases:
  - { name: act, agent: work, sources: [{ name: x, file: "{{ inputs.v }}.txt", value: "{{ inputs.v }}" }] }
${extra}`

const mapped = {
  'team.yml': `
name: "@local/mapped"
version: 1.0.0
outputs: [{ name: all, type: list, value: "{{ phases.each.data.items.map(i, i.outputs.v) }}" }]
phases:
  - { name: list, agent: look, sources: [{ name: list }] }
  - { name: each, type: map, depends_on: [list], items: "{{ phases.list.data.value }}", key: "{{ item.k }}", team: ./one, inputs: { v: "{{ item.v }}" }, concurrency: 2 }
  - { name: after, agent: work, depends_on: [each], sources: [{ name: x, value: "{{ phases.each.data.total }}" }] }
`,
  'one/team.yml': one(
    'one',
    '  - { name: post, agent: work, depends_on: [act], target_entries: [{ name: t, title: "{{ inputs.v }}" }] }',
  ),
}
const whole = { state: 'completed' as const, reason: null, whole: true, renewed: false, runs: null, maps: [] }
const items = (...pairs: string[]) => pairs.map(pair => ({ k: pair[0]!, v: pair }))

describe('a map behind the phase', () => {
  test('keys keep their run ids at any index; keys that no longer exist do not count', async () => {
    outside.given.list = items('a1', 'b1', 'c1')
    const { run_id } = await t.run(mapped)
    const before = idsOf(run_id, 'each')
    outside.given.list = items('c2', 'd2', 'b2')
    expect(t.engine.planResume(run_id, { from: 'list' })).toEqual({
      run_id,
      kept: [],
      repeated: [
        { phase: 'list', ...whole },
        { phase: 'each', ...whole, renewed: true, runs: { kept: 0, repeated: 3, names: ['a', 'b', 'c'] } },
        { phase: 'after', ...whole },
      ],
      new: [],
      removed: [],
      writes: ['a', 'b', 'c'].map(k => ({
        run_id: before[k]!,
        place: ['each', k],
        phase: 'post',
        entry: 't',
        state: 'done',
        id: `${k}1`,
        url: null,
        fate: 'skipped',
      })),
      writes_more: 0,
    })
    const run = await resumed(run_id, 'list')
    expect(run).toMatchObject({ state: 'completed', attempt: 2, outputs: { all: ['c2', 'd2', 'b2'] } })
    const after = idsOf(run_id, 'each')
    expect(after).toMatchObject(before)
    const each = phaseOf(run_id, 'each')
    expect(each.data).toMatchObject({
      total: 3,
      completed: 3,
      items: [
        { key: 'c', run_id: before.c },
        { key: 'd', run_id: after.d },
        { key: 'b', run_id: before.b },
      ],
    })
    // The present in the order of its items, then what is gone, as it ended.
    const tree = treeOf(run_id)
    expect(tree.map(entry => entry.run_name)).toEqual([null, 'c', 'd', 'b', 'a'])
    expect(t.engine.record(before.a!)).toMatchObject({ state: 'completed', attempt: 1, outputs: { v: 'a1' } })
    expect(t.engine.record(before.b!)).toMatchObject({ attempt: 2, inputs: { v: 'b2' }, outputs: { v: 'b2' } })
    expect(outside.worked.sort()).toEqual(['3', '3', 'a1', 'b1', 'b2', 'c1', 'c2', 'd2'])
    // Written once a key: b and c had been, and stay what they were.
    expect(posted()).toEqual(['a1', 'b1', 'c1', 'd2'])
    // Nothing of the past lies among the files of the present.
    expect(each.files.map(file => file.path)).toEqual([
      'files/each/c/c2.txt',
      'files/each/d/d2.txt',
      'files/each/b/b2.txt',
    ])
    expect(existsSync(join(t.engine.stateDir(run_id), 'files/each/a'))).toBe(false)
    expect(existsSync(join(t.engine.stateDir(run_id), 'files/each/b/b1.txt'))).toBe(false)
  })

  test('a key that comes back finds its run again', async () => {
    outside.given.list = items('a1', 'b1')
    const { run_id } = await t.run(mapped)
    const before = idsOf(run_id, 'each')
    for (const [list, order] of [
      [items('b2'), ['b', 'a']],
      [[], ['b', 'a']],
      [items('x3', 'a3', 'b3'), ['x', 'a', 'b']],
    ] as const) {
      outside.given.list = list as never
      expect((await resumed(run_id, 'list')).state).toBe('completed')
      expect(phaseOf(run_id, 'each').data).toMatchObject({ total: list.length, completed: list.length })
      expect(treeOf(run_id).map(entry => entry.run_name)).toEqual([null, ...order])
      expect(idsOf(run_id, 'each')).toMatchObject(before)
    }
    expect(posted()).toEqual(['a1', 'b1', 'x3'])
  })

  test('a failure before the map leaves the map unchanged; the next resume evaluates it again', async () => {
    outside.given.list = items('a1', 'b1')
    const { run_id } = await t.run(mapped)
    const before = treeOf(run_id)
    outside.broken = 'list'
    expect((await resumed(run_id, 'list')).state).toBe('failed')
    expect(phaseOf(run_id, 'each')).toMatchObject({ state: 'skipped', reason: 'upstream', data: null })
    expect(treeOf(run_id).slice(1)).toEqual(before.slice(1))
    Object.assign(outside, { broken: '', given: { list: items('b2', 'c2') } })
    expect(await resumed(run_id)).toMatchObject({ state: 'completed', outputs: { all: ['b2', 'c2'] } })
    expect(treeOf(run_id).map(entry => entry.run_name)).toEqual([null, 'b', 'c', 'a'])
  })

  test('an item that fails again, and one that was cancelled in the queue, are repeated by the next resume', async () => {
    outside.given.list = items('a1', 'b1', 'c1', 'd1')
    const { run_id } = await t.run(mapped)
    const ids = idsOf(run_id, 'each')
    const { promise, resolve } = Promise.withResolvers<void>()
    const given = { list: items('d2', 'c2', 'b2', 'a2') }
    Object.assign(outside, { broken: 'd2', given, worked: [], hold: promise })
    await t.engine.resume(run_id, { from: 'list' })
    while (t.engine.record(ids.d!).state !== 'failed' || t.engine.record(ids.d!).attempt === 1) await Bun.sleep(1)
    resolve()
    expect((await t.engine.ended(run_id)).state).toBe('failed')
    expect(treeOf(run_id).map(({ run_name, state }) => [run_name, state])).toEqual([
      [null, 'failed'],
      ['d', 'failed'],
      ['c', 'completed'],
      ['b', 'cancelled'],
      ['a', 'cancelled'],
    ])
    expect(phaseOf(run_id, 'each').data).toMatchObject({ total: 4, completed: 1, failed: 1, cancelled: 2 })
    outside.broken = ''
    expect(await resumed(run_id)).toMatchObject({ state: 'completed', outputs: { all: ['d2', 'c2', 'b2', 'a2'] } })
    expect(idsOf(run_id, 'each')).toEqual(ids)
    expect(outside.worked.sort()).toEqual(['4', 'a2', 'b2', 'c2', 'd2', 'd2'])
  })

  test('a sub-run that waits for its turn cannot be cancelled by itself', async () => {
    outside.given.list = items('a1', 'b1', 'c1')
    const { run_id } = await t.run(mapped)
    const { promise, resolve } = Promise.withResolvers<void>()
    outside.hold = promise
    await t.engine.resume(run_id, { from: 'list' })
    const last = idsOf(run_id, 'each').c!
    while (t.engine.record(last).state !== 'queued') await Bun.sleep(1)
    await expect(t.engine.cancel(last)).rejects.toThrow(`cancel its top run ${run_id}`)
    resolve()
    expect((await t.engine.ended(run_id)).state).toBe('completed')
  })

  test('a cancel in the middle ends everything, and a resume continues with the new items', async () => {
    outside.given.list = items('a1', 'b1', 'c1')
    const { run_id } = await t.run(mapped)
    const { promise, resolve } = Promise.withResolvers<void>()
    Object.assign(outside, { given: { list: items('c2', 'a2', 'd2') }, hold: promise })
    await t.engine.resume(run_id, { from: 'list' })
    while (phaseOf(run_id, 'each').state !== 'running') await Bun.sleep(1)
    await t.engine.cancel(run_id)
    resolve()
    expect((await t.engine.ended(run_id)).state).toBe('cancelled')
    expect(brokenInvariants(t.engine.store.db)).toEqual([])
    outside.hold = null
    expect(await resumed(run_id)).toMatchObject({ state: 'completed', outputs: { all: ['c2', 'a2', 'd2'] } })
    expect(posted()).toEqual(['a1', 'b1', 'c1', 'd2'])
  })
})

const deep = {
  'team.yml': `
name: "@local/deep"
version: 1.0.0
outputs: [{ name: v, type: list, value: "{{ phases.down.data.all }}" }]
phases:
  - { name: first, agent: look, sources: [{ name: first }] }
  - { name: down, type: team, depends_on: [first], team: ./middle, inputs: { prefix: "{{ phases.first.data.value }}" } }
`,
  'middle/team.yml': `
name: "@local/middle"
version: 1.0.0
inputs: [{ name: prefix, type: string, required: true }]
outputs: [{ name: all, type: list, value: "{{ phases.each.data.items.map(i, i.outputs.v) }}" }]
phases:
  - { name: list, agent: look, sources: [{ name: list }] }
  - { name: each, type: map, depends_on: [list], items: "{{ phases.list.data.value }}", key: "{{ item.k }}", team: ./inner, inputs: { v: "{{ inputs.prefix + item.v }}" }, concurrency: 1 }
`,
  'middle/inner/team.yml': `
name: "@local/inner"
version: 1.0.0
inputs: [{ name: v, type: string, required: true }]
outputs: [{ name: v, type: string, value: "{{ phases.leaf.data.v }}" }]
phases:
  - { name: leaf, type: team, team: ./one, inputs: { v: "{{ inputs.v }}" } }
`,
  'middle/inner/one/team.yml': one('one'),
}

describe('a team behind the phase', () => {
  test('runs again under the same run id, with the new inputs', async () => {
    const files = {
      'team.yml': `
name: "@local/teamed"
version: 1.0.0
outputs: [{ name: v, type: string, value: "{{ phases.down.data.v }}" }]
phases:
  - { name: first, agent: look, sources: [{ name: first }] }
  - { name: down, type: team, depends_on: [first], team: ./one, inputs: { v: "{{ phases.first.data.value }}" } }
`,
      'one/team.yml': one('one'),
    }
    outside.given.first = 'old'
    const { run_id } = await t.run(files)
    const [, before] = treeOf(run_id)
    outside.given.first = 'new'
    expect(await resumed(run_id, 'first')).toMatchObject({ state: 'completed', outputs: { v: 'new' } })
    expect(t.engine.record(before!.run_id)).toMatchObject({ attempt: 2, inputs: { v: 'new' }, outputs: { v: 'new' } })
    expect(phaseOf(run_id, 'down').files.map(file => file.path)).toEqual(['files/down/new.txt'])
    expect(existsSync(join(t.engine.stateDir(run_id), 'files/down/old.txt'))).toBe(false)
    expect(outside.worked).toEqual(['old', 'new'])
  })

  test('at every depth, maps and their keys included', async () => {
    outside.given = { first: 'p', list: items('a1', 'b1', 'c1') }
    const { run_id } = await t.run(deep)
    const before = new Map(treeOf(run_id).map(entry => [`${entry.call_path.at(-1)} ${entry.run_name}`, entry.run_id]))
    outside.given = { first: 'q', list: items('c2', 'x2', 'a2') }
    expect(await resumed(run_id, 'first')).toMatchObject({ state: 'completed', outputs: { v: ['qc2', 'qx2', 'qa2'] } })
    const tree = treeOf(run_id)
    expect(tree.map(entry => [entry.call_depth, entry.run_name])).toEqual([
      [0, null],
      [1, null],
      ...['c', 'x', 'a', 'b'].flatMap(key => [
        [2, key],
        [3, null],
      ]),
    ] as never)
    for (const [place, id] of before) {
      if (!place.endsWith(' null')) expect(tree.find(entry => entry.run_name === place.at(-1))!.run_id).toBe(id)
    }
    for (const { run_id: id } of tree) expect(treeOf(tree[0]!.run_id).some(entry => entry.run_id === id)).toBe(true)
    expect(outside.worked.sort()).toEqual(['pa1', 'pb1', 'pc1', 'qa2', 'qc2', 'qx2'])
  })

  test('a failed sub-run whose inputs have changed is repeated completely', async () => {
    const files = {
      'team.yml': `
name: "@local/late"
version: 1.0.0
phases:
  - { name: first, agent: look, on_failure: continue, sources: [{ name: first }] }
  - { name: down, type: team, depends_on: [first], team: ./two, inputs: { v: "{{ phases.first.state }}" } }
`,
      'two/team.yml': one('two', '  - { name: then, agent: look, depends_on: [act], sources: [{ name: then }] }'),
    }
    outside.broken = 'first'
    const { promise, resolve } = Promise.withResolvers<void>()
    outside.hold = promise
    const { run_id } = await t.start(files)
    while (phaseOf(run_id, 'down').state !== 'running') await Bun.sleep(1)
    outside.broken = 'then'
    resolve()
    expect((await t.engine.ended(run_id)).state).toBe('failed')
    outside.broken = ''
    expect((await resumed(run_id)).state).toBe('completed')
    expect(outside.worked).toEqual(['failed', 'completed'])
  })
})

test('a resume before the end was announced keeps the workspace, and callers wait for the new end', async () => {
  const [held, rung] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  outside.ring = rung.promise
  const { run_id } = await t.start(`
name: "@local/early"
version: 1.0.0
phases:
  - { name: make, agent: exec, commands: [{ name: m, run: "echo made > kept.txt" }] }
  - { name: wait, agent: work, depends_on: [make], sources: [{ name: x, value: 1 }] }
  - { name: read, agent: exec, depends_on: [wait], commands: [{ name: r, run: "cat kept.txt" }] }
  - { name: tell, agent: bell, notify: [on_complete] }
`)
  while (t.engine.record(run_id).completed_at === null) await Bun.sleep(1)
  outside.hold = held.promise
  await t.engine.resume(run_id, { from: 'make' })
  const ended = t.engine.ended(run_id)
  while (phaseOf(run_id, 'wait').state !== 'running') await Bun.sleep(1)
  rung.resolve()
  await t.engine.untilQuiet()
  held.resolve()
  expect(await ended).toMatchObject({ state: 'completed', attempt: 2 })
})

test('a tree is not opened again while it is deleted', async () => {
  outside.broken = 'x'
  const { run_id } = await t.run(one('leaving'), { v: 'x' })
  outside.broken = ''
  const { engine } = t
  const refused = Promise.withResolvers<void>()
  const deletion = engine.deleteTree(run_id, () => refused.promise)
  await expect(engine.resume(run_id)).rejects.toThrow('is being deleted')
  await expect(deleteTree(engine, run_id)).rejects.toThrow('is being deleted')
  expect(engine.record(run_id)).toMatchObject({ state: 'failed', attempt: 1 })
  // What could not be deleted can be resumed.
  refused.reject(new Error('the disk said no'))
  await expect(deletion).rejects.toThrow('the disk said no')
  expect(await resumed(run_id)).toMatchObject({ state: 'completed', attempt: 2 })

  await deleteTree(engine, run_id)
  await expect(engine.resume(run_id)).rejects.toThrow('no run')
})

test('a tree of which a part was deleted is not opened again, and its deletion can go on', async () => {
  outside.broken = 'x'
  const items = [...Array.from({ length: 300 }, (_, n) => `v${n}`), 'x']
  const each = {
    name: 'each',
    type: 'map',
    items,
    team: './one',
    inputs: { v: '{{ item }}' },
    on_item_failure: 'continue',
  }
  const team = JSON.stringify({ name: '@local/each', version: '1.0.0', phases: [each] })
  const { run_id } = await t.run({ 'team.yml': team, 'one/team.yml': one('leaf') })
  outside.broken = ''
  const { engine } = t
  const cutOff = () => Promise.reject(new Error('the process ended here'))
  await expect(deleteTree(engine, run_id, { between: cutOff })).rejects.toThrow('ended here')
  expect(treeOf(run_id).length).toBeWithin(1, 301)
  const refused = `run ${run_id} is being deleted`
  await expect(engine.resume(run_id, { failed: true })).rejects.toThrow(refused)
  expect(() => engine.planResume(run_id, { failed: true })).toThrow(refused)
  expect(engine.store.deletions.begun()).toEqual([run_id])
  await deleteTree(engine, run_id)
  expect(engine.store.deletions.begun()).toEqual([])
  expect(() => engine.record(run_id)).toThrow('no run')
})
