// Files that are written behind, on a disk that takes none: nothing is left in their place, it is said once and why, and
// the top run does not end before they are there.

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { agent, Type } from '../../../lib/agent/cadre.ts'
import { readRunId } from '../../../lib/files/run-id.ts'
import { why } from '../../../lib/run/engine.ts'
import { FilesBehind } from '../../../lib/run/files/files.ts'
import { until, within } from '../../support/bounded.ts'
import { smallDisk } from '../../support/disk.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'

const probe = smallDisk('8m')
if (!probe) console.log('skipped: a full disk (tmpfs can be mounted by root on Linux only)')
probe?.[Symbol.dispose]()

const ROOT = readRunId('00000000-0000-4000-8000-000000000001')
const runAt = (n: number) => readRunId(`00000000-0000-4000-8000-${`${n}`.padStart(12, '0')}`)

/** What writes files behind on a disk, and every line that it has logged. */
function behindOn(path: string) {
  const lines: string[] = []
  const say = (event: string) => void lines.push(event)
  const log = { debug: say, info: say, warn: say, error: say }
  const behind = new FilesBehind({ stateDirOf: runId => join(path, runId), tell: async () => {}, recovered() {}, log })
  const put = (n: number, bytes: number) => {
    const own = behind.of(ROOT, runAt(n), 'write', () => true)
    expect(own.hold({ path: 'files/write/a.txt', bytes: new Uint8Array(bytes).fill(97) })).toBe(true)
    own.recorded(n, n)
  }
  return { behind, lines, put, fileOf: (n: number) => join(path, runAt(n), 'files/write/a.txt') }
}

/** A disk with room for 600 files, folders included. */
const FEW_FILES = '64m,nr_inodes=600'

/** Makes files until the disk takes no more, but for `spare`. Returns what removes them. */
function takeAllFiles(path: string, spare = 0): () => void {
  const folder = join(path, 'taken')
  // The key of a home is made when it is first needed, which is too late here.
  if (!existsSync(join(path, 'key'))) writeFileSync(join(path, 'key'), new Uint8Array(32).fill(7), { mode: 0o600 })
  mkdirSync(folder)
  try {
    for (let n = 0; ; n++) writeFileSync(join(folder, `${n}`), '')
  } catch {
    for (let n = 0; n < spare; n++) rmSync(join(folder, `${n}`))
  }
  return () => rmSync(folder, { recursive: true })
}

/** Writes a small file, and returns once all three items have written theirs and `then` was called. */
function writerOf(then: () => void) {
  const all = Promise.withResolvers<void>()
  let calls = 0
  return agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Writes a small file.',
    settings: Type.Object({}),
    source: {
      effect: 'read',
      entry: Type.Object({ name: Type.String(), text: Type.String() }),
      async run({ name, text }, context) {
        await context.write(name, text)
        if (++calls === 3) {
          then()
          all.resolve()
        }
        await all.promise
        return { text: name }
      },
    },
  })
}

/** An agent that leaves the disk of `path` without inodes before its files are written, and what frees them. */
function filling(path: string) {
  let free: (() => void) | undefined
  return { agents: { writer: writerOf(() => (free ??= takeAllFiles(path))) }, free: () => free!() }
}

/** Starts the team, and returns its run once that waits for its files. */
async function waiting(t: TestEngine): Promise<string> {
  const { run_id } = await t.start(TEAM)
  await until(() => t.engine.endWait(run_id) !== null, 'the wait')
  return run_id
}

const fourFiles = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Writes four small files.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), text: Type.String() }),
    async run({ name, text }, context) {
      for (let n = 0; n < 4; n++) await context.write(`${n}-${name}`, text)
      return { text: name }
    },
  },
})

const TEAM = {
  'team.yml': `
name: "@local/top"
version: 1.0.0
phases: [{ name: each, type: map, items: [0, 1, 2], team: ./one, inputs: { item: "{{ item }}" }, concurrency: 3 }]
`,
  'one/team.yml': `
name: "@local/one"
version: 1.0.0
inputs: [{ name: item, type: number, required: true }]
phases: [{ name: write, agent: writer, sources: [{ name: a.txt, text: "item {{ inputs.item }}" }] }]
`,
}

/** What is in the files of the sub-runs that are there. */
const filesOn = (t: TestEngine, runId: string): string[] =>
  t.engine
    .phases(runId)
    .phases[0]!.sub_runs.map(({ run_id }) => join(t.home, 'runs', run_id, 'files/write/a.txt'))
    .filter(file => existsSync(file))
    .map(file => readFileSync(file, 'utf8'))

describe.skipIf(!probe)('on a disk that takes no file', () => {
  test('a file that does not fit leaves nothing in its place, and is written whole once it fits', async () => {
    using disk = smallDisk('8m')!
    const it = behindOn(disk.path)
    disk.fill(16 * 1_024)
    it.put(2, 60_000)
    await it.behind.flush(ROOT)
    expect(it.behind.has(ROOT)).toBe(true)
    expect(existsSync(it.fileOf(2))).toBe(false)
    disk.free()
    await until(() => !it.behind.has(ROOT), 'the file')
    expect(readFileSync(it.fileOf(2), 'utf8')).toBe('a'.repeat(60_000))
    await it.behind.close()
  })

  test('it is said once and why, until files are written again', async () => {
    using disk = smallDisk(FEW_FILES)!
    const it = behindOn(disk.path)
    const free = takeAllFiles(disk.path)
    for (let n = 2; n < 102; n++) it.put(n, 10)
    await until(() => it.behind.stalled !== null, 'the stall')
    expect(it.behind.stalled).toMatch(
      /^100 files of runs cannot be written: ENOSPC: no space left on device: the disk of .* has no inodes left/,
    )
    await Bun.sleep(2_500)
    expect(it.lines).toEqual(['files of runs cannot be written; they are when the disk takes them'])
    free()
    await until(() => it.behind.stalled === null && !it.behind.has(ROOT), 'the files')
    for (let n = 2; n < 102; n++) expect(readFileSync(it.fileOf(n), 'utf8')).toBe('a'.repeat(10))
    expect(it.lines.slice(1)).toEqual(['files of runs are written again'])
    await it.behind.close()
  })

  test('the top run waits for its files, says so, and ends by itself when there is room', async () => {
    using disk = smallDisk(FEW_FILES)!
    const { agents, free } = filling(disk.path)
    await using t = await testEngine({ home: disk.path, agents })
    const run_id = await waiting(t)
    expect(t.engine.endWait(run_id)).toMatch(/^3 files of its runs, which cannot be written: ENOSPC: .* no inodes left/)
    expect(t.engine.load).toMatchObject({
      free: 0,
      stalled: expect.stringContaining('files of runs cannot be written'),
    })
    const waits = { endWaitOf: (id: string) => t.engine.endWait(id) }
    const { lines } = why(t.engine.store, run_id, id => t.engine.bundle(id), waits)
    expect(lines.join('\n')).toMatch(/^Run .* waits for 3 files of its runs, which cannot be written: ENOSPC/)
    await Bun.sleep(5_000)
    expect(t.engine.record(run_id)).toMatchObject({ state: 'running', completed_at: null })
    free()
    expect(await within(t.engine.ended(run_id), 'the end')).toMatchObject({ state: 'completed' })
    expect(filesOn(t, run_id)).toEqual(['item 0', 'item 1', 'item 2'])
    // The disk is measured every second.
    await until(() => t.engine.load.stalled === null, 'space')
  }, 60_000)

  test('a cancel ends the top run that waits for its files, and they follow', async () => {
    using disk = smallDisk(FEW_FILES)!
    const { agents, free } = filling(disk.path)
    await using t = await testEngine({ home: disk.path, agents })
    const run_id = await waiting(t)
    await t.engine.cancel(run_id)
    expect(await within(t.engine.ended(run_id), 'the end', 5_000)).toMatchObject({ state: 'cancelled' })
    expect(filesOn(t, run_id)).toEqual([])
    free()
    await until(() => filesOn(t, run_id).length === 3, 'the files')
  }, 60_000)

  test('a stop does not end the top run that waits: the next process goes on', async () => {
    using disk = smallDisk(FEW_FILES)!
    const { agents, free } = filling(disk.path)
    const first = await testEngine({ home: disk.path, agents })
    const run_id = await waiting(first)
    await within(first.close(), 'the stop')
    const second = await testEngine({ home: disk.path, agents })
    await until(() => second.engine.endWait(run_id) !== null, 'the wait of the next process')
    free()
    expect(await within(second.engine.ended(run_id), 'the end')).toMatchObject({ state: 'completed' })
    expect(filesOn(second, run_id)).toEqual(['item 0', 'item 1', 'item 2'])
    await second.close()
  }, 60_000)

  test('with too few inodes nothing begins', async () => {
    using disk = smallDisk(FEW_FILES)!
    await using t = await testEngine({ home: disk.path, agents: { writer: writerOf(() => {}) } })
    const free = takeAllFiles(disk.path, 20)
    await until(() => t.engine.load.stalled !== null, 'the stall')
    expect(t.engine.load.stalled).toMatch(/^\d+ more files \(inodes\) can be made on the disk of .*, 30 are needed$/)
    const { run_id } = await t.start(TEAM)
    expect(t.engine.record(run_id).completed_at).toBeNull()
    free()
    expect(await within(t.engine.ended(run_id), 'the end')).toMatchObject({ state: 'completed' })
  }, 60_000)

  test('a map that needs more files than the disk takes goes on when it takes more, and all are there', async () => {
    using disk = smallDisk('200m,nr_inodes=600')!
    await using t = await testEngine({ home: disk.path, agents: { writer: fourFiles } })
    const items = Array.from({ length: 100 }, (_, n) => n)
    const team = TEAM['team.yml'].replace('[0, 1, 2]', `[${items}]`).replace('concurrency: 3', 'concurrency: 20')
    const { run_id } = await t.start({ ...TEAM, 'team.yml': team })
    await until(() => t.engine.load.stalled !== null, 'the stall')
    await Bun.sleep(3_000)
    expect(t.engine.record(run_id).completed_at).toBeNull()
    expect(t.engine.load.stalled).not.toBeNull()
    Bun.spawnSync(['mount', '-o', 'remount,nr_inodes=6000', disk.path])
    expect(await within(t.engine.ended(run_id), 'the end')).toMatchObject({ state: 'completed' })
    for (const { run_id: id } of t.engine.phases(run_id).phases[0]!.sub_runs) {
      expect(readdirSync(join(disk.path, 'runs', id, 'files/write'))).toHaveLength(4)
    }
  }, 60_000)
})
