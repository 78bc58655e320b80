// How this program was called, so that every command that it prints can be pasted into the same shell.

import { basename, relative } from 'node:path'

/** `bun daemon.ts resume ID`, or with the path of the file, or as `cadre resume ID`; with the caller's `--home`. */
export function commandLine(...args: readonly string[]): string {
  return [program(), ...homeFlag(process.argv.slice(2)), ...args.map(quoted)].join(' ')
}

function program(): string {
  // In a compiled program the main file is not on the disk.
  if (Bun.main.startsWith('/$bunfs/')) return basename(process.execPath)
  const name = basename(Bun.main)
  if (/^cadre(\.[jt]s)?$/.test(name)) return 'cadre'
  if (name !== 'daemon.ts') return 'bun daemon.ts'
  const near = relative(process.cwd(), Bun.main)
  return `bun ${quoted(near.startsWith('..') ? Bun.main : near)}`
}

/** The home of the environment is known to the shell. One that was given as a flag has to be given again. */
function homeFlag(args: readonly string[]): string[] {
  const at = args.findIndex(arg => arg === '--home' || arg.startsWith('--home='))
  if (at === -1) return []
  const home = args[at] === '--home' ? args[at + 1] : args[at]!.slice('--home='.length)
  return home === undefined ? [] : ['--home', quoted(home)]
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}
