// Named secrets from their source to a command and to a request, with a daemon: `${cmd:…}`, `${file:…}`, `teams`, and
// that no value is recorded or shown.

import { expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fakeVendor } from '../../lib/testing/fake-vendor.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { variantsOf } from '../support/variants.ts'

test('a secret of a password manager reaches commands and requests, is asked again after a 401, and is shown nowhere', async () => {
  const vault = files({ token: 'canary/first+token', key: 'canary-of-the-file' })
  const token = () => readFileSync(join(vault, 'token'), 'utf8')
  using vendor = fakeVendor(({ headers, body }) => ({ given: headers.get('authorization'), body }), {
    allows: ({ headers }) => headers.get('authorization') === `Bearer ${token()}`,
  })
  const home = folder()
  const secrets = {
    token: `\${cmd:echo asked >> ${join(vault, 'asked')}; cat ${join(vault, 'token')}}`,
    key: { value: `\${file:${join(vault, 'key')}}`, teams: ['@acme/*'] },
  }
  writeFileSync(join(home, 'settings.yml'), JSON.stringify({ secrets }), { mode: 0o600 })
  const headers = { authorization: 'Bearer {{ secrets.token }}' }
  const phases = [
    {
      name: 'shell',
      agent: 'exec',
      depends_on: [],
      env: { KEY: '{{ secrets.key }}' },
      commands: [
        {
          name: 'say',
          run: 'printf \'{"length": %d, "token": "%s"}\' "${#TOKEN}" "$TOKEN" > "$CADRE_RESULT"; echo "$KEY $TOKEN"',
          env: { TOKEN: '{{ secrets.token }}' },
        },
      ],
    },
    {
      name: 'ask',
      agent: 'http',
      depends_on: ['shell'],
      sources: [
        {
          name: 'reply.json',
          url: `${vendor.url}/a`,
          method: 'POST',
          effect: 'read',
          headers,
          body: { key: '{{ secrets.key }}' },
        },
      ],
      retry: { attempts: 2, backoff: '1ms' },
    },
  ]
  const team = { name: '@local/secrets', version: '1.0.0', phases }
  const path = files({ 'team.yml': JSON.stringify(team) })
  const daemon = await spawnDaemon({ home, env: { CADRE_LOG_LEVEL: 'debug' } })
  const run = async () => {
    const { run_id } = await daemon.call('/v1/runs/start', { path, workspace: folder() })
    const ended = await daemon.ended(run_id)
    const { phases } = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id })
    return { run_id, ended, phases, logs: await daemon.call('/v1/runs/logs', { run_id }) }
  }
  const asked = () => readFileSync(join(vault, 'asked'), 'utf8').trim().split('\n').length

  const first = await run()
  expect(first.ended.state).toBe('completed')
  expect(first.phases[0].data).toEqual({ length: token().length, token: '***' })
  expect(vendor.seen.at(-1)!.headers.get('authorization')).toBe('Bearer canary/first+token')
  expect(vendor.seen.at(-1)!.body).toEqual({ key: 'canary-of-the-file' })
  const second = await run()
  expect([second.ended.state, asked()]).toEqual(['completed', 1])

  writeFileSync(join(vault, 'token'), 'canary/second+token')
  const stale = await run()
  expect(stale.phases[1].error).toMatchObject({
    code: 'unauthorized',
    hint: 'check secrets.key and secrets.token, which the entry reply.json sends',
  })
  const renewed = await run()
  expect([renewed.ended.state, asked()]).toEqual(['completed', 2])
  expect(vendor.seen.at(-1)!.headers.get('authorization')).toBe('Bearer canary/second+token')

  await daemon.stop()
  const below = readdirSync(home, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const texts = [
    ...below
      .filter(({ name }) => name !== 'reply.json')
      .map(({ parentPath, name }) => readFileSync(join(parentPath, name), 'latin1')),
    ...[first, second, stale, renewed].map(each => JSON.stringify(each)),
    daemon.output.stdout + daemon.output.stderr,
  ]
  const values = ['canary/first+token', 'canary/second+token', 'canary-of-the-file']
  for (const value of values) {
    for (const variant of variantsOf(value)) expect(texts.filter(text => text.includes(variant)).length).toBe(0)
  }
}, 60_000)
