// `doctor`: all agents against their vendors, in good order and with refused credentials. What credentials lack is in
// needed-permissions.test.ts.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '../../lib/daemon/runs/agent-checks.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { command } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { ACCOUNT as ATLASSIAN } from '../vendors/atlassian.ts'
import { ACCOUNT as BITBUCKET, fakeBitbucket } from '../vendors/bitbucket.ts'
import { fakeCrm, TOKEN as HUBSPOT } from '../vendors/crm.ts'
import { credentials, fakeDrive } from '../vendors/filestore.ts'
import { fakeGitHub, TOKEN as GITHUB } from '../vendors/github.ts'
import { fakeHelpdesk, ACCOUNT as ZENDESK } from '../vendors/helpdesk.ts'
import { fakeIssues } from '../vendors/issues.ts'
import { fakeAnthropic, fakeOpenai, MODEL, KEY as MODEL_KEY } from '../vendors/llm.ts'
import { type MailVendor, mailVendor, PASSWORD, USER } from '../vendors/mail.ts'
import { KEYS as DATADOG, fakeMetrics } from '../vendors/metrics.ts'
import { ACCESS, type ObjectVendor, objectVendor } from '../vendors/objectstore.ts'
import { fakeWiki } from '../vendors/wiki.ts'

const wiki = fakeWiki()
const issues = fakeIssues()
const crm = fakeCrm()
const metrics = fakeMetrics()
const helpdesk = fakeHelpdesk()
const github = fakeGitHub()
const bitbucket = fakeBitbucket()
const drive = fakeDrive()
const openai = fakeOpenai()
const anthropic = fakeAnthropic()
let mail: MailVendor
let store: ObjectVendor
beforeAll(async () => {
  mail = await mailVendor()
  store = await objectVendor()
})
afterAll(async () => {
  for (const server of [wiki, issues, crm, metrics, helpdesk, github, bitbucket, drive, openai, anthropic]) {
    server[Symbol.dispose]()
  }
  await mail.close()
  await store[Symbol.asyncDispose]()
})

const data = join(folder(), 'data.db')
new Database(data, { create: true }).close()

type Settings = Record<string, Record<string, unknown>>

const good = (): Settings => ({
  wiki: { ...ATLASSIAN, base_url: `${wiki.url}/wiki` },
  issues: { ...ATLASSIAN, base_url: issues.url },
  crm: { access_token: HUBSPOT, base_url: crm.url },
  metrics: { ...DATADOG, base_url: metrics.url },
  helpdesk: { ...ZENDESK, base_url: helpdesk.url },
  git: { provider: 'github', github: { token: GITHUB, base_url: github.url } },
  'git@bucket': { provider: 'host_b', host_b: { ...BITBUCKET, base_url: `${bitbucket.url}/2.0` } },
  filestore: { credentials_file: credentials('service_account'), base_url: drive.url },
  objectstore: { ...ACCESS, endpoint: store.endpoint },
  email: {
    smtp_host: '127.0.0.1',
    smtp_port: mail.port,
    tls: false,
    username: USER,
    password: PASSWORD,
    channels: { team: 'team@example.org' },
  },
  llm: { provider: 'openai', model: MODEL, api_key: MODEL_KEY, base_url: `${openai.url}/v1` },
  'llm@other': { provider: 'anthropic', model: MODEL, api_key: MODEL_KEY, base_url: anthropic.url },
  database: { url: `sqlite://${data}` },
  chat: { channels: { team: 'https://hooks.acme.test/services/canary-of-the-webhook' } },
})

/** `wiki@eu` of `wiki`; what is an account already stays as it is. */
const accounted = (name: string, account: string) => (name.includes('@') ? name : name + account)

const accounts = (settings: Settings, account: string): Settings =>
  Object.fromEntries(Object.entries(settings).map(([name, values]) => [accounted(name, account), values]))

const doctor = (settings: Settings, ...args: string[]) => doctorOf({ agents: settings }, ...args)

async function doctorOf(settings: object, ...args: string[]) {
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  const { code, stdout, stderr } = await command(['doctor', ...args], { home })
  const findings = args.includes('--json') && stdout ? (JSON.parse(stdout) as Finding[]) : []
  return { code, stdout, stderr, of: (agent: string) => findings.find(each => each.agent === agent)! }
}

test('in good order: who each credential is', async () => {
  const { code, stdout, stderr, of } = await doctor(good(), '--json')
  const who = {
    wiki: 'Ada Wiki',
    issues: 'Ada Issues',
    crm: 'portal 1234',
    metrics: null,
    helpdesk: ZENDESK.email,
    git: 'acme-bot',
    'git@bucket': 'Acme Bot',
    filestore: 'robot@acme.test',
    objectstore: null,
    email: USER,
    llm: null,
    'llm@other': null,
    database: null,
    chat: null,
  }
  for (const [agent, name] of Object.entries(who)) {
    expect(of(agent)).toMatchObject({ agent, state: 'fine', who: name, missing: [] })
  }
  expect(of('email').text).toContain('signed in; channels team')
  for (const agent of ['http', 'exec'])
    expect(of(agent)).toMatchObject({ state: 'settings', text: 'needs no settings' })
  expect(code).toBe(0)
  expect(stdout + stderr).not.toContain('canary')
})

test.each(['', '@eu'])('credentials that are refused: what to set anew, for account %p', async account => {
  const wrong = 'canary-that-is-wrong'
  const settings = good()
  for (const agent of ['wiki', 'issues', 'helpdesk']) settings[agent]!.api_token = wrong
  settings.crm!.access_token = wrong
  settings.metrics!.api_key = wrong
  settings.git!.github = { token: wrong, base_url: github.url }
  settings['git@bucket']!.host_b = { ...BITBUCKET, api_token: wrong, base_url: `${bitbucket.url}/2.0` }
  settings.filestore!.credentials_file = join(folder(), 'gone.json')
  settings.objectstore!.secret_access_key = wrong
  settings.email!.password = wrong
  settings.llm!.api_key = wrong
  settings['llm@other']!.api_key = wrong
  settings.database = { provider: 'sqlite', database: join(folder(), 'gone.db') }
  settings.chat!.channels = { team: wrong }
  const { code, stdout, stderr, of } = await doctor(accounts(settings, account), '--json')
  const said = {
    wiki: 'agents.wiki.api_token',
    issues: 'agents.issues.api_token',
    helpdesk: 'agents.helpdesk.api_token',
    crm: 'agents.crm.access_token',
    metrics: 'agents.metrics.api_key',
    git: 'agents.git.github.token',
    'git@bucket': 'agents.git@bucket.host_b.api_token',
    filestore: 'agents.filestore.credentials_file',
    objectstore: 'agents.objectstore.secret_access_key',
    email: 'agents.email.password',
    llm: 'agents.llm.api_key',
    'llm@other': 'agents.llm@other.api_key',
    database: 'agents.database.database',
    chat: 'agents.chat.channels.team',
  }
  for (const [name, key] of Object.entries(said)) {
    const agent = accounted(name, account)
    expect(of(agent)).toMatchObject({ agent, state: 'wrong', who: null })
    expect(of(agent).text).toContain(key.replace(`agents.${name}.`, `agents.${agent}.`))
    if (agent !== name) expect(of(agent).text).not.toContain(`agents.${name}.`)
  }
  expect(code).toBe(1)
  expect(stdout + stderr).not.toContain('canary')
})

test('permissions that lack are named, and are no fault where no team needs them', async () => {
  const forbidden = () => refusal(403, { message: 'no' })
  wiki.fail(/api\/search/, forbidden)
  const permissions = {
    BROWSE_PROJECTS: { havePermission: true },
    ADD_COMMENTS: { havePermission: false },
  }
  issues.fail(/mypermissions/, () => Response.json({ permissions }))
  crm.fail(/access-token-info/, () => Response.json({ hubId: 1234, scopes: ['tickets', 'crm.objects.deals.read'] }))
  metrics.fail(/monitor/, forbidden)
  helpdesk.fail(/users\/me/, () => Response.json({ user: { id: 2, name: 'Kim', email: null, role: 'end-user' } }))
  github.fail(/GET \/user$/, () => Response.json({ login: 'x' }, { headers: { 'x-oauth-scopes': 'read:user' } }))
  bitbucket.fail(/repositories\/acme$/, forbidden)
  const { code, of } = await doctor(good(), '--json')
  const lacks = {
    wiki: ['search:confluence'],
    issues: ['CREATE_ISSUES', 'EDIT_ISSUES', 'TRANSITION_ISSUES', 'ADD_COMMENTS', 'CREATE_ATTACHMENTS'],
    crm: ['crm.objects.contacts.read', 'crm.objects.companies.read', 'crm.objects.contacts.write'],
    metrics: ['monitors_read'],
    helpdesk: ['the role agent'],
    git: ['repo'],
    'git@bucket': ['read:repository:bitbucket'],
  }
  for (const [agent, unneeded] of Object.entries(lacks)) expect(of(agent)).toMatchObject({ state: 'fine', unneeded })
  expect(of('filestore').state).toBe('fine')
  expect(code).toBe(0)
})

test('the end of a credential is said where its vendor says it, and named when it is near', async () => {
  const said = (at: Date) => `${at.toISOString().slice(0, 19).replace('T', ' ')} UTC`
  const { git } = good()
  for (const days of [3, 30]) {
    const end = new Date(Math.round(Date.now() / 1_000) * 1_000 + days * 86_400_000 + 3_600_000)
    const headers = { 'x-oauth-scopes': 'repo', 'github-authentication-token-expiration': said(end) }
    github.fail(/GET \/user$/, () => Response.json({ login: 'x' }, { headers }), { times: 2 })
    expect((await doctor({ git: git! }, 'git', '--json')).of('git')).toMatchObject({ expires_at: end.getTime() })
    const { stdout } = await doctor({ git: git! }, 'git')
    expect([days, stdout.includes('the credential ends in 3d')]).toEqual([days, days === 3])
  }
  expect((await doctor({ git: git! }, 'git', '--json')).of('git')).not.toHaveProperty('expires_at')
})

test('a table, in which what nobody has set up is no fault', async () => {
  const { issues } = good()
  const { code, stdout } = await doctor({ issues: issues! })
  const lines = stdout.split('\n')
  expect(lines.find(line => line.includes('issues'))).toMatch(/^✓ issues +Ada Issues +http:\/\/127/)
  expect(lines.find(line => line.includes('wiki'))).toMatch(/^– wiki +not set up$/)
  expect(code).toBe(0)
})

test('one agent: what it lacks in settings, and names that are none', async () => {
  const unset = await doctor({}, 'wiki')
  expect(unset.code).toBe(1)
  for (const key of ['base_url', 'email', 'api_token']) expect(unset.stdout).toContain(`agents.wiki.${key} is not set`)
  const none = await doctor({}, 'wikki')
  expect(none.code).toBe(2)
  expect(none.stderr).toContain('there is no agent wikki (did you mean `wiki`?); there are chat, crm')
})

test('environments are looked at with their own settings, and each is named', async () => {
  const { wiki, crm, database } = good()
  const staging = { agents: { wiki, crm: { ...crm, access_token: 'canary-that-is-wrong' } } }
  const settings = { agents: { crm }, environments: { staging, production: { agents: { database }, inherit: true } } }

  const all = await doctorOf(settings)
  const lines = all.stdout.split('\n')
  const of = (agent: string) => lines.filter(line => line.slice(2).startsWith(agent)).map(line => line.slice(0, 18))
  expect(of('wiki')).toEqual([expect.stringMatching(/^✓ wiki in staging/)])
  expect(of('crm').map(line => line.trim())).toEqual([
    expect.stringMatching(/^✓ crm/),
    expect.stringMatching(/^✗ crm in staging/),
  ])
  expect(all.code).toBe(1)
  expect(all.stdout + all.stderr).not.toContain('canary')

  const one = await doctorOf(settings, 'wiki', '--json')
  expect(JSON.parse(one.stdout)).toEqual([expect.objectContaining({ environment: 'staging', state: 'fine' })])
  expect(one.code).toBe(0)
  const plain = await doctorOf(settings, 'crm', '--env', 'production', '--json')
  expect(JSON.parse(plain.stdout)).toEqual([expect.objectContaining({ environment: 'production', who: 'portal 1234' })])

  const lacking = await doctorOf(settings, 'database', '--env', 'staging')
  expect([lacking.code, lacking.stdout]).toEqual([
    1,
    expect.stringContaining('settings set environments.staging.agents.database.url -'),
  ])
  const whole = await doctorOf(settings, '--env', 'production')
  expect(whole.code).toBe(0)
  expect(whole.stdout).toMatch(/– wiki in production +not set up/)
  const unknown = await doctorOf(settings, 'wiki', '--env', 'stagin')
  expect([unknown.code, unknown.stderr]).toEqual([2, expect.stringContaining('did you mean `staging`?')])
})
