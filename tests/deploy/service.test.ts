// `cadre service`: what it writes, what it tells systemd, and that systemd understands the files. A program in place of
// `systemctl` notes what it is told, because systemd itself does not run everywhere.

import { beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MOST_DRAIN_SECONDS } from '../../lib/http/listen.ts'
import { folder } from '../support/folder.ts'
import { machine } from '../support/machine.ts'

const REPOSITORY = join(import.meta.dir, '../..')
const CADRE = join(REPOSITORY, 'deploy/cadre')

describe.if(process.platform === 'linux')('with systemd', () => {
  const on = machine()
  const told = join(folder(), 'told')
  const user = join(on.home, '.config/systemd/user')
  const cadre = (...args: string[]) => on.run([CADRE, ...args], { cwd: on.home })
  const toldLines = () => readFileSync(told, 'utf8').trimEnd().split('\n')

  beforeAll(() => {
    const text = `#!/bin/sh\necho "$*" >> '${told}'\ncase $* in *status*) exit 3 ;; esac\n`
    writeFileSync(join(on.bin, 'systemctl'), text, { mode: 0o755 })
  })

  test('install writes the unit of this cadre, and starts it', async () => {
    const { code, stdout, stderr } = await cadre('service', 'install')
    const file = join(user, 'cadre-daemon.service')
    expect([code, stdout]).toEqual([0, `${file}\n`])
    expect(stderr).toContain(`belong in ${on.home}/.config/cadre/daemon.env`)
    expect(stderr).toContain('journalctl --user --unit cadre-daemon --follow')
    const unit = readFileSync(file, 'utf8')
    expect(unit).toContain(`\nExecStart=${CADRE} serve\n`)
    expect(unit).toContain(`\nEnvironment="PATH=${on.bin}"\n`)
    expect(toldLines()).toEqual(['--user daemon-reload', '--user enable cadre-daemon', '--user restart cadre-daemon'])
  })

  test('the unit has the home of the shell', async () => {
    const other = join(on.home, 'other "home"')
    const line = `\nEnvironment="CADRE_HOME=${on.home}/other \\"home\\""\n`
    const textOf = async (env: Record<string, string>, ...args: string[]) =>
      (await on.run([CADRE, 'service', 'print', ...args], { cwd: on.home, env })).stdout
    expect(await textOf({ CADRE_HOME: other })).toContain(line)
    expect(await textOf({ CADRE_HOME: other }, 'hub')).toContain(line)
    expect(await textOf({}, '--home', other)).toContain(line)
    expect(await textOf({})).not.toContain('CADRE_HOME')
    const refused = await cadre('service', 'print', '--system', '--home', other)
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('leave out --home') })
  })

  test('status passes on what systemd says, and remove leaves the state alone', async () => {
    const state = join(on.home, '.cadre/kept')
    mkdirSync(join(on.home, '.cadre'))
    writeFileSync(state, '')
    expect(await cadre('service', 'status')).toMatchObject({ code: 1 })
    expect(toldLines().at(-1)).toBe('--user --no-pager status cadre-daemon')
    expect(await cadre('service', 'remove')).toMatchObject({ code: 0 })
    expect([existsSync(join(user, 'cadre-daemon.service')), existsSync(state)]).toEqual([false, true])
    expect(toldLines().slice(-2)).toEqual(['--user disable --now cadre-daemon', '--user daemon-reload'])
    const none = await cadre('service', 'status', 'hub')
    expect(none).toMatchObject({ code: 1, stderr: expect.stringContaining(`${CADRE} service install hub`) })
    expect(await cadre('service', 'remove')).toMatchObject({ code: 2, stderr: expect.stringContaining('there is no') })
  })

  test('what fails says how to go on', async () => {
    const elsewhere = { ...process.env, HOME: on.home, PATH: '/nowhere' }
    const child = Bun.spawnSync([process.execPath, join(REPOSITORY, 'daemon.ts'), 'service', 'install', 'hub'], {
      env: elsewhere,
      cwd: on.home,
    })
    expect(child.stderr.toString()).toContain(
      'because systemctl is not on PATH: keep `bun hub.ts serve` running in another way; --no-start only writes the file',
    )
    const wrong = await cadre('service', 'install', 'deamon')
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean `daemon`') })
    const inside = await on.run([CADRE, 'service', 'install'], { env: { CADRE_CONTAINER: '1' }, cwd: on.home })
    expect(inside).toMatchObject({ code: 2, stderr: expect.stringContaining('this is a container') })
  })

  test('where no systemd answers, install says what to do, and remove removes', async () => {
    const deaf = folder()
    writeFileSync(join(deaf, 'systemctl'), '#!/bin/sh\necho "Failed to connect to bus" >&2\nexit 1\n', { mode: 0o755 })
    const call = (verb: string) =>
      on.run([CADRE, 'service', verb], { cwd: on.home, env: { PATH: `${deaf}:${on.bin}` } })
    const installed = await call('install')
    expect(installed.code).not.toBe(0)
    expect(installed.stderr).toContain('because no systemd answers for your user here, as in a container')
    expect(installed.stderr).toContain(`keep \`${CADRE} serve\` running in another way`)
    expect(existsSync(join(user, 'cadre-daemon.service'))).toBe(true)
    expect(await call('remove')).toMatchObject({ code: 0, stderr: expect.stringContaining('nothing was stopped') })
    expect(existsSync(join(user, 'cadre-daemon.service'))).toBe(false)
  })

  test.if(Bun.which('systemd-analyze') !== null)('systemd understands all units, with odd paths too', async () => {
    // A clone in a home is refused as a service of the system, so the files of those are taken as they are.
    const textOf = async (served: string, scope: string) => {
      const env = { PATH: `${on.bin}:/opt/a b%c"d` }
      if (scope === '--user') return (await on.run([CADRE, 'service', 'print', served], { env, cwd: on.home })).stdout
      const file = join(REPOSITORY, `deploy/systemd/cadre-${served}.service`)
      return readFileSync(file, 'utf8').replace('/usr/local/bin/cadre', process.execPath)
    }
    for (const served of ['daemon', 'hub']) {
      for (const scope of ['--system', '--user']) {
        const file = join(folder(), `cadre-${served}.service`)
        writeFileSync(file, await textOf(served, scope))
        const verified = Bun.spawnSync(['systemd-analyze', scope, '--man=no', 'verify', file], {
          env: { PATH: process.env.PATH!, HOME: on.home, XDG_RUNTIME_DIR: folder() },
        })
        expect([file, verified.exitCode, verified.stderr.toString()]).toEqual([file, 0, ''])
      }
    }
  })
})

test('a service that stops a server by force gives it the longest drain and 15 seconds', () => {
  const textOf = (file: string) => readFileSync(join(REPOSITORY, 'deploy', file), 'utf8')
  const given = (file: string, pattern: RegExp) => [
    file,
    ...Array.from(textOf(file).matchAll(pattern), found => found[1]),
  ]
  const expected = `${MOST_DRAIN_SECONDS + 15}`
  for (const served of ['daemon', 'hub']) {
    for (const folder of ['systemd', 'systemd/user']) {
      const unit = `${folder}/cadre-${served}.service`
      expect(given(unit, /^TimeoutStopSec=(.+)$/gm)).toEqual([unit, expected])
    }
    const plist = `launchd/cadre-${served}.plist`
    expect(given(plist, /<key>ExitTimeOut<\/key>\s*<integer>(.+?)<\/integer>/g)).toEqual([plist, expected])
  }
})

test('the plists are XML, and start what the units start', () => {
  for (const [served, words] of [
    ['daemon', ['serve']],
    ['hub', ['hub', 'serve']],
  ] as const) {
    const text = readFileSync(join(REPOSITORY, `deploy/launchd/cadre-${served}.plist`), 'utf8')
    const list = /<array>(.*?)<\/array>/s.exec(text)![1]!
    expect([...list.matchAll(/<string>(.*?)<\/string>/g)].map(([, word]) => word)).toEqual([
      '/usr/local/bin/cadre',
      ...words,
    ])
  }
})
