// What built-in agents must not do for themselves, because the core does it for all: reach the network, read the
// environment, print. And what they import: the two modules of cadre.

import { expect, test } from 'bun:test'
import { join } from 'node:path'

const FOLDER = join(import.meta.dir, '../../agents')
const FORBIDDEN = [/(?<![.\w])fetch\(/, /process\.env/, /console\./, /Bun\.(env|connect|fetch)\b/, /globalThis\.fetch/]
const ALLOWED_IMPORTS = /^(cadre|cadre\/vendors|node:[a-z/_]+|bun)$/

const files = [...new Bun.Glob('*.ts').scanSync(FOLDER)]

test.each(files)('%s', async name => {
  const source = await Bun.file(join(FOLDER, name)).text()
  const code = source.replace(/\/\*[\s\S]*?\*\/|\/\/.*/g, '')
  for (const pattern of FORBIDDEN) expect(code).not.toMatch(pattern)
  const { imports } = new Bun.Transpiler({ loader: 'ts' }).scan(source)
  for (const { path } of imports) expect(path).toMatch(ALLOWED_IMPORTS)
})

test('there are agents to look at', () => {
  expect(files).toEqual(expect.arrayContaining(['exec.ts', 'http.ts']))
})
