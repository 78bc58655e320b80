// The environment of our programs in tests: a home and nothing of the developer's own, except where Bun keeps large
// modules that it has transpiled. A program in a new home would transpile them all again, which takes a third of the
// start of a hub and a fifth of a run on the command line.

import { homedir } from 'node:os'
import { join } from 'node:path'

const TRANSPILED = process.env.BUN_RUNTIME_TRANSPILER_CACHE_PATH ?? join(homedir(), '.bun/install/cache/@t@')

export function environmentAt(home: string): Record<string, string> {
  return {
    ...{ PATH: process.env.PATH!, HOME: home, BUN_RUNTIME_TRANSPILER_CACHE_PATH: TRANSPILED },
    // Writes of tests that lose their reply land at once, or within this time.
    CADRE_SETTLE: '500ms',
  }
}
