// A start reads only what its first run uses: the agents that a team names, and neither TypeBox's validator nor the HTTP
// server. Each would take longer to load than a small run takes. What it reads is compiled once for all starts.

import { expect, test } from 'bun:test'
import { join, relative } from 'node:path'
import { files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'

const REPOSITORY = join(import.meta.dir, '../..')

/** What no start needs: code of vendors, of the hub and of requests, and the checks of TypeBox. */
const UNUSED =
  /^lib\/(vendors\/|daemon\/link\/(?!outbox\/|link-daemon\.)|agent\/(fetch|net\/guard)\.|wire\/(calls|records)\/hub-)|\/typebox\/build\/schema\//

const TEAM = `name: "@local/small"
version: 1.0.0
phases:
  - { name: say, agent: exec, commands: [{ name: hello, run: "echo hello" }] }
`

test('a run of one command loads the agent exec alone', () => {
  const program = `
    const { Daemon } = await import('./lib/daemon/runs/daemon.ts')
    const { startRun } = await import('./lib/daemon/runs/start-run.ts')
    const log = { debug() {}, info() {}, warn() {}, error() {}, follow() {} }
    const daemon = await Daemon.open({ home: ${JSON.stringify(folder())}, log, command: 'run', env: {} })
    await daemon.openRuns.recover({ none: true })
    const { run_id } = await startRun(daemon, { path: ${JSON.stringify(files({ 'team.yml': TEAM }))} }, { local: true, actor: 'test' })
    const { state, error } = await daemon.engine.ended(run_id)
    await daemon.close()
    console.log(JSON.stringify({ state, error, loaded: Object.keys(require.cache) }))`
  const { stdout, stderr } = Bun.spawnSync([process.execPath, '-e', program], { cwd: REPOSITORY })
  expect(stderr.toString()).toBe('')
  const { state, loaded } = JSON.parse(stdout.toString())
  expect(state).toBe('completed')
  const paths = loaded.map((file: string) => relative(REPOSITORY, file))
  expect(paths.filter((path: string) => path.startsWith('agents/'))).toEqual(['agents/exec.ts'])
  expect(paths.filter((path: string) => UNUSED.test(path) || path.includes('/elysia/'))).toEqual([])
})

test('what serves a home without a hub loads neither the link, the guarded fetch nor the doctor', () => {
  const program = `
    await import('./lib/daemon/cli/machine/serve.ts')
    await import('./lib/daemon/routes/app.ts')
    console.log(JSON.stringify(Object.keys(require.cache)))`
  const { stdout } = Bun.spawnSync([process.execPath, '-e', program], { cwd: REPOSITORY })
  const paths: string[] = JSON.parse(stdout.toString()).map((file: string) => relative(REPOSITORY, file))
  expect(paths).toContain('lib/daemon/routes/runs.ts')
  expect(paths.filter(path => UNUSED.test(path) || path === 'lib/daemon/runs/agent-checks.ts')).toEqual([])
})

test('`run` loads neither calls nor the records in their replies', () => {
  const program = `
    await import('./lib/daemon/cli/runs/run.ts')
    await import('./lib/daemon/cli/backend/command-host.ts')
    console.log(JSON.stringify(Object.keys(require.cache)))`
  const { stdout } = Bun.spawnSync([process.execPath, '-e', program], { cwd: REPOSITORY })
  const paths: string[] = JSON.parse(stdout.toString()).map((file: string) => relative(REPOSITORY, file))
  expect(paths).toContain('lib/daemon/runs/daemon.ts')
  const records = /^lib\/wire\/(calls\/|records\/(run-records|review-records|resume-plan|changes|plans)\.)/
  expect(paths.filter(path => UNUSED.test(path) || records.test(path))).toEqual([])
})

test('a command that is called by its name loads no command about a hub', () => {
  const program = `
    process.argv = ['bun', 'daemon.ts', '--home', '/nowhere', 'run', '--help']
    process.on('exit', () => console.log(JSON.stringify(Object.keys(require.cache))))
    await import('./daemon.ts')`
  const { stdout } = Bun.spawnSync([process.execPath, '-e', program], { cwd: REPOSITORY })
  const [help, paths] = stdout.toString().split(/\n(?=\[)/)
  expect(help).toContain('run a team: a folder, a team.yml, or @scope/name')
  const loaded = JSON.parse(paths!).map((file: string) => relative(REPOSITORY, file))
  expect(loaded).toContain('lib/daemon/cli/program.ts')
  expect(loaded.filter((path: string) => path.startsWith('lib/daemon/cli/hub/'))).toEqual([])
})

test('the second start compiles no module that the first has compiled', () => {
  // Bun prints which modules it did not have to compile.
  const env = { ...process.env, BUN_JSC_reportBytecodeCacheDecodeTimes: '1' }
  const start = () =>
    Bun.spawnSync([process.execPath, join(REPOSITORY, 'daemon.ts'), '--version'], { cwd: folder(), env })
  const decoded = ({ stdout, stderr }: ReturnType<typeof start>) =>
    Array.from(`${stdout}${stderr}`.matchAll(/decoded (\S+) \(/g), ([, file]) => relative(REPOSITORY, file!))
  start()
  const kept = decoded(start())
  expect(kept).toContain('lib/daemon/cli/program.ts')
  expect(kept).toContain('node_modules/commander/lib/command.js')
})
