// The names in a folder that may be gone.

import { readdirSync } from 'node:fs'

/** The names in `folder`, sorted; none if it does not exist. Throws other errors of the system. */
export function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}
