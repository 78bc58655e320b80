import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import type { FileContent } from '../../lib/agent/agent-context.ts'
import { AgentError } from '../../lib/agent/core/agent-error.ts'
import {
  folderAt,
  readable,
  recordFiles,
  SMALL_BYTES,
  type SmallFile,
  safeName,
  writeArtifact,
} from '../../lib/agent/files.ts'
import { isSafeName } from '../../lib/files/file-name.ts'
import { testContext } from '../support/context.ts'
import { folder } from '../support/folder.ts'

const BAD = [
  '',
  '.',
  '..',
  '../x',
  'a/../../x',
  'a//b',
  '/etc/x',
  'a/',
  'a\\b',
  'a\0b',
  'a\nb',
  'a:b',
  '-rf',
  'x'.repeat(300),
  '~/x/..',
  'a/./b',
]

const sha256 = (bytes: string | Uint8Array) => new Bun.CryptoHasher('sha256').update(bytes).digest('hex')

async function codeOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'passed',
    error => (error instanceof AgentError ? error.code : String(error)),
  )
}

describe('names', () => {
  test.each(BAD)('%j is refused, and nothing is touched', async name => {
    const stateDir = folder()
    expect(isSafeName(name)).toBe(false)
    expect(await codeOf(writeArtifact(stateDir, 'p', name, 'x'))).toBe('invalid_name')
    expect(readdirSync(stateDir)).toEqual([])
  })

  test('what vendors call things becomes a safe name; different names stay different', () => {
    expect(safeName('report.pdf')).toBe('report.pdf')
    expect(safeName('Übersicht (Q3).csv')).toBe('Übersicht (Q3).csv')
    const odd = [...BAD, 'a/b', 'a_b', 'a:b', '日本語/資料.pdf', '\ud800', '.'.repeat(400), '😀'.repeat(100)]
    const safe = odd.map(safeName)
    for (const name of safe) expect(isSafeName(name) && !name.includes('/')).toBe(true)
    expect(new Set(safe).size).toBe(new Set(odd).size)
    expect(safeName('日本語/資料.pdf')).toMatch(/^日本語_資料-[0-9a-f]{8}\.pdf$/)
  })
})

describe('write', () => {
  const text = 'häagen\n'
  const contents: [string, () => FileContent, string][] = [
    ['text', () => text, text],
    ['bytes', () => Buffer.from(text), text],
    ['a stream', () => new Response(text).body!, text],
    ['a blob', () => new Blob([text]), text],
    ['an object', () => ({ a: [1] }), '{\n  "a": [\n    1\n  ]\n}\n'],
    ['a list', () => [1], '[\n  1\n]\n'],
    ['nothing', () => '', ''],
  ]
  test.each(contents)('%s is written whole, with its hash', async (_, content, expected) => {
    const stateDir = folder()
    const record = await writeArtifact(stateDir, 'fetch', 'sub/file.txt', content())
    expect(record).toEqual({
      name: 'sub/file.txt',
      path: 'files/fetch/sub/file.txt',
      bytes: Buffer.byteLength(expected),
      sha256: sha256(expected),
    })
    expect(readFileSync(join(stateDir, record.path), 'utf8')).toBe(expected)
    expect(readdirSync(stateDir)).toEqual(['files'])
  })

  test('a stream that breaks leaves neither a file nor a piece, and an older file stays', async () => {
    const stateDir = folder()
    await writeArtifact(stateDir, 'p', 'old', 'old')
    for (const name of ['old', 'new']) {
      const broken = new ReadableStream<Uint8Array>({
        pull: controller => controller.enqueue(Buffer.from('half')),
        start: controller => void setTimeout(() => controller.error(new Error('broke')), 5),
      })
      expect(await codeOf(writeArtifact(stateDir, 'p', name, broken))).toBe('Error: broke')
    }
    expect(readdirSync(join(stateDir, 'files/p'))).toEqual(['old'])
    expect(readFileSync(join(stateDir, 'files/p/old'), 'utf8')).toBe('old')
    expect(readdirSync(stateDir)).toEqual(['files'])
  })

  test('an abort stops it between two chunks', async () => {
    const stateDir = folder()
    const controller = new AbortController()
    const endless = new ReadableStream<Uint8Array>({
      async pull(out) {
        await Bun.sleep(1)
        out.enqueue(new Uint8Array(10))
      },
    })
    setTimeout(() => controller.abort(new AgentError('stop', { code: 'aborted' })), 20)
    expect(await codeOf(writeArtifact(stateDir, 'p', 'x', endless, controller.signal))).toBe('aborted')
    expect(existsSync(join(stateDir, 'files/p/x'))).toBe(false)
  })

  test('links in the way are never followed', async () => {
    const outside = folder()
    for (const place of ['files', 'files/p', 'files/p/sub']) {
      const stateDir = folder()
      mkdirSync(join(stateDir, place, '..'), { recursive: true })
      symlinkSync(outside, join(stateDir, place))
      expect(await codeOf(writeArtifact(stateDir, 'p', 'sub/x', 'evil'))).toBe('invalid_name')
    }
    const stateDir = folder()
    writeFileSync(join(outside, 'target'), 'kept')
    mkdirSync(join(stateDir, 'files/p'), { recursive: true })
    symlinkSync(join(outside, 'target'), join(stateDir, 'files/p/x'))
    await writeArtifact(stateDir, 'p', 'x', 'new')
    expect(readFileSync(join(outside, 'target'), 'utf8')).toBe('kept')
    expect(readFileSync(join(stateDir, 'files/p/x'), 'utf8')).toBe('new')
    expect(readdirSync(outside).filter(name => name !== 'target')).toEqual([])
  })

  test('a state folder below a link of its own is no obstacle', async () => {
    const at = folder()
    mkdirSync(join(at, 'real'))
    symlinkSync(join(at, 'real'), join(at, 'home'))
    expect((await writeArtifact(join(at, 'home/run'), 'p', 'x', 'y')).bytes).toBe(1)
  })

  test('a file cannot be a folder too', async () => {
    const stateDir = folder()
    await writeArtifact(stateDir, 'p', 'a', 'x')
    expect(await codeOf(writeArtifact(stateDir, 'p', 'a/b', 'x'))).toBe('invalid_name')
    await writeArtifact(stateDir, 'p', 'c/d', 'x')
    expect(await codeOf(writeArtifact(stateDir, 'p', 'c', 'x'))).toBe('invalid_name')
  })

  test('many at once into one folder', async () => {
    const stateDir = folder()
    const records = await Promise.all(
      Array.from({ length: 200 }, (_, n) => writeArtifact(stateDir, 'p', `f${n}`, `${n}`)),
    )
    expect(records.map(({ sha256: hash }) => hash)).toEqual(records.map((_, n) => sha256(`${n}`)))
    expect(readdirSync(join(stateDir, 'files/p'))).toHaveLength(200)
  })
})

describe('small files', () => {
  /** With one buffer for all chunks, as some streams have. */
  const stream = (...sizes: number[]) => {
    const buffer = new Uint8Array(Math.max(...sizes, 1))
    let at = 0
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      const size = sizes[at++]
      if (size === undefined) controller.close()
      else controller.enqueue(buffer.fill(96 + at).subarray(0, size))
    }
    return new ReadableStream<Uint8Array>({ pull }, { highWaterMark: 0 })
  }
  const bodyOf = (content: FileContent) =>
    typeof content === 'string' || content instanceof Blob
      ? content
      : content instanceof ReadableStream
        ? copied(content)
        : `${JSON.stringify(content, null, 2)}\n`
  const copied = (content: ReadableStream<Uint8Array>) =>
    content.pipeThrough(new TransformStream({ transform: (chunk, out) => out.enqueue(new Uint8Array(chunk)) }))
  const most = 'x'.repeat(SMALL_BYTES)
  const contents: [string, () => FileContent, boolean][] = [
    ['nothing', () => '', true],
    ['text of the limit', () => most, true],
    ['text above it', () => `${most}x`, false],
    ['many bytes in fewer characters', () => '✓'.repeat(SMALL_BYTES / 3 + 1), false],
    ['a blob', () => new Blob([most]), true],
    ['a large blob', () => new Blob([most, 'x']), false],
    ['an empty stream', () => stream(), true],
    ['a stream of the limit', () => stream(10, SMALL_BYTES - 20, 10), true],
    ['a stream above it', () => stream(10, SMALL_BYTES - 20, 11, 5, 300_000), false],
    ['an object', () => ({ a: 1 }), true],
  ]
  test.each(contents)('%s: who takes them gets the bytes that were written', async (_, content, small) => {
    const stateDir = folder()
    const taken: SmallFile[] = []
    const record = await writeArtifact(stateDir, 'p', 'sub/x', content(), undefined, file => taken.push(file))
    const written = readFileSync(join(stateDir, 'files/p/sub/x'))
    expect(record).toEqual({ name: 'sub/x', path: 'files/p/sub/x', bytes: written.length, sha256: sha256(written) })
    expect(taken.map(({ path }) => path)).toEqual(small ? ['files/p/sub/x'] : [])
    for (const { bytes } of taken) expect(Buffer.compare(bytes, written)).toBe(0)
    const whole = await writeArtifact(stateDir, 'p', 'whole', content())
    expect(record.sha256).toBe(sha256(await new Response(bodyOf(content())).bytes()))
    expect(whole.sha256).toBe(record.sha256)
    expect(readdirSync(stateDir)).toEqual(['files'])
  })

  test('the bytes are a copy: the agent may use its buffer again', async () => {
    const taken: SmallFile[] = []
    const buffer = Buffer.from('before')
    const record = await writeArtifact(folder(), 'p', 'x', buffer, undefined, file => taken.push(file))
    buffer.fill(0)
    expect(sha256(taken[0]!.bytes)).toBe(record.sha256)
  })

  test('a write that fails gives none, and names the folder in its way', async () => {
    const stateDir = folder()
    const taken: SmallFile[] = []
    await writeArtifact(stateDir, 'p', 'c/d', 'x')
    const work = writeArtifact(stateDir, 'p', 'c', 'x', undefined, file => taken.push(file))
    expect(await codeOf(work)).toBe('invalid_name')
    const below = writeArtifact(stateDir, 'p', 'c/d/e', 'x', undefined, file => taken.push(file))
    expect(await below.catch(error => error.message)).toBe('files/p/c/d must be a plain folder, but it is a file')
    expect(taken).toEqual([])
    expect(readdirSync(stateDir)).toEqual(['files'])
  })

  test('a folder that was removed is made again', async () => {
    const stateDir = folder()
    for (let time = 0; time < 3; time++) {
      await writeArtifact(stateDir, 'p', 'sub/x', 'x', undefined, time === 1 ? () => {} : undefined)
      rmSync(join(stateDir, 'files'), { recursive: true })
    }
    expect((await writeArtifact(stateDir, 'p', 'sub/x', 'x')).bytes).toBe(1)
  })

  test('many at once into folders that are not there', async () => {
    const root = folder()
    const taken: SmallFile[] = []
    const names = Array.from({ length: 200 }, (_, n) => `d${n % 7}/e${n % 3}/f${n}`)
    await Promise.all(
      names.map(name => writeArtifact(join(root, 'new/run'), 'p', name, name, undefined, file => taken.push(file))),
    )
    expect(taken.map(({ path }) => path).sort()).toEqual(names.map(name => `files/p/${name}`).sort())
    for (const { path, bytes } of taken)
      expect(Buffer.compare(readFileSync(join(root, 'new/run', path)), bytes)).toBe(0)
  })

  test('one context gives away up to a sum; the rest is synced', async () => {
    const taken: SmallFile[] = []
    const { context } = testContext({ small: file => taken.push(file) })
    for (let n = 0; n < 8; n++) await context.write(`f${n}`, 'x'.repeat(60_000))
    expect(taken.map(({ path }) => path)).toEqual([0, 1, 2, 3, 4].map(n => `files/phase/f${n}`))
  })

  test('of what commands left, too; what can be executed is synced', async () => {
    const stateDir = folder()
    mkdirSync(join(stateDir, 'files/p/deep'), { recursive: true })
    for (let n = 0; n < 8; n++) writeFileSync(join(stateDir, `files/p/deep/f${n}`), `${n}`.repeat(60_000))
    writeFileSync(join(stateDir, 'files/p/large'), `${most}x`)
    writeFileSync(join(stateDir, 'files/p/tool'), '#!/bin/sh')
    chmodSync(join(stateDir, 'files/p/tool'), 0o755)
    const taken: SmallFile[] = []
    const records = await recordFiles(stateDir, 'p', { small: file => void taken.push(file) })
    expect(records).toEqual(await recordFiles(stateDir, 'p'))
    expect(records.map(({ name }) => name)).toEqual([
      ...Array.from({ length: 8 }, (_, n) => `deep/f${n}`),
      'large',
      'tool',
    ])
    expect(taken).toHaveLength(4)
    for (const { path, bytes } of taken) {
      expect(path).toMatch(/^files\/p\/deep\/f\d$/)
      expect(Buffer.compare(readFileSync(join(stateDir, path)), bytes)).toBe(0)
    }
  })
})

describe('read', () => {
  function places() {
    const [stateDir, workspace, elsewhere] = [folder(), folder(), folder()] as const
    mkdirSync(join(stateDir, 'files/p'), { recursive: true })
    writeFileSync(join(stateDir, 'files/p/x'), 'artifact')
    writeFileSync(join(stateDir, 'secret'), 'of the run')
    writeFileSync(join(workspace, 'w'), 'workspace')
    mkdirSync(join(workspace, 'dir'))
    writeFileSync(join(elsewhere, 'e'), 'elsewhere')
    symlinkSync(join(elsewhere, 'e'), join(workspace, 'link'))
    symlinkSync(elsewhere, join(workspace, 'linkdir'))
    symlinkSync(join(elsewhere, 'e'), join(stateDir, 'files/p/link'))
    linkSync(join(stateDir, 'files/p/x'), join(stateDir, 'files/p/hard'))
    return { stateDir, workspace, elsewhere }
  }
  const read = (at: ReturnType<typeof places>, path: string, outside: boolean) =>
    readable(path, { ...at, outside }).then(
      file => file.text(),
      error => (error instanceof AgentError ? error.code : String(error)),
    )

  test.each([true, false])('inside, with outside %s', async outside => {
    const at = places()
    expect(await read(at, 'files/p/x', outside)).toBe('artifact')
    expect(await read(at, 'files/p/hard', outside)).toBe('artifact')
    expect(await read(at, 'w', outside)).toBe('workspace')
    expect(await read(at, './dir/../w', outside)).toBe('workspace')
    for (const missing of ['files/p/none', 'none', 'dir']) expect(await read(at, missing, outside)).toBe('not_found')
    for (const path of ['files/../secret', 'files/p/../../secret', 'files/p/link', 'w\0']) {
      expect(await read(at, path, outside)).toBe('outside')
    }
  })

  test('what lies outside needs the right to it', async () => {
    const at = places()
    const beyond = [
      join(at.elsewhere, 'e'),
      `../${at.elsewhere.split('/').at(-1)}/e`,
      'link',
      'linkdir/e',
      '/etc/hostname',
    ]
    for (const path of beyond) expect(await read(at, path, false)).toBe('outside')
    for (const path of beyond.slice(0, 4)) expect(await read(at, path, true)).toBe('elsewhere')
  })

  test('a folder is found by the same rules', async () => {
    const at = places()
    const find = (path: string, outside: boolean) =>
      folderAt(path, { ...at, outside }).catch(error => (error instanceof AgentError ? error.code : String(error)))
    expect(await find('.', false)).toBe(at.workspace)
    expect(await find('dir', false)).toBe(join(at.workspace, 'dir'))
    expect(await find('files/p', false)).toBe(join(at.stateDir, 'files/p'))
    for (const missing of ['w', 'none']) expect(await find(missing, true)).toBe('not_found')
    for (const path of [at.elsewhere, 'linkdir', '..']) expect(await find(path, false)).toBe('outside')
    expect(await find('linkdir', true)).toBe(at.elsewhere)
  })
})

test('what commands leave is recorded: regular files at any depth, sorted; links are not', async () => {
  const stateDir = folder()
  expect(await recordFiles(stateDir, 'p')).toEqual([])
  mkdirSync(join(stateDir, 'files/p/deep/er'), { recursive: true })
  writeFileSync(join(stateDir, 'files/p/z'), 'z')
  writeFileSync(join(stateDir, 'files/p/deep/er/a'), 'a'.repeat(600_000))
  symlinkSync('/etc/passwd', join(stateDir, 'files/p/link'))
  // Nobody writes to it: whoever opens it would wait for ever.
  expect(Bun.spawnSync(['mkfifo', join(stateDir, 'files/p/pipe')]).success).toBe(true)
  symlinkSync('a', join(stateDir, 'files/p/deep/er/b'))
  const leftOut: string[] = []
  expect(await recordFiles(stateDir, 'p', { leftOut: name => void leftOut.push(name) })).toEqual([
    { name: 'deep/er/a', path: 'files/p/deep/er/a', bytes: 600_000, sha256: sha256('a'.repeat(600_000)) },
    { name: 'z', path: 'files/p/z', bytes: 1, sha256: sha256('z') },
  ])
  expect(leftOut.sort()).toEqual(['deep/er/b', 'link', 'pipe'])
})
