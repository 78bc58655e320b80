// A disk that is full to the brim: a cancel still stops what runs, a start is refused at once in words that help, nothing
// piles up meanwhile, and with space again everything goes on.

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CadreError } from '../../../lib/error.ts'
import { until, within } from '../../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { type SmallDisk, smallDisk } from '../../support/disk.ts'
import { type TestEngine, testEngine } from '../../support/engine.ts'
import { folder } from '../../support/folder.ts'
import { phaseOf } from '../../support/home.ts'
import { act, scripted, shell, team } from '../../support/scripted.ts'

const SIZE = '24m'
const probe = smallDisk(SIZE)
if (!probe) console.log('skipped: a full disk (tmpfs can be mounted by root on Linux only)')
probe?.[Symbol.dispose]()
let disk: SmallDisk
let closing: () => Promise<unknown>
/** Of a command that a test started: it leads a group. */
let started: number | null = null
beforeEach(() => {
  disk = smallDisk(SIZE)!
})
afterEach(async () => {
  disk.free()
  await closing()
  disk[Symbol.dispose]()
  // Where a test has failed it may be there still.
  if (started !== null && alive(started)) process.kill(-started, 'SIGKILL')
  started = null
}, 30_000)

const aborted = (signal: AbortSignal) =>
  new Promise<never>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

/** Null where a full disk is the answer. */
async function unlessFull<T>(work: Promise<T>): Promise<T | null> {
  return work.catch((error: CadreError) => {
    if (error.code === 'unavailable') return null
    throw error
  })
}

/** A process is there and no zombie. */
function alive(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

/** The process that a command of a test wrote into a file: it is ended when the test ends. */
async function leaderIn(pidFile: string): Promise<number> {
  started = await until(async () => {
    const text = await Bun.file(pidFile)
      .text()
      .catch(() => '')
    return text.endsWith('\n') && Number(text)
  }, 'the command')
  return started
}

const BIG = 'x'.repeat(200_000)
const takesMuch = (phases: Parameters<typeof team>[0]) =>
  team(phases, { inputs: [{ name: 'text', type: 'string', required: true }] })

describe.skipIf(!probe)('on a full disk', () => {
  describe('the engine', () => {
    let t: TestEngine
    const { agents, calls } = scripted({
      wait: ({ signal }) => aborted(signal),
      echo: (_, value) => ({ value }),
      slow: ({ signal }) => Promise.race([held.promise, aborted(signal)]),
    })
    let held: PromiseWithResolvers<void>
    beforeEach(async () => {
      calls.length = 0
      held = Promise.withResolvers()
      t = await testEngine({ home: disk.path, agents, slots: 300 })
      closing = () => t.close()
    })

    /** Once there is space: a cancel that was refused for want of it is asked for again. */
    const cancelAgain = async (runId: string) => {
      await until(() => t.engine.load.stalled === null, 'space')
      if (t.engine.record(runId).completed_at !== null) return
      await within(t.engine.cancel(runId), 'the cancel').catch((error: CadreError) => {
        if (error.code !== 'invalid_state') throw error
      })
    }

    test('stops the command of a run that is cancelled, and records it once there is space', async () => {
      const pidFile = join(folder(), 'pid')
      const workspace = folder()
      const { run_id } = await t.start(team([shell('long', `echo $$ > ${pidFile}; sleep 600`)]), {}, { workspace })
      const pid = await leaderIn(pidFile)
      disk.fill()
      const cancelled = unlessFull(t.engine.cancel(run_id))
      await until(() => !alive(pid), 'the end of the command')
      disk.free()
      await within(cancelled, 'the answer to the cancel')
      await cancelAgain(run_id)
      expect(await within(t.engine.ended(run_id), 'the end of the run')).toMatchObject({ state: 'cancelled' })
    })

    test('lets a phase that always runs go on when its run is cancelled', async () => {
      const { run_id } = await t.start(team([act('work', 'wait'), act('clean', 'slow', { always: true })]))
      await until(() => calls.length === 2, 'both phases')
      const begin = await t.prepare(takesMuch([act('a', 'echo')]), { text: BIG })
      disk.fill()
      for (let n = 0; n < 200 && !t.engine.load.stalled; n++) await unlessFull(begin({ workspace: disk.path }))
      expect(t.engine.load.stalled).toContain('full')
      await t.engine.cancel(run_id)
      disk.free()
      await until(() => phaseOf(t, run_id, 'work').state === 'cancelled', 'the cancel')
      held.resolve()
      expect(await within(t.engine.ended(run_id), 'the end of the run')).toMatchObject({ state: 'cancelled' })
      expect(phaseOf(t, run_id, 'clean').state).toBe('completed')
    })

    test('refuses a start at once with a helpful message, and continues when there is space', async () => {
      const begin = await t.prepare(takesMuch([act('a', 'echo', { value: 1 })]), { text: BIG })
      disk.fill()
      const accepted: string[] = []
      let refused: unknown = null
      // What was set aside for the database may take some.
      for (let n = 0; n < 200 && !refused; n++) {
        await within(begin({ workspace: disk.path }), 'the answer to a start', 5_000).then(
          ({ run_id }) => accepted.push(run_id),
          error => {
            refused = error
          },
        )
      }
      expect(refused).toBeInstanceOf(CadreError)
      const { code, message } = refused as CadreError
      expect(code).toBe('unavailable')
      expect(message).toMatch(/disk|space/)
      expect(message).not.toMatch(/SQLite/i)
      disk.free()
      for (const run_id of accepted) {
        expect(await within(t.engine.ended(run_id), 'the end of the run')).toMatchObject({ state: 'completed' })
      }
      await until(() => t.engine.load.stalled === null, 'space')
      const { run_id } = await within(begin({ workspace: disk.path }), 'the start')
      expect(await within(t.engine.ended(run_id), 'the end of the run')).toMatchObject({ state: 'completed' })
      expect(t.engine.load).toMatchObject({ runs: 0, slots: 0, stalled: null })
    }, 60_000)

    test('sets no additional timer for each open run and each attempt to write', async () => {
      const begin = await t.prepare(team([act('long', 'wait', { timeout: '2h' })], { timeout: '1h' }))
      const runs = await Promise.all(Array.from({ length: 200 }, () => begin({ workspace: disk.path })))
      await until(() => calls.length === 200, '200 phases')
      disk.fill()
      const cancelled = unlessFull(t.engine.cancel(runs[0]!.run_id))
      const { setTimeout: real } = globalThis
      let timers = 0
      globalThis.setTimeout = ((...given: Parameters<typeof real>) => {
        timers++
        return real(...given)
      }) as typeof real
      try {
        await Bun.sleep(4_000)
      } finally {
        globalThis.setTimeout = real
      }
      expect(timers).toBeLessThan(200)
      expect(calls).toHaveLength(200)
      disk.free()
      await within(cancelled, 'the answer to the cancel')
      for (const { run_id } of runs) await cancelAgain(run_id)
      for (const { run_id } of runs) {
        expect(await within(t.engine.ended(run_id), 'the end of a run')).toMatchObject({ state: 'cancelled' })
      }
      expect(phaseOf(t, runs[0]!.run_id, 'long')).toMatchObject({ state: 'cancelled', attempt: 1 })
    }, 60_000)
  })

  describe('the daemon', () => {
    let daemon: RunningDaemon
    beforeEach(async () => {
      daemon = await spawnDaemon({ home: disk.path })
      closing = () => daemon.kill('SIGKILL')
    })

    test('answers 503 to a start, continues to answer, and starts the run when there is space', async () => {
      const path = files({ 'team.yml': takesMuch([shell('c', 'true')]) })
      const request = { path, inputs: { text: BIG } }
      disk.fill()
      let reply = await within(daemon.post('/v1/runs/start', request), 'the answer to a start', 5_000)
      for (let n = 0; n < 200 && reply.status === 200; n++) {
        reply = await within(daemon.post('/v1/runs/start', request), 'the answer to a start', 5_000)
      }
      expect(reply).toMatchObject({ status: 503, body: { ok: false, error: { code: 'unavailable' } } })
      const { message } = reply.body.error
      expect(message).toMatch(/disk|space/)
      expect(message).not.toMatch(/SQLite/i)
      expect((await within(fetch(`${daemon.url}/health`), '/health')).status).toBe(200)
      disk.free()
      const { run_id } = await until(async () => {
        const again = await within(daemon.post('/v1/runs/start', request), 'the answer to a start')
        return again.status === 200 && again.body.data
      }, 'a start with space')
      expect(await within(daemon.ended(run_id), 'the end of the run')).toMatchObject({ state: 'completed' })
    }, 60_000)

    test('stops the command of a run that is cancelled', async () => {
      const pidFile = join(folder(), 'pid')
      const path = files({ 'team.yml': team([shell('long', `echo $$ > ${pidFile}; sleep 600`)]) })
      const { run_id } = await daemon.call('/v1/runs/start', { path })
      const pid = await leaderIn(pidFile)
      disk.fill()
      const cancelled = daemon.post('/v1/runs/cancel', { run_id })
      cancelled.catch(() => {})
      await until(() => !alive(pid), 'the end of the command')
      disk.free()
      await until(async () => {
        const { status } = await within(daemon.post('/v1/runs/cancel', { run_id }), 'the answer to the cancel')
        return status !== 503
      }, 'space')
      expect(await within(daemon.ended(run_id), 'the end of the run')).toMatchObject({ state: 'cancelled' })
    }, 60_000)
  })
})
