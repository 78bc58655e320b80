// Random runs against a vendor that loses replies, writes late, and shows writes late, on a clock that is driven: engines
// are killed and started again, runs are cancelled, resumed and decided. In the end, when all later looks are done, the
// tickets of each entry are counted: none may exist twice without its run saying so, and none may be missing in a run that
// says `completed`.

import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { idempotencyKey } from '../../lib/run/attempt/execute.ts'
import { why } from '../../lib/run/engine.ts'
import { type DrivenClock, drivenClock } from '../../lib/testing/driven-clock.ts'
import { type TestEngine, testEngine } from './engine.ts'
import { type Fate, type LateVendor, lateVendor } from './late-vendor.ts'
import { type Random, randomFrom } from './random.ts'

export interface DoubtToll {
  runs: number
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
const ENTRIES = 2
/** Long after the last write of the vendor and the last look. */
const CALM_MS = 4 * 3_600_000
const CALM_PARTS = 16

export async function doubtStorm(seed: number, runs: number, onHome: (toll: DoubtToll) => void = () => {}) {
  const toll: DoubtToll = {
    ...{ runs: 0, kills: 0, cancels: 0, resumes: 0, doubts: 0, found: 0, presumed: 0, asked: 0, told: 0 },
    took: [],
  }
  for (let home = 0; toll.runs < runs; home++) {
    await new Storm(seed + home, toll).rage(Math.min(RUNS, runs - toll.runs))
    onHome(toll)
  }
  return toll
}

class Storm {
  readonly #random: Random
  readonly #toll: DoubtToll
  readonly #clock: DrivenClock
  readonly #vendor: LateVendor
  readonly #seed: number
  readonly #folder = mkdtempSync(join(tmpdir(), 'cadre-doubt-'))
  #homes = 0
  #home: string
  #t!: TestEngine
  /** By place of a receipt: since when it is in doubt. */
  readonly #since = new Map<string, number>()

  constructor(seed: number, toll: DoubtToll) {
    this.#seed = seed
    this.#random = randomFrom(seed)
    this.#toll = toll
    this.#clock = drivenClock(0, () => nextTurn())
    this.#vendor = lateVendor(this.#clock)
    this.#vendor.fate = () => this.#fate()
    this.#vendor.fault = () => this.#random.once(12)
    this.#home = join(this.#folder, 'home0')
  }

  async rage(count: number): Promise<void> {
    await this.#open()
    const ids: string[] = []
    while (ids.length < count) {
      for (let n = 1 + this.#random.below(4); n > 0 && ids.length < count; n--) {
        ids.push((await this.#t.start(this.#team())).run_id)
      }
      for (let n = this.#random.below(5); n > 0; n--) await this.#act(ids)
    }
    await this.#calm(ids)
    this.#toll.runs += ids.length
    for (const id of ids) this.#check(id)
    await this.#t.close()
    rmSync(this.#folder, { recursive: true })
  }

  #fate(): Fate {
    const random = this.#random
    if (random.once(8)) return { reply: 'refused' }
    if (!random.once(2)) return { hidden: random.below(4) }
    this.#toll.doubts++
    const lands = random.of([0, 0, 100, 3_000, 30_000, random.below(90_000), null])
    return { reply: 'lost', lands, hidden: random.below(4) }
  }

  #team(): string {
    const random = this.#random
    const phase = (name: string, more: object = {}) => ({
      name,
      agent: 'vendor',
      action: random.once(6) ? 'blind' : 'create',
      ...(random.once(2) && { retry: { attempts: 3, backoff: '1ms' } }),
      ...(random.once(4) && { on_failure: random.of(['continue', 'escalate']) }),
      target_entries: Array.from({ length: ENTRIES }, (_, n) => ({ name: `e${n}`, title: name })),
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
    this.#t = await testEngine({ home, lived: this.#clock, settle: null, agents: { vendor: this.#vendor.agent } })
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
      const keys = doubtful.map(entry => idempotencyKey(run_id, position, entry))
      if (doubtful.length > 0) this.#toll.asked++
      const isThere = keys.some(key => this.#vendor.coming.has(key) || this.#vendor.tickets.some(t => t.key === key))
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
    for (let round = 0; ids.some(id => engine.record(id).completed_at === null); round++) {
      if (round > 300) throw new Error(`seed ${this.#seed}: runs are still open`)
      await this.#decideAll()
      await this.#advance(10_000)
    }
    // On a busy machine a look may still be going on when the time for the next one has passed.
    for (let part = 0; part < CALM_PARTS; part++) {
      await this.#clock.advance(CALM_MS / CALM_PARTS)
      await engine.told()
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
    const { phases } = engine.phases(runId)
    for (const [position, phase] of phases.entries()) {
      for (let n = 0; n < ENTRIES; n++) {
        const key = idempotencyKey(runId, position, `e${n}`)
        const there = this.#vendor.tickets.filter(ticket => ticket.key === key).map(({ id }) => id)
        const said = written.find(each => each.phase === phase.name && each.entry === `e${n}`)
        const where = `seed ${this.#seed}, run ${runId}, ${phase.name}/e${n}: ${JSON.stringify({ there, said })}`
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
