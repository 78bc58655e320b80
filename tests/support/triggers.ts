// A daemon in this process with triggers and a clock that the test moves. Only the times of slots follow that clock; runs
// have the one of the machine.

import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Daemon } from '../../lib/daemon/runs/daemon.ts'
import { tick } from '../../lib/daemon/triggers/tick.ts'
import { Triggers } from '../../lib/daemon/triggers/triggers.ts'
import { Watches } from '../../lib/daemon/triggers/watches.ts'
import { createLog } from '../../lib/log/log.ts'
import { until } from './bounded.ts'
import { folder } from './folder.ts'
import { closeAtEnd } from './left.ts'
import { environmentAt } from './program.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const DAY = 24 * HOUR
/** A Monday. */
export const BEGIN = Date.parse('2026-11-23T00:00:30Z')

/** Ends at once, or asks ada first. */
export const WATCHED = `name: "@local/watched"
version: 1.0.0
inputs:
  - { name: hold, type: boolean, default: false }
  - { name: day, type: string, default: "" }
phases:
  - { name: ask, type: gate, when: inputs.hold, review: { prompt: "Go on?", reviewers: ["local:ada"] } }
`

export type TriggerHome = Awaited<ReturnType<typeof triggerHome>>

type Fields = Partial<Parameters<Triggers['add']>[0]>

export async function triggerHome(home = folder(), begin = BEGIN) {
  const said: string[] = []
  const log = createLog({ format: 'json', level: 'warn', write: text => said.push(text) })
  const daemon = await Daemon.open({ home, log, env: environmentAt(home) })
  const end = () => daemon.close()
  const forget = closeAtEnd(end)
  await daemon.openRuns.recover()
  const clock = { now: begin }
  const triggers = new Triggers(daemon, () => clock.now)
  const watches = new Watches(daemon, triggers)
  const team = folder()
  const write = (text: string) => writeFileSync(join(team, 'team.yml'), text)
  write(WATCHED)
  const { db, engine } = daemon

  const self = {
    ...{ home, daemon, triggers, watches, clock, team, write, said },
    removeTeam: () => rmSync(team, { recursive: true }),
    restoreTeam(text: string) {
      mkdirSync(team)
      write(text)
    },
    look: () => tick(daemon, triggers),
    /** Moves the clock, and looks. */
    async later(ms: number) {
      clock.now += ms
      await self.look()
    },
    /** A schedule of every five minutes, or what the fields say. */
    add: (fields: Fields = {}) =>
      triggers.add({ name: 'nightly', kind: 'schedule', team, cron: '*/5 * * * *', tz: 'UTC', ...fields }, 'local:ada'),
    /** All firings, the oldest first, as one line each. */
    rows: (name = 'nightly') => self.firings(name).map(lineOf),
    firings: (name = 'nightly') => triggers.firings({ name }, {}, { limit: 1_000, offset: 0 }).reverse(),
    /** Top runs, the oldest first. */
    runs: () => db.query<{ id: string; state: string }, []>('SELECT id, state FROM runs ORDER BY created_at, id').all(),
    running: () => self.runs().filter(({ state }) => state === 'running' || state === 'awaiting_input').length,
    /** Waits until so many runs ask a person. */
    asked: (count = 1) =>
      until(() => {
        const open = db.query<{ id: string }, []>("SELECT id FROM reviews WHERE state = 'pending' ORDER BY rowid").all()
        return open.length >= count && open
      }, `${count} runs that ask`),
    /** Answers the oldest question, and waits until its run has ended. */
    async answer() {
      const [{ id }] = (await self.asked()) as [{ id: string }]
      const run = engine.store.reviews.get(id)!.run_id
      await engine.decide(id, { decision: 'approve', by: 'local:ada' })
      await self.ended(run)
    },
    ended: (run?: string) =>
      until(
        () => self.runs().every(({ id, state }) => (run !== undefined && id !== run) || ENDED.includes(state)),
        'the runs have ended',
      ),
    close() {
      forget()
      return end()
    },
    [Symbol.asyncDispose]: () => self.close(),
  }
  return self
}

const ENDED = ['completed', 'failed', 'cancelled']

type Firing = ReturnType<Triggers['firings']>[number]

/** `<first> [..<last> x<count>] <state> [<reason>]`, with slots as their minutes of that day. */
function lineOf({ occasion, at, until, count, state, reason }: Firing): string {
  const minute = (time: number) => new Date(time).toISOString().slice(8, 16)
  const slot = occasion.startsWith('now:') ? 'now' : minute(at) + (occasion.split('Z')[1] ?? '')
  const several = until === null ? '' : `..${minute(until)} x${count}`
  return [slot + several, state, ...(reason === null ? [] : [reason])].join(' ')
}
