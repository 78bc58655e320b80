// Spans and lines of the log as OTLP has them in JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).

import type { Json } from '../json.ts'
import type { Masked } from '../secrets/masked.ts'
import type { Level, Line } from './log.ts'
import type { Span } from './trace.ts'

/** What is exported is of this process. */
export type Attributes = Record<string, string>

/** A line of the log as it waits for its export. */
export type LineRecord = {
  at: number
  level: Level
  event: string
  fields: { [name: string]: string | number | boolean }
}

const MOST_TEXT = 1_000
const KINDS = { internal: 1, server: 2, client: 3, producer: 4 } as const
const ERROR = 2
const SEVERITIES: Readonly<Record<Level, number>> = { debug: 5, info: 9, warn: 13, error: 17 }
const SCOPE = { name: 'cadre' }

/** The names of the lists in which a request has its items, from the outermost. */
type Lists = readonly [ofResources: string, ofScopes: string, ofItems: string]
export const OF_SPANS: Lists = ['resourceSpans', 'scopeSpans', 'spans']
export const OF_LINES: Lists = ['resourceLogs', 'scopeLogs', 'logRecords']

export function requestWith(
  forms: readonly string[],
  [ofResources, ofScopes, ofItems]: Lists,
  resource: Attributes,
): string {
  const about = JSON.stringify({ attributes: attributesOf(resource) })
  const scope = `{"scope":${JSON.stringify(SCOPE)},"${ofItems}":[${forms.join(',')}]}`
  return `{"${ofResources}":[{"resource":${about},"${ofScopes}":[${scope}]}]}`
}

export function spanForm({ trace, id, parent, name, kind, start, end, attributes, failed }: Span) {
  return {
    traceId: trace,
    spanId: id,
    ...(parent !== null && { parentSpanId: parent }),
    name: name.slice(0, MOST_TEXT),
    kind: KINDS[kind],
    startTimeUnixNano: nanoseconds(start),
    endTimeUnixNano: nanoseconds(Math.max(start, end)),
    attributes: attributesOf(attributes),
    ...(failed && { status: { code: ERROR } }),
  }
}

/** What a line says, apart from the objects in it, which may change after it was logged. */
export function lineAsRecord({ at, level, event, fields }: Line): LineRecord {
  const flat = Object.entries(fields).map(([name, value]) => [name, scalarOf(value)] as const)
  return { at, level, event, fields: Object.fromEntries(flat) }
}

function scalarOf(value: unknown): string | number | boolean {
  if (typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value
  return JSON.stringify(value) ?? String(value)
}

export function lineForm({ at, level, event, fields }: Masked<LineRecord>) {
  return {
    timeUnixNano: nanoseconds(at),
    observedTimeUnixNano: nanoseconds(at),
    severityNumber: SEVERITIES[level as Level],
    severityText: level,
    body: { stringValue: event.slice(0, MOST_TEXT) },
    ...(Object.keys(fields).length > 0 && { attributes: attributesOf(fields) }),
  }
}

const nanoseconds = (ms: number): string => `${Math.round(ms)}000000`

function attributesOf(attributes: Readonly<Record<string, string | number | boolean>>) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }))
}

function anyValue(value: string | number | boolean): { [kind: string]: Json } {
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'string') return { stringValue: value.slice(0, MOST_TEXT) }
  return Number.isSafeInteger(value) ? { intValue: `${value}` } : { doubleValue: value }
}
