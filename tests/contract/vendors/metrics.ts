// https://docs.datadoghq.com/api/latest/

import agent from '../../../agents/metrics.ts'
import { type Contract, LOST } from '../contract.ts'
import { at, type Call, isText } from '../recorder.ts'

const QUERY = 'GET /api/v1/query'
const MONITORS = 'GET /api/v1/monitor'
const EVENTS = 'GET /api/v2/events'
const POST = 'POST /api/v1/events'
const LOOK = 'GET /api/v1/events'
const KEYS = { api_key: 'canary-api-key', app_key: 'canary-app-key' }
const DAY = 86_400_000

function rules({ operation, headers, query, body }: Call) {
  return [
    headers.get('dd-api-key') !== KEYS.api_key && 'no dd-api-key',
    headers.get('dd-application-key') !== KEYS.app_key && 'no dd-application-key',
    operation === QUERY && !isSpan(query.get('from'), query.get('to'), 1_000) && 'from and to are no seconds',
    operation === LOOK && !isSpan(query.get('start'), query.get('end'), 1_000) && 'start and end are no seconds',
    operation === EVENTS && !isSpan(query.get('filter[from]'), query.get('filter[to]'), 1) && 'no milliseconds',
    operation === EVENTS && !/^[1-9][0-9]{0,3}$/.test(query.get('page[limit]') ?? '') && 'page[limit] is no size',
    operation === POST && !(isText(at(body, 'title')) && isText(at(body, 'text'))) && 'no title or no text',
  ]
}

/** Whether both are whole numbers of `unit` milliseconds, and lie within days of now. */
function isSpan(from: string | null, to: string | null, unit: number): boolean {
  const isNear = (text: string | null) =>
    /^[0-9]+$/.test(text ?? '') && Math.abs(Number(text) * unit - Date.now()) < 30 * DAY
  return isNear(from) && isNear(to) && Number(from) < Number(to)
}

const event = JSON.stringify({ title: 'Deployed', text: 'Version 1.2.3', tags: ['service:web'], alert_type: 'success' })
const post = { action: 'post_event', phase: { target_entries: [{ name: 'deployed', file: 'event.json' }] } }

export const metrics: Contract = {
  document: 'metrics',
  name: 'metrics',
  agent,
  settings: url => ({ ...KEYS, base_url: url }),
  rules,
  doctor: { calls: ['GET /api/v1/validate', QUERY, MONITORS, EVENTS] },
  cases: [
    {
      title: 'a query over a window',
      action: 'query_metrics',
      phase: { sources: [{ name: 'cpu.json', ref: 'avg:system.cpu.idle{*}', window: '2h' }] },
      calls: [QUERY],
    },
    {
      title: 'monitors by name and tags, of two pages',
      action: 'get_monitors',
      phase: {
        sources: [
          { name: 'monitors.json', query: 'web', tags: ['env:prod', 'host:a'], monitor_tags: 'team:web', limit: 1_500 },
        ],
      },
      changes: { [MONITORS]: [answer => Array(1_000).fill(answer[0])] },
      calls: [MONITORS, MONITORS],
    },
    {
      title: 'events of two pages',
      action: 'get_events',
      phase: { sources: [{ name: 'events.json', query: 'source:deploy', window: '7d' }] },
      changes: { [EVENTS]: [answer => answer, answer => ({ ...answer, meta: {} })] },
      calls: [EVENTS, EVENTS],
    },
    { title: 'an event', ...post, files: { 'event.json': event }, calls: [POST] },
    {
      title: 'an event that may be there already',
      ...post,
      files: { 'event.json': event },
      changes: { [POST]: [LOST] },
      calls: [POST, LOOK, LOOK, LOOK],
      state: 'awaiting_input',
    },
  ],
}
