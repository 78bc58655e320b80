// Where the files of a release are: beside each other in a folder, or at an address. What comes from there is bounded in
// bytes and time, and nobody has vouched for it. An address is one of https, or of http on this machine; a redirect is
// one of https, so that nobody on the way can answer instead.

import { constants } from 'node:fs'
import { open, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { slicesFrom } from '../../../agent/files/hashed-file.ts'
import { CadreError, messageOf } from '../../../error.ts'
import { sizeText } from '../../../size.ts'
import { chunksIn } from '../../../stream.ts'

/** For a file with its headers, whatever the network is like. */
const FETCH_MS = 15 * 60_000
const REDIRECTS = 5
const { O_RDONLY, O_NONBLOCK } = constants

export interface ReleaseSource {
  /** The file that was named, or null if it was the folder of a release. */
  named: string | null
  /** Where the file of the release is, for people. */
  locationOf(name: string): string
  /** The bytes of a file that is called `name`. Throws when there is none, or more than `most` bytes; a chunk may be overwritten by the next. */
  chunks(name: string, most: number): AsyncGenerator<Uint8Array, void>
}

/**
 * The release at a path or an address. It is a folder, whose address ends with `/`, or one of the files.
 * @throws `invalid_request` for an address that is not taken, and what `stat` throws for a path.
 */
export async function releaseAt(location: string, { limitMs = FETCH_MS } = {}): Promise<ReleaseSource> {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(location)) return inFolder(resolve(location))
  const url = URL.parse(location)
  if (!url || !isTaken(url)) {
    throw new CadreError(
      'invalid_request',
      `${url ? shown(url) : location} cannot be fetched: the address has to begin with https://, ` +
        'or with http:// and a loopback address, and to have no password',
    )
  }
  const named = url.pathname.slice(url.pathname.lastIndexOf('/') + 1)
  return {
    named: named === '' ? null : named,
    locationOf: name => shown(beside(url, name)),
    chunks: (name, most) => fetched(beside(url, name), most, limitMs),
  }
}

async function inFolder(path: string): Promise<ReleaseSource> {
  const isFolder = (await stat(path)).isDirectory()
  const folder = isFolder ? path : dirname(path)
  return {
    named: isFolder ? null : basename(path),
    locationOf: name => join(folder, name),
    chunks: (name, most) => read(join(folder, name), most),
  }
}

async function* read(file: string, most: number): AsyncGenerator<Uint8Array, void> {
  // A named pipe does not wait for a writer.
  const handle = await open(file, O_RDONLY | O_NONBLOCK)
  try {
    const stats = await handle.stat()
    if (!stats.isFile()) throw new CadreError('invalid_request', `${file} is not a file; nothing was changed`)
    yield* bounded(slicesFrom(handle), most, file)
  } finally {
    await handle.close()
  }
}

async function* fetched(url: URL, most: number, limitMs: number): AsyncGenerator<Uint8Array, void> {
  const signal = AbortSignal.timeout(limitMs)
  try {
    const reply = await follow(url, signal)
    yield* bounded(chunksIn(reply.body ?? new ReadableStream()), most, shown(url))
  } catch (error) {
    if (error instanceof CadreError) throw error
    const why = signal.aborted ? `it took longer than ${limitMs / 1_000} s` : messageOf(error)
    throw new CadreError('unavailable', `${shown(url)} could not be fetched: ${why}; nothing was changed`)
  }
}

async function follow(first: URL, signal: AbortSignal): Promise<Response> {
  for (let url = first, left = REDIRECTS; ; left--) {
    // The sums are those of the file as it was sent, so nothing is unpacked on the way.
    const headers = { 'accept-encoding': 'identity' }
    const reply = await fetch(url, { redirect: 'manual', signal, headers, decompress: false })
    if (reply.status === 200) return reply
    await reply.body?.cancel()
    const location = reply.headers.get('location')
    const isRedirect = [301, 302, 303, 307, 308].includes(reply.status) && location !== null
    if (!isRedirect) throw refusal(first, `the answer is ${reply.status}`)
    const next = URL.parse(location, url.href)
    if (next?.protocol !== 'https:' || !isTaken(next)) throw refusal(first, 'it leads to an address that is not https')
    if (left === 0) throw refusal(first, `it leads on more than ${REDIRECTS} times`)
    url = next
  }
}

const refusal = (url: URL, why: string) =>
  new CadreError('invalid_request', `${shown(url)} cannot be fetched: ${why}; nothing was changed`)

async function* bounded(chunks: AsyncIterable<Uint8Array>, most: number, location: string): AsyncGenerator<Uint8Array> {
  let bytes = 0
  for await (const chunk of chunks) {
    bytes += chunk.byteLength
    if (bytes > most) {
      throw new CadreError('invalid_request', `${location} is larger than ${sizeText(most)}; nothing was changed`)
    }
    yield chunk
  }
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/

function isTaken({ protocol, hostname, username, password }: URL): boolean {
  const isPlain = protocol === 'http:' && LOOPBACK.test(hostname)
  return (protocol === 'https:' || isPlain) && username === '' && password === ''
}

/** The address of another file of the release. A query, which some stores sign with, is for one file only. */
function beside(url: URL, name: string): URL {
  return url.pathname.endsWith(`/${name}`) ? url : new URL(encodeURIComponent(name), url)
}

/** An address without what may be secret in it. */
const shown = ({ origin, pathname }: URL) => origin + pathname
