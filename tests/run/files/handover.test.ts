// What a sub-run gives to the run above it, on real files: links, copies, pipes, obstacles, a full disk.

import { afterAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { FileRecord } from '../../../lib/agent/agent-context.ts'
import { diskFull, type SmallFile } from '../../../lib/agent/files.ts'
import { CadreError } from '../../../lib/error.ts'
import {
  checkOutputs,
  dropStale,
  type FileOutput,
  foldersOf,
  handOver,
  type Origin,
  writeItems,
} from '../../../lib/run/files/handover.ts'
import { folder } from '../../support/folder.ts'
import { randomFrom, seedOf } from '../../support/random.ts'

const sha256 = (bytes: string | Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

interface Home {
  home: string
  parent: string
  child: string
  workspace: string
  elsewhere: string
  origin: Origin
}

/** A home with a run, its sub-run, a sibling of the tree, a foreign run, and a workspace. */
function newHome(options: { fromPath?: boolean; known?: FileRecord[]; home?: string } = {}): Home {
  const home = options.home ?? folder()
  const [parent, child] = ['parent', 'child'].map(id => join(home, 'runs', id)) as [string, string]
  const workspace = join(home, 'workspace')
  const elsewhere = join(home, 'elsewhere')
  for (const at of [parent, child, workspace, elsewhere]) mkdirSync(at, { recursive: true })
  const origin: Origin = {
    stateDir: child,
    workspace,
    fromPath: options.fromPath ?? false,
    sameTree: id => ['parent', 'child', 'sibling'].includes(id),
    known: path => options.known?.find(record => record.path === path) ?? null,
  }
  return { home, parent, child, workspace, elsewhere, origin }
}

function put(root: string, path: string, content: string | Uint8Array = path): string {
  const full = join(root, path)
  mkdirSync(dirname(full), { recursive: true })
  writeFileSync(full, content)
  return full
}

function record(path: string, content: string): FileRecord {
  return { name: path.split('/').slice(2).join('/'), path, bytes: content.length, sha256: sha256(content) }
}

async function refusal(work: Promise<unknown>): Promise<{ code: string; message: string }> {
  const thrown = await work.then(
    () => null,
    error => error,
  )
  expect(thrown).toBeInstanceOf(CadreError)
  return { code: thrown.code, message: thrown.message }
}

const out = (path: string, name = 'report'): FileOutput[] => [{ name, path }]
const into = (home: Home, at = 'files/sub') => ({ stateDir: home.parent, folder: at, phase: 'sub' })
const pipe = (path: string) => expect(Bun.spawnSync(['mkfifo', path]).success).toBe(true)
/** Names beside `files` would be temporary files that were left. */
const leftOver = (home: Home) => readdirSync(home.parent).filter(name => name !== 'files')

describe('the outputs of a run are there', () => {
  test('own files, files of the tree and the workspace are recorded', async () => {
    const home = newHome({ known: [record('files/p/a.txt', 'aaa')] })
    put(home.child, 'files/p/a.txt', 'aaa')
    put(home.child, 'files/p/deep/b.txt', 'b'.repeat(700_000))
    put(home.workspace, 'w/c.txt', 'c')
    const sibling = put(join(home.home, 'runs/sibling'), 'files/q/d.txt', 'd')
    const outputs = [
      { name: 'a', path: 'files/p/a.txt' },
      { name: 'b', path: 'files/p/deep/b.txt' },
      { name: 'c', path: 'w/c.txt' },
      { name: 'd', path: sibling },
    ]
    expect(await checkOutputs(home.origin, outputs)).toEqual([
      record('files/p/a.txt', 'aaa'),
      record('files/p/deep/b.txt', 'b'.repeat(700_000)),
      { name: 'w/c.txt', path: 'w/c.txt', bytes: 1, sha256: sha256('c') },
      { name: sibling, path: sibling, bytes: 1, sha256: sha256('d') },
    ])
  })

  test('a record that no longer matches the file is not used', async () => {
    const home = newHome({ known: [record('files/p/a.txt', 'before')] })
    put(home.child, 'files/p/a.txt', 'after all')
    expect(await checkOutputs(home.origin, out('files/p/a.txt'))).toEqual([record('files/p/a.txt', 'after all')])
  })

  test('a file of 5 GB with a record is not read', async () => {
    const home = newHome()
    const size = 5 * 1024 ** 3
    truncateSync(put(home.child, 'files/p/huge', ''), size)
    const known = { name: 'huge', path: 'files/p/huge', bytes: size, sha256: 'of the record' }
    home.origin.known = () => known
    expect(await checkOutputs(home.origin, out('files/p/huge'))).toEqual([known])
    const { paths, files } = await handOver(home.origin, out('files/p/huge'), into(home))
    expect(paths).toEqual({ report: 'files/sub/huge' })
    expect(files).toEqual([{ ...known, path: 'files/sub/huge' }])
    expect(statSync(join(home.parent, 'files/sub/huge')).ino).toBe(statSync(join(home.child, 'files/p/huge')).ino)
  })

  test('while a large file is hashed, other work runs; an abort stops the hash', async () => {
    const home = newHome()
    truncateSync(put(home.workspace, 'huge', ''), 5 * 1024 ** 3)
    const stop = new AbortController()
    const reason = new Error('stopped')
    let turns = 0
    const timer = setInterval(() => ++turns === 20 && stop.abort(reason), 1)
    const thrown = await checkOutputs(home.origin, out('huge'), stop.signal).catch(error => error)
    clearInterval(timer)
    expect(thrown).toBe(reason)
    expect(turns).toBeGreaterThanOrEqual(20)
  })
})

describe('what cannot be an output is refused by name', () => {
  const cases: [string, (home: Home) => string, { code: string; message: RegExp }][] = [
    [
      'a missing file',
      () => 'files/p/none',
      { code: 'not_found', message: /^output report: there is no file files\/p\/none$/ },
    ],
    [
      'a missing workspace file',
      () => 'none',
      { code: 'not_found', message: /^output report: there is no file none$/ },
    ],
    [
      'a file as a folder',
      home => {
        put(home.workspace, 'file')
        return 'file/x'
      },
      { code: 'not_found', message: /^output report: there is no file file\/x$/ },
    ],
    [
      'a folder',
      home => {
        mkdirSync(join(home.child, 'files/p/dir'), { recursive: true })
        return 'files/p/dir'
      },
      { code: 'invalid_request', message: /^output report: files\/p\/dir must be a regular file, but it is a folder$/ },
    ],
    [
      'a link among the own files',
      home => {
        mkdirSync(join(home.child, 'files/p'), { recursive: true })
        symlinkSync(put(home.elsewhere, 'e'), join(home.child, 'files/p/link'))
        return 'files/p/link'
      },
      { code: 'invalid_request', message: /but it is a link$/ },
    ],
    [
      'a link in the workspace, to a file of the workspace',
      home => {
        symlinkSync(put(home.workspace, 'w'), join(home.workspace, 'link'))
        return 'link'
      },
      { code: 'invalid_request', message: /^output report: link must be a regular file, but it is a link$/ },
    ],
    [
      'a link to nothing',
      home => {
        symlinkSync('nowhere', join(home.workspace, 'link'))
        return 'link'
      },
      { code: 'invalid_request', message: /but it is a link$/ },
    ],
    [
      'a named pipe',
      home => {
        pipe(join(home.workspace, 'pipe'))
        return 'pipe'
      },
      { code: 'invalid_request', message: /^output report: pipe must be a regular file, but it is a named pipe$/ },
    ],
    [
      'a folder that is a link to elsewhere',
      home => {
        put(home.elsewhere, 'e')
        mkdirSync(join(home.child, 'files'), { recursive: true })
        symlinkSync(home.elsewhere, join(home.child, 'files/p'))
        return 'files/p/e'
      },
      { code: 'invalid_request', message: /lies outside the run's files and its workspace$/ },
    ],
    ['an absolute path', () => '/etc/hostname', { code: 'invalid_request', message: /lies outside/ }],
    [
      'a way out',
      home => {
        put(home.elsewhere, 'e')
        return '../elsewhere/e'
      },
      { code: 'invalid_request', message: /lies outside/ },
    ],
    [
      'a way out of the files',
      home => {
        put(home.child, 'x')
        return 'files/../x'
      },
      { code: 'invalid_request', message: /outside/ },
    ],
    [
      'a file of a foreign run',
      home => put(join(home.home, 'runs/foreign'), 'files/p/x'),
      { code: 'invalid_request', message: /lies outside/ },
    ],
    [
      'what is no artifact of the tree',
      home => put(join(home.home, 'runs/sibling'), 'log'),
      { code: 'invalid_request', message: /lies outside/ },
    ],
    ['a zero byte', () => 'a\0b', { code: 'invalid_request', message: /lies outside/ }],
    ['a path without end', () => 'x'.repeat(5_000), { code: 'invalid_request', message: /too long for a path$/ }],
  ]
  test.each(cases)('%s', async (_, prepare, expected) => {
    const home = newHome()
    const outputs = out(prepare(home))
    const asRefused = { code: expected.code, message: expect.stringMatching(expected.message) }
    expect(await refusal(checkOutputs(home.origin, outputs))).toEqual(asRefused)
    expect(await refusal(handOver(home.origin, outputs, into(home)))).toEqual(asRefused)
    expect(leftOver(home)).toEqual([])
    expect(readdirSync(join(home.parent, 'files/sub'))).toEqual([])
  })

  test('a run that was started from a path may name what lies beyond its workspace, but no link', async () => {
    const home = newHome({ fromPath: true })
    const path = put(home.elsewhere, 'e', 'far')
    expect((await checkOutputs(home.origin, out(path)))[0]!.sha256).toBe(sha256('far'))
    expect((await checkOutputs(home.origin, out('../elsewhere/e')))[0]!.sha256).toBe(sha256('far'))
    symlinkSync(path, join(home.elsewhere, 'link'))
    expect((await refusal(checkOutputs(home.origin, out(join(home.elsewhere, 'link'))))).message).toMatch(/is a link$/)
    put(home.child, 'x')
    expect((await refusal(checkOutputs(home.origin, out('files/../x')))).message).toMatch(/lies outside/)
  })

  test.skipIf(process.getuid?.() === 0)('an unreadable file', async () => {
    const home = newHome()
    chmodSync(put(home.workspace, 'closed'), 0)
    expect(await refusal(checkOutputs(home.origin, out('closed')))).toEqual({
      code: 'invalid_request',
      message: 'output report: closed cannot be read: permission denied',
    })
  })
})

describe('handing over', () => {
  test('own files and files of the tree are linked, those of a workspace copied; again changes nothing', async () => {
    const home = newHome()
    const own = put(home.child, 'files/p/a.txt', 'a')
    const sibling = put(join(home.home, 'runs/sibling'), 'files/q/b.txt', 'b')
    const work = put(home.workspace, 'c.sh', 'c'.repeat(300_000))
    chmodSync(work, 0o755)
    const outputs = [
      { name: 'x', path: 'files/p/a.txt' },
      { name: 'y', path: sibling },
      { name: 'z', path: 'c.sh' },
    ]
    const expected = {
      paths: { x: 'files/sub/key/a.txt', y: 'files/sub/key/b.txt', z: 'files/sub/key/c.sh' },
      files: [
        { ...record('files/sub/key/a.txt', 'a'), name: 'key/a.txt' },
        { ...record('files/sub/key/b.txt', 'b'), name: 'key/b.txt' },
        { ...record('files/sub/key/c.sh', 'c'.repeat(300_000)), name: 'key/c.sh' },
      ],
    }
    for (let time = 0; time < 2; time++) {
      expect(await handOver(home.origin, outputs, into(home, 'files/sub/key'))).toEqual(expected)
      const at = (name: string) => statSync(join(home.parent, 'files/sub/key', name))
      expect(at('a.txt').ino).toBe(statSync(own).ino)
      expect(at('b.txt').ino).toBe(statSync(sibling).ino)
      expect(at('c.sh').ino).not.toBe(statSync(work).ino)
      expect(at('c.sh').mode & 0o100).toBe(0o100)
      expect(leftOver(home)).toEqual([])
      expect(readdirSync(join(home.parent, 'files/sub/key')).sort()).toEqual(['a.txt', 'b.txt', 'c.sh'])
    }
  })

  test('outputs with one base name are all kept, under the names of the outputs', async () => {
    const home = newHome()
    const outputs = [
      { name: 'first', path: 'files/p/report.md' },
      { name: 'second', path: 'files/q/report.md' },
      { name: 'third', path: 'files/q/REPORT.md' },
      { name: 'other', path: 'files/q/first.md' },
      { name: 'plain', path: 'files/q/plain.txt' },
    ]
    for (const { name, path } of outputs) put(home.child, path, name)
    const { paths, files } = await handOver(home.origin, outputs, into(home))
    expect(paths).toEqual({
      first: 'files/sub/first.md',
      second: 'files/sub/second.md',
      third: 'files/sub/third.md',
      other: 'files/sub/other.md',
      plain: 'files/sub/plain.txt',
    })
    for (const { name } of outputs) expect(readFileSync(join(home.parent, paths[name]!), 'utf8')).toBe(name)
    expect(files.map(file => file.path)).toEqual(Object.values(paths))
  })

  test('small files are given to the caller instead of a sync, up to a sum', async () => {
    const home = newHome()
    put(home.child, 'files/p/a', 'a')
    put(home.workspace, 'b', 'b')
    put(home.child, 'files/p/large', 'l'.repeat(70_000))
    const tool = put(home.child, 'files/p/tool', '#!/bin/sh')
    chmodSync(tool, 0o755)
    const small: SmallFile[] = []
    const outputs = ['files/p/a', 'b', 'files/p/large', 'files/p/tool'].map((path, n) => ({ name: `o${n}`, path }))
    const { files } = await handOver(home.origin, outputs, { ...into(home), small: file => small.push(file) })
    expect(small.map(({ path, bytes }) => [path, Buffer.from(bytes).toString()])).toEqual([
      ['files/sub/a', 'a'],
      ['files/sub/b', 'b'],
    ])
    expect(files.map(file => file.sha256)).toEqual(['a', 'b', 'l'.repeat(70_000), '#!/bin/sh'].map(sha256))
    expect(statSync(join(home.parent, 'files/sub/tool')).mode & 0o100).toBe(0o100)

    small.length = 0
    const many = Array.from({ length: 10 }, (_, n) => ({ name: `m${n}`, path: `files/p/m${n}` }))
    for (const { path } of many) put(home.child, path, path.padEnd(60_000))
    const handed = await handOver(home.origin, many, { ...into(home), small: file => small.push(file) })
    expect(small).toHaveLength(4)
    expect(handed.files.map(file => file.sha256)).toEqual(many.map(({ path }) => sha256(path.padEnd(60_000))))
  })

  test.each(['file', 'link', 'pipe'])('a %s where the folder belongs is named', async kind => {
    const home = newHome()
    put(home.child, 'files/p/a')
    put(home.elsewhere, 'kept')
    mkdirSync(join(home.parent, 'files'))
    const at = join(home.parent, 'files/sub')
    if (kind === 'file') writeFileSync(at, 'of a command')
    else if (kind === 'link') symlinkSync(home.elsewhere, at)
    else pipe(at)
    const called = kind === 'pipe' ? 'a named pipe' : `a ${kind}`
    const expected = {
      code: 'conflict',
      message: `files/sub is ${called} that a command of this run made, but phase sub needs this path for files of its sub-runs: write elsewhere`,
    }
    expect(await refusal(handOver(home.origin, out('files/p/a'), into(home)))).toEqual(expected)
    expect(await refusal(handOver(home.origin, out('files/p/a'), into(home, 'files/sub/key')))).toEqual(expected)
    expect(await refusal(writeItems(home.parent, 'sub', ['x']))).toEqual(expected)
    expect(readdirSync(home.elsewhere)).toEqual(['kept'])
    await dropStale(home.parent, 'sub', new Set())
    await handOver(home.origin, out('files/p/a'), into(home, 'files/sub/key'))
    expect(readdirSync(join(home.parent, 'files/sub/key'))).toEqual(['a'])
  })

  test('a folder where the file belongs is named, and nothing is left beside it', async () => {
    const home = newHome()
    put(home.child, 'files/p/a')
    put(home.parent, 'files/sub/a/b')
    expect((await refusal(handOver(home.origin, out('files/p/a'), into(home)))).message).toBe(
      'output report: files/sub/a is a folder that a command of this run made, but phase sub needs this path for files of its sub-runs: write elsewhere',
    )
    expect(leftOver(home)).toEqual([])
  })

  test('a file that cannot be linked is copied', async () => {
    const home = newHome()
    const own = put(home.child, 'files/p/a', 'a')
    if (!Bun.spawnSync(['chattr', '+i', own]).success) {
      console.log('skipped: a file without links (root can make one on Linux, on some file systems)')
      return
    }
    try {
      const { files } = await handOver(home.origin, out('files/p/a'), into(home))
      expect(files[0]!.sha256).toBe(sha256('a'))
      expect(statSync(join(home.parent, 'files/sub/a')).ino).not.toBe(statSync(own).ino)
    } finally {
      Bun.spawnSync(['chattr', '-i', own])
    }
  })

  test('nothing to hand over makes no folder', async () => {
    const home = newHome()
    expect(await handOver(home.origin, [], into(home))).toEqual({ paths: {}, files: [] })
    expect(readdirSync(home.parent)).toEqual([])
  })
})

describe('stale files', () => {
  test('all but what is kept is removed; links are not followed', async () => {
    const home = newHome()
    const at = join(home.parent, 'files/sub')
    for (const path of ['keep/a', 'stale/deep/b', 'file', 'items.json']) put(at, path)
    put(home.elsewhere, 'kept')
    symlinkSync(home.elsewhere, join(at, 'link'))
    await dropStale(home.parent, 'sub', new Set(['keep', 'not there']))
    expect(readdirSync(at)).toEqual(['keep'])
    expect(readdirSync(home.elsewhere)).toEqual(['kept'])
  })

  test('what is missing is no error, and a link in place of all files is left alone', async () => {
    const home = newHome()
    await dropStale(home.parent, 'sub', new Set())
    await dropStale(join(home.home, 'runs/none'), 'sub', new Set())
    put(home.elsewhere, 'sub/kept')
    symlinkSync(home.elsewhere, join(home.parent, 'files'))
    await dropStale(home.parent, 'sub', new Set())
    expect(readdirSync(join(home.elsewhere, 'sub'))).toEqual(['kept'])
    put(home.child, 'files')
    await dropStale(home.child, 'sub', new Set())
    expect(lstatSync(join(home.child, 'files')).isFile()).toBe(true)
  })
})

describe('items.json', () => {
  test('is written from pieces, hashed, and replaces an older one whole', async () => {
    const home = newHome()
    const pieces = ['[', ...Array.from({ length: 50_000 }, (_, n) => `"${n} ✓ 😀",\n`), ']']
    async function* slowly() {
      for (const piece of pieces) yield piece
    }
    const text = pieces.join('')
    for (const chunks of [pieces, slowly()]) {
      expect(await writeItems(home.parent, 'sub', chunks)).toEqual({
        name: 'items.json',
        path: 'files/sub/items.json',
        bytes: Buffer.byteLength(text),
        sha256: sha256(text),
      })
      expect(readFileSync(join(home.parent, 'files/sub/items.json'), 'utf8')).toBe(text)
    }
    function* broken() {
      yield 'x'.repeat(200_000)
      throw new Error('broke')
    }
    expect(await writeItems(home.parent, 'sub', broken()).catch(error => error.message)).toBe('broke')
    expect(readFileSync(join(home.parent, 'files/sub/items.json'), 'utf8')).toBe(text)
    expect(leftOver(home)).toEqual([])
    expect(await writeItems(home.parent, 'sub', [])).toMatchObject({ bytes: 0, sha256: sha256('') })
  })

  test('an existing folder of that name is an error that names it', async () => {
    const home = newHome()
    put(home.parent, 'files/sub/items.json/x')
    expect((await refusal(writeItems(home.parent, 'sub', ['x']))).message).toMatch(
      /^files\/sub\/items.json is a folder that/,
    )
    expect(leftOver(home)).toEqual([])
  })
})

describe('folders of items', () => {
  test.each([
    [
      ['a', 'b.c', '-', '_'],
      ['a', 'b.c', '-', '_'],
    ],
    [
      ['.', '..', '', 'a b', 'x'.repeat(101), 'ä'],
      ['0', '1', '2', '3', '4', '5'],
    ],
    // A key that is another item's index.
    [
      ['1', 'odd key'],
      ['1', '1~'],
    ],
    [
      ['odd key', '0'],
      ['0~', '0'],
    ],
    [
      ['Key', 'key', 'KEY'],
      ['Key', '1~', '2~'],
    ],
    [
      ['items.json', 'ITEMS.json'],
      ['0~', '1~'],
    ],
    [[], []],
  ])('%j', (keys, folders) => {
    expect(foldersOf(keys)).toEqual(folders)
  })

  test('no two items share a folder, whatever their keys are', () => {
    const parts = ['0', '1', '2', '3', 'a', 'A', '~', '/', '.', 'items.json', 'Items.json', ' ']
    const random = randomFrom(seedOf('folders of items'))
    for (let round = 0; round < 2_000; round++) {
      const keys = new Set<string>()
      while (keys.size < 6) keys.add(Array.from({ length: 1 + random.below(2) }, () => random.of(parts)).join(''))
      const folders = foldersOf([...keys])
      expect(new Set(folders.map(name => name.toLowerCase())).size).toBe(6)
      for (const name of folders) expect(name).toMatch(/^[A-Za-z0-9._-]+~?$/)
    }
  })
})

describe('a full disk', () => {
  // Not a folder of the test file's own: those are removed before this disk is taken away.
  const disk = mkdtempSync(join(tmpdir(), 'cadre-disk-'))
  const mounted =
    process.platform === 'linux' &&
    process.getuid?.() === 0 &&
    Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', disk]).success
  if (!mounted) console.log('skipped: a full disk (tmpfs can be mounted by root on Linux only)')
  afterAll(() => {
    if (mounted) Bun.spawnSync(['umount', disk])
    rmdirSync(disk)
  })

  test.skipIf(!mounted)('is found below the error, and nothing is left', async () => {
    const home = newHome({ home: disk })
    const large = new Uint8Array(5 * 1_048_576)
    put(home.workspace, 'large', large)
    const thrown = await handOver(home.origin, out('large'), into(home)).catch(error => error)
    expect(thrown).toBeInstanceOf(CadreError)
    expect(thrown.message).toMatch(/^output report: large could not be read or handed over: /)
    expect(await diskFull(thrown, home.parent)).toMatchObject({ code: 'disk_full' })
    function* endless() {
      for (;;) yield 'x'.repeat(100_000)
    }
    const items = await writeItems(home.parent, 'sub', endless()).catch(error => error)
    expect(await diskFull(items, home.parent)).toMatchObject({ code: 'disk_full' })
    expect(leftOver(home)).toEqual([])
    expect(readdirSync(join(home.parent, 'files/sub'))).toEqual([])
    // A link takes no space.
    linkSync(join(home.workspace, 'large'), put(home.child, 'files/p/other').replace('other', 'own'))
    expect((await handOver(home.origin, out('files/p/own'), into(home))).files[0]!.bytes).toBe(large.length)
  })
})
