// A receiver of traces and logs: it takes OTLP/HTTP in JSON and holds each request against OpenTelemetry's own definition, in the
// code that OpenTelemetry generates from it.

import root from '@opentelemetry/otlp-proto-exporter-base/build/src/generated/root'

/** The generated code has these functions; its types do not say so. */
const { trace, logs } = (root as unknown as Generated).opentelemetry.proto.collector
interface Generated {
  opentelemetry: {
    proto: {
      collector: {
        trace: { v1: { ExportTraceServiceRequest: Coder } }
        logs: { v1: { ExportLogsServiceRequest: Coder } }
      }
    }
  }
}
const CODERS: Record<string, Coder> = {
  '/v1/traces': trace.v1.ExportTraceServiceRequest,
  '/v1/logs': logs.v1.ExportLogsServiceRequest,
}
interface Coder {
  fromObject(plain: object): object
  verify(message: object): string | null
  encode(message: object): { finish(): Uint8Array }
  decode(bytes: Uint8Array): object
  toObject(message: object, options: object): object
}

type Attribute = { key: string; value: { stringValue?: string; intValue?: string; boolValue?: boolean } }

interface Received {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: Attribute[]
  status?: { code: number }
}

export interface ReceivedLine {
  resource: Record<string, string>
  level: string
  severity: number
  event: string
  attributes: Record<string, string>
}

export interface ReceivedSpan {
  service: string
  trace: string
  id: string
  parent: string | null
  name: string
  kind: number
  ms: number
  failed: boolean
  attributes: Record<string, string>
}

/**
 * `answer` decides what becomes of a request; the default takes it. It takes the same below `/elsewhere`.
 */
export function otlpReceiver(answer: (request: Request) => Response | null | Promise<Response | null> = () => null) {
  const spans: ReceivedSpan[] = []
  const lines: ReceivedLine[] = []
  const faults: string[] = []
  let text = ''
  let lastResource: { key: string; value: object }[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 255,
    async fetch(request) {
      const early = await answer(request)
      if (early) return early
      const bytes = new Uint8Array(await request.arrayBuffer())
      const body = new TextDecoder().decode(
        request.headers.get('content-encoding') === 'gzip' ? Bun.gunzipSync(bytes) : bytes,
      )
      text += body
      const coder = CODERS[new URL(request.url).pathname.replace(/^\/elsewhere/, '')]
      const fault = coder ? whyInvalid(coder, JSON.parse(body)) : 'nothing is taken there'
      if (fault !== null) {
        faults.push(`${request.url}: ${fault}`)
        return new Response(fault, { status: 400 })
      }
      const { resourceSpans = [], resourceLogs = [] } = JSON.parse(body)
      for (const { resource, scopeLogs } of resourceLogs) {
        for (const { logRecords } of scopeLogs) {
          for (const { body, severityText, severityNumber, attributes } of logRecords) {
            const found = { level: severityText, severity: severityNumber, event: body.stringValue }
            lines.push({ ...found, resource: valuesOf(resource.attributes), attributes: valuesOf(attributes) })
          }
        }
      }
      for (const { resource, scopeSpans } of resourceSpans) {
        lastResource = resource.attributes
        const service = resource.attributes[0].value.stringValue
        for (const { spans: received } of scopeSpans)
          spans.push(...received.map((span: Received) => read(span, service)))
      }
      return Response.json({})
    },
  })
  return {
    url: server.url.origin,
    spans,
    lines,
    faults,
    /** What the last spans were of. */
    resource: () => lastResource,
    /** Everything that was received. */
    text: () => text,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

const valuesOf = (attributes: Attribute[] = []): Record<string, string> =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, String(Object.values(value)[0])]))

function read(span: Received, service: string): ReceivedSpan {
  const { traceId, spanId, parentSpanId, name, kind, attributes, status } = span
  return {
    ...{ service, trace: traceId, id: spanId, parent: parentSpanId ?? null, name, kind },
    ms: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
    failed: status?.code === 2,
    attributes: valuesOf(attributes),
  }
}

/** What is wrong with a request, or null. In OTLP's JSON ids are in hexadecimal; all else is that of Protocol Buffers. */
function whyInvalid(coder: Coder, body: unknown): string | null {
  const plain = JSON.parse(JSON.stringify(body), (key, value) =>
    /^(trace|span|parentSpan)Id$/i.test(key) ? Buffer.from(value, 'hex').toString('base64') : value,
  )
  try {
    const message = coder.fromObject(plain)
    const fault = coder.verify(message)
    if (fault) return fault
    const bytes = coder.encode(message).finish()
    const again = coder.toObject(coder.decode(bytes), {
      bytes: String,
      longs: String,
    })
    // A name that the definition does not have would be missing here.
    return Bun.deepEquals(again, plain) ? null : `${JSON.stringify(again)} is left of ${JSON.stringify(plain)}`
  } catch (error) {
    return String(error)
  }
}
