// The commands for whoever writes a team.

import { expect, test } from 'bun:test'
import { chmodSync, readFileSync, renameSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const home = folder()

test('fmt --check shows what fmt then writes, and leaves alone what cannot be read', async () => {
  const path = files({
    'team.yml': 'name:   "@local/a" # mine\nversion: 1.0.0\n',
    'below/team.yml': 'a: [1\nb: 2\n',
    'real.yml': 'b:   1\n',
  })
  const read = (name: string) => readFileSync(join(path, name), 'utf8')
  const checked = await command(['fmt', '--check', 'team.yml'], { home, cwd: path })
  expect(checked).toMatchObject({ code: 1, stderr: '' })
  expect(checked.stdout).toBe('team.yml\n- name:   "@local/a" # mine\n+ name: "@local/a" # mine\n  version: 1.0.0\n')
  expect(read('team.yml')).toStartWith('name:   ')

  const formatted = await command(['fmt'], { home, cwd: path })
  expect([formatted.code, read('team.yml')]).toEqual([2, 'name: "@local/a" # mine\nversion: 1.0.0\n'])
  expect(formatted.stderr).toMatch(/^formatted team\.yml$/m)
  expect(formatted.stderr).toMatch(/^below\/team\.yml:2:1: /m)
  expect(read('below/team.yml')).toBe('a: [1\nb: 2\n')
  expect(await command(['fmt', 'team.yml', '--check'], { home, cwd: path })).toMatchObject({ code: 0, stdout: '' })

  // A link stays one, and the file behind it keeps its mode.
  symlinkSync('real.yml', join(path, 'linked.yml'))
  chmodSync(join(path, 'real.yml'), 0o664)
  expect(await command(['fmt', 'linked.yml'], { home, cwd: path })).toMatchObject({ code: 0 })
  expect([read('real.yml'), statSync(join(path, 'real.yml')).mode & 0o777]).toEqual(['b: 1\n', 0o664])
  expect(await command(['fmt', 'none.yml'], { home, cwd: path })).toMatchObject({ code: 2 })
}, 30_000)

test('explain prints a field for people and for programs', async () => {
  const { stdout } = await command(['explain', 'phases.on_failure'], { home })
  expect(stdout).toMatch(/^phases\.on_failure\n\n {2}What a failure does/)
  expect(stdout).toContain('  default  fail\n')
  const { stdout: data } = await command(['explain', 'phases.retry', '--json'], { home })
  expect(JSON.parse(data)).toMatchObject({ field: 'phases.retry', forms: [{ value: 'a mapping' }] })
  const unknown = await command(['explain', 'phases.retyr'], { home })
  expect(unknown).toMatchObject({ code: 2, stderr: expect.stringContaining('(did you mean `retry`?)') })
}, 30_000)

test('lint names each rule, and exits 1 only when it is strict', async () => {
  const path = files({
    'team.yml': `name: "@local/a"
version: 1.0.0
inputs: [{ name: who, type: string }]
phases: [{ name: x, agent: exec, commands: [{ name: c, run: "true" }] }]
`,
    'old/team.yml': 'name: "@local/old"\n',
  })
  const { code, stdout } = await command(['lint', path], { home })
  expect(code).toBe(0)
  expect(stdout).toContain('team.yml:3:10: nothing uses the input `who` [unused-input]\n')
  expect(stdout).toContain('old/team.yml:1:1: nothing in this folder uses this team [unused-team]\n')
  const strict = await command(['lint', path, '--strict', '--json'], { home })
  expect(strict.code).toBe(1)
  expect(JSON.parse(strict.stdout).findings).toMatchObject([{ rule: 'unused-input', line: 3 }, { rule: 'unused-team' }])
}, 30_000)

test('schema --write writes the schema, and prints the line for the top of team.yml', async () => {
  const path = folder()
  const { code, stdout } = await command(['schema', '--write'], { home, cwd: path })
  expect([code, stdout]).toEqual([0, '# yaml-language-server: $schema=./team.schema.json\n'])
  expect(JSON.parse(readFileSync(join(path, 'team.schema.json'), 'utf8'))).toMatchObject({ title: 'team.yml' })
  const elsewhere = join(path, 'below/x.json')
  const { stdout: absolute } = await command(['schema', '--write', elsewhere], { home })
  expect(absolute).toBe(`# yaml-language-server: $schema=${elsewhere}\n`)
}, 30_000)

test('a file that lies beside team.yml and not in the workspace is told with the folder to run in', async () => {
  const team = files({
    'line.txt': 'hello {{ item }}\n',
    'team.yml': `name: "@local/beside"
version: 1.0.0
phases:
  - { name: fill, agent: data, action: template, sources: [{ name: a.txt, items: [1], template: line.txt }] }
`,
  })
  const elsewhere = folder()
  const words = `phase fill names line.txt, which does not exist: looked in ${elsewhere}; a file of this name lies beside team.yml: run with --workspace ${team}\n`
  const validated = await command(['validate', team], { home, cwd: elsewhere })
  expect([validated.code, validated.stdout]).toEqual([0, expect.stringContaining(`note: team.yml:4:5: ${words}`)])
  expect((await command(['plan', team], { home, cwd: elsewhere })).stdout).toContain(words)
  expect((await command(['plan', team, '--workspace', team], { home, cwd: elsewhere })).stdout).not.toContain(words)
  expect((await command(['validate', team], { home, cwd: team })).stdout).not.toContain(words)
  const failed = await command(['run', team], { home, cwd: elsewhere })
  expect(failed.code).toBe(1)
  expect(failed.stdout + failed.stderr).toContain(
    `looked in ${elsewhere}; a file of this name lies beside team.yml: run with --workspace ${team}`,
  )
  expect(failed.stderr).toStartWith(`note: team.yml:4:5: ${words}`)
  const ran = await command(['run', team, '--workspace', team], { home, cwd: elsewhere })
  expect([ran.code, ran.stderr]).toEqual([0, expect.not.stringContaining('note: ')])
}, 30_000)

test('a file beside the team.yml of a sub-team is told with the workspace, which is that of the whole run', async () => {
  const fill = (items: string) =>
    `{ name: fill, agent: data, action: template, sources: [{ name: a.txt, items: ${items}, template: line.txt }] }`
  const team = files({
    'team.yml': `name: "@local/above"\nversion: 1.0.0\nphases: [{ name: down, type: team, team: ./below }]\n`,
    'below/team.yml': `name: "@local/below"\nversion: 1.0.0\nphases: [${fill('[1]')}]\n`,
    'below/line.txt': 'hello {{ item }}\n',
  })
  const words = `phase fill names line.txt, which does not exist: looked in ${team}, which all teams of a run share; put the file there that lies beside this team.yml, in ${team}/below\n`
  for (const word of ['validate', 'plan']) {
    expect((await command([word, team], { home, cwd: team })).stdout).toContain(words)
  }
  const failed = await command(['run', team], { home, cwd: team })
  expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining(words)])
  expect(failed.stdout + failed.stderr).not.toContain('--workspace')
  renameSync(join(team, 'below/line.txt'), join(team, 'line.txt'))
  const ran = await command(['run', team], { home, cwd: team })
  expect([ran.code, ran.stderr]).toEqual([0, expect.not.stringContaining('note: ')])
}, 30_000)
