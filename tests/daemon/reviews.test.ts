// What a person sees before and after a decision: all that the commands of a gate printed, or how much of it is left out,
// and what becomes of the run.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const home = folder()
let daemon: RunningDaemon
beforeAll(async () => {
  const production = { host: 'web-1.example', port: 2222, key_file: '/nowhere/canary-of-a-key' }
  const settings = {
    agents: { ssh: { host: 'staging.example' } },
    environments: { production: { review: ['any'], agents: { ssh: production } } },
  }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  daemon = await spawnDaemon({ home })
})
afterAll(() => daemon.stop())

const say = (...args: string[]) => command(args, { home })
const team = (name: string, phases: string, more = '') =>
  files({ 'team.yml': `name: "@local/${name}"\nversion: 1.0.0\n${more}\nphases:\n${phases}\n` })
const gate = (lines: number) =>
  `  - { name: ask, type: gate, review: { prompt: "Go on?", reviewers: [any] }, commands: [{ name: c, run: 'for i in $(seq 1 ${lines}); do echo "change $i."; done' }] }`

test('what a gate printed is shown from its beginning, and the first line says what is left out', async () => {
  expect((await say('run', team('short', gate(200)))).code).toBe(3)
  const whole = (await say('reviews')).stdout.split('\n').filter(line => line.startsWith('  | '))
  expect(whole).toEqual(Array.from({ length: 200 }, (_, at) => `  | change ${at + 1}.`))
  await say('cancel', 'last')

  expect((await say('run', team('long', gate(1_500)))).code).toBe(3)
  const { runs } = await daemon.call('/v1/runs/list', { limit: 1 })
  const [left, ...lines] = (await say('reviews')).stdout.split('\n').filter(line => line.startsWith('  | '))
  expect(left).toMatch(
    new RegExp(String.raw`^  \| … 1300 lines are not shown: \S.* logs ${runs[0].run_id} --phase ask$`),
  )
  expect([lines.length, lines[0], lines.at(-1)]).toEqual([200, '  | change 1.', '  | change 200.'])
  const rest = await say('logs', runs[0].run_id, '--phase', 'ask')
  expect(rest.stdout).toContain('change 1500.')
  await say('cancel', 'last')
}, 60_000)

test('after a rejection it says how the run ended, and after an approval that it goes on', async () => {
  const work = '  - { name: work, agent: exec, commands: [{ name: c, run: "sleep 60" }] }'
  const path = team('deploy', work)
  expect((await say('run', path, '--env', 'production')).code).toBe(3)
  const rejected = await say('decide', 'last', 'reject', '--comment', 'not on Friday')
  expect(rejected.stderr).toMatch(/^rejected the run\nthe run is cancelled: \S.* why \S+\n$/)

  expect((await say('run', path, '--env', 'production')).code).toBe(3)
  expect((await say('decide', 'last', 'approve')).stderr).toMatch(
    /^approved the run\nthe run goes on: \S.* watch \S+\n$/,
  )
  await say('cancel', 'last')
  // Who decided, and why, stands where the run is looked at.
  const shown = (await say('show', 'last')).stdout
  expect(shown).toMatch(/\ndecided\n {2}the run +approved? by \S+ +\S.*\n/)
}, 60_000)

test('who is asked about a run sees what it was given', async () => {
  const path = team(
    'ship',
    '  - { name: work, agent: exec, commands: [{ name: c, run: "true" }] }',
    'inputs: [{ name: page, type: string, required: true }, { name: key, type: string, secret: true }]',
  )
  expect((await say('run', path, '--env', 'production', '-i', 'page=index', '-i', 'key=hidden-canary')).code).toBe(3)
  const { stdout } = await say('reviews')
  expect(stdout).toContain('page = "index"')
  expect(stdout).not.toContain('hidden-canary')
  await say('decide', 'last', 'reject', '--comment', 'not today')
  expect((await say('show', 'last')).stdout).toMatch(/\n {2}the run +reject(ed)? by \S+ +\S.* +not today\n/)
}, 60_000)

const COPY = `  - name: copy
    agent: ssh
    action: put
    target_entries: [{ name: page, ref: "/srv/www/{{ inputs.page }}", file: files/none/page }]`

test('a plan says where a write goes: the host of the environment, and the path of the entry', async () => {
  const path = team('copies', COPY, 'inputs: [{ name: page, type: string, default: index.html }]')
  const written = async (...args: string[]) =>
    /written outside\n(.*)\n/.exec((await say('plan', path, ...args)).stdout)?.[1]
  expect(await written()).toMatch(
    /^ {2}copy +ssh\.put +idempotent +staging\.example \/srv\/www\/\{\{ inputs\.page \}\} *$/,
  )
  expect(await written('--env', 'production')).toContain('web-1.example:2222 /srv/www/{{ inputs.page }}')
})

test('before a decision it says which phases then run, and what they write outside with which account', async () => {
  const post = (name: string, after: string) =>
    `  - { name: ${name}, depends_on: [${after}], agent: http, target_entries: [{ name: p, url: "http://127.0.0.1:9/${name}", method: POST, body: x }] }`
  const nested = {
    'team.yml': `name: "@local/outer"
version: 1.0.0
phases:
  - { name: before, agent: exec, commands: [{ name: c, run: "true" }] }
  - { name: part, depends_on: [before], type: team, team: ./part }
${post('announce', 'part')}
`,
    'part/team.yml': `name: "@local/part"
version: 1.0.0
phases:
  - { name: ask, type: gate, review: { prompt: "Go on?", reviewers: [any] } }
${post('deploy', 'ask')}
  - { name: aside, agent: exec, commands: [{ name: c, run: "true" }] }
`,
  }
  const { run_id } = await daemon.call('/v1/runs/start', { path: files(nested) })
  const pending = async () => (await daemon.call('/v1/reviews/list', { state: 'pending' })).reviews
  await until(async () => (await pending()).length === 1, 'the review')
  // Found out after the review has opened, and then a part of it.
  const reviews = await until(async () => {
    const found = await pending()
    return found[0].next !== null && found
  }, 'what the approval leads to')
  expect([reviews[0].lacks, reviews[0].expires_at]).toEqual([undefined, null])
  const { reviews: whole } = await daemon.call('/v1/reviews/list', { review_id: reviews[0].id })
  expect(whole[0].next.phases).toEqual(['deploy', 'announce'])
  expect(whole[0].next.writes).toMatchObject([
    { phase: ['deploy'], agent: 'http', to: 'http://127.0.0.1:9/deploy' },
    { phase: ['announce'], agent: 'http', to: 'http://127.0.0.1:9/announce' },
  ])
  const { stdout } = await say('reviews')
  expect(stdout).toContain('\n  then: deploy, announce\n')
  expect(stdout).toContain('\n  writes: deploy: http to http://127.0.0.1:9/deploy\n')

  // A daemon that was just started has loaded no agent yet.
  await daemon.stop()
  daemon = await spawnDaemon({ home })
  const { reviews: again } = await daemon.call('/v1/reviews/list', { review_id: reviews[0].id })
  expect([reviews[0].next, again[0].next]).toEqual([whole[0].next, whole[0].next])
  await daemon.call('/v1/runs/cancel', { run_id })
  // What somebody was shown is kept with their decision.
  const { reviews: closed } = await daemon.call('/v1/reviews/list', { review_id: reviews[0].id })
  expect([closed[0].state, closed[0].next]).toEqual(['decided', whole[0].next])
})

test('addresses of many templates keep nobody waiting, and are shown without their queries', async () => {
  const parts = Array.from({ length: 60 }, (_, n) => `{{ inputs.a == "?" ? "${n}" : "" }}`).join('/')
  const url = (name: string, query: string) =>
    `{ name: ${name}, url: ${JSON.stringify(`http://127.0.0.1:9/${parts}${query}`)}, method: POST, body: x }`
  const many = Array.from({ length: 40 }, (_, n) => url(`p${n}`, ''))
  const entries = `[${[...many, url('q', '?key={{ inputs.a }}#end')].join(', ')}]`
  const phases = `  - { name: ask, type: gate, review: { prompt: "Go on?" } }
  - { name: post, depends_on: [ask], agent: http, target_entries: ${entries} }`
  const inputs = 'inputs: [{ name: a, type: string, default: x }]'
  const { run_id } = await daemon.call('/v1/runs/start', { path: team('templates', phases, inputs) })
  const next = await until(async () => {
    const { reviews } = await daemon.call('/v1/reviews/list', { run_id })
    return reviews[0] && (await daemon.call('/v1/reviews/list', { review_id: reviews[0].id })).reviews[0].next
  }, 'what the approval leads to')
  const address = `http://127.0.0.1:9/${parts}`
  expect(next.writes.map(({ to }: { to: string }) => to)).toEqual(Array(41).fill(address))
  await daemon.call('/v1/runs/cancel', { run_id })
})

test('what the commands of a gate printed and wrote stands in its review, and stays after the answer', async () => {
  const run = 'for i in $(seq 1 3000); do echo "change $i."; done; echo done; echo 12 > "$CADRE_OUT/count.txt"'
  const phases = `  - { name: ask, type: gate, review: { prompt: "Go on?" }, commands: [{ name: c, run: ${JSON.stringify(run)} }] }`
  const { run_id } = await daemon.call('/v1/runs/start', { path: team('counting', phases) })
  const review = await until(async () => {
    const { reviews } = await daemon.call('/v1/reviews/list', { run_id })
    return reviews[0] && (await daemon.call('/v1/reviews/list', { review_id: reviews[0].id })).reviews[0]
  }, 'the review')
  const { output, omitted_bytes, files: wrote } = review.shown
  expect(output).toEndWith('change 2999.\nchange 3000.\ndone')
  const printed = Array.from({ length: 3_000 }, (_, at) => `change ${at + 1}.\n`).join('').length + 'done\n'.length
  expect([output.length <= 16_384, output.length > 16_000, output.length + 1 + omitted_bytes]).toEqual([
    true,
    true,
    printed,
  ])
  expect(wrote).toEqual([{ name: 'count.txt', path: 'files/ask/count.txt', bytes: 3 }])
  expect((await say('reviews')).stdout).toContain('\n  wrote: files/ask/count.txt (3 B)\n')
  const listed = async () => (await daemon.call('/v1/artifacts/list', { run_id })).artifacts
  expect(await listed()).toMatchObject([{ path: 'files/ask/count.txt', bytes: 3 }])
  const owner = { authorization: `Bearer ${daemon.token}` }
  await daemon.call('/v1/reviews/decide', { review_id: review.id, decision: 'approve' }, owner)
  await daemon.ended(run_id)
  expect(await listed()).toMatchObject([{ path: 'files/ask/count.txt', bytes: 3 }])
  const { reviews } = await daemon.call('/v1/reviews/list', { review_id: review.id })
  expect(reviews[0].shown).toEqual(review.shown)
}, 60_000)
