// Commands in a sandbox that lead the agents beside them out of it: an agent of the same run works outside, with paths
// in folders that the commands may change. The hub here is hostile, the daemon a real process.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { files, type RunningDaemon, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type HostileHub, jobOf, runOrder, startHostileHub } from '../support/hostile-hub.ts'
import { hasBubblewrap } from '../support/sandbox.ts'

const SECRET = 'the-private-key-of-a-person'

describe.skipIf(!hasBubblewrap)('an agent beside a command in a sandbox', () => {
  let hub: HostileHub
  let daemon: RunningDaemon
  let server: ReturnType<typeof Bun.serve>
  let reply: (request: Request) => Response | Promise<Response>
  let workspace: string
  /** A folder of a person, outside of everything that a run may see. */
  let person: string

  beforeAll(async () => {
    hub = startHostileHub()
    server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 0, fetch: request => reply(request) })
    const home = folder()
    const settings = { packages: { sandbox: 'bubblewrap' }, network: { allow: ['127.0.0.1'] } }
    writeFileSync(join(home, 'settings.yml'), JSON.stringify(settings), { mode: 0o600 })
    workspace = folder()
    person = folder()
    daemon = await spawnDaemon({ home, env: hub.env })
    await daemon.call('/v1/workspaces/add', { path: workspace, name: 'ws', offer: true })
  })
  afterAll(async () => {
    await daemon.stop()
    await hub.stop()
    await server.stop(true)
  })

  let published = 0
  async function dispatched(phases: object[]) {
    const name = `@acme/beside${++published}`
    const team = JSON.stringify({ name, version: '1.0.0', phases })
    const job = jobOf('run', runOrder(hub.publish(name, team), { inputs: {}, workspace: 'ws' }))
    hub.deliver(job)
    const { status, error } = await hub.outcome(job.job_id)
    if (status === 'failed') throw new Error(error)
    await daemon.ended(job.run_id)
    const ended = await daemon.envelope('/v1/runs/phases', 'run_phases', { run_id: job.run_id })
    return ended.phases as { name: string; state: string }[]
  }

  test('writes its file nowhere else, whatever the command makes of the folder in the meantime', async () => {
    const body = Promise.withResolvers<void>()
    reply = ({ url }) => {
      if (url.endsWith('/swapped')) body.resolve()
      const wait = Promise.race([body.promise, Bun.sleep(10_000)])
      return url.endsWith('/swapped')
        ? new Response('')
        : new Response(
            new ReadableStream({
              async start(controller) {
                controller.enqueue(new TextEncoder().encode('written '))
                await wait
                controller.enqueue(new TextEncoder().encode('outside'))
                controller.close()
              },
            }),
          )
    }
    const { origin } = server.url
    const swap = `i=0; while [ $i -lt 50 ] && ! [ -d "$CADRE_FILES/page" ]; do sleep 0.1; i=$((i+1)); done
      mv "$CADRE_FILES/page" "$CADRE_FILES/moved"; ln -s ${person} "$CADRE_FILES/page"; touch swapped; true`
    const phases = await dispatched([
      { name: 'page', agent: 'http', sources: [{ name: 'authorized_keys', url: `${origin}/slow` }] },
      { name: 'swap', agent: 'exec', commands: [{ name: 'c', run: swap }] },
      { name: 'tell', agent: 'http', depends_on: ['swap'], sources: [{ name: 'x', url: `${origin}/swapped` }] },
    ])
    expect(existsSync(join(workspace, 'swapped'))).toBe(true)
    expect(readdirSync(person)).toEqual([])
    expect(phases.find(({ name }) => name === 'page')).toMatchObject({
      state: 'failed',
      error: { code: 'invalid_name', message: expect.stringContaining('files/page must be a plain folder') },
    })
  })

  test('sends no other file than the one that it was given, however often it sends it', async () => {
    writeFileSync(join(person, 'a'), SECRET)
    mkdirSync(join(workspace, 'docs'))
    writeFileSync(join(workspace, 'docs/a'), 'harmless')
    const sent: string[] = []
    reply = async request => {
      if (sent.push(await request.text()) > 1) return new Response('')
      writeFileSync(join(workspace, 'now'), '')
      await until(() => existsSync(join(workspace, 'swapped-docs')), 'the link')
      return new Response('', { status: 503, headers: { 'retry-after': '1' } })
    }
    const swap = `i=0; while [ $i -lt 100 ] && ! [ -e now ]; do sleep 0.1; i=$((i+1)); done
      mv docs moved; ln -s ${person} docs; touch swapped-docs`
    await dispatched([
      {
        name: 'send',
        agent: 'http',
        target_entries: [{ name: 'x', url: server.url.href, method: 'PUT', file: 'docs/a' }],
      },
      { name: 'swap', agent: 'exec', commands: [{ name: 'c', run: swap }] },
    ])
    expect(existsSync(join(workspace, 'swapped-docs'))).toBe(true)
    expect(new Set(sent)).toEqual(new Set(['harmless']))
  })
  test('a download has no other file, whatever the command makes of its folder in the meantime', async () => {
    writeFileSync(join(person, 'x'), SECRET)
    const swap = `cd "$CADRE_OUT"; mkdir d; echo harmless > d/x
      while ! [ -e "$OLDPWD/enough" ]; do mv d e; ln -s ${person} d; rm d; mv e d; done`
    const ended = dispatched([{ name: 'swap', agent: 'exec', commands: [{ name: 'c', run: swap }] }])
    const { runs } = await until(async () => {
      const list = await daemon.call('/v1/runs/list', { state: 'running' })
      return list.runs.length > 0 && list
    }, 'the run')
    const said = new Set<string>()
    const query = new URLSearchParams({ run_id: runs[0].run_id, path: 'files/swap/d/x' })
    for (let asked = 0; asked < 4_000; asked++) {
      said.add(await (await fetch(`${daemon.url}/v1/artifacts/get?${query}`)).text())
    }
    writeFileSync(join(workspace, 'enough'), '')
    await ended
    expect([...said].some(text => text === 'harmless\n')).toBe(true)
    expect([...said].some(text => text.includes(SECRET))).toBe(false)
  }, 60_000)
})

test.skipIf(!hasBubblewrap)(
  'a workspace in another one is no other folder, however often a command swaps it',
  async () => {
    const person = files({ '.ssh/id': SECRET })
    const home = join(person, '.cadre')
    mkdirSync(home, { mode: 0o700 })
    writeFileSync(join(home, 'settings.yml'), JSON.stringify({ exec: { sandbox: 'bubblewrap' } }), { mode: 0o600 })
    const daemon = await spawnDaemon({ home, env: { HOME: person, CADRE_HOME: home } })
    const outer = folder()
    const inner = join(outer, 'inner')
    mkdirSync(inner)
    const start = (run: string, workspace: string) => {
      const phases = [{ name: 'a', agent: 'exec', commands: [{ name: 'c', run }] }]
      const path = files({ 'team.yml': JSON.stringify({ name: '@local/a', version: '1.0.0', phases }) })
      return daemon.call('/v1/runs/start', { path, workspace })
    }
    const swap = `while ! [ -e enough ]; do
    sleep 0.01; mv inner other; ln -s ${person}/.ssh inner; sleep 0.003; rm inner; mv other inner; done`
    await start(swap, outer)
    let began = 0
    for (let tries = 0; tries < 600 && began < 30; tries++) {
      // Most are refused before they begin, because the folder is a link or missing just then.
      const run = await start('cat id 2>/dev/null; echo none', inner).catch(() => null)
      if (!run) continue
      const { state } = await daemon.ended(run.run_id)
      const { lines } = await daemon.call('/v1/runs/logs', { run_id: run.run_id })
      expect(JSON.stringify(lines)).not.toContain(SECRET)
      if (state === 'completed') began++
    }
    writeFileSync(join(outer, 'enough'), '')
    await daemon.stop()
    expect(began).toBeGreaterThan(0)
  },
  60_000,
)
