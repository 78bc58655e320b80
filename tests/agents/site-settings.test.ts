// The settings of a site of Atlassian as people write them at first.

import { afterAll, describe, expect, test } from 'bun:test'
import issues from '../../agents/issues.ts'
import wiki from '../../agents/wiki.ts'
import type { AgentContext } from '../../lib/agent/agent-context.ts'
import { apiAddress, problemsOfSite } from '../../lib/vendors/atlassian/settings.ts'
import { testContext } from '../support/context.ts'
import { failureOf } from '../support/failure.ts'
import { ACCOUNT, SIGNED } from '../vendors/atlassian.ts'
import { fakeIssues } from '../vendors/issues.ts'
import { fakeWiki } from '../vendors/wiki.ts'

const SITE = 'https://acme.atlassian.net'
const CLOUD = 'https://api.atlassian.com/ex'

describe('an address', () => {
  test.each([
    [SITE, SITE],
    [`${SITE}/`, SITE],
    [`  ${SITE}/wiki/\n`, SITE],
    ['acme.atlassian.net', SITE],
    ['http://acme.atlassian.net', SITE],
    ['HTTPS://ACME.atlassian.net', SITE],
    [`${SITE}/jira/software/projects/WEB/boards/1?selectedIssue=WEB-1`, SITE],
    [`${SITE}/jira/your-work`, SITE],
    [`${SITE}/browse/WEB-1`, SITE],
    [`${SITE}/wiki/spaces/DOCS/pages/131073/Runbook`, SITE],
    [`${SITE}/wiki/spaces/DOCS/overview#top`, SITE],
    [`${CLOUD}/jira/8c5b-11/`, `${CLOUD}/jira/8c5b-11`],
    [`${CLOUD}/jira/8c5b-11/rest/api/3/myself`, `${CLOUD}/jira/8c5b-11`],
    ['https://wiki.acme.test/wiki/spaces/DOCS', 'https://wiki.acme.test'],
    ['https://jira.acme.test/proxy/browse/WEB-1', 'https://jira.acme.test/proxy'],
    ['http://127.0.0.1:8080/', 'http://127.0.0.1:8080'],
    ['localhost:8080', 'https://localhost:8080'],
  ])('%j is understood', (base_url, expected) => {
    expect(problemsOfSite('jira', { base_url })).toEqual({})
    expect(apiAddress({ ...ACCOUNT, base_url })).toBe(expected)
  })

  test.each([
    ['acme', 'must be the whole address of the site: write https://acme.atlassian.net'],
    ['https://', 'must be the address of the site: write it as https://acme.atlassian.net'],
    ['ftp://acme.atlassian.net', 'must be the address of the site: write it as https://acme.atlassian.net'],
    ['the site of acme', 'must be the address of the site: write it as https://acme.atlassian.net'],
    [`${CLOUD}/confluence/8c5b-11`, `is the address for Confluence: write ${CLOUD}/jira/8c5b-11`],
    [
      'https://id.atlassian.com/manage-profile/security/api-tokens',
      "is a page of Atlassian's own: write the address of your site, such as https://acme.atlassian.net",
    ],
    [
      'https://api.atlassian.com',
      `must name the site: write ${CLOUD}/jira/<cloud id>, with the cloud id that the address of your site shows with /_edge/tenant_info behind it`,
    ],
  ])('%j is answered with what to write', (base_url, message) => {
    expect(problemsOfSite('jira', { base_url })).toEqual({ base_url: message })
  })
})

test.each([
  ['ada', 'must be the e-mail address of the account: write it as me@acme.com'],
  ['Ada <ada@acme.test>', 'must be the e-mail address of the account: write it as me@acme.com'],
  ['ada@acme.test/token', 'must be the e-mail address of the account: write ada@acme.test'],
])('the e-mail address %j is answered with what to write', (email, message) => {
  expect(problemsOfSite('jira', { email })).toEqual({ email: message })
})

test.each([
  ['Bearer ATATT3x', 'must be the token alone: write it without Bearer'],
  ['ada@acme.test:ATATT3x', 'must be the token alone: write it without the e-mail address and the colon'],
])('the token %j is answered with what to write', (api_token, message) => {
  expect(problemsOfSite('jira', { api_token })).toEqual({ api_token: message })
})

test('the agents judge their settings so', () => {
  const base_url = `${CLOUD}/jira/8c5b-11`
  expect(issues.check!({ base_url })).toEqual({})
  expect(wiki.check!({ base_url })).toEqual({
    base_url: `is the address for Jira: write ${CLOUD}/confluence/8c5b-11`,
  })
})

describe('at work', () => {
  const jira = fakeIssues()
  const confluence = fakeWiki()
  afterAll(() => {
    for (const site of [jira, confluence]) site[Symbol.dispose]()
  })
  const begun = (agent: string, settings: object) =>
    testContext({ agent, settings: { ...ACCOUNT, ...settings }, network: { allow: ['127.0.0.1'], literalOrigins: [] } })
      .context as AgentContext<never>

  test('blanks around the values, and in a token that was wrapped, are left out', async () => {
    const given = { email: ` ${ACCOUNT.email}\n`, api_token: `canary-atl\n  assian-token \n` }
    const entry = { name: 'i.json', ref: 'WEB-1' }
    await issues.actions!.get_issue!.run(entry, begun('issues', { ...given, base_url: `${jira.url}/browse/WEB-1` }))
    const page = { name: 'p.md', ref: '131073' }
    await wiki.actions!.get_page!.run(page, begun('wiki', { ...given, base_url: `${confluence.url}/wiki/spaces/DOCS` }))
    for (const { seen } of [jira, confluence]) expect(seen.at(-1)!.headers.get('authorization')).toBe(SIGNED)
  })

  test('401 says which address a token with scopes needs, and which one a token without', async () => {
    const refused = async (base_url: string) =>
      (await failureOf(issues.doctor!(begun('issues', { base_url, api_token: 'canary-of-another' })))).hint
    expect(await refused(jira.url)).toBe(
      'the credential was refused or has expired: set agents.issues.api_token again; a token with scopes needs ' +
        `agents.issues.base_url to be ${CLOUD}/jira/<cloud id>, with the cloud id that ${jira.url}/_edge/tenant_info shows`,
    )
    expect(await refused(`${jira.url}/ex/jira/8c5b-11`)).toBe(
      'the credential was refused or has expired: set agents.issues.api_token again; ' +
        'a token without scopes needs agents.issues.base_url to be the address of the site',
    )
  })
})
