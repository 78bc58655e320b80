// Knows where the files of cadre are, and how its programs are started: in a checkout, in an installed npm package, and
// in a compiled program, whose own files exist only inside it.

import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import manifest from '../../package.json'
import { carried } from './carried.ts'

/** The folder with agents/, db/ and lib/. In a compiled program it contains only the files that the build put into it. */
export const ROOT = carried ? '/$bunfs/root' : join(import.meta.dir, '../..')

/** The first argument of a compiled program that is to be one of `carried.programs`. */
export const PROGRAM_FLAG = '--own-program'

/**
 * How this cadre came to be here: as an image (deploy/Containerfile says so), a compiled program, a clone of the
 * repository, or a package that npm, bun or one of their `x` commands installed, for everybody or in a project.
 */
export function installation() {
  if (process.env.CADRE_CONTAINER) return 'container'
  if (carried) return 'program'
  if (!ROOT.includes('/node_modules/')) return 'repository'
  if (ROOT.includes('/_npx/')) return 'npx'
  if (/\/\.?bunx-[^/]+\//.test(ROOT)) return 'bunx'
  if (ROOT.includes('/install/global/node_modules/')) return 'bun'
  return ROOT.endsWith('/lib/node_modules/cadre') ? 'npm' : 'project'
}

/** What `new Worker` takes for a file of ours, given by its path below `ROOT`. */
export function thread(path: string): string {
  return join(ROOT, carried ? path.replace(/\.ts$/, '.js') : path)
}

/**
 * The command that starts a file of ours as a process. Without these options Bun would read files of the folder in which
 * the process starts, and resolve our imports by the `paths` of a tsconfig.json there.
 */
export function ownProgram(path: string): string[] {
  if (carried) return [process.execPath, PROGRAM_FLAG, path]
  const options = ['--config=/dev/null', '--no-env-file', `--tsconfig-override=${join(ROOT, 'tsconfig.json')}`]
  return [process.execPath, ...options, join(ROOT, path)]
}

/**
 * The `node_modules` with a package of cadre, or null. npm installs the packages of an installed cadre inside its folder
 * or beside it, where those of others are, too: from there only what package.json lists is taken.
 */
export function packagesWith(name: string): string | null {
  const own = join(ROOT, 'node_modules')
  if (isIn(own, name)) return own
  if (!Object.hasOwn(manifest.dependencies, name)) return null
  for (let folder = dirname(ROOT); ; folder = dirname(folder)) {
    const packages = join(folder, 'node_modules')
    if (isIn(packages, name)) return packages
    if (folder === dirname(folder)) return null
  }
}

const isIn = (packages: string, name: string): boolean => existsSync(join(packages, name, 'package.json'))
