// Bundles a test program that is started very often into one file, which starts three times as fast as its modules.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dir, '../..')

/**
 * Bundles a program of this folder, to the same place in a folder with the parts of the repository. It is as deep as
 * `lib/program`, from where `ROOT` is found. `remove` deletes the bundle.
 */
export async function bundled(name: string): Promise<{ program: string; remove(): void }> {
  const folder = mkdtempSync(join(tmpdir(), 'cadre-bundle-'))
  const outdir = join(folder, 'tests/support')
  mkdirSync(outdir, { recursive: true })
  // Files that modules find by their own location instead of importing them.
  for (const place of ['agents', 'db', 'lib', 'node_modules']) symlinkSync(join(ROOT, place), join(folder, place))
  const entrypoints = [join(import.meta.dir, name)]
  await Bun.build({ entrypoints, outdir, target: 'bun', tsconfig: join(ROOT, 'tsconfig.json') })
  return {
    program: join(outdir, `${basename(name, '.ts')}.js`),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}
