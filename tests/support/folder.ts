// Temporary folders for tests.

import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const made: string[] = []

export function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'cadre-test-')))
  made.push(path)
  return path
}

/**
 * Called when all tests of a process have ended (preload.ts). An `afterAll` here would belong to the file that imports
 * this one first.
 */
export function removeFolders(): void {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true })
}
