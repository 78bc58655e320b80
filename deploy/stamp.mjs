// Writes the commit of this clone into lib/program/stamp.json while npm packs it (`prepack` of package.json), and takes it
// out again with `--undo` (`postpack`). Plain JavaScript: npm has Node, and may have no Bun.

import { writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { headCommit } from '../lib/program/head-commit.mjs'

/** What `git archive` replaces by the commit. */
const PLACE = '$Format:%H$'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
const commit = headCommit(root)
// What was unpacked from an archive has its commit already.
if (commit !== null) {
  const stamp = process.argv.includes('--undo') ? PLACE : commit
  writeFileSync(join(root, 'lib/program/stamp.json'), `{ "commit": "${stamp}" }\n`)
}
