// `bun daemon.ts` in a folder that somebody else wrote: its files do not choose the home, the hub, the code or the proxy.
// Only Linux tells what a process was given.

import { expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { folder } from '../support/folder.ts'

const PROGRAM = join(import.meta.dir, '../../daemon.ts')

function start(
  files: Record<string, string>,
  options: { env?: Record<string, string>; flags?: string[]; args?: string[] } = {},
) {
  const [cwd, home] = [folder(), folder()]
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text)
  const { env = {}, flags = [], args = ['settings', 'list'] } = options
  const child = Bun.spawnSync([process.execPath, ...flags, PROGRAM, ...args], {
    cwd,
    env: { PATH: process.env.PATH!, HOME: home, LANG: 'C.UTF-8', ...env },
  })
  return { cwd, home, code: child.exitCode, stdout: `${child.stdout}`, stderr: `${child.stderr}` }
}

const linux = test.if(process.platform === 'linux')

linux.each([
  'CADRE_HOME',
  'CADRE_AGENTS',
  'CADRE_HUB_URL',
  'CADRE_API_KEY',
  'CADRE_REALM_TOKEN',
  'HTTPS_PROXY',
  'https_proxy',
  'NODE_EXTRA_CA_CERTS',
])('%s of an .env is refused by name, and nothing is made', name => {
  const at = folder()
  const { code, stderr, home } = start({ '.env': `${name}=${join(at, 'theirs')}\nOTHER=1\n` })
  expect(code).toBe(2)
  expect(stderr).toContain(`${name} comes from a file of the current folder`)
  expect([existsSync(join(at, 'theirs')), existsSync(join(home, '.cadre'))]).toEqual([false, false])
})

linux.each([
  ['.env.local', {}],
  ['.env.development', {}],
  ['.env.production', { NODE_ENV: 'production' }],
])('what %s brings is refused as well', (file, env) => {
  const at = folder()
  const { code, stderr, home } = start({ [file]: `CADRE_HOME=${join(at, 'theirs')}\n` }, { env })
  expect([code, stderr]).toEqual([2, expect.stringContaining('CADRE_HOME comes from a file of the current folder')])
  expect([existsSync(join(at, 'theirs')), existsSync(join(home, '.cadre'))]).toEqual([false, false])
})

linux('a preload that sets the home, or changes it, is refused', () => {
  const theirs = join(folder(), 'theirs')
  const files = {
    'bunfig.toml': 'preload = ["./theirs.ts"]\n',
    'theirs.ts': `process.env.CADRE_HOME = ${JSON.stringify(theirs)}`,
  }
  expect(start(files)).toMatchObject({ code: 2, stderr: expect.stringContaining('CADRE_HOME') })
  expect(start(files, { env: { CADRE_HOME: folder() } })).toMatchObject({ code: 2 })
  expect(existsSync(theirs)).toBe(false)
})

linux('a setting does not read what an .env brings, and reads what was exported', () => {
  const settings = 'agents:\n  wiki: { base_url: "${env:THEIRS}", email: a@acme.test, api_token: t }\n'
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), settings, { mode: 0o600 })
  const args = ['doctor', 'wiki', '--home', home]
  const refused = start({ '.env': 'THEIRS=http://127.0.0.1:9\n' }, { args })
  expect(refused.stdout + refused.stderr).toContain('the environment variable THEIRS is not set')
  const exported = start({}, { args, env: { THEIRS: 'http://127.0.0.1:9' } })
  expect(exported.stdout + exported.stderr).toContain('GET http://127.0.0.1:9')
})

linux('what is exported stays, whatever a file says, and so does a file that is named', () => {
  const exported = folder()
  expect(start({ '.env': 'CADRE_HOME=/nowhere\n' }, { env: { CADRE_HOME: exported } })).toMatchObject({ code: 0 })
  const named = start({ 'mine.env': `CADRE_HOME=${exported}\n` }, { flags: ['--env-file=mine.env'] })
  expect(named).toMatchObject({ code: 0, stderr: '' })
})
