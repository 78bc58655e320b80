// What an installed cadre must be able to do, whichever way it was installed, on a machine with nothing else of ours and in
// a folder of which nothing may run.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import type { Machine } from '../support/machine.ts'

const LONG_MS = 120_000
const PASSWORD = 'correct horse battery'

const HELLO = `name: "@local/hello"
version: 1.0.0
phases:
  - { name: say, agent: exec, commands: [{ name: hello, run: "echo hello" }] }
`

/** A dropped-in agent with a helper beside it and a package of cadre. */
const STOCK = {
  'stock.ts': `import { agent, entryOf, Type } from 'cadre'
import { parse } from 'yaml'
import { double } from './shared/double.ts'
export default agent({
  type: 'connector', version: '1.0.0', description: 'Levels.',
  source: {
    effect: 'read', description: 'Writes twice a level.', entry: entryOf({ ref: Type.String({ description: 'YAML.' }) }),
    async run({ name, ref }, context) {
      const level: number = double(parse(ref).level)
      await context.write(name, { level })
      return { text: \`level \${level}\`, data: { level } }
    },
  },
})
`,
  'shared/double.ts': 'export const double = (number: number): number => 2 * number\n',
}

/** \`cadre\` is the command; \`examples\` the folder with the examples. \`called\` is how hints must name it. */
export function journey(
  on: Machine,
  { cadre, called, examples }: { cadre: string; called: string; examples: string },
): void {
  const home = join(on.home, '.cadre')
  const run = (...args: string[]) => on.run([cadre, ...args])

  test(
    'the first example of the README runs, and its hint can be pasted',
    async () => {
      const { code, stdout, stderr } = await run(
        'run',
        join(examples, 'repo-report'),
        '-i',
        `folder=${files({ 'a.txt': 'one\ntwo\n' })}`,
      )
      expect([code, stdout]).toEqual([0, expect.stringMatching(/^report +\S+report\.md\nfiles +1\nlines +2\n/)])
      expect(stderr).toEndWith(`\n  ${called} show ${/[0-9a-f-]{36}$/.exec(stderr.trim())![0]}\n`)
      const report = /^report +(\S+)/.exec(stdout)![1]!
      expect(report).toStartWith(`${home}/`)
      expect(readFileSync(report, 'utf8')).toContain('1 files, 2 lines')
    },
    LONG_MS,
  )

  test(
    'a team is written, from a small start and from an example',
    async () => {
      const team = join(on.home, 'my-team')
      const made = await run('init', team, '--from', 'map')
      expect([made.code, made.stderr]).toEqual([0, expect.stringContaining(`${called} run ${team}\n`)])
      expect(await run('run', team)).toMatchObject({ code: 0, stdout: expect.stringContaining('completed  2\n') })
      expect((await run('examples')).stdout).toContain('ticket-digest ')
      const copy = join(on.home, 'tickets')
      expect((await run('examples', 'ticket-digest', copy)).stdout).toContain(`${copy}/ticket/team.yml\n`)
      expect(await run('validate', copy)).toMatchObject({ code: 0 })
    },
    LONG_MS,
  )

  test(
    'an agent is written, and dropped-in ones find cadre, its packages and the files beside them',
    async () => {
      const made = await run('agent', 'new', 'ledger')
      expect([made.code, made.stdout]).toEqual([0, `${home}/agents/ledger.ts\n${home}/tests/ledger.test.ts\n`])
      const copied = await run('agent', 'new', 'fetcher', '--from', 'http')
      expect([copied.code, existsSync(join(home, 'agents/fetcher.ts'))]).toEqual([0, true])
      for (const [name, text] of Object.entries(STOCK)) {
        mkdirSync(join(home, 'agents/shared'), { recursive: true })
        writeFileSync(join(home, 'agents', name), text)
      }
      const listed = await run('agents')
      expect(listed).toMatchObject({ code: 0, stderr: '' })
      const names = listed.stdout.split('\n').map(line => line.split(' ')[0])
      expect(names).toEqual(expect.arrayContaining(['exec', 'fetcher', 'ledger', 'stock', 'wiki']))

      const phases = `phases:
  - { name: level, agent: stock, sources: [{ name: level.json, ref: "level: 21" }] }
  - { name: rows, agent: database, action: query, sources: [{ name: rows.json, sql: SELECT count(*) AS n FROM t }] }
outputs:
  - { name: level, type: number, value: "{{ phases.level.data.level }}" }
  - { name: n, type: number, value: "{{ phases.rows.data.items[0].n }}" }
`
      const database = join(folder(), 'things.db')
      using things = new Database(database)
      things.run('CREATE TABLE t (a)')
      things.run('INSERT INTO t VALUES (1), (2), (3)')
      for (const [key, value] of [
        ['provider', 'sqlite'],
        ['database', database],
      ]) {
        expect((await run('settings', 'set', `agents.database.${key}`, value!)).stderr).toBe('')
      }
      const team = files({ 'team.yml': `name: "@local/levels"\nversion: 1.0.0\n${phases}` })
      const ran = await run('run', team, '--json')
      expect([ran.stderr, JSON.parse(ran.stdout)]).toEqual([
        expect.any(String),
        expect.objectContaining({ outputs: { level: 42, n: 3 } }),
      ])
    },
    LONG_MS,
  )

  test(
    'what a command was asked to print is all that it prints',
    async () => {
      const team = files({
        'team.yml': `name: "@local/asks"
version: 1.0.0
phases: [{ name: ask, type: gate, review: { prompt: Go on?, inputs: [{ name: answer, type: string }] } }]
outputs: [{ name: said, type: string, value: "{{ phases.ask.data.answer }}" }]
`,
      })
      expect((await run('run', team)).code).toBe(3)
      const { reviews } = JSON.parse((await run('reviews', '--json')).stdout)
      const decided = await run('decide', reviews[0].id, 'approve', '--values', '{"answer":"yes"}')
      expect([decided.code, decided.stdout]).toEqual([0, 'said  yes\n'])
    },
    LONG_MS,
  )

  test(
    'a hub, a daemon that enrols in it, a published package, and a run that is dispatched',
    async () => {
      const hub = await on.serve([cadre, 'hub', 'serve', '--port', '0'], /^hub listening on (\S+)\n/, {
        CADRE_ADMIN_PASSWORD: PASSWORD,
      })
      const env = { CADRE_HUB_URL: hub.found }
      const must = async (args: string[], stdin = '') => {
        const { code, stdout, stderr } = await on.run([cadre, ...args], { stdin, env })
        if (code !== 0) throw new Error(`cadre ${args.join(' ')} ended with ${code}: ${stderr}`)
        return stdout
      }
      await must(['login', 'admin'], `${PASSWORD}\n`)
      await must(['enrol'], await must(['realm-token', 'admin']))
      const daemon = await on.serve([cadre, 'serve', '--port', '0'], /^daemon listening on (\S+)\n/)

      // The package is checked in a thread of the hub, and the daemon's heartbeats come from one of its own.
      await must(['publish', files({ 'team.yml': HELLO }), '--scope', 'admin', '--realm', 'admin'])
      const sent = JSON.parse(await must(['dispatch', '@admin/hello', '--realm', 'admin', '--json']))
      const ended = await until(
        async () => {
          const run = JSON.parse(await must(['show', sent.run_id, '--json']).catch(() => '{}'))
          return run.state === 'completed' && run
        },
        'the dispatched run',
        LONG_MS / 2,
      )
      expect(ended).toMatchObject({ team: '@admin/hello' })
      expect(await must(['tree', sent.run_id, '--hub'])).toContain('@admin/hello')
      expect(await must(['hub', 'user', 'list'])).toContain('admin')

      for (const { found } of [daemon, hub]) {
        const page = await fetch(found)
        const [script] = /\/web\/[^"]+\.js/.exec(await page.text())!
        const reply = await fetch(found + script)
        expect([reply.status, reply.headers.get('content-type')]).toEqual([200, expect.stringContaining('javascript')])
        const text = await reply.text()
        expect(['writeFileSync', 'bun daemon.ts'].filter(each => text.includes(each))).toEqual([])
        // Each server has its own pages.
        expect(text.includes('/session')).toBe(found === hub.found)
      }

      for (const { child } of [daemon, hub]) {
        child.kill('SIGTERM')
        expect(await child.exited).toBe(0)
      }
    },
    LONG_MS,
  )

  test(
    'help and mistakes name the command as it was called',
    async () => {
      expect((await run('--help')).stdout).toStartWith(`Usage: ${called} [options]`)
      expect((await run('hub', '--help')).stdout).toStartWith(`Usage: ${called} hub [options]`)
      expect(await run('hub', 'serf')).toMatchObject({ code: 2 })
      expect(await run('frobnicate')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining("unknown command 'frobnicate'"),
      })
    },
    LONG_MS,
  )

  test('nothing of the folder ran, and nothing was read from it', () => {
    expect(on.ran()).toEqual([])
    expect(readFileSync(join(home, 'settings.yml'), 'utf8')).not.toContain('127.0.0.1:9\n')
  })
}
