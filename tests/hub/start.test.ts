// The hub as a process: first start, the listening line, accounts by command, stopping, state that survives.

import { expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { folder } from '../support/folder.ts'

const program = resolve(import.meta.dir, '../../hub.ts')
const home = folder()

function hub(args: string[], env: Record<string, string> = {}, stdin = '') {
  return Bun.spawn(['bun', program, ...args], {
    env: { PATH: process.env.PATH!, HOME: home, CADRE_HOME: home, CADRE_LOG_FORMAT: 'json', ...env },
    stdin: new TextEncoder().encode(stdin),
    stdout: 'pipe',
    stderr: 'pipe',
  })
}

async function command(args: string[], stdin = '') {
  const child = hub(args, {}, stdin)
  const [out, err] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { code: await child.exited, out, err }
}

async function serving(env: Record<string, string> = {}) {
  const child = hub(['serve', '--port', '0'], env)
  const reader = child.stdout.getReader()
  let line = ''
  while (!line.includes('\n')) {
    const { value, done } = await reader.read()
    if (done) throw new Error(await child.stderr.text())
    line += new TextDecoder().decode(value)
  }
  const url = /^hub listening on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(line)![1]!
  const call = async (path: string, body: object = {}, token?: string) => {
    const headers = { 'content-type': 'application/json', ...(token && { authorization: `Bearer ${token}` }) }
    const reply = await fetch(`${url}/v1/${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    return { status: reply.status, ...((await reply.json()) as { data: Record<string, unknown> }) }
  }
  return { child, url, call }
}

test('first start, restart, commands beside it', async () => {
  const first = await serving()
  expect(((await (await fetch(`${first.url}/health`)).json()) as { data: object }).data).toMatchObject({ status: 'ok' })
  // A command changes what the running hub decides, at once.
  expect(await command(['user', 'add', 'bob', '--password-stdin'], 'bobs password\n')).toMatchObject({
    code: 0,
    out: 'added bob\n',
  })
  const { data } = await first.call('session/create', { username: 'bob', password: 'bobs password' })
  const token = String(data.token)
  expect((await first.call('auth/whoami', {}, token)).status).toBe(200)
  expect((await command(['user', 'passwd', 'bob', '--password-stdin'], 'another one\n')).code).toBe(0)
  expect((await first.call('auth/whoami', {}, token)).status).toBe(401)
  const again = await first.call('session/create', { username: 'bob', password: 'another one' })
  expect((await command(['user', 'suspend', 'bob'])).out).not.toContain('no site admin')
  expect((await first.call('auth/whoami', {}, String(again.data.token))).status).toBe(401)
  expect((await command(['user', 'list'])).out).toBe('1\tadmin\tadmin\tactive\n2\tbob\tuser\tsuspended\n')

  first.child.kill('SIGTERM')
  expect(await first.child.exited).toBe(0)
  const log = await first.child.stderr.text()
  const password = /account admin with password (\S+)/.exec(log)![1]!
  expect(statSync(join(home, 'hub.db')).mode & 0o077).toBe(0)

  const second = await serving()
  expect((await second.call('session/create', { username: 'admin', password })).status).toBe(200)
  second.child.kill('SIGINT')
  expect(await second.child.exited).toBe(0)
  expect(await second.child.stderr.text()).not.toContain('password')
}, 20_000)

test('what was committed survives kill -9', async () => {
  const first = await serving({ CADRE_ADMIN_PASSWORD: 'x' })
  expect((await command(['user', 'passwd', 'admin', '--password-stdin'], 'known password')).code).toBe(0)
  const { data } = await first.call('session/create', { username: 'admin', password: 'known password' })
  const made = await first.call('orgs/create', { slug: 'kept', display_name: 'Kept' }, String(data.token))
  first.child.kill('SIGKILL')
  await first.child.exited
  const second = await serving()
  const { data: org } = await second.call('orgs/get_by_id', { org_id: made.data.id }, String(data.token))
  expect(org.slug).toBe('kept')
  second.child.kill('SIGTERM')
  await second.child.exited
}, 20_000)

test.each([
  [['frob'], 2, 'frob'],
  [['user', 'frob'], 2, 'unknown'],
  [['serve', '--port', 'many'], 2, 'whole number'],
  [['user', 'add', 'UPPER'], 2, 'UPPER is not a valid user name; it must match '],
  [['user', 'suspend', 'nobody'], 2, 'there is no user nobody'],
  [['--help'], 0, ''],
] as [string[], number, string][])('%j exits %p', async (args, code, text) => {
  const result = await command(args)
  expect(result.code).toBe(code)
  expect(result.err).toContain(text)
})
