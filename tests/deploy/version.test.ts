// The number and the commit that a cadre says it is made of: in clones of every form, in what is packed, and in replies.

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { mustBeNew, raise } from '../../deploy/raise.ts'
import { npmFile, run } from '../../deploy/release.ts'
import { headCommit } from '../../lib/program/head-commit.mjs'
import manifest from '../../package.json'
import { spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { HEAD, VERSION_TEXT } from '../support/head.ts'
import { environmentAt, HUB } from '../support/program.ts'

const ROOT = resolve(import.meta.dir, '../..')
const AUTHOR = ['-c', 'user.name=a', '-c', 'user.email=a@example.com', '-c', 'init.defaultBranch=main']
const git = (at: string, ...words: string[]) =>
  run(['git', ...AUTHOR, ...words], at)
    .toString()
    .trim()

function clone(): string {
  const at = folder()
  git(at, 'init', '--quiet')
  git(at, 'commit', '--quiet', '--allow-empty', '--message', 'one')
  return at
}

test('HEAD is found in every form of a clone, as git finds it', () => {
  const at = clone()
  const found = (place = at) => {
    const commit = headCommit(place)
    expect(commit).toBe(git(place, 'rev-parse', 'HEAD'))
    return commit
  }
  const first = found()
  git(at, 'branch', 'topic/two')
  git(at, 'checkout', '--quiet', 'topic/two')
  git(at, 'commit', '--quiet', '--allow-empty', '--message', 'two')
  expect(found()).not.toBe(first)
  git(at, 'pack-refs', '--all')
  expect(existsSync(join(at, '.git/refs/heads/topic/two'))).toBe(false)
  const packed = found()
  git(at, 'commit', '--quiet', '--allow-empty', '--message', 'newer than the packed one')
  expect(found()).not.toBe(packed)
  git(at, 'tag', '--annotate', '--message', 'v', 'v1')
  git(at, 'checkout', '--quiet', '--detach', 'v1')
  found()
  git(at, 'symbolic-ref', 'refs/heads/other', 'refs/heads/main')
  git(at, 'symbolic-ref', 'HEAD', 'refs/heads/other')
  found()
  const worktree = join(folder(), 'tree')
  git(at, 'worktree', 'add', '--quiet', '-b', 'three', worktree)
  git(worktree, 'commit', '--quiet', '--allow-empty', '--message', 'three')
  found(worktree)
  git(at, 'pack-refs', '--all')
  expect(found(worktree)).not.toBe(found())
})

test('what is no clone, or has no commit, has none', () => {
  const [none, empty, below] = [folder(), folder(), clone()]
  git(empty, 'init', '--quiet')
  mkdirSync(join(below, 'node_modules/cadre'), { recursive: true })
  expect([none, empty, join(below, 'node_modules/cadre')].map(headCommit)).toEqual([null, null, null])
  writeFileSync(join(none, '.git'), 'gitdir: /nowhere')
  expect(headCommit(none)).toBeNull()
})

test('both programs say it, without a process of git', async () => {
  const home = folder()
  const daemon = [process.execPath, join(ROOT, 'daemon.ts')]
  for (const program of [daemon, HUB]) {
    for (const flag of ['--version', '-V']) {
      const env = { ...environmentAt(home), PATH: '/nowhere' }
      const { stdout, exitCode } = Bun.spawnSync([...program, flag], { cwd: home, env })
      expect([stdout.toString(), exitCode]).toEqual([`${VERSION_TEXT}\n`, 0])
    }
  }
})

test('a daemon says it in /health and /metrics', async () => {
  const { url, token, stop } = await spawnDaemon()
  const health = (await (await fetch(`${url}/health`)).json()) as { data: object }
  expect(health.data).toMatchObject({ version: manifest.version, commit: HEAD })
  const metrics = await (await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } })).text()
  expect(metrics).toContain(`cadre_build_info{version="${manifest.version}",commit="${HEAD ?? ''}"} 1\n`)
  await stop()
})

test.if(HEAD !== null)('the npm file of a release has the commit in it', () => {
  const stamp = run(['tar', '-xzO', 'package/lib/program/stamp.json'], ROOT, Buffer.from(npmFile(ROOT)))
  expect(JSON.parse(stamp.toString())).toEqual({ commit: HEAD })
  expect(JSON.parse(readFileSync(join(ROOT, 'lib/program/stamp.json'), 'utf8'))).toEqual({ commit: '$Format:%H$' })
})

test('a release gets a greater number, and no number twice', () => {
  const at = clone()
  const by = (repository: string, words: string[]) => run(['git', ...AUTHOR, ...words], repository)
  writeFileSync(join(at, 'package.json'), '{\n  "name": "cadre",\n  "version": "0.1.0"\n}\n')
  writeFileSync(join(at, 'CHANGELOG.md'), '# Changelog\n\n## Unreleased\n\n- a\n')
  expect(() => raise(at, 'minor', by)).toThrow('commit or undo')
  git(at, 'add', '.')
  git(at, 'commit', '--quiet', '--message', 'files')
  for (const to of ['0.1.0', '0.0.9', 'great', '1.0']) expect(() => raise(at, to, by)).toThrow('greater than 0.1.0')
  mustBeNew(at, '0.1.0', by)
  const raised = ['patch', 'minor', 'major', '1.2.0-rc.1'].map(to => {
    const next = raise(at, to, by)
    const changes = readFileSync(join(at, 'CHANGELOG.md'), 'utf8')
    expect(changes).toContain(`\n## ${next}\n`)
    writeFileSync(join(at, 'CHANGELOG.md'), changes.replace('# Changelog\n', '# Changelog\n\n## Unreleased\n'))
    git(at, 'commit', '--quiet', '--all', '--message', 'go on')
    return next
  })
  expect(raised).toEqual(['0.1.1', '0.2.0', '1.0.0', '1.2.0-rc.1'])
  expect(JSON.parse(readFileSync(join(at, 'package.json'), 'utf8')).version).toBe('1.2.0-rc.1')
  expect(readFileSync(join(at, 'CHANGELOG.md'), 'utf8')).toContain('## 0.1.1\n')
  expect(git(at, 'status', '--porcelain')).toBe('')
  git(at, 'checkout', '--quiet', 'v1.2.0-rc.1')
  mustBeNew(at, '1.2.0-rc.1', by)
  git(at, 'commit', '--quiet', '--allow-empty', '--message', 'more')
  expect(() => mustBeNew(at, '1.2.0-rc.1', by)).toThrow('is the release of another commit (v1.2.0-rc.1)')
})

test('a number that cannot be given changes no file, and makes no commit and no tag', () => {
  const at = clone()
  const by = (repository: string, words: string[]) => run(['git', ...AUTHOR, ...words], repository)
  const nobody = (repository: string, words: string[]) =>
    run(['git', '-c', 'user.name=', '-c', 'user.email=', ...words], repository)
  const committed = (files: Record<string, string>) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(at, name), text)
    git(at, 'add', '.')
    git(at, 'commit', '--quiet', '--message', 'files')
  }
  const manifest = '{\n  "name": "cadre",\n  "version": "0.1.0"\n}\n'
  const changes = '# Changelog\n\n## Unreleased\n'
  const state = () => [git(at, 'rev-parse', 'HEAD'), git(at, 'tag', '--list'), git(at, 'status', '--porcelain')]
  const refuses = (message: string, git = by) => {
    const before = state()
    expect(() => raise(at, 'minor', git)).toThrow(message)
    expect(state()).toEqual(before)
  }
  committed({ 'package.json': manifest })
  refuses('CHANGELOG.md')
  committed({ 'CHANGELOG.md': '# Changelog\n' })
  refuses('CHANGELOG.md has no line ^## Unreleased$')
  committed({ 'CHANGELOG.md': changes, 'package.json': manifest.replaceAll('  ', '\t') })
  refuses('package.json has no line')
  committed({ 'package.json': manifest })
  git(at, 'tag', 'v0.2.0')
  refuses('there is a tag v0.2.0 already')
  git(at, 'tag', '--delete', 'v0.2.0')
  refuses('ident', nobody)
  expect(raise(at, 'minor', by)).toBe('0.2.0')
})
