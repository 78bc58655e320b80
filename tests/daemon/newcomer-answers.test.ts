// What a person is told who completes a phase by hand: that it has no files, where it matters.

import { expect, test } from 'bun:test'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const TEAM = `name: "@local/by-hand"
version: 1.0.0
phases:
  - { name: report, agent: exec, on_failure: escalate, commands: [{ name: c, run: 'echo x > "$CADRE_OUT/x"; exit 3' }] }
  - name: use
    agent: exec
    depends_on: [report]
    env: { PAGES: "{{ phases.report.data.pages }}", PATH_OF: "{{ phases.report.files[0].path }}" }
    commands: [{ name: c, run: "true" }]
`

test('decide … complete says that the phase has no files, and so does an expression that asks for one', async () => {
  const home = folder()
  const run = (...args: string[]) => command(args, { home })
  expect((await run('run', files({ 'team.yml': TEAM }))).code).toBe(3)
  expect((await run('reviews')).stdout).toContain('\n  takes retry, skip, complete or fail\n')
  const help = (await run('decide', '--help')).stdout.replace(/\s+/g, ' ')
  expect(help).toContain(
    'last complete --values \'{"pages":3}\' # the work was done by hand; the phase has these data and no files',
  )
  const { stderr } = await run('decide', 'last', 'complete', '--values', '{"pages":3}')
  expect(stderr).toContain('completed report, with these values as its data and without files\n')
  expect((await run('why', 'last')).stdout).toContain(': phase report has no files in `phases.report.files[0].path`')

  expect((await run('run', files({ 'team.yml': TEAM }))).code).toBe(3)
  expect((await run('decide', 'last', 'complete')).stderr).toContain(
    'completed report, without data and files, although phase use reads its result\n',
  )
}, 60_000)
