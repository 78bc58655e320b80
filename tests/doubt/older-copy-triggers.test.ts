// A hub on an older copy of its database whose schedules were due before it found that out: nothing of that starts, and the
// firings of runs that daemons report are there again.

import { expect, test } from 'bun:test'
import { isPostgres } from '../../db/hub/store.ts'
import { openDatabase } from '../../db/open.ts'
import { until } from '../support/bounded.ts'
import { post, SECRET, signed } from '../support/hooks.ts'
import { CopiedHub, type Place, postgresPlace, sqlitePlace } from '../support/older-copy.ts'

const server = process.env.TEST_POSTGRES_URL
const MINUTE = 60_000

interface Firing {
  occasion: string
  state: string
  reason: string | null
  run_id: string | null
  count: number
}

/** Changes a database: that of a hub that serves it, or one that nobody serves. */
async function change(place: Place, statement: string): Promise<void> {
  if (!isPostgres(place.database)) {
    const db = openDatabase(place.database)
    db.run(statement)
    return db.close()
  }
  const sql = new Bun.SQL(place.database, { max: 1 })
  await sql.unsafe(statement)
  await sql.close()
}

async function notAgain(place: Place): Promise<void> {
  await using hub = await CopiedHub.start(place.database)
  await hub.enrol('ada')
  const rule = { realm_id: hub.realm, name: 'often', kind: 'schedule', team: '@admin/writes', cron: '* * * * *' }
  const { id: trigger_id } = await hub.ok('triggers/add', { ...rule, inputs: { text: '{{ slot }}' } })
  const firings = async (): Promise<Firing[]> => (await hub.ok('triggers/firings', { trigger_id })).firings
  // Ten slots are due, and nobody looks before the copy is made.
  const due = Date.now() - 10 * MINUTE
  await change(place, `UPDATE triggers SET cursor = ${due}, next_at = NULL`)
  await place.copy()
  await change(place, `UPDATE triggers SET next_at = ${due}`)
  await hub.daemon('ada')
  const lost = await until(async () => (await firings()).find(({ state }) => state === 'started'), 'a slot starts')
  await hub.completed([lost.run_id!])
  expect(hub.lines).toEqual([lost.occasion])
  await hub.leave('ada')

  const put = async () => {
    await place.put()
    await change(place, `UPDATE triggers SET next_at = ${due}`)
  }
  await hub.restore({ ...place, put })
  await hub.daemon('ada')
  const recalled = () =>
    until(async () => (await firings()).find(({ run_id }) => run_id === lost.run_id), 'it is recalled')
  expect(await recalled()).toMatchObject({ state: 'started', occasion: lost.occasion })
  const passed = await until(async () => (await firings()).find(({ reason }) => reason === 'copy'), 'the rest', 40_000)
  expect(passed).toMatchObject({ state: 'skipped', run_id: null })
  expect(passed.count).toBeGreaterThanOrEqual(9)
  if (!process.env.CADRE_SLOW_TESTS) return
  // What is due from then on starts, each slot once.
  const next = await until(
    async () => (await firings()).find(({ state, run_id }) => state === 'started' && run_id !== lost.run_id),
    'a later slot starts',
    90_000,
  )
  await hub.completed([next.run_id!])
  expect(new Set(hub.lines).size).toBe(hub.lines.length)
  const all = await firings()
  expect(new Set(all.map(({ occasion }) => occasion)).size).toBe(all.length)
  expect(all.filter(({ reason }) => reason === 'copy')).toHaveLength(1)
}

/** A delivery whose commit the copy lacks comes again, before and after its daemon has reported the run. */
async function deliveredOnce(place: Place): Promise<void> {
  await using hub = await CopiedHub.start(place.database)
  await hub.enrol('ada')
  const rule = {
    realm_id: hub.realm,
    name: 'told',
    kind: 'hook',
    team: '@admin/writes',
    scheme: 'github',
    secret: SECRET,
  }
  const added = await hub.ok('triggers/add', { ...rule, inputs: { text: '{{ body.text }}' } })
  const send = async (id: string) => {
    const body = JSON.stringify({ text: id })
    return (await post(hub.url + added.url, body, signed(body, id))).body.data
  }
  await place.copy()
  await hub.daemon('ada')
  const lost = await until(async () => {
    const sent = await send('d-1')
    return sent.run_id !== null && sent
  }, 'the delivery starts')
  await hub.completed([lost.run_id])
  await hub.leave('ada')

  await hub.restore(place)
  const early = await send('d-1')
  expect(early).toMatchObject({ state: 'waiting', run_id: null })
  await hub.daemon('ada')
  const again = await until(
    async () => {
      const sent = await send('d-1')
      return sent.state !== 'waiting' && sent
    },
    'the delivery is recalled or passed over',
    60_000,
  )
  expect(again.run_id === null ? again.reason : again.run_id).toBe(again.run_id === null ? 'copy' : lost.run_id)
  const next = await until(async () => (await send('d-2')).run_id ?? false, 'a later delivery starts', 60_000)
  await hub.completed([next])
  expect(hub.lines.toSorted()).toEqual(['d-1', 'd-2'])
}

/** Ends whose commits the copy lacks are reported again, with the run that one of them started. */
async function followedOnce(place: Place): Promise<void> {
  await using hub = await CopiedHub.start(place.database)
  await hub.enrol('ada')
  const run = `echo "$TEXT $CADRE_OUT" >> ${hub.linesFile}`
  const follows = `name: "@admin/follows"\nversion: 1.0.0\ninputs: [{ name: text, type: string, required: true }]
phases: [{ name: w, agent: exec, commands: [{ name: w, env: { TEXT: "{{ inputs.text }}" }, run: '${run}' }] }]\n`
  await hub.publish('@admin/follows', follows)
  const rule = { realm_id: hub.realm, name: 'follow', kind: 'chain', team: '@admin/follows', after: '@admin/writes' }
  const { id: trigger_id } = await hub.ok('triggers/add', { ...rule, inputs: { text: 'after-{{ run.run_id }}' } })
  const firings = async (): Promise<Firing[]> => (await hub.ok('triggers/firings', { trigger_id })).firings
  const firing = (occasion: string, state: string) =>
    until(
      async () => (await firings()).find(each => each.occasion === occasion && each.state === state),
      `a firing that is ${state}`,
      60_000,
    )
  await hub.daemon('ada')
  await place.copy()
  const first = await hub.dispatch('first')
  const lost = await firing(first, 'started')
  await hub.completed([lost.run_id!])
  await hub.ok('triggers/disable', { trigger_id })
  const second = await hub.dispatch('second')
  await hub.completed([second])
  await hub.leave('ada')

  await hub.restore(place)
  await hub.daemon('ada')
  expect((await firing(first, 'started')).run_id).toBe(lost.run_id)
  expect(await firing(second, 'skipped')).toMatchObject({ reason: 'copy', run_id: null })
  const third = await hub.dispatch('third')
  const next = await firing(third, 'started')
  await hub.completed([next.run_id!])
  expect(await firings()).toHaveLength(3)
  expect(hub.lines).toEqual([`after-${first}`, `after-${third}`, 'first', 'second', 'third'].sort())
}

test('SQLite: ends that a restored backup lacks', () => followedOnce(sqlitePlace('restore')), 180_000)
test.skipIf(!server)(
  'PostgreSQL: ends that a restored dump lacks (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using place = await postgresPlace(server!)
    await followedOnce(place)
  },
  180_000,
)
test('SQLite: a delivery that a restored backup lacks', () => deliveredOnce(sqlitePlace('restore')), 180_000)
test('SQLite: a restored backup', () => notAgain(sqlitePlace('restore')), 180_000)
test('SQLite: a machine that was put back as a whole', () => notAgain(sqlitePlace('snapshot')), 180_000)
test.skipIf(!server)(
  'PostgreSQL: a restored dump (skipped without TEST_POSTGRES_URL)',
  async () => {
    await using place = await postgresPlace(server!)
    await notAgain(place)
  },
  180_000,
)
