// Attacks by addresses: a team that was published by somebody else makes the daemon call where only the machine may. Hub,
// daemon, team and the servers that must not be reached are real.

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../support/bounded.ts'
import { type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'
import { startTestHub, type TestHub } from '../../support/hub.ts'

/** The number of targets that are tried at least. */
const AT_LEAST = 75

let hub: TestHub
let daemon: RunningDaemon

/** What must not be reached: it listens at every loopback address, and counts who comes. */
let reached: string[] = []
const inside = Bun.serve({
  hostname: '::',
  port: 0,
  fetch(request) {
    reached.push(request.url)
    return new Response('inside')
  },
})
const P = inside.port!

/** A server that may be reached as `localhost`, and sends its callers elsewhere. */
let answer: () => Response = () => new Response('outside')
const outside = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => answer() })

/** Names that a DNS server of somebody else could answer so, in a hosts file that only the daemon sees. */
const NAMES: [address: string, name: string][] = [
  ['127.0.0.1', 'loopback.names.test'],
  ['::1', 'loopback6.names.test'],
  ['10.0.0.7', 'private.names.test'],
  ['192.168.1.1', 'router.names.test'],
  ['169.254.169.254', 'metadata.names.test'],
  ['::ffff:169.254.169.254', 'mapped.names.test'],
  ['fd00:ec2::254', 'metadata6.names.test'],
  ['0.0.0.0', 'zero.names.test'],
]
/** Runs a command with another hosts file, which needs a mount namespace of its own. */
const hosts = join(folder(), 'hosts')
writeFileSync(hosts, `127.0.0.1 localhost\n${NAMES.map(([address, name]) => `${address} ${name}\n`).join('')}`)
const withNames = [
  'unshare',
  '--map-root-user',
  '--mount',
  'sh',
  '-c',
  `mount --bind ${hosts} /etc/hosts && exec "$@"`,
  'sh',
]
const hasNames = process.platform === 'linux' && Bun.spawnSync([...withNames, 'true'], { stderr: 'ignore' }).success
if (!hasNames) console.log('skipped: names that resolve to private addresses (needs a mount namespace)')

beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token }
  daemon = await spawnDaemon({ env, ...(hasNames && { through: withNames }) })
})
afterEach(() => {
  reached = []
})
afterAll(async () => {
  await daemon.stop()
  await Promise.all([hub.stop(), inside.stop(true), outside.stop(true)])
})

const allow = (entries: string[]) =>
  daemon.call('/v1/settings/set', { key: 'network.allow', value: entries }, { authorization: `Bearer ${daemon.token}` })

interface Outcome {
  url: string
  state: string
  error: { code: string; message: string } | null
}

let published = 0
/** Dispatches a published team that fetches every address, and answers what became of each. */
async function fetchAll(urls: readonly string[]): Promise<Outcome[]> {
  const team = `@admin/fetches-${++published}`
  const phases = urls.map((_, at) => ({
    name: `p${at}`,
    agent: 'http',
    sources: [{ name: 'reply', url: `{{ inputs.urls[${at}] }}` }],
    on_failure: 'continue',
  }))
  const text = JSON.stringify({ name: team, version: '1.0.0', inputs: [{ name: 'urls', type: 'list' }], phases })
  await hub.addTeam(text)
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, inputs: { urls } })
  const arrived = async () => (await daemon.post('/v1/runs/get', { run_id })).status === 200
  await until(arrived, 'the run at the daemon', 30_000)
  await daemon.ended(run_id)
  const { phases: ended } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
  return ended.map(({ state, error }: Outcome, at: number) => ({ url: urls[at]!, state, error }))
}

/** Refused by the guard, or no address that the agent takes at all. */
const REFUSED =
  /^refused: refused to connect|^invalid_url: |^invalid_request: .*url: must be an address that begins with https:/

/** Fails with every address that was not refused, and with whatever reached the inside. */
async function expectRefused(urls: readonly string[], because = REFUSED) {
  const outcomes = await fetchAll(urls)
  expect(outcomes).toHaveLength(urls.length)
  const wrong = outcomes.filter(
    ({ state, error }) => state !== 'failed' || !because.test(`${error?.code}: ${error?.message}`),
  )
  expect(wrong).toEqual([])
  expect(reached).toEqual([])
}

const at = (host: string) => `http://${host}:${P}/`

const LOOPBACK = [
  ...['127.0.0.1', '127.1', '127.0.1', '127.255.255.254', '127.0.0.1.', '0', '0.0.0.0', '0x0'],
  ...['2130706433', '0x7f000001', '0X7F.1', '0x7f.0.0.1', '0177.0.0.1', '017700000001', '0177.0x0.1', '00000177.1'],
  ...['localhost', 'LOCALHOST', 'LocalHost.', 'ｌｏｃａｌｈｏｓｔ', 'local\u00adhost', '%6c%6f%63%61lhost'],
  ...['１２７.０.０.１', '①②⑦.⓪.⓪.①', '127。0。0。1', '%31%32%37.0.0.1', '127.0.0.1\t', '127.0\n.0.1'],
  ...['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[::0001]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::127.0.0.1]'],
  ...['[::ffff:0:127.0.0.1]', '[64:ff9b::7f00:1]', '[2002:7f00:1::]', '[::1%25lo]', '[::1%lo]'],
].map(at)

const PRIVATE = [
  ...['10.0.0.1', '10.255.255.255', '172.16.0.1', '172.31.255.255', '192.168.0.1', '100.64.0.1', '100.127.255.255'],
  ...['169.254.1.1', '192.0.0.1', '192.0.2.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1'],
  ...['255.255.255.255', '0.1.2.3', '167772161', '0xa.1', '012.0.0.1', '10.1', '192.168.257'],
  ...['[fc00::1]', '[fd12:3456::1]', '[fe80::1]', '[fe80::1%25eth0]', '[fec0::1]', '[ff02::1]', '[2001:db8::1]'],
  ...['[64:ff9b:1::a00:1]', '[64:ff9b::a00:1]', '[::ffff:10.0.0.1]', '[2002:c0a8:101::1]', '[100::1]', '[2001::1]'],
].map(host => `http://${host}/`)

const METADATA = [
  ...['169.254.169.254', '2852039166', '0xA9FEA9FE', '0251.0376.0251.0376', '169.254.43518', '169.254.169.254.'],
  ...['１６９.254.169.254', '[::ffff:169.254.169.254]', '[::ffff:a9fe:a9fe]', '[::a9fe:a9fe]', '[64:ff9b::a9fe:a9fe]'],
  ...['[2002:a9fe:a9fe::1]', '[::ffff:0:169.254.169.254]', '[fd00:ec2::254]', '[fd00:0ec2:0:0:0:0:0:254]'],
  ...['[fd00:ec2::23]', '[fd20:ce::254]', '169.254.170.2', '169.254.170.23', '169.254.0.23', '168.63.129.16'],
  ...['192.0.0.192', '100.100.100.200', 'metadata.google.internal', 'METADATA.google.internal.', 'metadata'],
  ...['metadata.goog', 'instance-data', 'instance-data.ec2.internal', 'metadata.tencentyun.com'],
  ...['metadata.azure.internal'],
].map(host => `http://${host}/latest/meta-data/`)

const DISGUISED = [
  `http://example.com@127.0.0.1:${P}/`,
  `http://user:pass@example.com/`,
  `http://example.com:80@127.0.0.1:${P}/`,
  `http://127.0.0.1:${P}#@example.com/`,
  `http://127.0.0.1:${P}/?@example.com/`,
  `http://127.0.0.1:${P}\\@example.com/`,
  `http:///127.0.0.1:${P}/`,
  `http:\\\\127.0.0.1:${P}/`,
  `http:127.0.0.1:${P}/`,
  `//127.0.0.1:${P}/`,
  ` http://127.0.0.1:${P}/`,
  `https://127.0.0.1:${P}/`,
  `HTTP://127.0.0.1:${P}/`,
  `ws://127.0.0.1:${P}/`,
  `gopher://127.0.0.1:${P}/_GET%20/`,
  `dict://127.0.0.1:${P}/info`,
  `ftp://127.0.0.1:${P}/`,
  'file:///etc/hosts',
  'data:text/plain,inside',
  'unix:///var/run/docker.sock',
  'http+unix://%2Fvar%2Frun%2Fdocker.sock/',
  'blob:http://127.0.0.1/x',
  'javascript:1',
  'http://127.0.0.1:22/',
  'http://127.0.0.1:65536/',
  'http://127.0.0.1:0/',
  'http://[::1/',
  'http://',
]

test(`there are at least ${AT_LEAST} targets`, () => {
  const all = [...LOOPBACK, ...PRIVATE, ...METADATA, ...DISGUISED]
  expect(new Set(all).size).toBe(all.length)
  expect(all.length).toBeGreaterThanOrEqual(AT_LEAST)
})

test('this machine, in every spelling', () => expectRefused(LOOPBACK), 60_000)
test('private networks', () => expectRefused(PRIVATE), 60_000)
test('addresses in disguise, and other schemes', () => expectRefused(DISGUISED), 60_000)

test('metadata services, whatever the settings allow', async () => {
  const names = METADATA.map(url => new URL(url).hostname.replace(/\.$/, '')).filter(name => !name.startsWith('['))
  await allow(['0.0.0.0/0', '::/0', ...names])
  await expectRefused(METADATA, /^refused: refused to connect .* cloud metadata service, which is never allowed$/)
  await allow([])
  await expectRefused(METADATA, /^refused: refused to connect .* cloud metadata service, which is never allowed$/)
}, 60_000)

test.skipIf(!hasNames)(
  'names that lead inside',
  async () => {
    const urls = NAMES.flatMap(([, name]) => [name, `${name}.`, name.toUpperCase()]).map(at)
    await expectRefused(urls, /^refused: refused to connect .* resolves to /)
    // The setting lets a private address pass by its name, and a metadata address never.
    await allow(NAMES.map(([, name]) => name))
    const metadata = NAMES.filter(([, name]) => /metadata|mapped/.test(name)).map(([, name]) => at(name))
    await expectRefused(metadata, /cloud metadata service, which is never allowed$/)
    const [outcome] = await fetchAll([at('loopback.names.test')])
    expect(outcome).toMatchObject({ state: 'completed' })
    expect(reached).toEqual([at('loopback.names.test')])
    await allow([])
  },
  60_000,
)

describe('redirects', () => {
  const targets = [
    at('127.0.0.1'),
    at('[::1]'),
    at('2130706433'),
    at('0177.1'),
    `//127.0.0.1:${P}/`,
    `\\\\127.0.0.1:${P}/`,
    `http://localhost@127.0.0.1:${P}/`,
    `https://127.0.0.1:${P}/`,
    `gopher://127.0.0.1:${P}/`,
    'file:///etc/hosts',
    'data:text/plain,inside',
    'http://169.254.169.254/latest/meta-data/',
    'http://metadata.google.internal/',
    'http://10.0.0.1/',
  ]
  const from = `http://localhost:${outside.port}/`
  beforeAll(() => allow(['localhost']))
  afterAll(() => allow([]))

  test('the server that sends them elsewhere may be reached', async () => {
    answer = () => new Response('outside')
    expect(await fetchAll([from])).toMatchObject([{ state: 'completed' }])
  }, 60_000)

  test.each([301, 302, 303, 307, 308])(
    '%d',
    async status => {
      let next = 0
      answer = () => new Response(null, { status, headers: { location: targets[next++ % targets.length]! } })
      await expectRefused(targets.map((_, n) => `${from}?${n}`))
    },
    60_000,
  )

  test('after others that lead nowhere else', async () => {
    let hops = 0
    answer = () => {
      const last = ++hops % 3 === 0
      return new Response(null, { status: 302, headers: { location: last ? at('127.0.0.1') : '/again' } })
    }
    await expectRefused([from])
  }, 60_000)

  test('that only a browser would follow are not followed', async () => {
    const page = `<meta http-equiv="refresh" content="0;url=${at('127.0.0.1')}">`
    const headers = {
      refresh: `0;url=${at('127.0.0.1')}`,
      'content-location': at('127.0.0.1'),
      'content-type': 'text/html',
    }
    answer = () => new Response(page, { headers })
    expect(await fetchAll([from])).toMatchObject([{ state: 'completed' }])
    expect(reached).toEqual([])
  }, 60_000)
})
