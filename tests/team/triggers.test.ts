// `triggers` of a team.yml: what they may say, and where a mistake is.

import { expect, test } from 'bun:test'
import { load, problems } from './load.ts'

const team = (...lines: string[]) => `name: "@local/digest"
version: 1.0.0
inputs: [{ name: day, type: string, default: "" }, { name: many, type: number, default: 1 }, { name: key, secret: true }]
triggers:
${lines.map(line => `  - { ${line} }\n`).join('')}phases:
  - { name: a, type: gate, commands: [{ name: ok, run: "true" }] }
`

test('a team says what may start it', async () => {
  const text = team(
    'name: nightly, schedule: { cron: "0 6 * * 1-5", tz: Europe/Berlin, jitter: 5m }, inputs: { day: "{{ slot }}" }',
    `name: opened, hook: { scheme: github }, when: "headers['x-github-event'] == 'issues'", inputs: { many: "{{ body.issue.number }}" }`,
    'name: papers, watch: { folder: ~/in, match: ["*.pdf"], claim: true }, inputs: { day: "{{ files[0].name }}" }',
    'name: after-build, chain: { after: "@acme/build", on: [failed] }, overlap: queue, inputs: { day: "{{ run.state }}" }',
  )
  expect(await problems(text)).toEqual([])
  expect((await load(text)).team('.').triggers).toEqual([
    {
      ...{ name: 'nightly', kind: 'schedule' },
      fields: { cron: '0 6 * * 1-5', tz: 'Europe/Berlin', jitter: '5m', inputs: { day: '{{ slot }}' } },
    },
    {
      ...{ name: 'opened', kind: 'hook' },
      fields: {
        ...{ scheme: 'github', when: "headers['x-github-event'] == 'issues'" },
        inputs: { many: '{{ body.issue.number }}' },
      },
    },
    {
      ...{ name: 'papers', kind: 'watch' },
      fields: { folder: '~/in', match: ['*.pdf'], claim: true, inputs: { day: '{{ files[0].name }}' } },
    },
    {
      ...{ name: 'after-build', kind: 'chain' },
      fields: { after: '@acme/build', on: ['failed'], overlap: 'queue', inputs: { day: '{{ run.state }}' } },
    },
  ])
})

test('each mistake is reported where it stands', async () => {
  const lines = [
    'name: a, schedule: { cron: "0 6 * *" }',
    'name: a, schedule: { every: 90m, jitter: 80m }',
    'name: b, hook: { scheme: github }, chain: { after: build }',
    'name: c',
    'name: d, chain: { on: [failed] }',
    'name: e, chain: { after: build }, inputs: { dya: x, many: "{{ run.outputs.n }}" }',
    'name: f, schedule: { every: 90m }, when: body.x == 1',
    'name: g, schedule: { every: 90m }, inputs: { many: text, key: x }',
    'name: h, hook: { scheme: bearer }',
    'name: i, schedule: { every: 90m }, at_most: { count: 3, per: hourly }',
    'name: j, schedule: { cron: "0 6 * * *", secnd: 1 }',
    'name: k, watch: { match: ["*.pdf"] }',
    'name: l, watch: { folder: in, match: ["!a"], settle: 5 minutes }, inputs: { day: "{{ file.path }}" }',
    'name: last, schedule: { every: 90m }',
  ]
  expect(await problems(team(...lines))).toEqual([
    '5:34 has 4 fields: write five fields: minute, hour, day, month and weekday',
    '6:13 another trigger is named `a`',
    '6:48 must be at most 45m, half of the shortest distance between two slots (1h 30m)',
    '7:5 expected one of schedule, hook, watch and chain',
    '8:5 expected one of schedule, hook, watch and chain',
    '9:23 `after` is missing',
    '10:56 no input dya is declared (did you mean `day`?)',
    '11:48 unknown name `body`: there are slot, now',
    '12:58 input many: expected a number, not text',
    '12:69 input key is secret, and a trigger keeps its inputs: use a named secret',
    '14:68 must be a duration such as 10m, 1h or 1d',
    '15:47 unknown field `secnd`: there are cron, every, at, tz, from, catch_up, window, max, late_after and jitter',
    '16:23 `folder` is missing',
    '17:33 must be an absolute path, or begin with ~/',
    '17:44 begins with !: write it in `ignore` without that',
    '17:60 must be a duration such as 90s, 5m or 2h',
    '17:88 unknown name `file` (did you mean `files`?): there are files',
    '18:13 `last` means the newest run: choose another name',
  ])
})
