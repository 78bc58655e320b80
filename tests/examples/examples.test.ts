// Every example, run by one daemon against vendors of our own and real programs: git, npm, ssh, a database. Commands run
// in bubblewrap where it works, with the network where the examples need it.
// examples/repo-report is also run by tests/daemon/terminal.test.ts and tests/deploy, ticket-digest by the file beside this one.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { parse } from 'yaml'
import type { JsonObject } from '../../lib/json.ts'
import { fakeVendor } from '../../lib/testing/fake-vendor.ts'
import { until } from '../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'
import { hasBubblewrap } from '../support/sandbox.ts'
import { ACCOUNT } from '../vendors/atlassian.ts'
import { chatVendor } from '../vendors/chat.ts'
import { sqliteDatabase } from '../vendors/databases.ts'
import { git } from '../vendors/git-host.ts'
import { addComment, addIssue, doc, fakeIssues } from '../vendors/issues.ts'
import { fakeOpenai, KEY, MODEL } from '../vendors/llm.ts'
import { fakeMetrics, KEYS } from '../vendors/metrics.ts'
import { ACCESS, BUCKET, type ObjectVendor, objectVendor } from '../vendors/objectstore.ts'
import { hasSshd, startSshd } from '../vendors/sshd.ts'

const EXAMPLES = join(import.meta.dir, '../../examples')
const HOUR = 3_600_000
const TOKEN = 'a token of GitHub'

const issues = fakeIssues()
const metrics = fakeMetrics()
const chat = chatVendor()
const model = fakeOpenai()
const home = folder()
let store: ObjectVendor
let bucket: Bun.S3Client
let data: { settings: object; sql(text: string): Promise<unknown>; close(): Promise<unknown> }
let daemon: RunningDaemon

beforeAll(async () => {
  store = await objectVendor()
  const { access_key_id: accessKeyId, secret_access_key: secretAccessKey, region } = ACCESS
  bucket = new Bun.S3Client({ endpoint: store.endpoint, accessKeyId, secretAccessKey, region, bucket: BUCKET })
  data = await openData()
  const agents = {
    issues: { ...ACCOUNT, base_url: issues.url },
    metrics: { ...KEYS, base_url: metrics.url },
    chat: { channels: { team: chat.hook('team') } },
    llm: { provider: 'openai', model: MODEL, api_key: KEY, base_url: `${model.url}/v1` },
    objectstore: { ...ACCESS, endpoint: store.endpoint },
    database: data.settings,
  }
  const exec = { sandbox: hasBubblewrap ? 'bubblewrap' : 'none', sandbox_network: ['@local/*'] }
  const more = { secrets: { github: TOKEN }, network: { allow: ['127.0.0.1'] } }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents, exec, ...more }), { mode: 0o600 })
  daemon = await spawnDaemon({ home })
}, 60_000)
afterAll(async () => {
  await daemon.stop()
  for (const server of [issues, metrics, chat, model]) server[Symbol.dispose]()
  await Promise.all([store[Symbol.asyncDispose](), data.close()])
})

/** The gate's PostgreSQL where there is one, else SQLite. */
async function openData(): Promise<typeof data> {
  const server = process.env.TEST_POSTGRES_URL
  if (!server) return sqliteDatabase()
  const database = await freshPostgres(server)
  const sql = new Bun.SQL(database.location, { max: 1 })
  return {
    settings: { url: database.location },
    sql: text => sql.unsafe(text),
    close: () => sql.close().then(() => database[Symbol.asyncDispose]()),
  }
}

interface Started {
  inputs?: object
  workspace?: string
}

async function start(name: string, { inputs = {}, workspace = folder() }: Started = {}): Promise<string> {
  const { workspace_id } = await daemon.call('/v1/workspaces/add', { path: workspace })
  const request = { path: join(EXAMPLES, name), inputs, workspace: workspace_id }
  return (await daemon.call('/v1/runs/start', request)).run_id
}

async function ended(runId: string) {
  const { state, outputs, error } = await daemon.ended(runId)
  const read = (path: string) => readFileSync(join(home, 'runs', runId, path), 'utf8')
  return { state, message: error?.message, outputs: outputs as JsonObject, read }
}

const run = async (name: string, started?: Started) => ended(await start(name, started))

/** Answers the question of a run once it asks. */
async function decide(runId: string, decision: string, values: object) {
  const review = await until(async () => {
    const { reviews } = await daemon.call('/v1/reviews/list', { run_id: runId, state: 'pending' })
    return reviews[0]
  }, 'a question')
  const asked = { review_id: review.id, decision, values }
  await daemon.call('/v1/reviews/decide', asked, { authorization: `Bearer ${daemon.token}` })
  return review
}

/** A clone with one commit that is tagged and pushed. */
function clone(text: Record<string, string>): string {
  const work = files(text)
  const origin = join(work, '.git/origin.git')
  mkdirSync(origin, { recursive: true })
  git(origin, 'init', '--quiet', '--bare', '--initial-branch=main')
  git(work, 'init', '--quiet', '--initial-branch=main')
  git(work, 'config', 'user.name', 'Dev')
  git(work, 'config', 'user.email', 'dev@acme.test')
  git(work, 'remote', 'add', 'origin', origin)
  commit(work, 'chore: begin')
  git(work, 'tag', 'v1.0.0')
  git(work, 'push', '--quiet', '--tags', '--set-upstream', 'origin', 'main')
  return work
}

function commit(work: string, message: string): void {
  git(work, 'add', '--all')
  git(work, 'commit', '--quiet', '--allow-empty', '--message', message)
}

const names = readdirSync(EXAMPLES).sort()

test('there are ten and more', () => expect(names.length).toBeGreaterThanOrEqual(10))

test.each(names)('%s: says what it is and how it is called, and describes its inputs', async name => {
  const source = readFileSync(join(EXAMPLES, name, 'team.yml'), 'utf8')
  expect(source).toStartWith('# yaml-language-server: $schema=http://127.0.0.1:7401/schema/team.json\n# ')
  expect(source).toContain(`cadre run examples/${name}`)
  for (const file of new Bun.Glob('**/team.yml').scanSync(join(EXAMPLES, name))) {
    const team = parse(readFileSync(join(EXAMPLES, name, file), 'utf8'))
    expect([file, team.description]).toEqual([file, expect.any(String)])
    for (const { name: input, description } of team.inputs ?? []) {
      expect([file, input, description]).toEqual([file, input, expect.any(String)])
    }
  }
  const { missing_secrets } = await daemon.call('/v1/teams/validate', { path: join(EXAMPLES, name) })
  expect(missing_secrets).toEqual([])
})

test('dependency-report: what npm finds, of each project', async () => {
  const versions = ['1.0.0', '1.2.0', '2.0.0']
  // Not `fakeVendor`, because npm sends gzip.
  await using registry = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    routes: {
      '/left': Response.json({
        name: 'left',
        'dist-tags': { latest: '2.0.0' },
        versions: Object.fromEntries(versions.map(version => [version, { name: 'left', version }])),
      }),
      '/-/npm/v1/security/advisories/bulk': Response.json({
        left: [
          { id: 1, url: 'https://advisories.test/1', title: 'Bad', severity: 'high', vulnerable_versions: '<1.1.0' },
        ],
      }),
    },
  })
  const project = (name: string) => ({
    [`${name}/package.json`]: JSON.stringify({ name, version: '1.0.0', dependencies: { left: '^1.0.0' } }),
    [`${name}/package-lock.json`]: JSON.stringify({
      name,
      lockfileVersion: 3,
      packages: {
        '': { name, version: '1.0.0', dependencies: { left: '^1.0.0' } },
        'node_modules/left': { version: '1.0.0' },
      },
    }),
    [`${name}/node_modules/left/package.json`]: JSON.stringify({ name: 'left', version: '1.0.0' }),
    [`${name}/.npmrc`]: `registry=${registry.url}\n`,
  })
  const broken = { 'broken/package-lock.json': 'no JSON', 'broken/package.json': '{"name":"broken"}' }
  const projects = files({ ...project('app'), ...broken })
  const { state, outputs, read } = await run('dependency-report', { inputs: { folder: projects }, workspace: projects })
  expect([state, outputs]).toEqual(['completed', expect.objectContaining({ outdated: 1, vulnerable: 1 })])
  const report = read('files/report/report.md')
  expect(report).toContain(`## ${projects}/app\n\n- **high**: left 1.0.0\n`)
  expect(report).toContain('| left | 1.0.0 | 1.2.0 | 2.0.0 |')
  expect(report).toEndWith(`## Not checked\n\n- ${projects}/broken\n`)
  const told = await until(() => chat.posts.at(-1), 'a message')
  expect(told.payload.text).toContain('1 vulnerable and 1 outdated dependencies')
}, 60_000)

test('repo-report: files, lines and languages, folder by folder', async () => {
  const work = clone({ 'a.ts': '1\n2\n', 'below/b.md': '1\n' })
  const { state, outputs, read } = await run('repo-report', { workspace: work })
  expect([state, outputs]).toEqual(['completed', expect.objectContaining({ files: 2, lines: 3 })])
  expect(read('files/report/report.md')).toContain('2 files, 3 lines')
}, 60_000)

test('release-checklist: nothing is tagged before a person says yes, and nothing that is not ready', async () => {
  const work = clone({ 'CHANGELOG.md': '# Changelog\n\n## 1.1.0\n' })
  commit(work, 'feat: more')
  const inputs = { version: '1.1.0', check: 'test -f CHANGELOG.md' }
  const early = await run('release-checklist', { inputs, workspace: work })
  expect([early.state, early.message]).toEqual(['failed', expect.stringContaining('nothing to push or pull')])
  git(work, 'push', '--quiet')

  const failing = await run('release-checklist', { inputs: { ...inputs, check: 'exit 3' }, workspace: work })
  expect([failing.state, failing.message]).toEqual(['failed', expect.stringContaining('command check')])

  const runId = await start('release-checklist', { inputs, workspace: work })
  const review = await decide(runId, 'approve', { title: 'More of it' })
  expect(review.prompt).toBe('Release 1.1.0, 1 commits since v1.0.0?')
  const { state, outputs } = await ended(runId)
  expect([state, outputs]).toEqual(['completed', expect.objectContaining({ tag: 'v1.1.0' })])
  expect(git(work, 'ls-remote', 'origin', 'refs/tags/v1.1.0^{}')).toStartWith(String(outputs.commit))
  expect(git(work, 'for-each-ref', '--format=%(contents:subject)', 'refs/tags/v1.1.0')).toBe('More of it')

  const again = await run('release-checklist', { inputs, workspace: work })
  expect([again.state, again.message]).toEqual(['failed', expect.stringContaining('new tag')])
}, 60_000)

test('incident-timeline: comments, events and commits in one order, attached once', async () => {
  const now = Date.now()
  const at = (ago: number) => new Date(now - ago)
  const issue = addIssue(issues, { summary: 'Shop is down', description: null })
  addComment(
    issue,
    doc('We look into it.'),
    `${at(3 * HOUR - HOUR)
      .toISOString()
      .slice(0, 23)}+0100`,
  )
  metrics.events.push({ id: 'E1', at: Date.now() - 2 * HOUR, title: 'Deployed | 1.2' })
  const work = clone({ 'a.txt': 'a' })
  commit(work, 'fix: the shop')
  const inputs = { ticket: issue.key, window: '6h' }
  const { state, message, outputs, read } = await run('incident-timeline', { inputs, workspace: work })
  expect([state, message]).toEqual(['completed', undefined])
  expect(outputs.moments).toBe(4)
  const lines = read('files/timeline/timeline.md').split('\n')
  expect(lines[0]).toBe(`# [${issue.key}: Shop is down](${issues.url}/browse/${issue.key})`)
  expect(lines.slice(2, 6)).toEqual([
    `- \`${at(3 * HOUR)
      .toISOString()
      .slice(0, 16)}${lines[2]!.slice(19, 23)}\` Ada: We look into it.`,
    expect.stringContaining('event: Deployed | 1.2'),
    expect.stringMatching(/commit \w+, dev: /),
    expect.stringMatching(/commit \w+, dev: /),
  ])
  expect(issue.attachments.map(({ filename }) => filename)).toEqual(['timeline.md'])
}, 60_000)

test('weekly-metrics: each metric beside the week before', async () => {
  const days = (ago: number) => Date.now() - ago * 24 * HOUR
  metrics.series = [
    {
      metric: 'm',
      scope: '*',
      pointlist: [
        [days(12), 10],
        [days(9), 10],
        [days(3), 12],
        [days(1), null],
        [days(1), 18],
      ],
    },
  ]
  const list = [
    { name: 'Requests', query: 'avg:requests{*}' },
    { name: 'Memory used', query: 'avg:system.mem.used{*}' },
  ]
  const { state, read } = await run('weekly-metrics', { inputs: { metrics: list, title: 'Week 47' } })
  expect([state, read('files/report/report.md')]).toEqual([
    'completed',
    '- **Requests**: 15 (+50 %, from 10)\n- **Memory used**: 15 (+50 %, from 10)\n',
  ])
  expect(chat.posts.at(-1)!.payload.text).toMatch(/Week 47[\s\S]*Requests\*: 15 \(\+50 %, from 10\)/)
}, 60_000)

test('backup-check: a whole backup passes in silence, and each fault is told to the channel', async () => {
  const dump = 'CREATE TABLE t (a int);\n-- PostgreSQL database dump complete\n'
  await bucket.write('db/good.sql.gz', gzipSync(dump))
  await bucket.write('db/torn.sql.gz', gzipSync(dump.repeat(50)).subarray(0, 60))
  const check = (name: string, more: object = {}) =>
    run('backup-check', { inputs: { backup: `s3://${BUCKET}/db/${name}.sql.gz`, bytes: 50, ...more } })
  const posts = chat.posts.length
  const good = await check('good', { contains: 'dump complete' })
  expect([good.state, good.message, good.outputs?.age_hours]).toEqual(['completed', undefined, 0])
  expect(chat.posts.length).toBe(posts)

  const runs = [check('torn'), check('good', { bytes: 1e6 }), check('good', { contains: 'nothing' }), check('none')]
  expect((await Promise.all(runs)).map(({ state, message }) => [state, message])).toEqual([
    ['failed', expect.stringContaining('command whole')],
    ['failed', expect.stringContaining('it has only')],
    ['failed', expect.stringContaining('it does not contain: nothing')],
    ['failed', expect.stringContaining('none.sql.gz')],
  ])
  await until(() => chat.posts.length === posts + 4, 'four messages')
  expect(chat.posts.at(-1)!.payload.text).toContain('A backup is not good')
}, 60_000)

test('changelog: a section of the commits since the last tag, put into the file once', async () => {
  const work = clone({ 'CHANGELOG.md': '# Changelog\n\n## 1.0.0\n' })
  for (const message of ['feat(page): a list', 'fix!: an error', 'words `of` $(nobody)']) commit(work, message)
  const inputs = { version: '1.1.0', write: true }
  for (let times = 0; times < 2; times++) {
    const { state, outputs, read } = await run('changelog', { inputs, workspace: work })
    expect([state, outputs.commits as number]).toEqual(['completed', 3])
    expect(read('files/section/section.md').replaceAll(/\([0-9a-f]{7,}\)/g, '(id)')).toMatch(
      /^## 1\.1\.0, \d{4}-\d\d-\d\d\n\n### Added\n\n- a list \(id\)\n\n### Fixed\n\n- \*\*Breaking:\*\* an error \(id\)\n\n### Other\n\n- words `of` \$\(nobody\) \(id\)\n$/,
    )
  }
  const text = readFileSync(join(work, 'CHANGELOG.md'), 'utf8')
  expect(text.match(/^## .*$/gm)).toEqual([expect.stringContaining('1.1.0,'), '## 1.0.0'])
}, 60_000)

test('data-export: the rows of a time as CSV in a bucket, with a checksum', async () => {
  await data.sql('CREATE TABLE orders (id int PRIMARY KEY, customer text, total text, created_at timestamp)')
  await data.sql(`INSERT INTO orders VALUES
    (1, 'Early', '1.00', '2026-09-30 23:59:59'), (2, 'Ada', '2.50', '2026-10-01 00:00:00'),
    (3, 'Bob, "Jr"', '3.00', '2026-10-31 12:00:00'), (4, 'Late', '4.00', '2026-11-01 00:00:00')`)
  const inputs = { from: '2026-10-01', until: '2026-11-01', bucket: `s3://${BUCKET}/orders/` }
  const { state, message, outputs } = await run('data-export', { inputs })
  expect([state, message]).toEqual(['completed', undefined])
  const packed = await bucket.file('orders/2026-10-01.csv.gz').bytes()
  const lines = gunzipSync(packed).toString().trimEnd().split(/\r?\n/)
  expect(lines).toEqual([
    'id,customer,total,created_at',
    expect.stringMatching(/^2,Ada,2\.50,2026-10-01/),
    expect.stringMatching(/^3,"Bob, ""Jr""",3\.00,2026-10-31/),
  ])
  const sha256 = new Bun.CryptoHasher('sha256').update(packed).digest('hex')
  expect(outputs).toMatchObject({ rows: 2, sha256 })
  expect(await bucket.file('orders/2026-10-01.csv.gz.sha256').text()).toBe(`${sha256}  orders.csv.gz\n`)

  const most = await run('data-export', { inputs: { ...inputs, most: 1 } })
  expect([most.state, most.message]).toEqual(['failed', expect.stringContaining('there are more than 1 rows')])
}, 60_000)

test('issue-triage: a model suggests, a person takes some out, and the rest is written', async () => {
  const keys = [addIssue(issues, { summary: 'Money is lost', description: doc('Really.') }).key]
  keys.push(addIssue(issues, { summary: 'A typo', description: null }).key)
  const others = [...issues.issues.keys()].filter(key => !keys.includes(key))
  model.model.says = ['{"priority":"Highest","reason":"It costs money."}']
  const runId = await start('issue-triage', { inputs: { query: 'project = WEB AND status = "To Do"' } })
  const review = await decide(runId, 'approve', { skip: others })
  expect(review.prompt).toContain(`- ${keys[0]} Highest: It costs money.`)
  const { state, message, outputs } = await ended(runId)
  expect([state, message]).toEqual(['completed', undefined])
  expect(outputs).toEqual({ more: false, suggested: issues.issues.size, written: 2 })
  const priorities = [...issues.issues.values()].map(({ key, fields }) => [key, fields.priority?.name])
  expect(Object.fromEntries(priorities)).toEqual({
    ...Object.fromEntries(others.map(key => [key, 'Medium'])),
    ...Object.fromEntries(keys.map(key => [key, 'Highest'])),
  })
}, 60_000)

test('github-triage: a delivery of GitHub starts it, a person agrees, and the label is written', async () => {
  using github = fakeVendor({ 'POST /repos/acme/shop/issues/7/labels': () => [{ name: 'bug' }] })
  const team = files({
    'team.yml': readFileSync(join(EXAMPLES, 'github-triage/team.yml'), 'utf8').replace(
      'https://api.github.com',
      github.url,
    ),
  })
  const owner = { authorization: `Bearer ${daemon.token}` }
  const secret = 'what GitHub and cadre share'
  const { url } = await daemon.call('/v1/triggers/enable', { team, name: 'opened', secret }, owner)
  const issue = { number: 7, title: 'It crashes', body: null }
  const body = JSON.stringify({ action: 'opened', issue, repository: { full_name: 'acme/shop' } })
  const signature = new Bun.CryptoHasher('sha256', secret).update(body).digest('hex')
  const headers = {
    ...{ 'content-type': 'application/json', 'x-github-event': 'issues', 'x-github-delivery': crypto.randomUUID() },
    'x-hub-signature-256': `sha256=${signature}`,
  }
  const reply = await fetch(new URL(url, daemon.url), { method: 'POST', body, headers })
  const { data } = (await reply.json()) as { data: { run_id: string } }
  const review = await decide(data.run_id, 'approve', { label: 'bug' })
  expect(review.prompt).toBe('acme/shop#7: It crashes\n\nIts words suggest the label bug.\n')
  const { state, message, outputs } = await ended(data.run_id)
  expect([state, message, outputs]).toEqual(['completed', undefined, { label: 'bug' }])
  const [written] = github.seen
  expect([written!.body, written!.headers.get('authorization')]).toEqual([{ labels: ['bug'] }, `Bearer ${TOKEN}`])
}, 60_000)

test.skipIf(!hasSshd())(
  'fleet-inventory: a row of each machine, and the name of one that is silent',
  async () => {
    const server = await startSshd()
    try {
      const { host, port, user, key_file, known_hosts } = server.settings
      const config = join(dirname(key_file), 'ssh_config')
      mkdirSync(dirname(config), { recursive: true })
      const here = `Host here\n HostName ${host}\n Port ${port}\n User ${user}\n IdentityFile "${key_file}"\n`
      const lines = `${here}Host gone\n HostName ${host}\n Port 9\nHost *\n UserKnownHostsFile "${known_hosts}"\n`
      writeFileSync(config, lines)
      const { state, message, outputs, read } = await run('fleet-inventory', {
        inputs: { hosts: ['here', 'gone'], config },
        workspace: dirname(key_file),
      })
      expect([state, message]).toEqual(['completed', undefined])
      expect(outputs).toMatchObject({ answered: 1, silent: ['gone'] })
      const table = read('files/table/fleet.md')
      const { stdout } = Bun.spawnSync(['uname', '-r'])
      expect(table).toMatch(
        new RegExp(`^\\| here \\| .+ \\| ${RegExp.escape(String(stdout).trim())} \\| \\d+ \\| `, 'm'),
      )
      expect(table).toEndWith('\nWithout an answer:\n\n- gone\n')
    } finally {
      await server.stop()
    }
  },
  60_000,
)
