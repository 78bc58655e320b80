import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type CallResult, testAgent } from 'cadre/testing'
import metrics from '../../agents/metrics.ts'
import type { JsonObject } from '../../lib/json.ts'
import { refusal } from '../../lib/testing/fake-vendor.ts'
import { datadogApi, datadogApp } from '../../lib/vendors/datadog.ts'
import { failureOf } from '../support/failure.ts'
import { outcomeOf } from '../support/outcome.ts'
import { type FakeMetrics, fakeMetrics, KEYS } from '../vendors/metrics.ts'

const settings = ({ url }: FakeMetrics) => ({ ...KEYS, base_url: url })
const HOUR = 3_600_000

const subject = await testAgent({
  file: join(import.meta.dir, '../../agents/metrics.ts'),
  vendor() {
    const vendor = fakeMetrics()
    vendor.monitors.push({ id: 1, name: 'disk', tags: [] })
    vendor.events.push({ id: 'E1', at: Date.now() - HOUR, title: 'T1' })
    return vendor
  },
  settings,
  examples: {
    query_metrics: {
      entry: { name: 'x.json', ref: 'avg:system.cpu.idle{*}' },
      scope: 'timeseries_query',
      names: '[metrics.query_metrics] query metrics',
    },
    get_monitors: { entry: { name: 'x.json' }, scope: 'monitors_read', names: '[metrics.get_monitors] get monitors' },
    get_events: { entry: { name: 'x.json' }, scope: 'events_read', names: '[metrics.get_events] get events' },
    post_event: {
      entry: { name: 'x', file: 'e.json' },
      files: { 'e.json': JSON.stringify({ title: 'Deployed', text: 'v1.2.3' }) },
      names: '[metrics.post_event] post an event',
    },
  },
})

let datadog: FakeMetrics
beforeEach(() => {
  datadog = fakeMetrics()
})
afterEach(() => datadog[Symbol.dispose]())

const KEY = '01234567-89ab-8def-a123-456789abcdef'
const run = (action: string, entry: JsonObject, files: Record<string, string> = {}) =>
  subject.call(datadog, action, { name: 'x.json', ...entry }, { files, key: KEY })
const written = ({ files }: CallResult) => JSON.parse(files['x.json']!)

describe('a query', () => {
  test('asks for the window and gives the series', async () => {
    const ref = 'avg:system.cpu.idle{host:a} by {b}'
    const result = await run('query_metrics', { ref, window: '4h' })
    const { data } = result
    expect(data).toMatchObject({ series: [{ metric: 'system.cpu.idle', pointlist: [[1_681_683_300_000, 77.6]] }] })
    expect(data).toMatchObject({ total: 1, truncated: false })
    expect(written(result)).toMatchObject({ status: 'ok', query: ref })
    const { query } = datadog.seen[0]!
    expect(Number(query.get('to')) - Number(query.get('from'))).toBe(4 * 3_600)
    expect(Math.abs(Number(query.get('to')) - Date.now() / 1_000)).toBeLessThan(60)
  })

  test('looks at the last hour; no series is no error', async () => {
    datadog.series = []
    expect((await run('query_metrics', { ref: 'x' })).data).toMatchObject({ series: [], total: 0 })
    const { query } = datadog.seen[0]!
    expect(Number(query.get('to')) - Number(query.get('from'))).toBe(3_600)
  })

  test('that is refused with 200 fails all the same', async () => {
    const error = await failureOf(run('query_metrics', { ref: 'bad' }))
    expect(error).toMatchObject({
      code: 'rejected',
      message: '[metrics.query_metrics] query metrics: Error parsing query',
    })
  })

  test('with very many points has them in the file only, and says so', async () => {
    const pointlist = Array.from({ length: 20_000 }, (_, at) => [1_681_683_300_000 + at, 1.5])
    datadog.series = [{ metric: 'a', pointlist }]
    const result = await run('query_metrics', { ref: 'x' })
    expect(result.data).toEqual({ series: [{ metric: 'a' }], total: 1, truncated: true })
    expect(written(result).series[0].pointlist).toHaveLength(20_000)
  })
})

describe('monitors', () => {
  beforeEach(() => {
    datadog.monitors = Array.from({ length: 2_100 }, (_, at) => {
      return { id: at, name: `${at % 2 ? 'odd' : 'even'} ${at}`, tags: [`n:${at % 3}`, 'all'] }
    })
  })

  test('come in pages, whole in the file', async () => {
    const result = await run('get_monitors', { limit: 10_000 })
    const { data } = result
    expect(data).toMatchObject({ total: 2_100, truncated: false })
    const url = `${datadog.url}/monitors/0`
    const first = { id: 0, name: 'even 0', type: 'query alert', status: 'OK', tags: ['n:0', 'all'], url }
    expect((data as { items: unknown[] }).items[0]).toEqual(first)
    expect(written(result).items[2_099]).toMatchObject({ id: 2_099, query: 'avg(last_5m):x > 1' })
    expect(datadog.seen).toHaveLength(3)
  })

  test('are found by name, by tags of what they watch, and by their own tags', async () => {
    datadog.monitors[1]!.scope = ['host:a', 'env:prod']
    const ids = async (entry: JsonObject) =>
      ((await run('get_monitors', entry)).data as { items: { id: number }[] }).items.map(({ id }) => id)
    expect(await ids({ tags: ['host:a', 'env:prod'] })).toEqual([1])
    expect(await ids({ tags: 'n:1' })).toEqual([])
    expect(await ids({ query: 'odd', monitor_tags: ['n:1', 'all'], limit: 2 })).toEqual([1, 7])
  })

  test.each([
    [349, 350, true],
    [350, 350, false],
    [999, 999, false],
    [1_000, 1_000, false],
    [2_000, 2_000, false],
    [2_000, 2_001, true],
  ])('limited to %d of %d tell whether there are more', async (limit, count, truncated) => {
    datadog.monitors.splice(count)
    const result = await run('get_monitors', { limit })
    expect([result.data, written(result).items.length]).toMatchObject([{ total: limit, truncated }, limit])
  })
})

describe('events', () => {
  test('of the window, newest first, over pages', async () => {
    const now = Date.now()
    datadog.events = Array.from({ length: 2_500 }, (_, n) => ({
      id: `E${n}`,
      at: now - 48 * HOUR + n * 60_000,
      title: `T${n}`,
    }))
    const result = await run('get_events', { limit: 10_000 })
    const { data } = result
    const { items, truncated } = data as { items: Record<string, unknown>[]; truncated: boolean }
    expect(truncated).toBe(false)
    expect(written(result).items).toHaveLength(items.length)
    expect(items.length).toBeGreaterThan(1_050)
    expect(items.length).toBeLessThan(1_070)
    expect(items[0]).toEqual({ id: 'E2499', timestamp: expect.any(String), title: 'T2499', tags: ['a:b'] })
    const some = await run('get_events', { window: '48h', query: 'service:web' })
    expect(some.data).toMatchObject({ total: 100, truncated: true })
    expect(datadog.seen.at(-1)!.query.get('filter[query]')).toBe('service:web')
  })
})

test('large events are asked for in smaller pages', async () => {
  const at = Date.now() - HOUR
  datadog.events = Array.from({ length: 501 }, (_, n) => ({ id: `E${n}`, at: at + n, title: 'T'.repeat(40_000) }))
  const { data } = await run('get_events', { limit: 500 })
  expect(data).toMatchObject({ total: 500, truncated: true })
  const sizes = datadog.seen.map(({ query }) => Number(query.get('page[limit]')))
  expect(sizes).toEqual([250, 104, 104, 43])
})

test.each([
  [2, 2, false],
  [250, 250, false],
  [251, 251, false],
  [251, 252, true],
  [1_000, 1_000, false],
  [1_000, 1_001, true],
  [2_500, 2_500, false],
])('%d events of %d tell whether there are more', async (limit, count, truncated) => {
  const at = Date.now() - HOUR
  datadog.events = Array.from({ length: count }, (_, n) => ({ id: `E${n}`, at: at + n, title: 'T' }))
  expect((await run('get_events', { limit })).data).toMatchObject({ total: limit, truncated })
})

describe('an event', () => {
  const EVENT = JSON.stringify({ title: 'Deployed', text: 'v1.2.3', tags: ['env:prod'], alert_type: 'success' })
  const post = (text = EVENT) => run('post_event', { file: 'e.json' }, { 'e.json': text })

  test('is posted with the tag that finds it, and keeps all digits of its id', async () => {
    const { data, external } = await post()
    const id = '765432109876543210'
    expect(data).toEqual({ id, url: `${datadog.url}/event/event?id=${id}` })
    expect(external).toEqual({ id, url: `${datadog.url}/event/event?id=${id}` })
    expect(datadog.posted[0]).toMatchObject({
      title: 'Deployed',
      tags: ['env:prod', `cadre_key:${KEY}`],
    })
  })

  test.each([
    ['no JSON', 'Deployed', 'must be JSON'],
    ['no object', 'null', 'must have the text field `title`'],
    ['no text', '{"title":"x"}', 'must have the text field `text`'],
    ['tags that are no list', '{"title":"x","text":"y","tags":"a:b"}', 'must have a list as its `tags`'],
    ['a text that would be cut', JSON.stringify({ title: 'x', text: 'y'.repeat(4_001) }), '4000 characters'],
  ])('with %s is not sent', async (_, text, message) => {
    const error = await failureOf(post(text))
    expect(error).toMatchObject({ code: 'invalid_request', sent: 'no' })
    expect(error.message).toContain(message)
    expect(datadog.seen).toHaveLength(0)
  })

  test('that the vendor refuses says why', async () => {
    const error = await failureOf(post('{"title":"x","text":"y","alert_type":"loud"}'))
    expect(error).toMatchObject({ code: 'rejected', sent: 'no' })
    expect(error.message).toContain('alert_type')
  })

  const outcome = () =>
    outcomeOf({
      agent: metrics,
      name: 'metrics',
      settings: settings(datadog),
      files: { 'e.json': EVENT },
      phase: {
        action: 'post_event',
        retry: { attempts: 3, backoff: '1ms' },
        target_entries: [{ name: 'event', file: 'e.json' }],
      },
    })

  test('whose reply was lost is found', async () => {
    datadog.fail(/^POST/, () => refusal(502), { done: true })
    expect(await outcome()).toMatchObject({ state: 'completed', data: { id: '765432109876543210' } })
    expect(datadog.posted).toHaveLength(1)
  })

  test('that is not listed may still come: a person is asked', async () => {
    datadog.listing = false
    datadog.fail(/^POST/, () => refusal(502), { done: true })
    expect(await outcome()).toMatchObject({ state: 'awaiting_input' })
    expect(datadog.posted).toHaveLength(1)
  })
})

describe('the site', () => {
  test.each([
    [undefined, undefined, 'https://api.datadoghq.com', 'https://app.datadoghq.com'],
    ['EU', undefined, 'https://api.datadoghq.eu', 'https://app.datadoghq.eu'],
    ['us5', undefined, 'https://api.us5.datadoghq.com', 'https://us5.datadoghq.com'],
    ['app.datadoghq.eu', undefined, 'https://api.datadoghq.eu', 'https://app.datadoghq.eu'],
    [
      'https://ap1.datadoghq.com/monitors/7?x=1',
      undefined,
      'https://api.ap1.datadoghq.com',
      'https://ap1.datadoghq.com',
    ],
    ['acme.us3.datadoghq.com', undefined, 'https://api.us3.datadoghq.com', 'https://us3.datadoghq.com'],
    ['EU', 'https://app.datadoghq.eu/dashboards', 'https://api.datadoghq.eu', 'https://app.datadoghq.eu'],
    ['US1-FED', undefined, 'https://api.ddog-gov.com', 'https://app.ddog-gov.com'],
    [undefined, 'https://dd.acme.test/', 'https://dd.acme.test', 'https://dd.acme.test'],
  ])('%s with base_url %s is understood', async (site, base_url, api, app) => {
    expect(datadogApi(site, base_url)).toBe(api)
    expect(datadogApp(api)).toBe(app)
    const given = { ...KEYS, ...(site !== undefined && { site }), ...(base_url !== undefined && { base_url }) }
    expect(await subject.problems(given)).toEqual([])
  })

  test.each(['europe', 'datadog.com', 'evil-datadoghq.com', 'https://datadoghq.eu.evil.test/'])(
    '%s is answered with what to write',
    async site => {
      expect(await subject.problems({ ...KEYS, site })).toEqual([
        expect.stringMatching(
          /^agents\.metrics\.site must be a site of Datadog: write one of datadoghq\.com, .*datadoghq\.eu/,
        ),
      ])
    },
  )
})
