// How many round trips to PostgreSQL the calls take that daemons and people make all the time: over a distance, each one
// takes as long as all that the database does.

import { expect, test } from 'bun:test'
import { DaemonClient } from '../../lib/daemon/link/daemon-client.ts'
import { HubClient } from '../../lib/daemon/link/hub-client.ts'
import { Ack, Poll, Register, Sync } from '../../lib/wire/calls/daemon-link.ts'
import { DispatchRun } from '../../lib/wire/calls/dispatch.ts'
import { ListHubRuns } from '../../lib/wire/calls/hub-runs.ts'
import { GetTree } from '../../lib/wire/calls/runs.ts'
import { freshPostgres, startTestHub } from '../support/hub.ts'
import { phaseChange, runChange } from '../support/sync.ts'
import { tripProxy } from '../support/trip-proxy.ts'

const server = process.env.TEST_POSTGRES_URL
const onPostgres = test.skipIf(!server)
if (!server) console.log('skipped: round trips to PostgreSQL (needs TEST_POSTGRES_URL)')

const TEAM =
  'name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: say, agent: exec, commands: [{ name: c, run: "true" }] }]\n'

/** On each connection, a statement takes another round trip when it is first used there. */
const ROUNDS = 8

onPostgres(
  'the calls that are made all the time take few round trips',
  async () => {
    await using database = await freshPostgres(server!)
    const url = new URL(database.location)
    await using proxy = await tripProxy(url.hostname, Number(url.port || 5432))
    url.host = `127.0.0.1:${proxy.port}`
    const hub = await startTestHub({ idle: true, database: url.href })
    try {
      const team = await hub.addTeam(TEAM)
      const { token } = await hub.realmToken(hub.admin, hub.realm)
      const daemon = new DaemonClient(
        hub.url,
        token,
        () => ({}),
        () => {},
      )
      const admin = new HubClient(hub.url, hub.admin)
      const { daemon_id } = await daemon.call(Register, { name: 'd', agents: [{ name: 'exec', version: '1.0.0' }] })
      const epoch = crypto.randomUUID()
      const least: Record<string, number> = {}
      const count = async <T>(name: string, call: () => Promise<T>): Promise<T> => {
        let result: T
        const trips = await proxy.tripsOf(async () => {
          result = await call()
        })
        least[name] = Math.min(trips, least[name] ?? Number.POSITIVE_INFINITY)
        return result!
      }
      let seq = 0
      for (let round = 0; round < ROUNDS; round++) {
        const { run_id } = await count('dispatch/run', () =>
          admin.call(DispatchRun, { realm_id: hub.realm, team, inputs: {} } as never),
        )
        const { jobs } = await count('daemons/poll', () => daemon.call(Poll, { daemon_id, slots: 1 }))
        const { job_id, lease_id } = jobs[0] as { job_id: string; lease_id: string }
        await count('daemons/ack', () => daemon.call(Ack, { daemon_id, job_id, lease_id, status: 'accepted' }))
        const sync = (...some: object[]) => {
          const changes = some.map((change, at) => ({ attempt: 1, ...change, seq: seq + at + 1 }))
          const body = { daemon_id, epoch, from_seq: seq + 1, changes }
          seq += changes.length
          return daemon.call(Sync, body)
        }
        const start = runChange(run_id, { run_id, root_run_id: run_id, team, call_path: [team] })
        const begun = await count('runs/sync of a start', () => sync(start, phaseChange(run_id, [])))
        const done = { ...start.run, state: 'completed', completed_at: 2_000 }
        const ended = await count('runs/sync of an end', () => sync({ ...start, run: done }))
        expect([begun.rejected, ended.rejected]).toEqual([[], []])
        const all = await count('runs/list', () => admin.call(ListHubRuns, { realm_id: hub.realm }))
        expect(all.total).toBe(round + 1)
        await count('runs/list of all realms', () => admin.call(ListHubRuns, { state: 'running' }))
        const tree = await count('runs/tree', () => admin.call(GetTree, { run_id }))
        expect(tree.runs).toHaveLength(1)
      }
      expect(least['daemons/poll']).toBeLessThanOrEqual(5)
      expect(least['daemons/ack']).toBeLessThanOrEqual(3)
      expect(least['runs/sync of a start']).toBeLessThanOrEqual(5)
      expect(least['runs/sync of an end']).toBeLessThanOrEqual(5)
      expect(least['runs/list']).toBeLessThanOrEqual(2)
      expect(least['runs/list of all realms']).toBeLessThanOrEqual(2)
      expect(least['runs/tree']).toBeLessThanOrEqual(2)
    } finally {
      await hub.stop()
    }
  },
  60_000,
)
