// All tests: bun run test [options of `bun test`]
//
// Hundreds of tests start the daemon as a process. It is compiled first, because a compiled one starts in half of the
// processor time (measured: `serve` 0.28 s instead of 0.66 s, `runs` 0.15 s instead of 0.25 s), and because it is what
// many users run. `bun test FILE` starts the sources. Databases are migrated first as well, and copied (support/begun.ts).

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '../db/hub/open-store.ts'
import { openRunDatabase, readMigrations } from '../db/open.ts'
import { compile } from '../deploy/build.ts'
import { freshPostgres } from './support/hub.ts'
import { SHORT_LIVED } from './support/program.ts'

const top = join(import.meta.dir, '..')
const server = process.env.TEST_POSTGRES_URL
/** More files than this do not fail by chance. */
const MOST_AGAIN = 3
const folder = mkdtempSync(join(tmpdir(), 'cadre-program-'))
try {
  await using template = server ? await freshPostgres(server) : null
  const program = join(folder, 'cadre')
  await Promise.all([compile(program), migrate(template?.location)])
  const env = {
    ...process.env,
    ...SHORT_LIVED,
    // The process of a test file may work for long, so it keeps the slowest compiler.
    BUN_JSC_useFTLJIT: '1',
    CADRE_TEST_PROGRAM: program,
    CADRE_TEST_BEGUN: folder,
    // One seed for all, so that what is run again is the same.
    CADRE_TEST_SEED: process.env.CADRE_TEST_SEED ?? String(Math.floor(Math.random() * 2 ** 31)),
    ...(template && { CADRE_TEST_TEMPLATE: new URL(template.location).pathname.slice(1) }),
  }
  const report = join(folder, 'report.xml')
  const code = await run(env, [
    ...['--parallel=4', '--timings=tests/timings.json'],
    ...['--reporter=junit', `--reporter-outfile=${report}`],
    ...process.argv.slice(2),
  ])
  const found = existsSync(report) ? readReport(readFileSync(report, 'utf8')) : null
  const isUnsteady = code !== 0 && found !== null && !found.lacksFiles && (await passAlone(found.failed, env))
  process.exitCode = isUnsteady ? 0 : code
  if (found) {
    const { tests, skipped, failed } = found
    const failures = isUnsteady ? 0 : failed.length
    console.log(`${tests - skipped - failures} passed, ${failures} failed, ${skipped} skipped`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}

async function run(env: Record<string, string | undefined>, args: readonly string[]): Promise<number> {
  const tests = Bun.spawn([process.execPath, 'test', ...args], {
    cwd: top,
    env,
    stdio: ['inherit', 'inherit', 'inherit'],
  })
  // The tests get the signal as well, and end.
  const end = () => tests.kill()
  process.on('SIGINT', () => {})
  process.on('SIGTERM', end)
  const code = await tests.exited
  process.off('SIGTERM', end)
  return code
}

/**
 * Whether the files of the failed tests pass three times while nothing else runs. A test that waits in the wrong way fails
 * beside others now and then; one that finds a fault of the program fails alone as well. It is named in either case.
 */
async function passAlone(failed: readonly string[], env: Record<string, string | undefined>): Promise<boolean> {
  const files = [...new Set(failed)]
  if (files.length === 0 || files.length > MOST_AGAIN) return false
  console.log(`\n${files.join(', ')}: again, three times alone`)
  if ((await run(env, ['--rerun-each=3', ...files.map(file => `./${file}`)])) !== 0) return false
  console.log(
    `\nUNSTEADY: a test of ${files.join(', ')} failed beside others and passed three times alone. Find out why.`,
  )
  return true
}

/**
 * What a report in the format of JUnit says, as `bun test` writes it. `failed`: the file of each failed test. `lacksFiles`: whether
 * a file of tests is not in it, because it could not be loaded or was not asked for.
 */
function readReport(xml: string) {
  const [, tests, skipped] = /<testsuites [^>]*tests="(\d+)"[^>]*skipped="(\d+)"/.exec(xml) ?? []
  const failed = [...xml.matchAll(/<testcase [^>]*?file="([^"]*)"[^>]*>\s*<failure/g)].map(([, file]) => file!)
  const files = [...new Bun.Glob('tests/**/*.test.ts').scanSync(top)]
  const lacksFiles = files.some(file => !xml.includes(` file="${file}"`))
  return { tests: Number(tests), skipped: Number(skipped), failed, lacksFiles }
}

/** Makes the databases that tests begin with. */
async function migrate(template: string | undefined): Promise<void> {
  openRunDatabase(join(folder, 'daemon.db'), await readMigrations(join(top, 'db/daemon/migrations'))).close()
  for (const database of [join(folder, 'hub.db'), template]) if (database) await (await openStore(database)).close()
}
