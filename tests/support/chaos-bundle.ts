// A program of the tests that is started very often, in one file: that starts three times as fast as its modules do.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dir, '../..')

/** The file of a program of this folder, until it is removed. */
export async function bundled(name: string): Promise<{ program: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-bundle-'))
  const outdir = join(folder, 'tests/support')
  mkdirSync(outdir, { recursive: true })
  // What is found from the place of a module, not imported.
  for (const place of ['db', 'lib', 'node_modules']) symlinkSync(join(ROOT, place), join(folder, place))
  const entrypoints = [join(import.meta.dir, name)]
  await Bun.build({ entrypoints, outdir, target: 'bun', tsconfig: join(ROOT, 'tsconfig.json') })
  return {
    program: join(outdir, `${basename(name, '.ts')}.js`),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
