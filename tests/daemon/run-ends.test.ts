// The last lines of a followed run: items that failed in a run which completed without them, and after a resume only what
// happened in its attempt.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const home = folder()
const say = (...args: string[]) => command(args, { home })
/** The items b and d fail until the file `flag` is there, and then the phase `end` if `end` is a command that fails. */
const team = (flag: string, end = 'true') =>
  files({
    'team.yml': `name: "@local/items"
version: 1.0.0
phases:
  - name: each
    type: map
    items: [a, b, c, d]
    on_item_failure: continue
    team: ./item
    inputs: { item: "{{ item }}" }
  - { name: end, agent: exec, depends_on: [each], commands: [{ name: c, run: '${end}' }] }
`,
    'item/team.yml': `name: "@local/item"
version: 1.0.0
inputs: [{ name: item, type: string, required: true }]
phases:
  - name: say
    agent: exec
    commands: [{ name: c, run: 'test -e ${flag} || case "$ITEM" in b|d) exit 7;; esac', env: { ITEM: "{{ inputs.item }}" } }]
`,
  })

test('a completed run of which items failed says how many, and with which commands to go on', async () => {
  const flag = join(folder(), 'flag')
  const { code, stderr } = await say('run', team(flag))
  expect(code).toBe(0)
  const id = /completed {2}@local\/items {2}\S+ {2}(\S+)/.exec(stderr)?.[1]
  const ends = [
    '2 of 4 items of each failed',
    expect.stringMatching(new RegExp(` why ${id}$`)),
    expect.stringMatching(new RegExp(` tree ${id} --failed$`)),
    expect.stringMatching(new RegExp(` resume ${id} --failed$`)),
    '',
  ]
  expect(stderr.split('\n').slice(-5)).toEqual(ends)
  expect((await say('watch', 'last')).stderr.split('\n').slice(-5)).toEqual(ends)
  // New ids begin alike.
  expect((await say('show', id!.slice(-6))).stdout).toContain(id!)
  expect((await say('show', '00000f')).stderr).toContain('no run begins with 00000f, and no new one ends with it')
  writeFileSync(flag, '')
  const repeated = await say('resume', 'last', '--failed')
  expect(repeated.code).toBe(0)
  expect(repeated.stderr).not.toContain('items of each failed')
}, 30_000)

test('a resume tells only what happens in its attempt', async () => {
  const flag = join(folder(), 'flag')
  const first = await say('run', team(flag, `test -e ${flag}`))
  expect(first.code).toBe(1)
  expect(first.stderr).toMatch(/failed +each\/1\/say/)
  writeFileSync(flag, '')
  const { code, stderr } = await say('resume', 'last')
  expect(code).toBe(0)
  const told = stderr.split('\n').filter(text => /^\d\d:\d\d:\d\d/.test(text))
  expect(told.map(text => text.slice(10).split(/ +/).slice(0, 2).join(' '))).toEqual([
    'running end',
    'completed end',
    'completed @local/items',
  ])
}, 30_000)

test('in a large tree, too, what failed and was passed over is found in runs that completed', async () => {
  const numbers = Array.from({ length: 380 }, (_, n) => n)
  const path = files({
    'team.yml': `name: "@local/large"
version: 1.0.0
phases:
  - name: each
    type: map
    items: ${JSON.stringify(numbers)}
    concurrency: 60
    phases:
      - name: try
        agent: data
        action: filter
        on_failure: continue
        sources: [{ name: one.json, items: ["{{ item }}"], where: 100 / (int(item) % 190 - 7) < 200 }]
`,
  })
  expect((await say('run', path)).code).toBe(0)
  const whole = await say('tree', 'last')
  expect(whole.stderr).toMatch(/^a run that completed is one line here; .* tree \S+ --failed$/m)
  const { stdout, stderr } = await say('tree', 'last', '--failed')
  expect(stdout.match(/✗ try .*/g)).toHaveLength(2)
  expect([stdout.trim().split('\n').length, stderr]).toEqual([6, ''])
}, 60_000)
