import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Type } from 'typebox'
import { type Agent, agent, secret } from '../../lib/agent/define.ts'
import { CadreError } from '../../lib/error.ts'
import type { Json } from '../../lib/json.ts'
import { groupMembers, startOf } from '../../lib/program/process.ts'
import { openSettings, type Settings, type SettingsOptions } from '../../lib/settings/settings.ts'
import { whyUntrusted } from '../../lib/settings/trust.ts'
import { folder } from '../support/folder.ts'

const noop = { effect: 'read' as const, entry: Type.Object({}), run: async () => ({ text: '' }) }
const wiki = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Wiki.',
  settings: Type.Object({
    base_url: Type.String(),
    email: Type.String(),
    api_token: secret(),
    label: Type.Optional(secret()),
  }),
  source: noop,
})
const email = agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Mail.',
  settings: Type.Object({
    smtp_host: Type.String(),
    smtp_port: Type.Integer({ default: 587 }),
    tls: Type.Boolean({ default: true }),
    password: Type.Optional(secret()),
    channels: Type.Record(Type.String(), Type.Union([secret(), Type.Object({ webhook_url: secret() })])),
    provider: Type.Optional(Type.Object({ name: Type.Optional(Type.String()) })),
  }),
  missing: ({ provider }) => (provider && !provider.name ? ['provider.name'] : []),
  source: noop,
})
const known: Record<string, Agent> = { wiki, email }
const agents = { get: (reference: string) => known[reference.split('@')[0]!], names: () => Object.keys(known) }

async function opened(yaml?: string, options: Partial<SettingsOptions> = {}) {
  const home = folder()
  const file = join(home, 'settings.yml')
  if (yaml !== undefined) writeFileSync(file, yaml, { mode: 0o600 })
  const warnings: string[] = []
  const settings = await openSettings(home, { log: { warn: event => warnings.push(event) }, env: {}, ...options })
  return { home, file, settings, warnings }
}

async function refusal(work: () => unknown): Promise<CadreError> {
  try {
    await work()
  } catch (error) {
    if (error instanceof CadreError) return error
    throw error
  }
  throw new Error('expected a refusal')
}

describe('the file', () => {
  test('is made with mode 0600, whole, and keeps what people wrote in it', async () => {
    const { home, file, settings } = await opened('# ours\nagents:\n  wiki:\n    email: a@b.test # hers\n')
    await settings.set('agents.wiki.api_token', 'tok-1')
    await settings.set('agents.wiki@eu.base_url', 'https://eu.test')
    const text = readFileSync(file, 'utf8')
    expect(text).toContain('# ours')
    expect(text).toContain('a@b.test # hers')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(home)).toEqual(['settings.yml'])
    const again = await openSettings(home, { log: { warn() {} }, env: {} })
    expect(again.value('agents.wiki.api_token')).toBe('tok-1')
    expect(again.value('agents.wiki@eu.base_url')).toBe('https://eu.test')
  })

  test('in an empty home there are no settings, and no file until one is set', async () => {
    const { file, settings } = await opened()
    expect(settings.list(agents)).toEqual([])
    expect(existsSync(file)).toBe(false)
    await settings.set('sync', 'status')
    expect(readFileSync(file, 'utf8')).toBe('sync: status\n')
  })

  test('that others may read is closed to them, with a warning', async () => {
    const home = folder()
    const file = join(home, 'settings.yml')
    writeFileSync(file, 'sync: full\n')
    chmodSync(file, 0o644)
    const warnings: unknown[] = []
    await openSettings(home, { log: { warn: (...warning) => warnings.push(warning) }, env: {} })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(warnings).toHaveLength(1)
  })

  test('that is no YAML is refused with its place and without its text', async () => {
    const error = await refusal(() => opened('agents:\n  wiki: {api_token: s3cret-value\n'))
    expect(error.code).toBe('invalid_request')
    expect(error.message).toMatch(/settings\.yml:\d+:\d+: this is not valid YAML: /)
    expect(error.message).not.toContain('s3cret-value')
    expect((await refusal(() => opened('- a\n'))).message).toContain('expected a mapping')
  })

  test('changes at once are all kept', async () => {
    const { home, settings } = await opened()
    await Promise.all(Array.from({ length: 20 }, (_, n) => settings.set(`agents.email.channels.c${n}`, `v${n}`)))
    const again = await openSettings(home, { log: { warn() {} }, env: {} })
    expect(Object.keys(again.value('agents.email.channels') as object)).toHaveLength(20)
  })

  test('null removes; a mapping replaces a value that is in its way', async () => {
    const { settings } = await opened('agents: {email: {channels: none}}\n')
    await settings.set('agents.email.channels.ops', 'https://hook.test')
    expect(settings.value('agents.email.channels')).toEqual({ ops: 'https://hook.test' })
    await settings.set('agents.email.channels.ops', null)
    expect(settings.value('agents.email.channels.ops')).toBeUndefined()
  })
})

describe('keys and values', () => {
  test.each([
    'nothing',
    'agents',
    'agents.wiki',
    'agents..x',
    'agents.Wiki.x',
    'agents.wiki.__proto__',
    'network.deny',
    'hub.ur',
    'secrets',
    'secrets.1st',
    'secrets.db.team',
    'secrets.db.teams.first',
    'agents.wiki.api_tokn',
    'agents.email.provider.nme',
    'agents.wiki. x',
    'agents.gone.smtp_port',
  ])('%s is refused', async key => {
    const { file, settings } = await opened()
    const error = await refusal(() => settings.set(key, 'x', agents))
    expect(error.code).toBe('invalid_request')
    expect(error.details?.[0]?.path).toBe(key)
    expect(existsSync(file)).toBe(false)
  })

  test('a misspelt key or agent is told what was meant, and can be removed', async () => {
    const { settings } = await opened('agents: {wicki: {email: a@b.test}, wiki: {api_tokn: x}}\n')
    const said = async (key: string) => (await refusal(() => settings.set(key, 'x', agents))).message
    expect(await said('agents.wiki.api_tokn')).toContain('`api_token`')
    expect(await said('agents.wicki@eu.email')).toBe(
      'setting agents.wicki@eu.email: there is no agent wicki@eu (did you mean `wiki`?); there are wiki, email',
    )
    const skipped = [{ file: '/home/agents/wicki.ts', reason: 'wicki.ts:1: Unexpected end of file' }]
    const [broken] = settings.unknown({ ...agents, skipped })
    expect(broken!.message).toEndWith('the agent wicki cannot be used: wicki.ts:1: Unexpected end of file')
    await settings.set('agents.wicki', null, agents)
    await settings.set('agents.wiki.api_tokn', null, agents)
    expect(settings.unknown(agents)).toEqual([])
  })

  test.each([
    ['sync', 'some'],
    ['network.allow', 'http://x.test'],
    ['network.allow', ['10.0.0.0/40']],
    ['network.allow', 5],
    ['packages.trust', ['acme']],
    ['packages.trust', ['@acme/team']],
    ['packages.trust', [`ed25519:${'A'.repeat(42)}`]],
    ['packages.trust', [`ed25519:${'A'.repeat(42)}B`]],
    ['packages.trust', ['${env:TRUST}']],
    ['packages.trust', { scopes: ['@acme'] }],
    ['hub.api_key', 7],
    ['agents.wiki.email', ''],
    ['hub.url', 'hub.example.com'],
    ['hub.realm_token', 'cadre_tok_x'],
    ['secrets.db', ''],
    ['secrets.db', { value: 'x', team: ['@acme/a'] }],
    ['secrets.db', { value: ['x'] }],
    ['secrets.db', ['x']],
    ['secrets.db', { value: 'x', teams: '@acme/a' }],
    ['secrets.db.teams', ['acme/a']],
    ['secrets.db.value', { a: 1 }],
  ])('%s = %j is refused', async (key, value) => {
    const { settings } = await opened()
    expect((await refusal(() => settings.set(key, value))).code).toBe('invalid_request')
  })

  test.each([
    ['agents.email.smtp_port', 'x', 'must be an integer'],
    ['agents.email.provider.name', '${evn:NAME}', 'a reference must be ${env:NAME}, ${file:/path}, '],
    ['secrets.db', '${env:}', 'a reference must be ${env:NAME}, '],
    ['network.allow', '10.0.0.0/8, 999.1.1.1', '"999.1.1.1" must be a CIDR, an address or a host name'],
    ['agents.email@eu.smtp_port', '2.5', 'must be an integer'],
    ['agents.email.smtp_port', { port: 25 }, 'must be an integer'],
    ['agents.email.tls', 'maybe', 'must be true or false'],
    ['agents.email.provider.name', { a: 1 }, 'must be a string'],
    ['agents.email.provider', { name: ['a'] }, 'name must be a string'],
    ['agents.email.provider', 'none', 'must be an object'],
    ['agents.email.channels.ops', 5.5, 'must be a string or an object'],
    ['agents.email.channels', { ops: ['a'] }, 'ops must be a string or an object'],
    [
      'agents.email.channels',
      'https://hook.test/x',
      'must be an object: set agents.email.channels.NAME, each by its name',
    ],
    ['agents.email.chanels.ops', 'https://hook.test/x', 'channels.NAME, provider (did you mean `channels`?)'],
  ])('%s = %j is refused with what is expected: %s', async (key, value, expected) => {
    const { file, settings } = await opened()
    const error = await refusal(() => settings.set(key, value as Json, agents))
    expect(error.status).toBe(400)
    expect(error.message).toStartWith(`setting ${key}: `)
    expect(error.message).toContain(expected)
    expect(existsSync(file)).toBe(false)
  })

  test.each([
    ['agents.email.smtp_port', '2525'],
    ['agents.email@eu.smtp_port', 2525],
    ['agents.email.smtp_port', '${env:PORT}'],
    ['agents.email.tls', 'false'],
    ['agents.email.channels.ops', 'https://hook.test/x'],
    ['agents.email.channels.ops', { webhook_url: 'https://hook.test/x' }],
    ['agents.email.channels.ops.webhook_url', '${file:/a}'],
    ['agents.email.channels', '{"ops": "https://hook.test/x"}'],
    ['hub.url', 'https://hub.example.com'],
    ['hub.realm_token', '${cmd:op read op://cadre/realm}'],
    ['secrets.db', 'x'],
    ['secrets.db.value', '${env:DB}'],
    ['secrets.db.teams', ['@acme/*']],
  ])('%s = %j is taken', async (key, value) => {
    const { settings } = await opened()
    await settings.set(key, value, agents)
    expect(settings.list(agents)).toHaveLength(1)
  })

  test('network.allow takes a list, or a line of them', async () => {
    const { settings } = await opened()
    await settings.set('network.allow', '10.0.0.0/8, wiki.corp')
    expect(settings.network().allow).toEqual(['10.0.0.0/8', 'wiki.corp'])
    await settings.set('network.allow', ['fd00::/8'])
    expect(settings.network().allow).toEqual(['fd00::/8'])
  })

  test('packages.trust takes a list of scopes and keys, or a line of them; none is a list, too', async () => {
    const { settings } = await opened()
    expect(settings.packageTrust()).toBeUndefined()
    const key = `ed25519:${'A'.repeat(43)}`
    await settings.set('packages.trust', `@acme, ${key}`)
    expect(settings.packageTrust()).toEqual(['@acme', key])
    expect(settings.get('packages.trust', agents).value).toEqual(['@acme', key])
    await settings.set('packages.trust', [])
    expect(settings.packageTrust()).toEqual([])
    await settings.set('packages.trust', null)
    expect(settings.packageTrust()).toBeUndefined()
  })
})

test.each([
  'packages: {trust: }',
  'packages: {trust: "@acme"}',
  'packages: {trust: ["@acme", acme]}',
  'packages: {trust: "${env:LIST}"}',
  'packages: {trust: ["@acme", "${env:KEY}"]}',
  'packages: {trsut: ["@acme"]}',
  'packages: ["@acme"]',
])('no package is run while the file says %s, and it is told', async text => {
  const { settings } = await opened(`${text}\n`, { env: { LIST: '["@acme"]', KEY: '@other' } })
  const content = { name: '@acme/t', version: '1.0.0', sha256: '0'.repeat(64) }
  expect(whyUntrusted(settings.packageTrust(), content, null)).toContain('@acme/t@1.0.0 is not run: packages.trust')
  expect(settings.unknown({ ...agents, names: () => [] })).toHaveLength(1)
})

describe("an agent's settings", () => {
  test('all that is missing is told at once, with how to set it', async () => {
    const { settings } = await opened('agents: {wiki: {email: a@b.test}}\n')
    expect(settings.problems('wiki', wiki)).toEqual([
      {
        path: 'agents.wiki.base_url',
        message: 'agents.wiki.base_url is not set; set it with: bun daemon.ts settings set agents.wiki.base_url -',
      },
      {
        path: 'agents.wiki.api_token',
        message: 'agents.wiki.api_token is not set; set it with: bun daemon.ts settings set agents.wiki.api_token -',
      },
    ])
    expect(settings.problems('wiki@eu', wiki).map(({ path }) => path)).toContain('agents.wiki@eu.email')
    expect(settings.problems('email', email).map(({ message }) => message)).toContain(
      'agents.email.channels is not set; set it with: bun daemon.ts settings set agents.email.channels.NAME -',
    )
    const error = await refusal(() => settings.of('wiki', wiki))
    expect(error.status).toBe(400)
    expect(error.details).toHaveLength(2)
  })

  test('texts become the declared types, defaults are filled in', async () => {
    const { settings } = await opened(
      'agents: {email: {smtp_host: h, smtp_port: "2525", tls: "false", password: 0123, channels: {}}}\n',
    )
    expect(await settings.of('email', email)).toEqual({
      smtp_host: 'h',
      smtp_port: 2525,
      tls: false,
      password: '0123',
      channels: {},
    })
    await settings.set('agents.email.smtp_port', null)
    expect(await settings.of('email', email)).toMatchObject({ smtp_port: 587 })
  })

  test('each call gets a copy of its own, of the values as they are now', async () => {
    const lists = agent({ ...wiki, settings: Type.Object({ names: Type.Array(Type.String()) }) })
    const { settings, file } = await opened('agents: {lists: {names: [a]}}\n')
    const names = async () => (await settings.of('lists', lists)).names as string[]
    ;(await names()).push('mine')
    expect(await names()).toEqual(['a'])

    await settings.set('agents.lists.names', ['b'])
    expect(await names()).toEqual(['b'])
    writeFileSync(file, 'agents: {lists: {names: 7}}\n')
    await settings.reload()
    expect(settings.problems('lists', lists)).toHaveLength(1)
    expect((await refusal(() => settings.of('lists', lists))).message).toContain('agents.lists.names')

    // The same settings for an agent that was changed.
    const changed = agent({ ...wiki, settings: Type.Object({ names: Type.Integer() }) })
    expect(await settings.of('lists', changed)).toEqual({ names: 7 })
  })

  test('what cannot be the declared type is a problem of its own place', async () => {
    const { settings } = await opened('agents: {email: {smtp_host: h, smtp_port: many, channels: {}}}\n')
    expect(settings.problems('email', email).map(({ path }) => path)).toEqual(['agents.email.smtp_port'])
  })

  test('what is required because of another value', async () => {
    const { settings } = await opened('agents: {email: {smtp_host: h, channels: {}, provider: {}}}\n')
    expect(settings.problems('email', email).map(({ path }) => path)).toEqual(['agents.email.provider.name'])
  })
})

describe("an agent's own judgement of its settings", () => {
  const judging = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Judges.',
    settings: Type.Object({
      base_url: Type.String(),
      email: Type.Optional(Type.String()),
      api_token: secret(),
      group: Type.Optional(Type.Object({ site: Type.Optional(Type.String()) })),
    }),
    check: ({ base_url, email, api_token, group }) => ({
      base_url: base_url?.includes('/browse/') && `must be the site alone: write ${new URL(base_url).origin}`,
      email: email?.endsWith('/token') && `must be the address alone: write ${email.slice(0, -6)}`,
      api_token: api_token?.startsWith('{') && `must be a token, not ${api_token}`,
      'group.site': group?.site === 'EU' && 'must be a host name: write eu1.test',
    }),
    source: noop,
  })
  const agents = { get: () => judging, names: () => ['judging'] }
  const good = 'base_url: https://a.test, api_token: tok-123456'
  const said = async (yaml: string, options = {}) => {
    const { settings } = await opened(`agents: {judging: {${yaml}}}\n`, options)
    return settings.problems('judging', judging).map(({ message }) => message)
  }

  test('is told with the key and what to write, beside all that the schema finds', async () => {
    expect(await said(good)).toEqual([])
    expect(await said('base_url: "https://a.test/browse/X-1", email: me@x.test/token, group: {site: EU}')).toEqual([
      'agents.judging.api_token is not set; set it with: bun daemon.ts settings set agents.judging.api_token -',
      'agents.judging.base_url must be the site alone: write https://a.test',
      'agents.judging.email must be the address alone: write me@x.test',
      'agents.judging.group.site must be a host name: write eu1.test',
    ])
    const { settings } = await opened('agents: {judging: {base_url: https://a.test/browse/X-1, api_token: tok-123456}}')
    expect((await refusal(() => settings.of('judging', judging))).details).toHaveLength(1)
  })

  test('sees neither values of another form nor references, and shows no secret', async () => {
    expect(await said('base_url: [1], api_token: tok-123456')).toHaveLength(1)
    expect(await said('base_url: "${cmd:echo /browse/}", api_token: tok-123456')).toEqual([])
    expect(
      await said('base_url: "${env:SITE}", api_token: tok-123456', { env: { SITE: 'https://a.test/browse/X' } }),
    ).toEqual(['agents.judging.base_url must be the site alone: write https://a.test'])
    expect((await said("base_url: https://a.test, api_token: '{canary-token}'")).join()).toMatch(/^((?!canary).)+$/)
  })

  test('refuses the value that is set, and no other', async () => {
    const { settings } = await opened('agents: {judging: {email: me@x.test/token}}\n')
    const error = await refusal(() => settings.set('agents.judging.base_url', 'https://a.test/browse/X-1', agents))
    expect(error.message).toBe('setting agents.judging.base_url must be the site alone: write https://a.test')
    expect(error.details).toEqual([
      { path: 'agents.judging.base_url', message: 'must be the site alone: write https://a.test' },
    ])
    expect((await refusal(() => settings.set('agents.judging.group', { site: 'EU' }, agents))).code).toBe(
      'invalid_request',
    )
    await settings.set('agents.judging.base_url', 'https://a.test', agents)
    await settings.set('agents.judging.api_token', 'tok-123456', agents)
  })

  test('that throws is the fault of the agent, and not of the settings beside it', async () => {
    const broken = { ...judging, check: () => JSON.parse('{') }
    const { settings } = await opened(`agents: {judging: {${good}}}\n`)
    expect(settings.problems('judging', broken)[0]!.message).toContain("because the agent's check failed")
  })

  test('credentials go over http to this machine only', async () => {
    for (const url of ['http://127.0.0.1:8080', 'http://localhost', 'http://[::1]:1', 'https://a.test']) {
      expect(await said(`base_url: "${url}", api_token: tok-123456`)).toEqual([])
    }
    expect(await said('base_url: "http://jira.acme.test/x/", api_token: tok-123456')).toEqual([
      'agents.judging.base_url must begin with https://, because http:// shows api_token to everybody on the way: write https://jira.acme.test/x',
    ])
    const { settings } = await opened('agents: {judging: {api_token: tok-123456}}\n')
    const error = await refusal(() => settings.set('agents.judging.base_url', 'http://10.0.0.1', agents))
    expect(error.message).toContain('must begin with https://')
  })
})

describe('references', () => {
  const YAML = `agents:
  wiki: {base_url: 'https://w.test', email: "\${env:MAIL}", api_token: "\${keychain:wiki}", label: "\${file:FILE}"}
`
  test('are resolved, shown as they are, and their values known as secrets', async () => {
    const file = join(folder(), 'label')
    writeFileSync(file, 'label-of-file\n')
    const keychain = async (name: string) => (name === 'wiki' ? 'from-keychain' : null)
    const { settings } = await opened(YAML.replace('FILE', file), { env: { MAIL: 'a@b.test' }, keychain })
    expect(await settings.of('wiki', wiki)).toEqual({
      base_url: 'https://w.test',
      email: 'a@b.test',
      api_token: 'from-keychain',
      label: 'label-of-file',
    })
    expect(settings.get('agents.wiki.api_token', agents)).toEqual({
      key: 'agents.wiki.api_token',
      value: '${keychain:wiki}',
    })
    expect(settings.secrets(agents)).toEqual([
      { name: 'agents.wiki.api_token', value: 'from-keychain' },
      { name: 'agents.wiki.label', value: 'label-of-file' },
    ])
  })

  test('that lead nowhere are problems, one a key, that say why', async () => {
    const { settings } = await opened(YAML.replace('FILE', '/nowhere/at/all'), { keychain: async () => null })
    const problems = settings.problems('wiki', wiki)
    expect(problems.map(({ path }) => path).sort()).toEqual([
      'agents.wiki.api_token',
      'agents.wiki.email',
      'agents.wiki.label',
    ])
    expect(problems.map(({ message }) => message).join('\n')).toContain('the environment variable MAIL is not set')
  })

  test('that are misspelt in the file are problems, and no values', async () => {
    const { settings } = await opened(
      'agents: {wiki: {base_url: "https://w.test", email: a@b.test, api_token: "${evn:TOKEN}"}}\n',
    )
    expect(settings.problems('wiki', wiki)).toEqual([
      { path: 'agents.wiki.api_token', message: expect.stringContaining('a reference must be ${env:NAME}, ') },
    ])
  })
})

describe('secrets', () => {
  test('are masked by schema, by name, in get and in list', async () => {
    const { settings } = await opened(`
hub: {api_key: cadre_tok_abc}
agents:
  wiki: {base_url: 'https://w.test', api_token: tok-123456}
  email: {channels: {ops: 'https://hook.test/x', dev: {webhook_url: 'https://hook.test/y'}}}
  unknown: {client_secret: abcdefgh, project: platform, pin: hunter22hunter22, tls: true}
elsewhere: {pin: 5}
`)
    expect(settings.list(agents)).toEqual([
      { key: 'hub.api_key', value: '***' },
      { key: 'agents.wiki.base_url', value: 'https://w.test' },
      { key: 'agents.wiki.api_token', value: '***' },
      { key: 'agents.email.channels.ops', value: '***' },
      { key: 'agents.email.channels.dev.webhook_url', value: '***' },
      { key: 'agents.unknown.client_secret', value: '***' },
      { key: 'agents.unknown.project', value: '***' },
      { key: 'agents.unknown.pin', value: '***' },
      { key: 'agents.unknown.tls', value: '***' },
      { key: 'elsewhere.pin', value: '***' },
    ])
    expect(settings.get('agents.unknown.project', agents).value).toBe('***')
    expect(settings.get('agents', agents).value).toMatchObject({ unknown: { project: '***', tls: '***' } })
    expect(settings.get('agents.wiki', agents).value).toEqual({ base_url: 'https://w.test', api_token: '***' })
    expect(settings.secrets(agents).map(({ value }) => value)).toEqual([
      'cadre_tok_abc',
      'tok-123456',
      'https://hook.test/x',
      'https://hook.test/y',
      'abcdefgh',
      // What looks like a credential; `platform` stays a word in what runs record.
      'hunter22hunter22',
    ])
    expect((await refusal(() => settings.get('agents.wiki.email', agents))).code).toBe('not_found')
  })

  test('in a credentials file that a setting names', async () => {
    const file = join(folder(), 'service.json')
    writeFileSync(file, JSON.stringify({ private_key: 'key-material', client_email: 'x@y.test' }))
    const { settings } = await opened(`agents: {filestore: {credentials_file: '${file}'}}\n`)
    expect(settings.secrets(agents).map(({ value }) => value)).toEqual(['key-material'])
    expect(settings.get('agents.filestore.credentials_file', agents).value).toBe(file)
  })
})

describe('a command', () => {
  /** Settings whose token comes from a command that counts how often it runs. */
  async function counting(options: Partial<SettingsOptions> = {}) {
    const count = join(folder(), 'count')
    const command = `echo >> ${count}; echo "token-$(wc -l < ${count} | tr -d ' ')-{x}"`
    const yaml = JSON.stringify({
      agents: { wiki: { base_url: 'https://w.test', email: 'a@b.test', api_token: `\${cmd:${command}}` } },
    })
    return { ...(await opened(yaml, options)), token: async (s: Settings) => (await s.of('wiki', wiki)).api_token }
  }

  /** Settings with a named secret that is the output of `command`. */
  const ofCommand = (command: string, options: Partial<SettingsOptions> = {}) =>
    opened(JSON.stringify({ secrets: { x: `\${cmd:${command}}` } }), options)
  const here = { name: '@local/team', fromPath: true }
  const ONLY =
    'it sees only PATH, HOME and LANG of the environment of the daemon; list what else it needs: bun daemon.ts settings set references.env NAME'

  test('is asked when its value is needed, once for all who wait', async () => {
    const { settings, token, file } = await counting()
    expect(settings.value('agents.wiki.api_token')).toBeUndefined()
    expect(settings.problems('wiki', wiki)).toEqual([])
    const tokens = await Promise.all(Array.from({ length: 5 }, () => token(settings)))
    expect(new Set(tokens)).toEqual(new Set(['token-1-{x}']))
    expect(await token(settings)).toBe('token-1-{x}')
    expect(settings.get('agents.wiki.api_token', agents).value).toStartWith('${cmd:echo')
    expect(readFileSync(file, 'utf8')).not.toContain('token-1')
  })

  test('is asked again after an hour, a 401 of that agent, and a reload', async () => {
    let now = 1_000
    const { settings, token } = await counting({ now: () => now })
    expect(await token(settings)).toBe('token-1-{x}')
    now += 60 * 60 * 1_000 - 1
    expect(await token(settings)).toBe('token-1-{x}')
    now += 1
    expect(await token(settings)).toBe('token-2-{x}')
    settings.refused('email')
    expect(await token(settings)).toBe('token-2-{x}')
    settings.refused('wiki')
    expect(await token(settings)).toBe('token-3-{x}')
    await settings.reload()
    expect(await token(settings)).toBe('token-4-{x}')
  })

  test('that was asked before a 401 gives its old value to nobody', async () => {
    const at = (name: string) => join(place, name)
    const place = folder()
    writeFileSync(at('value'), 'old-value')
    writeFileSync(at('hold'), '')
    const { settings } = await ofCommand(
      `cat ${at('value')}; touch ${at('read')}; while test -e ${at('hold')}; do sleep 0.01; done`,
    )
    const early = settings.secret('x', here)
    while (!existsSync(at('read'))) await Bun.sleep(5)
    writeFileSync(at('value'), 'new-value')
    settings.refused('http')
    const late = settings.secret('x', here)
    rmSync(at('hold'))
    expect(await Promise.all([early, late])).toEqual(['new-value', 'new-value'])
  })

  /** The managers that docs/secrets.md has: the variables that each needs, and the command that asks it. */
  const managers = Array.from(
    readFileSync(join(import.meta.dir, '../../docs/secrets.md'), 'utf8').matchAll(
      /^\| (\S+) +\| `\[(.+)\]` +\| `"?(\$\{cmd:.+\})"?` +\|$/gm,
    ),
    ([, manager, names, reference]) => ({ manager: manager!, names: names!.split(', '), reference: reference! }),
  )

  test.each(managers)('of $manager sees the variables that it demands, and no other', async ({ names, reference }) => {
    const [, program = ''] = /\$\{cmd:(\S+)/.exec(reference)!
    const bin = folder()
    const demands = names.map(name => `[ -n "$${name}" ] || { echo "${name} is needed" >&2; exit 1; }\n`).join('')
    writeFileSync(join(bin, program), `#!/bin/sh\n${demands}echo "asked-for-$#-$OTHER"`, { mode: 0o755 })
    const path = process.env.PATH
    process.env.PATH = `${bin}:${path}`
    try {
      const env: Record<string, string> = {
        ...Object.fromEntries(names.map(name => [name, `${name}-of-daemon`])),
        OTHER: 'other',
      }
      const { settings } = await opened(JSON.stringify({ secrets: { x: reference } }), { env })
      const error = await refusal(() => settings.secret('x', here))
      expect(error.message).toBe(`secrets.x: the command exited with code 1: ${names[0]} is needed (${ONLY})`)
      await settings.set('references.env', names.join(','))
      expect(await settings.secret('x', here)).toMatch(/^asked-for-\d-$/)
      const masked = settings.secrets(agents).map(({ value }) => value)
      for (const name of names.filter(each => /TOKEN|SESSION|SECRET/.test(each))) expect(masked).toContain(env[name]!)
    } finally {
      process.env.PATH = path
    }
  })

  test('there are five managers', () => {
    expect(managers.map(({ manager }) => manager)).toEqual(['1Password', 'Vault', 'Bitwarden', 'AWS', 'SOPS'])
  })

  test('that fails says which of the listed variables are not set', async () => {
    const yaml = { secrets: { x: '${cmd:exit 1}' }, references: { env: ['A_TOKEN', 'B_TOKEN'] } }
    const { settings } = await opened(JSON.stringify(yaml), { env: { A_TOKEN: 'a' } })
    expect((await refusal(() => settings.secret('x', here))).message).toBe(
      'secrets.x: the command exited with code 1 (it sees only PATH, HOME, LANG, A_TOKEN and B_TOKEN of the environment of the daemon, where B_TOKEN is not set; export it where the daemon is started)',
    )
  })

  test.each([['A=b'], [['']], [[1]], [{ A: 'b' }], ['${env:NAMES}']])(
    'sees nothing for references.env: %j',
    async value => {
      const { settings } = await opened(JSON.stringify({ references: { env: value } }))
      expect(settings.unknown(agents)).toMatchObject([
        { path: expect.stringContaining('references.env'), message: expect.stringMatching(/must be a list|no such/) },
      ])
      expect((await refusal(() => settings.set('references.env', value))).message).toContain('must be a list of names')
    },
  )

  test('that is removed and set again is asked again', async () => {
    const { settings, token } = await counting()
    const reference = settings.get('agents.wiki.api_token', agents).value
    expect(await token(settings)).toBe('token-1-{x}')
    await settings.set('agents.wiki.api_token', 'plain')
    await settings.set('agents.wiki.api_token', reference)
    expect(await token(settings)).toBe('token-2-{x}')
  })

  test('that fails tells its stderr, never its stdout, and is asked again', async () => {
    const marker = join(folder(), 'unlocked')
    const { settings } = await ofCommand(
      `echo s3cret-on-stdout; test -e ${marker} || { echo vault is locked >&2; exit 3; }`,
    )
    const error = await refusal(() => settings.secret('x', here))
    expect(error.status).toBe(400)
    expect(error.message).toBe(`secrets.x: the command exited with code 3: vault is locked (${ONLY})`)
    expect(settings.missingSecrets([{ ...here, secrets: ['x'] }])).toEqual([
      { path: 'secrets.x', message: error.message },
    ])
    expect(settings.brokenSecrets().map(({ path }) => path)).toEqual(['secrets.x'])
    writeFileSync(marker, '')
    expect(await settings.secret('x', here)).toBe('s3cret-on-stdout')
    expect(settings.brokenSecrets()).toEqual([])
  })

  test.each([
    ['true', 'printed nothing'],
    ['head -c 2000000 /dev/zero', 'printed more than 1048576 bytes'],
  ])('%s: %s', async (command, said) => {
    const { settings } = await ofCommand(command)
    expect((await refusal(() => settings.secret('x', here))).message).toBe(`secrets.x: the command ${said} (${ONLY})`)
  })

  test('that hangs is ended with all that it started, and holds up nothing meanwhile', async () => {
    const pids = join(folder(), 'pids')
    const { settings } = await ofCommand(`echo $$ > ${pids}; sleep 300 & echo $! >> ${pids}; echo half; sleep 300`, {
      commandTimeout: 500,
    })
    let ticks = 0
    const ticking = setInterval(() => ticks++, 10)
    const error = await refusal(() => settings.secret('x', here))
    clearInterval(ticking)
    expect(error.message).toBe(`secrets.x: the command did not end within 500ms and was stopped (${ONLY})`)
    expect(ticks).toBeGreaterThan(5)
    for (const pid of readFileSync(pids, 'utf8').trim().split('\n').map(Number)) await gone(pid)
  })

  test('of a secret runs for teams only that may have it', async () => {
    const ran = join(folder(), 'ran')
    const { settings } = await ofCommand(`touch ${ran}; echo value`)
    const pack = { name: '@acme/a', fromPath: false, secrets: ['x', 'nothing'] }
    await settings.prepareSecrets([pack])
    await refusal(() => settings.secret('x', pack))
    expect(settings.missingSecrets([pack]).map(({ path }) => path)).toEqual(['secrets.x', 'secrets.nothing'])
    expect(existsSync(ran)).toBe(false)
    await settings.prepareSecrets([{ ...here, secrets: ['x'] }])
    expect(existsSync(ran)).toBe(true)
  })

  test('is not waited for once the signal of who waits is aborted', async () => {
    const place = folder()
    const { settings } = await ofCommand(`while test ! -e ${place}/go; do sleep 0.01; done; echo value`)
    const stop = new AbortController()
    const aborted = settings.secret('x', here, stop.signal).catch(error => error)
    const other = settings.secret('x', here)
    stop.abort(new Error('cancelled'))
    expect(await aborted).toBe(stop.signal.reason)
    writeFileSync(join(place, 'go'), '')
    expect(await other).toBe('value')
  })

  test('that is running when the settings are closed is ended', async () => {
    const pids = join(folder(), 'pids')
    const { settings } = await ofCommand(`echo $$ > ${pids}; sleep 300`)
    const asked = refusal(() => settings.secret('x', here))
    while (!existsSync(pids)) await Bun.sleep(5)
    settings.close()
    expect((await asked).message).toContain('was stopped, because the daemon stops')
    await gone(Number(readFileSync(pids, 'utf8')))
  })

  test('whose child left its group and keeps the output open is not waited for', async () => {
    const pid = join(folder(), 'pid')
    const { settings } = await ofCommand(`setsid sh -c 'echo $$ > ${pid}; exec sleep 300' & sleep 0.2; echo value`)
    expect(await settings.secret('x', here)).toBe('value')
    process.kill(Number(readFileSync(pid, 'utf8')), 'SIGKILL')
  })

  test('sees PATH, HOME and LANG only, and leads a group of its own', async () => {
    process.env.CADRE_TEST_CANARY = 'canary-of-the-environment'
    const { settings } = await ofCommand('env; echo "group $(ps -o pgid= -p $$ | tr -d " ") of $$"')
    const said = await settings.secret('x', here)
    delete process.env.CADRE_TEST_CANARY
    expect(said).toContain('PATH=')
    expect(said).not.toContain('canary')
    const [, group, leader] = /group (\d+) of (\d+)/.exec(said)!
    expect(group).toBe(leader!)
  })

  test('keeps the lines of its output, and braces and quotes of its own', async () => {
    const { settings } = await ofCommand(`printf '%s\\n' '{"a": "\${b}"}' second ''`)
    expect(await settings.secret('x', here)).toBe('{"a": "${b}"}\nsecond')
  })

  test('is known as a secret before anybody has its value', async () => {
    const { settings, token } = await counting()
    const seen: string[][] = []
    settings.onSecrets(() => seen.push(settings.secrets(agents).map(({ value }) => value)))
    expect(await token(settings)).toBe('token-1-{x}')
    expect(seen[0]).toContain('token-1-{x}')
  })
})

async function gone(pid: number): Promise<void> {
  while (startOf(pid) !== null && groupMembers(pid).length > 0) await Bun.sleep(5)
}

describe('named secrets', () => {
  const YAML = `secrets:
  open: plain-value
  listed: {value: listed-value, teams: ["@acme/*", "@beta/report"]}
  number: 0123
  from_env: "\${env:DB}"
  broken: "\${env:NOWHERE}"
`
  const here = { name: '@acme/a', fromPath: true }
  const of = (name: string) => ({ name, fromPath: false })

  test('a team from a path reads all of them, as texts', async () => {
    const { settings } = await opened(YAML, { env: { DB: 'db-value' } })
    const names = ['open', 'listed', 'number', 'from_env']
    expect(await Promise.all(names.map(name => settings.secret(name, here)))).toEqual([
      'plain-value',
      'listed-value',
      '0123',
      'db-value',
    ])
  })

  test.each([
    ['listed', '@acme/a', true],
    ['listed', '@acme/any-other', true],
    ['listed', '@beta/report', true],
    ['listed', '@beta/reports', false],
    ['listed', '@acme-evil/a', false],
    ['listed', '@local/acme', false],
    ['open', '@acme/a', false],
  ])('%s for the package %s: %p', async (name, team, allowed) => {
    const { settings } = await opened(YAML)
    if (allowed) expect(await settings.secret(name, of(team))).toBe('listed-value')
    else {
      const error = await refusal(() => settings.secret(name, of(team)))
      expect(error.status).toBe(400)
      expect(error.message).toStartWith(`the package ${team} may not read the secret ${name}; `)
      expect(error.message).not.toContain('-value')
    }
  })

  test('a refusal names the line to add, which keeps who is allowed already', async () => {
    const { settings } = await opened(YAML)
    const { message } = await refusal(() => settings.secret('listed', of('@gamma/x')))
    expect(message).toContain('`teams: ["@acme/*","@beta/report","@gamma/x"]`')
    const none = await refusal(() => settings.secret('nothing', here))
    expect(none.message).toBe(
      'the secret nothing is not set; add `nothing: …` below `secrets:` in settings.yml, or set it with: bun daemon.ts settings set secrets.nothing -',
    )
    expect((await refusal(() => settings.secret('nothing', of('@gamma/x')))).message).toContain('teams: ["@gamma/x"]')
    expect((await refusal(() => settings.secret('broken', here))).message).toContain('NOWHERE is not set')
    expect((await refusal(() => settings.secret('constructor', here))).message).toContain('is not set')
  })

  test('what is missing is told for all teams at once, each line once', async () => {
    const { settings } = await opened(YAML)
    const users = [
      { ...here, secrets: ['open', 'nothing'] },
      { name: '@acme/b', fromPath: true, secrets: ['nothing', 'broken'] },
      { ...of('@gamma/x'), secrets: ['open'] },
    ]
    expect(settings.missingSecrets(users).map(({ path }) => path)).toEqual([
      'secrets.nothing',
      'secrets.broken',
      'secrets.open',
    ])
  })

  test('are listed by name, masked, and are all secret whatever they look like', async () => {
    const { settings } = await opened(YAML)
    expect(settings.list(agents)).toEqual([
      { key: 'secrets.open', value: '***' },
      { key: 'secrets.listed.value', value: '***' },
      { key: 'secrets.listed.teams', value: ['@acme/*', '@beta/report'] },
      { key: 'secrets.number', value: '***' },
      { key: 'secrets.from_env', value: '${env:DB}' },
      { key: 'secrets.broken', value: '${env:NOWHERE}' },
    ])
    expect(settings.secrets(agents).map(({ value }) => value)).toEqual(['plain-value', 'listed-value', '0123'])
  })

  test('a new value keeps the teams, and teams keep the value', async () => {
    const { settings } = await opened()
    await settings.set('secrets.db', 'first-value')
    await settings.set('secrets.db.teams', ['@acme/*'])
    expect(await settings.secret('db', of('@acme/x'))).toBe('first-value')
    await settings.set('secrets.db', 'second-value')
    expect(await settings.secret('db', of('@acme/x'))).toBe('second-value')
    await settings.set('secrets.db.teams', null)
    expect((await refusal(() => settings.secret('db', of('@acme/x')))).code).toBe('invalid_request')
    await settings.set('secrets.db', null)
    expect((await refusal(() => settings.secret('db', here))).message).toContain('is not set')
  })
})

test('what nothing reads is named, with the nearest that there is', async () => {
  const { settings } = await opened(`
agnets: {wiki: {email: a@b.test}}
agents:
  wicki: {email: a@b.test}
  wiki: {api_tokn: tok-123456, base_url: https://w.test}
  email@eu: {provider: {nme: x}, channels: {"ops team": https://hook.test}}
network: {alow: [10.0.0.0/8]}
hub: {url: https://hub.test, api_keys: x}
sync: full
secrets: {db: plain, odd: {value: x, tems: []}, 1st: x}
`)
  const found = settings.unknown(agents)
  expect(found.map(({ path, message }) => [path, /did you mean `([^`]+)`/.exec(message)?.[1]])).toEqual([
    ['agnets', 'agents'],
    ['agents.wicki', 'wiki'],
    ['agents.wiki.api_tokn', 'api_token'],
    ['agents.email@eu.provider.nme', 'name'],
    ['network.alow', 'network.allow'],
    ['hub.api_keys', 'hub.api_key'],
    ['secrets.odd', undefined],
    ['secrets.1st', undefined],
  ])
  expect(found.map(({ message }) => message).join()).not.toContain('tok-123456')
})

test('the value of a named secret is read by either of its keys, masked', async () => {
  const { settings } = await opened('secrets: {plain: abcdefgh, both: {value: ijklmnop, teams: ["*"]}}\n')
  for (const key of ['secrets.plain', 'secrets.plain.value', 'secrets.both.value']) {
    expect(settings.get(key, agents)).toEqual({ key, value: '***' })
  }
  expect(() => settings.get('secrets.none.value', agents)).toThrow('is not set')
})
