// The hub's tests again on PostgreSQL: those that ask a hub by its API, once of one hub and once of two on one database.
// Needs `TEST_POSTGRES_URL`, a server where databases may be created.

import { expect, test } from 'bun:test'
import { freshPostgres } from '../support/hub.ts'

const server = process.env.TEST_POSTGRES_URL
const again = process.env.TEST_HUB_DATABASE !== undefined

/** The tests beside this one that start a hub by `startTestHub`; the others are about processes, files and SQLite. */
async function suite(): Promise<string[]> {
  const files = [...new Bun.Glob('*.test.ts').scanSync({ cwd: import.meta.dir, absolute: true })]
  const texts = await Promise.all(files.map(file => Bun.file(file).text()))
  return files.filter((_, index) => /^import .*\bstartTestHub\b/m.test(texts[index]!)).sort()
}

test.skipIf(!server || again).concurrent.each([1, 2])(
  'the suite passes on PostgreSQL, asked of %p at a time (skipped without TEST_POSTGRES_URL)',
  async hubs => {
    const files = await suite()
    expect(files.length).toBeGreaterThan(5)
    await using database = await freshPostgres(server!)
    const run = Bun.spawn([process.execPath, 'test', '--timeout', '60000', ...files], {
      env: { ...process.env, TEST_HUB_DATABASE: database.location, TEST_HUBS: String(hubs) },
      stdout: 'ignore',
      stderr: 'pipe',
    })
    const output = await run.stderr.text()
    expect(output.split('\n').filter(line => line.startsWith('(fail)'))).toEqual([])
    expect(await run.exited).toBe(0)
  },
  600_000,
)
