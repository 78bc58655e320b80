// The agents in whose name http sends requests: the address and the headers that each of them gives for its settings.

import { expect, test } from 'bun:test'
import { discover } from '../../lib/agent/catalogue.ts'
import { basicAuth } from '../../lib/agent/json-api.ts'
import { testContext } from '../support/context.ts'
import { folder } from '../support/folder.ts'
import { credentials, fakeDrive } from '../vendors/filestore.ts'

const catalogue = await discover({ home: folder() })
const me = { email: 'me@acme.test', api_token: 'canary-token' }

const given: [string, Record<string, unknown>, { base: string; headers: Record<string, string> }][] = [
  [
    'crm',
    { access_token: 'Bearer pat-1' },
    { base: 'https://api.hubapi.com', headers: { authorization: 'Bearer pat-1' } },
  ],
  [
    'helpdesk',
    { subdomain: 'acme', ...me },
    {
      base: 'https://acme.zendesk.com',
      headers: { authorization: basicAuth('me@acme.test/token', 'canary-token') },
    },
  ],
  ...(['issues', 'wiki'] as const).map((name): (typeof given)[number] => [
    name,
    { base_url: 'https://acme.atlassian.net/wiki/x', ...me },
    { base: 'https://acme.atlassian.net', headers: { authorization: basicAuth('me@acme.test', 'canary-token') } },
  ]),
  [
    'metrics',
    { api_key: 'k', app_key: 'a' },
    { base: 'https://api.datadoghq.com', headers: { 'dd-api-key': 'k', 'dd-application-key': 'a' } },
  ],
  [
    'llm',
    { provider: 'openai', model: 'm', api_key: 'k' },
    { base: 'https://api.openai.com/v1', headers: { authorization: 'Bearer k' } },
  ],
  [
    'llm',
    { provider: 'anthropic', model: 'm', api_key: 'k' },
    { base: 'https://api.anthropic.com', headers: { 'x-api-key': 'k', 'anthropic-version': '2023-06-01' } },
  ],
  [
    'git',
    { provider: 'github', github: { token: 't', base_url: 'https://code.acme.test' } },
    { base: 'https://code.acme.test/api/v3', headers: { authorization: 'Bearer t' } },
  ],
  [
    'git',
    { provider: 'bitbucket', bitbucket: me },
    { base: 'https://api.bitbucket.org/2.0', headers: { authorization: basicAuth('me@acme.test', 'canary-token') } },
  ],
]
test.each(given)('%s with %p', async (name, settings, expected) => {
  expect(await catalogue.get(name)!.account!(testContext({ settings }).context)).toMatchObject(expected)
})

test('the documents name them all', async () => {
  const text = await Bun.file(`${import.meta.dir}/../../docs/write-a-team.md`).text()
  const [, list] = /The agents (`.*) can be an account\./.exec(text) ?? []
  const lenders = catalogue.names().filter(name => catalogue.get(name)!.account)
  expect([...(list?.match(/[a-z]+(?=`)/g) ?? [])]).toEqual(lenders)
})

test('filestore signs in', async () => {
  using drive = fakeDrive()
  const settings = {
    credentials_file: credentials('service_account'),
    auth_mode: 'service_account',
    base_url: drive.url,
  }
  expect(await catalogue.get('filestore')!.account!(testContext({ settings }).context)).toMatchObject({
    base: drive.url,
    headers: { authorization: 'Bearer canary-access-token-1' },
  })
})
