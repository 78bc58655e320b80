// A dispatch into an environment of the settings of a daemon: only daemons that have it get the job, and the run says which.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

let hub: TestHub
let token: string
let team: string
beforeAll(async () => {
  hub = await startTestHub()
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  team = await hub.addTeam(
    'name: "@admin/t"\nversion: 1.0.0\nphases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n',
  )
})
afterAll(() => hub.stop())

async function daemon(name: string, offer: object = {}) {
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name, ...offer })
  return {
    daemon_id,
    tell: (offer: object) => hub.ok(token, 'daemons/heartbeat', { daemon_id, ...offer }),
    take: async (): Promise<{ run_id: string; payload: { environment?: string } }[]> =>
      (await hub.ok(token, 'daemons/poll', { daemon_id, slots: 10, wait_ms: 0 })).jobs,
  }
}
const dispatch = (more: object = {}) => hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, ...more })
const environmentOf = async (run_id: string) => (await hub.ok(hub.admin, 'runs/get', { run_id })).environment

test('a dispatch goes only to a daemon that has its environment, which its record and its job name', async () => {
  const [plain, wide] = [await daemon('plain'), await daemon('wide', { environments: ['staging', 'Not a name', 7] })]
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })
  const told = daemons.map(({ name, environments }: { name: string; environments: string[] }) => [name, environments])
  expect(told.sort()).toEqual([
    ['plain', []],
    ['wide', ['staging']],
  ])
  const { run_id, waiting_for } = await dispatch({ environment: 'staging' })
  expect(waiting_for).toBeUndefined()
  expect(await plain.take()).toEqual([])
  expect(await wide.take()).toMatchObject([{ run_id, payload: { environment: 'staging' } }])
  expect(await environmentOf(run_id)).toBe('staging')
  const { runs } = await hub.ok(hub.admin, 'runs/list', { realm_id: hub.realm })
  expect(runs).toMatchObject([{ run_id, environment: 'staging' }])

  const lost = await dispatch({ environment: 'production' })
  expect(lost.waiting_for).toBe('a daemon with environment production; online are plain, wide')
  const chosen = await dispatch({ environment: 'production', daemon_id: plain.daemon_id })
  expect(chosen.waiting_for).toBe('environment production on daemon plain')
  await plain.tell({ environments: ['production'] })
  expect((await plain.take()).map(job => job.run_id).sort()).toEqual([lost.run_id, chosen.run_id].sort())

  const { status } = await hub.call(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, environment: 'No name' })
  expect(status).toBe(400)
  const other = await dispatch()
  expect(await environmentOf(other.run_id)).toBeNull()
  expect(await plain.take()).toMatchObject([{ run_id: other.run_id, payload: { team: '@admin/t@1.0.0' } }])
})

test('a daemon reports the environment of its runs, and an older one takes nothing away', async () => {
  const { daemon_id } = await daemon('reporter')
  const run_id = Bun.randomUUIDv7()
  const epoch = crypto.randomUUID()
  const report = (seq: number, run: object) =>
    hub.ok(token, 'runs/sync', {
      ...{ protocol: 1, daemon_id, epoch, from_seq: seq },
      changes: [{ ...runChange(run_id, run), seq }],
    })
  await report(1, { environment: 'production' })
  expect(await environmentOf(run_id)).toBe('production')
  await report(2, {})
  expect(await environmentOf(run_id)).toBe('production')
})

test('a trigger of a realm dispatches into its environment, and a move keeps it', async () => {
  const one = await daemon('one', { environments: ['qa', 'live'] })
  const schedule = { realm_id: hub.realm, kind: 'schedule', name: 'nightly', team, every: '90m', environment: 'qa' }
  const added = await hub.ok(hub.admin, 'triggers/add', schedule)
  expect(added.environment).toBe('qa')
  const fired = await hub.ok(hub.admin, 'triggers/run_now', { trigger_id: added.id })
  expect(await environmentOf(fired.run_id)).toBe('qa')
  const moved = await hub.ok(hub.admin, 'dispatch/move', { run_id: fired.run_id, daemon_id: one.daemon_id })
  expect(await environmentOf(moved.run_id)).toBe('qa')
  expect((await one.take()).find(job => job.run_id === moved.run_id)?.payload.environment).toBe('qa')
  const changed = await hub.ok(hub.admin, 'triggers/update', { trigger_id: added.id, environment: 'live' })
  expect(changed.environment).toBe('live')
})

test('the hub refuses what the team does not run in, and fills in its default', async () => {
  const published = (name: string, more: string) =>
    hub.addTeam(
      `name: "@admin/${name}"\nversion: 1.0.0\n${more}\nphases: [{ name: ask, type: gate, review: { prompt: "Go on?" } }]\n`,
    )
  const [strict, usual] = [
    await published('strict', 'environments: { allow: [staging, production] }'),
    await published('usual', 'environments: { allow: [staging, production], default: staging }'),
  ]
  const call = async (team: string, environment?: string) => {
    const { status, error } = await hub.call(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, environment })
    return [status, error?.message, error?.details?.[0]?.path]
  }
  const { total: before } = await hub.ok(hub.admin, 'runs/list', { realm_id: hub.realm })
  expect(await call(strict)).toEqual([
    ...[400, '@admin/strict runs only in an environment, staging and production: say which, as with --env staging'],
    '/environment',
  ])
  expect((await call(usual, 'stagin'))[1]).toBe(
    '@admin/usual does not run in the environment stagin: it allows staging and production (did you mean `staging`?)',
  )
  expect((await hub.ok(hub.admin, 'runs/list', { realm_id: hub.realm })).total).toBe(before)
  const { run_id } = await dispatch({ team: usual })
  expect(await environmentOf(run_id)).toBe('staging')
  expect(await environmentOf((await dispatch({ team: strict, environment: 'production' })).run_id)).toBe('production')
  const { environments } = await hub.ok(hub.admin, 'teams/get', { team: usual })
  expect(environments).toEqual({ allow: ['staging', 'production'], default: 'staging' })
  expect(await hub.ok(hub.admin, 'teams/get', { team })).not.toHaveProperty('environments')
})
