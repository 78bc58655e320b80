// Whether agents outside the repository have changed since they were loaded, and how a changed one is loaded again.
//
// Bun keeps a module as long as it is in `require.cache`. After a module was removed from it, the next import loads
// the module again, and whoever holds the old module keeps it.

import { readdirSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { ROOT } from '../program/install-root.ts'

const BUILT_IN = ['agents', 'lib', 'node_modules'].map(folder => join(ROOT, folder))

/** Whether a file or folder is part of cadre, which does not change while a process runs. */
export function isBuiltIn(path: string): boolean {
  return BUILT_IN.some(folder => path === folder || path.startsWith(`${folder}/`))
}

/** Each agent that was loaded: the files that it consists of (itself, and what it imports by path), and their state. */
const loaded = new Map<string, { files: readonly string[]; stamp: string }>()

/** Makes the next import of `file` load it again if it, or one of the `files` that it consists of, has changed. */
export function forgetChanged(file: string, files: Iterable<string>): void {
  const own = [...files].filter(each => !isBuiltIn(each))
  const before = loaded.get(file)
  const stamp = stampOf(own)
  if (before?.stamp === stamp) return
  for (const each of [...(before?.files ?? []), ...own]) {
    delete require.cache[each]
    // The packages of the folder, which the lock file stands for.
    if (basename(each) === 'bun.lock') forgetBelow(join(dirname(each), 'node_modules'))
  }
  loaded.set(file, { files: own, stamp })
}

function forgetBelow(folder: string): void {
  for (const file of Object.keys(require.cache)) if (file.startsWith(`${folder}/`)) delete require.cache[file]
}

/** Whether an agent in one of these folders consists of files that have changed since it was loaded. */
export function haveChanged(folders: readonly string[]): boolean {
  const here = [...loaded].filter(([file]) => folders.some(folder => file.startsWith(`${folder}/`)))
  return here.some(([, { files, stamp }]) => stampOf(files) !== stamp)
}

/** The names in these folders, and the state of each. */
export function listingOf(folders: readonly string[]): string {
  return stampOf(folders.flatMap(folder => namesIn(folder).map(name => join(folder, name))))
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch {
    return []
  }
}

function stampOf(files: readonly string[]): string {
  const stamps = files.map(file => {
    const found = statSync(file, { bigint: true, throwIfNoEntry: false })
    return `${file} ${found?.ino} ${found?.size} ${found?.mtimeNs}`
  })
  return stamps.join('\n')
}
