// `doctor` asks for the permissions that the teams of a home need: those in its workspaces, and those of its runs of the last
// 30 days. What else a credential lacks is a note.

import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Finding } from '../../lib/daemon/runs/agent-checks.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { change } from '../support/aged-home.ts'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { ACCOUNT as ATLASSIAN } from '../vendors/atlassian.ts'
import { ACCOUNT as BITBUCKET, fakeBitbucket } from '../vendors/bitbucket.ts'
import { fakeCrm, TOKEN as HUBSPOT } from '../vendors/crm.ts'
import { fakeGitHub, TOKEN as GITHUB } from '../vendors/github.ts'
import { fakeHelpdesk, ACCOUNT as ZENDESK } from '../vendors/helpdesk.ts'
import { fakeIssues } from '../vendors/issues.ts'
import { KEYS as DATADOG, fakeMetrics } from '../vendors/metrics.ts'
import { fakeWiki } from '../vendors/wiki.ts'

setDefaultTimeout(120_000)

const DAY_MS = 86_400_000

const vendors = {
  wiki: fakeWiki(),
  issues: fakeIssues(),
  crm: fakeCrm(),
  metrics: fakeMetrics(),
  helpdesk: fakeHelpdesk(),
  github: fakeGitHub(),
  bitbucket: fakeBitbucket(),
}
afterAll(() => {
  for (const vendor of Object.values(vendors)) vendor[Symbol.dispose]()
})
const always = { times: 1_000_000 }
const forbidden = () => refusal(403, { message: 'no' })
vendors.wiki.fail(/api\/search|api\/v2\/(spaces|pages)/, forbidden, always)
vendors.issues.fail(/mypermissions/, () => Response.json({ permissions: {} }), always)
vendors.crm.fail(/access-token-info/, () => Response.json({ hubId: 1234, scopes: ['oauth'] }), always)
vendors.metrics.fail(/api\/v1\/(query|monitor)|api\/v2\/events/, forbidden, always)
const endUser = { id: 2, name: 'Kim', email: null, role: 'end-user' }
vendors.helpdesk.fail(/users\/me/, () => Response.json({ user: endUser }), always)
const reader = { headers: { 'x-oauth-scopes': 'read:user' } }
vendors.github.fail(/GET \/user$/, () => Response.json({ login: 'x' }, reader), always)
vendors.bitbucket.fail(/repositories\/acme$/, forbidden, always)

const crm = { access_token: HUBSPOT, base_url: vendors.crm.url }
const agents = {
  wiki: { ...ATLASSIAN, base_url: `${vendors.wiki.url}/wiki` },
  issues: { ...ATLASSIAN, base_url: vendors.issues.url },
  crm,
  metrics: { ...DATADOG, base_url: vendors.metrics.url },
  helpdesk: { ...ZENDESK, base_url: vendors.helpdesk.url },
  git: { provider: 'github', github: { token: GITHUB, base_url: vendors.github.url } },
  'git@bucket': { provider: 'host_b', host_b: { ...BITBUCKET, base_url: `${vendors.bitbucket.url}/2.0` } },
}

/** A home with these settings whose workspaces are these folders. */
async function homeWith(settings: object, ...workspaces: string[]): Promise<string> {
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  for (const path of workspaces) expect(await command(['workspaces', 'add', path], { home })).toMatchObject({ code: 0 })
  return home
}

async function doctor(home: string, ...args: string[]) {
  const { code, stdout } = await command(['doctor', ...args, '--json'], { home })
  const findings = JSON.parse(stdout) as Finding[]
  return { code, findings, of: (agent: string) => findings.find(each => each.agent === agent)! }
}

const team = (name: string, phases: string, more = '') =>
  `name: "@local/${name}"\nversion: 1.0.0\n${more}phases:\n${phases}`
const source = (name: string, agent: string, action: string, entry = '') =>
  `  - { name: ${name}, agent: ${agent}, action: ${action}, sources: [{ name: out.json${entry} }] }\n`
const target = (name: string, agent: string, action: string, entry = '') =>
  `  - { name: ${name}, agent: ${agent}, action: ${action}, target_entries: [{ name: out${entry} }] }\n`
const deals = source('deals', 'crm', 'search', ', ref: a, object: deals')

const DEALS = 'crm.objects.deals.read'
const ALL = ['crm.objects.contacts.read', 'crm.objects.companies.read', DEALS, 'tickets', 'crm.objects.contacts.write']

test('each built-in agent says which of its actions need what its doctor finds missing', async () => {
  const phases = [
    source('page', 'wiki', 'get_page', ', ref: "1"'),
    source('pages', 'wiki', 'search', ', ref: type = page'),
    source('page_files', 'wiki', 'get_attachments', ', ref: "1"'),
    target('new_page', 'wiki', 'create_page', ', ref: DOCS, title: t, file: f'),
    target('change_page', 'wiki', 'update_page', ', ref: "1", title: t, file: f'),
    target('page_file', 'wiki', 'add_attachment', ', ref: "1", file: f'),
    source('issue', 'issues', 'get_issue', ', ref: WEB-1'),
    source('tree', 'issues', 'get_issue_tree', ', ref: WEB-1'),
    source('comments', 'issues', 'get_comments', ', ref: WEB-1'),
    source('found', 'issues', 'search', ', ref: project = WEB'),
    source('issue_files', 'issues', 'get_attachments', ', ref: WEB-1'),
    target('comment', 'issues', 'add_comment', ', ref: WEB-1, file: f'),
    target('attach', 'issues', 'add_attachment', ', ref: WEB-1, file: f'),
    target('move', 'issues', 'transition', ', ref: WEB-1, to: Done'),
    target('close', 'issues', 'transition', ', ref: WEB-1, to: Done, comment: bye'),
    target('create', 'issues', 'create_issue', ', file: f'),
    target('update', 'issues', 'update_issue', ', file: f'),
    target('fields', 'issues', 'update_fields', ', file: f'),
    '  - { name: told, agent: issues, ref: WEB-1, notify: { on_fail: { action: add_comment }, on_complete: { action: transition, to: Done } } }\n',
    source('contact', 'crm', 'get_contact', ', ref: "1"'),
    source('company', 'crm', 'get_company', ', ref: "1"'),
    source('deal', 'crm', 'get_deal', ', ref: "1"'),
    source('contacts', 'crm', 'search', ', ref: a'),
    source('tickets', 'crm', 'search', ', ref: a, object: tickets'),
    target('note', 'crm', 'add_note', ', ref: deals/1, file: f'),
    source('series', 'metrics', 'query_metrics', ', ref: "avg:x{*}"'),
    source('monitors', 'metrics', 'get_monitors'),
    source('events', 'metrics', 'get_events'),
    target('event', 'metrics', 'post_event', ', file: f'),
    source('ticket', 'helpdesk', 'get_ticket', ', ref: "1"'),
    source('ticket_comments', 'helpdesk', 'get_comments', ', ref: "1"'),
    source('ticket_search', 'helpdesk', 'search', ', ref: a'),
    target('answer', 'helpdesk', 'add_comment', ', ref: "1", file: f'),
    target('solve', 'helpdesk', 'update_status', ', ref: "1", status: solved'),
    '  - { name: pull, agent: git, action: create_pr, title: t }\n',
    '  - { name: pulled, agent: git@bucket, title: t, notify: [on_fail] }\n',
  ]
  const home = await homeWith({ agents }, files({ 'team.yml': team('all', phases.join('')) }))
  const { code, findings, of } = await doctor(home)
  expect(findings.filter(({ agent }) => agent.includes('/'))).toEqual([])
  const needed = Object.fromEntries(
    Object.keys(agents).map(agent => {
      const { missing, needed_by = [], unneeded, state } = of(agent)
      expect({ agent, unneeded, state }).toEqual({ agent, unneeded: undefined, state: 'wrong' })
      const by = Map.groupBy(needed_by, ({ permission }) => permission)
      return [
        agent,
        missing.map(each => [
          each,
          by
            .get(each)!
            .map(({ phase }) => phase)
            .join(' '),
        ]),
      ]
    }),
  )
  expect(needed).toEqual({
    wiki: [
      ['read:space:confluence', 'new_page'],
      ['read:page:confluence', 'page page_files new_page change_page page_file'],
      ['search:confluence', 'pages'],
    ],
    issues: [
      ['BROWSE_PROJECTS', 'issue tree comments found issue_files comment attach move close create update fields told'],
      ['CREATE_ISSUES', 'create'],
      ['EDIT_ISSUES', 'update fields'],
      ['TRANSITION_ISSUES', 'move close told'],
      ['ADD_COMMENTS', 'comment close told'],
      ['CREATE_ATTACHMENTS', 'attach'],
    ],
    crm: [
      ['crm.objects.contacts.read', 'contact contacts'],
      ['crm.objects.companies.read', 'company'],
      [DEALS, 'deal note'],
      ['tickets', 'tickets'],
      ['crm.objects.contacts.write', 'note'],
    ],
    metrics: [
      ['timeseries_query', 'series'],
      ['monitors_read', 'monitors'],
      ['events_read', 'events event'],
    ],
    helpdesk: [['the role agent', 'ticket ticket_comments ticket_search answer solve']],
    git: [['repo', 'pull']],
    'git@bucket': [['read:repository:bitbucket', 'pulled']],
  })
  expect(code).toBe(1)
})

test('in a home without teams and runs, and in one whose teams need other things, what lacks is a note', async () => {
  const http = '  - { name: ask, agent: http, sources: [{ name: out, url: /crm/v3/owners, account: crm }] }\n'
  const home = await homeWith({ agents: { crm } })
  for (const workspace of [
    null,
    files({ 'team.yml': team('other', http), 'more/team.yml': team('none', deals.replace('crm', 'crm@eu')) }),
  ]) {
    if (workspace) await command(['workspaces', 'add', workspace], { home })
    const { code, of } = await doctor(home)
    expect(of('crm')).toEqual({
      ...{ agent: 'crm', state: 'fine', who: 'portal 1234', missing: [], unneeded: ALL, text: vendors.crm.url },
    })
    expect(code).toBe(0)
    const { stdout } = await command(['doctor', 'crm'], { home })
    expect(stdout).toMatch(
      /^✓ crm +portal 1234 +http\S+; lacks crm.objects.contacts.read, .*, which no team here needs\n$/,
    )
  }
})

test('what a team of a workspace needs is a fault that names it, also in a sub-team and in a map in place', async () => {
  const workspace = files({
    'flows/parent/team.yml': team('parent', '  - { name: below, type: team, team: ../child }\n'),
    'flows/child/team.yml': team(
      'child',
      '  - name: each\n    type: map\n    items: [a]\n    phases:\n' +
        '      - { name: deal, agent: crm, action: get_deal, sources: [{ name: out.json, ref: "{{ item }}" }] }\n',
    ),
  })
  const home = await homeWith({ agents: { crm } }, workspace)
  const { code, of } = await doctor(home)
  expect(of('crm')).toMatchObject({
    state: 'wrong',
    missing: [DEALS],
    needed_by: [{ permission: DEALS, team: '@local/child/each', phase: 'deal' }],
    unneeded: ALL.filter(each => each !== DEALS),
  })
  expect(code).toBe(1)
  const { stdout } = await command(['doctor', 'crm'], { home })
  expect(stdout).toMatch(
    /^✗ crm +portal 1234 +lacks crm\.objects\.deals\.read \(phase deal of @local\/child\/each\) +http\S+; lacks crm.*, which no team here needs\n$/,
  )
})

test('an entry whose template decides may need any permission of its kind', async () => {
  const search = source('any', 'crm', 'search', ', ref: a, object: "{{ inputs.kind }}"')
  const inputs = 'inputs: [{ name: kind, type: string, default: deals }]\n'
  const home = await homeWith({ agents: { crm } }, files({ 'team.yml': team('any', search, inputs) }))
  const { of } = await doctor(home)
  expect(of('crm')).toMatchObject({ missing: ALL.slice(0, 4), unneeded: ALL.slice(4) })
})

test('what a run of 29 days ago executed is needed, and what one of 31 days ago did is not', async () => {
  const home = await homeWith({ agents: { crm } })
  const outside = files({
    'team.yml': team('once', '  - { name: below, type: team, team: ./deals }\n'),
    'deals/team.yml': team('deals', deals),
  })
  expect((await command(['run', outside], { home })).code).toBe(0)
  // The team is known from its run alone, as the bundle has it.
  rmSync(outside, { recursive: true })
  const began = (days: number) =>
    change(home, 'UPDATE runs SET created_at = ?1, started_at = ?1', Date.now() - days * DAY_MS)
  began(29)
  const needed = await doctor(home)
  expect(needed.of('crm')).toMatchObject({
    state: 'wrong',
    missing: [DEALS],
    needed_by: [{ team: '@local/deals', phase: 'deals' }],
  })
  expect(needed.code).toBe(1)
  began(31)
  const past = await doctor(home)
  expect(past.of('crm')).toMatchObject({ state: 'fine', missing: [], unneeded: ALL })
  expect(past.code).toBe(0)
})

test('a run that waited for long at its hub began when it began, whatever its id says', async () => {
  const home = await homeWith({ agents: { crm } })
  const outside = files({ 'team.yml': team('deals', deals) })
  expect((await command(['run', outside], { home })).code).toBe(0)
  rmSync(outside, { recursive: true })
  const at = (Date.now() - 60 * DAY_MS).toString(16).padStart(12, '0')
  const id = `${at.slice(0, 8)}-${at.slice(8)}-7000-8000-000000000001`
  change(home, 'UPDATE runs SET id = ?1, root_id = ?1', id)
  expect((await doctor(home)).of('crm')).toMatchObject({ state: 'wrong', missing: [DEALS] })
})

test('a team that cannot be read is said where a credential lacks something, and is no fault', async () => {
  const workspace = files({
    'a/team.yml': 'name: "@local/a"\nversion: 1.0.0\nphases: [\n',
    'b/team.yml': team('b', deals),
    'c/team.yml': 'lineup: [Ada]\n',
  })
  const home = await homeWith({ agents: { crm } }, workspace)
  const { code, findings } = await doctor(home)
  const said = findings.filter(({ agent }) => agent.startsWith(workspace))
  expect(said).toEqual([
    expect.objectContaining({
      agent: join(workspace, 'a/team.yml'),
      state: 'settings',
      text: expect.stringMatching(/^not all that it needs is known: team\.yml:\d+:\d+: /),
    }),
    expect.objectContaining({
      agent: join(workspace, 'c/team.yml'),
      state: 'settings',
      text: expect.stringContaining('this is no team'),
    }),
  ])
  expect(JSON.stringify(findings)).not.toContain('Ada')
  expect(code).toBe(1)
  rmSync(join(workspace, 'b'), { recursive: true })
  expect((await doctor(home)).code).toBe(0)
  rmSync(workspace, { recursive: true })
  expect((await doctor(home)).findings.filter(({ agent }) => agent.startsWith(workspace))).toEqual([])
})

test('a workspace with more files than are looked at is said, and the teams before them are known', async () => {
  const workspace = files({ 'a/team.yml': team('a', deals) })
  const home = await homeWith({ agents: { crm } }, workspace)
  const many = join(workspace, 'many')
  mkdirSync(many)
  for (let count = 0; count < 5_001; count++) writeFileSync(join(many, `${count}`), '')
  const { of } = await doctor(home)
  expect(of('crm').missing).toEqual([DEALS])
  expect(of(workspace)).toMatchObject({ state: 'settings', text: expect.stringContaining('more than 5000 files') })
})

test('each environment is asked for what teams need there, and the plain settings for what others inherit', async () => {
  const environments = {
    staging: { agents: { crm } },
    production: { inherit: true },
    lone: { agents: { wiki: agents.wiki } },
  }
  const workspace = files({ 'team.yml': '' })
  const home = await homeWith({ agents: { crm }, environments }, workspace)
  const states = async (allowed: string | null, ...args: string[]) => {
    const where = allowed === null ? '' : `environments: { allow: [${allowed}] }\n`
    writeFileSync(join(workspace, 'team.yml'), team('deals', deals, where))
    const { findings } = await doctor(home, 'crm', ...args)
    return findings.map(({ environment = null, missing }) => [environment, missing.length])
  }
  const all = (plain: number, staging: number) => [
    [null, plain],
    ['staging', staging],
  ]
  expect(await states('staging')).toEqual(all(0, 1))
  expect(await states('production')).toEqual(all(1, 0))
  expect(await states('production', '--env', 'production')).toEqual([['production', 1]])
  expect(await states('production', '--env', 'staging')).toEqual([['staging', 0]])
  expect(await states('lone')).toEqual(all(0, 0))
  expect(await states(null)).toEqual(all(1, 1))
  rmSync(workspace, { recursive: true })

  const outside = files({ 'team.yml': team('deals', deals) })
  expect((await command(['run', outside, '--env', 'staging'], { home })).code).toBe(0)
  rmSync(outside, { recursive: true })
  const { findings } = await doctor(home, 'crm')
  expect(findings.map(({ state }) => state)).toEqual(['fine', 'wrong'])
})

test('an agent that says nothing of permissions may need any of them for each of its actions', async () => {
  const home = await homeWith({ agents: { shop: { token: 't' } } })
  mkdirSync(join(home, 'agents'))
  const code = `import { agent, Type } from 'cadre'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Sells.', settings: Type.Object({ token: Type.String() }),
  doctor: async () => ({ who: 'ada', missing: ['shop:read', 'shop:write'], text: 'asked' }),
  actions: {
    look: { direction: 'source', effect: 'read', entry: Type.Object({ name: Type.String() }), RUN },
    sell: { direction: 'target', effect: 'once', entry: Type.Object({ name: Type.String() }), RUN },
  },
})
`
  const write = (look: string) =>
    writeFileSync(
      join(home, 'agents/shop.ts'),
      code.replace('RUN', `${look}RUN`).replaceAll('RUN', "run: async () => ({ text: '', data: null })"),
    )
  write('')
  expect((await doctor(home)).of('shop')).toMatchObject({ state: 'fine', unneeded: ['shop:read', 'shop:write'] })
  const workspace = files({ 'team.yml': team('look', source('look', 'shop', 'look')) })
  await command(['workspaces', 'add', workspace], { home })
  const { code: exit, of } = await doctor(home)
  expect(of('shop')).toMatchObject({ state: 'wrong', missing: ['shop:read', 'shop:write'] })
  expect(exit).toBe(1)
  write("permissions: ['shop:read'], ")
  expect((await doctor(home)).of('shop')).toMatchObject({ missing: ['shop:read'], unneeded: ['shop:write'] })
  write("permissions: () => { throw new Error('no') }, ")
  expect((await doctor(home)).of('shop').missing).toEqual(['shop:read', 'shop:write'])
})
