// All tests: bun run test [options of `bun test`]
//
// Hundreds of tests start the daemon as a process. It is compiled first, because a compiled one starts in half of the
// processor time (measured: `serve` 0.28 s instead of 0.66 s, `runs` 0.15 s instead of 0.25 s), and because it is what
// many users run. `bun test FILE` starts the sources. Databases are migrated first as well, and copied (support/begun.ts).

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../db/hub/open-store.ts'
import { openRunDatabase, readMigrations } from '../db/open.ts'
import { compile } from '../deploy/build.ts'
import { freshPostgres } from './support/hub.ts'
import { SHORT_LIVED } from './support/program.ts'

const top = join(import.meta.dir, '..')
const server = process.env.TEST_POSTGRES_URL
const folder = mkdtempSync(join(tmpdir(), 'cadre-program-'))
try {
  await using template = server ? await freshPostgres(server) : null
  const program = join(folder, 'cadre')
  await Promise.all([compile(program), migrate(template?.location)])
  const tests = Bun.spawn(
    [process.execPath, 'test', '--parallel=4', '--timings=tests/timings.json', ...process.argv.slice(2)],
    {
      cwd: top,
      env: {
        ...process.env,
        ...SHORT_LIVED,
        // The process of a test file may work for long, so it keeps the slowest compiler.
        BUN_JSC_useFTLJIT: '1',
        CADRE_TEST_PROGRAM: program,
        CADRE_TEST_BEGUN: folder,
        ...(template && { CADRE_TEST_TEMPLATE: new URL(template.location).pathname.slice(1) }),
      },
      stdio: ['inherit', 'inherit', 'inherit'],
    },
  )
  // The tests get the signal as well, and end.
  process.on('SIGINT', () => {})
  process.on('SIGTERM', () => tests.kill())
  process.exitCode = await tests.exited
} finally {
  rmSync(folder, { recursive: true, force: true })
}

/** Makes the databases that tests begin with. */
async function migrate(template: string | undefined): Promise<void> {
  openRunDatabase(join(folder, 'daemon.db'), await readMigrations(join(top, 'db/daemon/migrations'))).close()
  for (const database of [join(folder, 'hub.db'), template]) if (database) await (await openStore(database)).close()
}
