// What `--version` and its like say of a cadre that was made of this clone.

import { resolve } from 'node:path'
import manifest from '../../package.json'

const { success, stdout } = Bun.spawnSync(['git', 'rev-parse', 'HEAD'], { cwd: resolve(import.meta.dir, '../..') })

/** The commit of HEAD; null where the tests lie in no clone. */
export const HEAD = success ? stdout.toString().trim() : null

export const VERSION_TEXT = HEAD === null ? manifest.version : `${manifest.version} (${HEAD})`
