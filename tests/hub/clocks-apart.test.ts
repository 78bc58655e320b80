// Two hubs on one PostgreSQL, of which one has a clock that is an hour ahead, by libfaketime: both say so, and every time
// that they share is that of the database. Needs `TEST_POSTGRES_URL`, a server where databases may be created.

import { expect, test } from 'bun:test'
import { openStore } from '../../db/hub/open-store.ts'
import { until } from '../support/bounded.ts'
import { fakeClock } from '../support/fake-clock.ts'
import { DATABASES, type HubProcess, publish, signedIn, startHub, stop } from '../support/served-hubs.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
/** How far two clocks may seem apart that are the same. */
const NEAR_MS = 60_000
const METRICS_TOKEN = 'a-token-that-reads-metrics'
const TEAM = '@admin/t'
const TEXT = `name: "${TEAM}"\nversion: 1.0.0\nphases: [{ name: a, type: gate, review: { prompt: "?" } }]\n`

const onPostgres = DATABASES.find(({ name }) => name === 'PostgreSQL')

const ready = async ({ url }: HubProcess): Promise<{ clocks_apart_ms?: number }> =>
  ((await (await fetch(`${url}/ready`)).json()) as { data: object }).data

async function metric({ url }: HubProcess, name: string): Promise<number> {
  const reply = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await reply.text())![1])
}

const near = (at: number) => [at - NEAR_MS, at + NEAR_MS] as const

test.skipIf(!onPostgres)(
  'both hubs say that their clocks differ, and share the clock of the database',
  async () => {
    const clock = fakeClock()
    if (!clock) return
    clock.set(HOUR)
    await using database = await onPostgres!.open()
    // It comes first, so it does the chores, and makes the first account.
    const ahead = await startHub(database.location, { ...clock.env, CADRE_METRICS_TOKEN: METRICS_TOKEN })
    const right = await startHub(database.location, { CADRE_METRICS_TOKEN: METRICS_TOKEN })
    const hubs = [ahead, right]
    const store = await openStore(database.location)
    try {
      for (const hub of hubs) {
        const apart = await until(async () => (await ready(hub)).clocks_apart_ms, 'the hub says that clocks differ')
        expect(apart).toBeWithin(...near(HOUR))
        expect((await metric(hub, 'cadre_hub_clocks_apart_seconds')) * 1_000).toBe(apart)
        const line = (await hub.log()).split('\n').find(each => each.includes('clocks of hubs differ'))
        expect(JSON.parse(line!)).toMatchObject({ level: 'warn', hubs: [{}, {}] })
      }
      expect((await metric(ahead, 'cadre_hub_clock_ahead_seconds')) * 1_000).toBeWithin(...near(HOUR))
      expect((await metric(right, 'cadre_hub_clock_ahead_seconds')) * 1_000).toBeWithin(...near(0))

      const { call, realm_id } = await signedIn(() => ahead.url)
      await publish(call, realm_id, TEAM, TEXT)
      await call('realms/invite', { realm_id, role: 'member' })
      const { db, tokens, invitations, chores, jobs } = store
      const [session] = await db.select().from(tokens)
      expect(session!.expires_at).toBeWithin(...near(Date.now() + 30 * DAY))
      const [invitation] = await db.select().from(invitations)
      expect(invitation!.created_at).toBeWithin(...near(Date.now()))
      for (const { lease_until } of await db.select().from(chores)) expect(lease_until).toBeWithin(...near(Date.now()))

      // What the hub that is ahead writes means the same to the other one.
      const other = await signedIn(() => right.url)
      const asked = { realm_id, team: TEAM, requires: { labels: { nobody: 'has-this' } } }
      const patient = await call('dispatch/run', { ...asked, queue_timeout: '30m' })
      const brief = await other.call('dispatch/run', { ...asked, queue_timeout: '1s' })
      const stateOf = async (run_id: string) => (await other.call('runs/get', { run_id })).state
      await until(async () => (await stateOf(brief.run_id)) === 'failed', 'the queue_timeout of a run')
      expect(await stateOf(patient.run_id)).toBe('queued')
      const expiries = (await db.select().from(jobs)).map(({ expires_at }) => expires_at!).sort()
      expect(expiries[1]! - expiries[0]!).toBeWithin(...near(HOUR / 2))

      clock.set(0)
      for (const hub of hubs) {
        await until(async () => (await ready(hub)).clocks_apart_ms === undefined, 'the clocks agree again')
        expect(await metric(hub, 'cadre_hub_clocks_apart_seconds')).toBeLessThanOrEqual(2)
        expect(await hub.log()).toContain('the clocks of hubs agree again')
      }
    } finally {
      await store.close()
      await stop(hubs)
    }
  },
  180_000,
)
