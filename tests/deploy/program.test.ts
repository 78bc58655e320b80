// The compiled program, and nothing else of ours.

import { expect, test } from 'bun:test'
import { copyFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { compile } from '../../deploy/build.ts'
import { signFolder, writeSums } from '../../deploy/release.ts'
import { systemOf } from '../../lib/daemon/cli/machine/install-release.ts'
import { npmFileName, programName } from '../../lib/program/release.ts'
import { newSigningKey } from '../../lib/program/signing-key.ts'
import manifest from '../../package.json'
import { files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { VERSION_TEXT } from '../support/head.ts'
import { machine } from '../support/machine.ts'
import { journey } from './journey.ts'

const on = machine()
const ours = newSigningKey()
await compile(join(on.bin, 'cadre'), undefined, ours.key)

journey(on, { cadre: 'cadre', called: 'cadre', examples: join(import.meta.dir, '../../examples') })

test('is the Bun of commands, and still cadre when they call it', async () => {
  const script = 'const n: number = 3; console.log(`count=${n}`)'
  const say = '{ "$CADRE_BUN" script.ts; echo "version=$(cadre --version)"; } > "$CADRE_OUTPUT"'
  const team = {
    ...{ name: '@local/a', version: '1.0.0' },
    outputs: ['count', 'version'].map(name => ({ name, type: 'string', value: `{{ phases.a.data.${name} }}` })),
    phases: [{ name: 'a', agent: 'exec', commands: [{ name: 'c', run: say }] }],
  }
  const path = files({ 'team.yml': JSON.stringify(team), 'script.ts': script })
  const { stdout } = await on.run(['cadre', 'run', path, '--json'], { cwd: path })
  expect(JSON.parse(stdout).outputs).toEqual({ count: '3', version: VERSION_TEXT })
})

test('upgrade says what to replace', async () => {
  const { code, stdout } = await on.run(['cadre', 'upgrade'])
  expect([code, stdout]).toEqual([
    0,
    expect.stringContaining(`cadre ${manifest.version} is installed as the program ${on.bin}`),
  ])
})

test('a release of its key takes its place, and nothing else does', async () => {
  const { version } = manifest
  const program = join(on.bin, 'cadre')
  const before = statSync(program).ino
  const out = folder()
  copyFileSync(program, join(out, programName(version, systemOf())))
  writeFileSync(join(out, npmFileName(version)), '')
  await writeSums(out)

  const upgrade = () => on.run(['cadre', 'upgrade', out], { env: { CADRE_RELEASE_KEY: theirs.key } })
  const theirs = newSigningKey()
  for (const key of [null, theirs]) {
    if (key) await signFolder(out, version, key, key.key)
    const { code, stderr } = await upgrade()
    expect([code, stderr]).toEqual([2, expect.stringContaining('nothing was changed')])
    expect(statSync(program).ino).toBe(before)
  }
  await signFolder(out, version, ours, ours.key)
  expect(await upgrade()).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringContaining(`is cadre ${version} now`),
  })
  expect(statSync(program).ino).not.toBe(before)
  expect((await on.run(['cadre', '--version'])).stdout).toBe(`${VERSION_TEXT}\n`)
}, 120_000)
