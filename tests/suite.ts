// All tests: bun run test [options of `bun test`]
//
// Hundreds of tests start the daemon as a process. It is compiled first, because a compiled one starts in half of the
// processor time (measured: `serve` 0.28 s instead of 0.66 s, `runs` 0.15 s instead of 0.25 s), and because it is what
// many users run. `bun test FILE` starts the sources.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { compile } from '../deploy/build.ts'
import { SHORT_LIVED } from './support/program.ts'

const folder = mkdtempSync(join(tmpdir(), 'cadre-program-'))
try {
  const program = join(folder, 'cadre')
  await compile(program)
  const tests = Bun.spawn(
    [process.execPath, 'test', '--parallel=4', '--timings=tests/timings.json', ...process.argv.slice(2)],
    {
      cwd: join(import.meta.dir, '..'),
      // The process of a test file may work for long, so it keeps the slowest compiler.
      env: { ...process.env, ...SHORT_LIVED, BUN_JSC_useFTLJIT: '1', CADRE_TEST_PROGRAM: program },
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
