// A run database that is made where an earlier one was.

import { expect, test } from 'bun:test'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openRunDatabase, readMigrations } from '../../db/open.ts'
import { PHASE_FENCE, RUN_FENCE } from '../../lib/run/core/core.ts'
import { folder } from '../support/folder.ts'

const migrations = await readMigrations(`${import.meta.dir}/../../db/daemon/migrations`)

test('a database that was removed without its log does not come back', () => {
  const file = join(folder(), 'runs.db')
  const first = openRunDatabase(file, migrations)
  const insert = "INSERT INTO meta (key, value) VALUES ('known', 'before')"
  // As after a kill: the log has rows that the file does not have.
  first.run('PRAGMA wal_autocheckpoint = 0')
  first.run(insert)
  const log = Bun.spawnSync(['cp', `${file}-wal`, `${file}-kept`])
  expect(log.success).toBe(true)
  first.close()
  rmSync(file)
  Bun.spawnSync(['mv', `${file}-kept`, `${file}-wal`])
  expect(existsSync(`${file}-wal`)).toBe(true)
  using again = openRunDatabase(file, migrations)
  expect(again.query("SELECT value FROM meta WHERE key = 'known'").get()).toBeNull()
  again.run(insert)
})

test('migrations that have the same number, or a gap, are refused', async () => {
  const named = async (...names: string[]) => {
    const each = folder()
    for (const name of names) writeFileSync(join(each, name), '')
    return (await readMigrations(each)).map(({ name }) => name)
  }
  // A database that has the first two would miss what stands between them.
  expect(named('0001_a.sql', '0002_c.sql', '0002_b.sql')).rejects.toThrow('0002_c.sql')
  expect(named('0001_a.sql', '0003_b.sql')).rejects.toThrow('0003_b.sql')
  expect(await named('0000_a.sql', '0001_b.sql')).toEqual(['0000_a.sql', '0001_b.sql'])
})

test('no fence of a state makes a table at each execution', () => {
  using db = openRunDatabase(join(folder(), 'runs.db'), migrations)
  const operations = (sql: string) =>
    db
      .query<{ opcode: string }, []>(`EXPLAIN ${sql}`)
      .all()
      .map(({ opcode }) => opcode)
  for (const fence of Object.values(PHASE_FENCE)) {
    const sql = `UPDATE phases SET reason = NULL WHERE run_id = '' AND position = 0 AND ${fence}`
    expect(operations(sql)).not.toContain('OpenEphemeral')
  }
  for (const fence of Object.values(RUN_FENCE)) {
    expect(operations(`UPDATE runs SET reason = NULL WHERE id = '' AND ${fence}`)).not.toContain('OpenEphemeral')
  }
})
