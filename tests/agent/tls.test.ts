// Pinning over TLS in processes of their own: NODE_EXTRA_CA_CERTS is read when a process starts.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { certificate } from '../support/certificate.ts'
import { folder } from '../support/folder.ts'

const FETCH = join(import.meta.dir, '../../lib/agent/fetch.ts')

const PROGRAM = `
import { guardedFetch } from ${JSON.stringify(FETCH)}
const [, , certificate, key] = process.argv
const server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { cert: Bun.file(certificate), key: Bun.file(key) },
  fetch: request => new Response(request.headers.get('host')) })
const fetch = guardedFetch(
  { settings: {}, network: { allow: ['127.0.0.1'], literalOrigins: [] }, effect: 'read', signal: new AbortController().signal, log() {} },
  { lookup: async () => ['127.0.0.1'], env: {} })
for (const name of ['wiki.test', 'other.test']) {
  const line = await fetch('https://' + name + ':' + server.port + '/').then(async reply => await reply.text(),
    error => error.code + ' ' + error.sent + ' ' + error.retryable)
  console.log(line.replace(/:.*/, ''))
}
server.stop(true)
`

test('a private CA is honoured, and the certificate is still checked for the name', async () => {
  const at = folder()
  certificate(at, 'wiki.test')
  await Bun.write(join(at, 'program.ts'), PROGRAM)
  const run = (env: Record<string, string>) =>
    Bun.spawnSync([process.execPath, join(at, 'program.ts'), join(at, 'cert.pem'), join(at, 'key.pem')], {
      env: { PATH: process.env.PATH ?? '', ...env },
    }).stdout.toString()
  expect(run({ NODE_EXTRA_CA_CERTS: join(at, 'cert.pem') })).toBe('wiki.test\ncertificate no false\n')
  expect(run({})).toBe('certificate no false\ncertificate no false\n')
})
