// The agents as the interface lists them: their files, versions, settings, actions and directions, transcribed here; and
// that whatever a phase lacks is told before a run starts, all of it at once.

import { beforeAll, describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { TSchema } from 'typebox'
import { type Catalogue, discover } from '../../lib/agent/catalogue.ts'
import type { Agent } from '../../lib/agent/define.ts'
import { isFilePath } from '../../lib/agent/entry.ts'
import { propertyOf } from '../../lib/settings/tree.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

type Direction = 'source' | 'target' | 'phase'

interface Row {
  type: 'connector' | 'exec'
  version: string
  required: string[]
  /** What is missing where no setting is given, although each is optional by itself. */
  missing?: string[]
  /** Dotted, as they follow `agents.<agent>.` */
  optional: string[]
  /** For self-hosted, regional and test servers, and what a vendor has beyond the interface. */
  more?: string[]
  /** By action, `source`, `target` or `phase`: its direction and the fields that an entry must have; `a|b`: one of them. */
  calls: Record<string, [direction: Direction, ...fields: string[]]>
  notify?: boolean
}

const read = (...fields: string[]): [Direction, ...string[]] => ['source', 'name', ...fields]
const write = (...fields: string[]): [Direction, ...string[]] => ['target', 'name', ...fields]

const AGENTS: Record<string, Row> = {
  wiki: {
    type: 'connector',
    version: '1.0.0',
    required: ['base_url', 'email', 'api_token'],
    optional: [],
    calls: {
      get_page: read('ref'),
      search: read('ref'),
      create_page: write('ref', 'title', 'file'),
      update_page: write('ref', 'title', 'file'),
      // Beyond the interface.
      get_attachments: read('ref'),
      add_attachment: write('ref', 'file'),
    },
  },
  data: {
    type: 'exec',
    version: '1.0.0',
    required: [],
    optional: [],
    calls: {
      filter: read('items|file', 'where'),
      pick: read('items|file', 'fields'),
      split: read('items|file', 'count'),
      join: read('files|lists'),
      template: read('text|template'),
      csv_to_json: read('file'),
      json_to_csv: read('items|file'),
      diff: read('key', 'before|before_file'),
    },
  },
  http: {
    type: 'exec',
    version: '1.0.0',
    required: [],
    optional: [],
    calls: { source: read('url'), target: write('url', 'file|body') },
  },
  metrics: {
    type: 'connector',
    version: '1.0.0',
    required: ['api_key', 'app_key'],
    optional: [],
    more: ['site', 'base_url'],
    calls: { query_metrics: read('ref'), get_monitors: read(), get_events: read(), post_event: write('file') },
  },
  email: {
    type: 'connector',
    version: '1.0.0',
    required: ['smtp_host', 'channels'],
    optional: ['smtp_port', 'username', 'password', 'tls', 'from_address', 'from_name'],
    more: ['oauth'],
    calls: { phase: ['phase'] },
    notify: true,
  },
  filestore: {
    type: 'connector',
    version: '1.0.0',
    required: ['credentials_file'],
    optional: ['auth_mode'],
    more: ['subject', 'base_url'],
    calls: { source: read('ref'), target: write('ref', 'file') },
  },
  git: {
    type: 'connector',
    version: '1.1.1',
    required: ['provider'],
    optional: [
      ...['host_a.token', 'host_a.base_branch', 'host_a.remote', 'host_a.pr_draft'],
      ...['host_b.email', 'host_b.api_token', 'host_b.workspace', 'host_b.base_url', 'host_b.base_branch'],
    ],
    more: ['host_a.base_url', 'github.token', 'bitbucket.api_token'],
    calls: { create_pr: ['phase'] },
    notify: true,
  },
  crm: {
    type: 'connector',
    version: '1.0.0',
    required: ['access_token'],
    optional: [],
    more: ['base_url'],
    calls: {
      get_contact: read('ref'),
      get_deal: read('ref'),
      get_company: read('ref'),
      search: read('ref|filters'),
      add_note: write('ref', 'file'),
    },
  },
  issues: {
    type: 'connector',
    version: '1.2.1',
    required: ['base_url', 'email', 'api_token'],
    optional: [],
    calls: {
      get_issue: read('ref'),
      get_issue_tree: read('ref'),
      get_comments: read('ref'),
      search: read('ref'),
      add_comment: write('ref', 'file'),
      transition: write('ref', 'to|file'),
      create_issue: write('file'),
      update_issue: write('file'),
      update_fields: write('file'),
      // Beyond the interface.
      get_attachments: read('ref'),
      add_attachment: write('ref', 'file'),
    },
    notify: true,
  },
  objectstore: {
    type: 'connector',
    version: '1.0.0',
    required: ['access_key_id', 'secret_access_key'],
    optional: [],
    more: ['session_token', 'endpoint', 'region', 'addressing'],
    // Actions are beyond the interface.
    calls: { source: read('ref'), target: write('ref', 'file'), list: read('ref'), delete: write('ref|refs') },
  },
  chat: {
    type: 'connector',
    version: '1.0.0',
    required: ['channels'],
    optional: [],
    calls: { phase: ['phase'] },
    notify: true,
  },
  llm: {
    type: 'connector',
    version: '1.0.0',
    required: ['provider', 'model'],
    optional: ['api_key', 'base_url'],
    calls: { complete: read('prompt') },
  },
  database: {
    type: 'connector',
    version: '1.0.0',
    required: [],
    missing: ['url'],
    optional: ['url', 'provider', 'host', 'port', 'user', 'password', 'database', 'tls', 'ca_file'],
    more: ['receipts'],
    calls: { query: read('sql'), execute: write('sql') },
  },
  ssh: {
    type: 'connector',
    version: '1.0.0',
    required: ['host'],
    optional: ['port', 'user', 'key_file', 'known_hosts', 'jump', 'ssh_config'],
    calls: { run: ['phase', 'commands'], capture: read('run'), get: read('ref'), put: write('ref', 'file') },
  },
  helpdesk: {
    type: 'connector',
    version: '1.0.0',
    required: ['subdomain', 'email', 'api_token'],
    optional: [],
    more: ['base_url'],
    calls: {
      get_ticket: read('ref'),
      get_comments: read('ref'),
      search: read('ref'),
      add_comment: write('ref', 'file'),
      update_status: write('ref', 'status|file'),
    },
  },
}
const NAMES = Object.keys(AGENTS)
const rows = Object.entries(AGENTS)

let catalogue: Catalogue
beforeAll(async () => {
  catalogue = await discover({ home: folder() })
})

test('the folder has the agents of the interface, and exec', () => {
  const inFolder = readdirSync(join(import.meta.dir, '../../agents')).sort()
  expect(inFolder).toEqual([...NAMES, 'exec'].map(name => `${name}.ts`).sort())
  expect(catalogue.names()).toEqual([...NAMES, 'exec'].sort())
  expect(catalogue.skipped).toEqual([])
  expect(catalogue.list().version).toBe('1.0.0')
})

test('each field that names a file is known to be one', () => {
  const unknown = [...NAMES, 'exec'].flatMap(name => {
    const { actions = {}, ...direct } = catalogue.get(name)!
    const entries = [...Object.values(actions), direct.source, direct.target].map(each => each?.entry)
    return entries.flatMap(entry =>
      Object.entries((entry?.properties ?? {}) as Record<string, TSchema & { items?: TSchema }>)
        .filter(([field]) => /^(files?|[a-z_]+_file)$/.test(field))
        .filter(([, schema]) => !isFilePath(schema.items ?? schema))
        .map(([field]) => `${name}.${field}`),
    )
  })
  expect(unknown).toEqual([])
})

describe.each(rows)('%s', (name, { type, version, required, optional, more = [], calls, notify = false }) => {
  const found = () => catalogue.get(name)!

  test('is of its type and version', () => {
    expect(found()).toMatchObject({ type, version })
  })

  test('takes its settings', () => {
    const { properties, required: needed = [] } = found().settings as { properties: object; required?: string[] }
    expect([...needed].sort()).toEqual(required.toSorted())
    const known = [...required, ...optional, ...more].map(key => key.split('.', 1)[0]!)
    expect(Object.keys(properties).sort()).toEqual([...new Set(known)].sort())
    for (const key of optional) expect([key, schemasAt(found(), key).length]).toEqual([key, 1])
  })

  test('has its actions, each in its direction', () => {
    const { actions = {}, ...direct } = found()
    const given = [
      ...Object.entries(actions).map(([action, { direction }]) => [action, direction]),
      ...(['source', 'target', 'phase'] as const).filter(each => direct[each]).map(each => [each, each]),
    ]
    expect(Object.fromEntries(given)).toEqual(
      Object.fromEntries(Object.entries(calls).map(([call, [direction]]) => [call, direction])),
    )
    expect(found().notify !== undefined).toBe(notify)
  })
})

function schemasAt({ settings }: Agent, key: string): TSchema[] {
  const below = (schemas: TSchema[], name: string) => schemas.flatMap(each => propertyOf(each, name))
  return key.split('.').reduce(below, [settings])
}

const LIST = { source: 'sources', target: 'target_entries' }

/** A phase for each call of an agent that names nothing of what it needs, and the places of all that is missing. */
function bare(name: string, { required, missing: called = [], calls }: Row): { phases: object[]; missing: string[] } {
  const missing: string[] = []
  const phases = Object.entries(calls).map(([call, [direction, ...fields]], at) => {
    const action = call === direction ? {} : { action: call }
    const phase = { name: `p${at}`, agent: name, depends_on: [], ...action }
    if (direction === 'phase') {
      missing.push(...fields.map(field => `/phases/${at}/${field}`))
      return phase
    }
    const list = LIST[direction]
    missing.push(...fields.map(field => `/phases/${at}/${list}/0/${field.split('|')[0]}`))
    return { ...phase, [list]: [{}] }
  })
  return { phases, missing: [...missing, ...[...required, ...called].map(key => `agents.${name}.${key}`)] }
}

describe('what is missing is told before a run starts, all at once', () => {
  let daemon: RunningDaemon
  beforeAll(async () => {
    daemon = await spawnDaemon()
  })

  async function refusedAt(phases: object[], more: object = {}): Promise<string[]> {
    const team = { name: '@local/bare', version: '1.0.0', phases, ...more }
    const { status, body } = await daemon.post('/v1/runs/start', { path: files({ 'team.yml': JSON.stringify(team) }) })
    expect([status, body.error?.code]).toEqual([400, 'invalid_request'])
    expect((await daemon.call('/v1/runs/list')).total).toBe(0)
    return body.error.details.map(({ path }: { path: string }) => path)
  }

  test.each(rows.filter(([, row]) => bare('x', row).missing.length > 0))('%s', async (name, row) => {
    const { phases, missing } = bare(name, row)
    expect((await refusedAt(phases)).sort()).toEqual(missing.sort())
  })

  test('inputs, settings and fields of several phases together', async () => {
    const inputs = [{ name: 'project', type: 'string', required: true }]
    const phases = [
      { name: 'a', agent: 'wiki@eu', action: 'get_page', sources: [{ name: 'p' }] },
      { name: 'b', agent: 'http', sources: [{ name: 'p', url: 'ftp://x' }] },
    ]
    expect((await refusedAt(phases, { inputs })).sort()).toEqual([
      '/inputs/project',
      '/phases/0/sources/0/ref',
      '/phases/1/sources/0/url',
      'agents.wiki@eu.api_token',
      'agents.wiki@eu.base_url',
      'agents.wiki@eu.email',
    ])
  })

  test.each(rows.filter(([, { calls }]) => !Object.keys(calls).some(call => call in LIST || call === 'phase')))(
    'the action of %s, and its entries',
    async (name, { calls }) => {
      expect(await refusedAt([{ name: 'p', agent: name }])).toContain('/phases/0/action')
      for (const [action, [direction]] of Object.entries(calls)) {
        if (direction === 'phase') continue
        expect(await refusedAt([{ name: 'p', agent: name, action }])).toContain(`/phases/0/${LIST[direction]}`)
      }
    },
  )

  test('what an event of `notify` needs, wherever it stands', async () => {
    const issues = (fields: object, options: object) => ({
      name: 'p',
      agent: 'issues',
      ...fields,
      notify: { on_fail: options },
    })
    const at = async (phase: object) => {
      const other = { name: 'other', agent: 'http', sources: [{ name: 'x' }] }
      return (await refusedAt([other, phase])).filter(path => path.startsWith('/phases/1'))
    }
    expect(await at(issues({}, { action: 'transition', ref: 'WEB-1' }))).toEqual(['/phases/1/notify/on_fail/to'])
    expect(await at(issues({ action: 'transition' }, { ref: 'WEB-1' }))).toEqual(['/phases/1/notify/on_fail/to'])
    expect(await at(issues({ to: 'Done' }, { action: 'transition', ref: 'WEB-1' }))).toEqual([])
    expect(await at(issues({}, { action: 'add_comment', ref: 'WEB-1' }))).toEqual([])
    expect(await at(issues({}, {}))).toEqual(['/phases/1/notify/on_fail/action', '/phases/1/notify/on_fail/ref'])
  })

  test.each([{ file: 'a', body: 'b' }, {}, { method: 'DELETE' }])(
    'one of two, not both and not none: %o',
    async given => {
      const entry = { name: 'x', url: 'http://127.0.0.1:1/', ...given }
      expect(await refusedAt([{ name: 'p', agent: 'http', target_entries: [entry] }])).toEqual([
        '/phases/0/target_entries/0/file',
      ])
    },
  )

  test('settings that others call for', async () => {
    const local = { authorization: `Bearer ${daemon.token}` }
    const set = (key: string, value: unknown) => daemon.call('/v1/settings/set', { key: `agents.${key}`, value }, local)
    const create = [{ name: 'p', agent: 'git', action: 'create_pr' }]
    await set('git.provider', 'host_a')
    expect(await refusedAt(create)).toEqual(['agents.git.host_a.token'])
    await set('git.provider', 'bitbucket')
    await set('git.bitbucket.email', 'a@acme.test')
    expect(await refusedAt(create)).toEqual(['agents.git.bitbucket.api_token', 'agents.git.bitbucket.workspace'])
    await set('email.smtp_host', 'mail.acme.test')
    await set('email.channels', { team: 'team@acme.test' })
    await set('email.username', 'robot')
    const mail = [{ name: 'p', agent: 'email', notify: ['on_fail'] }]
    expect(await refusedAt([...mail, ...create])).toContain('agents.email.password')
    expect(await refusedAt([...mail, ...create])).not.toContain('agents.email.from_address')
  })
})
