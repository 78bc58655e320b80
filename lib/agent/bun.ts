// The Bun that runs cadre, for the scripts of others.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { quoted } from '../program/called-as.ts'
import { carried } from '../program/carried.ts'

/**
 * The path of the Bun that runs cadre, such as for `"$CADRE_BUN" script.ts` in a command. A compiled program is one only
 * if its environment says so, which must not reach a `cadre` that the command calls: a launcher in `folder` says it then.
 * @example const env = { ...context.env, CADRE_BUN: await bunIn(folder) }
 */
export async function bunIn(folder: string): Promise<string> {
  if (!carried) return process.execPath
  const launcher = join(folder, 'bun')
  await writeFile(launcher, `#!/bin/sh\nBUN_BE_BUN=1 exec ${quoted(process.execPath)} "$@"\n`, { mode: 0o700 })
  return launcher
}
