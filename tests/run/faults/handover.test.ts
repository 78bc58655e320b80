// Files that a sub-run hands to the run above it, and declared files of a run: what cannot be handed over fails its own
// phase by name, and what can is kept whole, each file under a path of its own.

import { afterEach, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunId } from '../../../lib/files/run-id.ts'
import { until, within } from '../../support/bounded.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { dataOf, phaseOf, subRunOf } from '../../support/home.ts'
import { act, keyed, scripted, shell, team } from '../../support/scripted.ts'

const { agents } = scripted({
  /** `value` is a list of file names and what is written into them. */
  write: async (context, value) => {
    for (const [name, text] of Object.entries(value as Record<string, string>)) await context.write(name, text)
  },
  much: () => ({ value: 'x'.repeat(400_000) }),
  /** Until the file `value` is there. */
  wait: async ({ signal }, value) => {
    while (!existsSync(String(value))) {
      signal.throwIfAborted()
      await Bun.sleep(5)
    }
  },
})

let t: TestEngine
afterEach(() => t.close())
const ended = (runId: string) => within(t.engine.ended(runId), 'the end of the run')
const file = (runId: RunId, path: unknown) => readFileSync(join(t.engine.stateDir(runId), String(path)), 'utf8')

/** A team whose one command does this, with these file outputs. */
const giving = (run: string, outputs: Record<string, string>, more = {}) =>
  team([shell('make', run)], {
    outputs: Object.entries(outputs).map(([name, value]) => ({ name, type: 'file', value })),
    ...more,
  })
const inTeam = (child: string) => ({
  'team.yml': team([{ name: 'down', type: 'team', team: './child' }]),
  'child/team.yml': child,
})
const inMap = (child: string, fields = {}) => ({
  'team.yml': team([{ name: 'each', type: 'map', items: [1], team: './child', ...fields }]),
  'child/team.yml': child,
})

describe('a declared file that cannot be handed over', () => {
  const cases: [what: string, run: string, path: string][] = [
    ['is not among the files of the run', 'true', 'files/make/missing.txt'],
    ['is not in the workspace', 'true', 'missing.txt'],
    ['is a folder', 'mkdir folder', 'folder'],
    ['is a link in the workspace to what lies outside', 'ln -s /etc/passwd link', 'link'],
    [
      'is a link among the files of the run to what lies outside',
      'ln -s /etc/passwd "$CADRE_OUT/link"',
      'files/make/link',
    ],
    ['is a link to nothing', 'ln -s nothing "$CADRE_OUT/link"', 'files/make/link'],
  ]
  for (const [what, run, path] of cases) {
    test(`${what}: the run that declares it fails by name, and so does the phase above`, async () => {
      t = await testEngine()
      const alone = await within(t.run(giving(run, { doc: path })), 'the end of the run')
      expect(alone).toMatchObject({ state: 'failed', outputs: null })
      expect(alone.error!.message).toContain('doc')
      expect(alone.error!.message).toContain(path)
      for (const [files, phase] of [
        [inTeam(giving(run, { doc: path })), 'down'],
        [inMap(giving(run, { doc: path })), 'each'],
      ] as const) {
        const { run_id } = await t.start(files)
        expect(await ended(run_id)).toMatchObject({ state: 'failed', error: { phase } })
        expect(phaseOf(t, run_id, phase)).toMatchObject({ state: 'failed', files: [] })
        const sub = await ended(subRunOf(t, run_id, phase))
        expect(sub).toMatchObject({ state: 'failed' })
        expect(sub.error!.message).toContain('doc')
        expect(sub.error!.message).toContain(path)
      }
    })
  }

  test('of one item fails a map that goes on, for that item alone', async () => {
    t = await testEngine()
    const { run_id } = await t.start({
      'team.yml': team([
        {
          name: 'each',
          type: 'map',
          items: [1, 2, 3],
          key: 'k{{ item }}',
          team: './child',
          inputs: { n: '{{ item }}' },
          on_item_failure: 'continue',
        },
      ]),
      'child/team.yml': team(
        [shell('make', '[ $N = 2 ] || echo $N > "$CADRE_OUT/doc"', { env: { N: '{{ inputs.n }}' } })],
        {
          inputs: [{ name: 'n', type: 'number' }],
          outputs: [{ name: 'doc', type: 'file', value: 'files/make/doc' }],
        },
      ),
    })
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    expect(dataOf(t, run_id, 'each')).toMatchObject({ total: 3, completed: 2, failed: 1 })
    expect(file(run_id, 'files/each/k3/doc')).toBe('3\n')
  })
})

describe('a file where the folder of a later phase goes', () => {
  const fails = '[ -e "$GO" ] || exit 1; echo made > "$CADRE_OUT/doc"'
  const files = (go: string) => ({
    'team.yml': team([
      shell('first', 'touch "$CADRE_FILES/down"'),
      { name: 'down', type: 'team', team: './child', depends_on: ['first'] },
    ]),
    'child/team.yml': team([shell('make', fails, { env: { GO: go } })], {
      outputs: [{ name: 'doc', type: 'file', value: 'files/make/doc' }],
    }),
  })

  /** With the file in its place the phase has failed by name, or the file has made room: a resume goes on either way. */
  async function endedWell(runId: RunId): Promise<void> {
    const run = await ended(runId)
    if (run.state === 'completed') return expect(file(runId, 'files/down/doc')).toBe('made\n')
    expect(run).toMatchObject({ state: 'failed', error: { phase: 'down' } })
    expect(phaseOf(t, runId, 'down').error!.message).toContain('files/down')
    rmSync(join(t.engine.stateDir(runId), 'files/down'))
    await t.engine.resume(runId)
    expect(await ended(runId)).toMatchObject({ state: 'completed' })
    expect(file(runId, 'files/down/doc')).toBe('made\n')
  }

  test('fails that phase by name, and a resume goes on from there', async () => {
    const go = join(folder(), 'go')
    writeFileSync(go, '')
    t = await testEngine()
    const { run_id } = await t.start(files(go))
    const run = await ended(run_id)
    expect(run).toMatchObject({ state: 'failed', error: { phase: 'down' } })
    expect(run.error!.message).toContain('files/down')
    await t.engine.resume(run_id)
    await endedWell(run_id)
  })

  test('prevents neither a resume of failed phases below it nor a later start', async () => {
    const home = folder()
    const go = join(folder(), 'go')
    t = await testEngine({ home })
    const { run_id } = await t.start(files(go))
    expect(await ended(run_id)).toMatchObject({ state: 'failed', error: { phase: 'make' } })
    await t.engine.resume(run_id)
    expect(await ended(run_id)).toMatchObject({ state: 'failed', attempt: 2 })
    await t.close()

    t = await testEngine({ home })
    const other = await within(t.run(team([shell('other', 'true')])), 'another run')
    expect(other.state).toBe('completed')
    writeFileSync(go, '')
    await t.engine.resume(run_id)
    await endedWell(run_id)
  })

  test('does not prevent a start from continuing this run or any other', async () => {
    const home = folder()
    const go = join(folder(), 'go')
    t = await testEngine({ home })
    const long = {
      ...files(go),
      'child/team.yml': team(
        [shell('make', '[ -e "$GO" ] || sleep 60; echo made > "$CADRE_OUT/doc"', { env: { GO: go } })],
        {
          outputs: [{ name: 'doc', type: 'file', value: 'files/make/doc' }],
        },
      ),
    }
    const { run_id } = await t.start(long)
    const other = await t.start(team([shell('wait', '[ -e "$GO" ] || sleep 60', { env: { GO: go } })]))
    await until(() => phaseOf(t, run_id, 'down').state === 'running', 'the phase')
    await t.close()
    writeFileSync(go, '')
    t = await testEngine({ home })
    expect(await ended(other.run_id)).toMatchObject({ state: 'completed' })
    await endedWell(run_id)
  })
})

describe('two files', () => {
  const twice = team(
    [
      act('one', 'write', { value: { 'report.md': 'first text' } }),
      act('two', 'write', { value: { 'report.md': 'second text' } }),
    ],
    {
      outputs: [
        { name: 'first', type: 'file', value: '{{ phases.one.files[0].path }}' },
        { name: 'second', type: 'file', value: '{{ phases.two.files[0].path }}' },
      ],
    },
  )

  test('of one base name are both kept under the names of their outputs, in a team and in a map', async () => {
    t = await testEngine({ agents })
    for (const [files, phase] of [
      [inTeam(twice), 'down'],
      [inMap(twice, { key: 'k{{ item }}' }), 'each'],
    ] as const) {
      const { run_id } = await t.run(files)
      const { state, files: kept, data } = phaseOf(t, run_id, phase)
      expect(state).toBe('completed')
      const outputs = (
        phase === 'down' ? data : (data as never as { items: [{ outputs: unknown }] }).items[0].outputs
      ) as {
        first: string
        second: string
      }
      expect(file(run_id, outputs.first)).toBe('first text')
      expect(file(run_id, outputs.second)).toBe('second text')
      expect(outputs.first).toContain('first')
      expect(outputs.second).toContain('second')
      expect(kept.map(({ path }) => path).sort()).toEqual([outputs.first, outputs.second].sort())
    }
  })

  test('of a key `1` and of an odd key at index 1 lie in folders of their own', async () => {
    t = await testEngine({ agents })
    const { run_id } = await t.run({
      'team.yml': team([keyed(['1', 'a/b', '0', 'ü'], './child', { inputs: { v: '{{ item }}' } })]),
      'child/team.yml': team([act('one', 'write', { value: { 'doc.txt': 'of {{ inputs.v }}' } })], {
        inputs: [{ name: 'v', type: 'string' }],
        outputs: [{ name: 'doc', type: 'file', value: '{{ phases.one.files[0].path }}' }],
      }),
    })
    const { items } = dataOf(t, run_id, 'each') as never as { items: { key: string; outputs: { doc: string } }[] }
    expect(items.map(({ key, outputs }) => [key, file(run_id, outputs.doc)])).toEqual([
      ['1', 'of 1'],
      ['a/b', 'of a/b'],
      ['0', 'of 0'],
      ['ü', 'of ü'],
    ])
    expect(new Set(items.map(({ outputs }) => outputs.doc)).size).toBe(4)
    expect(phaseOf(t, run_id, 'each').files).toHaveLength(4)
  })
})

test('the items of a map above 1 MiB are whole in items.json, whatever a key is called', async () => {
  t = await testEngine({ agents })
  for (const keys of [
    ['a', 'b', 'c', 'd'],
    ['items.json', 'items.json.tmp', '.items.json.tmp', 'index'],
  ]) {
    const { run_id } = await t.start({
      'team.yml': team([keyed(keys, './child')]),
      'child/team.yml': team([act('make', 'much'), act('note', 'write', { value: { 'note.txt': 'kept' } })], {
        outputs: [
          { name: 'much', type: 'string', value: '{{ phases.make.data.value }}' },
          { name: 'note', type: 'file', value: '{{ phases.note.files[0].path }}' },
        ],
      }),
    })
    expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    const each = phaseOf(t, run_id, 'each')
    expect(each.data).toMatchObject({ total: 4, completed: 4, truncated: true })
    const record = each.files.find(({ path }) => path === 'files/each/items.json')!
    const items = JSON.parse(file(run_id, record.path)) as { key: string; outputs: { note: string } }[]
    expect(items.map(({ key }) => key)).toEqual(keys)
    for (const { outputs } of items) expect(file(run_id, outputs.note)).toBe('kept')
  }
})

describe('the working folder of a run that was given none', () => {
  const files = (go: string) =>
    team([
      shell('make', 'echo made > kept.txt'),
      shell('read', 'cat kept.txt && [ -e "$GO" ]', { depends_on: ['make'], env: { GO: go } }),
    ])
  const work = (runId: RunId) => join(t.engine.stateDir(runId), 'work')

  for (const restarted of [false, true]) {
    test(`is found as it was left by a resume${restarted ? ' after a restart' : ''}`, async () => {
      const home = folder()
      const go = join(folder(), 'go')
      t = await testEngine({ home })
      const { run_id } = await t.run(files(go))
      expect(t.engine.record(run_id)).toMatchObject({ state: 'failed', error: { phase: 'read' } })
      expect(t.engine.record(run_id).error!.message).not.toContain('kept.txt')
      if (restarted) {
        await t.close()
        t = await testEngine({ home })
      }
      writeFileSync(go, '')
      await t.engine.resume(run_id)
      expect(await ended(run_id)).toMatchObject({ state: 'completed' })
    })

    test(`is found by a run that completed and is repeated from a phase${restarted ? ' after a restart' : ''}`, async () => {
      const home = folder()
      const go = join(folder(), 'go')
      writeFileSync(go, '')
      t = await testEngine({ home })
      const { run_id } = await t.run(files(go))
      expect(t.engine.record(run_id).state).toBe('completed')
      if (restarted) {
        await t.close()
        t = await testEngine({ home })
      }
      await t.engine.resume(run_id, { from: 'read' })
      expect(await ended(run_id)).toMatchObject({ state: 'completed', attempt: 2 })
    })
  }

  test('is treated after a restart as it is without one, and nothing else of it is left', async () => {
    const home = folder()
    const go = join(folder(), 'go')
    t = await testEngine({ home, agents })
    const wait = team([shell('make', 'echo made > kept.txt'), act('hold', 'wait', { depends_on: ['make'], value: go })])
    const continued = await t.start(wait)
    await until(() => phaseOf(t, continued.run_id, 'hold').state === 'running', 'the phase')
    await t.close()
    writeFileSync(go, '')
    t = await testEngine({ home, agents })
    expect(await ended(continued.run_id)).toMatchObject({ state: 'completed' })
    const plain = await t.run(wait)
    await t.engine.untilQuiet()
    await Bun.sleep(200)
    expect(existsSync(work(continued.run_id))).toBe(existsSync(work(plain.run_id)))
    const names = (runId: RunId) => readdirSync(t.engine.stateDir(runId)).sort()
    expect(names(continued.run_id)).toEqual(names(plain.run_id))
  })
})
