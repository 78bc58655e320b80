// How the hub counts time: the rule, and the clock of a hub over a real database, with clocks that the test sets.

import { afterAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import fc from 'fast-check'
import { openStore } from '../../db/hub/open-store.ts'
import type { Store } from '../../db/hub/store.ts'
import { DatabaseClock, isBelieved } from '../../lib/hub/core/hub-clock.ts'
import { BELIEVED_AFTER_MS, firstRow, type LivedTime, movedBy } from '../../lib/hub/core/lived-time.ts'
import { createLog } from '../../lib/log/log.ts'
import { folder } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const LOOK = 5_000

describe('the rule', () => {
  const start: LivedTime = { lived: 1_000, at: 1_000, believed: 1_000, latest: 1_000, claimed: 1_000, claimed_for: 0 }

  test('moves by the smaller of the two steps, and by nothing at a step back', () => {
    expect(movedBy(start, 6_000, 5_000).lived).toBe(6_000)
    expect(movedBy(start, 6_000, 0).lived).toBe(1_000)
    expect(movedBy(start, 1_500, 5_000).lived).toBe(1_500)
    expect(movedBy(start, 1_000 + 40 * DAY, 5_000).lived).toBe(6_000)
    const back = movedBy(start, 1_000 - 40 * DAY, 5_000)
    expect(back.lived).toBe(1_000)
    expect(movedBy(back, 6_000 - 40 * DAY, 5_000).lived).toBe(6_000)
  })

  test('believes a jump ahead after an hour, a correction at once, and a further jump not sooner', () => {
    let row = start
    let clock = row.at
    const live = (ms: number, step = 0) => {
      clock += step
      for (let left = ms; left > 0; left -= LOOK) {
        clock += LOOK
        row = movedBy(row, clock, LOOK)
      }
    }
    live(60_000)
    expect(row.believed).toBe(clock)
    live(LOOK, 40 * DAY)
    live(30 * 60_000)
    expect(row.believed).toBe(clock - 40 * DAY)
    live(LOOK, 40 * DAY)
    live(30 * 60_000)
    expect([row.believed, row.latest]).toEqual([clock - 40 * DAY, clock - 40 * DAY])
    live(LOOK, -80 * DAY)
    expect(row.believed).toBe(clock)
    // What ends while the clock is behind is kept from the latest time that was believed.
    expect(row.latest).toBeGreaterThan(clock + 39 * DAY)
    live(HOUR - LOOK, 40 * DAY)
    expect(row.believed).toBe(clock - 40 * DAY)
    live(2 * LOOK)
    expect(row.believed).toBe(clock)
  })

  test('forgets the latest time after an hour with a clock far behind it, and takes longer to believe it again', () => {
    let row = start
    let clock = row.at
    const live = (ms: number, step = 0, look = LOOK) => {
      clock += step
      for (let left = ms; left > 0; left -= look) {
        clock += look
        row = movedBy(row, clock, look)
      }
    }
    const kept = () => Math.max(clock, row.latest)
    const YEARS = 3_650 * DAY
    live(2 * HOUR, YEARS)
    expect([row.believed, row.latest]).toEqual([clock, clock])
    // A clock that was behind only for a moment, as after a boot, is believed as before.
    live(LOOK, -YEARS)
    live(LOOK, YEARS)
    live(HOUR)
    expect([row.believed, row.latest]).toEqual([clock, clock])
    live(HOUR - LOOK, -YEARS)
    expect(kept()).toBeGreaterThan(clock + YEARS - DAY)
    live(2 * LOOK)
    expect([row.believed, kept()]).toEqual([clock, clock])
    // The time of a night's stop is believed as soon as ever.
    live(HOUR + LOOK, 15 * HOUR)
    expect([row.believed, kept()]).toEqual([clock, clock])
    // The clock was right before, after all: what has ended since is kept for thirty days.
    const before = clock
    live(30 * DAY - HOUR, 40 * DAY, HOUR)
    expect(row.believed).toBe(clock - 40 * DAY)
    expect(row.believed - before).toBeLessThan(30 * DAY)
    live(2 * HOUR, 0, HOUR)
    expect([row.believed, row.latest]).toEqual([clock, clock])
    live(HOUR + LOOK, 40 * DAY)
    expect(row.believed).toBe(clock)
  })

  test('a jump during the thirty days is not believed together with an earlier one', () => {
    let row: LivedTime = { ...start, latest: -1 }
    let clock = row.at
    const live = (ms: number, step = 0) => {
      clock += step
      for (let left = ms; left > 0; left -= HOUR) {
        clock += HOUR
        row = movedBy(row, clock, HOUR)
      }
    }
    live(29 * DAY, 2 * DAY)
    live(29 * DAY, 40 * DAY)
    expect(row.believed).toBe(clock - 40 * DAY)
    live(3 * DAY)
    expect([row.believed, row.latest]).toEqual([clock, clock])
  })

  test('a new row believes nothing before an hour, and goes on with the time of the last hub', () => {
    let row = firstRow(50 * DAY, 10 * DAY)
    expect(row).toMatchObject({ lived: 10 * DAY, believed: 0 })
    expect(firstRow(10 * DAY, 50 * DAY).lived).toBe(10 * DAY)
    let clock = row.at
    for (let passed = 0; passed < HOUR; passed += LOOK) {
      expect(row.believed).toBeLessThan(HOUR)
      clock += LOOK
      row = movedBy(row, clock, LOOK)
    }
    expect(row.believed).toBe(clock)
  })

  test('several hubs count each span once, whatever the clock does', () => {
    const [longest, most] = [4_000, 60]
    const event = fc.record({
      hub: fc.nat(2),
      pause: fc.integer({ min: 0, max: longest }),
      step: fc.oneof(
        { weight: 6, arbitrary: fc.constant(0) },
        fc.constantFrom(-40 * DAY, -HOUR, -7, 7, HOUR, 40 * DAY),
      ),
      restart: fc.oneof({ weight: 8, arbitrary: fc.constant(false) }, fc.constant(true)),
    })
    fc.assert(
      fc.property(fc.array(event, { maxLength: most }), events => {
        let row = start
        let real = 0
        let clock = row.at
        let steps = 0
        const lookedAt = [0, 0, 0]
        for (const { hub, pause, step, restart } of events) {
          real += pause
          clock += pause + step
          if (step !== 0) steps++
          if (restart) lookedAt[hub] = real
          const before = row
          row = movedBy(row, clock, real - lookedAt[hub]!)
          lookedAt[hub] = real
          expect(row.lived).toBeGreaterThanOrEqual(before.lived)
          // A look at which the clock has jumped may count what others have counted since the last look of this hub.
          expect(row.lived - start.lived).toBeLessThanOrEqual(real + steps * longest * most)
          // All of this is far below an hour.
          expect(row.believed).toBeLessThanOrEqual(Math.min(clock, start.at + real + steps * longest * most))
        }
      }),
      { numRuns: 300 },
    )
    expect(BELIEVED_AFTER_MS).toBe(HOUR)
  })
})

const server = process.env.TEST_POSTGRES_URL
const closing = new AsyncDisposableStack()
afterAll(() => closing.disposeAsync())

const dialects: [string, () => Promise<string>][] = [
  ['SQLite', async () => join(folder(), 'hub.db')],
  ['PostgreSQL', async () => closing.use(await freshPostgres(server!)).location],
]

const served = dialects.filter(([dialect]) => dialect === 'SQLite' || server !== undefined)
if (served.length < dialects.length) console.log('skipped: the clock of a hub on PostgreSQL (needs TEST_POSTGRES_URL)')

describe.each(served)('the clock of a hub on %s', (dialect, place) => {
  const isPostgres = dialect === 'PostgreSQL'
  const log = createLog({ write: () => {} })
  const time = { wall: 1_800_000_000_000, monotonic: 50_000 }
  const hubOn = (store: Store) =>
    new DatabaseClock({ store, log, wall: () => time.wall, monotonic: () => time.monotonic })
  /** A hub beats every second. */
  const live = (clocks: DatabaseClock[], ms: number) => {
    for (let left = ms; left > 0; left -= 1_000) {
      time.wall += 1_000
      time.monotonic += 1_000
      for (const clock of clocks) clock.beat()
    }
  }

  test('counts what hubs live, over restarts, pauses and steps of the clock', async () => {
    const store = await openStore(await place())
    closing.defer(() => store.close())
    const { livedTime } = store
    const row = async () => (await store.db.select().from(livedTime))[0]!
    /** PostgreSQL has a clock of its own, which goes on with this by itself. */
    const passed = async (ms: number) => {
      if (isPostgres)
        await store.write(async tx => void (await tx.update(livedTime).set({ at: (await row()).at - ms })))
    }
    const one = hubOn(store)
    await one.look()
    const begun = one.lived()
    if (!isPostgres) expect(begun).toBe(time.wall)
    // A hub says to daemons that it believes its clock only when it does: they may be on the same machine.
    expect(isBelieved(one)).toBe(false)
    expect(isBelieved({ now: () => 9 * DAY + 60_000, believed: () => 9 * DAY })).toBe(true)
    expect(isBelieved({ now: () => 9 * DAY + 60_001, believed: () => 9 * DAY })).toBe(false)
    live([one], 4_000)
    await passed(4_000)
    await one.look()
    expect(one.lived() - begun).toBe(4_000)
    expect((await row()).lived - begun).toBe(4_000)
    // The process stands still, and its clocks go on.
    time.wall += 15_000
    time.monotonic += 15_000
    await passed(15_000)
    expect(one.lived() - begun).toBe(6_000)
    await one.look()
    expect((await row()).lived - begun).toBe(6_000)
    // The clock jumps, and the monotonic one does not.
    time.wall += 40 * DAY
    await passed(40 * DAY)
    live([one], 1_000)
    await one.look()
    expect(one.lived() - begun).toBe(7_000)
    expect(one.believed()).toBeLessThan(HOUR)
    // Nobody serves for ten days, and a new process begins: it moves nothing, and takes nothing from the others.
    time.wall += 10 * DAY
    await passed(10 * DAY)
    const two = hubOn(store)
    const at = (await row()).at
    await two.look()
    expect([two.lived() - begun, (await row()).at]).toEqual([7_000, at])
    live([two], 3_000)
    await two.look()
    expect(two.lived() - begun).toBe(10_000)
    // A step back stops nothing for long.
    time.wall -= 50 * DAY
    if (isPostgres)
      await store.write(async tx => void (await tx.update(livedTime).set({ at: (await row()).at + 50 * DAY })))
    live([two], 2_000)
    await two.look()
    expect(two.lived() - begun).toBe(10_000)
    live([two], 2_000)
    await passed(2_000)
    await two.look()
    expect(two.lived() - begun).toBe(12_000)
    // A database that is away for ten minutes counts for ten seconds at most.
    live([two], 600_000)
    expect(two.lived() - begun).toBe(22_000)
  })

  test('looks of several hubs at the same time count a span once', async () => {
    const store = await openStore(await place())
    closing.defer(() => store.close())
    // A hub of an earlier version stored limits in epoch milliseconds, and was last there two days ago.
    const beat_at = Date.now() - 2 * DAY
    await store.write(tx => tx.insert(store.hubProcesses).values({ id: 'earlier', started_at: 1, beat_at }))
    const hubs = [hubOn(store), hubOn(store), hubOn(store)]
    await hubs[0]!.look()
    expect(hubs[0]!.lived()).toBe(Math.min(beat_at, time.wall))
    for (const hub of hubs) await hub.look()
    const row = async () => (await store.db.select().from(store.livedTime))[0]!
    const { lived: begun } = await row()
    for (let round = 1; round <= 5; round++) {
      live(hubs, 4_000)
      if (isPostgres) {
        const { at } = await row()
        await store.write(tx =>
          tx
            .update(store.livedTime)
            .set({ at: at - 4_000 })
            .where(eq(store.livedTime.id, 1)),
        )
      }
      await Promise.all(hubs.map(hub => hub.look()))
      const { lived } = await row()
      // PostgreSQL's clock also counts the time that the looks themselves take.
      expect(lived - begun).toBeWithin(round * 4_000, round * 4_000 + (isPostgres ? 1_000 * round : 1))
    }
  })
})
