// How this program was called, so that every command that it prints can be pasted into the same shell.

import { realpathSync } from 'node:fs'
import { basename, join, relative, resolve } from 'node:path'
import { carried } from './carried.ts'
import { installation, ROOT } from './install-root.ts'

/** `bun daemon.ts resume ID`, or with the path of the file, or as `cadre resume ID`; with the caller's `--home`. */
export function commandLine(...args: readonly string[]): string {
  return [calledAs(), ...homeFlag(process.argv.slice(2)), ...args.map(quoted)].join(' ')
}

/** A command of the hub: `bun hub.ts user list`, `cadre hub user list`. */
export function hubCommandLine(...args: readonly string[]): string {
  return [hubCalledAs(), ...args.map(quoted)].join(' ')
}

/** What stands before the daemon's commands. */
export function calledAs(): string {
  return isCadre() ? cadre() : `bun ${script('daemon.ts')}`
}

/** What stands before the hub's commands. */
export function hubCalledAs(): string {
  return isCadre() ? `${cadre()} hub` : `bun ${script('hub.ts')}`
}

/** Whether the compiled program or the launcher of the package (deploy/cadre) was called. */
export function isCadre(): boolean {
  return carried !== null || Bun.main === join(ROOT, 'deploy/cadre.ts')
}

/** A file that is called in place of `daemon.ts`, such as a test, stands for it. */
function script(name: string): string {
  return basename(Bun.main) === name ? near(Bun.main) : name
}

/** What stands before the daemon's commands in whatever folder they are called. */
export function calledAnywhere(): string {
  return isCadre() ? cadre(quoted) : `bun ${quoted(resolve(Bun.main))}`
}

function cadre(otherwise = (file: string) => near(file, './')): string {
  const way = installation()
  if (way === 'bunx') return 'bunx cadre'
  if (way === 'npx' || process.env.npm_command === 'exec') return 'npx cadre'
  const file = carried ? process.execPath : join(ROOT, 'deploy/cadre')
  const found = Bun.which(basename(file))
  return found !== null && isSame(found, file) ? basename(file) : otherwise(file)
}

function isSame(one: string, other: string): boolean {
  return realpathSync(one) === realpathSync(other)
}

/** A path as it is called from the current folder. */
function near(path: string, prefix = ''): string {
  const way = relative(process.cwd(), path)
  return quoted(way.startsWith('..') ? path : prefix + way)
}

/** The home of the environment is known to the shell. One that was given as a flag has to be given again. */
function homeFlag(args: readonly string[]): string[] {
  const at = args.findIndex(arg => arg === '--home' || arg.startsWith('--home='))
  if (at === -1) return []
  const home = args[at] === '--home' ? args[at + 1] : args[at]!.slice('--home='.length)
  return home === undefined ? [] : ['--home', quoted(home)]
}

export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
