// SFTP version 3 over the stdin and stdout of `ssh -s HOST sftp`. A path is the bytes of a field of a packet, so no
// character of a name has a meaning, and nothing that the other side answers becomes a name or a command here. No text
// of the other side is repeated either: its errors are codes.
//
// https://datatracker.ietf.org/doc/html/draft-ietf-secsh-filexfer-02
// https://github.com/openssh/openssh-portable/blob/master/PROTOCOL (extensions)

import { stat } from 'node:fs/promises'
import type { AgentContext } from '../agent/agent-context.ts'
import { AgentError } from '../agent/core/agent-error.ts'
import { chunksIn, streamOf } from '../stream.ts'
import { endTurn } from '../turns.ts'
import { remoteOf, type SshSettings, startSsh } from './ssh.ts'

const VERSION = 3
/** Types of packets. */
const SENT = { init: 1, open: 3, close: 4, read: 5, write: 6, remove: 13, stat: 17, rename: 18, extended: 200 } as const
const GOT = { version: 2, status: 101, handle: 102, data: 103, attributes: 105 } as const
/** Flags of `open`. */
const [READ, WRITE, CREATE, TRUNCATE] = [0x01, 0x02, 0x08, 0x10]
/** Flags of the fields that attributes have. */
const HAS = { size: 0x1, owner: 0x2, permissions: 0x4 }
const NONE = 0
/** The bits of permissions that say what a file is, and those of a folder; POSIX. */
const [KIND, FOLDER] = [0o170000, 0o040000]
const [DONE, END] = [0, 1]

/** Bytes of one read or write: every server takes as many. */
const CHUNK = 32_768
/** Requests that wait for their answers, so that a file takes the bandwidth of a line and not its delay: 2 MiB. */
const WINDOW = 64
/** OpenSSH sends and takes no larger packet. */
const LARGEST = 256 * 1024

/** What a status means, in our own words. */
const MEANINGS: Readonly<Record<number, readonly [words: string, code: string]>> = {
  2: ['there is no such file or folder', 'not_found'],
  3: ['permission denied', 'forbidden'],
  4: ['the host refused it', 'rejected'],
  8: ['the host does not support it', 'rejected'],
}

type Field = number | bigint | string | Uint8Array
interface Reply {
  type: number
  /** Without type and id. */
  body: Buffer
}

/** An open connection. Paths are relative to the user's home. */
export interface Sftp {
  /** The bytes of a file. Throws an AgentError: `not_found`, `forbidden`, `rejected`. */
  read(path: string): ReadableStream<Uint8Array>
  /** Writes a file with the permissions of `file`, and has it synced where the host can. */
  write(path: string, file: Bun.BunFile): Promise<void>
  /** Renames a file. One with the new name is replaced, where the host can do that in one step, or refused. */
  rename(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
}

/** Does `work` over a connection of its own. Throws the errors of ssh, too, and retryable ones of the network. */
export async function withSftp<T>(
  context: AgentContext<SshSettings>,
  doing: string,
  work: (sftp: Sftp) => Promise<T>,
): Promise<T> {
  const ssh = startSsh(context, doing, [...(await remoteOf(context, ['-s'])), 'sftp'])
  const words = (message: string) => `[${context.callName}] ${context.settings.host}: ${doing}: ${message}`
  const connection = connect(ssh.stdin, ssh.stdout, words)
  try {
    return await work(sftpOver(connection, await connection.negotiate(), words))
  } catch (error) {
    // What ssh says when it ends is the cause.
    if (connection.isLost()) await ssh.done()
    throw error
  } finally {
    ssh.close()
  }
}

type Connection = ReturnType<typeof connect>
type Words = (message: string) => string

/** Requests and their answers, which may come in any order. */
function connect(stdin: Bun.FileSink, stdout: ReadableStream<Uint8Array>, words: Words) {
  const waiting = new Map<number, PromiseWithResolvers<Reply>>()
  const version = Promise.withResolvers<Reply>()
  let next = 0
  let ended: unknown = null
  let lost = false
  const end = (error: unknown) => {
    ended ??= error
    version.reject(ended)
    for (const { reject } of waiting.values()) reject(ended)
    waiting.clear()
  }
  const send = (packet: Uint8Array) => {
    // When writing fails, the answers end, and that is reported.
    void Promise.resolve(stdin.write(packet))
      .then(() => stdin.flush())
      .catch(() => {})
  }
  const take = ({ type, body }: Reply) => {
    if (type === GOT.version) return version.resolve({ type, body })
    const id = body.readUInt32BE(0)
    const waits = waiting.get(id)
    if (!waits) throw broken(words, 'an answer to nothing that was asked')
    waiting.delete(id)
    waits.resolve({ type, body: body.subarray(4) })
  }
  const receive = async () => {
    let rest: Buffer = Buffer.alloc(0)
    for await (const chunk of chunksIn(stdout)) {
      rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk])
      let at = 0
      while (rest.length - at >= 4) {
        const length = rest.readUInt32BE(at)
        if (length < 5 || length > LARGEST) throw noPacket(words)
        if (rest.length - at - 4 < length) break
        take({ type: rest[at + 4]!, body: rest.subarray(at + 5, at + 4 + length) })
        at += 4 + length
      }
      rest = rest.subarray(at)
      await endTurn()
    }
    lost = true
    throw new AgentError(words('the connection ended'), { code: 'network', retryable: true, sent: 'unknown' })
  }
  version.promise.catch(() => {})
  receive().catch(end)
  return {
    isLost: () => lost,
    /** Agrees on the version, and returns the names of the host's extensions. */
    async negotiate(): Promise<ReadonlySet<string>> {
      send(packetOf(SENT.init, [VERSION]))
      const { body } = await version.promise
      if (body.readUInt32BE(0) !== VERSION) throw broken(words, `version ${body.readUInt32BE(0)} of SFTP`)
      const names = new Set<string>()
      for (let at = 4; at < body.length; ) {
        const name = fieldAt(words, body, at)
        names.add(name.toString('latin1'))
        at += 8 + name.length + fieldAt(words, body, at + 4 + name.length).length
      }
      return names
    },
    ask(type: number, ...fields: Field[]): Promise<Reply> {
      const answer = Promise.withResolvers<Reply>()
      // Whoever asked may have failed by something else before it looks at this answer, or never look at it.
      answer.promise.catch(() => {})
      if (ended !== null) {
        answer.reject(ended)
        return answer.promise
      }
      const id = next++ >>> 0
      waiting.set(id, answer)
      send(packetOf(type, [id, ...fields]))
      return answer.promise
    },
  }
}

function sftpOver({ ask }: Connection, extensions: ReadonlySet<string>, words: Words): Sftp {
  const refusal = (status: number) => {
    const [meaning, code] = MEANINGS[status] ?? [`the host answered with status ${status} of SFTP`, 'rejected']
    return new AgentError(words(meaning), { code })
  }
  /** The body of the answer, which must be of a type. */
  const bodyOf = async (type: number, asked: Promise<Reply>): Promise<Buffer> => {
    const reply = await asked
    if (reply.type === type) return reply.body
    if (reply.type !== GOT.status) throw broken(words, `a packet of type ${reply.type}`)
    throw refusal(statusOf(words, reply))
  }
  const done = async (asked: Promise<Reply>): Promise<void> => {
    const status = statusOf(words, { type: GOT.status, body: await bodyOf(GOT.status, asked) })
    if (status !== DONE) throw refusal(status)
  }
  const open = async (path: string, flags: number, ...attributes: number[]) => {
    const body = await bodyOf(GOT.handle, ask(SENT.open, path, flags, ...attributes))
    // The packet is part of a larger piece of memory, which would be kept.
    return Buffer.from(fieldAt(words, body, 0))
  }

  async function* chunksOf(path: string): AsyncGenerator<Uint8Array> {
    // A folder can be opened, and fails only when it is read.
    if (isFolder(words, await bodyOf(GOT.attributes, ask(SENT.stat, path)))) {
      throw new AgentError(words('it is a folder'), { code: 'not_found', hint: 'name one file' })
    }
    const handle = await open(path, READ, NONE)
    const asked: { offset: number; length: number; reply: Promise<Reply> }[] = []
    const read = (offset: number, length: number) => ({
      offset,
      length,
      reply: ask(SENT.read, handle, BigInt(offset), length),
    })
    try {
      // The window grows, so that a small file does not cost 64 answers.
      for (let window = 1, next = 0; ; window = Math.min(WINDOW, 2 * window)) {
        for (; asked.length < window; next += CHUNK) asked.push(read(next, CHUNK))
        const { offset, length, reply } = asked.shift()!
        const answer = await reply
        if (answer.type === GOT.status && statusOf(words, answer) === END) return
        const bytes = fieldAt(words, await bodyOf(GOT.data, reply), 0)
        if (bytes.length === 0 || bytes.length > length) throw broken(words, `${bytes.length} bytes for ${length}`)
        yield bytes
        // A host may answer with less than was asked.
        if (bytes.length < length) asked.unshift(read(offset + bytes.length, length - bytes.length))
      }
    } finally {
      // Not awaited: a host that does not answer it must not hold up the error that ends the reading.
      void ask(SENT.close, handle)
    }
  }

  return {
    read: path => streamOf(chunksOf(path)),
    async write(path, file) {
      const { mode } = await stat(file.name!)
      const handle = await open(path, WRITE | CREATE | TRUNCATE, HAS.permissions, mode & 0o777)
      const asked: Promise<void>[] = []
      let offset = 0
      for await (const chunk of chunksIn(file.stream())) {
        for (let at = 0; at < chunk.length; at += CHUNK) {
          const bytes = chunk.subarray(at, at + CHUNK)
          if (asked.length >= WINDOW) await asked.shift()
          const written = done(ask(SENT.write, handle, BigInt(offset), bytes))
          written.catch(() => {})
          asked.push(written)
          offset += bytes.length
          await endTurn()
        }
      }
      await Promise.all(asked)
      if (extensions.has('fsync@openssh.com')) await done(ask(SENT.extended, 'fsync@openssh.com', handle))
      await done(ask(SENT.close, handle))
    },
    rename(from, to) {
      const replaces = 'posix-rename@openssh.com'
      return done(extensions.has(replaces) ? ask(SENT.extended, replaces, from, to) : ask(SENT.rename, from, to))
    },
    remove: path => done(ask(SENT.remove, path)),
  }
}

/** A packet: its length, its type, and its fields. Numbers have 4 bytes, bigints 8, and texts and bytes their length. */
function packetOf(type: number, fields: readonly Field[]): Buffer {
  const parts = fields.map(field => (typeof field === 'string' ? Buffer.from(field) : field))
  const sizeOf = (part: Exclude<Field, string>) =>
    typeof part === 'number' ? 4 : typeof part === 'bigint' ? 8 : 4 + part.length
  const packet = Buffer.allocUnsafe(5 + parts.reduce((sum: number, part) => sum + sizeOf(part), 0))
  packet.writeUInt32BE(packet.length - 4, 0)
  packet[4] = type
  let at = 5
  for (const part of parts) {
    if (typeof part === 'number') packet.writeUInt32BE(part, at)
    else if (typeof part === 'bigint') packet.writeBigUInt64BE(part, at)
    else {
      packet.writeUInt32BE(part.length, at)
      packet.set(part, at + 4)
    }
    at += sizeOf(part)
  }
  return packet
}

/** The bytes of a field with a length. */
function fieldAt(words: Words, body: Buffer, at: number): Buffer {
  const length = numberAt(words, body, at)
  if (at + 4 + length > body.length) throw broken(words, 'a packet that is cut')
  return body.subarray(at + 4, at + 4 + length)
}

function numberAt(words: Words, body: Buffer, at: number): number {
  if (at + 4 > body.length) throw broken(words, 'a packet that is cut')
  return body.readUInt32BE(at)
}

function statusOf(words: Words, { body }: Reply): number {
  return numberAt(words, body, 0)
}

function isFolder(words: Words, attributes: Buffer): boolean {
  const has = numberAt(words, attributes, 0)
  if (!(has & HAS.permissions)) return false
  const at = 4 + (has & HAS.size ? 8 : 0) + (has & HAS.owner ? 8 : 0)
  return (numberAt(words, attributes, at) & KIND) === FOLDER
}

function broken(words: Words, what: string): AgentError {
  const hint = 'check that the subsystem sftp of the host is a server of SFTP version 3, such as that of OpenSSH'
  return new AgentError(words(`the host broke the protocol: it sent ${what}`), { code: 'rejected', hint })
}

function noPacket(words: Words): AgentError {
  const hint = 'a start-up file of the user there, such as .bashrc, must print nothing when no terminal is there'
  return new AgentError(words('the host sent something else than SFTP'), { code: 'rejected', hint })
}
