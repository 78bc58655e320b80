// A run database that is made where an earlier one was.

import { expect, test } from 'bun:test'
import { existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openRunDatabase, readMigrations } from '../../db/open.ts'
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
