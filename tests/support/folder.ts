// Folders of a test file's own, removed when it ends.

import { afterAll } from 'bun:test'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const made: string[] = []

export function folder(): string {
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'cadre-test-')))
  made.push(path)
  return path
}

afterAll(() => {
  for (const path of made.splice(0)) rmSync(path, { recursive: true, force: true })
})
