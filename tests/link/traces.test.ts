// Traces of runs: from the dispatch at the hub to the vendor's call, exported by hub and daemon with OTLP; and nothing of
// it when they are not asked for.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import manifest from '../../package.json'
import { until } from '../support/bounded.ts'
import { command, files, spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { HEAD } from '../support/head.ts'
import { startTestHub } from '../support/hub.ts'
import { environmentAt } from '../support/program.ts'
import { otlpReceiver, type ReceivedSpan } from '../vendors/otlp.ts'

function homeWith(settings: string): string {
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), settings, { mode: 0o600 })
  return home
}

/** A vendor that keeps the `traceparent` of each request. */
function vendor() {
  const seen: (string | null)[] = []
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch(request) {
      seen.push(request.headers.get('traceparent'))
      return new Response('fine', { status: new URL(request.url).pathname === '/no' ? 404 : 200 })
    },
  })
  return { seen, url: server.url.origin, [Symbol.asyncDispose]: () => server.stop(true) }
}

const NOTHING = '0000000000000000'

test('one trace a run, from the dispatch to the call of the vendor', async () => {
  await using receiver = otlpReceiver()
  await using site = vendor()
  const tracing = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=canary-key%20of-traces',
  }
  const hub = await startTestHub({ env: tracing })
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = homeWith('network: { allow: [127.0.0.1] }\nsecrets: { word: canary-in-a-url }\n')
  const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one', ...tracing }
  const daemon = await spawnDaemon({ home, env })
  const team = {
    'team.yml': `
name: "@admin/traced"
version: 1.0.0
phases:
  - { name: shell, agent: exec, commands: [{ name: say, run: 'printf %s "$TRACEPARENT"; echo' }] }
  - { name: fetch, agent: http, sources: [{ name: a, url: "${site.url}/yes?word=canary-in-a-url" }] }
  - { name: below, type: team, team: ./leaf, depends_on: [shell, fetch], on_failure: continue }
`,
    'leaf/team.yml': `
name: "@admin/leaf"
version: 1.0.0
phases:
  - { name: missing, agent: http, sources: [{ name: a, url: "${site.url}/no" }] }
`,
  }
  await hub.addTeam(team)
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/traced' })
  const spans = await until(() => {
    const found = receiver.spans.filter(({ trace }) => trace === run_id.replaceAll('-', ''))
    return found.length === 9 && found
  }, 'nine spans')
  expect(receiver.faults).toEqual([])
  const one = (name: string, service = 'cadre-daemon') =>
    spans.find(span => span.name === name && span.service === service)!
  const below = (span: ReceivedSpan) =>
    spans
      .filter(({ parent }) => parent === span.id)
      .map(({ name }) => name)
      .sort()
  const top = one('RUN @admin/traced')
  expect(top).toMatchObject({ parent: null, kind: 2, attributes: { 'cicd.pipeline.run.id': run_id } })
  expect(below(top)).toEqual(['below', 'dispatch @admin/traced', 'fetch', 'shell'])
  expect(one('dispatch @admin/traced', 'cadre-hub').attributes).toMatchObject({ 'cicd.worker.name': 'one' })
  expect(below(one('below'))).toEqual(['RUN @admin/leaf'])
  expect(below(one('RUN @admin/leaf'))).toEqual(['missing'])
  expect(one('RUN @admin/leaf')).toMatchObject({ failed: true, attributes: { 'cicd.pipeline.result': 'failure' } })
  expect(one('missing').attributes).toMatchObject({ 'cicd.pipeline.task.run.result': 'failure' })
  const calls = spans.filter(({ kind }) => kind === 3)
  expect(calls.map(({ name, parent }) => [name, parent]).sort()).toEqual(
    [
      ['GET', one('fetch').id],
      ['GET', one('missing').id],
    ].sort(),
  )
  expect(calls.map(({ attributes }) => attributes['http.response.status_code']).sort()).toEqual(['200', '404'])
  // What the vendor and the command got leads to these spans.
  expect(site.seen.sort()).toEqual(calls.map(({ trace, id }) => `00-${trace}-${id}-01`).sort())
  const { lines } = await daemon.call('/v1/runs/logs', { run_id })
  expect(lines[0].text).toBe(`00-${top.trace}-${one('shell').id}-01`)
  expect(receiver.text()).not.toContain('canary')
  const made = HEAD === null ? [] : [{ key: 'vcs.ref.head.revision', value: { stringValue: HEAD } }]
  // The last spans are of the daemon.
  const text = (key: string, value: string) => ({ key, value: { stringValue: value } })
  expect(receiver.resource().slice(1)).toEqual([
    text('service.version', manifest.version),
    ...made,
    text('host.name', hostname()),
    text('service.instance.id', expect.any(String)),
    text('cicd.worker.name', 'one'),
    text('cicd.worker.id', one('dispatch @admin/traced', 'cadre-hub').attributes['cicd.worker.id']!),
    text('cadre.realm.id', hub.realm),
  ])
  // The site is named; neither the paths nor the query are.
  expect(receiver.text()).toContain('127.0.0.1')
  expect(receiver.text()).not.toMatch(/\/(yes|no)\b|word=/)
  expect(spans.some(({ id }) => id === NOTHING)).toBe(false)
  // The log goes the same way, with its secrets masked.
  const enrolled = await until(() => receiver.lines.find(({ event }) => event === 'enrolled'), 'a line of the daemon')
  expect(enrolled).toMatchObject({
    level: 'info',
    severity: 9,
    resource: { 'service.name': 'cadre-daemon', 'cicd.worker.name': 'one', 'cadre.realm.id': hub.realm },
  })
  expect(enrolled.attributes).toMatchObject({ realm: hub.realm })
  await daemon.stop()
  await hub.stop()
  expect(receiver.faults).toEqual([])
  expect(receiver.text()).not.toContain('canary')
}, 60_000)

const WAITS = {
  'team.yml': `
name: "@me/waits"
version: 1.0.0
phases:
  - { name: first, agent: exec, commands: [{ name: a, run: 'true' }] }
  - { name: second, agent: exec, depends_on: [first], commands: [{ name: b, run: 'touch begun; until [ -e go ]; do sleep 0.02; done; printf %s "$TRACEPARENT"; echo' }] }
`,
}

test('a run that was interrupted goes on in its trace', async () => {
  await using receiver = otlpReceiver()
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_SERVICE_NAME: 'night shift' }
  const home = folder()
  const path = files(WAITS)
  const daemon = await spawnDaemon({ home, env })
  const { run_id } = await daemon.call('/v1/runs/start', { path })
  await until(() => Bun.file(join(path, 'begun')).exists(), 'the second phase')
  await daemon.kill('SIGKILL')
  writeFileSync(join(path, 'go'), '')
  const again = await spawnDaemon({ home, env })
  await again.ended(run_id)
  const top = await until(() => receiver.spans.find(({ name }) => name === 'RUN @me/waits'), 'the span of the run')
  const second = await until(() => receiver.spans.find(({ name }) => name === 'second'), 'the span of its phase')
  expect([second.trace, second.parent, second.service]).toEqual([run_id.replaceAll('-', ''), top.id, 'night shift'])
  const { lines } = await again.call('/v1/runs/logs', { run_id })
  expect(lines.at(-1).text).toBe(`00-${top.trace}-${second.id}-01`)
  await again.stop()
}, 60_000)

test.each([
  ['does not answer', () => new Promise<Response>(() => {})],
  ['refuses', () => new Response('no', { status: 403 })],
  ['fails', () => new Response('busy', { status: 503 })],
])(
  'a receiver that %s neither delays nor fails a run, nor the end of the daemon',
  async (_, answer) => {
    await using receiver = otlpReceiver(answer)
    const daemon = await spawnDaemon({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } })
    const path = files({ 'team.yml': WAITS['team.yml'].split('\n').slice(0, 5).join('\n') })
    for (let n = 0; n < 3; n++) {
      const { run_id } = await daemon.call('/v1/runs/start', { path })
      expect((await daemon.ended(run_id)).state).toBe('completed')
    }
    const { code, ms } = await daemon.stop()
    expect(code).toBe(0)
    expect(ms).toBeLessThan(9_000)
  },
  60_000,
)

test('a run on the command line exports its trace before it ends', async () => {
  await using receiver = otlpReceiver()
  const path = files({ 'team.yml': WAITS['team.yml'].split('\n').slice(0, 5).join('\n') })
  const { code } = await command(['run', path], { home: folder(), env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } })
  expect([code, receiver.spans.map(({ name }) => name).sort()]).toEqual([0, ['RUN @me/waits', 'first']])
  const wrong = await command(['run', path], { home: folder(), env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'here' } })
  expect([wrong.code, wrong.stderr.includes('OTEL_EXPORTER_OTLP_ENDPOINT: expected')]).toEqual([2, true])
}, 60_000)

test.each([
  ['', []],
  [
    'http://127.0.0.1:9',
    ['lib/daemon/runs/run-tracing.ts', 'lib/log/otlp-forms.ts', 'lib/log/otlp-options.ts', 'lib/log/otlp.ts'],
  ],
])(
  'with the endpoint %p a daemon loads %p',
  async (endpoint, loaded) => {
    const root = resolve(import.meta.dir, '../..')
    const program = `
    const { Daemon } = await import('${root}/lib/daemon/runs/daemon.ts')
    const { createLog } = await import('${root}/lib/log/log.ts')
    const daemon = await Daemon.open({ home: process.env.HOME, log: createLog({ write() {} }) })
    console.log(JSON.stringify(Object.keys(require.cache)))
    await daemon.close()`
    const child = Bun.spawn([process.execPath, '-e', program], {
      cwd: root,
      env: { ...environmentAt(folder()), OTEL_EXPORTER_OTLP_ENDPOINT: endpoint },
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const modules: string[] = JSON.parse(await child.stdout.text())
    expect(modules.length).toBeGreaterThan(100)
    const found = modules.map(path => path.slice(root.length + 1)).filter(path => /otlp|run-tracing/.test(path))
    expect(found.sort()).toEqual(loaded)
  },
  30_000,
)
