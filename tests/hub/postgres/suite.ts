// The hub's tests again on PostgreSQL. They run in a process of their own, one file after the other, on one database,
// which is faster than creating a database for each file.

import { expect, test } from 'bun:test'
import { resolve } from 'node:path'
import { freshPostgres } from '../../support/hub.ts'

const server = process.env.TEST_POSTGRES_URL

/**
 * What no database decides: bodies, packages and documents that reach no table; and the cookie of the pages, behind which
 * everything is as with the token of a session.
 */
const NO_TABLES = /(attacks\/(bombs|publish|raw-http)|openapi|walk|web-session)\./
/** 12,000 cells that take a minute, unless slow tests are asked for. */
const WITHOUT_DATABASE = process.env.CADRE_SLOW_TESTS ? NO_TABLES : new RegExp(`${NO_TABLES.source}|matrix\\.`)

/** What PostgreSQL decides but a second hub does not: these look at one request at a time, and at no memory of a hub. */
const OF_ONE_HUB =
  /\/(matrix|bodies|fuzz|replies|columns|lists|queue-length|reach|retention|run-list|run-search|statements|tenancy|tenants|why)\./

/**
 * The files beside this folder that start a hub by `startTestHub`, and the audit of hubs. The others are about processes,
 * files and SQLite.
 */
async function suite(): Promise<string[]> {
  const cwd = resolve(import.meta.dir, '..')
  const all = [...new Bun.Glob('**/*.test.ts').scanSync({ cwd, absolute: true })]
  const audit = resolve(cwd, '../attacks/19-audit-hub.test.ts')
  const files = [...all.filter(file => !WITHOUT_DATABASE.test(file)), audit]
  const texts = await Promise.all(files.map(file => Bun.file(file).text()))
  return files.filter((_, index) => /^import .*\bstartTestHub\b/m.test(texts[index]!)).sort()
}

/**
 * Declares the test that they pass, where `hubs` hubs serve the database and calls go to them in turn. Of the files every
 * `of`th is taken, from `part` on, so that the parts can run at the same time.
 */
export function testOnPostgres(hubs: 1 | 2, part = 0, of = 1): void {
  test.skipIf(!server)(
    `part ${part + 1} of ${of} of the suite passes on PostgreSQL, asked of ${hubs} at a time (skipped without TEST_POSTGRES_URL)`,
    async () => {
      const all = (await suite()).filter(file => OF_ONE_HUB.test(file) === (hubs === 1))
      expect(all.length).toBeGreaterThan(hubs === 1 ? 2 : 15)
      const files = all.filter((_, at) => at % of === part)
      await using database = await freshPostgres(server!)
      const env = { TEST_HUB_DATABASE: database.location, TEST_HUBS: String(hubs) }
      const run = Bun.spawn([process.execPath, 'test', ...files], {
        env: { ...process.env, ...env },
        stdout: 'ignore',
        stderr: 'pipe',
      })
      const output = await run.stderr.text()
      const status = await run.exited
      const told = output.split('\n').filter(line => !line.startsWith('(pass)'))
      if (status !== 0) console.error(told.join('\n'))
      expect(told.filter(line => line.startsWith('(fail)'))).toEqual([])
      expect(status).toBe(0)
    },
    600_000,
  )
}
