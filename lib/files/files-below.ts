// The files of a folder of a person, at any depth.

import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'

/** The files below a folder, except dot files, links and node_modules. */
export function* filesBelow(base: string, folder: string): Generator<string> {
  for (const name of readdirSync(join(base, folder)).sort()) {
    if (name.startsWith('.') || name === 'node_modules') continue
    const path = folder ? `${folder}/${name}` : name
    const found = lstatSync(join(base, path))
    if (found.isDirectory()) yield* filesBelow(base, path)
    else if (found.isFile()) yield path
  }
}
