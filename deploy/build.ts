// `bun run build [TARGET …]` compiles cadre into one file per target, in `dist/`. Without a target it is that of this
// machine; `all` are all of them. Two builds of the same files by the same Bun make the same bytes, wherever they lie. The
// Bun inside is the one of bun.lock where it is installed; others are fetched by Bun from the npm registry.

import { chmodSync, existsSync, mkdirSync, readdirSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { MODULES } from '../lib/agent/imports.ts'
import type { Dashboard } from '../lib/program/carried.ts'
import { ROOT } from '../lib/program/install-root.ts'
import { commit } from '../lib/program/version.ts'
import { build as buildDashboard } from '../lib/web/web.ts'
import manifest from '../package.json'

export const TARGETS = [
  'linux-x64',
  'linux-x64-musl',
  'linux-arm64',
  'linux-arm64-musl',
  'darwin-x64',
  'darwin-arm64',
] as const
export type Target = (typeof TARGETS)[number]

/** What `new Worker` starts (`thread`). */
const THREADS = [
  'lib/daemon/link/heartbeat-thread.ts',
  'lib/hub/backups/backup-thread.ts',
  'lib/hub/packages/worker.ts',
  'lib/run/search/search-thread.ts',
]
/** What is started as a process of its own (`ownProgram`). */
const PROGRAMS = ['lib/vendors/database/sqlite-process.ts']
/** What is read as files: migrations, units of services, and what `agent new --from`, `init` and `examples` copy. */
const ASSETS = ['agents', 'db', 'deploy', 'examples']

/**
 * Compiles cadre for `target` into the file `outfile`, whose name becomes a part of it. `releaseKey` takes the place of the
 * key that signs releases (lib/program/release-key.ts), for tests.
 */
export async function compile(outfile: string, target?: Target, releaseKey?: string): Promise<void> {
  const carried = carriedSource(await buildDashboard('cadre'), await buildDashboard('cadre', 'hub'))
  const entries = ['deploy/cadre.ts', ...THREADS].map(path => join(ROOT, path))
  const { success, logs } = await Bun.build({
    entrypoints: entries,
    root: ROOT,
    target: 'bun',
    format: 'esm',
    splitting: true,
    // 13 MB more, and half the processor time of a short run (measured: 150 ms instead of 330 ms).
    bytecode: true,
    minify: { whitespace: true, syntax: true },
    tsconfig: join(ROOT, 'tsconfig.json'),
    plugins: [
      {
        name: 'carried',
        setup(build) {
          build.onLoad({ filter: /\/lib\/program\/carried\.ts$/ }, () => ({ contents: carried, loader: 'ts' }))
          const stamp = JSON.stringify({ commit: commit() ?? '' })
          build.onLoad({ filter: /\/lib\/program\/stamp\.json$/ }, () => ({ contents: stamp, loader: 'json' }))
          if (releaseKey === undefined) return
          const contents = `export const releaseKey = ${JSON.stringify(releaseKey)}`
          build.onLoad({ filter: /\/lib\/program\/release-key\.ts$/ }, () => ({ contents, loader: 'ts' }))
        },
      },
    ],
    compile: {
      outfile,
      ...(target && { target: `bun-${target}` as const, ...lockedBun(target) }),
      assets: ASSETS.map(path => join(ROOT, path)),
      autoloadBunfig: false,
      autoloadDotenv: false,
    },
  })
  if (!success) throw new AggregateError(logs, `${outfile} could not be compiled`)
  chmodSync(outfile, 0o755)
}

/** The Bun of another system, as bun.lock has it: `bun install --os='*' --cpu='*' --libc='*'` installs them all. */
function lockedBun(target: Target): { executablePath?: string } {
  const executablePath = join(ROOT, `node_modules/@oven/bun-${target.replace('arm64', 'aarch64')}/bin/bun`)
  return existsSync(executablePath) ? { executablePath } : {}
}

/** The module that takes the place of lib/program/carried.ts. Its imports are static, so that Bun finds what they name. */
function carriedSource(dashboard: Dashboard, hubPages: Dashboard): string {
  const agents = readdirSync(join(ROOT, 'agents'))
    .sort()
    .map(file => `agents/${file}`)
  const files = (paths: readonly string[], keyOf: (path: string) => string) =>
    loaders(paths.map(path => [keyOf(path), `../../${path}`]))
  return `
export const carried = {
  agents: ${files(agents, path => `/$bunfs/root/${path}`)},
  modules: {
    ...${loaders(Object.entries(MODULES).map(([name, path]) => [name, `../../${relative(ROOT, path)}`]))},
    ...${loaders(
      Object.keys(manifest.dependencies)
        .filter(isCode)
        .map(name => [name, name]),
    )},
  },
  programs: ${files(PROGRAMS, path => path)},
  dashboard: ${JSON.stringify(dashboard)},
  hubPages: ${JSON.stringify(hubPages)},
}`
}

/** Whether a package has more than types. */
function isCode(name: string): boolean {
  try {
    return Bun.resolveSync(name, ROOT) !== ''
  } catch {
    return false
  }
}

function loaders(modules: readonly (readonly [name: string, path: string])[]): string {
  const lines = modules.map(([name, path]) => `    ${JSON.stringify(name)}: () => import(${JSON.stringify(path)}),`)
  return `{\n${lines.join('\n')}\n  }`
}

/** The targets that were asked for; `undefined` is this machine. */
function targetsOf(args: readonly string[]): (Target | undefined)[] {
  const unknown = args.find(arg => arg !== 'all' && !isTarget(arg))
  if (unknown !== undefined) {
    process.stderr.write(`there is no target ${unknown}; there are ${TARGETS.join(', ')} and all\n`)
    process.exit(2)
  }
  if (args.length === 0) return [undefined]
  return args.includes('all') ? [...TARGETS] : args.filter(isTarget)
}

const isTarget = (name: string): name is Target => TARGETS.some(target => target === name)

if (import.meta.main) {
  mkdirSync(join(ROOT, 'dist'), { recursive: true })
  for (const target of targetsOf(process.argv.slice(2))) {
    const outfile = join(ROOT, 'dist', target ? `cadre-${target}` : 'cadre')
    await compile(outfile, target)
    process.stdout.write(`${relative(process.cwd(), outfile)}  ${Math.round(statSync(outfile).size / 1e6)} MB\n`)
  }
}
