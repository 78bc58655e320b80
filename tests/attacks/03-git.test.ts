// A folder that somebody else made cannot have create_pr publish another folder of this machine, run a program, or reach
// another place: with real git, and a real server.

import { beforeEach, describe, expect, test } from 'bun:test'
import {
  appendFileSync,
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import gitAgent from '../../agents/git.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import { AgentError } from '../../lib/agent/core/agent-error.ts'
import { problems } from '../../lib/schema/schema.ts'
import { cloneForEachTest, hub, workspace } from '../agents/git-clone.ts'
import { testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { hostileTexts } from '../support/hostile.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { freshClone, git } from '../vendors/git-host.ts'
import { TOKEN } from '../vendors/github.ts'

cloneForEachTest()

const SECRET = 'the private part'
/** A folder of the person that nobody may publish, and a repository with such a commit. */
let victim: string
let secret: string
let ran: string
let trap: string
beforeEach(() => {
  victim = folder()
  secret = freshClone(hub.origin)
  for (const at of [victim, secret]) writeFileSync(join(at, 'id_rsa'), SECRET)
  git(secret, 'add', '.')
  git(secret, 'commit', '--quiet', '-m', SECRET)
  const at = folder()
  ran = join(at, 'ran')
  trap = join(at, 'trap')
  writeFileSync(trap, `#!/bin/sh\ntouch ${ran}\ncat\n`)
  chmodSync(trap, 0o755)
})

const config = (...args: string[]) => git(workspace, 'config', ...args)
const edit = (name = 'new.md', text = 'new\n', at = workspace) => writeFileSync(join(at, name), text)
const outside = (...args: string[]) => git(hub.origin, ...args)
const dotGit = (...names: string[]) => join(workspace, '.git', ...names)
const published = () => outside('log', '--all', '--patch', '--format=%H %s')

function run(entry: object = {}, trusted_folders: string[] = [], project = workspace) {
  expect(problems(gitAgent.actions!.create_pr!.entry, entry)).toEqual([])
  const { context } = testContext({
    ...{ agent: 'code', action: 'create_pr', effect: 'once', workspace: project },
    settings: { provider: 'github', github: { token: TOKEN, base_url: hub.url, trusted_folders } },
    network: { allow: [], literalOrigins: [] },
  })
  return gitAgent.actions!.create_pr!.run(entry, context as AgentContext<never>)
}

/** The run is refused before git reaches the host, with the line for settings.yml. */
async function expectRefused(says: string | RegExp, trust = workspace, entry: object = {}): Promise<void> {
  const error = await failureOf(run(entry))
  expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
  expect(error.message).toMatch(says)
  expect(error.hint).toContain(`settings.yml: agents.code.github.trusted_folders: [${JSON.stringify(trust)}]`)
  expect([hub.pulls, hub.seen, existsSync(ran)]).toEqual([[], [], false])
}

describe('another folder is not published', () => {
  test('by core.worktree; not even if the folder is trusted', async () => {
    config('core.worktree', victim)
    edit()
    await expectRefused('configuration has core.worktree')
    expect((await run({}, [workspace])).data).toMatchObject({ number: 1 })
    expect(outside('ls-tree', '-r', '--name-only', 'cadre/phase-00000000').split('\n')).toEqual(['new.md', 'readme.md'])
    expect(published()).not.toContain(SECRET)
  })

  test('by a `.git` that is a link, or a file that names another repository', async () => {
    edit()
    rmSync(dotGit(), { recursive: true })
    symlinkSync(join(secret, '.git'), dotGit())
    await expectRefused('neither a folder nor a file')
    for (const name of [join(secret, '.git'), '../elsewhere', '']) {
      rmSync(dotGit(), { force: true })
      writeFileSync(dotGit(), `gitdir: ${name}\n`)
      expect(await failureOf(run())).toMatchObject({ sent: 'no' })
    }
    rmSync(dotGit())
    writeFileSync(dotGit(), `gitdir: ${join(secret, '.git')}\n`)
    await expectRefused('does not point back')
    expect(published()).not.toContain(SECRET)
  })

  test('by the work tree or the submodule of another repository', async () => {
    const tree = join(folder(), 'tree')
    git(secret, 'worktree', 'add', '--quiet', tree)
    git(secret, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', hub.origin, 'lib')
    rmSync(dotGit(), { recursive: true })
    edit()
    for (const [name, says] of [
      ['worktrees/tree', 'does not point back'],
      ['modules/lib', 'configuration has core.worktree'],
    ] as const) {
      writeFileSync(dotGit(), `gitdir: ${join(secret, '.git', name)}\n`)
      await expectRefused(says)
    }
  })

  test('by a repository that says it shares one', async () => {
    edit()
    writeFileSync(dotGit('commondir'), join(secret, '.git'))
    await expectRefused('shares the repository of another folder')
  })

  const LINKS = [
    ...['HEAD', 'config', 'index', 'packed-refs', 'shallow', 'refs', 'refs/heads', 'refs/heads/main', 'refs/tags/x'],
    ...['objects', 'objects/pack', 'objects/ab', 'objects/info', 'logs', 'logs/HEAD', 'info', 'info/exclude'],
  ]
  test.each(LINKS)('by a link at .git/%s', async name => {
    edit()
    const at = dotGit(name)
    git(secret, 'pack-refs', '--all')
    mkdirSync(dirname(at), { recursive: true })
    rmSync(at, { recursive: true, force: true })
    const target = join(secret, '.git', name)
    symlinkSync(existsSync(target) ? target : join(secret, '.git/HEAD'), at)
    await expectRefused('must be a plain file or folder')
  })

  test.each(['alternates', 'http-alternates'])('by objects of %s', async name => {
    edit()
    mkdirSync(dotGit('objects/info'), { recursive: true })
    writeFileSync(dotGit('objects/info', name), `${join(secret, '.git/objects')}\n`)
    writeFileSync(dotGit('HEAD'), git(secret, 'rev-parse', 'HEAD'))
    await expectRefused('adds the objects of other folders')
  })

  test('by a link where the last commit has a folder', async () => {
    mkdirSync(join(workspace, 'docs'))
    edit('docs/id_rsa', 'public\n')
    git(workspace, 'add', '.')
    git(workspace, 'commit', '--quiet', '-m', 'Docs')
    git(workspace, 'push', '--quiet', hub.origin, 'HEAD:main')
    rmSync(join(workspace, 'docs'), { recursive: true })
    symlinkSync(victim, join(workspace, 'docs'))
    const { data } = await run()
    const { branch } = data as { branch: string }
    expect(
      outside('ls-tree', '-r', branch)
        .split('\n')
        .map(line => line.split(/\s/).filter((_, n) => n !== 2)),
    ).toEqual([
      ['120000', 'blob', 'docs'],
      ['100644', 'blob', 'readme.md'],
    ])
    expect(published()).not.toContain(SECRET)
    expect(git(workspace, 'status', '--porcelain')).toBe('')
  })

  test('by a path of the index that leads out', async () => {
    const blob = git(workspace, 'hash-object', '-w', 'readme.md')
    const name = `../${victim.split('/').at(-1)}/id_rsa`
    edit()
    git(workspace, 'update-index', '--add', '--cacheinfo', `100644,${blob},${'x'.repeat(name.length)}`)
    const index = readFileSync(dotGit('index')).toString('latin1').replace('x'.repeat(name.length), name)
    const body = Buffer.from(index.slice(0, -20), 'latin1')
    const sum = new Bun.CryptoHasher('sha1').update(body).digest()
    writeFileSync(dotGit('index'), Buffer.concat([body, sum]))
    await run().catch(() => {})
    expect(published()).not.toContain(SECRET)
    expect(outside('ls-tree', '-r', '--name-only', '--full-tree', 'main')).toBe('readme.md')
  })

  test('by a submodule whose `.git` names another repository', async () => {
    git(workspace, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', hub.origin, 'lib')
    git(workspace, 'commit', '--quiet', '-m', 'A submodule')
    writeFileSync(join(workspace, 'lib/.git'), `gitdir: ${join(secret, '.git')}\n`)
    await expectRefused('does not point back', join(workspace, 'lib'))
  })

  test.skipIf(process.getuid?.() !== 0)('by a repository of another user', async () => {
    edit()
    chownSync(dotGit(), 12_345, 12_345)
    await expectRefused('belongs to another user')
    const mine = join(process.env.HOME!, '.gitconfig')
    git(workspace, 'config', '--file', mine, 'safe.directory', workspace)
    expect((await run()).data).toMatchObject({ number: 1 })
    rmSync(mine)
  })
})

describe('a repository that points back is taken', () => {
  const branchOf = async (project: string, entry: object = {}) =>
    ((await run(entry, [], project)).data as { branch: string }).branch

  test('a work tree, with its own branch, index and log', async () => {
    const tree = join(folder(), 'tree')
    git(workspace, 'worktree', 'add', '--quiet', '-b', 'side', tree)
    edit('new.md', 'new\n', tree)
    expect(await branchOf(tree)).toBe('side')
    expect(outside('show', 'side:new.md')).toBe('new')
    expect([git(tree, 'status', '--porcelain'), git(tree, 'rev-parse', 'HEAD')]).toEqual([
      '',
      outside('rev-parse', 'side'),
    ])
    expect(git(tree, 'reflog', '-1', '--format=%gs')).toStartWith('commit: ')
    // A branch of another work tree is not checked out twice.
    edit('new.md', 'new\n')
    expect((await failureOf(run({ branch: 'side' }))).message).toContain('already')
    edit('two.md', 'new\n', tree)
    git(tree, 'switch', '--quiet', '-c', 'third')
    expect((await failureOf(run({ branch: 'main', base_branch: 'side' }, [], tree))).message).toContain('already')
  })

  test('a submodule', async () => {
    git(workspace, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', hub.origin, 'lib')
    const lib = join(workspace, 'lib')
    git(lib, 'remote', 'set-url', 'origin', `${hub.url}/acme/app.git`)
    edit('new.md', 'new\n', lib)
    expect(await branchOf(lib, { branch: 'of-lib' })).toBe('of-lib')
    expect(outside('show', '--format=', '--name-only', 'of-lib')).toBe('new.md')
  })

  test('a folder below the root of a work tree', async () => {
    mkdirSync(join(workspace, 'a/b'), { recursive: true })
    edit('a/b/new.md')
    edit('beside.md')
    await run({ project_dir: 'a/b' })
    expect(outside('show', '--format=', '--name-only', 'cadre/phase-00000000')).toBe('a/b/new.md')
  })
})

describe('what a repository says in its own configuration', () => {
  const KEYS = [
    ...['core.fsmonitor', 'core.sshCommand', 'core.hooksPath', 'core.editor', 'core.pager', 'core.askPass'],
    ...['core.attributesFile', 'core.excludesFile', 'core.alternateRefsCommand', 'core.gitProxy', 'core.autocrlf'],
    ...['filter.x.clean', 'filter.x.process', 'diff.external', 'diff.x.textconv', 'merge.x.driver', 'gpg.program'],
    ...['gpg.ssh.program', 'credential.helper', 'http.proxy', 'http.extraHeader', 'http.sslVerify', 'include.path'],
    ...[
      'includeIf.onbranch:**.path',
      'extensions.worktreeConfig',
      'extensions.partialClone',
      'url.http://x/.insteadOf',
    ],
    ...[
      'remote.origin.uploadpack',
      'remote.origin.receivepack',
      'remote.origin.proxy',
      'remote.origin.vcs',
      'alias.add',
    ],
    ...['remote.http://x/a/b.url', 'submodule.lib.update', 'protocol.ext.allow', 'lfs.url', 'hook.x.command', 'a.b'],
    ...[
      'uploadpack.packObjectsHook',
      'trace2.eventTarget',
      'safe.directory',
      'sequence.editor',
      'interactive.diffFilter',
    ],
  ]
  test.each(KEYS)('%s needs trust', async key => {
    config(key, trap)
    edit()
    await expectRefused(
      new RegExp(`^\\[code\\.create_pr\\] the repository's own configuration has ${RegExp.escape(key)}`, 'i'),
    )
  })

  test('is shown as text, and in no command to paste, where it is no plain key', async () => {
    appendFileSync(dotGit('config'), '[url "$(touch x) \x1b[2J"]\n\tinsteadOf = y\n')
    const error = await failureOf(run())
    expect(error.message).toContain('"url.$(touch x) \\u001b[2J.insteadof"')
    expect(error.hint).not.toContain('unset')
    expect(error.hint).toContain('trusted_folders')
  })

  test('is judged in the copy that git reads: a change in the meantime does nothing', async () => {
    edit('.gitattributes', '* filter=x\n')
    const lines = `[core]\n\tworktree = ${victim}\n\tfsmonitor = ${trap}\n[filter "x"]\n\tclean = ${trap}\n`
    const more = `[url "${hub.url}/other/"]\n\tinsteadOf = ${hub.url}/acme/\n[remote "${hub.url}/acme/app.git"]\n\turl = x\n`
    await during(
      `case "$*" in *--no-includes*) ;; *) printf '%s' '${lines}${more}' > ${dotGit('config')};; esac`,
      async () => {
        expect((await run()).data).toMatchObject({ number: 1 })
      },
    )
    expect(readFileSync(dotGit('config'), 'utf8')).toContain('fsmonitor')
    expect(existsSync(ran)).toBe(false)
    expect(published()).not.toContain(SECRET)
  })

  test('objects that come in the meantime are not pushed', async () => {
    edit()
    const file = dotGit('objects/info/alternates')
    mkdirSync(dirname(file), { recursive: true })
    const hidden = `case "$1" in commit-tree) echo ${join(secret, '.git/objects')} > ${file};; esac`
    await during(hidden, async () => {
      const error = await failureOf(run())
      expect(error.message).toContain('adds the objects of other folders')
    })
    expect(hub.pulls.map(({ path }) => path).join()).not.toContain('receive-pack')
  })
})

describe('a remote', () => {
  beforeEach(() => {
    for (const hook of ['pre-receive', 'update', 'post-receive', 'post-update', 'reference-transaction']) {
      mkdirSync(join(hub.origin, 'hooks'), { recursive: true })
      cpSync(trap, join(hub.origin, 'hooks', hook))
    }
    edit()
  })
  const setRemote = (address: string) => config('remote.origin.url', address)

  test('that is a folder runs no hook: it needs trust', async () => {
    const link = join(folder(), 'acme')
    symlinkSync(dirname(hub.origin), link)
    for (const address of [hub.origin, `file://${hub.origin}`, join(link, 'app.git')]) {
      setRemote(address)
      await expectRefused('whose hooks git would run', hub.origin)
    }
    renameSync(hub.origin, `${hub.origin}.real`)
    cpSync(`${hub.origin}.real`, join(workspace, 'acme/app.git'), { recursive: true })
    setRemote('acme/app.git')
    await expectRefused('whose hooks git would run', join(workspace, 'acme/app.git'))
    renameSync(`${hub.origin}.real`, hub.origin)
  })

  test.each(['the folder', 'the project'])('that is a folder is pushed to if %s is trusted', async which => {
    setRemote(hub.origin)
    expect((await run({}, [which === 'the folder' ? hub.origin : workspace])).data).toMatchObject({ number: 1 })
    expect(outside('branch', '--list', 'cadre/*')).toContain('cadre/phase-00000000')
    expect(hub.pulls).toEqual([])
  })

  test('of a fork that is a folder needs trust as well', async () => {
    config('remote.fork.url', hub.origin)
    const error = await failureOf(run({ push_to: 'fork' }))
    expect(error.hint).toContain('trusted_folders')
    expect(existsSync(ran)).toBe(false)
  })

  const HELPERS = [
    'ext::sh -c TRAP% acme/app',
    'fd::0/acme/app',
    'x::http://a/b/c',
    '::a/b',
    'git://x/acme/app',
    'ftp://x/a/b',
  ]
  test.each([...HELPERS, 'FILE:///acme/app', 'ssh+x://h/a/b'])('at %s is refused', async address => {
    setRemote(address.replace('TRAP', trap))
    for (const trusted of [[], [workspace]]) {
      expect(await failureOf(run({}, trusted))).toMatchObject({ code: 'invalid_request', sent: 'no' })
    }
    expect([hub.pulls, existsSync(ran)]).toEqual([[], false])
  })

  test('with an option of ssh for a host or a path runs nothing', async () => {
    for (const address of [
      ...[`ssh://-oProxyCommand=${trap}/acme/app`, `-oProxyCommand=${trap}:acme/app`, `--upload-pack=${trap}`],
      ...[`ssh://-oProxyCommand=${trap}@h.invalid/acme/app`, `h.invalid:-acme/app`, `ssh://h.invalid/-a/b`],
    ]) {
      setRemote(address)
      await failureOf(run())
      expect(existsSync(ran)).toBe(false)
    }
  })
})

describe('whatever the text', () => {
  const random = randomFrom(seedOf('03-git'))

  test('files of any name are committed under that name, and nothing runs', async () => {
    const names = new Set(hostileTexts(random, 150).map(inOneName))
    mkdirSync(join(workspace, 'sub'))
    for (const name of names) edit(join('sub', name), 'x\n')
    // A name need not be UTF-8.
    writeFileSync(Buffer.concat([Buffer.from(`${workspace}/sub/`), Buffer.from([0xff, 0xfe, 0x61])]), 'x\n')
    await run()
    const listed = Bun.spawnSync(['git', 'ls-tree', '-r', '-z', '--name-only', 'cadre/phase-00000000', 'sub/'], {
      cwd: hub.origin,
    }).stdout
    const got = listed.toString('latin1').split('\0').filter(Boolean)
    const expected = [...names].map(name => Buffer.from(`sub/${name}`).toString('latin1'))
    expect(got.sort()).toEqual([...expected, 'sub/\xff\xfea'].sort())
    rmSync(join(workspace, 'sub'), { recursive: true })
    await run()
    expect(outside('ls-tree', '-r', '--name-only', 'cadre/phase-00000000')).toBe('readme.md')
    expect(git(workspace, 'status', '--porcelain')).toBe('')
  }, 60_000)

  test('fields are one argument each, and never an option, a ref that is none, or another remote', async () => {
    const texts = hostileTexts(random, 12)
    const some = () => texts[random.below(texts.length)]!
    for (let n = 0; n < 24; n++) {
      const field = (['branch', 'base_branch', 'push_to', 'title', 'commit_message'] as const)[n % 5]!
      const value = n < 15 ? (hostileTexts(random, 0)[random.below(120)] ?? some()) : some()
      if (value === '') continue
      edit(`n${n}.md`)
      const result = await run({ branch: 'fix', [field]: value }).catch(error => error)
      if (result instanceof Error) expect(result).toBeInstanceOf(AgentError)
      if (value.includes('\0')) expect(result).toBeInstanceOf(AgentError)
      expect([existsSync(join(workspace, 'victim')), existsSync(join(hub.origin, 'victim'))]).toEqual([false, false])
    }
    edit('half.md')
    const half = await run({ branch: 'half-\ud800' }).catch(error => error)
    expect(half).toBeInstanceOf(AgentError)
    for (const ref of outside('for-each-ref', '--format=%(refname)').split('\n')) expect(ref).toStartWith('refs/heads/')
  }, 120_000)

  test('an address or a key in the configuration is an error or nothing', async () => {
    const before = readFileSync(dotGit('config'), 'utf8')
    const quoted = (text: string) => `"${text.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`
    const texts = hostileTexts(random, 0).filter(text => !text.includes('\0'))
    edit()
    for (let n = 0; n < 24; n++) {
      const text = random.of(texts)
      const line = n % 2 ? `[remote "origin"]\n\turl = ${quoted(text)}\n` : `[x ${quoted(text)}]\n\ty = 1\n`
      writeFileSync(dotGit('config'), n % 2 ? before.replace(/\turl = .*\n/, '') + line : before + line)
      expect(await run().catch(error => error)).toBeInstanceOf(AgentError)
      expect([existsSync(join(workspace, 'victim')), hub.pullRequests]).toEqual([false, []])
    }
  }, 120_000)
})

describe('what git commit refused is refused', () => {
  test('a merge that is not finished, and files with conflicts', async () => {
    git(workspace, 'switch', '--quiet', '-c', 'side')
    edit('readme.md', 'theirs\n')
    git(workspace, 'commit', '--quiet', '--all', '-m', 'Theirs')
    git(workspace, 'switch', '--quiet', 'main')
    edit('readme.md', 'ours\n')
    git(workspace, 'commit', '--quiet', '--all', '-m', 'Ours')
    expect(() => git(workspace, 'merge', 'side')).toThrow()
    expect((await failureOf(run())).message).toContain('readme.md has conflicts')
    edit('readme.md', 'both\n')
    git(workspace, 'add', '.')
    expect((await failureOf(run())).message).toContain('a merge has not been finished')
  })
})

/** Runs a line of shell before each command of git that the agent gives. */
async function during(line: string, work: () => Promise<void>): Promise<void> {
  const at = folder()
  const real = Bun.which('git')!
  writeFileSync(join(at, 'git'), `#!/bin/sh\n${line}\nexec ${real} "$@"\n`)
  chmodSync(join(at, 'git'), 0o755)
  const path = process.env.PATH
  process.env.PATH = `${at}:${path}`
  try {
    await work()
  } finally {
    process.env.PATH = path
  }
}

/** The text as a name that a file system and git take. */
function inOneName(text: string): string {
  const name = text.toWellFormed().replaceAll(/[/\0]/g, '|').slice(0, 60)
  return /^\.{0,2}$/.test(name) || /^\.git/i.test(name) ? `_${name}` : name
}
