// A hub with a realm, a team, and schedules whose slots come when the test moves the clock of the hub.

import { until } from './bounded.ts'
import { startTestHub, type TestHub } from './hub.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
const EVERY = 5 * MINUTE

/** Asks a person, so that its runs end when the test says so. `day` takes any text, and `many` a number. */
export const TEAM = `name: "@admin/digest"
version: 1.0.0
inputs:
  - { name: day, type: string, default: "" }
  - { name: many, type: number, default: 1 }
  - { name: key, type: string, secret: true }
phases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]
`

export interface Firing {
  id: string
  state: string
  reason: string | null
  detail: string | null
  occasion: string
  at: number
  seen_at: number
  until: number | null
  run_id: string | null
  count: number
  late_ms: number | null
}

export type RealmTriggerHub = Awaited<ReturnType<typeof realmTriggers>>

export async function realmTriggers(start: () => Promise<TestHub> = startTestHub) {
  const hub = await start()
  const team = await hub.addTeam(TEAM)
  let ahead = 0
  let names = 0
  const call = (path: string, body: object) => hub.ok(hub.admin, `triggers/${path}`, body)
  const t = {
    hub,
    team,
    call,
    now: () => Date.now() + ahead,
    async later(ms: number): Promise<void> {
      ahead += ms
      await hub.skew(ahead)
    },
    /** A schedule of every five minutes, or what the fields say. The clock stands half a minute after a slot. */
    async schedule(fields: object = {}) {
      await t.later(EVERY - (t.now() % EVERY) + MINUTE / 2)
      const body = { realm_id: hub.realm, name: `s${++names}`, kind: 'schedule', team, cron: '*/5 * * * *', ...fields }
      return call('add', body)
    },
    /** The next slot, half a minute later. */
    slot: () => t.later(EVERY),
    firings: async ({ id: trigger_id }: { id: string }): Promise<Firing[]> =>
      (await call('firings', { trigger_id })).firings,
    /** The newest firings of a trigger, once there are so many. */
    fired: (trigger: { id: string }, count: number): Promise<Firing[]> =>
      until(async () => {
        const all = await t.firings(trigger)
        return all.length >= count && all
      }, `${count} firings`),
    /** The first firing of a trigger that is as `is` says. */
    firing: (trigger: { id: string }, is: Partial<Firing>): Promise<Firing> =>
      until(
        async () =>
          (await t.firings(trigger)).find(firing =>
            Object.entries(is).every(([name, value]) => firing[name as keyof Firing] === value),
          ),
        `a firing that is ${JSON.stringify(is)}`,
      ),
    /** As `<state> [<reason>] [x<count>]`, the oldest first. */
    rows: async (trigger: { id: string }): Promise<string[]> =>
      (await t.firings(trigger)).reverse().map(({ state, reason, count }) => {
        const several = count > 1 ? [`x${count}`] : []
        return [state, ...(reason === null ? [] : [reason]), ...several].join(' ')
      }),
    /** No daemon has taken the run, so that it ends at once. */
    end: (run_id: string | null) => hub.ok(hub.admin, 'dispatch/cancel', { run_id }),
    remove: ({ id: trigger_id }: { id: string }) => call('remove', { trigger_id }),
    /** An account with a role in the realm. */
    async person(username: string, role = 'operator'): Promise<string> {
      const { token } = await hub.account(username)
      await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username, role })
      return token
    },
  }
  return t
}
