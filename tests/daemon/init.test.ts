// `init` and `examples`: what they write validates, is named as it was asked for, overwrites nothing, and says what is next.

import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { hasTmux, Window } from '../support/tmux.ts'

const EXAMPLES = readdirSync(join(import.meta.dir, '../../examples')).sort()
const SCHEMA = '# yaml-language-server: $schema=http://127.0.0.1:7401/schema/team.json\n'

test('every start and every example becomes a team that validates', async () => {
  const home = folder()
  const { url, call, stop } = await spawnDaemon({ home })
  for (const from of ['exec', 'http', 'llm', 'map', 'issue-triage']) {
    const { code, stdout, stderr } = await command(['init', `a-${from}`, '--from', from, '--name', `${from}-2`], {
      home,
    })
    expect([from, code, stdout.split('\n')]).toEqual([from, 0, expect.arrayContaining([`a-${from}/team.yml`])])
    expect(stderr).toMatch(
      new RegExp(`(daemon\\.ts|cadre) validate a-${from}\n[\\s\\S]*(daemon\\.ts|cadre) run a-${from}( -i \\w+=…)*\n$`),
    )
    const text = readFileSync(join(home, `a-${from}/team.yml`), 'utf8')
    expect(text).toStartWith(SCHEMA)
    expect(text).toContain(`\nname: "@local/${from}-2"\n`)
    await call('/v1/teams/validate', { path: join(home, `a-${from}`) })
  }
  const triage = readFileSync(join(home, 'a-issue-triage/suggest/team.yml'), 'utf8')
  expect(triage).toContain('\nname: "@local/issue-triage-2-suggest"\n')
  expect(readFileSync(join(home, 'a-issue-triage/team.yml'), 'utf8')).toMatch(
    /(daemon\.ts|cadre) run a-issue-triage -i query/,
  )
  for (const from of ['exec', 'map']) {
    const { run_id } = await call('/v1/runs/start', { path: join(home, `a-${from}`) })
    await until(async () => (await call('/v1/runs/get', { run_id })).state === 'completed', `the run of ${from}`)
  }
  expect(url).toStartWith('http')
  await stop()
}, 60_000)

test('examples lists them with a line each, and copies one', async () => {
  const home = folder()
  const { stdout } = await command(['examples'], { home })
  const lines = stdout.trimEnd().split('\n')
  expect(lines.map(line => line.split(' ')[0])).toEqual(EXAMPLES)
  expect(lines.every(line => /^\S+ {2,}\S+ \S/.test(line))).toBe(true)
  const copied = await command(['examples', 'repo-report'], { home })
  expect(copied).toMatchObject({ code: 0, stdout: expect.stringContaining('repo-report/folder/measure/team.yml\n') })
  const there = (path: string) => readFileSync(join(home, path), 'utf8')
  rmSync(join(home, 'repo-report/folder'), { recursive: true })
  const changed = there('repo-report/team.yml')
  const again = await command(['examples', 'repo-report'], { home })
  expect(again).toMatchObject({ code: 2, stderr: expect.stringContaining('repo-report/team.yml already exists') })
  expect([there('repo-report/team.yml'), existsSync(join(home, 'repo-report/folder'))]).toEqual([changed, false])
  const near = await command(['examples', 'repo-reprot'], { home })
  expect(near).toMatchObject({ code: 2, stderr: expect.stringContaining('(did you mean `repo-report`?)') })
}, 60_000)

test('a link in the folder is neither followed nor written over, and nothing is written beside it', async () => {
  const home = folder()
  const outside = folder()
  mkdirSync(join(home, 'a'))
  symlinkSync(join(outside, 'nothing'), join(home, 'a/team.yml'))
  mkdirSync(join(home, 'b'))
  symlinkSync(outside, join(home, 'b/folder'))
  writeFileSync(join(home, 'file'), '')
  for (const [at, why] of [
    ['a', 'a/team.yml already exists: choose another folder'],
    ['b', 'b/folder exists and is not a folder: choose another folder'],
    ['file', 'file is not a folder: choose another one'],
  ] as const) {
    const { code, stdout, stderr } = await command(['examples', 'repo-report', at], { home })
    expect([at, code, stdout, stderr]).toEqual([at, 2, '', expect.stringContaining(why)])
  }
  expect([readdirSync(outside), readdirSync(join(home, 'a')), readdirSync(join(home, 'b'))]).toEqual([
    [],
    ['team.yml'],
    ['folder'],
  ])
}, 60_000)

test.each([
  [['init', 'x'], '--from is missing; it must be one of exec, http, llm, map'],
  [['init', 'x', '--from', 'exce'], '(did you mean `exec`?)'],
  [['init', '--from', 'exec'], 'the folder is missing'],
  [['init', 'Große Sache', '--from', 'exec'], 'choose one with --name'],
  [['init', 'x', '--from', 'exec', '--name', 'X Y'], 'X Y cannot be the name of a team'],
  [['init', 'taken', '--from', 'exec'], 'taken/team.yml already exists: choose another folder'],
])('%p is refused', async (args, why) => {
  const home = files({ 'taken/team.yml': 'mine' })
  expect(await command(args, { home })).toMatchObject({ code: 2, stderr: expect.stringContaining(why) })
  expect(existsSync(join(home, 'x'))).toBe(false)
  expect(readFileSync(join(home, 'taken/team.yml'), 'utf8')).toBe('mine')
})

test.skipIf(!hasTmux)(
  'at a terminal it asks',
  async () => {
    const home = folder()
    await using window = await Window.open(['init', '--home', home], { home, columns: 100, rows: 30 })
    await window.shows(/ {2}map +the same team for each item.*[\s\S]*ticket-digest[\s\S]*from \(/)
    await window.press('map', 'Enter')
    await window.shows(/folder \(.*: *$/)
    await window.press(join(home, 'fleet'), 'Enter')
    await window.shows(/run it .* run [\s\S]*exit=0/)
    expect(readFileSync(join(home, 'fleet/team.yml'), 'utf8')).toContain('name: "@local/fleet"')
  },
  60_000,
)
