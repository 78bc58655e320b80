// Files of any size pass in bounded memory: the agent in a process of its own, whose peak is looked at, beside a server
// that keeps nothing.

import { expect, test } from 'bun:test'
import { closeSync, ftruncateSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AgentCall, agentProcess } from '../support/agent-process.ts'
import { certificate } from '../support/certificate.ts'
import { folder } from '../support/folder.ts'
import { sink } from '../vendors/sink.ts'

/** More than the bound by itself; the rest of a gigabyte shows nothing else, and takes longer. */
const MEBIBYTES = process.env.CADRE_SLOW_TESTS === '1' ? 1024 : 256
const SIZE = MEBIBYTES * 2 ** 20

const at = folder()

// Sparse: it takes no room.
const file = openSync(join(at, 'large'), 'w')
ftruncateSync(file, SIZE)
closeSync(file)

const files = certificate(at)
const tls = { cert: readFileSync(files.cert, 'utf8'), key: readFileSync(files.key, 'utf8') }
const credentials = join(at, 'credentials.json')
writeFileSync(credentials, JSON.stringify({ client_id: 'id', client_secret: 'secret', refresh_token: 'token' }))

type Handler = AgentCall['handler']
const settingsOf = (agent: string, url: string) =>
  ({
    http: {},
    objectstore: { endpoint: url, access_key_id: 'id', secret_access_key: 'secret' },
    filestore: { base_url: url, auth_mode: 'oauth', credentials_file: credentials },
  })[agent]!

const call = (agent: string, handler: Handler, effect: AgentCall['effect'], url: string, more: object = {}) => {
  const place = agent === 'http' ? { url: `${url}/large` } : { ref: 'bucket/large' }
  const entry = { name: 'large', ...place, ...more }
  return agentProcess(
    { agent, handler, effect, settings: settingsOf(agent, url), entry, at },
    { NODE_EXTRA_CA_CERTS: files.cert },
  )
}

test.each(['http', 'objectstore', 'filestore'])(
  'down, through %s',
  async agent => {
    using server = sink(SIZE)
    const { error, peak } = await call(agent, 'source', 'read', server.url)
    expect(error).toBeUndefined()
    const written = Bun.file(join(at, 'files/phase/large'))
    expect(written.size).toBe(SIZE)
    await written.delete()
    expect(peak).toBeLessThan(200)
  },
  120_000,
)

test.each([
  ['http', 'once', { file: 'large' }, false],
  ['http', 'once', { file: 'large' }, true],
  ['http', 'idempotent', { file: 'large', method: 'PUT' }, true],
  ['objectstore', 'idempotent', { file: 'large' }, false],
  ['objectstore', 'idempotent', { file: 'large' }, true],
  ['filestore', 'once', { file: 'large' }, false],
  ['filestore', 'once', { file: 'large' }, true],
] as const)(
  'up, through %s (%s, %j), TLS: %p',
  async (agent, effect, more, secure) => {
    using server = sink(SIZE, secure ? tls : undefined)
    const { error, peak } = await call(agent, 'target', effect, server.url, more)
    expect(error).toBeUndefined()
    expect(server.taken).toBe(SIZE)
    if (agent !== 'http') expect(server.parts).toBe(SIZE / 2 ** 23)
    expect(peak).toBeLessThan(200)
  },
  120_000,
)
