// metrics: queries metrics, monitors and events in Datadog, and posts events.
//
//   settings: api_key, app_key, site? (default datadoghq.com; datadoghq.eu, us5.datadoghq.com, EU …), base_url? (instead
//             of https://api.<site>)
//   query_metrics  sources: [{ name, ref: query, window? }]               the last hour; `data.series`
//   get_monitors   sources: [{ name, query?, tags?, monitor_tags?, limit? }]   by name, by tags of what is watched, and
//                                                                         by tags of the monitors themselves
//   get_events     sources: [{ name, query?, window?, limit? }]           the last 24 hours, newest first
//   post_event     target_entries: [{ name, file }]                       JSON: { title, text, tags?, alert_type?, … }
//
// Permissions of the application key: timeseries_query, monitors_read and events_read. An event is posted with the API
// key. Datadog also answers 403 to a wrong key. An event has the tag `cadre_key:<key>`, by which a
// repetition after a lost reply looks for it. Datadog accepts events before it lists them: after two minutes an event that
// is not found may still appear later, so a person decides.
// https://docs.datadoghq.com/api/latest/metrics/#query-timeseries-points
// https://docs.datadoghq.com/api/latest/monitors/#get-all-monitors
// https://docs.datadoghq.com/api/latest/events/

import {
  type AgentContext,
  AgentError,
  type AgentResult,
  agent,
  BaseUrl,
  DURATION_PATTERN,
  entryOf,
  type Json,
  type JsonObject,
  jsonApi,
  Limit,
  listingOf,
  needsOne,
  parseDuration,
  readText,
  secret,
  Type,
  writeListing,
} from 'cadre'
import {
  type Call,
  DATADOG_SITES,
  datadogApi,
  datadogApp,
  datadogSite,
  filePath,
  foundAmong,
  isObject,
  lacking,
  nullable,
} from 'cadre/vendors'

const HOUR = 3_600_000
const DAY = 24 * HOUR
const PAGE_MOST = 1_000
/** Maximum size of `data.series` with all points. A larger result has its points only in the file. */
const SERIES_BYTES = 256 * 1024
/** Maximum size of the file of an event. */
const FILE_MOST = 1024 * 1024
/** Maximum length of an event's text. Datadog silently cuts off the rest. */
const TEXT_MOST = 4_000
/** How far back a posted event is searched for; `date_happened` may be at most 18 hours old. */
const LOOK_BACK = 7 * DAY

const Settings = Type.Object({
  api_key: secret({ description: 'An API key of the organization (Organization Settings → API Keys).' }),
  app_key: secret({
    description: 'An application key with timeseries_query, monitors_read and events_read (→ Application Keys).',
  }),
  site: Type.Optional(
    Type.String({
      minLength: 1,
      default: 'datadoghq.com',
      description: 'The site of the organization, such as datadoghq.eu; a name such as EU will do.',
    }),
  ),
  base_url: BaseUrl,
})
type Context = AgentContext<Type.Static<typeof Settings>>

const Text = Type.String({ minLength: 1 })
const textOf = (description: string) => Type.String({ minLength: 1, description })
const windowOf = (description: string) => Type.Optional(Type.String({ pattern: DURATION_PATTERN, description }))
const tagsOf = (description: string) =>
  Type.Optional(
    Type.Union([Text, Type.Array(Text, { minItems: 1 })], { 'x-expected': 'a tag or a list of tags', description }),
  )

interface Monitor extends JsonObject {
  id: number
  name: string
  type: string
}

interface ListedEvent extends JsonObject {
  id: string
}

/** The record of a posted event. `id` has more digits than a number can hold exactly, so `id_str` is used. */
interface PostedEvent {
  id?: number
  id_str?: string
  url?: string
  tags?: string[]
}

const Shown = Type.Object({ id: Type.Union([Type.Integer(), Text]) })
const Posted = Type.Object({ id: Type.Optional(Type.Integer()), id_str: Type.Optional(Text) }, needsOne('id', 'id_str'))
/** What Datadog answers at least: anything else comes from somebody else. */
const Reply = {
  validation: Type.Object({ valid: Type.Boolean() }),
  series: Type.Object(
    { status: Type.Optional(Text), series: Type.Optional(Type.Array(Type.Object({}))) },
    needsOne('status', 'series'),
  ),
  monitors: Type.Array(Shown),
  events: Type.Object({ data: Type.Optional(Type.Array(Shown)) }, needsOne('data', 'meta')),
  posted: Type.Object({ event: Posted }),
  postedEvents: Type.Object({ events: Type.Array(Posted) }),
}

const described = (description: string) => Type.String({ description })
const Tags = Type.Array(Type.String(), { description: 'Its tags.' })
const Data = {
  series: Type.Object({
    series: Type.Array(Type.Object({}, { additionalProperties: true }), {
      description: 'Each with `scope`, such as host:web-1, and `pointlist` of [ms, value] up to 256 KiB.',
    }),
    total: Type.Integer({ description: 'How many series there are.' }),
    truncated: Type.Boolean({ description: 'Whether their points are only in the file.' }),
  }),
  monitors: listingOf({
    id: Type.Integer({ description: 'The id of the monitor.' }),
    name: described('Its name.'),
    type: described('Its type, such as `metric alert`.'),
    status: nullable(Type.String(), { description: 'Its state, such as `OK` or `Alert`.' }),
    tags: Tags,
    url: described('Its address in a browser.'),
  }),
  events: listingOf({
    id: described('The id of the event.'),
    timestamp: nullable(Type.String(), { description: 'When it happened.' }),
    title: nullable(Type.String(), { description: 'Its title, or else its message.' }),
    tags: Tags,
  }),
  posted: Type.Object({ id: described('The id of the event.'), url: described('Its address in a browser.') }),
}

/** What is posted: these, and what else the vendor takes. */
interface NewEvent extends JsonObject {
  title: string
  text: string
}

export default agent({
  type: 'connector',
  version: '1.0.0',
  description: 'Queries metrics, monitors and events in Datadog, and posts events.',
  settings: Settings,
  addresses: settings => [baseOf({ settings })],
  account: apiOf,
  check({ site, base_url }) {
    // With base_url, the site is not used.
    const isUnknown = site !== undefined && base_url === undefined && datadogSite(site) === null
    return {
      site:
        isUnknown &&
        `must be a site of Datadog: write one of ${DATADOG_SITES}, or the address of another server as base_url`,
    }
  },
  async doctor(context) {
    const call = datadog(context)
    await call('validate the API key', '/api/v1/validate', { reply: Reply.validation })
    const { from, to } = span(undefined, HOUR)
    const probe = { from: seconds(from), to: seconds(to), query: 'avg:system.cpu.idle{*}' }
    const missing = await lacking({
      timeseries_query: () => call('query metrics', '/api/v1/query', { query: probe, reply: Reply.series }),
      monitors_read: () =>
        call('get monitors', '/api/v1/monitor', { query: { page: 0, page_size: 1 }, reply: Reply.monitors }),
      events_read: () => eventsPage(eventsOf(undefined, HOUR), 1, undefined, context),
    })
    const doubt = missing.length === 3 ? '; check app_key' : ''
    return { who: null, missing, text: `${baseOf(context)}, api_key is valid${doubt}` }
  },
  actions: {
    query_metrics: {
      description: 'Runs a metrics query over the last hour, or over another window that ends now.',
      direction: 'source',
      effect: 'read',
      permissions: ['timeseries_query'],
      example: { name: 'cpu.json', ref: 'avg:system.cpu.user{env:prod} by {host}' },
      entry: entryOf({
        ref: textOf('The query, such as `avg:system.cpu.user{env:prod} by {host}`.'),
        window: windowOf('How far back the query looks; default 1h.'),
      }),
      data: Data.series,
      async run({ name, ref, window }, context) {
        const { from, to } = span(window, HOUR)
        const query = { from: seconds(from), to: seconds(to), query: ref }
        const options = { query, scope: 'timeseries_query', reply: Reply.series }
        const reply = await datadog(context)('query metrics', '/api/v1/query', options)
        if (reply.status === 'error') {
          throw new AgentError(`[${context.callName}] query metrics: ${reply.error}`, {
            code: 'rejected',
            hint: 'check ref',
          })
        }
        await context.write(name, reply)
        const series = (reply.series ?? []) as JsonObject[]
        const isWhole = Buffer.byteLength(JSON.stringify(series)) <= SERIES_BYTES
        const shown: Json[] = isWhole ? series : series.map(({ pointlist: _, ...rest }) => rest)
        return { text: `${series.length} series`, data: { series: shown, total: series.length, truncated: !isWhole } }
      },
    },
    get_monitors: {
      description: 'Lists monitors with their states, by name and tags.',
      direction: 'source',
      effect: 'read',
      permissions: ['monitors_read'],
      example: { name: 'monitors.json', monitor_tags: 'team:core' },
      entry: entryOf({
        query: Type.Optional(textOf('A part of the names of the monitors.')),
        tags: tagsOf('Tags of the scope: of what the monitors watch, such as `host:web-1`. All must hold.'),
        monitor_tags: tagsOf('Tags of the monitors themselves, such as `service:web` or `team:core`. All must hold.'),
        limit: Limit,
      }),
      data: Data.monitors,
      async run({ name, query, tags, monitor_tags, limit = 100 }, context) {
        const page_size = pageSize(limit)
        const data = await writeListing<Monitor, number>(context, {
          name,
          limit,
          async page(page = 0) {
            const asked = { page, page_size, name: query, tags: listed(tags), monitor_tags: listed(monitor_tags) }
            const options = { query: asked, scope: 'monitors_read', reply: Reply.monitors }
            const items = await datadog(context)<Monitor[]>('get monitors', '/api/v1/monitor', options)
            return { items, next: items.length < page_size ? null : page + 1 }
          },
          brief: ({ id, name, type, overall_state = null, tags = [] }) => {
            return { id, name, type, status: overall_state, tags, url: `${appOf(context)}/monitors/${id}` }
          },
        })
        return { text: `${data.items.length} monitors`, data }
      },
    },
    get_events: {
      description: 'Lists events of the last day, or of another window, the newest first.',
      direction: 'source',
      effect: 'read',
      permissions: ['events_read'],
      example: { name: 'events.json' },
      entry: entryOf({
        query: Type.Optional(
          textOf('A search for events, such as `source:deploy service:web`; all if it is left out.'),
        ),
        window: windowOf('How far back the search goes; default 24h.'),
        limit: Limit,
      }),
      data: Data.events,
      async run({ name, query, window, limit }, context) {
        const asked = { ...eventsOf(window, DAY), 'filter[query]': query }
        const data = await writeListing(context, {
          name,
          limit,
          page: (cursor: string | undefined, wanted, fitting) =>
            eventsPage(asked, pageSize(wanted, fitting), cursor, context),
          brief: briefEvent,
        })
        return { text: `${data.items.length} events`, data }
      },
    },
    post_event: {
      description: 'Posts an event to the event stream.',
      direction: 'target',
      effect: 'once',
      // To look for the event after a lost reply.
      permissions: ['events_read'],
      example: { name: 'event', file: 'files/write/event.json' },
      entry: entryOf({
        file: filePath(
          'A JSON file with the event: `title` and `text`, and whatever else Datadog takes, such as `tags`.',
        ),
      }),
      data: Data.posted,
      async run({ file }, context) {
        const event = await readEvent(context, file)
        const body = { ...event, tags: [...(event.tags ?? []), tagOf(context)] }
        const call = datadog(context)<{ event: PostedEvent }>
        const options = { method: 'POST', body, reply: Reply.posted }
        const reply = await call('post an event', '/api/v1/events', options)
        return posted(reply.event, context)
      },
      settles: '2m',
      async find(_, context) {
        const now = Date.now()
        const query = {
          start: seconds(now - LOOK_BACK),
          end: seconds(now + HOUR),
          tags: tagOf(context),
          unaggregated: true,
        }
        const call = datadog(context)<{ events: PostedEvent[] }>
        const options = { query, scope: 'events_read', reply: Reply.postedEvents }
        const { events } = await call('look for the event', '/api/v1/events', options)
        const mine = events.filter(event => event.tags?.includes(tagOf(context)))
        if (mine.length > 0) return foundAmong(mine.map(event => posted(event, context)))
        throw new AgentError(`[${context.callName}] the event is not listed yet, but Datadog may still list it later`, {
          code: 'unknown',
          retryable: true,
        })
      },
    },
  },
})

function apiOf(context: Context) {
  const { api_key, app_key } = context.settings
  const headers = { 'dd-api-key': api_key, 'dd-application-key': app_key }
  return { setting: 'api_key or app_key', base: baseOf(context), headers }
}

function datadog(context: Context) {
  const api = apiOf(context)
  const { setting } = api
  const call = jsonApi(context, api)
  return <T = JsonObject>(doing: string, path: string, options: Call = {}) => {
    const lacks = options.scope ? `, or lacks the permission: ${options.scope}` : ''
    return call<T>(doing, path, {
      ...options,
      hints: { 403: `agents.${context.agent}.${setting} is wrong or belongs to another site${lacks}` },
    })
  }
}

function baseOf({ settings: { base_url, site } }: Pick<Context, 'settings'>): string {
  return datadogApi(site, base_url)
}

function appOf(context: Context): string {
  return datadogApp(baseOf(context))
}

function listed(tags: string | string[] | undefined): string | undefined {
  return tags && [tags].flat().join(',')
}

/** The time span of a window, in epoch milliseconds. */
function span(window: string | undefined, standard: number): { from: number; to: number } {
  const to = Date.now()
  return { from: to - (window === undefined ? standard : parseDuration(window)!), to }
}

function eventsOf(window: string | undefined, standard: number) {
  const { from, to } = span(window, standard)
  return { 'filter[from]': from, 'filter[to]': to, sort: '-timestamp' }
}

function seconds(ms: number): number {
  return Math.floor(ms / 1_000)
}

async function eventsPage(
  asked: Record<string, string | number | undefined>,
  size: number,
  cursor: string | undefined,
  context: Context,
) {
  const call = datadog(context)<{ data?: ListedEvent[]; meta?: { page?: { after?: string } } }>
  const query = { ...asked, 'page[limit]': size, 'page[cursor]': cursor }
  const options = { query, scope: 'events_read', reply: Reply.events }
  const { data = [], meta } = await call('get events', '/api/v2/events', options)
  return { items: data, next: meta?.page?.after }
}

/**
 * The size of pages with which `limit` items end in the middle of a page, which shows whether there are more items than
 * that: a full page has a cursor even when nothing follows it. At most `fitting` items are asked for while more than that
 * are needed.
 */
function pageSize(limit: number, fitting = PAGE_MOST): number {
  if (limit > fitting && fitting < PAGE_MOST) return fitting
  if (limit < PAGE_MOST) return limit + 1
  return limit % PAGE_MOST === 0 ? PAGE_MOST - 1 : PAGE_MOST
}

function briefEvent({ id, attributes }: ListedEvent): JsonObject {
  const { timestamp = null, message = null, tags = [], attributes: more } = (attributes ?? {}) as JsonObject
  return { id, timestamp, title: ((more as JsonObject | undefined)?.title ?? message) as Json, tags }
}

/** Reads the event in a JSON file. Throws an AgentError `invalid_request` that names the problem. */
async function readEvent(context: Context, file: string): Promise<NewEvent & { tags?: string[] }> {
  const text = await readText(context, file, FILE_MOST)
  const problem = (what: string) =>
    new AgentError(`[${context.callName}] ${file} ${what}`, {
      code: 'invalid_request',
      hint: 'write an event as JSON: {"title": …, "text": …, "tags"?: […], "alert_type"?: …}',
      sent: 'no',
    })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw problem('must be JSON')
  }
  const event = isObject(value) ? value : {}
  for (const field of ['title', 'text'])
    if (typeof event[field] !== 'string') throw problem(`must have the text field \`${field}\``)
  if ((event.text as string).length > TEXT_MOST) throw problem(`has a text of more than ${TEXT_MOST} characters`)
  if (event.tags !== undefined && !Array.isArray(event.tags)) throw problem('must have a list as its `tags`')
  return event as NewEvent & { tags?: string[] }
}

function tagOf({ key }: Context): string {
  return `cadre_key:${key}`
}

function posted({ id, id_str, url }: PostedEvent, context: Context): AgentResult {
  const event = { id: id_str ?? String(id), url: URL.parse(url ?? '', appOf(context))?.href ?? appOf(context) }
  return { text: `posted event ${event.id}`, data: event, external: event }
}
