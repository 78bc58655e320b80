// Who started a run, on each surface of a home: the record, lists with their filter, why, the command line, messages.

import { Database } from 'bun:sqlite'
import { beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { RunGroups } from '../../lib/run/store/run-groups.ts'
import { until } from '../support/bounded.ts'
import { command, files } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { type ServedDaemon, serveDaemon } from '../support/served-daemon.ts'
import { FAILS, HELLO, NESTED } from './teams.ts'

const name = Bun.spawnSync(['id', '-un']).stdout.toString().trim()
const person = (via: string) => ({ kind: 'person', name, via })

let daemon: ServedDaemon
beforeAll(async () => {
  daemon = await serveDaemon()
})

async function started(headers: Record<string, string> = {}, team: Record<string, string> = { 'team.yml': HELLO }) {
  const { run_id } = await daemon.call('/v1/runs/start', { path: files(team) }, headers)
  await daemon.ended(run_id)
  return run_id as string
}
const record = (run_id: string) => daemon.call('/v1/runs/get', { run_id })
const listed = async (started_by: string, more: object = {}) =>
  (await daemon.call('/v1/runs/list', { started_by, ...more })).runs.map(({ run_id }: { run_id: string }) => run_id)

test('the command line, a page and other callers of the daemon are told apart', async () => {
  const api = await started()
  const page = await started({ origin: daemon.url, 'sec-fetch-site': 'same-origin' })
  const path = files({ 'team.yml': HELLO })
  const { stdout } = await command(['run', path, '--detach'], { home: daemon.home })
  const cli = stdout.trim()
  await daemon.ended(cli)
  expect((await record(api)).started_by).toEqual(person('api'))
  expect((await record(page)).started_by).toEqual(person('page'))
  expect((await record(cli)).started_by).toEqual(person('cli'))
})

test('a run in the process of its command was started by the command line, and a resume keeps that', async () => {
  const home = folder()
  await command(['run', files({ 'team.yml': FAILS })], { home })
  const json = async (...args: string[]) => JSON.parse((await command([...args, '--json'], { home })).stdout)
  const { run_id, started_by } = await json('show', 'last')
  expect(started_by).toEqual(person('cli'))
  await command(['resume', run_id], { home })
  expect(await json('show', run_id)).toMatchObject({ attempt: 2, started_by: person('cli') })
  expect((await json('why', run_id)).started_by).toEqual(person('cli'))
  expect((await json('runs', '--started-by', `person:${name}`)).total).toBe(1)
  expect((await json('runs', '--started-by', 'token:ci')).total).toBe(0)
  const shown = await command(['show', run_id], { home })
  expect(shown.stdout).toContain(`started by  ${name} (command line)`)
  const wrong = await command(['runs', '--started-by', 'nobody'], { home })
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('must be one of person, token')])
})

test('only top runs have a starter, and its filter finds no other', async () => {
  const top = await started({}, NESTED)
  const { runs } = await daemon.call('/v1/runs/list', { limit: 100 })
  const below = runs.filter(
    (run: { root_run_id: string; run_id: string }) => run.root_run_id === top && run.run_id !== top,
  )
  expect(below.length).toBeGreaterThan(2)
  expect(below.every((run: { started_by: unknown }) => run.started_by === null)).toBe(true)
  expect((await daemon.call('/v1/runs/why', { run_id: below[0].run_id })).started_by).toBe(null)
  const found = await listed('person', { limit: 100 })
  expect(found).toContain(top)
  expect(found.some((id: string) => below.some(({ run_id }: { run_id: string }) => run_id === id))).toBe(false)
  expect(await listed(`person:${name}`, { team: 'top', state: 'completed', root_only: true })).toEqual([top])
  expect(await listed('person', { search: top })).toEqual([top])
  expect(await listed('token', { search: top })).toEqual([])
  const refused = await daemon.post('/v1/runs/list', { started_by: 'alien:nightly' })
  expect(refused.body.error.details).toEqual([
    { path: '/started_by', message: expect.stringContaining('schedule:nightly') },
  ])
})

test('why says it in words', async () => {
  const found = await daemon.call('/v1/runs/why', { run_id: await started() })
  expect(found.lines.at(-1)).toBe(`Started by ${name} (API).`)
  expect(found.text).toContain(`\nStarted by ${name} (API).`)
  expect(found.started_by).toEqual(person('api'))
})

test('listeners tell it, and runs from before it was recorded have an unknown one', async () => {
  const said: unknown[] = []
  const hook = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      said.push(await request.json())
      return new Response('ok')
    },
  })
  try {
    await daemon.call(
      '/v1/settings/set',
      { key: 'agents.chat.channels', value: { ops: hook.url.href } },
      { authorization: `Bearer ${daemon.token}` },
    )
    const TELLS = `name: "@local/tells"
version: 1.0.0
phases:
  - { name: work, agent: exec, commands: [{ name: c, run: "true" }] }
  - { name: tell, agent: chat, notify: [on_complete] }
`
    const run_id = await started({}, { 'team.yml': TELLS })
    await until(() => said.length > 0, 'a message')
    expect(JSON.stringify(said[0])).toContain(`run ${run_id} completed, started by ${name} (API)`)
    const db = new Database(join(daemon.home, 'daemon.db'))
    const group = new RunGroups(db).of({ team: '@local/tells', parent_id: null, started_by: null })
    db.query('UPDATE runs SET started_by = NULL, group_id = ? WHERE id = ?').run(group, run_id)
    db.close()
    expect((await record(run_id)).started_by).toEqual({ kind: 'unknown' })
    expect(await listed('unknown')).toEqual([run_id])
    expect((await daemon.call('/v1/runs/why', { run_id })).text).not.toContain('Started by')
  } finally {
    await hook.stop(true)
  }
})
