// What people get wrong when they set up an agent for the first time, and the sentence with which `doctor` answers each:
// what is wrong, and what to write.

import { beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { discover } from '../../lib/agent/catalogue.ts'
import { openSettings } from '../../lib/settings/settings.ts'
import { testContext } from '../support/context.ts'
import { command } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

interface Mistake {
  /** Where it is in settings.yml below `agents`. Each is an account of its own. */
  reference: string
  settings: Record<string, unknown>
  /** What `doctor` prints. */
  says: RegExp
}

const HOME = folder()
const catalogue = await discover({ home: HOME })
const atlassian = { base_url: 'https://acme.atlassian.net', email: 'me@acme.test', api_token: 'token-of-the-test' }
const zendesk = { subdomain: 'acme', email: 'me@acme.test', api_token: 'token-of-the-test' }
const datadog = { api_key: 'key-of-the-test', app_key: 'key-of-the-test' }
const channels = { team: 'team@acme.test' }
const client = { installed: { client_id: 'x', client_secret: 'secret-of-the-test', redirect_uris: [] } }
const person = { client_id: 'x', client_secret: 'secret-of-the-test', refresh_token: 'token-of-the-test' }
for (const [name, content] of Object.entries({ client, person })) {
  writeFileSync(join(HOME, `${name}.json`), JSON.stringify(content))
}

const MISTAKES: Record<string, Mistake> = {
  'the name of a site instead of its address': {
    reference: 'wiki@name',
    settings: { ...atlassian, base_url: 'Acme' },
    says: /agents\.wiki@name\.base_url must be the whole address of the site: write https:\/\/acme\.atlassian\.net/,
  },
  'the page of the tokens instead of the site': {
    reference: 'issues@tokens',
    settings: { ...atlassian, base_url: 'https://id.atlassian.com/manage-profile/security/api-tokens' },
    says: /agents\.issues@tokens\.base_url is a page of Atlassian's own: write the address of your site, such as https:/,
  },
  'the address of a repository instead of a server': {
    reference: 'git@repository',
    settings: {
      provider: 'github',
      github: { token: 'token-of-the-test', base_url: 'https://code.acme.test/team/app' },
    },
    says: /agents\.git@repository\.github\.base_url must be the root of the API, not a page: write https:\/\/code\.acme\.test\/api\/v3/,
  },
  'the host of another vendor instead of the subdomain': {
    reference: 'helpdesk@host',
    settings: { ...zendesk, subdomain: 'support.acme.test' },
    says: /agents\.helpdesk@host\.subdomain must be the part before \.zendesk\.com: write it as acme, or /,
  },
  'a place that is no site': {
    reference: 'metrics@place',
    settings: { ...datadog, site: 'Frankfurt' },
    says: /agents\.metrics@place\.site must be a site of Datadog: write one of datadoghq\.com, .*datadoghq\.eu/,
  },
  'the name of a channel instead of its webhook': {
    reference: 'chat@name',
    settings: { channels: { ops: '#ops' } },
    says: /agents\.chat@name\.channels\.ops must be the address of a webhook, not the channel #ops: write .*https:\/\/hooks/,
  },
  'an e-mail address with /token': {
    reference: 'issues@token',
    settings: { ...atlassian, email: 'me@acme.test/token' },
    says: /agents\.issues@token\.email must be the e-mail address of the account: write me@acme\.test$/,
  },
  'a name instead of an e-mail address': {
    reference: 'helpdesk@name',
    settings: { ...zendesk, email: 'me' },
    says: /agents\.helpdesk@name\.email must be the e-mail address of the account: write it as me@acme\.com/,
  },
  'a file that is not there': {
    reference: 'filestore@gone',
    settings: { credentials_file: '~/key-that-is-not-there.json' },
    says: /agents\.filestore@gone\.credentials_file is ~\/key-that-is-not-there\.json, where there is no file: write the path of the key of a service account/,
  },
  'the file of an OAuth client instead of a token': {
    reference: 'filestore@client',
    settings: { credentials_file: join(HOME, 'client.json'), auth_mode: 'oauth' },
    says: /agents\.filestore@client\.credentials_file is .*client\.json, the file of an OAuth client, .*: write .* refresh_token of a person/,
  },
  'the file of a person for a service account': {
    reference: 'filestore@person',
    settings: { credentials_file: join(HOME, 'person.json') },
    says: /agents\.filestore@person\.auth_mode must be oauth for the file .*person\.json: write oauth/,
  },
  'the address of a mailbox instead of a mail server': {
    reference: 'email@page',
    settings: { smtp_host: 'https://mail.acme.test/inbox', channels },
    says: /agents\.email@page\.smtp_host must be the name of the mail server alone: write it as smtp\.acme\.com/,
  },
  'a port on which mail is read': {
    reference: 'email@reading',
    settings: { smtp_host: 'mail.acme.test', smtp_port: 993, channels },
    says: /agents\.email@reading\.smtp_port must not be 993, on which mail is read: write 587/,
  },
  'a continent instead of a region': {
    reference: 'objectstore@region',
    settings: { access_key_id: 'key-of-the-test', secret_access_key: 'secret-of-the-test', region: 'Europe' },
    says: /agents\.objectstore@region\.region must be a region of AWS: write the region of the bucket, such as eu-west-1/,
  },
  'no channel': {
    reference: 'chat@none',
    settings: {},
    says: /agents\.chat@none\.channels is not set; set it with: (?:bun \S*daemon\.ts|\S*cadre) settings set agents\.chat@none\.channels\.NAME -/,
  },
  'nothing about a database': {
    reference: 'database@none',
    settings: { tls: true },
    says: /agents\.database@none\.url is not set; set it with: (?:bun \S*daemon\.ts|\S*cadre) settings set agents\.database@none\.url -/,
  },
  'the parts of a database without its name': {
    reference: 'database@parts',
    settings: { host: '127.0.0.1', user: 'ada' },
    says: /agents\.database@parts\.database is not set; set it with: (?:bun \S*daemon\.ts|\S*cadre) settings set agents\.database@parts\.database -/,
  },
  'the path of a database that depends on a folder': {
    reference: 'database@relative',
    settings: { provider: 'sqlite', database: 'data.db' },
    says: /agents\.database@relative\.database must be a whole path for SQLite: write it as \/path\/to\/file or ~\/path\/to\/file/,
  },
  'the public part of a key': {
    reference: 'ssh@public',
    settings: { host: 'host.acme.test', key_file: '~/.ssh/id_ed25519.pub' },
    says: /agents\.ssh@public\.key_file is ~\/\.ssh\/id_ed25519\.pub, the public part of a key: write ~\/\.ssh\/id_ed25519$/,
  },
  'a user before the host': {
    reference: 'ssh@user',
    settings: { host: 'ada@web-1.acme.test' },
    says: /agents\.ssh@user\.host must be the name or the address of a host alone, such as web-1\.acme\.com, with the user in user; set it with: /,
  },
  'a database on another machine without TLS': {
    reference: 'database@plain',
    settings: { url: 'postgres://ada:token-of-the-test@db.acme.test/stock?sslmode=disable' },
    says: /agents\.database@plain\.url must not have sslmode=disable, because db\.acme\.test is another machine: remove it, and set ca_file /,
  },
  'a misspelt key': {
    reference: 'wiki@key',
    settings: { ...atlassian, api_tokn: 'token-of-the-test', api_token: undefined },
    says: /agents\.wiki@key\.api_tokn +the agent wiki@key takes .* \(did you mean `api_token`\?\)/,
  },
  'a misspelt key in a group': {
    reference: 'git@key',
    settings: { provider: 'github', github: { token: 'token-of-the-test', bas_branch: 'main' } },
    says: /agents\.git@key\.github\.bas_branch is not known: .* \(did you mean `base_branch`\?\)/,
  },
  'a misspelt agent': {
    reference: 'wicki',
    settings: atlassian,
    says: /there is no agent wicki \(did you mean `wiki`\?\); there are chat, /,
  },
  'http:// with a token': {
    reference: 'wiki@clear',
    settings: { ...atlassian, base_url: 'http://wiki.acme.test' },
    says: /agents\.wiki@clear\.base_url must begin with https:\/\/, because http:\/\/ shows api_token to everybody on the way: write https:\/\/wiki\.acme\.test/,
  },
  'an empty secret': {
    reference: 'crm@empty',
    settings: { access_token: '' },
    says: /agents\.crm@empty\.access_token must not be empty; set it with: (?:bun \S*daemon\.ts|\S*cadre) settings set agents\.crm@empty\.access_token -/,
  },
  'a setting without a value': {
    reference: 'crm@null',
    settings: { access_token: null },
    says: /agents\.crm@null\.access_token is not set; set it with: (?:bun \S*daemon\.ts|\S*cadre) settings set agents\.crm@null\.access_token -/,
  },
  'a variable that is not set': {
    reference: 'crm@variable',
    settings: { access_token: '${env:NOT_SET_BY_ANYBODY}' },
    says: /agents\.crm@variable\.access_token: the environment variable NOT_SET_BY_ANYBODY is not set for the daemon; export it/,
  },
  'a value of another type': {
    reference: 'email@port',
    settings: { smtp_host: 'mail.acme.test', channels: { team: 'team@acme.test' }, smtp_port: 'smtps' },
    says: /agents\.email@port\.smtp_port must be an integer; set it with: /,
  },
  'a value that is no choice': {
    reference: 'git@choice',
    settings: { provider: 'gitlab' },
    says: /agents\.git@choice\.provider must be one of github, bitbucket, host_a, host_b; set it with: /,
  },
}

/** No words of JSON Schema, no pattern and no secret. */
const RAW = /must (match|NOT)|\^\[|anyOf|undefined|\[object|unknown property|-of-the-test/

describe('doctor says what to write instead of', () => {
  let lines: string[] = []
  beforeAll(async () => {
    const agents = Object.fromEntries(Object.values(MISTAKES).map(({ reference, settings }) => [reference, settings]))
    writeFileSync(join(HOME, 'settings.yml'), JSON.stringify({ agents }), { mode: 0o600 })
    const { code, stdout } = await command(['doctor'], { home: HOME })
    expect(code).toBe(1)
    lines = stdout.split('\n').filter(line => line.startsWith('✗'))
  }, 60_000)

  for (const [mistake, { reference, says }] of Object.entries(MISTAKES)) {
    test(mistake, () => {
      const found = lines.filter(line => says.test(line))
      expect(found).toHaveLength(1)
      expect(found[0]).toContain(reference)
      expect(found[0]).not.toMatch(RAW)
    })
  }

  test('nothing is said twice', () => {
    const sentences = lines.flatMap(line => line.split('; '))
    expect(
      sentences.filter((sentence, at) => sentences.indexOf(sentence) !== at && !sentence.startsWith('there are')),
    ).toEqual([])
  })
})

test.each([
  ['agents.wiki.api_tokn', 'x', '(did you mean `api_token`?)'],
  ['agents.wicki.api_token', 'x', 'there is no agent wicki (did you mean `wiki`?)'],
  ['agents.email.smtp_port', 'smtps', 'must be an integer'],
  ['agents.git.provider', 'gitlab', 'must be one of github, bitbucket, host_a, host_b'],
  ['agents.crm.base_url', 'api.acme.test', 'must be an address such as https://'],
  ['agents.wiki.base_url', 'acme', 'must be the whole address of the site: write https://acme.atlassian.net'],
  ['agents.filestore.credentials_file', '~/key-that-is-not-there.json', 'where there is no file: write the path of'],
  ['agents.git.github.base_url', 'https://github.com/acme/app', 'not a page: write https://api.github.com'],
  ['agents.email.smtp_host', 'mail.acme.test:993', 'on which mail is read: write mail.acme.test:587'],
  ['agents.objectstore.region', 'Europe', 'must be a region of AWS: write the region of the bucket'],
])('settings set %s %s is refused: %s', async (key, value, says) => {
  const { code, stderr } = await command(['settings', 'set', key, value], { home: folder() })
  expect(code).toBe(2)
  expect(stderr).toContain(says)
  expect(stderr).not.toMatch(RAW)
})

/** What people paste and agents understand: the settings, and the address that is then asked. */
const UNDERSTOOD: Record<string, { reference: string; settings: Record<string, unknown>; asks: string }> = {
  'an address of a page': {
    reference: 'wiki',
    settings: { ...atlassian, base_url: 'https://acme.atlassian.net/wiki/spaces/DOCS/pages/123/Welcome' },
    asks: 'https://acme.atlassian.net/wiki/rest/api/user/current',
  },
  'GitHub Enterprise without /api/v3': {
    reference: 'git',
    settings: { provider: 'github', github: { token: 'token-of-the-test', base_url: 'https://github.acme.test' } },
    asks: 'https://github.acme.test/api/v3/user',
  },
  'the host instead of the subdomain': {
    reference: 'helpdesk',
    settings: { ...zendesk, subdomain: 'acme.zendesk.com' },
    asks: 'https://acme.zendesk.com/api/v2/users/me',
  },
  'the name of a site': {
    reference: 'metrics',
    settings: { ...datadog, site: 'EU' },
    asks: 'https://api.datadoghq.eu/api/v1/validate',
  },
  'the host of the pages of a site': {
    reference: 'metrics',
    settings: { ...datadog, site: 'app.datadoghq.eu' },
    asks: 'https://api.datadoghq.eu/api/v1/validate',
  },
  'a mail server with TLS from the first byte': {
    reference: 'email',
    settings: { smtp_host: 'smtps://mail.acme.test', channels },
    asks: 'mail.acme.test:465',
  },
  'the endpoint of a region': {
    reference: 'objectstore',
    settings: {
      access_key_id: 'key-of-the-test',
      secret_access_key: 'secret-of-the-test',
      endpoint: 'https://s3.ap-south-1.amazonaws.com',
    },
    asks: '.s3.ap-south-1.amazonaws.com/',
  },
}

describe('an agent understands', () => {
  for (const [given, { reference, settings, asks }] of Object.entries(UNDERSTOOD)) {
    test(given, async () => {
      const home = folder()
      writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents: { [reference]: settings } }), { mode: 0o600 })
      const opened = await openSettings(home, { log: { warn() {} } })
      const agent = catalogue.get(reference)!
      expect(opened.problems(reference, agent)).toEqual([])
      const { context } = testContext({ agent: reference, settings: await opened.of(reference, agent) })
      opened.close()
      const asked: string[] = []
      const stop = (address: string | URL) => {
        asked.push(String(address))
        throw new Error('asked')
      }
      await agent.doctor!({ ...context, fetch: async url => stop(url), vet: async place => stop(place) }).catch(
        () => {},
      )
      expect(asked[0]).toContain(asks)
    })
  }
})
