// Prints how many lines of TypeScript the product has, by folder, without tests, benchmarks and examples: bun run lines

import { dirname } from 'node:path'
import { $, Glob } from 'bun'

const isCounted = (path: string) => new Glob('**/*.{ts,tsx}').match(path) && !/^(tests|bench|examples)\//.test(path)
const root = (await $`git rev-parse --show-toplevel`.text()).trim()
const paths = (await $`git ls-files -z`.cwd(root).text()).split('\0').filter(isCounted)

const folders = new Map<string, { files: number; lines: number }>()
for (const path of paths) {
  const text = await Bun.file(`${root}/${path}`).text()
  const lines = text.split('\n').length - 1
  for (const folder of new Set([dirname(path).split('/').slice(0, 3).join('/'), 'all'])) {
    const sum = folders.get(folder) ?? { files: 0, lines: 0 }
    folders.set(folder, { files: sum.files + 1, lines: sum.lines + lines })
  }
}
for (const [folder, { files, lines }] of [...folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
  console.log(`${String(lines).padStart(7)} lines ${String(files).padStart(4)} files  ${folder}`)
}
