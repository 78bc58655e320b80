// The file that `npm pack` makes, installed by npm, npx, bun and bunx from a registry on this machine.

import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json'
import { folder } from '../support/folder.ts'
import { VERSION_TEXT } from '../support/head.ts'
import { machine } from '../support/machine.ts'
import { fillIn, registry } from '../support/registry.ts'
import { journey } from './journey.ts'

const REPOSITORY = join(import.meta.dir, '../..')
const LONG_MS = 120_000

const on = machine()
const prefix = folder()
const packed = folder()
const env: Record<string, string> = {
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_update_notifier: 'false',
  npm_config_prefix: prefix,
}

async function must(command: string[], cwd = on.home): Promise<string> {
  const { code, stdout, stderr } = await on.run(command, { env, cwd })
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${stderr}${stdout}`)
  return stdout
}

await must(['npm', 'pack', '--pack-destination', packed], REPOSITORY)
const archive = join(packed, `cadre-${manifest.version}.tgz`)
const packages = registry(archive)
afterAll(() => packages[Symbol.dispose]())
Object.assign(env, { npm_config_registry: packages.url, BUN_CONFIG_REGISTRY: packages.url })
await must(['npm', 'install', '--global', archive])
const global = join(prefix, 'lib/node_modules/cadre')
fillIn(join(global, 'node_modules'))
symlinkSync(join(prefix, 'bin/cadre'), join(on.bin, 'cadre'))

journey(on, { cadre: 'cadre', called: 'cadre', examples: join(global, 'examples') })

test('upgrade says what to type', async () => {
  expect(await must(['cadre', 'upgrade'])).toContain(
    `by npm in ${global}. To upgrade:\n  rm -f cadre-*.tgz && npm pack     # in a clone of the version that you want\n  npm install --global ./cadre-*.tgz\n`,
  )
})

test('the package has what runs, and no tests', () => {
  const names = ['agents', 'daemon.ts', 'db', 'deploy', 'docs', 'examples', 'hub.ts', 'lib', 'tsconfig.json']
  expect(readdirSync(global)).toEqual(expect.arrayContaining(names))
  expect(['tests', 'bench', '.ci', '.git', 'dist'].filter(name => existsSync(join(global, name)))).toEqual([])
})

test(
  'npm in a project, where the packages of cadre lie beside it',
  async () => {
    const [project, home] = [folder(), folder()]
    writeFileSync(join(project, 'package.json'), '{}')
    await must(['npm', 'install', archive], project)
    fillIn(join(project, 'node_modules'))
    expect(existsSync(join(project, 'node_modules/cadre/node_modules'))).toBe(false)
    const cadre = join(project, 'node_modules/.bin/cadre')
    expect(await must([cadre, 'agents'], project)).toContain('\nwiki ')
    await must([cadre, '--home', home, 'agent', 'new', 'stock'], project)
    const config = JSON.parse(readFileSync(join(home, 'tsconfig.json'), 'utf8'))
    expect(config.compilerOptions.typeRoots).toEqual([join(project, 'node_modules')])
    expect(await must(['npx', 'cadre', '--help'], project)).toStartWith('Usage: npx cadre ')
    expect(await must([cadre, '--help'], project)).toStartWith('Usage: ./node_modules/cadre/deploy/cadre ')
  },
  LONG_MS,
)

test(
  'npx, bun and bunx',
  async () => {
    // Another machine, because npx and bunx prefer the cadre on PATH.
    const other = machine()
    const ofBun = folder()
    symlinkSync(process.execPath, join(other.bin, 'bun'))
    const run = (command: string[]) =>
      other.run(command, { env: { ...env, BUN_INSTALL: ofBun, npm_config_prefix: folder() }, cwd: other.home })

    // Both install cadre before they start it, which then finds empty packages.
    const called = async (command: string[], kept: string) => {
      await run([...command, 'cadre', '--help'])
      const packages = join(kept, readdirSync(kept).sort()[0]!, 'node_modules')
      fillIn(packages)
      return run([join(packages, '.bin/cadre'), '--help'])
    }
    const npx = await called(['npx', '--yes'], join(other.home, '.npm/_npx'))
    expect(npx).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Usage: npx cadre /) })
    const bunx = await called(['bun', 'x'], join(ofBun, `install/cache/.bunx-${process.getuid!()}`))
    expect(bunx).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Usage: bunx cadre /) })

    await run(['bun', 'add', '--global', archive])
    fillIn(join(ofBun, 'install/global/node_modules'))
    const upgrade = await run([join(ofBun, 'bin/cadre'), 'upgrade'])
    expect(upgrade).toMatchObject({ code: 0, stdout: expect.stringContaining('\n  bun add --global ./cadre-*.tgz\n') })
  },
  LONG_MS,
)

test('without the Bun that npm installs, that of PATH is used, and without any a person is told', async () => {
  rmSync(join(global, 'node_modules/@oven'), { recursive: true })
  const { code, stderr } = await on.run(['cadre', '--version'])
  expect([code, stderr]).toEqual([2, expect.stringMatching(/^cadre: no Bun was found: .*npm install --global bun/)])
  symlinkSync(process.execPath, join(on.bin, 'bun'))
  expect(await must(['cadre', '--version'])).toBe(`${VERSION_TEXT}\n`)
})

test('the folder of these tests is hostile: it runs where Bun is started without care', async () => {
  const program = join(global, 'deploy/cadre.ts')
  await on.run(['bun', '--config=/dev/null', '--no-env-file', program, 'agents'])
  expect(on.ran()).toEqual(['redirected'])
  rmSync(join(on.hostile, 'tsconfig.json'))
  const { code, stderr } = await on.run(['bun', program, 'agents'])
  expect(on.ran()).toEqual(['preload', 'redirected'])
  if (process.platform === 'linux') expect([code, stderr]).toEqual([2, expect.stringContaining('CADRE_HOME')])
})
