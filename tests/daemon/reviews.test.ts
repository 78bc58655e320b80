// What a person sees before and after a decision: all that the commands of a gate printed, or how much of it is left out,
// and what becomes of the run.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
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
