// What agents concealed and what the daemon holds itself: every masker of the daemon knows it, those that are there and
// those that are made later.

import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Mask } from '../../lib/daemon/access/mask.ts'
import { ownSecrets } from '../../lib/daemon/home/own-secrets.ts'
import { addPublishKey } from '../../lib/daemon/home/publish-keys.ts'
import { createLog } from '../../lib/log/log.ts'
import type { KnownSecret } from '../../lib/secrets/redact.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub } from '../support/hub.ts'
import { tablesOf } from '../support/tables.ts'
import { variantsOf } from '../support/variants.ts'

const open = () => new Mask(() => [{ name: 'agents.wiki.api_token', value: 'canary-setting' }], createLog())

// Root without its capabilities is held to the same as everybody.
const unprivileged = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] : []
const restricted = process.platform === 'linux' && (unprivileged.length === 0 || Bun.which('setpriv') !== null)
if (!restricted) console.log('skipped: the process of the daemon cannot be read (Linux only; root needs setpriv)')

/** CAP_SYS_PTRACE: the commands of this process read the environment of every other, as those of an unrestricted root. */
const readsAll = process.platform === 'linux' && (effectiveCapabilities() >> 19n) % 2n === 1n

function effectiveCapabilities(): bigint {
  const [, digits] = /^CapEff:\s+(\w+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))!
  return BigInt(`0x${digits}`)
}

describe('a concealed value', () => {
  test('is masked in every tree, beside settings and secret inputs', () => {
    const mask = open()
    const before = mask.redactor(['canary-input'])
    mask.conceal('canary-token')
    for (const redactor of [before, mask.redactor(), mask.redactor(['canary-input'])]) {
      expect<unknown>(redactor.json({ said: ['canary-setting canary-token'] })).toEqual({ said: ['*** ***'] })
    }
    expect<unknown>(before.text('canary-input')).toBe('***')
  })

  test('outlasts a change of the settings', () => {
    const mask = open()
    mask.conceal('canary-token')
    mask.learn()
    expect<unknown>(mask.redactor().text('canary-token')).toBe('***')
  })

  test('is remembered while it is used, among many others that are forgotten', () => {
    const mask = open()
    for (let n = 1_000; n < 2_000; n++) {
      mask.conceal('canary-key')
      mask.conceal(`canary-token-${n}`)
      expect<unknown>(mask.redactor().text(`canary-key canary-token-${n} canary-setting`)).toBe('*** *** ***')
    }
    expect<unknown>(mask.redactor().text('canary-token-1000')).toBe('canary-token-1000')
    expect<unknown>(mask.redactor().text('canary-token-1900')).toBe('***')
  })
})

describe('secrets of the settings', () => {
  test('that come later are known to maskers in use, and what they replace stays masked', () => {
    let secrets: KnownSecret[] = [{ name: 'a', value: 'canary-first' }]
    const mask = new Mask(() => secrets, createLog())
    const inUse = mask.redactor(['canary-input'])
    const stream = mask.redactor().stream()
    secrets = [{ name: 'a', value: 'canary-second' }]
    mask.learn()
    for (const redactor of [inUse, mask.redactor(), mask.redactor(['canary-other'])]) {
      expect<unknown>(redactor.text('canary-first canary-second')).toBe('*** ***')
    }
    const bytes = [stream.push(Buffer.from('canary-sec')), stream.push(Buffer.from('ond')), stream.end()]
    expect(Buffer.concat(bytes).toString()).toBe('***')
  })
})

test('a masker in use learns what comes later, however many other trees there are', () => {
  let secrets: KnownSecret[] = []
  const mask = new Mask(() => secrets, createLog())
  const inUse = mask.redactor(['canary-input'])
  for (let n = 100; n < 300; n++) mask.redactor([`canary-input-${n}`])
  secrets = [{ name: 'a', value: 'canary-second' }]
  mask.learn()
  mask.conceal('canary-token')
  expect<unknown>(inUse.text('canary-second canary-token')).toBe('*** ***')
})

describe('what the daemon holds itself', () => {
  test('is told from words and paths of its environment', () => {
    const home = folder()
    const found = ownSecrets(home, {
      CADRE_HUB_KEY: 'short-one',
      CADRE_DISPATCH_PUBLIC_KEY: '-----BEGIN PUBLIC KEY-----',
      GITHUB_TOKEN: 'ghp_0123456789abcdef',
      DB_PASSWORD: 'postgres',
      HTTPS_PROXY: 'http://user:p%40ssword@proxy.test:8080',
      PATH: '/usr/bin',
      EMPTY_TOKEN: '',
    })
    const token = readFileSync(join(home, 'token'), 'utf8').trim()
    expect(found.map(({ value }) => value)).toEqual([
      token,
      'short-one',
      'ghp_0123456789abcdef',
      // Its password is masked by itself, too: tests/attacks/11-masking.test.ts.
      'http://user:p%40ssword@proxy.test:8080',
    ])
  })

  test.skipIf(!restricted)('cannot be read by commands from the process of the daemon', async () => {
    const held = { CADRE_API_KEY: 'cadre_tok_canaryOfTheKey0123456789abcdefghijklmn' }
    const daemon = await spawnDaemon({ env: held, through: unprivileged })
    const path = files({
      'team.yml': `
name: "@local/looks"
version: 1.0.0
phases:
  - name: look
    agent: exec
    commands: [{ name: c, run: 'for file in environ mem maps; do head -c 1 "/proc/$PPID/$file" || echo "no $file"; done' }]
`,
    })
    const { run_id } = await daemon.call('/v1/runs/start', { path })
    await daemon.ended(run_id)
    const { lines } = await daemon.call<{ lines: { stream: string; text: string }[] }>('/v1/runs/logs', { run_id })
    const printed = lines.filter(({ stream }) => stream === 'stdout').map(({ text }) => text)
    await daemon.stop()
    expect(printed).toEqual(['no environ', 'no mem', 'no maps'])
  })

  test('is masked when it came into the home after the start', async () => {
    const daemon = await spawnDaemon()
    const { home } = daemon
    const session = 'cadre_tok_canaryOfTheLaterSession0123456789abcd'
    writeFileSync(join(home, 'session'), JSON.stringify({ hub: 'http://127.0.0.1:9', token: session }), { mode: 0o600 })
    const { secret: publisher } = await addPublishKey(home)
    const path = files({
      'team.yml': `
name: "@local/prints"
version: 1.0.0
phases: [{ name: p, agent: exec, commands: [{ name: c, run: 'cat "$HOME/session" "$HOME/publish-keys.json"' }] }]
`,
    })
    // The home is looked at ten times a second.
    await Bun.sleep(150)
    const { run_id } = await daemon.call('/v1/runs/start', { path })
    await daemon.ended(run_id)
    const heard = JSON.stringify(await daemon.call('/v1/runs/logs', { run_id, limit: 1_000 }))
    await daemon.stop()
    expect(heard).toContain('***')
    for (const secret of [session, publisher]) expect(heard).not.toContain(secret)
  })

  test('is masked when commands print it', async () => {
    const hub = await startTestHub()
    const key = async (name: string) =>
      (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name })).token as string
    const held = {
      CADRE_REALM_TOKEN: (await hub.realmToken(hub.admin, hub.realm)).token,
      CADRE_API_KEY: await key('environment'),
    }
    const stored = await key('settings')
    const session = 'cadre_tok_canaryOfTheSession0123456789abcdefgh'
    const home = folder()
    const keep = (name: string, text: string) => writeFileSync(join(home, name), text, { mode: 0o600 })
    keep('session', JSON.stringify({ hub: 'http://127.0.0.1:9', token: session }))
    // Its commands find the files.
    keep('settings.yml', `hub: {api_key: ${stored}}\npackages: {sandbox: none}\n`)
    // Where the environment of the daemon cannot be read, its values are printed all the same.
    keep('copied', Object.values(held).join('\n'))
    const { secret: publisher } = await addPublishKey(home)
    const daemon = await spawnDaemon({ home, env: { ...held, CADRE_HUB_URL: hub.url } })
    const environ = 'tr "\\0" "\\n" < /proc/$PPID/environ || echo not readable'
    const print = `cd "$HOME"; cat token session publish-keys.json settings.yml copied; cat token copied | base64 -w 0; ${environ}`
    const team = '@admin/prints'
    const text = `
name: "${team}"
version: 1.0.0
phases:
  - { name: logs, agent: exec, commands: [{ name: c, run: '${print}' }] }
  - { name: result, agent: exec, commands: [{ name: c, run: 'printf "{\\"a\\": \\"%s\\"}" "$(cat "$HOME/token")" > "$CADRE_RESULT"' }] }
  - { name: fails, agent: exec, depends_on: [logs], commands: [{ name: c, run: '{ ${print}; } >&2; exit 1' }] }
`
    await hub.addTeam(text)
    const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team })
    for (;;) {
      const { data: run } = await hub.call(hub.admin, 'runs/get', { run_id })
      const { data: log } = await hub.call(hub.admin, 'runs/logs', { run_id })
      if (run?.completed_at && log?.complete) break
      await Bun.sleep(50)
    }
    const heard = JSON.stringify(
      await Promise.all([
        daemon.call('/v1/runs/logs', { run_id, limit: 1_000 }),
        daemon.call('/v1/runs/get', { run_id }),
        daemon.call('/v1/runs/why', { run_id }),
        daemon.envelope('/v1/runs/phases', 'run_phases', { run_id }),
      ]),
    )
    await daemon.stop()
    const tables = JSON.stringify(await tablesOf(hub.store))
    const said = { heard, stderr: daemon.output.stderr, hub: tables, 'log of the hub': (await hub.log()).join('\n') }
    await hub.stop()
    const kept = readdirSync(home).filter(name => name.startsWith('daemon.db'))
    const places = [...Object.entries(said), ...kept.map(name => [name, readFileSync(join(home, name), 'latin1')])]
    const secrets = [...Object.values(held), stored, session, publisher, daemon.token]
    for (const [at, text] of places) {
      for (const secret of secrets)
        for (const variant of variantsOf(secret)) expect(text!.includes(variant), `${secret} in ${at}`).toBe(false)
    }
    expect(heard).toContain('"a":"***"')
    // They were printed indeed, and reached the hub.
    for (const text of [heard, tables]) expect(text.split('***').length).toBeGreaterThan(12)
    if (process.platform === 'linux') expect(heard).toContain(readsAll ? 'CADRE_REALM_TOKEN=***' : 'not readable')
  }, 30_000)
})
