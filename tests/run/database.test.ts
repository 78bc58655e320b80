// A run database that is made where an earlier one was.

import { expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
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
