// The export of logs and traces: which of OpenTelemetry's variables count, what is sent again, what is dropped and counted,
// and that no line leaves with a secret.

import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Daemon } from '../../lib/daemon/runs/daemon.ts'
import { createLog } from '../../lib/log/log.ts'
import { otlpTargets } from '../../lib/log/otlp-options.ts'
import { openTelemetry } from '../../lib/log/telemetry.ts'
import { until } from '../support/bounded.ts'
import { spawnDaemon } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub } from '../support/hub.ts'
import { METRICS_TOKEN } from '../support/served-hub.ts'
import { otlpReceiver } from '../vendors/otlp.ts'

const BUILD = () => ({ version: '1.2.3', commit: null })
const quiet = () => createLog({ write() {} })
const plain = <T>(value: T) => value as never

async function exporting(env: Record<string, string>, log = quiet()) {
  const telemetry = await openTelemetry(env, 'cadre-test', log, BUILD)
  telemetry?.exportLines(plain)
  return { telemetry, log }
}

test('no line leaves with a secret, those of the start and of a kill of its variables included', async () => {
  await using receiver = otlpReceiver()
  const home = folder()
  writeFileSync(join(home, 'settings.yml'), 'secrets: { word: canary-of-the-settings }\n', { mode: 0o600 })
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_EXPORTER_OTLP_LOGS_HEADERS: 'x-key=canary-of-a-header',
    HOME: home,
  }
  const log = quiet()
  const daemon = await Daemon.open({ home, log, env })
  const said = {
    text: 'a canary-of-the-settings',
    deep: { list: ['canary-of-a-header'] },
    many: 3,
    part: 0.5,
    yes: true,
  }
  daemon.log.warn('says canary-of-the-settings', said)
  // Not every part of the daemon has the log that masks.
  log.error('says it past the mask', said)
  daemon.log.debug('is not said at this level')
  await daemon.close()
  expect(receiver.faults).toEqual([])
  expect(receiver.text()).not.toContain('canary')
  const lines = receiver.lines.filter(({ event }) => event.startsWith('says'))
  expect(lines.map(({ level, severity, event }) => [level, severity, event])).toEqual([
    ['warn', 13, 'says ***'],
    ['error', 17, 'says it past the mask'],
  ])
  for (const { attributes } of lines) {
    expect(attributes).toEqual({ text: 'a ***', deep: '{"list":["***"]}', many: '3', part: '0.5', yes: 'true' })
  }
  expect(receiver.lines.some(({ level }) => level === 'debug')).toBe(false)
})

test('each variable counts for its signal, and one that is not understood is named', () => {
  const warned: unknown[] = []
  const read = (env: Record<string, string>) => {
    warned.length = 0
    return otlpTargets(env, { warn: (_, fields) => warned.push(fields) })
  }
  const target = (url: string) => ({ url, headers: {}, timeoutMs: 10_000, gzip: false })
  expect(read({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://one:4318' })).toEqual({
    traces: target('http://one:4318/v1/traces'),
    logs: target('http://one:4318/v1/logs'),
  })
  // An address of one signal is taken as it is.
  const apart = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://one/below/', OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'https://two/in' }
  expect(read(apart)).toEqual({ traces: target('http://one/below/v1/traces'), logs: target('https://two/in') })
  expect(read({ OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'http://two' })).toEqual({ logs: target('http://two/') })
  const all = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://one',
    OTEL_EXPORTER_OTLP_HEADERS: 'a=1,b=two%20words',
    OTEL_EXPORTER_OTLP_LOGS_HEADERS: 'c=3',
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
    OTEL_EXPORTER_OTLP_TRACES_COMPRESSION: 'gzip',
    OTEL_EXPORTER_OTLP_LOGS_TIMEOUT: '',
  }
  expect(read(all)).toEqual({
    traces: { url: 'http://one/v1/traces', headers: { a: '1', b: 'two words' }, timeoutMs: 500, gzip: true },
    logs: { url: 'http://one/v1/logs', headers: { c: '3' }, timeoutMs: 500, gzip: false },
  })
  expect(warned).toEqual([])
  expect(read({ ...all, OTEL_TRACES_EXPORTER: 'none' }).traces).toBeUndefined()
  const odd = {
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://one/',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_TIMEOUT: 'soon',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'zip',
    OTEL_LOGS_EXPORTER: 'console',
  }
  expect(read(odd)).toEqual({ traces: target('http://one/') })
  expect(warned.map(each => (each as { variable: string }).variable)).toEqual([
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    'OTEL_EXPORTER_OTLP_COMPRESSION',
    'OTEL_EXPORTER_OTLP_TIMEOUT',
    'OTEL_LOGS_EXPORTER',
  ])
  // With such a header no request could ever be sent.
  const headers = 'x-key=1,a(name=2,x-sign=%E2%82%AC,x-line=a%0Ab'
  expect(read({ OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'http://one/', OTEL_EXPORTER_OTLP_HEADERS: headers })).toEqual({
    logs: { ...target('http://one/'), headers: { 'x-key': '1' } },
  })
  expect(warned).toEqual([{ variable: 'OTEL_EXPORTER_OTLP_HEADERS', expected: 'name=value,… as HTTP has headers' }])
  expect(() => read({ OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: 'two:4318' })).toThrow(
    'OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: expected http://host:4318 or https://…',
  )
  expect(() => read({ ...all, OTEL_EXPORTER_OTLP_CERTIFICATE: '/none/ca.pem' })).toThrow(
    'OTEL_EXPORTER_OTLP_CERTIFICATE: its file cannot be read',
  )
})

test('headers, compression, the address of a signal and what the process is reach the receiver', async () => {
  const asked: { path: string; key: string | null; encoding: string | null }[] = []
  await using receiver = otlpReceiver(({ url, headers }) => {
    asked.push({ path: new URL(url).pathname, key: headers.get('x-key'), encoding: headers.get('content-encoding') })
    return null
  })
  const { telemetry, log } = await exporting({
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${receiver.url}/elsewhere/v1/logs`,
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=value%2Cwith%20signs',
    OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test,service.name=theirs,host.name=given',
    OTEL_SERVICE_NAME: 'mine',
  })
  expect(telemetry!.tracer).toBeNull()
  telemetry!.describe({ 'service.instance.id': 'i' })
  log.info('one')
  await telemetry!.close()
  expect(asked).toEqual([{ path: '/elsewhere/v1/logs', key: 'value,with signs', encoding: 'gzip' }])
  expect(receiver.faults).toEqual([])
  expect(receiver.lines[0]!.resource).toEqual({
    'service.name': 'mine',
    'service.version': '1.2.3',
    'host.name': 'given',
    'service.instance.id': 'i',
    'deployment.environment.name': 'test',
  })
  const { telemetry: none } = await exporting({
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
    OTEL_SDK_DISABLED: 'TRUE',
  })
  expect(none).toBeNull()
})

test('what is beyond the bound is dropped and counted, and nothing waits for the receiver', async () => {
  await using receiver = otlpReceiver(() => new Promise<Response>(() => {}))
  const daemon = await spawnDaemon({ env: { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url } })
  const metric = async () => {
    const text = await (await fetch(`${daemon.url}/metrics`)).text()
    return [...text.matchAll(/^cadre_telemetry_dropped_total\{signal="(\w+)"\} (\d+)$/gm)].map(([, name, n]) => [
      name,
      n,
    ])
  }
  expect(await metric()).toEqual([
    ['traces', '0'],
    ['logs', '0'],
  ])
  await daemon.stop()
  const { telemetry, log } = await exporting({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url })
  for (let count = 0; count < 9_000; count++) log.info('line', { count })
  expect(telemetry!.dropped()).toEqual([
    ['traces', 0],
    ['logs', 9_000 - 8_192],
  ])
  // What the end of a process cannot send is dropped, too.
  await telemetry!.close()
  expect(telemetry!.dropped()).toContainEqual(['logs', 9_000])
}, 30_000)

test('what waits holds no more memory than is sent of it', async () => {
  await using receiver = otlpReceiver(() => new Promise<Response>(() => {}))
  const { telemetry, log } = await exporting({ OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: receiver.url })
  const heap = () => {
    Bun.gc(true)
    return process.memoryUsage().heapUsed + process.memoryUsage().external
  }
  const before = heap()
  for (let count = 0; count < 2_000; count++) log.info('line', { text: `${count} ${'long '.repeat(20_000)}` })
  expect(heap() - before).toBeLessThan(50_000_000)
  await telemetry!.close()
}, 30_000)

test('a reply without an end is read as far as it may say something', async () => {
  let sent = 0
  let asked = 0
  await using receiver = otlpReceiver(() => {
    if (++asked > 1) return null
    const chunk = new Uint8Array(1_048_576).fill(32)
    return new Response(
      new ReadableStream({
        async pull(controller) {
          await Bun.sleep(20)
          sent += chunk.length
          controller.enqueue(chunk)
        },
      }),
    )
  })
  const { telemetry, log } = await exporting({ OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: receiver.url })
  log.info('one')
  await until(() => asked > 0, 'a request')
  log.info('two')
  await until(() => asked > 1, 'the next request')
  expect(sent).toBeLessThan(100_000_000)
  await telemetry!.close()
}, 30_000)

test('a hub counts what its receiver refuses', async () => {
  await using receiver = otlpReceiver(() => new Response('no', { status: 500 }))
  const hub = await startTestHub({ env: { OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `${receiver.url}/v1/logs` } })
  await until(async () => {
    const reply = await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${METRICS_TOKEN}` } })
    const [, count] = /^cadre_telemetry_dropped_total\{signal="logs"\} (\d+)$/m.exec(await reply.text()) ?? []
    return Number(count) > 0
  }, 'a dropped line')
  await hub.stop()
}, 60_000)

test.each([429, 502, 503, 504])('after %d the same is sent again, when the receiver says', async status => {
  let asked = 0
  await using receiver = otlpReceiver(() =>
    ++asked === 1 ? new Response('busy', { status, headers: { 'retry-after': '1' } }) : null,
  )
  const { telemetry, log } = await exporting({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url })
  log.info('one')
  await until(() => receiver.lines.some(({ event }) => event === 'one'), 'the line')
  expect(telemetry!.dropped()).toContainEqual(['logs', 0])
  await telemetry!.close()
})

test.each([
  ['400', () => new Response('no', { status: 400 }), 1],
  ['500', () => new Response('no', { status: 500 }), 1],
  ['a partial success', () => Response.json({ partialSuccess: { rejectedLogRecords: '1', errorMessage: 'old' } }), 1],
  ['a reply that is none', () => new Response('fine'), 0],
])('after %s nothing is sent again, and what was refused is counted', async (_, answer, dropped) => {
  const said: string[] = []
  let asked = 0
  await using receiver = otlpReceiver(() => {
    asked++
    return asked === 1 ? answer() : null
  })
  const log = createLog({ format: 'json', write: line => said.push(JSON.parse(line).event) })
  const { telemetry } = await exporting(
    { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url, OTEL_TRACES_EXPORTER: 'none' },
    log,
  )
  log.info('one')
  await until(() => asked > 0, 'a request')
  log.info('two')
  await until(() => receiver.lines.some(({ event }) => event === 'two'), 'the next line')
  expect(receiver.lines.some(({ event }) => event === 'one')).toBe(false)
  expect(telemetry!.dropped()).toEqual([['logs', dropped]])
  expect(said.includes('log lines were refused and dropped')).toBe(dropped > 0)
  await telemetry!.close()
})
