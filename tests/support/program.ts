// The environment of our programs in tests: a home and nothing of the developer's own, except what makes short processes
// cheap; and how the hub is started.

import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

/**
 * Where Bun keeps large modules that it has transpiled. A program in a new home would transpile them all again, which
 * takes a third of the start of a hub and a fifth of a run on the command line.
 */
const TRANSPILED = process.env.BUN_RUNTIME_TRANSPILER_CACHE_PATH ?? join(homedir(), '.bun/install/cache/@t@')

/**
 * Takes memory in large pages where Linux has them, keeps what was freed, and leaves out the slowest compiler of
 * JavaScript, which pays after minutes only. Most of what a start costs are page faults: with large pages `serve` has 1,700
 * of them instead of 8,800, and takes 0.25 s of processor time instead of 0.45 s, a hub 0.49 s instead of 0.88 s, and
 * `runs` 0.08 s instead of 0.12 s.
 */
export const SHORT_LIVED = { MIMALLOC_ALLOW_THP: '1', MIMALLOC_PURGE_DELAY: '-1', BUN_JSC_useFTLJIT: '0' }

export function environmentAt(home: string): Record<string, string> {
  return {
    ...{ PATH: process.env.PATH!, HOME: home, BUN_RUNTIME_TRANSPILER_CACHE_PATH: TRANSPILED, ...SHORT_LIVED },
    // Writes of tests that lose their reply land at once, or within this time.
    CADRE_SETTLE: '500ms',
  }
}

const COMPILED = process.env.CADRE_TEST_PROGRAM
const TOP = resolve(import.meta.dir, '../..')

/**
 * The words that begin a command of the hub. The compiled program (suite.ts) takes 0.2 s of processor time until it
 * serves, the sources 0.4 s.
 */
export const HUB = COMPILED ? [COMPILED, 'hub'] : [process.execPath, join(TOP, 'hub.ts')]

/** Hashes cost next to nothing in a hub with these variables. */
export const CHEAP_PASSWORDS = { BUN_OPTIONS: `--preload=${join(TOP, 'tests/support/cheap-passwords.ts')}` }
