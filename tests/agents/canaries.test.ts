// Canaries: every agent with a vendor that says back all it was sent, credential included, as a refusal or as success.
// Then the secrets are looked for, raw and encoded, in replies, in what the daemon said, in its home, and in file names.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Glob } from 'bun'
import type { Agent } from '../../lib/agent/define.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { variantsOf } from '../support/variants.ts'
import { freshClone } from '../vendors/git-host.ts'
import { type MailVendor, mailVendor } from '../vendors/mail.ts'

/** Everything that is looked for. */
const SECRETS = new Set(['AKIACANARY7Q', 'canary-of-the-webhook-5d'])

function canary(name: string): string {
  const secret = `canary/of ${name}+9e1d7c`
  SECRETS.add(secret)
  return secret
}

/** Answers with the request, in every form that a vendor might quote it. */
function mirror(status: number) {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      const given = request.headers.get('authorization') ?? ''
      const plain = given.startsWith('Basic ') ? atob(given.slice(6)) : given
      const keys = ['dd-api-key', 'dd-application-key', 'x-api-key'].map(name => request.headers.get(name) ?? '')
      // First, for errors quote the beginning of what a vendor says.
      const message = [plain, given, ...keys, new URL(request.url).pathname, await request.text()].join(' ')
      const said = { message, name: plain, id: plain, errors: [message], headers: Object.fromEntries(request.headers) }
      const echo = JSON.stringify(said)
      if (given.startsWith('AWS4')) {
        const xml = `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>${given}</Message></Error>`
        return new Response(xml, { status: 403, headers: { 'content-type': 'application/xml' } })
      }
      return new Response(echo, { status, headers: { 'content-type': 'application/json' } })
    },
  })
  return { url: server.url.origin, stop: () => server.stop(true) }
}

let mail: MailVendor
const servers = [mirror(400), mirror(200)] as const
beforeAll(async () => {
  mail = await mailVendor({
    onAuth(given, _, done) {
      const password = given.password ?? ''
      done(Object.assign(new Error(`no ${password}, nor ${btoa(password)}`), { responseCode: 535 }))
    },
  })
})
afterAll(async () => {
  for (const { stop } of servers) stop()
  await mail.close()
})

function settingsFor(base_url: string) {
  const credentials = {
    client_id: 'client',
    client_secret: canary('client'),
    refresh_token: canary('refresh'),
  }
  const account = { base_url, email: 'ada@acme.test' }
  return {
    agents: {
      wiki: { ...account, api_token: canary('wiki') },
      issues: { ...account, api_token: canary('issues') },
      helpdesk: { ...account, subdomain: 'acme', api_token: canary('helpdesk') },
      crm: { base_url, access_token: canary('crm') },
      metrics: { base_url, api_key: canary('metrics-api'), app_key: canary('metrics-app') },
      objectstore: { endpoint: base_url, access_key_id: 'AKIACANARY7Q', secret_access_key: canary('store') },
      filestore: {
        base_url,
        auth_mode: 'oauth',
        credentials_file: join(files({ 'c.json': JSON.stringify(credentials) }), 'c.json'),
      },
      git: { provider: 'host_a', host_a: { token: canary('git'), base_url } },
      'git@bucket': {
        provider: 'bitbucket',
        bitbucket: { email: 'bot@acme.test', api_token: canary('bucket'), workspace: 'acme', base_url },
      },
      llm: { provider: 'openai', model: 'm', api_key: canary('llm'), base_url },
      'llm@other': { provider: 'anthropic', model: 'm', api_key: canary('llm-other'), base_url },
      database: { url: `postgres://ada:${encodeURIComponent(canary('database'))}@127.0.0.1:1/data` },
      'database@other': {
        ...{ provider: 'mysql', host: '127.0.0.1', port: 1, user: 'ada' },
        ...{ password: canary('database-other'), database: 'data' },
      },
      chat: { channels: { ops: `${base_url}/services/T0/canary-of-the-webhook-5d` } },
      email: {
        ...{ smtp_host: '127.0.0.1', smtp_port: mail.port, tls: false, username: 'robot@acme.test' },
        ...{ password: canary('mail'), channels: { ops: 'ops@acme.test' } },
      },
    },
  }
}

const source = (agent: string, action: string | null, entry: object = { ref: '7' }) => ({
  agent,
  ...(action && { action }),
  sources: [{ name: 'out.json', ...entry }],
})
const target = (agent: string, action: string | null, entry: object) => ({
  agent,
  ...(action && { action }),
  target_entries: [{ name: 'out', file: 'in.json', ...entry }],
})

const PULL_REQUEST = { agent: 'git', action: 'create_pr' }

const CALLS: { agent: string; [field: string]: unknown }[] = [
  ...[source('wiki', 'get_page'), source('wiki', 'search'), target('wiki', 'create_page', { ref: 'DOCS', title: 'T' })],
  ...[source('issues', 'get_issue'), source('issues', 'search'), target('issues', 'add_comment', { ref: 'WEB-1' })],
  ...['get_ticket', 'get_comments', 'search'].map(action => source('helpdesk', action)),
  ...[target('helpdesk', 'add_comment', { ref: '7' }), source('crm', 'get_contact'), source('crm', 'search')],
  ...[target('crm', 'add_note', { ref: 'contacts/7' }), source('metrics', 'query_metrics')],
  ...[source('metrics', 'get_monitors', {}), source('metrics', 'get_events', {}), target('metrics', 'post_event', {})],
  ...[source('objectstore', null, { ref: 'bucket/key' }), target('objectstore', null, { ref: 'bucket/key' })],
  source('objectstore', 'list', { ref: 'bucket/' }),
  { agent: 'objectstore', action: 'delete', target_entries: [{ name: 'gone', ref: 'bucket/key' }] },
  ...[source('filestore', null), target('filestore', null, { ref: 'folder' })],
  ...[PULL_REQUEST, { agent: 'chat', message: 'm' }, { agent: 'email', message: 'm' }],
  // Both push from the same clone.
  { ...PULL_REQUEST, agent: 'git@bucket', depends_on: ['git'] },
  ...['llm', 'llm@other'].map(agent => source(agent, 'complete', { prompt: 'p', system: 's', file: 'in.json' })),
  ...['database', 'database@other'].map(agent => source(agent, 'query', { sql: 'SELECT 1' })),
]

function found(where: string, bytes: string): string[] {
  return [...SECRETS].flatMap(secret =>
    [...variantsOf(secret)].flatMap(variant => {
      const at = bytes.indexOf(variant)
      return at < 0 ? [] : [`${where}: …${bytes.slice(Math.max(0, at - 120), at + 60)}…`]
    }),
  )
}

test.each([...new Glob('*.ts').scanSync(join(import.meta.dir, '../../agents'))])(
  '%s is among the agents that are asked here, if it has settings',
  async file => {
    const { settings }: Agent = (await import(`../../agents/${file}`)).default
    const name = basename(file, '.ts')
    // The key of ssh is in a file that only ssh reads.
    const known = Object.keys(settings.properties).length === 0 || name === 'ssh' ? [] : [name]
    expect(Object.keys(settingsFor('').agents).filter(each => each === name)).toEqual(known)
    expect([...new Set(CALLS.map(({ agent }) => agent))].filter(agent => agent === name)).toEqual(known)
  },
)

test.each([
  ['a refusal', servers[0].url],
  ['success', servers[1].url],
])(
  'what a vendor says back as %s shows no secret of any agent',
  async (_, base) => {
    const home = folder()
    writeFileSync(join(home, 'settings.yml'), JSON.stringify(settingsFor(base)), { mode: 0o600 })
    const workspace = freshClone(`${base}/acme/app.git`)
    writeFileSync(join(workspace, 'in.json'), '{"title":"t","text":"x"}')
    const daemon = await spawnDaemon({ home, env: { CADRE_LOG_LEVEL: 'debug' } })

    const phases = CALLS.map((call, at) => {
      return { name: call === PULL_REQUEST ? 'git' : `p${at}`, depends_on: [], on_failure: 'continue', ...call }
    })
    const listeners = ['chat', 'email', 'git'].map(agent => ({ name: `on-${agent}`, agent, notify: ['on_phase_fail'] }))
    const team = { name: '@local/all', version: '1.0.0', phases: [...phases, ...listeners] }
    const path = files({ 'team.yml': JSON.stringify(team) })
    const { run_id } = await daemon.call('/v1/runs/start', { path, workspace })
    const heard: string[] = []
    const ask = async (route: string, body: object) => {
      const { body: reply } = await daemon.post(route, body, { authorization: `Bearer ${daemon.token}` })
      heard.push(JSON.stringify(reply))
      return reply.data
    }
    // Writes whose fate is in doubt ask a person, who gives them up.
    for (let state = ''; !['completed', 'failed'].includes(state); await Bun.sleep(50)) {
      for (const { id } of (await ask('/v1/reviews/list', { state: 'pending' })).reviews) {
        await ask('/v1/reviews/decide', { review_id: id, decision: 'skip' })
      }
      state = (await ask('/v1/runs/get', { run_id })).state
    }
    const result = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
    heard.push(JSON.stringify(result))
    for (const what of ['get', 'why', 'logs']) await ask(`/v1/runs/${what}`, { run_id })
    await ask('/v1/artifacts/list', { run_id })
    await ask('/v1/settings/list', {})
    await daemon.stop()

    // They were all asked, and much was masked.
    const states = result.phases.map(({ state }: { state: string }) => state)
    expect(states.every((state: string) => ['completed', 'failed', 'skipped'].includes(state))).toBe(true)
    if (base === servers[0].url) expect(heard.join('').split('***').length).toBeGreaterThan(CALLS.length)

    const below = readdirSync(home, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
    const paths = below.map(({ parentPath, name }) => join(parentPath, name))
    // Artifacts are what the vendor sent, and are kept as they are.
    const kept = paths.filter(file => !file.endsWith('/settings.yml') && !/\/runs\/[^/]+\/files\//.test(file))
    const places = [
      ...found('replies', heard.join('\n')),
      ...found('output', daemon.output.stdout + daemon.output.stderr),
      ...found('file names', paths.join('\n')),
      ...kept.flatMap(file => found(file, readFileSync(file, 'latin1'))),
    ]
    expect(places).toEqual([])
  },
  60_000,
)
