// Databases as their migrations leave them, which the suite makes once (suite.ts) and tests copy: to migrate one takes many
// times as long as to copy it. Tests of migrations and of first starts make their own, and so does `bun test FILE`.

import { copyFileSync, existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The folder with the files, and the name of the database on PostgreSQL that new ones are copies of. */
const { CADRE_TEST_BEGUN, CADRE_TEST_TEMPLATE } = process.env

/** Puts the database of a daemon or a hub at `file`, unless there is one, or none was made. */
export function copyBegun(name: 'daemon.db' | 'hub.db', file: string): void {
  if (!CADRE_TEST_BEGUN || existsSync(file)) return
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  copyFileSync(join(CADRE_TEST_BEGUN, name), file)
}

/** What is said behind `CREATE DATABASE name`. */
export const TEMPLATE = CADRE_TEST_TEMPLATE ? ` TEMPLATE ${CADRE_TEST_TEMPLATE}` : ''
