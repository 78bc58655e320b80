// Commands that try to leave the sandbox which the owner of the machine has chosen, in a real daemon.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { command, files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { hasBubblewrap } from '../support/sandbox.ts'

const KEY = 'the-private-key-of-a-person'
const TOKEN = 'a-token-in-the-environment-of-the-daemon'

/** A person's home with a key, and the daemon's home with settings. */
function machine(settings: object) {
  const person = folder()
  mkdirSync(join(person, '.ssh'))
  writeFileSync(join(person, '.ssh/id'), KEY)
  const home = join(person, '.cadre')
  mkdirSync(home, { mode: 0o700 })
  writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
  return { person, home, env: { HOME: person, CADRE_HOME: home } }
}

interface Way {
  workspace?: string
  env?: Record<string, string>
  needs?: string[]
  name?: string
}

/** Starts a run of one phase with one command. */
async function start(daemon: RunningDaemon, run: string, { workspace, env = {}, needs, name = '@local/a' }: Way = {}) {
  const phase = { name: 'a', agent: 'exec', env, commands: [{ name: 'c', run }], ...(needs && { needs }) }
  const team = {
    name,
    version: '1.0.0',
    outputs: [
      {
        name: 'said',
        type: 'string',
        value: '{{ phases.a.text == "" ? "" : string(phases.a.data.commands[0].stdout) }}',
      },
    ],
    phases: [phase],
  }
  const path = files({ 'team.yml': JSON.stringify(team) })
  const { run_id } = await daemon.call('/v1/runs/start', { path, ...(workspace && { workspace }) })
  return { runId: run_id as string, path }
}

/** What a command says, or the error of its phase. */
async function said(daemon: RunningDaemon, run: string, way: Way = {}) {
  const { runId, path } = await start(daemon, run, way)
  const { state, outputs, error } = await daemon.ended(runId)
  return { state, runId, path, said: String(outputs?.said ?? ''), message: error?.message ?? '', code: error?.code }
}

describe.skipIf(!hasBubblewrap)('a command in bubblewrap', () => {
  const { person, home, env } = machine({ exec: { sandbox: 'bubblewrap', sandbox_network: ['@acme/*'] } })
  let daemon: RunningDaemon

  beforeAll(async () => {
    daemon = await spawnDaemon({ home, env: { ...env, SOME_TOKEN: TOKEN } })
  })
  afterAll(() => daemon.stop())

  test('reads no key of a person, no settings, no file of another run and nothing of the daemon', async () => {
    const other = await said(daemon, 'echo another-run > "$CADRE_OUT/x"')
    const places = [
      join(person, '.ssh/id'),
      join(home, 'settings.yml'),
      join(home, 'daemon.db'),
      join(home, 'token'),
      join(home, 'runs', other.runId, 'files/a/x'),
      '/etc/shadow',
      `/proc/${daemon.pid}/environ`,
      '/root/.bashrc',
    ]
    const { state, said: text } = await said(
      daemon,
      `for each in ${places.join(' ')}; do cat "$each" 2>/dev/null && echo "read $each"; done
       ls -A ~ | sed 's/^/in home: /'
       cat /proc/[0-9]*/environ | tr '\\0' '\\n' | grep -a TOKEN
       find / -xdev -name settings.yml 2>/dev/null
       ls ${home}/runs | wc -l`,
    )
    expect([state, text]).toEqual(['completed', '1\n'])
  })

  test('sees no process outside, and can neither trace nor end one', async () => {
    const { said: text } = await said(
      daemon,
      `ls /proc | grep -c '^[0-9]*$' | sed 's/.*/few/'
       kill -0 ${daemon.pid} 2>/dev/null && echo "signals reach the daemon"
       ls /proc | grep '^[0-9]*$' | while read -r pid; do tr '\\0' ' ' < /proc/$pid/cmdline; echo; done | grep -e 'daemon[.]ts serve' -e 'cadre serve' | grep -v grep | grep -v 'sh -c'
       command -v strace > /dev/null && strace -p ${daemon.pid} -o /dev/null 2>/dev/null && echo "traced"
       grep -E 'CapEff|CapBnd|NoNewPrivs' /proc/self/status`,
    )
    expect(text).toMatch(/^few\nCapEff:\t0{16}\nCapBnd:\t0{16}\nNoNewPrivs:\t1\n$/)
  })

  test('has no network, not even the loopback of the machine', async () => {
    const { said: text } = await said(
      daemon,
      `curl -s --max-time 5 ${daemon.url}/health && echo reached; bash -c 'exec 3<>/dev/tcp/127.0.0.1/${new URL(daemon.url).port}' 2>/dev/null && echo reached
       tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '`,
    )
    expect(text).toBe('lo\n')
  })

  test('has the network when its phase needs it and the owner consents to the team', async () => {
    const reach = `curl -s --max-time 20 -o /dev/null -w '%{http_code}' ${daemon.url}/health`
    const allowed = await said(daemon, reach, { needs: ['network'], name: '@acme/report' })
    expect([allowed.state, allowed.said]).toEqual(['completed', '200'])
    const unasked = await said(daemon, `${reach} || echo none`, { name: '@acme/report' })
    expect(unasked.said).toContain('none')
    const marker = join(folder(), 'began')
    const refused = await said(daemon, `touch ${marker}`, { needs: ['network'], name: '@other/report' })
    expect([refused.state, refused.code]).toEqual(['failed', 'sandbox'])
    expect(refused.message).toContain('sandbox_network: ["@acme/*","@other/report"]')
    expect(existsSync(marker)).toBe(false)
  })

  test('changes nothing but its workspace, the files of its run and its result', async () => {
    const workspace = folder()
    const {
      state,
      said: text,
      runId,
    } = await said(
      daemon,
      `echo here > in-workspace; echo out > "$CADRE_OUT/out"; touch /tmp/private ~/private
       for each in /x /usr/x /etc/x /etc/passwd /var/x /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do
         (: >> "$each") 2>/dev/null && echo "wrote $each"
       done; touch ${home}/x ${home}/runs/x ${person}/.profile "$CADRE_FILES/../x"; true`,
      { workspace },
    )
    expect([state, text]).toEqual(['completed', ''])
    expect(readFileSync(join(workspace, 'in-workspace'), 'utf8')).toBe('here\n')
    expect(readFileSync(join(home, 'runs', runId, 'files/a/out'), 'utf8')).toBe('out\n')
    expect(
      [
        '/tmp/private',
        join(home, 'x'),
        join(home, 'runs/x'),
        join(home, 'runs', runId, 'x'),
        join(person, '.profile'),
      ].filter(existsSync),
    ).toEqual([])
  })

  test('reads the files of an earlier phase, by their absolute paths', async () => {
    const path = files({
      'team.yml': JSON.stringify({
        name: '@local/two',
        version: '1.0.0',
        phases: [
          { name: 'first', agent: 'exec', commands: [{ name: 'c', run: 'echo one > "$CADRE_OUT/x"' }] },
          {
            name: 'second',
            agent: 'exec',
            depends_on: ['first'],
            env: { X: '{{ file(phases.first.files[0].path) }}' },
            commands: [{ name: 'c', run: 'cmp "$X" "$CADRE_FILES/first/x" && cp "$X" "$CADRE_OUT/copy"' }],
          },
        ],
      }),
    })
    const { run_id } = await daemon.call('/v1/runs/start', { path })
    expect((await daemon.ended(run_id)).state).toBe('completed')
    expect(readFileSync(join(home, 'runs', run_id, 'files/second/copy'), 'utf8')).toBe('one\n')
  })

  test('chooses nothing that runs outside by its variables', async () => {
    const workspace = folder()
    const marker = join(workspace, 'outside')
    const script = `#!/bin/sh\n[ -e ${person}/.ssh/id ] && echo outside > ${marker}\nexec /bin/sh "$@"\n`
    for (const name of ['sh', 'bwrap']) writeFileSync(join(workspace, name), script, { mode: 0o755 })
    const variables = {
      PATH: `${workspace}:/usr/bin:/bin`,
      LD_PRELOAD: join(workspace, 'no.so'),
      ENV: join(workspace, 'sh'),
    }
    const { state, said: text } = await said(daemon, 'echo "$PATH"', { workspace, env: variables })
    expect([state, text]).toEqual(['completed', `${workspace}:/usr/bin:/bin\n`])
    expect(existsSync(marker)).toBe(false)
  })

  test('gives no variable away: they stand in no list of processes', async () => {
    const secret = 'value-that-nobody-lists'
    const { runId } = await start(daemon, 'touch "$CADRE_OUT/began"; sleep 30', { env: { VALUE: secret } })
    await until(() => existsSync(join(home, 'runs', runId, 'files/a/began')), 'the command')
    const lines = readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(commandOf)
    expect(lines.filter(line => line.includes(secret))).toEqual([])
    await daemon.call('/v1/runs/cancel', { run_id: runId })
    await daemon.ended(runId)
  })

  test('gets the Bun that runs cadre, which it cannot change', async () => {
    const { said: text } = await said(daemon, '"$CADRE_BUN" -p "1 + 2"; echo x >> "$CADRE_BUN" || echo refused')
    // That of the compiled program is a launcher of this phase alone.
    expect(text).toBe(process.env.CADRE_TEST_PROGRAM ? '3\n' : '3\nrefused\n')
  })

  test('makes the daemon follow no link that it leaves as its result', async () => {
    const secret = files({ 'key.json': '{"key":"of-somebody"}' })
    const { state, message } = await said(daemon, `rm -f "$CADRE_RESULT"; ln -s ${secret}/key.json "$CADRE_RESULT"`)
    expect(state).toBe('failed')
    expect(message).toContain('CADRE_RESULT')
    expect(message).not.toContain('of-somebody')
  })

  test('leaves no process behind, however it ends', async () => {
    const mark = `${Math.round(Math.random() * 1e9) + 1e9}`
    const left = () =>
      readdirSync('/proc').filter(name => /^\d+$/.test(name) && commandOf(name).includes(`sleep\0${mark}`))
    const spread = `setsid sleep ${mark} & (setsid sh -c 'setsid sleep ${mark} & exit' &) ; sleep 0.2; touch "$CADRE_OUT/began"`
    expect((await said(daemon, spread)).state).toBe('completed')
    await until(() => left().length === 0, 'the end of what a command left')

    const { runId } = await start(daemon, `${spread}; trap '' TERM; sleep ${mark}`)
    await until(() => existsSync(join(home, 'runs', runId, 'files/a/began')), 'the command')
    expect(left().length).toBeGreaterThan(0)
    await daemon.call('/v1/runs/cancel', { run_id: runId })
    await daemon.ended(runId)
    await until(() => left().length === 0, 'the end of what was cancelled')
  }, 60_000)

  test('is asked to end before it is killed', async () => {
    const { runId } = await start(daemon, `trap 'echo asked > asked; exit 1' TERM; touch began; sleep 30 & wait`, {
      workspace: folder(),
    })
    const { workspace } = await daemon.call('/v1/runs/get', { run_id: runId })
    await until(() => existsSync(join(workspace, 'began')), 'the command')
    await daemon.call('/v1/runs/cancel', { run_id: runId })
    await daemon.ended(runId)
    expect(readFileSync(join(workspace, 'asked'), 'utf8')).toBe('asked\n')
  })

  describe('and its workspace', () => {
    test.each([
      ['the home of a person', () => person],
      ['a folder above it', () => join(person, '..')],
      ['the root', () => '/'],
      ['a folder of the system', () => '/usr'],
      ['the folder of all runs', () => join(home, 'runs')],
      ['a folder of keys', () => join(person, '.ssh')],
    ])('is not %s, which the phase says', async (_, where) => {
      const { state, code, message } = await said(daemon, 'true', { workspace: where() })
      expect([state, code]).toEqual(['failed', 'sandbox'])
      expect(message).toContain('workspace')
    })

    test('was not replaced by a link to somewhere else', async () => {
      const [outer, target] = [folder(), files({ secret: KEY })]
      const workspace = join(outer, 'inner')
      mkdirSync(workspace)
      await daemon.call('/v1/workspaces/add', { path: workspace, name: 'swapped' })
      const swap = await said(daemon, `rmdir inner && ln -s ${target} inner`, { workspace: outer })
      expect(swap.state).toBe('completed')
      await expect(start(daemon, 'cat secret', { workspace: 'swapped' })).rejects.toThrow('was replaced by a link')
    })
  })
})

describe.skipIf(!hasBubblewrap)('the home of the daemon in the workspace', () => {
  test('is hidden, and cannot be uncovered by moving what is around it', async () => {
    const workspace = folder()
    const home = join(workspace, 'a/b/home')
    mkdirSync(home, { recursive: true, mode: 0o700 })
    writeFileSync(join(home, 'settings.yml'), JSON.stringify({ exec: { sandbox: 'bubblewrap' }, secrets: { s: KEY } }))
    const daemon = await spawnDaemon({ home, env: { HOME: folder(), CADRE_HOME: home } })
    try {
      const first = await said(
        daemon,
        `ls a/b/home | grep -v '^runs$'; mv a/b/home moved; mv a/b moved; mv a moved; mv ../${workspace.split('/').at(-1)} ../moved; rm -rf a/b; find . -name settings.yml; echo done > done`,
        { workspace },
      )
      expect([first.state, first.said]).toEqual(['completed', ''])
      expect(existsSync(join(workspace, 'done'))).toBe(true)
      expect(existsSync(join(home, 'settings.yml'))).toBe(true)
      const second = await said(daemon, `find . -name settings.yml; cat a/b/home/runs/*/files/*/* 2>/dev/null; true`, {
        workspace,
      })
      expect([second.state, second.said]).toEqual(['completed', ''])
      const inside = await said(daemon, 'ls -A | grep -v "^runs$"; echo x > x || true', { workspace: home })
      expect([inside.state, inside.said, existsSync(join(home, 'x'))]).toEqual(['completed', '', false])
    } finally {
      await daemon.stop()
    }
  })
})

describe.skipIf(!hasBubblewrap)('files that are given', () => {
  const { person, home, env } = machine({ exec: { sandbox: 'bubblewrap' } })
  let daemon: RunningDaemon

  beforeAll(async () => {
    daemon = await spawnDaemon({ home, env })
  })
  afterAll(() => daemon.stop())

  const team = (inputs: object, more: object = {}) => ({
    name: '@local/f',
    version: '1.0.0',
    inputs: [{ name: 'f', type: 'file', required: true, ...inputs }],
    outputs: [{ name: 'said', type: 'string', value: '{{ phases.a.data.commands[0].stdout }}' }],
    phases: [
      {
        name: 'a',
        agent: 'exec',
        env: { F: '{{ inputs.f }}' },
        commands: [{ name: 'c', run: 'cat "$F"; (: >> "$F") 2>/dev/null && echo written; true' }],
      },
    ],
    ...more,
  })
  const run = async (contents: Record<string, object>, inputs: object) => {
    const path = files(Object.fromEntries(Object.entries(contents).map(([name, text]) => [name, JSON.stringify(text)])))
    const { run_id } = await daemon.call('/v1/runs/start', { path, inputs })
    return daemon.ended(run_id)
  }

  test('one that a person names is read, wherever it lies, and not written', async () => {
    const path = join(files({ 'data.txt': 'data\n' }), 'data.txt')
    const { state, outputs } = await run({ 'team.yml': team({}) }, { f: path })
    expect([state, outputs?.said]).toEqual(['completed', 'data\n'])
  })

  test('one of a run above is read by its sub-runs', async () => {
    const above = {
      name: '@local/above',
      version: '1.0.0',
      outputs: [{ name: 'said', type: 'string', value: '{{ phases.down.data.said }}' }],
      phases: [
        { name: 'make', agent: 'exec', commands: [{ name: 'c', run: 'echo made > "$CADRE_OUT/x"' }] },
        { name: 'down', type: 'team', depends_on: ['make'], team: './below', inputs: { f: 'files/make/x' } },
      ],
    }
    const { state, outputs } = await run({ 'team.yml': above, 'below/team.yml': team({}) }, {})
    expect([state, outputs?.said]).toEqual(['completed', 'made\n'])
  })

  test.each([
    ['a key of the person', () => join(person, '.ssh/id')],
    ['the settings', () => join(home, 'settings.yml')],
  ])('%s is never shown, not even if the person names it', async (_, where) => {
    const { state, error } = await run({ 'team.yml': team({}) }, { f: where() })
    expect([state, error?.code]).toEqual(['failed', 'sandbox'])
  })

  test('one whose place in the workspace another phase gave to a link is not shown', async () => {
    const victim = join(files({ 'victim.txt': KEY }), 'victim.txt')
    const workspace = files({ 'data.csv': 'data\n' })
    const [a] = team({}).phases
    const swap = { name: 'swap', agent: 'exec', commands: [{ name: 'c', run: `ln -sf ${victim} data.csv` }] }
    const swapped = team({}, { phases: [swap, { ...a, depends_on: ['swap'] }] })
    for (const f of ['data.csv', join(workspace, 'data.csv')]) {
      writeFileSync(join(workspace, 'plain'), 'data\n')
      renameSync(join(workspace, 'plain'), join(workspace, 'data.csv'))
      const path = files({ 'team.yml': JSON.stringify(swapped) })
      const { run_id } = await daemon.call('/v1/runs/start', { path, workspace, inputs: { f } })
      const { state, error } = await daemon.ended(run_id)
      expect([f, state, error?.code]).toEqual([f, 'failed', 'sandbox'])
      expect(error?.message).toContain(`now leads to ${victim}`)
    }
  })

  test('one that a link led to when the run began is shown, and not what the link leads to later', async () => {
    const [data, victim] = [files({ 'data.txt': 'data\n' }), files({ 'victim.txt': KEY })]
    const workspace = folder()
    symlinkSync(join(data, 'data.txt'), join(workspace, 'data.csv'))
    const [a] = team({}).phases
    const swap = {
      name: 'swap',
      agent: 'exec',
      commands: [{ name: 'c', run: `ln -sf ${victim}/victim.txt data.csv` }],
    }
    const path = files({ 'team.yml': JSON.stringify(team({}, { phases: [swap, { ...a, depends_on: ['swap'] }] })) })
    const { run_id } = await daemon.call('/v1/runs/start', { path, workspace, inputs: { f: 'data.csv' } })
    const { state, outputs } = await daemon.ended(run_id)
    expect([state, outputs?.said]).toEqual(['completed', 'data\n'])
  })

  test('one that only the team names is not shown', async () => {
    const path = join(files({ 'data.txt': 'data\n' }), 'data.txt')
    const byDefault = await run({ 'team.yml': team({ required: false, default: path }) }, {})
    expect([byDefault.state, byDefault.error?.code]).toEqual(['failed', 'sandbox'])
    const above = {
      name: '@local/above',
      version: '1.0.0',
      phases: [{ name: 'down', type: 'team', team: './below', inputs: { f: path } }],
    }
    expect((await run({ 'team.yml': above, 'below/team.yml': team({}) }, {})).state).toBe('failed')
  })
})

describe.skipIf(!hasBubblewrap)('after a kill of the daemon', () => {
  test('nothing of its commands goes on', async () => {
    const { home, env } = machine({ exec: { sandbox: 'bubblewrap' } })
    const mark = `${Math.round(Math.random() * 1e9) + 2e9}`
    const left = () =>
      readdirSync('/proc').filter(name => /^\d+$/.test(name) && commandOf(name).includes(`sleep\0${mark}`))
    const daemon = await spawnDaemon({ home, env })
    await start(daemon, `setsid sleep ${mark} & sleep ${mark}`)
    await until(() => left().length === 2, 'both processes')
    await daemon.kill('SIGKILL')
    await until(() => left().length === 0, 'their end')
  })
})

describe('a sandbox that cannot be had', () => {
  const empty = folder()
  for (const name of ['sh', 'git', 'id', 'cat', 'bun']) {
    const program = Bun.which(name)
    if (program) symlinkSync(program, join(empty, name))
  }

  test('fails the phase that it was asked for, and the doctor says why', async () => {
    const { home, env } = machine({ exec: { sandbox: 'bubblewrap' } })
    const daemon = await spawnDaemon({ home, env: { ...env, PATH: empty } })
    try {
      const { state, code, message } = await said(daemon, 'true')
      expect([state, code]).toEqual(['failed', 'sandbox'])
      expect(message).toContain('bwrap was not found in PATH')
      await until(() => daemon.output.stderr.includes('bwrap was not found'), 'a warning at the start')
      const { stdout, code: exit } = await command(['doctor'], { home, env: { ...env, PATH: empty } })
      expect(stdout).toMatch(/✗ exec\.sandbox .*bwrap was not found in PATH/)
      expect(exit).toBe(1)
    } finally {
      await daemon.stop()
    }
  })

  test.each([
    ['a misspelt kind', { exec: { sandbox: 'bublewrap' } }],
    ['a reference', { exec: { sandbox: '${env:SANDBOX}' } }],
    ['a misspelt name', { exec: { sandbocks: 'bubblewrap' } }],
    ['no mapping', { exec: 'bubblewrap' }],
  ])('%s is no choice of none', async (_, settings) => {
    const { home, env } = machine(settings)
    const daemon = await spawnDaemon({ home, env })
    try {
      const { state, code, message } = await said(daemon, 'true')
      expect([state, code]).toEqual(['failed', 'sandbox'])
      expect(message).toContain('in settings.yml')
    } finally {
      await daemon.stop()
    }
  })
})

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}
