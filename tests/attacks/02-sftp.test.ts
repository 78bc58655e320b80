// Names of files and what another host answers are data to the ssh agent: none of them runs a command, becomes an option
// or another file. With a real sshd.

import { afterAll, describe, expect, test } from 'bun:test'
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import ssh from '../../agents/ssh.ts'
import type { AgentContext, AgentResult } from '../../lib/agent/agent-context.ts'
import type { JsonObject } from '../../lib/json.ts'
import { problems } from '../../lib/schema/schema.ts'
import { withSftp } from '../../lib/vendors/sftp.ts'
import { phaseFolder, type TestContext, testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { folder } from '../support/folder.ts'
import { hostileTexts } from '../support/hostile.ts'
import { randomFrom, seedOf } from '../support/random.ts'
import { hasSshd, type Sshd, startSshd } from '../vendors/sshd.ts'

const isThere = hasSshd()
const server = isThere ? await startSshd() : null
/** A server that answers with the bytes of this file, whatever it is asked. */
const answers = join(folder(), 'answers')
const liar = isThere ? await startSshd({ sftp: `cat ${answers}; sleep 600` }) : null
afterAll(() => Promise.all([server?.stop(), liar?.stop()]))

const begin = (sshd: Sshd, signal?: AbortSignal): TestContext =>
  testContext({
    ...{ agent: 'ssh', action: 'put', settings: sshd.settings, network: { allow: [], literalOrigins: [] } },
    ...(signal && { signal }),
  })
const call = (action: string, entry: JsonObject, { context }: TestContext): Promise<AgentResult> => {
  expect(problems(ssh.actions![action]!.entry, entry)).toEqual([])
  return ssh.actions![action]!.run(entry, context as AgentContext<never>)
}

describe.skipIf(!server)('the name of a file', () => {
  test('with a line break runs nothing on this machine', async () => {
    const t = begin(server!)
    const [there, ran] = [folder(), join(folder(), 'ran')]
    for (const name of [`x\n!touch ${ran}`, `x"\n!touch ${ran}\n"`, `x\r\n-!touch ${ran}`].map(inOneName)) {
      writeFileSync(join(t.workspace, name), 'of the file')
      await call('put', { name: 'p', ref: `${there}/`, file: name }, t)
      expect(readFileSync(join(there, name), 'utf8')).toBe('of the file')
      await call('put', { name: 'p', ref: join(there, `copy ${name}`), file: name }, t)
      await call('get', { name: 'out', ref: join(there, `copy ${name}`) }, t)
      expect(readFileSync(join(phaseFolder(t), 'out'), 'utf8')).toBe('of the file')
    }
    expect(existsSync(ran)).toBe(false)
    expect(readdirSync(there).filter(name => name.startsWith('.'))).toEqual([])
  })

  test('is its bytes there and here, whatever it is', async () => {
    const t = begin(server!)
    const names = new Set(hostileTexts(randomFrom(seedOf('02-sftp')), 60).map(inOneName))
    const there = folder()
    // One connection for all of them; the agent has one for each call.
    await withSftp(t.context as AgentContext<Sshd['settings']>, 'copy', async sftp => {
      for (const name of names) {
        const here = join(t.workspace, name)
        writeFileSync(here, `of ${name}`)
        await sftp.write(join(there, name), Bun.file(here))
        expect(await new Response(sftp.read(join(there, name))).text()).toBe(`of ${name}`.toWellFormed())
        await sftp.rename(join(there, name), join(there, `${name.slice(0, 60)}.`))
        await sftp.rename(join(there, `${name.slice(0, 60)}.`), join(there, name))
      }
    })
    expect(readdirSync(there).sort()).toEqual(readdirSync(t.workspace).sort())
    expect(names.size).toBeGreaterThan(60)
  }, 60_000)

  test('with NUL is refused', () => {
    for (const action of ['get', 'put']) {
      const entry = { name: 'p', ref: 'a\0b', ...(action === 'put' && { file: 'a' }) }
      expect(problems(ssh.actions![action]!.entry, entry).map(({ path }) => path)).toEqual(['/ref'])
    }
  })

  test('is no option of ssh, and no word for the shell of the host', async () => {
    const t = begin(server!)
    const [there, ran] = [folder(), join(folder(), 'ran')]
    writeFileSync(join(t.workspace, 'in'), 'x')
    for (const name of [`-oProxyCommand=touch ${ran}`, '--', `$(touch ${ran})`, `; touch ${ran}`].map(inOneName)) {
      await call('put', { name: 'p', ref: `${there}/${name}`, file: 'in' }, t)
      // Relative to the home of the user there, which has no such file.
      expect(await failureOf(call('get', { name: 'out', ref: `${name}/x` }, t))).toMatchObject({ code: 'not_found' })
    }
    expect(existsSync(ran)).toBe(false)
  })

  test('is shown on one line of what the agent says', async () => {
    const t = begin(server!)
    const there = folder()
    writeFileSync(join(t.workspace, 'in'), 'x')
    const { text, external } = await call('put', { name: 'p', ref: join(there, 'a\nb?c#d'), file: 'in' }, t)
    expect(text).not.toContain('\n')
    expect(external!.url).toEndWith('/a%0Ab%3Fc%23d')
    const error = await failureOf(call('get', { name: 'out', ref: join(there, 'gone\nx') }, t))
    expect(error).toMatchObject({ code: 'not_found' })
    expect(error.message).not.toContain('\n')
  })
})

describe.skipIf(!server)('a value for a command there', () => {
  test('is one word, and a name that is none or NUL is refused', async () => {
    const t = begin(server!)
    const values = hostileTexts(randomFrom(seedOf('02-ssh-values')), 200).filter(value => !value.includes('\0'))
    // All in one command: the connection is what takes time.
    const env = Object.fromEntries(values.map((value, n) => [`V${n}`, value]))
    const printed = values.map((_, n) => `printf '%s\\0' "$V${n}"`).join('\n')
    await call('capture', { name: 'out', run: printed, env }, t)
    const got = readFileSync(join(phaseFolder(t), 'out'), 'utf8').split('\0')
    expect(got.slice(0, -1)).toEqual(values.map(value => value.toWellFormed()))
    const bad = { commands: [{ name: 'c', run: 'true', env: { 'A=1; touch x; B': '1' } }] }
    expect(problems(ssh.actions!.run!.entry, bad)).not.toEqual([])
    const nul = call('capture', { name: 'out', run: 'true', env: { A: "x\0'" } }, t)
    expect(await failureOf(nul)).toMatchObject({ code: 'invalid_request', sent: 'no' })
  })
})

describe.skipIf(!server)('what the host has', () => {
  test('a link, a folder and a device are no reason to write elsewhere', async () => {
    const t = begin(server!)
    const there = folder()
    const victim = join(folder(), 'victim')
    writeFileSync(victim, 'kept')
    symlinkSync(victim, join(there, 'link'))
    mkdirSync(join(there, 'sub'))
    writeFileSync(join(t.workspace, 'in'), 'new')
    await call('put', { name: 'p', ref: join(there, 'link'), file: 'in' }, t)
    expect([readFileSync(victim, 'utf8'), lstatSync(join(there, 'link')).isFile()]).toEqual(['kept', true])
    expect((await failureOf(call('get', { name: 'out', ref: join(there, 'sub') }, t))).message).toContain('is a folder')
    expect(existsSync(join(phaseFolder(t), 'out'))).toBe(false)
  })

  test('a file of many packets, and of none, comes whole, both ways', async () => {
    const t = begin(server!)
    const there = folder()
    const bytes = crypto.getRandomValues(new Uint8Array(65_536))
    const large = Buffer.concat(Array.from({ length: 160 }, (_, n) => Buffer.from(bytes).fill(n, 0, 100)))
    for (const content of [Buffer.alloc(0), large.subarray(0, 32_768), large.subarray(0, 32_769), large]) {
      writeFileSync(join(t.workspace, 'in'), content)
      await call('put', { name: 'p', ref: join(there, 'copy'), file: 'in' }, t)
      const { data } = await call('get', { name: 'out', ref: join(there, 'copy') }, t)
      expect(data).toMatchObject({ bytes: content.length })
      expect(readFileSync(join(phaseFolder(t), 'out')).equals(content)).toBe(true)
    }
  })
})

describe.skipIf(!liar)('a host that breaks the protocol', () => {
  const packet = (...bytes: number[]) => [0, 0, 0, bytes.length, ...bytes]
  const VERSION = packet(2, 0, 0, 0, 3)
  const attributes = packet(105, 0, 0, 0, 0, 0, 0, 0, 0)
  const handle = packet(102, 0, 0, 0, 1, 0, 0, 0, 1, 65)
  const get = async (bytes: number[] | Uint8Array) => {
    writeFileSync(answers, Uint8Array.from(bytes))
    const t = begin(liar!)
    const copy = withSftp(t.context as AgentContext<Sshd['settings']>, 'get', sftp =>
      t.context.write('out', sftp.read('x')),
    )
    const error = await failureOf(copy)
    expect(existsSync(join(phaseFolder(t), 'out'))).toBe(false)
    return error
  }

  test.each<[string, number[]]>([
    ['with text', [...Buffer.from('Welcome!\n\x1b]0;victim\x07')]],
    ['with a packet of 4 GiB', [255, 255, 255, 255, 2]],
    ['with another version', packet(2, 0, 0, 0, 2)],
    ['with an extension that is cut', packet(2, 0, 0, 0, 3, 0, 0, 0, 9, 1)],
    ['with an answer to nothing', [...VERSION, ...packet(101, 0, 0, 7, 7, 0, 0, 0, 0)]],
    ['with a handle for attributes', [...VERSION, ...packet(102, 0, 0, 0, 0, 0, 0, 0, 1, 65)]],
    ['with a handle that is cut', [...VERSION, ...attributes, ...packet(102, 0, 0, 0, 1, 0, 0, 1, 0, 65)]],
    ['with no bytes, for ever', [...VERSION, ...attributes, ...handle, ...packet(103, 0, 0, 0, 2, 0, 0, 0, 0)]],
    ['with success where bytes belong', [...VERSION, ...attributes, ...handle, ...packet(101, 0, 0, 0, 2, 0, 0, 0, 0)]],
  ])('%s is an error in our own words', async (_, bytes) => {
    const error = await get(bytes)
    expect(error).toMatchObject({ code: 'rejected' })
    expect(error.message + error.hint).not.toMatch(/victim|\x1b/)
  })

  test('with more bytes than were asked writes no file', async () => {
    const data = Buffer.alloc(9 + 40_000)
    data.set([103, 0, 0, 0, 2])
    data.writeUInt32BE(40_000, 5)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    expect(await get(Buffer.concat([Buffer.from([...VERSION, ...attributes, ...handle]), length, data]))).toMatchObject(
      {
        code: 'rejected',
      },
    )
  })

  test('and says nothing at all is ended with the run', async () => {
    writeFileSync(answers, '')
    const t = begin(liar!, AbortSignal.timeout(1_500))
    expect(await failureOf(call('get', { name: 'out', ref: 'x' }, t))).toMatchObject({ code: 'aborted' })
  })
})

/** The text as a name that a file system takes. */
function inOneName(text: string): string {
  const name = text.toWellFormed().replaceAll(/[/\0]/g, '|').slice(0, 80)
  return /^\.{0,2}$/.test(name) ? `${name}_` : name
}
