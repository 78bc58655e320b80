// Commands on paths that are no plain files of their own.

import { expect, test } from 'bun:test'
import { chmodSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { replace } from '../../lib/daemon/cli/teams/fmt.ts'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const home = folder()

test('fmt formats what it can, and says of each other path why it stays', async () => {
  const path = files({
    'fixed.yml': 'a:   1\n',
    'good.yml': '\ufeffa:   1 # c\r\n# d',
    'below/team.yml/inner/team.yml': 'b:   1\n',
  })
  Bun.spawnSync(['mkfifo', join(path, 'pipe.yml')])
  symlinkSync('circle.yml', join(path, 'circle.yml'))
  chmodSync(join(path, 'fixed.yml'), 0o444)
  const given = ['pipe.yml', 'fixed.yml', 'good.yml', 'below']
  const { code, stderr } = await command(['fmt', ...given], { home, cwd: path })
  expect([code, stderr]).toEqual([
    2,
    `formatted good.yml
formatted below/team.yml/inner/team.yml
error  2 files stay as they are
    pipe.yml is no file
    fixed.yml is read-only, and stays as it is
`,
  ])
  expect(readFileSync(join(path, 'good.yml'), 'utf8')).toBe('\ufeffa: 1 # c\r\n# d\r\n')
  expect(readFileSync(join(path, 'below/team.yml/inner/team.yml'), 'utf8')).toBe('b: 1\n')
  expect(readFileSync(join(path, 'fixed.yml'), 'utf8')).toBe('a:   1\n')
  expect(statSync(join(path, 'fixed.yml')).mode & 0o777).toBe(0o444)

  expect(await command(['fmt', '--check', 'fixed.yml'], { home, cwd: path })).toMatchObject({
    code: 1,
    stdout: 'fixed.yml\n- a:   1\n+ a: 1\n',
  })
  expect(await command(['fmt', 'circle.yml'], { home, cwd: path })).toMatchObject({ code: 2 })
}, 60_000)

test('fmt leaves a file alone that somebody changed meanwhile', async () => {
  const path = files({ 'team.yml': 'a: 2\n' })
  const file = join(path, 'team.yml')
  const read = new TextEncoder().encode('a:   1\n')
  await expect(replace(file, read, 'a: 1\n')).rejects.toThrow('was changed meanwhile')
  expect(readFileSync(file, 'utf8')).toBe('a: 2\n')
  expect(readdirSync(path)).toEqual(['team.yml'])
})
