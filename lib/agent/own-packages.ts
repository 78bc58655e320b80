// Packages that a folder of agents has for itself: in its node_modules, as its bun.lock lists them. Nothing else may be
// imported, because Bun would download at run time what is listed nowhere or is not installed.

import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isObject } from '../json.ts'

/** The lock file of a folder of agents; null when the folder has no packages of its own. */
export function lockFileOf(folder: string): string | null {
  return existsSync(join(folder, 'package.json')) ? join(folder, 'bun.lock') : null
}

/**
 * Whether the folder of `lock` has this package: null when its lock file does not list it, an empty text when it is
 * installed with everything that it needs, and otherwise what is wrong, with the command that mends it.
 */
export function ownPackage(name: string, lock: string): string | null {
  const folder = dirname(lock)
  if (!existsSync(lock)) return `${folder} has a package.json and no bun.lock: run \`bun install\` there`
  const packages = packagesIn(lock)
  if (!packages) return `${lock} cannot be read: run \`bun install\` in ${folder}`
  if (!packages.has(name)) return null
  const missing = notInstalled(name, folder, folder, new Set(packages.values()), new Set())
  return missing === null ? '' : `${missing} is not installed as ${lock} says: run \`bun install\` in ${folder}`
}

/** The packages of the lock file as `name@version`, by their paths in it. */
function packagesIn(lock: string): Map<string, string> | null {
  try {
    const { packages = {} } = Bun.JSONC.parse(readFileSync(lock, 'utf8')) as { packages?: Record<string, unknown[]> }
    return new Map(Object.entries(packages).map(([location, [resolved]]) => [location, String(resolved)]))
  } catch {
    return null
  }
}

/**
 * The first package that `from` would not find in a version of the lock file, itself included. Null when it would find
 * all of them.
 */
function notInstalled(
  name: string,
  from: string,
  folder: string,
  listed: ReadonlySet<string>,
  seen: Set<string>,
): string | null {
  const packageFolder = packageFolderOf(name, from, folder)
  if (!packageFolder) return name
  if (seen.has(packageFolder)) return null
  seen.add(packageFolder)
  const { version, dependencies } = manifestOf(packageFolder)
  // A folder, an archive or a repository in place of a version says nothing about the version.
  const isListed = [...listed]
    .filter(each => each.startsWith(`${name}@`))
    .map(each => each.slice(name.length + 1))
    .some(each => each === version || !/^\d+\.\d+\.\d+/.test(each))
  if (!isListed) return `${name}@${version}`
  const needed = isObject(dependencies) ? Object.keys(dependencies) : []
  return needed.map(each => notInstalled(each, packageFolder, folder, listed, seen)).find(each => each !== null) ?? null
}

/** Where a package that `from` imports is installed, in `folder` or below. */
function packageFolderOf(name: string, from: string, folder: string): string | null {
  for (let at = from; ; at = dirname(at)) {
    const packageFolder = join(at, 'node_modules', name)
    if (existsSync(join(packageFolder, 'package.json'))) return packageFolder
    if (at === folder || at === dirname(at)) return null
  }
}

function manifestOf(packageFolder: string): Record<string, unknown> {
  const manifest: unknown = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8'))
  return isObject(manifest) ? manifest : {}
}
