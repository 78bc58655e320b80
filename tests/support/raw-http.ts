// Requests as bytes, as no client would send them. Both servers must answer them alike: with an error, or as the one
// request that they are. In none may a second request hide.

import { connect } from 'node:net'

/** A request inside of another one. Where it is taken for a request of its own, the reply is 200. */
const HIDDEN = 'GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n'

const post = (headers: string, body = '') => `POST /v1/hidden HTTP/1.1\r\nHost: 127.0.0.1\r\n${headers}\r\n\r\n${body}`
const get = (headers: string, path = '/health') => `GET ${path} HTTP/1.1\r\n${headers}\r\n\r\n`
const HOST = 'Host: 127.0.0.1'

/** What is sent, and the statuses that may answer it. None is 200, which is how a hidden request would be answered. */
export const RAW_REQUESTS: [what: string, bytes: string, statuses: number[]][] = [
  // Two lengths
  ['a length and chunks', post('Content-Length: 6\r\nTransfer-Encoding: chunked', `0\r\n\r\n${HIDDEN}`), [400]],
  ['chunks and a length', post('Transfer-Encoding: chunked\r\nContent-Length: 6', `0\r\n\r\n${HIDDEN}`), [400]],
  ['two lengths that differ', post('Content-Length: 0\r\nContent-Length: 46', HIDDEN), [400]],
  ['a list of lengths', post('Content-Length: 0, 46', HIDDEN), [400]],
  ['the same length twice', post('Content-Length: 2\r\nContent-Length: 2', '{}'), [400, 404]],
  ['a length with a sign', post('Content-Length: +0', HIDDEN), [400]],
  ['a negative length', post('Content-Length: -1', HIDDEN), [400]],
  ['a length in hexadecimal', post('Content-Length: 0x0', HIDDEN), [400]],
  ['a length beyond all numbers', post(`Content-Length: ${'9'.repeat(30)}`, HIDDEN), [400, 404, 413]],
  ['a length of 2^64', post('Content-Length: 18446744073709551616', HIDDEN), [400, 404, 413]],
  ['a length with a fraction', post('Content-Length: 0.0', HIDDEN), [400]],
  ['an empty length', post('Content-Length:', HIDDEN), [400]],
  ['a space before the colon of a length', post('Content-Length : 0', HIDDEN), [400]],
  ['a space before the colon of the encoding', post('Transfer-Encoding : chunked', `0\r\n\r\n${HIDDEN}`), [400]],
  // Encodings
  ['an unknown encoding', post('Transfer-Encoding: xchunked', `0\r\n\r\n${HIDDEN}`), [400]],
  ['chunks that are not last', post('Transfer-Encoding: chunked, identity', `0\r\n\r\n${HIDDEN}`), [400]],
  ['no encoding by name', post('Transfer-Encoding: identity\r\nContent-Length: 0', HIDDEN), [400]],
  ['two encodings', post('Transfer-Encoding: chunked\r\nTransfer-Encoding: x', `0\r\n\r\n${HIDDEN}`), [400]],
  ['a vertical tab before the encoding', post('Transfer-Encoding: \x0bchunked', `0\r\n\r\n${HIDDEN}`), [400]],
  ['a chunk of negative size', post('Transfer-Encoding: chunked', `-1\r\n{}\r\n0\r\n\r\n`), [400, 404]],
  ['a chunk of 2^64 bytes', post('Transfer-Encoding: chunked', `10000000000000000\r\n{}\r\n0\r\n\r\n`), [400, 404]],
  ['a chunk that is longer than it says', post('Transfer-Encoding: chunked', `2\r\n{}${HIDDEN}`), [400, 404]],
  ['chunks between bare line feeds', post('Transfer-Encoding: chunked', `2\n{}\n0\n\n`), [400, 404]],
  // Lines
  ['a folded header', post('X: a\r\n b\r\nContent-Length: 0'), [400]],
  ['a folded encoding', post('Transfer-Encoding:\r\n chunked', `0\r\n\r\n${HIDDEN}`), [400]],
  ['bare line feeds', `GET /health HTTP/1.1\nHost: 127.0.0.1\n\n`, [400, 505]],
  ['a bare line feed in a header', get(`${HOST}\r\nX: a\nY: b`), [400]],
  ['a bare carriage return in a header', get(`${HOST}\r\nX: a\rY: b`), [400]],
  ['NUL in a header', get(`${HOST}\r\nX: a\0b`), [400]],
  ['NUL in a path', get(HOST, '/health\0'), [400, 404, 505]],
  ['a space in the name of a header', get(`${HOST}\r\nX Y: a`), [400]],
  ['a header without a colon', get(`${HOST}\r\nX`), [400]],
  ['a header without a name', get(`${HOST}\r\n: a`), [400]],
  // Hosts and targets
  ['no Host', get('X: a', '/v1/hidden'), [400]],
  ['two Hosts', get(`${HOST}\r\nHost: other.example`, '/v1/hidden'), [400, 403, 404]],
  ['an absolute target', get(HOST, 'http://other.example/v1/hidden'), [400, 404]],
  ['a target that begins with two slashes', get(HOST, '//other.example/health'), [400, 404]],
  ['a target without a slash', get(HOST, 'health'), [400, 404]],
  ['a target of dots', get(HOST, '/v1/../../etc/passwd'), [400, 404]],
  ['a target of encoded dots', get(HOST, '/v1/%2e%2e%2f%2e%2e%2fetc/passwd'), [400, 404]],
  ['a target with a broken escape', get(HOST, '/v1/%zz'), [400, 404]],
  ['every target', `OPTIONS * HTTP/1.1\r\n${HOST}\r\n\r\n`, [400, 404, 405]],
  // Methods and versions
  ['CONNECT', `CONNECT 127.0.0.1:22 HTTP/1.1\r\n${HOST}\r\n\r\n`, [400, 404, 405]],
  ['TRACE', `TRACE /health HTTP/1.1\r\n${HOST}\r\n\r\n`, [400, 404, 405]],
  ['a method in lower case', `get /health HTTP/1.1\r\n${HOST}\r\n\r\n`, [400, 404, 405]],
  ['a method that does not exist', `FROB /health HTTP/1.1\r\n${HOST}\r\n\r\n`, [400, 404, 405]],
  ['HTTP/0.9', 'GET /health\r\n', [400, 505]],
  ['HTTP/1.0 without a Host', 'POST /v1/hidden HTTP/1.0\r\n\r\n', [400, 404]],
  ['HTTP/2 without being asked', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', [400, 505]],
  ['HTTP/9.9', `GET /health HTTP/9.9\r\n${HOST}\r\n\r\n`, [400, 505]],
  ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n', [400]],
  ['an upgrade to a web socket', get(`${HOST}\r\nConnection: Upgrade\r\nUpgrade: websocket`, '/v1/hidden'), [400, 404]],
  ['an upgrade to HTTP/2', get(`${HOST}\r\nConnection: Upgrade\r\nUpgrade: h2c`, '/v1/hidden'), [400, 404]],
  // Sizes
  ['a header of 1 MiB', get(`${HOST}\r\nX: ${'a'.repeat(1 << 20)}`), [400, 431]],
  ['ten thousand headers', get(`${HOST}\r\n${'X: a\r\n'.repeat(10_000)}Y: b`), [400, 431]],
  ['a path of 1 MiB', get(HOST, `/${'a'.repeat(1 << 20)}`), [400, 404, 414, 431]],
]

/** Time for a second reply to come. */
const SETTLE_MS = 100
const PATIENCE_MS = 5_000

/**
 * The statuses of all replies to these bytes on one connection. There is none when the server closes it instead, and a
 * second one when a body turns out to be wrong after the reply.
 */
export async function rawReplies(url: string, bytes: string): Promise<number[]> {
  const { port } = new URL(url)
  const socket = connect(Number(port), '127.0.0.1')
  let told = ''
  const first = Promise.withResolvers<void>()
  socket.on('data', data => {
    told += data.toString('latin1')
    first.resolve()
  })
  // A server that has refused the head closes while the rest still arrives.
  socket.on('error', () => {})
  socket.on('close', () => first.resolve())
  socket.write(Buffer.from(bytes, 'latin1'))
  await Promise.race([first.promise, Bun.sleep(PATIENCE_MS)])
  await Bun.sleep(SETTLE_MS)
  socket.destroy()
  return [...told.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
}
