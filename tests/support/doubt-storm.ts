// Random runs against vendors that lose replies, write late, and show writes late, on a clock that is driven: engines are
// killed and started again, runs are cancelled, resumed and decided. In the end, when all later looks are done, what is
// there of each entry is counted: nothing may exist twice without its run saying so, and nothing may be missing in a run
// that says `completed`.

import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { idempotencyKey } from '../../lib/run/attempt/execute.ts'
import { why } from '../../lib/run/engine.ts'
import { type DrivenClock, drivenClock } from '../../lib/testing/driven-clock.ts'
import { type DoubtTarget, type Place, targetOf } from './doubt-agents.ts'
import { type TestEngine, testEngine } from './engine.ts'
import type { Fate } from './late-vendor.ts'
import { type Random, randomFrom } from './random.ts'

export interface DoubtToll {
  runs: number
  completed: number
  /** What is there in the end. */
  objects: number
  kills: number
  cancels: number
  resumes: number
  /** Requests whose reply was lost, and how each receipt in doubt ended. */
  doubts: number
  found: number
  presumed: number
  asked: number
  /** Entries that exist twice, all of which their run names. */
  told: number
  /** How long entries were in doubt, in milliseconds of the driven clock. */
  took: number[]
}

/** Runs of one home. */
const RUNS = 20
/** Long after the last write of the vendor and the last look. */
const CALM_MS = 4 * 3_600_000
/** Far more than the calm takes; a run that is open after it stays so. */
const CALM_BOUND_MS = 30_000
const CALM_PARTS = 16

export const newToll = (): DoubtToll => ({
  ...{ runs: 0, completed: 0, objects: 0, kills: 0, cancels: 0, resumes: 0 },
  ...{ doubts: 0, found: 0, presumed: 0, asked: 0, told: 0, took: [] },
})

/**
 * Writes to a target of that name. Throws at the first write that is there twice or not at all without its run saying so.
 * The calls of real agents arrive in an order of their own, so a seed repeats their storm only roughly.
 */
export async function doubtStorm(seed: number, name: string, runs: number, toll = newToll()): Promise<DoubtToll> {
  for (let home = 0; toll.runs < runs; home++) {
    const clock = drivenClock(0, () => target.turn())
    using target: DoubtTarget = await targetOf(name, clock)
    await new Storm(seed + home, target, clock, toll).rage(Math.min(RUNS, runs - toll.runs))
  }
  return toll
}

class Storm {
  readonly #random: Random
  readonly #toll: DoubtToll
  readonly #clock: DrivenClock
  readonly #vendor: DoubtTarget
  readonly #seed: number
  readonly #folder = mkdtempSync(join(tmpdir(), 'cadre-doubt-'))
  #homes = 0
  #home: string
  #t!: TestEngine
  /** By place of a receipt: since when it is in doubt. */
  readonly #since = new Map<string, number>()
  #started = 0
  /** What the marks of the entries of each run begin with. */
  readonly #marks = new Map<string, string>()

  constructor(seed: number, vendor: DoubtTarget, clock: DrivenClock, toll: DoubtToll) {
    this.#seed = seed
    this.#random = randomFrom(seed)
    this.#toll = toll
    this.#clock = clock
    this.#vendor = vendor
    this.#vendor.fate = () => this.#fate()
    this.#vendor.fault = () => this.#random.once(12)
    this.#home = join(this.#folder, 'home0')
  }

  async rage(count: number): Promise<void> {
    await this.#open()
    const ids: string[] = []
    while (ids.length < count) {
      for (let n = 1 + this.#random.below(4); n > 0 && ids.length < count; n--) {
        ids.push(await this.#start())
      }
      for (let n = this.#random.below(5); n > 0; n--) await this.#act(ids)
    }
    await this.#calm(ids)
    this.#toll.runs += ids.length
    for (const id of ids) this.#check(id)
    await this.#t.close()
    rmSync(this.#folder, { recursive: true })
  }

  async #start(): Promise<string> {
    const mark = `r${++this.#started}`
    const workspace = join(this.#folder, mark)
    mkdirSync(workspace)
    const { run_id } = await this.#t.start(this.#team(mark, workspace), {}, { workspace })
    this.#marks.set(run_id, mark)
    return run_id
  }

  #placeOf(runId: string, phase: string, position: number, entry: string): Place {
    return { key: idempotencyKey(runId, position, entry), mark: `${this.#marks.get(runId)}-${phase}-${entry}x` }
  }

  #fate(): Fate {
    const random = this.#random
    if (random.once(8)) return { reply: 'refused' }
    if (!random.once(2)) return { hidden: random.below(4) }
    this.#toll.doubts++
    const lands = random.of([0, 0, 100, 3_000, 30_000, random.below(90_000), null])
    return { reply: 'lost', lands, hidden: random.below(4) }
  }

  #team(mark: string, workspace: string): string {
    const random = this.#random
    const phase = (name: string, more: object = {}) => ({
      name,
      agent: 'vendor',
      ...this.#vendor.phase(
        this.#vendor.entries.map(entry => `${mark}-${name}-${entry}x`),
        workspace,
        random,
      ),
      ...(random.once(2) && { retry: { attempts: 3, backoff: '1ms' } }),
      ...(random.once(4) && { on_failure: random.of(['continue', 'escalate']) }),
      ...more,
    })
    return JSON.stringify({
      name: '@local/doubt',
      version: '1.0.0',
      ...(random.once(2) && { concurrency: 1 }),
      phases: [phase('a'), phase('b', random.once(2) ? { depends_on: ['a'] } : {})],
    })
  }

  async #act(ids: readonly string[]): Promise<void> {
    const { engine } = this.#t
    const random = this.#random
    const { pace } = this.#vendor
    // Whoever kills or cancels comes in the middle of a call.
    if (pace > 0 && random.once(2)) await Bun.sleep(random.below(pace))
    switch (random.below(7)) {
      case 0:
        this.#toll.cancels++
        return void (await engine.cancel(random.of(ids)).catch(refused))
      case 1:
        this.#toll.resumes++
        return void (await engine.resume(random.of(ids), random.of([{}, { from: 'a' }])).catch(refused))
      case 2:
        return this.#decideAll()
      case 3:
        return this.#kill()
      default:
        return this.#advance(random.of([10, 500, 5_000, 20_000, 70_000]))
    }
  }

  async #advance(ms: number): Promise<void> {
    await this.#clock.advance(ms)
    this.#watch()
  }

  /** What a kill -9 leaves: the database as it is at this moment, whatever the engine would write when it is stopped. */
  async #kill(): Promise<void> {
    this.#toll.kills++
    const next = join(this.#folder, `home${++this.#homes}`)
    this.#t.db.run(`VACUUM INTO '${this.#home}.copy'`)
    cpSync(this.#home, next, { recursive: true })
    for (const end of ['', '-wal', '-shm']) rmSync(join(next, `daemon.db${end}`), { force: true })
    cpSync(`${this.#home}.copy`, join(next, 'daemon.db'))
    this.#vendor.deaf = true
    await this.#t.close()
    this.#vendor.deaf = false
    this.#home = next
    if (this.#random.once(2)) await this.#clock.advance(this.#random.below(70_000))
    await this.#open()
  }

  async #open(): Promise<void> {
    const home = this.#home
    const { agents, settings } = this.#vendor
    this.#t = await testEngine({ home, bootClock: this.#clock, settle: null, agents, settings })
  }

  /** People look outside before they answer: `retry` where nothing is there or on its way, or else `complete`. */
  async #decideAll(): Promise<void> {
    const { engine } = this.#t
    for (const { id, run_id, position, entries } of engine.store.reviews.list({
      state: 'pending',
      limit: 100,
      offset: 0,
    }).rows) {
      const doubtful: string[] = JSON.parse(entries)
      const phase = engine.phases(run_id).phases[position]!.name
      const places = doubtful.map(entry => this.#placeOf(run_id, phase, position, entry))
      if (doubtful.length > 0) this.#toll.asked++
      const isThere = places.some(place => this.#vendor.isComing(place) || this.#vendor.there(place).length > 0)
      const decision = doubtful.length > 0 && !isThere ? 'retry' : this.#random.of(['fail', 'skip'] as const)
      await engine.decide(id, { decision, by: 'chance' }).catch(refused)
    }
  }

  /** How long receipts are in doubt, and how that ends. */
  #watch(): void {
    const now = this.#clock.now()
    const rows = this.#t.db
      .query<{ place: string; state: string; presumed: number }, []>(
        `SELECT run_id || ' ' || position || ' ' || entry AS place, state, presumed_at IS NOT NULL AS presumed FROM receipts`,
      )
      .all()
    for (const { place, state, presumed } of rows) {
      const since = this.#since.get(place)
      if (state === 'unknown' && since === undefined) this.#since.set(place, now)
      if (state === 'unknown' || since === undefined) continue
      this.#since.delete(place)
      this.#toll.took.push(now - since)
      if (presumed) this.#toll.presumed++
      else this.#toll.found++
    }
  }

  async #calm(ids: readonly string[]): Promise<void> {
    const { engine } = this.#t
    this.#vendor.fault = () => false
    this.#vendor.fate = () => ({})
    const end = performance.now() + CALM_BOUND_MS
    for (let round = 0; ids.some(id => engine.record(id).completed_at === null); round++) {
      if (performance.now() > end) throw new Error(`seed ${this.#seed}: runs are still open`)
      await this.#decideAll()
      // The driven clock is faster than a busy machine, on which a reply of the vendor takes its time.
      if (round > 100) await Bun.sleep(20)
      // So much time is enough; what needs more is a fault.
      if (round <= 300) await this.#advance(10_000)
    }
    // On a busy machine a look may still be going on when the time for the next one has passed.
    for (let part = 0; part < CALM_PARTS; part++) {
      await this.#clock.advance(CALM_MS / CALM_PARTS)
      await engine.untilQuiet()
    }
    const open = this.#t.db
      .query<{ n: number }, []>('SELECT count(*) AS n FROM looks WHERE looked BETWEEN 1 AND 4')
      .get()!.n
    if (open > 0) throw new Error(`seed ${this.#seed}: ${open} later looks are not done`)
  }

  #check(runId: string): void {
    const { engine } = this.#t
    const { state } = engine.record(runId)
    const { written } = why(engine.store, runId, id => engine.bundle(id))
    if (state === 'completed') this.#toll.completed++
    const { phases } = engine.phases(runId)
    for (const [position, phase] of phases.entries()) {
      for (const entry of this.#vendor.entries) {
        const there = this.#vendor.there(this.#placeOf(runId, phase.name, position, entry))
        const said = written.find(each => each.phase === phase.name && (each.entry ?? '') === entry)
        this.#toll.objects += there.length
        const where = `seed ${this.#seed}, run ${runId}, ${phase.name}/${entry}: ${JSON.stringify({ there, said })}`
        if (there.length > 1) {
          const told = [said?.id, ...(said?.copies ?? []).map(({ id }) => id)]
          if (!there.every(id => told.includes(id))) throw new Error(`it exists twice, and nobody says so: ${where}`)
          this.#toll.told++
        }
        const counts = state === 'completed' && phase.state === 'completed'
        if (counts && there.length === 0) throw new Error(`it is missing: ${where}`)
        if (said?.state === 'done' && there.length === 0) throw new Error(`it is said to be there: ${where}`)
      }
    }
  }
}

/** A call that came too late. */
function refused(error: unknown): void {
  const code = (error as { code?: string }).code
  if (code !== 'invalid_state' && code !== 'not_found') throw error
}
