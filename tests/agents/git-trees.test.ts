// Pull requests from folders as they are found: detached, empty, dirty, with submodules, strange names and large files
// of LFS; and what the configuration in a repository may not do to the credential.

import { beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import gitAgent from '../../agents/git.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import { testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { truthful } from '../support/truthful.ts'
import { freshClone, git } from '../vendors/git-host.ts'
import { fakeGitHub, TOKEN } from '../vendors/github.ts'
import { cloneForEachTest, hub, workIn, workspace } from './git-clone.ts'

const create = truthful(gitAgent).actions!.create_pr!

cloneForEachTest()

function run(entry: object = {}, options: Parameters<typeof testContext>[0] = {}, base_url = hub.url) {
  const { context } = testContext({
    agent: 'git',
    settings: { provider: 'github', github: { token: TOKEN, base_url } },
    network: { allow: [], literalOrigins: [] },
    effect: 'once',
    workspace,
    ...options,
  })
  return create.run(entry, context as AgentContext<never>)
}

const OWN = 'cadre/phase-00000000'
const edit = (name = 'new.md', text = 'new\n', at = workspace) => writeFileSync(join(at, name), text)
const outside = (...args: string[]) => git(hub.origin, ...args)
const filesOf = (branch = OWN) => outside('ls-tree', '-r', '-z', '--name-only', branch).split('\0').filter(Boolean)

describe('a folder', () => {
  test('without a branch checked out', async () => {
    git(workspace, 'switch', '--quiet', '--detach')
    edit()
    expect((await run()).data).toMatchObject({ number: 1, branch: OWN })
    expect(git(workspace, 'branch', '--show-current')).toBe(OWN)
    expect(outside('rev-list', '--count', `main..${OWN}`)).toBe('1')
  })

  test('without a branch, with a commit that no branch has', async () => {
    git(workspace, 'switch', '--quiet', '--detach')
    edit()
    git(workspace, 'add', '.')
    git(workspace, 'commit', '--quiet', '-m', 'On no branch')
    expect((await run()).data).toMatchObject({ number: 1, branch: OWN })
    expect(outside('log', '-1', '--format=%s', OWN)).toBe('On no branch')
  })

  test('of a repository that has no commit, here or outside, or is none', async () => {
    const remote = `${hub.url}/acme/app.git`
    workIn(folder())
    const none = await failureOf(run())
    expect(none).toMatchObject({ code: 'invalid_request', sent: 'no' })
    git(workspace, 'init', '--quiet', '--template=', '--initial-branch=main')
    git(workspace, 'remote', 'add', 'origin', remote)
    edit()
    const unborn = await failureOf(run())
    expect(unborn).toMatchObject({ code: 'invalid_request', sent: 'no', retryable: false })
    expect(unborn.message).toContain('has no commit')
    git(workspace, 'add', '.')
    git(workspace, 'commit', '--quiet', '-m', 'First')
    outside('update-ref', '-d', 'refs/heads/main')
    const empty = await failureOf(run())
    expect(empty).toMatchObject({ code: 'invalid_request', sent: 'no', retryable: false })
    expect(empty.message).toContain('the remote has no branch main')
    expect(hub.seen).toEqual([])
  })

  test('with ignored files, and changes staged and not', async () => {
    edit('.gitignore', 'build/\n*.log\n')
    mkdirSync(join(workspace, 'build'))
    edit('build/out.js')
    edit('trace.log')
    edit('staged.md')
    git(workspace, 'add', 'staged.md')
    edit('staged.md', 'and more\n')
    edit('readme.md', 'changed\n')
    await run()
    expect(filesOf()).toEqual(['.gitignore', 'readme.md', 'staged.md'])
    expect(outside('show', `${OWN}:staged.md`)).toBe('and more')
    expect(readFileSync(join(workspace, 'trace.log'), 'utf8')).toBe('new\n')
    const again = await run()
    expect(again.data).toMatchObject({ number: 1 })
    expect(outside('rev-list', '--count', `main..${OWN}`)).toBe('1')
  })

  test('in which only ignored files are new has nothing to say', async () => {
    mkdirSync(join(workspace, '.git/info'))
    edit('.git/info/exclude', '*.log\n')
    edit('trace.log')
    expect((await run()).data).toMatchObject({ number: null })
    expect(hub.seen).toEqual([])
  })

  test('with names that look like options, or like nothing else', async () => {
    const names = [
      '--force',
      '-m',
      ':(top)*',
      '*',
      'a b  c',
      'tänzer 🎉.txt',
      '"quoted"',
      "o'clock",
      'back\\slash',
      'new\nline',
    ]
    for (const name of names) edit(name)
    mkdirSync(join(workspace, '-d'))
    edit('-d/--all')
    await run({ project_dir: '.' })
    expect(filesOf().sort()).toEqual([...names, '-d/--all', 'readme.md'].sort())
    edit('beside.md')
    edit('-d/two')
    await run({ project_dir: './-d' })
    expect(outside('show', '--format=', '--name-only', OWN)).toBe('-d/two')
  })

  test('whose status is told to be silent about new files', async () => {
    git(workspace, 'config', 'status.showUntrackedFiles', 'no')
    edit()
    await run()
    expect(filesOf()).toEqual(['new.md', 'readme.md'])
  })

  test('with another repository in it, which is no submodule', async () => {
    edit()
    const nested = join(workspace, 'deep/other')
    mkdirSync(nested, { recursive: true })
    git(nested, 'clone', '--quiet', hub.origin, '.')
    const error = await failureOf(run())
    expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(error.message).toContain('deep/other/ must not be a separate repository')
    expect(git(workspace, 'branch', '--show-current')).toBe('main')
    edit('.gitignore', 'other\n')
    await run()
    expect(filesOf()).toEqual(['.gitignore', 'new.md', 'readme.md'])
  })

  test('with pointers of LFS leaves them as they are', async () => {
    const pointer = `version https://git-lfs.github.com/spec/v1\noid sha256:${'ab'.repeat(32)}\nsize 12345\n`
    edit('.gitattributes', '*.bin filter=lfs diff=lfs merge=lfs -text\n')
    edit('large.bin', pointer)
    git(workspace, 'add', '.')
    git(workspace, 'commit', '--quiet', '-m', 'With a pointer')
    git(workspace, 'push', '--quiet', hub.origin, 'HEAD:main')
    edit()
    await run()
    expect(outside('show', '--format=', '--name-only', OWN)).toBe('new.md')
    expect(`${outside('show', `${OWN}:large.bin`)}\n`).toBe(pointer)
    expect(readFileSync(join(workspace, 'large.bin'), 'utf8')).toBe(pointer)
  })
})

describe('a submodule', () => {
  let module: string
  beforeEach(() => {
    module = freshClone(hub.origin)
    git(workspace, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', module, 'lib')
    git(workspace, 'commit', '--quiet', '-m', 'A submodule')
    git(workspace, 'push', '--quiet', hub.origin, 'HEAD:main')
  })

  test('that is dirty is no change of the folder', async () => {
    edit('readme.md', 'dirty\n', join(workspace, 'lib'))
    edit('untracked.md', 'x', join(workspace, 'lib'))
    expect((await run()).data).toMatchObject({ number: null })
    edit()
    await run()
    expect(outside('show', '--format=', '--name-only', OWN)).toBe('new.md')
    expect(readFileSync(join(workspace, 'lib/readme.md'), 'utf8')).toBe('dirty\n')
  })

  test('at another commit is a change; nothing is pushed to it', async () => {
    const lib = join(workspace, 'lib')
    const before = git(module, 'for-each-ref')
    edit('readme.md', 'second\n', lib)
    git(lib, 'commit', '--quiet', '--all', '-m', 'In the submodule')
    await run()
    expect(outside('ls-tree', OWN, 'lib').split(/\s/)[2]).toBe(git(lib, 'rev-parse', 'HEAD'))
    expect(git(module, 'for-each-ref')).toBe(before)
  })
})

test('a later run goes on with the branch that the first left, and finds its pull request', async () => {
  edit()
  await run()
  edit('later.md')
  const later = await run({}, { key: 'ffffffff-0000-8000-a000-000000000000' })
  expect(later.data).toMatchObject({ number: 1, branch: OWN })
  expect(later.text).toContain('updated')
  expect(hub.pullRequests).toHaveLength(1)
  expect(outside('rev-list', '--count', `main..${OWN}`)).toBe('2')
})

describe('the branch has moved outside', () => {
  beforeEach(async () => {
    edit()
    await run({ branch: 'shared' })
    const other = freshClone(hub.origin)
    git(other, 'fetch', '--quiet')
    git(other, 'switch', '--quiet', 'shared')
    git(other, 'commit', '--quiet', '--amend', '-m', 'Rewritten')
    git(other, 'push', '--quiet', '--force', 'origin', 'shared')
  })

  test.each([true, false])(
    'with push.default and a refspec that force: theirs stay (something new: %p)',
    async more => {
      git(workspace, 'config', 'push.default', 'matching')
      git(workspace, 'config', 'remote.origin.push', '+refs/heads/*:refs/heads/*')
      git(workspace, 'config', 'remote.origin.mirror', 'true')
      if (more) edit('more.md')
      expect(await failureOf(run({ branch: 'shared' }))).toMatchObject({ code: 'conflict', sent: 'no' })
      expect(outside('log', '-1', '--format=%s', 'shared')).toBe('Rewritten')
      expect(outside('for-each-ref', '--format=%(refname)').split('\n')).toEqual([
        'refs/heads/main',
        'refs/heads/shared',
      ])
    },
  )
})

describe('the configuration in a repository', () => {
  test('of a folder that is trusted sends nothing through a proxy that is reached without TLS', async () => {
    using other = fakeGitHub()
    git(workspace, 'config', 'http.proxy', other.url)
    git(workspace, 'config', `http.${hub.url}/.proxy`, other.url)
    git(workspace, 'config', 'remote.origin.proxy', other.url)
    edit()
    const github = { token: TOKEN, base_url: hub.url, trusted_folders: [workspace] }
    expect((await run({}, { settings: { provider: 'github', github } })).data).toMatchObject({ number: 1 })
    expect([other.pulls, other.seen]).toEqual([[], []])
  })

  test.each(['http.sslCAInfo', 'http.sslCAPath', 'http.curloptResolve', 'http.https://code.acme.test/.sslCAInfo'])(
    'says by %s whom to trust with the credential: refused',
    async key => {
      git(workspace, 'remote', 'set-url', 'origin', 'https://code.acme.test/acme/app.git')
      git(workspace, 'config', key, '/tmp/elsewhere')
      edit()
      const error = await failureOf(run({}, {}, 'https://code.acme.test/api/v3'))
      expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
      expect(error.message.toLowerCase()).toContain(key.toLowerCase())
      expect(error.hint).toContain('git config --global')
    },
  )
})
