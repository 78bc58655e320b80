// On a machine without DNS, behind a proxy: agents reach their vendors and what their settings name, and nothing that
// an entry names is left to the proxy before the operator says so.

import { expect, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isOriginIn } from '../../lib/agent/net/guard.ts'
import { command } from '../support/daemon.ts'
import { rawServer } from '../support/faults.ts'
import { fetcher } from '../support/fetcher.ts'
import { folder } from '../support/folder.ts'

/** No name has an address here. */
const lookup = async (host: string): Promise<string[]> => {
  throw new Error(`getaddrinfo ENOTFOUND ${host}`)
}

/** A proxy that notes whom it is asked to connect to, and connects to nobody. */
async function proxy() {
  const asked: string[] = []
  const server = await rawServer((socket, head) => {
    asked.push(/^CONNECT ([^ ]+) /.exec(head)?.[1] ?? head.split('\r\n')[0]!)
    socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n')
  })
  return { asked, url: server.url, [Symbol.dispose]: () => server[Symbol.dispose]() }
}

test('every built-in agent reaches the address of its vendor, and the one that its settings name', async () => {
  using via = await proxy()
  const home = folder()
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const account = {
    type: 'service_account',
    client_email: 'robot@acme.test',
    private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  }
  writeFileSync(join(home, 'account.json'), JSON.stringify(account), { mode: 0o600 })
  const agents = {
    filestore: { credentials_file: join(home, 'account.json') },
    wiki: { base_url: 'acme-wiki.atlassian.net', email: 'me@acme.com', api_token: 'token' },
    issues: { base_url: 'https://acme-issues.atlassian.net', email: 'me@acme.com', api_token: 'token' },
    helpdesk: { subdomain: 'acme', email: 'me@acme.com', api_token: 'token' },
    crm: { access_token: 'pat-eu1-token' },
    metrics: { api_key: 'a'.repeat(32), app_key: 'b'.repeat(40), site: 'eu' },
    git: { provider: 'github', github: { token: 'token' } },
    'git@cloud': { provider: 'bitbucket', bitbucket: { email: 'me@acme.com', api_token: 'token', workspace: 'acme' } },
    llm: { provider: 'openai', model: 'a-model', api_key: 'key' },
    'llm@other': { provider: 'anthropic', model: 'a-model', api_key: 'key' },
    objectstore: { access_key_id: 'id', secret_access_key: 'key', region: 'eu-west-1' },
  }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents }), { mode: 0o600 })
  const names = Object.keys(agents)
  const env = { HTTPS_PROXY: via.url }
  const told = await Promise.all(names.map(agent => command(['doctor', agent, '--json'], { home, env })))
  for (const { stdout } of told) expect(stdout).not.toContain('has no address')
  expect([...new Set(via.asked)].map(host => host.replace(/^[a-z0-9-]+\.s3\./, 'BUCKET.s3.')).toSorted()).toEqual([
    'BUCKET.s3.eu-west-1.amazonaws.com:443',
    'acme-issues.atlassian.net:443',
    'acme-wiki.atlassian.net:443',
    'acme.zendesk.com:443',
    'api.anthropic.com:443',
    'api.bitbucket.org:443',
    'api.datadoghq.eu:443',
    'api.github.com:443',
    'api.hubapi.com:443',
    'api.openai.com:443',
    'oauth2.googleapis.com:443',
  ])
}, 60_000)

test('another address is left to the proxy only where the operator says so, and a name of the proxy itself never', async () => {
  using via = await proxy()
  const env = { HTTP_PROXY: via.url }
  const ask = async (url: string, proxyResolves: boolean, settings: object = {}) => {
    const { fetch } = fetcher({ settings, network: { allow: [], proxyResolves }, world: { env, lookup } })
    return await fetch(url, { attempts: 1 }).then(
      ({ status }) => status,
      (error: { code: string; hint?: string }) => error,
    )
  }
  expect(await ask('http://other.test/x', false, { base_url: 'http://named.test' })).toMatchObject({
    code: 'dns',
    hint: expect.stringContaining('settings set network.proxy_resolves true'),
  })
  expect(via.asked).toEqual([])
  expect(await ask('http://named.test/x', false, { base_url: 'http://named.test' })).toBe(403)
  expect(await ask('http://other.test/x', true)).toBe(403)
  expect(via.asked).toEqual(['GET http://named.test/x HTTP/1.1', 'GET http://other.test/x HTTP/1.1'])
  for (const host of ['localhost', 'x.localhost', 'metadata.google.internal', '169.254.169.254', '127.0.0.1', '[::1]'])
    expect([host, await ask(`http://${host}/x`, true)]).toEqual([host, expect.objectContaining({ sent: 'no' })])
  expect(via.asked).toHaveLength(2)
})

test('a star in an address stands for one label and nothing else', () => {
  const isIn = (address: string, origin: string) => isOriginIn([address], origin)
  expect(isIn('https://*.s3.eu-west-1.amazonaws.com', 'https://bucket.s3.eu-west-1.amazonaws.com')).toBe(true)
  expect(isIn('https://*.store.test:9000', 'https://bucket.store.test:9000')).toBe(true)
  for (const origin of [
    'https://a.b.store.test:9000',
    'https://bucket.store.test',
    'http://bucket.store.test:9000',
    'https://store.test:9000',
    'https://bucket.store.test.evil.test:9000',
  ])
    expect([origin, isIn('https://*.store.test:9000', origin)]).toEqual([origin, false])
})

test('network.proxy_resolves is true or false', async () => {
  const home = folder()
  expect((await command(['settings', 'set', 'network.proxy_resolves', 'true'], { home })).code).toBe(0)
  const wrong = await command(['settings', 'set', 'network.proxy_resolves', 'yes'], { home })
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('expected true or false')])
})
