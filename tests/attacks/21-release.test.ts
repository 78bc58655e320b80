// Releases: what is installed is what the owner of the release key signed, for that version, whole, or nothing changes.

import { afterAll, describe, expect, test } from 'bun:test'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { billOfMaterials } from '../../deploy/bill-of-materials.ts'
import { givenKey, makeRelease, npmFile, run, signFolder, writeSums } from '../../deploy/release.ts'
import { replaceProgram, verifiedNpmFile } from '../../lib/daemon/cli/machine/install-release.ts'
import { npmFileName, programName, SIGNATURE, SUMS, signRelease } from '../../lib/program/release.ts'
import { releaseKey } from '../../lib/program/release-key.ts'
import { newSigningKey, type SigningKey } from '../../lib/program/signing-key.ts'
import { folder } from '../support/folder.ts'
import { environmentAt } from '../support/program.ts'

const ROOT = join(import.meta.dir, '../..')
const LONG_MS = 120_000
const ours = newSigningKey()
const theirs = newSigningKey()
const target = 'linux-x64'
const installed = '1.0.0'
const options = { version: installed, downgrade: false, key: ours.key, target }

/** A program that says its version. */
const programOf = (version: string) => `#!/bin/sh\necho ${version}\n`

/** The folder of a release with a program and an npm file. */
async function release(version: string, key: SigningKey = ours): Promise<string> {
  const out = folder()
  writeFileSync(join(out, programName(version, target)), programOf(version))
  writeFileSync(join(out, npmFileName(version)), `the npm file of ${version}`)
  await writeSums(out)
  await signFolder(out, version, key, key.key)
  return out
}

/** A program that is installed in a folder of its own. */
function program(): string {
  const file = join(folder(), 'cadre')
  writeFileSync(file, programOf(installed))
  chmodSync(file, 0o751)
  return file
}

/** Everything in a folder, with what is in its files. */
const contents = (path: string) =>
  readdirSync(path)
    .sort()
    .map(name => [name, lstatSync(join(path, name)).mode, readFileSync(join(path, name), 'latin1')])

/** Nothing is changed by an upgrade that is refused with such words. */
async function isRefused(place: string, words: RegExp, more: { limitMs?: number } = {}): Promise<void> {
  const file = program()
  const before = contents(join(file, '..'))
  await expect(replaceProgram(place, file, { ...options, ...more })).rejects.toThrow(words)
  expect(contents(join(file, '..'))).toEqual(before)
  const empty = folder()
  await expect(verifiedNpmFile(place, empty, { ...options, ...more })).rejects.toThrow(words)
  expect(contents(empty)).toEqual([])
}

const edit = (file: string, change: (text: string) => string) => writeFileSync(file, change(readFileSync(file, 'utf8')))

describe('a release that the key signed', () => {
  test('takes the place of the program, with its rights, and leaves nothing beside it', async () => {
    const out = await release('1.1.0')
    for (const place of [out, `${out}/`, join(out, programName('1.1.0', target)), join(out, SUMS)]) {
      const file = program()
      expect(await replaceProgram(place, file, options)).toEqual({ version: '1.1.0', file })
      expect(contents(join(file, '..'))).toEqual([['cadre', 0o100751, programOf('1.1.0')]])
    }
  })

  test('goes to where a link leads, and the link stays', async () => {
    const [file, bin] = [program(), folder()]
    symlinkSync(file, join(bin, 'cadre'))
    await replaceProgram(await release('1.1.0'), join(bin, 'cadre'), options)
    expect(readlinkSync(join(bin, 'cadre'))).toBe(file)
    expect(readFileSync(file, 'utf8')).toBe(programOf('1.1.0'))
  })

  test('is an npm file for npm, which replaces nothing that is there', async () => {
    const [out, here] = [await release('1.1.0'), folder()]
    const file = join(here, npmFileName('1.1.0'))
    for (const _ of [1, 2]) expect(await verifiedNpmFile(out, here, options)).toEqual({ version: '1.1.0', file })
    expect(contents(here)).toEqual([[npmFileName('1.1.0'), 0o100600, 'the npm file of 1.1.0']])

    const [other, victim] = [folder(), join(folder(), 'victim')]
    writeFileSync(victim, 'kept')
    symlinkSync(victim, join(other, npmFileName('1.1.0')))
    await expect(verifiedNpmFile(out, other, options)).rejects.toThrow('is there already')
    expect([readFileSync(victim, 'utf8'), readdirSync(other)]).toEqual(['kept', [npmFileName('1.1.0')]])
  })

  test('is installed again, and an older one only with --downgrade', async () => {
    await replaceProgram(await release(installed), program(), options)
    for (const older of ['0.9.9', '1.0.0-rc.1']) {
      await isRefused(await release(older), /older than 1\.0\.0.*--downgrade/)
      const file = program()
      await replaceProgram(await release(older), file, { ...options, downgrade: true })
      expect(readFileSync(file, 'utf8')).toBe(programOf(older))
    }
  })

  test('is not installed where it does not start, or has another version than was signed', async () => {
    for (const text of ['not a program', programOf('1.0.9'), '#!/nowhere/sh\n']) {
      const out = await release('1.1.0')
      writeFileSync(join(out, programName('1.1.0', target)), text)
      await writeSums(out)
      await signFolder(out, '1.1.0', ours, ours.key)
      const file = program()
      const before = contents(join(file, '..'))
      await expect(replaceProgram(out, file, options)).rejects.toThrow('does not start on this machine')
      expect(contents(join(file, '..'))).toEqual(before)
    }
  })

  test('has nothing for another system, and no other file is taken for that of this one', async () => {
    const out = await release('1.1.0')
    const file = program()
    await expect(replaceProgram(out, file, { ...options, target: 'darwin-arm64' })).rejects.toThrow(
      'has no cadre-1.1.0-darwin-arm64',
    )
    await expect(replaceProgram(join(out, npmFileName('1.1.0')), file, options)).rejects.toThrow(
      'is upgraded by cadre-1.1.0-linux-x64',
    )
    expect(readFileSync(file, 'utf8')).toBe(programOf(installed))
  })
})

describe('nothing is changed by', () => {
  const files = (out: string) => [programName('1.1.0', target), npmFileName('1.1.0')].map(name => join(out, name))

  test.each<[string, (out: string) => void, RegExp]>([
    [
      'a file that was changed',
      out => files(out).map(file => edit(file, text => `${text}# more\n`)),
      /is not what was signed/,
    ],
    ['a file that is not whole', out => files(out).map(file => truncateSync(file, 10)), /is not what was signed/],
    ['a file that is not there', out => files(out).map(file => rmSync(file)), /ENOENT|no such file/],
    [
      'a folder in the place of a file',
      out => files(out).map(file => [rmSync(file), mkdirSync(file)]),
      /is not a file/,
    ],
    [
      'sums that were changed',
      out => edit(join(out, SUMS), text => text.replace(/^./, '0x'.at(text[0] === '0' ? 1 : 0)!)),
      /is not signed by the key/,
    ],
    [
      'sums with a line more',
      out => edit(join(out, SUMS), text => `${text}${'0'.repeat(64)}  more\n`),
      /is not signed by the key/,
    ],
    [
      'another version',
      out => edit(join(out, SIGNATURE), text => text.replace('1.1.0', '1.2.0')),
      /is not signed by the key/,
    ],
    [
      'a version that is a path',
      out => edit(join(out, SIGNATURE), text => text.replace('1.1.0', '../../1.1.0')),
      /not the signature of a release/,
    ],
    ['a release without a signature', out => rmSync(join(out, SIGNATURE)), /SHA256SUMS\.sig cannot be read/],
    ['a release without sums', out => rmSync(join(out, SUMS)), /SHA256SUMS cannot be read/],
    ['an empty signature', out => writeFileSync(join(out, SIGNATURE), ''), /not the signature of a release/],
    [
      'a signature with words behind it',
      out => edit(join(out, SIGNATURE), text => `${text}more\n`),
      /not the signature of a release/,
    ],
    [
      'a signature of 1 MB',
      out => writeFileSync(join(out, SIGNATURE), 'x'.repeat(1_000_000)),
      /SHA256SUMS\.sig cannot be read/,
    ],
    ['sums of 1 MB', out => writeFileSync(join(out, SUMS), 'x'.repeat(1_000_000)), /SHA256SUMS cannot be read/],
  ])('%s', async (_, attack, words) => {
    const out = await release('1.1.0')
    attack(out)
    await isRefused(out, words)
  })

  test('a release that another key signed, whatever it says of itself', async () => {
    await isRefused(await release('1.1.0', theirs), /is not signed by the key of this cadre/)
    // The key of the program, which nothing but its own code names.
    const file = program()
    await expect(
      replaceProgram(await release('1.1.0'), file, { version: installed, downgrade: false, target }),
    ).rejects.toThrow(releaseKey)
  })

  test('a signature of the same key for something else', async () => {
    const [older, newer] = [await release('1.1.0'), await release('1.2.0')]
    writeFileSync(join(newer, SIGNATURE), readFileSync(join(older, SIGNATURE)))
    await isRefused(newer, /is not signed by the key/)
  })

  test.each(['../../../victim', '/etc/victim', 'a b', 'a\nb', '\u001b[2J', 'a/b', ''])(
    'signed sums that name a file %j, which becomes no path and no text',
    async name => {
      const out = await release('1.1.0')
      edit(join(out, SUMS), text => `${text}${'0'.repeat(64)}  ${name}\n`)
      writeFileSync(join(out, SIGNATURE), signRelease('1.1.0', readFileSync(join(out, SUMS), 'utf8'), ours))
      await isRefused(out, /is not a list of checksums$/)
    },
  )

  test('a place that is not there, or that is a device', async () => {
    await isRefused(join(folder(), 'nothing'), /ENOENT/)
    const out = await release('1.1.0')
    rmSync(join(out, SIGNATURE))
    symlinkSync('/dev/zero', join(out, SIGNATURE))
    await isRefused(out, /cannot be read/)
  })
})

describe('from an address', () => {
  const servers: Bun.Server<undefined>[] = []
  afterAll(() => Promise.all(servers.map(server => server.stop(true))))

  /** Serves the files of a release. `answer` may answer for some of them. */
  function serve(out: string, answer: (name: string) => Response | null = () => null): string {
    const server = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      async fetch(request) {
        const name = new URL(request.url).pathname.slice('/r/'.length)
        const file = Bun.file(join(out, name))
        return answer(name) ?? ((await file.exists()) ? new Response(file) : new Response('', { status: 404 }))
      },
    })
    servers.push(server)
    return `${server.url.href}r/`
  }

  test('a release is installed as from a folder', async () => {
    const url = serve(await release('1.1.0'))
    for (const place of [url, `${url}${programName('1.1.0', target)}?token=x`]) {
      const file = program()
      await replaceProgram(place, file, options)
      expect(contents(join(file, '..'))).toEqual([['cadre', 0o100751, programOf('1.1.0')]])
    }
    const here = folder()
    await verifiedNpmFile(url, here, options)
    expect(readdirSync(here)).toEqual([npmFileName('1.1.0')])
  })

  test('one that was changed or is not signed changes nothing', async () => {
    const out = await release('1.1.0')
    await isRefused(
      serve(out, name => (name.startsWith('cadre-') ? new Response('else') : null)),
      /is not what was signed/,
    )
    await isRefused(
      serve(out, name => (name === SIGNATURE ? new Response('', { status: 404 }) : null)),
      /cannot be read/,
    )
    await isRefused(
      serve(out, name => (name === SUMS ? new Response('x'.repeat(1_000_000)) : null)),
      /cannot be read/,
    )
  })

  test('a download that breaks off changes nothing', async () => {
    const out = await release('1.1.0')
    const half = (size: number) => (socket: Bun.Socket, name: string) => {
      const whole = readFileSync(join(out, name))
      const isFile = name.startsWith('cadre-')
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${whole.length}\r\nconnection: close\r\n\r\n`)
      socket.write(isFile ? whole.subarray(0, size) : whole)
      socket.end()
    }
    for (const size of [0, 9]) {
      const send = half(size)
      using server = Bun.listen({
        hostname: '127.0.0.1',
        port: 0,
        socket: { data: (socket, bytes) => send(socket, /\/r\/(\S+)/.exec(bytes.toString())![1]!) },
      })
      await isRefused(`http://127.0.0.1:${server.port}/r/`, /could not be fetched|is not what was signed/)
    }
  })

  test('one that never ends is given up', async () => {
    const slow = () =>
      new Response(
        new ReadableStream({
          start: controller => controller.enqueue(new Uint8Array([35])),
          pull: () => new Promise(() => {}),
        }),
      )
    const url = serve(await release('1.1.0'), name => (name.startsWith('cadre-') ? slow() : null))
    await isRefused(url, /took longer than 1 s/, { limitMs: 1_000 })
  })

  test('nothing is taken over http but from this machine, and no redirect leads to http', async () => {
    const out = await release('1.1.0')
    const other = serve(out)
    for (const status of [301, 302, 303, 307, 308]) {
      const leading = serve(out, name =>
        name.startsWith('cadre-') ? new Response('', { status, headers: { location: other + name } }) : null,
      )
      await isRefused(leading, /leads to an address that is not https/)
    }
    for (const place of [
      'http://example.invalid/r/',
      'http://192.0.2.1/r/',
      'http://127.0.0.1.example.invalid/r/',
      'ftp://127.0.0.1/r/',
      'file:///etc/',
      'https://name:word@127.0.0.1/r/',
      'https://',
    ]) {
      await isRefused(place, /cannot be fetched: the address has to begin with https/)
    }
  })
})

test(
  'an upgrade that is killed leaves the old program or the new one, and the next one cleans up',
  async () => {
    const out = await release('1.1.0')
    const states = new Set<string>()
    for (let place = 1; ; place++) {
      const file = program()
      const child = Bun.spawn(
        [process.execPath, join(ROOT, 'tests/support/upgrade-process.ts'), out, file, target, ours.key],
        { env: { ...environmentAt(folder()), CADRE_FAILPOINT: String(place) }, stderr: 'inherit' },
      )
      const code = await child.exited
      const text = readFileSync(file, 'utf8')
      expect([programOf(installed), programOf('1.1.0')]).toContain(text)
      expect(statSync(file).mode & 0o777).toBe(0o751)
      states.add(text)
      await replaceProgram(out, file, options)
      expect(contents(join(file, '..'))).toEqual([['cadre', 0o100751, programOf('1.1.0')]])
      if (code === 0) break
      expect(child.signalCode).toBe('SIGKILL')
    }
    expect(states.size).toBe(2)
  },
  LONG_MS,
)

test('a clone is upgraded by git, and takes no release', async () => {
  const home = folder()
  const out = await release('1.1.0')
  const child = Bun.spawn([process.execPath, join(ROOT, 'daemon.ts'), 'upgrade', out], {
    cwd: home,
    env: environmentAt(home),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stderr, code] = await Promise.all([child.stderr.text(), child.exited])
  expect([code, stderr]).toEqual([2, expect.stringContaining('git pull')])
})

describe('the release script', () => {
  test(
    'makes the same npm file each time, with the time of the commit, no owner and no path of the machine',
    () => {
      const [first, second] = [npmFile(ROOT), npmFile(ROOT)]
      expect(Bun.SHA256.hash(first, 'hex')).toBe(Bun.SHA256.hash(second, 'hex'))
      const listed = run(['tar', '-tvz', '--full-time', '--utc'], ROOT, Buffer.from(first)).toString()
      const time = new Date(Number(run(['git', 'show', '-s', '--format=%ct', 'HEAD'], ROOT)) * 1_000)
      const stamp = time.toISOString().slice(0, 19).replace('T', ' ')
      const entries = listed.trim().split('\n')
      expect(entries.filter(entry => !entry.includes(` root/root `) || !entry.includes(` ${stamp} package/`))).toEqual(
        [],
      )
      const names = entries
        .map(entry => entry.slice(entry.indexOf(' package/') + 1))
        .filter(name => !name.endsWith('/'))
      const raw = Buffer.from(Bun.gunzipSync(first as Uint8Array<ArrayBuffer>)).toString('latin1')
      expect(raw.includes(ROOT)).toBe(false)

      // npm reads the folder, in which there may be files that are not committed.
      const listing = run(['npm', 'pack', '--dry-run', '--json', '--ignore-scripts'], ROOT).toString()
      const [pack] = Object.values(JSON.parse(listing)) as { files: { path: string }[] }[]
      const committed = new Set(run(['git', 'ls-files'], ROOT).toString().split('\n'))
      const theirs = pack!.files.map(({ path }) => `package/${path}`).filter(path => committed.has(path.slice(8)))
      expect(names.toSorted()).toEqual(theirs.sort())
    },
    LONG_MS,
  )

  test('lists what runs with cadre as CycloneDX, with licenses and hashes, the same each time', () => {
    const clone = folder()
    const put = (path: string, data: object) => {
      mkdirSync(join(clone, path, '..'), { recursive: true })
      writeFileSync(join(clone, path), JSON.stringify(data))
    }
    const sum = `sha512-${Buffer.alloc(64, 7).toString('base64')}`
    put('package.json', { name: 'cadre', version: '1.1.0', description: 'Runs.', license: 'MIT' })
    put('bun.lock', {
      workspaces: { '': { dependencies: { a: '1.0.0', '@s/b': '2.0.0' }, devDependencies: { dev: '1.0.0' } } },
      packages: {
        a: ['a@1.0.0', '', { dependencies: { c: '^1.0.0' } }, sum],
        'a/c': ['c@1.5.0', '', {}, sum],
        '@s/b': ['@s/b@2.0.0', '', { peerDependencies: { c: '2' }, optionalDependencies: { odd: '1' } }, sum],
        c: ['c@2.0.0', '', {}, sum],
        odd: ['odd@1.0.0', '', { cpu: 'none' }, sum],
        dev: ['dev@1.0.0', '', {}, sum],
      },
    })
    for (const path of ['a', 'a/node_modules/c', '@s/b', 'c'])
      put(`node_modules/${path}/package.json`, { license: 'ISC' })
    const text = billOfMaterials(clone, 1_700_000_000)
    expect(billOfMaterials(clone, 1_700_000_000)).toBe(text)
    const bill = JSON.parse(text)
    expect(bill).toMatchObject({
      bomFormat: 'CycloneDX',
      specVersion: '1.6',
      serialNumber: expect.stringMatching(
        /^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      ),
      metadata: { timestamp: '2023-11-14T22:13:20Z', component: { name: 'cadre', version: '1.1.0' } },
    })
    const purls = ['pkg:npm/%40s/b@2.0.0', 'pkg:npm/a@1.0.0', 'pkg:npm/c@1.5.0', 'pkg:npm/c@2.0.0']
    expect(bill.components.map(({ purl }: { purl: string }) => purl)).toEqual(purls)
    expect(bill.components[0]).toMatchObject({
      name: '@s/b',
      version: '2.0.0',
      licenses: [{ expression: 'ISC' }],
      hashes: [{ alg: 'SHA-512', content: '07'.repeat(64) }],
    })
    expect(bill.dependencies).toContainEqual({ ref: 'pkg:npm/a@1.0.0', dependsOn: ['pkg:npm/c@1.5.0'] })
  })

  test('signs only with the key that programs carry, and only files that have their sums', async () => {
    const out = await release('1.1.0')
    await expect(signFolder(out, '1.1.0', theirs, ours.key)).rejects.toThrow('no cadre would take it')
    await expect(signFolder(out, '1.2.0', ours, ours.key)).rejects.toThrow('is no release of 1.2.0')
    for (const name of [npmFileName('1.1.0'), 'added']) {
      writeFileSync(join(out, name), 'else')
      await expect(signFolder(out, '1.1.0', ours, ours.key)).rejects.toThrow(`does not have the sum of`)
    }
  })

  test('takes the private key out of the environment of what it starts', () => {
    const { privateKey, publicKey } = generateKeyPairSync('ed25519')
    const file = join(folder(), 'key.pem')
    writeFileSync(file, privateKey.export({ format: 'pem', type: 'pkcs8' }))
    const x = publicKey.export({ format: 'jwk' }).x
    for (const [name, value] of [
      ['CADRE_RELEASE_KEY_FILE', file],
      ['CADRE_RELEASE_KEY', readFileSync(file, 'utf8')],
    ] as const) {
      process.env[name] = value
      expect(givenKey()?.key).toBe(`ed25519:${x}`)
      expect(run(['env'], ROOT).toString()).not.toContain('CADRE_RELEASE_KEY')
    }
    expect(givenKey()).toBeNull()
  })

  // CADRE_SLOW_TESTS=1 bun test tests/attacks/21-release.test.ts: installs the packages and compiles twice.
  if (process.env.CADRE_SLOW_TESTS)
    test('makes the same bytes of one commit in two folders', async () => {
      const [first, second] = [folder(), folder()]
      for (const out of [first, second])
        await makeRelease(ROOT, join(out, 'release'), ['linux-x64', 'linux-arm64-musl'])
      const sums = readFileSync(join(first, 'release', SUMS), 'utf8')
      expect(sums.trim().split('\n')).toHaveLength(4)
      expect(readFileSync(join(second, 'release', SUMS), 'utf8')).toBe(sums)
      for (const name of readdirSync(join(first, 'release'))) {
        const bytes = readFileSync(join(first, 'release', name))
        for (const path of [ROOT, join(tmpdir(), 'cadre-release-')])
          expect([name, bytes.includes(path)]).toEqual([name, false])
      }
    }, 600_000)
})

describe('the documentation', () => {
  const text = readFileSync(join(ROOT, 'docs/install.md'), 'utf8')

  test('has the key that programs carry', () => {
    const x = releaseKey.slice('ed25519:'.length)
    const pem = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } }).export({
      format: 'pem',
      type: 'spki',
    })
    expect(text).toContain(pem.toString().trim())
  })

  test.skipIf(!Bun.which('openssl') || !Bun.which('sha256sum'))(
    'verifies a release by hand, and finds what was changed',
    async () => {
      const block = /```sh skip release\n(\{ head[\s\S]+?)```/.exec(text)![1]!
      const verify = (out: string) => Bun.spawnSync(['sh', '-ec', block], { cwd: out, stderr: 'pipe' })
      const ready = async () => {
        const out = await release('1.1.0')
        const x = ours.key.slice('ed25519:'.length)
        const pem = createPublicKey({ format: 'jwk', key: { kty: 'OKP', crv: 'Ed25519', x } }).export({
          format: 'pem',
          type: 'spki',
        })
        writeFileSync(join(out, 'cadre-release.pub'), pem)
        return out
      }
      const good = verify(await ready())
      expect([good.exitCode, good.stdout.toString()]).toEqual([
        0,
        expect.stringContaining(`${npmFileName('1.1.0')}: OK`),
      ])
      for (const name of [SUMS, npmFileName('1.1.0')]) {
        const out = await ready()
        edit(join(out, name), text => `${text}#\n`)
        expect(verify(out).exitCode).not.toBe(0)
      }
    },
  )
})
