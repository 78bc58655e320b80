// What else waits in an older copy: runs that wait for a key, and orders to resume.

import { expect, test } from 'bun:test'
import { until } from '../support/bounded.ts'
import { CopiedHub, sqlitePlace } from '../support/older-copy.ts'

const writes = (file: string, then: string) =>
  `phases: [{ name: write, agent: exec, commands: [{ name: w, run: 'echo "written $CADRE_OUT" >> ${file}; ${then}' }] }]\n`

test('a run that waited for its key in the copy is not executed again', async () => {
  const place = sqlitePlace('restore')
  await using hub = await CopiedHub.start(place.database)
  const key = 'name: "@admin/keyed"\nversion: 1.0.0\nconcurrency: { key: one }\n'
  await hub.publish('@admin/keyed', key + writes(hub.linesFile, 'true'))
  await hub.enrol('ada', 'bob')
  const dispatch = async () => (await hub.ok('dispatch/run', { realm_id: hub.realm, team: '@admin/keyed' })).run_id
  const runs = [await dispatch(), await dispatch(), await dispatch()]
  await place.copy()
  await hub.daemon('ada')
  await hub.completed(runs)
  await hub.leave('ada')
  await hub.restore(place)
  await hub.daemon('bob')
  await Bun.sleep(2_000)
  expect(hub.lines).toHaveLength(3)
  await hub.daemon('ada')
  await hub.completed(runs)
  await hub.completed([await dispatch()])
  expect(hub.lines).toHaveLength(4)
}, 90_000)

test('a run that was resumed since the copy is not resumed again', async () => {
  const place = sqlitePlace('restore')
  await using hub = await CopiedHub.start(place.database)
  await hub.publish('@admin/fails', `name: "@admin/fails"\nversion: 1.0.0\n${writes(hub.linesFile, 'exit 1')}`)
  await hub.daemon('ada')
  const { run_id } = await hub.ok('dispatch/run', { realm_id: hub.realm, team: '@admin/fails' })
  const attempt = async () => {
    const { state, attempt } = await hub.ok('runs/get', { run_id })
    return state === 'failed' ? attempt : 0
  }
  await until(async () => (await attempt()) === 1, 'the run fails')
  await hub.leave('ada')
  await hub.ok('dispatch/resume', { run_id })
  await place.copy()
  await hub.daemon('ada')
  await until(async () => (await attempt()) === 2, 'the run is resumed and fails')
  await hub.leave('ada')
  await hub.restore(place)
  expect(await attempt()).toBe(1)
  await hub.daemon('ada')
  await until(async () => (await attempt()) === 2, 'the second attempt is reported again')
  const trusted = async () => (await hub.ok('daemons/reconcile', { realm_id: hub.realm })).older_copy.ended_at !== null
  await until(trusted, 'the hub trusts its database')
  await Bun.sleep(2_000)
  expect(await attempt()).toBe(2)
  expect(hub.lines).toHaveLength(2)
}, 90_000)
