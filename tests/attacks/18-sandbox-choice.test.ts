// Whose commands run in which sandbox: the owner's settings, the default for packages, and where the choice is shown.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { hasBubblewrap } from '../support/sandbox.ts'

const LOOK = 'test -e "$SETTINGS" && echo open || echo closed'

/** A team that says whether it sees the settings of the daemon. */
const looking = (name: string, settings: string, more: object = {}) =>
  JSON.stringify({
    name,
    version: '1.0.0',
    outputs: [{ name: 'saw', type: 'string', value: '{{ phases.look.data.commands[0].stdout }}' }],
    phases: [
      { name: 'look', agent: 'exec', env: { SETTINGS: settings }, commands: [{ name: 'c', run: LOOK }], ...more },
    ],
  })

function homeWith(settings: object): string {
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  return home
}

/** The package of a home: each says where its settings are. */
const nameAt = (home: string) => `@admin/looks-${Bun.hash(home).toString(36)}`
const settingsOf = (home: string) => join(home, 'settings.yml')

async function runPath(daemon: RunningDaemon, text: string) {
  const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': text }) })
  const { state, outputs, error } = await daemon.ended(run_id)
  return { state, saw: String(outputs?.saw ?? '').trim(), error }
}

/** A folder of PATH with the programs that a daemon calls, and bubblewrap only if it is asked for. */
function programs(...names: string[]): string {
  const path = folder()
  for (const name of ['sh', 'git', 'id', 'cat', 'bun', ...names]) {
    const program = Bun.which(name)
    if (program) symlinkSync(program, join(path, name))
  }
  return path
}

describe('what a hub dispatches', () => {
  const published = new Set<string>()
  let hub: TestHub

  beforeAll(async () => {
    hub = await startTestHub()
  })
  afterAll(() => hub.stop())

  /** A daemon of the realm, and what a dispatched package sees there. */
  async function withDaemon<T>(
    home: string,
    env: Record<string, string>,
    work: (
      daemon: RunningDaemon,
      dispatched: () => Promise<{ state: string; saw: string; error: string }>,
    ) => Promise<T>,
  ): Promise<T> {
    const { token } = await hub.realmToken(hub.admin, hub.realm)
    const daemon = await spawnDaemon({ home, env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, ...env } })
    const name = nameAt(home)
    if (!published.has(name)) await hub.addTeam(looking(name, settingsOf(home)))
    published.add(name)
    try {
      return await work(daemon, async () => {
        const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: name })
        const run = await until(async () => {
          const { data } = await hub.call(hub.admin, 'runs/get', { run_id })
          return data?.completed_at != null && data
        }, 'the end of the run')
        return { state: run.state, saw: String(run.outputs?.saw ?? '').trim(), error: JSON.stringify(run.error) }
      })
    } finally {
      await daemon.stop()
      const { daemons } = await hub.ok(hub.admin, 'daemons/list', {})
      for (const { id, removed_at } of daemons) {
        if (removed_at === null) await hub.ok(hub.admin, 'daemons/remove', { daemon_id: id })
      }
    }
  }

  const toldSandbox = async () => {
    const { daemons } = await hub.ok(hub.admin, 'daemons/list', {})
    return daemons.find(({ removed_at }: { removed_at: number | null }) => removed_at === null)?.sandbox
  }

  test.skipIf(!hasBubblewrap)(
    'runs in bubblewrap where nothing is chosen, and the hub shows it',
    async () => {
      await withDaemon(homeWith({}), {}, async (daemon, dispatched) => {
        expect(await dispatched()).toMatchObject({ state: 'completed', saw: 'closed' })
        expect(await toldSandbox()).toBe('bubblewrap')
        // A team of a folder is the person's own.
        expect((await runPath(daemon, looking('@local/own', settingsOf(daemon.home)))).saw).toBe('open')
        // Unless it calls a package.
        const calling = JSON.stringify({
          name: '@local/calls',
          version: '1.0.0',
          outputs: [{ name: 'saw', type: 'string', value: '{{ phases.call.data.saw }}' }],
          phases: [{ name: 'call', type: 'team', team: nameAt(daemon.home) }],
        })
        expect(await runPath(daemon, calling)).toMatchObject({ state: 'completed', saw: 'closed' })
        // The hub is told of another choice.
        const authorization = { authorization: `Bearer ${daemon.token}` }
        await daemon.call('/v1/settings/set', { key: 'packages.sandbox', value: 'none' }, authorization)
        expect(await dispatched()).toMatchObject({ state: 'completed', saw: 'open' })
        await until(async () => (await toldSandbox()) === 'none', 'what the hub shows')
      })
    },
    60_000,
  )

  test.skipIf(!hasBubblewrap)(
    'runs in bubblewrap also where PATH has folders that are not the system’s',
    async () => {
      const PATH = [join(import.meta.dir, '../../node_modules/.bin'), process.env.PATH].join(delimiter)
      await withDaemon(homeWith({}), { PATH }, async (_, dispatched) => {
        expect(await dispatched()).toMatchObject({ state: 'completed', saw: 'closed' })
      })
    },
    60_000,
  )

  test('runs without where bubblewrap is missing, with a warning at the start and in a plan', async () => {
    const home = homeWith({})
    const PATH = programs()
    await withDaemon(home, { PATH }, async (daemon, dispatched) => {
      expect(await dispatched()).toMatchObject({ state: 'completed', saw: 'open' })
      expect(daemon.output.stderr).toContain('packages run without a sandbox: bwrap was not found in PATH')
      expect(await toldSandbox()).toBe('none')
      const { stdout } = await command(['plan', nameAt(home)], { home, env: { PATH } })
      expect(stdout).toContain('without a sandbox')
      expect(stdout).toMatch(/warnings\n +packages run without a sandbox: bwrap was not found/)
    })
  }, 60_000)

  test('is as the owner wants it for all commands, unless packages have a choice of their own', async () => {
    const PATH = programs()
    await withDaemon(homeWith({ exec: { sandbox: 'bubblewrap' } }), { PATH }, async (_, dispatched) => {
      const { state, error } = await dispatched()
      expect([state, error]).toEqual(['failed', expect.stringContaining('bwrap was not found in PATH')])
    })
    const both = homeWith({ exec: { sandbox: 'bubblewrap' }, packages: { sandbox: 'none' } })
    await withDaemon(both, { PATH }, async (_, dispatched) => {
      expect(await dispatched()).toMatchObject({ state: 'completed', saw: 'open' })
    })
  }, 60_000)

  test('goes on without in a home that has run packages before there were sandboxes, until its owner chooses', async () => {
    const home = homeWith({ packages: { sandbox: 'none' } })
    await withDaemon(home, {}, async (_, dispatched) => {
      expect(await dispatched()).toMatchObject({ state: 'completed', saw: 'open' })
    })
    // The same home, as the version before this one has left it.
    const db = new Database(join(home, 'daemon.db'))
    db.run("DELETE FROM meta WHERE key = 'packages_sandbox'")
    db.close()
    writeFileSync(settingsOf(home), '{}')
    await withDaemon(home, {}, async (daemon, dispatched) => {
      expect(await dispatched()).toMatchObject({ state: 'completed', saw: 'open' })
      expect(daemon.output.stderr).toContain('as they did in this home before there were sandboxes: choose with')
    })
    // It is remembered when the runs are gone.
    const later = new Database(join(home, 'daemon.db'))
    later.run('PRAGMA foreign_keys = ON')
    later.run('DELETE FROM runs')
    later.close()
    await withDaemon(home, {}, async (_, dispatched) => {
      expect(await dispatched()).toMatchObject({ state: 'completed', saw: 'open' })
    })
    if (!hasBubblewrap) return
    writeFileSync(settingsOf(home), JSON.stringify({ packages: { sandbox: 'bubblewrap' } }))
    await withDaemon(home, {}, async (_, dispatched) => {
      expect(await dispatched()).toMatchObject({ state: 'completed', saw: 'closed' })
    })
  }, 120_000)
})

describe('a plan', () => {
  const text = looking('@local/planned', '/x', { needs: ['network'] })

  test.skipIf(!hasBubblewrap)('says where commands would run, and what the owner has to add', async () => {
    const home = homeWith({ exec: { sandbox: 'bubblewrap' } })
    const { stdout } = await command(['plan', files({ 'team.yml': text })], { home })
    expect(stdout).toContain('in bubblewrap with network')
    expect(stdout).toContain('sandbox_network: ["@local/planned"]')
    const told = await command(['plan', files({ 'team.yml': text }), '--json'], { home })
    expect(JSON.parse(told.stdout)).toMatchObject({
      team: { phases: [{ name: 'look', sandbox: 'bubblewrap', network: true }] },
      warnings: [expect.stringContaining('settings set exec.sandbox_network')],
    })
  })

  test('says when there is none', async () => {
    const { stdout } = await command(['plan', files({ 'team.yml': text })], { home: folder() })
    expect(stdout).toContain('without a sandbox')
    expect(stdout).not.toContain('warnings')
  })
})

describe('needs of a phase', () => {
  test.each([
    [
      'commands of exec',
      (needs: unknown) => ({ name: 'a', agent: 'exec', needs, commands: [{ name: 'c', run: 'true' }] }),
    ],
    [
      'commands of a gate',
      (needs: unknown) => ({ name: 'a', type: 'gate', needs, commands: [{ name: 'c', run: 'true' }] }),
    ],
  ])('%s: are a list that people see before the run', async (_, phase) => {
    const validate = (needs: unknown) => {
      const text = JSON.stringify({ name: '@local/n', version: '1.0.0', phases: [phase(needs)] })
      return command(['validate', files({ 'team.yml': text })], { home: folder() })
    }
    expect((await validate(['network'])).code).toBe(0)
    for (const wrong of [['build'], 'network', ['{{ run.name }}'], '{{ run.name }}', ['network', 'network']]) {
      const { code, stderr, stdout } = await validate(wrong)
      expect([wrong, code]).toEqual([wrong, 2])
      expect(stderr + stdout).toMatch(/depends_on|templates are not read here|at most 1/)
    }
  })
})

// No container service runs where these tests run: the program is one of our own, which writes down how it is called.
describe('a container', () => {
  const bin = programs()
  const calls = join(bin, 'calls')
  const podman = `#!/bin/sh
{ printf '%s\\037' "$@"; echo; } >> ${calls}
[ "$1" = image ] && [ "$3" = missing:1 ] && { echo "no such image" >&2; exit 1; }
[ "$1" = run ] && { echo "value: $CADRE_VAR_VALUE, own: $VALUE"; case "$*" in *hang*) sleep 60;; esac; }
[ "$1" = ps ] && echo 0123456789ab
exit 0
`
  writeFileSync(join(bin, 'podman'), podman, { mode: 0o755 })
  const env = { PATH: [bin, '/usr/bin', '/bin'].join(delimiter) }
  const called = () =>
    readFileSync(calls, 'utf8')
      .split('\x1f\n')
      .filter(Boolean)
      .map(line => line.split('\x1f'))
  let daemon: RunningDaemon

  beforeAll(async () => {
    daemon = await spawnDaemon({ home: homeWith({ exec: { sandbox: 'container', image: 'example/tools:1' } }), env })
  })
  afterAll(() => daemon.stop())

  test('promises what bubblewrap promises, and gets variables under other names', async () => {
    const workspace = join(folder(), 'a "b", c')
    mkdirSync(workspace)
    const text = JSON.stringify({
      name: '@local/c',
      version: '1.0.0',
      outputs: [{ name: 'saw', type: 'string', value: '{{ phases.look.data.commands[0].stdout }}' }],
      phases: [
        { name: 'look', agent: 'exec', env: { VALUE: 'v', PATH: '/mine' }, commands: [{ name: 'c', run: 'make it' }] },
      ],
    })
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': text }), workspace })
    const { state, outputs } = await daemon.ended(run_id)
    expect([state, outputs]).toEqual(['completed', { saw: 'value: v, own: \n' }])
    const run = called().find(([first]) => first === 'run')!
    const after = (flag: string) => run.flatMap((word, at) => (word === flag ? [run[at + 1]] : []))
    expect(run).toContain('--rm')
    expect(run).toContain('--read-only')
    expect(after('--network')).toEqual(['none'])
    expect(after('--cap-drop')).toEqual(['ALL'])
    expect(after('--security-opt')).toEqual(['no-new-privileges'])
    expect(after('--user')).toEqual([`${process.getuid!()}:${process.getgid!()}`])
    expect(after('--workdir')).toEqual([workspace])
    const files_ = join(daemon.home, 'runs', run_id, 'files')
    const results = join(daemon.home, 'runs', run_id, 'tmp/result-look')
    const quoted = workspace.replaceAll('"', '""')
    expect(after('--mount').sort()).toEqual(
      [
        `type=bind,"source=${quoted}","destination=${quoted}"`,
        `type=bind,source=${files_},destination=${files_}`,
        `type=bind,source=${results},destination=${results}`,
      ].sort(),
    )
    expect(after('--env')).toContain('CADRE_VAR_PATH')
    expect(run.join(' ')).not.toContain('VALUE=v')
    expect(run.slice(run.indexOf('example/tools:1') + 1).slice(-4)).toEqual(['sh', 'sh', '-c', 'make it'])
    const name = after('--name')[0]!
    await until(() => called().some(words => words.join(' ') === `rm --force ${name}`), 'its removal')
  })

  test('is removed when the run is cancelled', async () => {
    const text = looking('@local/hang', 'hang').replace(LOOK.replaceAll('"', '\\"'), 'hang')
    const { run_id } = await daemon.call('/v1/runs/start', { path: files({ 'team.yml': text }) })
    const hanging = () => called().find(words => words[0] === 'run' && words.includes('hang'))
    await until(() => hanging() !== undefined, 'the container')
    await daemon.call('/v1/runs/cancel', { run_id })
    await daemon.ended(run_id)
    const name = hanging()![hanging()!.indexOf('--name') + 1]
    await until(() => called().some(words => words.join(' ') === `rm --force ${name}`), 'its removal')
  })

  test('that an earlier daemon left is removed at the start', async () => {
    expect(called().some(words => words.join(' ') === 'rm --force 0123456789ab')).toBe(true)
  })

  test.each([
    ['no image', { exec: { sandbox: 'container' } }, 'exec.image is not set'],
    ['an image that is not there', { exec: { sandbox: 'container', image: 'missing:1' } }, 'no such image'],
    ['an image that is an option', { exec: { sandbox: 'container', image: '--privileged' } }, 'must be the name'],
  ])('needs an image: %s fails the phase', async (_, settings, words) => {
    const other = await spawnDaemon({ home: homeWith(settings), env })
    try {
      const { state, error } = await runPath(other, looking('@local/a', '/x'))
      expect([state, error?.code]).toEqual(['failed', 'sandbox'])
      expect(error?.message).toContain(words)
    } finally {
      await other.stop()
    }
  })
})

test('the choices are set as other settings are, and a wrong one is refused', async () => {
  const home = folder()
  const set = (key: string, value: string) => command(['settings', 'set', key, value], { home })
  for (const [key, value] of [
    ['exec.sandbox', 'bubblewrap'],
    ['exec.image', 'docker.io/library/debian:stable'],
    ['exec.sandbox_network', '["@acme/*"]'],
    ['packages.sandbox', 'none'],
  ] as const) {
    expect([key, (await set(key, value)).code]).toEqual([key, 0])
  }
  for (const [key, value] of [
    ['exec.sandbox', 'docker'],
    ['exec.image', '--privileged'],
    ['exec.sandbox_network', '["acme"]'],
    ['packages.sandbox', 'true'],
  ] as const) {
    expect([key, (await set(key, value)).code]).toEqual([key, 2])
  }
}, 60_000)
