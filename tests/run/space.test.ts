// A small disk that is really full, under everything: artifacts, logs and the run database. Needs to mount one.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentError, agent, Type } from '../../lib/agent/cadre.ts'
import { brokenInvariants } from '../../lib/run/store/invariants.ts'
import { type TestEngine, testEngine } from '../support/engine.ts'

const MIB = 1_048_576
/** Fits into what large files leave. */
const SMALL = 1 / 32
// Not a folder of the test file's own: those are removed before this disk is taken away.
const disk = mkdtempSync(join(tmpdir(), 'cadre-disk-'))
const mount = (options: string) => Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', disk])
const mounted = process.platform === 'linux' && process.getuid?.() === 0 && mount('size=24m').success
if (!mounted) console.log('skipped: a full disk (tmpfs can be mounted by root on Linux only)')

const called: string[] = []
/** Writes as many MiB as its entry says, as one value or as a stream, or meets a full disk by itself. */
const writer = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Writes what is large.',
  settings: Type.Object({}),
  source: {
    effect: 'read',
    entry: Type.Object({ name: Type.String(), mib: Type.Number(), how: Type.Optional(Type.String()) }),
    async run({ name, mib, how }, context) {
      called.push(context.run.id)
      if (how === 'wrapped') {
        const cause = Object.assign(new Error('write failed'), { code: 'ENOSPC' })
        throw new AgentError('a library said no', { cause: new Error('of no use', { cause }) })
      }
      const chunk = new Uint8Array(MIB).fill(97)
      let left = mib
      const stream = new ReadableStream<Uint8Array>({
        pull: controller => (left-- > 0 ? controller.enqueue(chunk) : controller.close()),
      })
      await context.write(name, how === 'stream' ? stream : new Uint8Array(mib * MIB))
      return { text: `${mib} MiB` }
    },
  },
})

const team = (mib: number, how = '') => `
name: "@local/writes"
version: 1.0.0
phases:
  - { name: small, agent: writer, sources: [{ name: small, mib: ${SMALL} }] }
  - { name: large, agent: writer, depends_on: [small], sources: [{ name: large, mib: ${mib}${how && `, how: ${how}`} }] }
`

let t: TestEngine
beforeAll(async () => {
  if (mounted) t = await testEngine({ home: disk, agents: { writer } })
})
afterAll(async () => {
  if (mounted) {
    await t.close()
    Bun.spawnSync(['umount', disk])
  }
  rmdirSync(disk)
})

const phase = (runId: string, name: string) => t.engine.phases(runId).phases.find(each => each.name === name)!

test.skipIf(!mounted)(
  'an artifact that does not fit fails its phase by name, leaves nothing, and is resumed',
  async () => {
    const { engine } = t
    const run_ids = []
    for (const how of ['', 'stream']) {
      const { run_id } = await t.start(team(40, how))
      const beside = await t.run(team(SMALL))
      expect(beside.state).toBe('completed')
      expect((await engine.ended(run_id)).state).toBe('failed')
      const { error } = phase(run_id, 'large')
      expect(error).toMatchObject({ code: 'disk_full', hint: expect.stringContaining('resume the run') })
      expect(error!.message).toMatch(/^ENOSPC: the disk is full, files\/large\/large( of 40\.0 MiB)? was not written/)
      expect(error!.message).toMatch(/MiB are free now$/)
      expect(error!.message).toContain(join(disk, 'runs', run_id))
      expect(readdirSync(join(disk, 'runs', run_id)).filter(name => name.startsWith('.'))).toEqual([])
      expect(readdirSync(join(disk, 'runs', run_id, 'files', 'large'))).toEqual([])
      expect(brokenInvariants(engine.store.db)).toEqual([])
      run_ids.push(run_id)
    }
    mount('remount,size=160m')
    called.length = 0
    for (const run_id of run_ids) {
      await engine.resume(run_id)
      expect((await engine.ended(run_id)).state).toBe('completed')
      expect(readdirSync(join(disk, 'runs', run_id, 'files', 'large'))).toEqual(['large'])
    }
    expect(called).toEqual(run_ids)
  },
)

test.skipIf(!mounted)('a full disk below an agent’s own error is named, too', async () => {
  const { run_id } = await t.run(team(1, 'wrapped'))
  const { error } = phase(run_id, 'large')
  expect(error).toMatchObject({ code: 'disk_full', message: expect.stringContaining('ENOSPC: the disk is full: ') })
})

test.skipIf(!mounted)('below the floor nothing begins; with space it goes on by itself', async () => {
  const { engine } = t
  const filler = join(disk, 'filler')
  // To the brim, so that what is left with one file less is known: half of the floor.
  for (let n = 0, full = false; !full || engine.load.stalled === null; n++) {
    try {
      writeFileSync(`${filler}${n}`, new Uint8Array(4 * MIB))
    } catch {
      full = true
    }
    await Bun.sleep(50)
  }
  rmSync(`${filler}0`)
  called.length = 0
  const { run_id } = await t.start(team(1))
  expect(engine.load).toMatchObject({ free: 0, stalled: expect.stringMatching(/free on the disk of .* are needed/) })
  expect(phase(run_id, 'small').waiting?.reason).toContain('space on the disk: ')
  await Bun.sleep(1_500)
  expect(called).toEqual([])
  for (const name of readdirSync(disk)) if (name.startsWith('filler')) rmSync(join(disk, name))
  expect((await engine.ended(run_id)).state).toBe('completed')
  expect(engine.load.stalled).toBeNull()
  expect(brokenInvariants(engine.store.db)).toEqual([])
})
