// Ids of new runs: their order is the one in which they were made, whatever the clock does.

import { expect, test } from 'bun:test'
import { isRunId } from '../../lib/files/run-id.ts'
import { RunIds } from '../../lib/files/run-ids.ts'
import { runIdAt } from '../support/listed-runs.ts'

const NOW = 1_800_000_000_000
const DAY = 86_400_000

/** The time in an id. */
const timeOf = (id: string) => Number.parseInt(id.slice(0, 13).replace('-', ''), 16)
const isSorted = (ids: string[]) => ids.every((id, at) => at === 0 || ids[at - 1]! < id)

test('an id is a UUID of version 7 with the time of the clock', () => {
  const ids = new RunIds({ clock: () => NOW })
  const id = ids.next()
  expect(isRunId(id)).toBe(true)
  expect(id).toMatch(/^.{14}7.{4}[89ab]/)
  expect(timeOf(id)).toBe(NOW)
})

test('ids of one moment are sorted, more than it has numbers for included', () => {
  const ids = new RunIds({ clock: () => NOW })
  const made = Array.from({ length: 10_000 }, () => ids.next() as string)
  expect(isSorted(made)).toBe(true)
  expect(timeOf(made.at(-1)!)).toBeLessThan(NOW + 10)
})

test('ids are sorted while the clock goes ahead and back', () => {
  let now = NOW
  const ids = new RunIds({ clock: () => now })
  const made = [0, 400 * DAY, 0, -10_000 * DAY, 10, 400 * DAY + 1].map(ahead => {
    now = NOW + ahead
    return ids.next() as string
  })
  expect(isSorted(made)).toBe(true)
  expect(timeOf(made.at(-1)!)).toBe(NOW + 400 * DAY + 1)
})

test.each([
  ['of a clock that was 400 days ahead', runIdAt(NOW + 400 * DAY, 5)],
  ['of this moment', runIdAt(NOW, 5)],
  ['with the last number of its moment', runIdAt(NOW, 5).replace('-7000-', '-7fff-')],
  ['in the year 2500', runIdAt(Date.UTC(2500), 5)],
])('an id is above a known one: %s', (_, known) => {
  const ids = new RunIds({ clock: () => NOW })
  ids.note(known)
  const [one, another] = [ids.next(), ids.next()] as string[]
  expect(isSorted([known, one!, another!])).toBe(true)
  expect(timeOf(one!)).toBeWithin(timeOf(known), timeOf(known) + 2)
})

test.each([
  ['all f', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
  ['the last of version 7', 'ffffffff-ffff-7fff-bfff-ffffffffffff'],
  ['in the year 2527', '10000000-0000-7000-8000-000000000000'],
  ['random', '0f000000-0000-4000-8000-000000000000'],
  ['of another form', '0f'],
])('an id that somebody chose is not followed: %s', (_, known) => {
  const ids = new RunIds({ clock: () => NOW })
  ids.note(known)
  expect(timeOf(ids.next())).toBe(NOW)
})

test('a lower id that becomes known changes nothing', () => {
  const ids = new RunIds({ clock: () => NOW })
  const first: string = ids.next()
  ids.note(runIdAt(NOW - DAY, 1))
  expect(isSorted([first, ids.next()])).toBe(true)
})

test('while the clock is behind, the ids of a hub leave room below them for those of its daemons', () => {
  let lived = 0
  const hub = new RunIds({ clock: () => NOW, monotonic: () => lived, leavesRoom: true })
  const daemon = new RunIds({ clock: () => NOW })
  hub.note(runIdAt(NOW + DAY, 1))
  const made: string[] = []
  for (const passed of [0, 60_000, 100]) {
    lived += passed
    const id = hub.next()
    daemon.note(id)
    made.push(id, daemon.next(), daemon.next())
  }
  expect(isSorted(made)).toBe(true)
  // They fall behind the clock, so that some day it overtakes them.
  const before = timeOf(hub.next())
  for (let n = 0; n < 1_000; n++) {
    lived += 10
    hub.next()
  }
  expect(timeOf(hub.next()) - before).toBeLessThan(6_000)
})
