import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { discover } from '../../lib/agent/catalogue.ts'
import { loadBundle } from '../../lib/team/compile/bundle.ts'
import { lintBundle } from '../../lib/team/compile/lint.ts'
import { files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const ROOT = join(import.meta.dir, '../..')
const HEAD = 'name: "@local/test"\nversion: 1.0.0\n'

async function lint(contents: Record<string, string>): Promise<string[]> {
  const agents = await discover({ home: folder() })
  const bundle = await loadBundle(files(contents), { agents })
  return lintBundle(bundle, agents).map(({ file, line, column, rule }) => `${file}:${line}:${column} ${rule}`)
}

test('each rule, at its place', async () => {
  const text = `${HEAD}inputs:
  - { name: used, type: string }
  - { name: unused, type: string }
  - { name: also-used, type: string }
outputs:
  - { name: out, type: string, value: "{{ phases.ask.state }}" }
phases:
  - name: ask
    agent: llm
    action: complete
    sources: [{ name: text.md, prompt: "{{ inputs.used + inputs['also-used'] }}" }]
  - name: read
    agent: http
    sources: [{ name: page.html, url: https://example.com }]
  - name: try
    agent: exec
    on_failure: continue
    env: { API_TOKEN: abcdefgh12345678, HOST: example.com }
    commands:
      - { name: a, run: 'curl -H "Authorization: Bearer 0123456789abcdef0123" https://example.com' }
      - { name: b, run: "psql postgres://me:hunter22@db/x --password $PASSWORD" }
      - { name: c, run: "deploy --token s3cr3ts3cr3t" }
  - name: publish
    agent: wiki
    action: update_page
    depends_on: [ask]
    target_entries: [{ name: page, ref: 12345, title: Digest, file: files/ask/text.md }]
`
  expect(await lint({ 'team.yml': text })).toEqual([
    'team.yml:5:5 unused-input',
    'team.yml:14:5 unused-phase',
    'team.yml:19:17 unseen-failure',
    'team.yml:20:23 secret-in-file',
    'team.yml:22:25 secret-in-file',
    'team.yml:23:25 secret-in-file',
    'team.yml:24:25 secret-in-file',
    'team.yml:25:5 write-without-gate',
  ])
})

test('what is looked at, asked, named or allowed is no finding', async () => {
  const text = `${HEAD}inputs:
  - { name: whole, type: string }
outputs:
  - { name: failed, type: boolean, value: "{{ phases.try.state == 'failed' }}" }
phases:
  - name: ask
    agent: llm
    action: complete
    sources: [{ name: text.md, prompt: "{{ toJson(inputs) }}" }]
  - name: approve
    type: gate
    depends_on: [ask]
    review: { prompt: Publish? }
  - name: publish
    agent: wiki
    action: update_page
    depends_on: [approve]
    target_entries: [{ name: page, ref: 12345, title: Digest, file: files/ask/text.md }]
  - name: try
    agent: exec
    on_failure: continue
    env: { API_TOKEN: "{{ secrets.api }}", TOKEN_FILE: /run/token }
    commands: [{ name: a, run: 'curl -H "Authorization: Bearer $API_TOKEN" "https://me:$API_TOKEN@example.com"' }]
  # lint: allow unused-phase
  - name: read
    agent: http
    sources: [{ name: page.html, url: https://example.com }]
`
  expect(await lint({ 'team.yml': text })).toEqual([])
})

test('a gate before a sub-team counts for what is in it', async () => {
  const inner = `name: "@local/inner"
version: 1.0.0
phases:
  - name: publish
    agent: wiki
    action: update_page
    target_entries: [{ name: page, ref: 12345, title: Digest, file: notes.md }]
`
  const outer = (gate: string) => `${HEAD}phases:
  - { name: ask, agent: llm, action: complete, sources: [{ name: text.md, prompt: Write }] }
${gate}  - { name: inside, type: team, team: ./inner, depends_on: [${gate ? 'approve' : 'ask'}] }
`
  const gate = '  - { name: approve, type: gate, depends_on: [ask], review: { prompt: Publish? } }\n'
  expect(await lint({ 'team.yml': outer(''), 'inner/team.yml': inner })).toEqual([
    'inner/team.yml:4:5 write-without-gate',
  ])
  expect(await lint({ 'team.yml': outer(gate), 'inner/team.yml': inner })).toEqual([])
})

const EXAMPLES = readdirSync(join(ROOT, 'examples'), { withFileTypes: true }).filter(each => each.isDirectory())
test.each(EXAMPLES.map(({ name }) => name))('nothing is found in the example %s', async name => {
  const agents = await discover({ home: folder() })
  expect(lintBundle(await loadBundle(join(ROOT, 'examples', name), { agents }), agents)).toEqual([])
})

const through = (listing: string, items: string, more = '') => `${HEAD}phases:
  - name: find
    ${listing}
  - name: each
    type: map
    depends_on: [find]
    items: "{{ ${items} }}"
    key: "{{ item.key }}"
    agent: exec
    commands: [{ name: c, run: "true" }]
${more}`
const SEARCH = 'agent: issues\n    action: search\n    sources: [{ name: found.json, ref: project = WEB }]'
const FILTER = (items: string) =>
  `agent: data\n    action: filter\n    sources: [{ name: a.json, items: ${items}, where: "true" }]`
const MORE = 'outputs: [{ name: more, value: "{{ phases.find.data.truncated }}" }]'

test.each([
  [SEARCH, 'phases.find.data.items', 'phases.find.data.truncated'],
  [SEARCH, "phases['find'].data.entries['found.json'].items", "phases['find'].data.entries['found.json'].truncated"],
  [SEARCH, 'phases.find.data.items.filter(i, i.key != null)', 'phases.find.data.truncated'],
  [FILTER('"{{ [run.id] }}"'), 'phases.find.data.items', 'phases.find.data.truncated'],
])('a map over a list that may be cut off: %s, %s', async (listing, items, look) => {
  const agents = await discover({ home: folder() })
  const found = lintBundle(await loadBundle(files({ 'team.yml': through(listing, items) }), { agents }), agents)
  expect(found.map(({ rule }) => rule)).toEqual(['unseen-truncation'])
  expect(found[0]!.message).toStartWith('`each` goes through the `items` of `find`, which may be cut off: name `')
  expect(found[0]!.message).toContain(`name \`${look}\` in an output or a \`when\``)
  expect(found[0]!.quote).toContain('items: ')
})

test.each([
  [through(SEARCH, 'phases.find.data.items', MORE)],
  [
    through(SEARCH, 'phases.find.data.items').replace(
      '    items: ',
      '    # lint: allow unseen-truncation\n    items: ',
    ),
  ],
  [through(SEARCH, '[phases.find.data.total]')],
  [through(SEARCH, '[phases.find.text]')],
  [through(FILTER('[{ key: a }]'), 'phases.find.data.items')],
  [through('agent: exec\n    commands: [{ name: c, run: "true" }]', 'phases.find.data.items')],
])('no map over a list that may be cut off, or one that is looked at', async text => {
  expect(await lint({ 'team.yml': text })).toEqual([])
})

test('in a map in place, too', async () => {
  const text = `${HEAD}inputs:
  - { name: used, type: string }
phases:
  - name: ask
    agent: llm
    action: complete
    sources: [{ name: text.md, prompt: x }]
  - name: each
    type: map
    depends_on: [ask]
    items: [1]
    inputs: { read: "{{ inputs.used }}", unread: 1 }
    outputs: [{ name: state, value: "{{ inputs.read }}" }]
    on_item_failure: continue
    phases:
      - name: try
        agent: exec
        on_failure: continue
        env: { API_TOKEN: abcdefgh12345678 }
        commands: [{ name: a, run: 'true' }]
      - name: publish
        agent: wiki
        action: update_page
        target_entries: [{ name: page, ref: 12345, title: Digest, file: a.md }]
`
  expect(await lint({ 'team.yml': text })).toEqual([
    'team.yml:14:50 unused-input',
    'team.yml:16:22 unseen-failure',
    'team.yml:20:21 unseen-failure',
    'team.yml:21:27 secret-in-file',
    'team.yml:23:9 write-without-gate',
  ])
})

test('the phase that a map with an agent stands for uses what the map gives', async () => {
  const text = `${HEAD}inputs: [{ name: base, type: string }]
phases:
  - name: each
    type: map
    items: [a]
    inputs: { api: "{{ inputs.base }}", none: x }
    agent: exec
    env: { API: "{{ inputs.api }}" }
    commands: [{ name: say, run: 'echo "$API"' }]
`
  expect(await lint({ 'team.yml': text })).toEqual(['team.yml:8:47 unused-input'])
})
