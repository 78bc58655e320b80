// The header `traceparent` of calls that start a run: the run continues the trace of its caller, from the queue of the hub
// to what its agents call, and what the standard has ignored counts as no header.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub } from '../support/hub.ts'
import { otlpReceiver } from '../vendors/otlp.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'

const SAYS = `
name: "@admin/says"
version: 1.0.0
phases:
  - { name: shell, agent: exec, commands: [{ name: say, run: 'printf %s "$TRACEPARENT"; echo' }] }
  - { name: below, type: team, team: ./leaf, depends_on: [shell] }
`
const LEAF = `
name: "@admin/leaf"
version: 1.0.0
phases:
  - { name: inner, agent: exec, commands: [{ name: say, run: 'printf %s "$TRACEPARENT"; echo' }] }
`
const TEAM = { 'team.yml': SAYS, 'leaf/team.yml': LEAF }

test('a dispatched run continues the trace of its caller through the queue, and a moved one too', async () => {
  await using receiver = otlpReceiver()
  const tracing = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }
  const hub = await startTestHub({ env: tracing })
  await hub.addTeam(TEAM)
  const dispatch = async (traceparent: string) => {
    const reply = await fetch(`${hub.url}/v1/dispatch/run`, {
      method: 'POST',
      headers: { authorization: `Bearer ${hub.admin}`, 'content-type': 'application/json', traceparent },
      body: JSON.stringify({ realm_id: hub.realm, team: '@admin/says' }),
    })
    expect(reply.status).toBe(201)
    return ((await reply.json()) as { data: { run_id: string } }).data.run_id
  }
  // Nobody is there to take it, and the hub begins anew meanwhile.
  const run_id = await dispatch(`00-${TRACE}-${SPAN}-01`)
  const invalid = await dispatch(`00-${TRACE}-${SPAN}-01-more`)
  await hub.restart()
  const home = folder()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one', ...tracing }
  const daemon = await spawnDaemon({ home, env })
  const spansOf = (id: string, count: number) =>
    until(() => {
      const found = receiver.spans.filter(({ attributes }) => attributes['cicd.pipeline.run.id'] === id)
      return found.length >= count && found
    }, `${count} spans of ${id}`)
  // Its dispatch, the run itself and two phases; the run below has another id.
  const spans = await spansOf(run_id, 4)
  expect(spans.map(({ trace }) => trace)).toEqual(Array(4).fill(TRACE))
  const top = spans.find(({ name }) => name === 'RUN @admin/says')!
  expect(top.parent).toBe(SPAN)
  expect(spans.find(({ name }) => name.startsWith('dispatch'))!.parent).toBe(top.id)
  const inner = await until(
    () => receiver.spans.find(({ name, trace }) => name === 'inner' && trace === TRACE),
    'inner',
  )
  const { lines } = await daemon.call('/v1/runs/logs', { run_id })
  const shell = spans.find(({ name }) => name === 'shell')!
  expect(lines[0].text).toBe(`00-${TRACE}-${shell.id}-01`)
  expect(inner.trace).toBe(TRACE)
  const others = await spansOf(invalid, 4)
  expect(others.map(({ trace }) => trace)).toEqual(Array(4).fill(invalid.replaceAll('-', '')))
  expect(others.find(({ name }) => name === 'RUN @admin/says')!.parent).toBeNull()
  await daemon.stop()

  // A run that is moved is a new one in the same trace.
  const waits = await dispatch(`00-${TRACE}-${SPAN}-01`)
  const { daemons } = await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })
  const moved = await hub.ok(hub.admin, 'dispatch/move', { run_id: waits, daemon_id: daemons[0].daemon_id })
  const again = await spawnDaemon({ home, env })
  expect((await spansOf(moved.run_id, 4)).map(({ trace }) => trace)).toEqual(Array(4).fill(TRACE))
  await again.stop()
  expect(receiver.faults).toEqual([])
  await hub.stop()
}, 90_000)

test('a start on a daemon takes it, keeps it over a kill, and ignores what the standard has ignored', async () => {
  await using receiver = otlpReceiver()
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }
  const home = folder()
  const path = files({
    'team.yml': `
name: "@me/waits"
version: 1.0.0
phases:
  - { name: first, agent: exec, commands: [{ name: a, run: 'touch begun; until [ -e go ]; do sleep 0.02; done; printf %s "$TRACEPARENT"; echo' }] }
`,
  })
  const daemon = await spawnDaemon({ home, env })
  const start = async (traceparent: string): Promise<string> =>
    (await daemon.call('/v1/runs/start', { path }, { traceparent })).run_id
  const taken = await start(`00-${TRACE}-${SPAN}-01`)
  await until(() => Bun.file(join(path, 'begun')).exists(), 'the phase')
  // A later version may say more; what is unknown of its flags is not passed on.
  const later = await start(`cc-${TRACE}-${SPAN}-ff-what-comes-later`)
  const unsampled = await start(`00-${TRACE}-${SPAN}-02`)
  const ignored: string[] = []
  for (const header of [
    '',
    TRACE,
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-0g`,
    `00-${TRACE}-${SPAN}-01-`,
    `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
    `cc-${TRACE}-${SPAN}-01.later`,
  ]) {
    ignored.push(await start(header))
  }
  await daemon.kill('SIGKILL')
  writeFileSync(join(path, 'go'), '')
  const again = await spawnDaemon({ home, env })
  const said = async (run_id: string) => {
    await again.ended(run_id)
    const { lines } = await again.call('/v1/runs/logs', { run_id })
    return lines.at(-1).text.split('-')
  }
  for (const run_id of [taken, later]) expect((await said(run_id)).slice(0, 2)).toEqual(['00', TRACE])
  for (const run_id of ignored) expect((await said(run_id))[1]).toBe(run_id.replaceAll('-', ''))
  const [, trace, , flags] = await said(unsampled)
  expect([trace, flags]).toEqual([TRACE, '00'])
  const spanOf = (id: string) =>
    receiver.spans.find(each => each.name === 'RUN @me/waits' && each.attributes['cicd.pipeline.run.id'] === id)
  const tops = await until(() => {
    const found = [taken, later, ...ignored].flatMap(id => spanOf(id) ?? [])
    return found.length === ignored.length + 2 && found
  }, 'the spans of all')
  expect(tops.map(({ parent }) => parent)).toEqual([SPAN, SPAN, ...ignored.map(() => null)])
  await again.stop()
  // What its caller does not record is not recorded here.
  expect(spanOf(unsampled)).toBeUndefined()
}, 90_000)
