// Decides what an agent file may import, before the file runs, because Bun would download an unknown package from the
// registry.

import { readFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { dirname, extname, isAbsolute, join } from 'node:path'
import { messageOf } from '../error.ts'
import { carried } from '../program/carried.ts'
import { packagesWith, ROOT } from '../program/install-root.ts'
import { lockFileOf, ownPackage } from './own-packages.ts'

/**
 * The modules that agents import by name, and their files. They are paths rather than imports, because lib/agent must
 * not depend on lib/vendors. `paths` in tsconfig.json has the same entries for the type checker.
 */
export const MODULES: Record<string, string> = {
  cadre: join(ROOT, 'lib/agent/cadre.ts'),
  'cadre/vendors': join(ROOT, 'lib/vendors/vendors.ts'),
  'cadre/testing': join(ROOT, 'lib/testing/testing.ts'),
}

const LOADERS: Record<string, 'ts' | 'tsx' | 'js' | 'jsx'> = {
  '.ts': 'ts',
  '.mts': 'ts',
  '.cts': 'ts',
  '.tsx': 'tsx',
  '.js': 'js',
  '.mjs': 'js',
  '.cjs': 'js',
  '.jsx': 'jsx',
}

const isPath = (specifier: string) => /^\.{1,2}(\/|$)/.test(specifier) || isAbsolute(specifier)

const ALLOWED = "agents import from 'cadre', node:*, bun, cadre's own packages, and files beside them"

/** Whether cadre itself or Bun provides the module. */
function isProvided(specifier: string): boolean {
  return Object.hasOwn(MODULES, specifier) || /^bun($|:)/.test(specifier) || isBuiltin(specifier)
}

/** The package of a bare specifier: `@scope/name` or `name`. */
function packageOf(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

/** Whether cadre has it. A compiled program has packages as a whole, and no single files of them. */
function isInstalled(specifier: string): boolean {
  return carried ? Object.hasOwn(carried.modules, specifier) : packagesWith(packageOf(specifier)) !== null
}

/**
 * The reason why `file` must not be imported, or null. Follows imports by path and refuses every bare name except
 * `MODULES`, the modules of Bun and Node, packages that the agent's folder has for itself, and those of cadre.
 * A file that cannot be parsed is refused too. The packages that are used are added to `packages`. An import whose name
 * is computed at run time cannot be checked.
 */
export function refusedImport(
  file: string,
  packages: Set<string>,
  seen = new Set<string>(),
  folder = dirname(file),
): string | null {
  if (seen.has(file)) return null
  seen.add(file)
  const loader = LOADERS[extname(file)]
  if (!loader) return null
  const source = readFileSync(file, 'utf8')
  let imports: Bun.Import[]
  try {
    imports = new Bun.Transpiler({ loader }).scanImports(source)
  } catch (error) {
    const { position } = (error instanceof AggregateError ? error.errors[0] : error) as BuildMessage
    return `${file}${position ? `:${position.line}:${position.column}` : ''}: ${messageOf(error)}`
  }
  for (const { path: specifier } of imports) {
    if (isProvided(specifier)) continue
    if (isPath(specifier) || specifier.startsWith('file:')) {
      const found = existing(specifier, file)
      if (!found) return `${file}:${lineOf(source, specifier)}: imports '${specifier}', which does not exist`
      const refused = refusedImport(found, packages, seen, folder)
      if (refused) return refused
    } else if (/^[a-z]+:/.test(specifier)) {
      return `${file}:${lineOf(source, specifier)}: imports '${specifier}': ${ALLOWED}`
    } else {
      const lock = lockFileOf(folder)
      const own = lock && ownPackage(packageOf(specifier), lock)
      const at = `${file}:${lineOf(source, specifier)}: imports '${specifier}'`
      if (lock && own === '') seen.add(lock)
      else if (own) return `${at}: ${own}`
      else if (isInstalled(specifier)) packages.add(specifier)
      else {
        const add = `run \`bun add ${packageOf(specifier)}\` in ${folder}`
        return `${at}, which is not installed with cadre: ${ALLOWED}; to give your agents this package, ${add}`
      }
    }
  }
  return null
}

function existing(specifier: string, importer: string): string | null {
  try {
    return specifier.startsWith('file:') ? Bun.fileURLToPath(specifier) : Bun.resolveSync(specifier, dirname(importer))
  } catch {
    return null
  }
}

function lineOf(source: string, specifier: string): number {
  const at = Math.max(source.indexOf(`'${specifier}'`), source.indexOf(`"${specifier}"`), 0)
  return source.slice(0, at).split('\n').length
}

const loadFrom = (path: string) => (): Promise<object> => import(path)

let registered = false

/**
 * Makes `MODULES` importable from any folder. They are the same module instances that the core uses, so classes are
 * identical. Called once per process.
 */
export function registerCadre(): void {
  if (registered) return
  registered = true
  Bun.plugin({
    name: 'cadre',
    setup(build) {
      for (const [name, path] of Object.entries(MODULES)) {
        const load = carried?.modules[name] ?? loadFrom(path)
        build.module(name, async () => ({ exports: { ...(await load()) }, loader: 'object' }))
      }
    },
  })
}

const shared = new Set<string>()

/**
 * Lets files outside of cadre import these packages of it. The packages are registered as modules, because Bun
 * does not call a plugin's `onResolve` for a bare name without a dot.
 */
export function sharePackages(packages: Iterable<string>): void {
  for (const specifier of packages) {
    if (shared.has(specifier)) continue
    shared.add(specifier)
    const load = carried?.modules[specifier] ?? loadFrom(Bun.resolveSync(specifier, ROOT))
    Bun.plugin({
      name: `cadre: ${specifier}`,
      setup(build) {
        build.module(specifier, async () => ({ exports: { ...(await load()) }, loader: 'object' }))
      },
    })
  }
}
