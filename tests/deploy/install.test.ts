// Each way to install cadre that docs/install.md describes, on a machine of which a reader can write nothing but their own
// folder: its commands install cadre, the first team of the README runs, and its last section leaves nothing.

import { describe, expect, test } from 'bun:test'
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fencesOf, INSTALLS } from '../support/fences.ts'
import { folder } from '../support/folder.ts'
import { VERSION_TEXT } from '../support/head.ts'
import { machine } from '../support/machine.ts'
import { fillIn, registry } from '../support/registry.ts'
import { hasBubblewrap } from '../support/sandbox.ts'

const REPOSITORY = join(import.meta.dir, '../..')
const PACKAGES = join(REPOSITORY, 'node_modules')
const WAYS = ['clone', 'npm', 'program'] as const
type Way = (typeof WAYS)[number]

const commands = fencesOf('docs/install.md').filter(({ words }) => words[1] === 'install')
const [shown] = fencesOf('README.md')
const firstTeam = fencesOf('README.md').filter(({ heading }) => heading === 'A first team')

/** What is not cadre's: the reader's clone and team, and the caches of npm and Bun, which the document names. */
const KEPT = ['.bun', '.npm', 'cadre', 'hello']

test('the document has commands for each way, and says how to remove what they install', () => {
  const of = (way: Way) => commands.filter(({ words }) => words.includes(way)).map(({ heading }) => heading)
  expect(of('clone')).toEqual(['A clone', 'Upgrade', 'Uninstall', 'Uninstall'])
  expect(of('npm')).toEqual(['The npm file', 'Uninstall', 'Uninstall'])
  const [clone] = commands
  expect(shown!.text).toStartWith(`${clone!.text.trimEnd()} && cadre run `)
  expect(of('program')).toEqual(['A compiled program', 'Uninstall', 'Uninstall'])
})

describe.skipIf(!hasBubblewrap)('installed, used and removed', () => {
  test.each(WAYS)(
    '%s',
    async way => {
      using packages = registry('')
      const { home, clone, run } = reader(way, packages.url)
      const before = filesOf(home)
      const parts = Map.groupBy(
        commands.filter(({ words }) => words.includes(way)),
        ({ heading }) => heading === 'Uninstall',
      )
      for (const { text } of parts.get(false)!) await run(text, clone)
      if (way === 'clone') await run(shown!.text.split('\n')[0]!, clone)
      if (way === 'npm') fillIn(join(home, '.local/lib/node_modules/cadre/node_modules'))

      expect(await run('cadre --version')).toBe(`${VERSION_TEXT}\n`)
      for (const { language, words, text } of firstTeam) {
        if (language === 'yaml') put(join(home, words[0]!), text)
        else expect(await run(text)).toEndWith('hello\n')
      }

      for (const { text } of parts.get(true)!) await run(text)
      const left = filesOf(home).filter(path => !before.includes(path) && !KEPT.includes(path.split('/')[0]!))
      expect(left).toEqual([])
    },
    120_000,
  )
})

const filesOf = (path: string): string[] =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter(entry => !entry.isDirectory())
    .map(entry => relative(path, join(entry.parentPath, entry.name)))

function put(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

/** A reader with a clone, on a machine with npm, and with Bun if this way needs it. */
function reader(way: Way, packages: string) {
  const { home, bin, run: start } = machine()
  for (const tool of ['bash', 'git', 'install', 'touch', ...(way === 'npm' ? [] : ['bun'])]) {
    const path = tool === 'bun' ? process.execPath : Bun.which(tool)
    if (path) symlinkSync(path, join(bin, tool))
  }
  const origin = folder()
  const clone = join(home, 'cadre')
  for (const args of [
    ['clone', '--quiet', '--bare', '--depth', '1', `file://${REPOSITORY}`, origin],
    ['clone', '--quiet', '--depth', '1', `file://${origin}`, clone],
  ]) {
    expect(Bun.spawnSync(['git', ...args], { stderr: 'inherit' }).exitCode).toBe(0)
  }
  const installed = way === 'npm' ? [] : installedPackages(clone)
  const box = [
    Bun.which('bwrap')!,
    ...['--die-with-parent', '--unshare-pid', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    ...['--tmpfs', homedir(), '--tmpfs', REPOSITORY],
    ...[process.execPath, PACKAGES, bin, origin].flatMap(path => ['--ro-bind', path, path]),
    ...['--bind', home, home, ...installed],
  ]
  const env = {
    PATH: `${join(home, '.local/bin')}:${bin}`,
    npm_config_prefix: join(home, '.local'),
    npm_config_registry: packages,
    npm_config_update_notifier: 'false',
  }
  return {
    home,
    clone,
    async run(commands: string, cwd = home): Promise<string> {
      const script = commands.replace(INSTALLS, '')
      const command = [...box, '--chdir', cwd, join(bin, 'bash'), '-euc', script]
      const { code, stdout, stderr } = await start(command, { env })
      expect([script, code, code === 0 ? '' : stdout + stderr]).toEqual([script, 0, ''])
      return stdout
    },
  }
}

/**
 * Puts the packages of this repository into the clone, as `bun install` would. It links their programs whether they are
 * there or not, so these links can be written.
 */
function installedPackages(clone: string): string[] {
  const links = new Bun.Glob('**/.bin').scanSync({ cwd: PACKAGES, dot: true, onlyFiles: false })
  return [
    ...['--ro-bind', PACKAGES, join(clone, 'node_modules')],
    ...Array.from(links).flatMap(path => {
      const copy = folder()
      cpSync(join(PACKAGES, path), copy, { recursive: true, verbatimSymlinks: true })
      return ['--bind', copy, join(clone, 'node_modules', path)]
    }),
  ]
}
