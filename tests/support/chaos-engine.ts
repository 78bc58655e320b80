// Several engines in one process that may be killed at any moment, each with its own home. They start random teams,
// cancel once or twice, resume and decide, while their clocks jump. The process prints `loaded`, and opens the homes
// `FOLDER/home0` … when it reads a line. With `calm` it starts nothing, answers every question, and exits when no run
// is open. It reports violations on stderr and exits with 1.
//
//   bun tests/support/chaos-engine.ts FOLDER VENDOR_URL SEED HOMES [calm]

import type { Database } from 'bun:sqlite'
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { CadreError } from '../../lib/error.ts'
import type { Engine } from '../../lib/run/engine.ts'
import { stormAgents } from './chaos-agents.ts'
import { teamOf } from './chaos-teams.ts'
import { type TestEngine, testEngine } from './engine.ts'
import { ANSWERS, openHome, pendingReviews, rootsOf } from './home-rows.ts'
import { randomFrom } from './random.ts'

const SLOTS = 4
/** The approximate number of runs that are open at once. */
const BUSY = 5
const CALM_MS = 30_000

const [folder, url, seed, homes, calm] = process.argv.slice(2) as [string, string, string, string, string?]

function complain(what: string): never {
  console.error(what)
  process.exit(1)
}

/** Awaits a call and ignores the given refusals, which mean only that the call came too late. */
async function may(work: Promise<unknown>, ...late: string[]): Promise<void> {
  await work.catch(error => {
    if (error instanceof CadreError && late.includes(error.code)) return
    complain(error instanceof Error ? (error.stack ?? error.message) : String(error))
  })
}

class Storm {
  readonly #home: string
  readonly #random
  readonly #own = stormAgents()
  #t!: TestEngine
  #db!: Database
  /** By how much the clock is wrong, in milliseconds. */
  #offset = 0

  constructor(home: string, seed: number) {
    this.#home = home
    this.#random = randomFrom(seed)
    this.#jump()
  }

  /** Loads the modules that the first team of a process needs, which takes a tenth of a second, on a temporary home. */
  async warm(): Promise<void> {
    const t = await this.#engineAt(mkdtempSync(`${this.#home}-`))
    await t.start(teamOf(this.#random, 0), { n: 0 })
    await t.close()
  }

  async open(): Promise<void> {
    this.#t = await this.#engineAt(this.#home)
    this.#db = openHome(this.#home)
  }

  async rage(): Promise<never> {
    for (;;) {
      this.#checkSlots()
      await this.#act(this.#t.engine)
      await Bun.sleep(this.#random.below(6))
    }
  }

  async calm(): Promise<void> {
    const { engine } = this.#t
    const deadline = performance.now() + CALM_MS
    while (this.#open().length > 0) {
      if (performance.now() > deadline) complain(`runs are still open: ${this.#stillOpen()}`)
      await this.#decideOne(engine)
      await Bun.sleep(2)
    }
    for (const { id } of rootsOf(this.#db)) await engine.ended(id)
    const { runs, slots } = engine.load
    this.#checkSlots()
    if (runs + slots !== 0) complain(`nothing is open, but ${runs} runs are in memory and ${slots} slots in use`)
    this.#db.close()
    await this.#t.close()
  }

  #open() {
    return rootsOf(this.#db).filter(run => run.completed_at === null)
  }

  #stillOpen(): string {
    const rows = this.#db.query(
      `SELECT runs.id, runs.state, team_key, ending, position, phases.state AS phase, phases.reason, phases.attempt, due_at
       FROM runs JOIN phases ON run_id = id WHERE runs.completed_at IS NULL AND phases.completed_at IS NULL`,
    )
    return JSON.stringify(rows.all(), null, 1)
  }

  #engineAt(home: string) {
    const { agents } = this.#own
    const settings = { vendor: { url } }
    return testEngine({
      home,
      agents,
      settings,
      slots: SLOTS,
      grown: true,
      settle: 300,
      now: () => Date.now() + this.#offset,
    })
  }

  #jump(): void {
    this.#offset = this.#random.below(2_000) - 1_000
  }

  async #act(engine: Engine): Promise<void> {
    const random = this.#random
    switch (random.below(8)) {
      case 0:
      case 1:
      case 2:
        if (this.#open().length < BUSY) await may(this.#t.start(teamOf(random, 2), { n: random.below(4) }))
        return
      case 3: {
        const runs = this.#open()
        if (runs.length === 0 || !random.once(2)) return
        const { id } = random.of(runs)
        await may(engine.cancel(id), 'invalid_state')
        // The second cancel also ends the phases that run after a cancel.
        if (random.once(2)) await may(engine.cancel(id), 'invalid_state')
        return
      }
      case 4: {
        const runs = rootsOf(this.#db).filter(run => run.completed_at !== null)
        const options = random.of([{}, { from: `p${random.below(3)}` }, { failed: true }])
        if (runs.length > 0) await may(engine.resume(random.of(runs).id, options), 'invalid_state', 'invalid_request')
        return
      }
      case 5:
        return this.#jump()
      default:
        await this.#decideOne(engine)
    }
  }

  async #decideOne(engine: Engine): Promise<void> {
    const reviews = pendingReviews(this.#db)
    if (reviews.length === 0) return
    const { id, kind, entries } = this.#random.of(reviews)
    // A person may send an entry again that may have arrived. Here that would look like a second write, so it is
    // avoided.
    const choices = ANSWERS[kind].filter(choice => choice !== 'retry' || (entries === '[]' && !calm))
    // A gate may have become an escalation in the meantime.
    const decision = this.#random.of(choices)
    await may(engine.decide(id, { decision, by: 'chance' }), 'invalid_state', 'invalid_request')
  }

  #checkSlots(): void {
    const { most } = this.#own.working
    const used = this.#t.engine.load.slots
    if (used < 0 || used > SLOTS) complain(`${used} slots are in use, there are ${SLOTS}`)
    if (most > SLOTS) complain(`${most} leaf phases at once, there are ${SLOTS} slots`)
  }
}

const storms = Array.from({ length: Number(homes) }, (_, n) => new Storm(join(folder, `home${n}`), Number(seed) + n))
await storms[0]!.warm()
console.log('loaded')
const { done } = await Bun.stdin.stream().getReader().read()
// stdin was closed because the parent process is gone.
if (done) process.exit(0)
await Promise.all(storms.map(storm => storm.open()))
console.log('ready')
await Promise.all(storms.map(storm => (calm ? storm.calm() : storm.rage())))
process.exit(0)
