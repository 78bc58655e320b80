// Datadog as far as the metrics agent goes. Events that are posted are listed only once `listing` says so, as there.

import { isObject } from '../../lib/json.ts'
import { type FakeVendor, fakeVendor, refusal, type VendorRequest } from '../../lib/testing/fake-vendor.ts'

export const KEYS = { api_key: 'canary-datadog-api-key', app_key: 'canary-datadog-app-key' }

export interface FakeMetrics extends FakeVendor {
  series: object[]
  /** `scope`: tags of what is watched; `tags`: those of the monitor itself. */
  monitors: { id: number; name: string; tags: string[]; scope?: string[] }[]
  /** Listed by v2, newest last. */
  events: { id: string; at: number; title: string }[]
  /** Taken in by v1. */
  posted: Record<string, unknown>[]
  /** Whether v1 lists what was posted. */
  listing: boolean
}

const ALERT_TYPES = ['error', 'warning', 'info', 'success', 'user_update', 'recommendation', 'snapshot']

export function fakeMetrics(): FakeMetrics {
  const server = fakeVendor(request => answer(request, state))
  const state: FakeMetrics = Object.assign(server, {
    series: [{ metric: 'system.cpu.idle', scope: '*', pointlist: [[1_681_683_300_000, 77.6]] }],
    monitors: [],
    events: [],
    posted: [],
    listing: true,
  })
  return state
}

function answer(request: VendorRequest, state: FakeMetrics): Response {
  const { method, path, query, headers } = request
  if (headers.get('dd-api-key') !== KEYS.api_key) return refusal(403, { errors: ['Forbidden'] })
  if (path === '/api/v1/validate' && method === 'GET') return Response.json({ valid: true })
  if (path === '/api/v1/events' && method === 'POST') return post(request.body, state)
  if (headers.get('dd-application-key') !== KEYS.app_key) return refusal(403, { errors: ['Forbidden'] })
  if (method !== 'GET') return refusal(405, { errors: ['Method not allowed'] })
  if (path === '/api/v1/query') return queryMetrics(query, state)
  if (path === '/api/v1/monitor') return listMonitors(query, state)
  if (path === '/api/v1/events') return listPosted(query, state)
  return path === '/api/v2/events' ? listEvents(query, state) : refusal(404, { errors: ['Not found'] })
}

/** Seconds since the epoch, of this decade. */
function isSeconds(text: string | null): boolean {
  return /^\d{10}$/.test(text ?? '')
}

function queryMetrics(query: URLSearchParams, state: FakeMetrics): Response {
  if (!isSeconds(query.get('from')) || !isSeconds(query.get('to')) || !query.get('query')) {
    return refusal(400, { errors: ['from, to and query are required, in seconds'] })
  }
  if (query.get('query') === 'bad') return Response.json({ status: 'error', error: 'Error parsing query' })
  return Response.json({ status: 'ok', res_type: 'time_series', series: state.series, query: query.get('query') })
}

function listMonitors(query: URLSearchParams, state: FakeMetrics): Response {
  const size = Number(query.get('page_size') ?? 100)
  const page = query.get('page')
  if (!(size >= 1 && size <= 1_000) || !/^\d+$/.test(page ?? '')) return refusal(400, { errors: ['page'] })
  const scope = query.get('tags')?.split(',') ?? []
  const own = query.get('monitor_tags')?.split(',') ?? []
  const fits = state.monitors.filter(
    monitor =>
      monitor.name.includes(query.get('name') ?? '') &&
      scope.every(tag => monitor.scope?.includes(tag)) &&
      own.every(tag => monitor.tags.includes(tag)),
  )
  const whole = fits.map(each => ({ ...each, type: 'query alert', overall_state: 'OK', query: 'avg(last_5m):x > 1' }))
  return Response.json(whole.slice(Number(page) * size, (Number(page) + 1) * size))
}

function listEvents(query: URLSearchParams, state: FakeMetrics): Response {
  const [from, to] = [query.get('filter[from]'), query.get('filter[to]')]
  const limit = Number(query.get('page[limit]') ?? 10)
  if (!/^\d{13}$/.test(from ?? '') || !/^\d{13}$/.test(to ?? '')) return refusal(400, { errors: ['milliseconds'] })
  if (!(limit >= 1 && limit <= 1_000) || query.get('sort') !== '-timestamp') return refusal(400, { errors: ['page'] })
  const start = Number(/^after-(\d+)$/.exec(query.get('page[cursor]') ?? 'after-0')?.[1])
  const fits = state.events.filter(({ at }) => at >= Number(from) && at <= Number(to)).reverse()
  const data = fits.slice(start, start + limit).map(({ id, at, title }) => {
    const attributes = { title, timestamp: at, status: 'info' }
    return {
      id,
      type: 'event',
      attributes: { timestamp: new Date(at).toISOString(), message: 'm', tags: ['a:b'], attributes },
    }
  })
  // Every full page has a cursor, also the last one.
  const page = data.length === limit && { page: { after: `after-${start + limit}` } }
  return Response.json(
    { data, meta: { status: 'done', ...page } },
    { headers: { 'content-type': 'application/vnd.api+json' } },
  )
}

function post(body: unknown, state: FakeMetrics): Response {
  if (!isObject(body) || typeof body.title !== 'string' || typeof body.text !== 'string')
    return refusal(400, { errors: ['title'] })
  if (body.alert_type !== undefined && !ALERT_TYPES.includes(String(body.alert_type)))
    return refusal(400, { errors: ['alert_type'] })
  // More digits than a number keeps.
  const id_str = `76543210987654321${state.posted.length}`
  const event = { ...body, id_str, url: `/event/event?id=${id_str}` }
  state.posted.push(event)
  const text = JSON.stringify({ status: 'ok', event: { ...event, id: 0 } }).replace('"id":0', `"id":${id_str}`)
  return new Response(text, { status: 202, headers: { 'content-type': 'application/json' } })
}

function listPosted(query: URLSearchParams, state: FakeMetrics): Response {
  if (!isSeconds(query.get('start')) || !isSeconds(query.get('end'))) return refusal(400, { errors: ['start, end'] })
  const tags = query.get('tags')?.split(',') ?? []
  const fits = state.posted.filter(event => tags.every(tag => (event.tags as string[]).includes(tag)))
  return Response.json({ events: state.listing ? fits : [], status: 'ok' })
}
