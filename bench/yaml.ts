// Measures how long arbitrary files take to be read as team.yml. The floor is the YAML parser alone on an ordinary file
// of the same size. (The parser alone on the same file is not a usable floor, because without limits some of these
// files take it minutes.) The ratios must not grow with the size of the file.
//
//   bun bench/yaml.ts

import { join } from 'node:path'
import { Glob } from 'bun'
import { parseDocument } from 'yaml'
import { loadBundle } from '../lib/team/team.ts'
import { lookup } from '../tests/team/agents.ts'
import { LARGE } from '../tests/team/large.ts'

const CORPUS = join(import.meta.dir, '../tests/team/corpus')
const ROUNDS = 3
const ORDINARY = `  - { name: fetch, agent: http, sources: [{ name: page, url: "https://pages.example/a" }] }\n`
/** A file that takes longer than this counts as too slow. */
const LONG_MS = 200

async function best(work: () => unknown): Promise<number> {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < ROUNDS; round++) {
    const started = performance.now()
    try {
      await work()
    } catch {
      // Most of these files are not valid teams, and some are not valid YAML.
    }
    least = Math.min(least, performance.now() - started)
  }
  return least
}

const files: [name: string, bytes: Uint8Array][] = LARGE.map(([name, text]) => [name, new TextEncoder().encode(text)])
for (const name of [...new Glob('*').scanSync(CORPUS)].sort())
  files.push([name, await Bun.file(join(CORPUS, name)).bytes()])

let long = 0
for (const [name, bytes] of files) {
  const ordinary = ORDINARY.repeat(Math.ceil(bytes.length / ORDINARY.length))
  const floor = await best(() => parseDocument(ordinary))
  const ours = await best(() => loadBundle(new Map([['team.yml', bytes]]), { agents: lookup }))
  if (ours > LONG_MS) long++
  const ratio = (ours / floor).toFixed(2)
  console.log(
    `${name.padEnd(28)} ${ours.toFixed(1).padStart(8)} ms   floor ${floor.toFixed(1).padStart(9)} ms   × ${ratio}`,
  )
}
console.log(`${files.length} files, ${long} of them over ${LONG_MS} ms`)
