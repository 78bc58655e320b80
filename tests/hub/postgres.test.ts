// The hub's whole suite again, on PostgreSQL. Needs `TEST_POSTGRES_URL`, a server where databases may be created.

import { expect, test } from 'bun:test'

const server = process.env.TEST_POSTGRES_URL
const again = process.env.TEST_HUB_ON === 'postgres'

test.skipIf(!server || again)(
  'the suite passes on PostgreSQL (skipped without TEST_POSTGRES_URL)',
  async () => {
    const suite = Bun.spawn(['bun', 'test', import.meta.dir], {
      env: { ...process.env, TEST_HUB_ON: 'postgres' },
      stdout: 'ignore',
      stderr: 'pipe',
    })
    const output = await suite.stderr.text()
    expect(output.split('\n').filter(line => line.startsWith('(fail)'))).toEqual([])
    expect(await suite.exited).toBe(0)
  },
  120_000,
)
