// A folder of agents with a package.json of its own: what its lock file lists and its node_modules has can be imported, and
// nothing is downloaded.

import { expect, test } from 'bun:test'
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { discover } from '../../lib/agent/catalogue.ts'
import { folder } from '../support/folder.ts'

const word = (from: string, extra = '') => `import { agent, Type } from 'cadre'
import { word } from '${from}'
${extra}
export default agent({
  type: 'connector', version: '1.0.0', description: word,
  source: { effect: 'read', entry: Type.Object({ name: Type.String() }), run: async () => ({ text: word }) },
})
`

function write(root: string, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true })
    writeFileSync(join(root, name), text)
  }
}

/** A home whose agents have installed the package `words`, which needs `letters`. */
async function homeWithPackages(): Promise<string> {
  const home = folder()
  write(home, {
    'packages/letters/package.json': '{"name": "letters", "version": "2.0.0", "main": "index.js"}',
    'packages/letters/index.js': "export const letter = 'w'\n",
    'packages/words/package.json': `{"name": "words", "version": "1.0.0", "main": "index.js", "dependencies": {"letters": "file:${home}/packages/letters"}}`,
    'packages/words/index.js': "import { letter } from 'letters'\nexport const word = `${letter}ord`\n",
    'agents/package.json': `{"dependencies": {"words": "file:${home}/packages/words", "letters": "file:${home}/packages/letters"}}`,
    'agents/said.ts': word('words'),
  })
  const install = Bun.spawn([process.execPath, 'install'], {
    cwd: join(home, 'agents'),
    env: { PATH: process.env.PATH!, HOME: home },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = await install.stderr.text()
  expect(await install.exited, said).toBe(0)
  return home
}

const reasonOf = async (home: string) => (await discover({ home })).skipped.map(({ reason }) => reason).join()

test('is resolved from there, and read again when it is upgraded', async () => {
  const home = await homeWithPackages()
  const catalogue = await discover({ home })
  expect(catalogue.skipped).toEqual([])
  expect(catalogue.get('said')!.description).toBe('word')
  const lock = join(home, 'agents/bun.lock')
  write(join(home, 'agents/node_modules/words'), { 'index.js': "export const word = 'upgraded'\n" })
  writeFileSync(lock, `${readFileSync(lock, 'utf8')}\n`)
  expect((await catalogue.current().load()).get('said')!.description).toBe('upgraded')
  expect(catalogue.get('said')!.description).toBe('word')
}, 60_000)

test('what is not installed or not listed is refused with what to type', async () => {
  const home = await homeWithPackages()
  const agents = join(home, 'agents')
  rmSync(join(agents, 'node_modules/letters'), { recursive: true, force: true })
  rmSync(join(agents, 'node_modules/words/node_modules'), { recursive: true, force: true })
  expect(await reasonOf(home)).toContain(
    `said.ts:2: imports 'words': letters is not installed as ${agents}/bun.lock says: run \`bun install\` in ${agents}`,
  )
  write(agents, { 'said.ts': word('left-pad-of-nobody') })
  expect(await reasonOf(home)).toContain(`run \`bun add left-pad-of-nobody\` in ${agents}`)
  write(agents, {
    'node_modules/left-pad-of-nobody/package.json': '{"name": "left-pad-of-nobody", "version": "1.0.0"}',
  })
  expect(await reasonOf(home)).toContain('which is not installed with cadre')
  rmSync(join(agents, 'bun.lock'))
  expect(await reasonOf(home)).toContain(`${agents} has a package.json and no bun.lock: run \`bun install\` there`)
}, 60_000)

test('another version than that of the lock file is refused', async () => {
  const home = folder()
  const lock = (version: string) =>
    `{ "lockfileVersion": 1, "packages": { "words": ["words@${version}", "", {}, "sha512-x"], } }`
  write(join(home, 'agents'), {
    'package.json': '{"dependencies": {"words": "1.0.0"}}',
    'bun.lock': lock('1.0.0'),
    'node_modules/words/package.json': '{"name": "words", "version": "1.0.1", "main": "index.js"}',
    'node_modules/words/index.js': "export const word = 'other'\n",
    'said.ts': word('words'),
  })
  expect(await reasonOf(home)).toContain('words@1.0.1 is not installed as ')
  write(join(home, 'agents'), { 'bun.lock': lock('1.0.1') })
  expect(await reasonOf(home)).toBe('')
})

test('packages of cadre stay those of cadre where the folder does not list them', async () => {
  const home = await homeWithPackages()
  write(join(home, 'agents'), { 'said.ts': word('words', "import { parse } from 'yaml'\nvoid parse") })
  expect(await reasonOf(home)).toBe('')
}, 60_000)
