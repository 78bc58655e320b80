// Paths of files that people write in settings, with or without `~`.

import { accessSync, constants, statSync } from 'node:fs'
import { homedir } from 'node:os'

/** The path with a leading `~` replaced by the home folder of the user. Bun's `homedir` ignores later changes of HOME. */
export function fromHome(path: string): string {
  return path.replace(/^~(?=\/|$)/, process.env.HOME || homedir())
}

/**
 * Why the file at `path` cannot be read, in words that continue the name of the setting; null when it can be. `what` is
 * what the file should be: `the private key`.
 */
export function whyNoFile(path: string, what: string): string | null {
  const instead = `write the path of ${what}`
  try {
    const found = statSync(fromHome(path), { throwIfNoEntry: false })
    if (!found) return `is ${path}, where there is no file: ${instead}`
    if (!found.isFile()) return `is ${path}, which is not a file: ${instead}`
    accessSync(fromHome(path), constants.R_OK)
    return null
  } catch {
    return `is ${path}, which the user of the daemon is not allowed to read: allow it, or ${instead}`
  }
}
