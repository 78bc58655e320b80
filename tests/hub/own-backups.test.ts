// The backups that a hub makes by itself: a real process on a database of its own, which is restored from one of them.

import { Database } from 'bun:sqlite'
import { afterAll, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { restore } from '../../db/hub/backup.ts'
import { Backups } from '../../lib/hub/backups/backups.ts'
import { until } from '../support/bounded.ts'
import { smallDisk } from '../support/disk.ts'
import { folder } from '../support/folder.ts'
import { type HubProcess, startHub, stop } from '../support/served-hubs.ts'

const METRICS_TOKEN = 'a-token-that-reads-metrics'
const NAME = /^hub-\d{8}T\d{6}Z\.db$/
const MINUTE = 60_000

const backupsIn = (at: string) =>
  existsSync(at)
    ? readdirSync(at)
        .filter(name => NAME.test(name))
        .sort()
    : []

async function metricOf({ url }: HubProcess, name: string): Promise<number | null> {
  const reply = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
  const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(await reply.text())
  return found && Number(found[1])
}

test('a hub backs its database up, once in its interval however often it starts, and a copy is a database', async () => {
  const at = join(folder(), 'deep', 'backups')
  const database = join(folder(), 'hub.db')
  const env = { CADRE_HUB_BACKUP: at, CADRE_METRICS_TOKEN: METRICS_TOKEN }
  for (let start = 0; start < 2; start++) {
    const hub = await startHub(database, env)
    try {
      await until(() => backupsIn(at).length > 0, 'a backup')
      const newest = 'cadre_hub_backup_last_timestamp_seconds'
      await until(async () => (await metricOf(hub, newest)) !== null, 'the metric of it')
      expect(await metricOf(hub, newest)).toBeWithin(Date.now() / 1_000 - 60, Date.now() / 1_000)
      const failing = 'cadre_chore_failing\\{chore="back_up"\\}'
      await until(async () => (await metricOf(hub, failing)) === 0, 'the chore has ended')
      expect(await metricOf(hub, 'cadre_hub_backup_last_bytes')).toBe(statSync(join(at, backupsIn(at)[0]!)).size)
    } finally {
      await stop([hub])
    }
  }
  const [name, ...more] = readdirSync(at)
  expect([name, more]).toEqual([expect.stringMatching(NAME), []])
  expect([statSync(at).mode & 0o777, statSync(join(at, name!)).mode & 0o777]).toEqual([0o700, 0o600])
  const restored = join(folder(), 'hub.db')
  await restore(restored, join(at, name!))
  using db = new Database(restored, { readonly: true })
  expect(db.query('SELECT username FROM users').all()).toEqual([{ username: 'admin' }])
}, 60_000)

/** A folder with a database, of which backups are made every hour, and two kept. */
function place(at = folder()) {
  const database = join(folder(), 'hub.db')
  using db = new Database(database)
  db.run('CREATE TABLE tokens (id TEXT)')
  const backups = new Backups({ folder: at, database, everyMs: 60 * MINUTE, keep: 2 })
  return {
    at,
    database,
    backups,
    make: (time: string) => backups.makeIfDue(Date.parse(time)),
    names: () => backupsIn(at),
  }
}

test('the oldest go, what others have put there stays, and so does everything if none can be made', async () => {
  const { at, database, make, names } = place()
  writeFileSync(join(at, 'hub-notes.db'), '')
  const draft = join(at, `hub-20260101T000000Z.db.${crypto.randomUUID()}.draft`)
  for (const of of ['', '-journal']) writeFileSync(draft + of, 'of a hub that was killed')
  await make('2026-03-01T10:00:00Z')
  await make('2026-03-01T10:59:59Z')
  expect(names()).toEqual(['hub-20260301T100000Z.db'])
  await make('2026-03-01T11:00:00Z')
  await make('2026-03-01T12:30:00Z')
  const both = ['hub-20260301T110000Z.db', 'hub-20260301T123000Z.db']
  expect(readdirSync(at).sort()).toEqual([...both, 'hub-notes.db'])
  rmSync(database)
  await expect(make('2026-03-01T14:00:00Z')).rejects.toThrow(`there is no database at ${database}`)
  expect(names()).toEqual(both)
})

test('nothing stays of a backup that is under way when the hub stops', async () => {
  const { at, database, make, backups } = place()
  using db = new Database(database)
  for (let n = 0; n < 50; n++) db.run('INSERT INTO tokens VALUES (randomblob(1000000))')
  const made = make('2026-03-01T10:00:00Z').then(
    () => 'made',
    error => error.message,
  )
  await until(() => readdirSync(at).some(name => name.endsWith('-journal')), 'it is being written')
  backups.stop()
  expect([await made, readdirSync(at)]).toEqual(['the backup was interrupted', []])
})

const disk = smallDisk()
afterAll(() => disk?.[Symbol.dispose]())
test.skipIf(!disk)(
  'a full disk keeps what is there, and is named (skipped where no small disk can be mounted)',
  async () => {
    const { at, database, make, names } = place(join(disk!.path, 'backups'))
    using db = new Database(database)
    for (let n = 0; n < 3; n++) db.run('INSERT INTO tokens VALUES (randomblob(1000000))')
    await make('2026-03-01T10:00:00Z')
    disk!.fill()
    await expect(make('2026-03-01T11:00:00Z')).rejects.toThrow(`no room for a copy of ${database}`)
    expect(readdirSync(at)).toEqual(['hub-20260301T100000Z.db'])
    disk!.free()
    await make('2026-03-01T11:00:00Z')
    expect(names()).toHaveLength(2)
  },
)

test('backups of a time when the clock was ahead keep out none, and go first', async () => {
  const { make, names, backups } = place()
  await make('2027-01-01T00:00:00Z')
  await make('2026-03-01T10:00:00Z')
  await make('2026-03-01T10:30:00Z')
  expect(names()).toEqual(['hub-20260301T100000Z.db', 'hub-20270101T000000Z.db'])
  expect(backups.newest(Date.parse('2026-03-01T10:30:00Z'))?.at).toBe(Date.parse('2026-03-01T10:00:00Z'))
  await make('2026-03-01T11:00:00Z')
  expect(names()).toEqual(['hub-20260301T100000Z.db', 'hub-20260301T110000Z.db'])
})

test('a hub that cannot make a backup says why, and does everything else', async () => {
  const at = join(folder(), 'backups')
  mkdirSync(at)
  writeFileSync(join(at, 'x'), '')
  const database = join(folder(), 'hub.db')
  const hub = await startHub(database, { CADRE_HUB_BACKUP: join(at, 'x'), CADRE_METRICS_TOKEN: METRICS_TOKEN })
  try {
    const failing = 'cadre_chore_failing\\{chore="back_up"\\}'
    await until(async () => (await metricOf(hub, failing)) === 1, 'the chore fails')
    expect(await metricOf(hub, 'cadre_hub_backup_last_timestamp_seconds')).toBeNull()
    expect((await fetch(`${hub.url}/ready`)).status).toBe(200)
  } finally {
    await stop([hub])
  }
}, 60_000)
