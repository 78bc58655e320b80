// A receiver of traces: it takes OTLP/HTTP in JSON and holds each request against OpenTelemetry's own definition, in the
// code that OpenTelemetry generates from it.

import root from '@opentelemetry/otlp-proto-exporter-base/build/src/generated/root'

/** The generated code has these functions; its types do not say so. */
const { ExportTraceServiceRequest } = (root as unknown as Generated).opentelemetry.proto.collector.trace.v1
interface Generated {
  opentelemetry: {
    proto: {
      collector: {
        trace: { v1: { ExportTraceServiceRequest: Coder } }
      }
    }
  }
}
interface Coder {
  fromObject(plain: object): object
  verify(message: object): string | null
  encode(message: object): { finish(): Uint8Array }
  decode(bytes: Uint8Array): object
  toObject(message: object, options: object): object
}

interface Received {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  startTimeUnixNano: string
  endTimeUnixNano: string
  attributes: { key: string; value: { stringValue?: string; intValue?: string } }[]
  status?: { code: number }
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

/** `answer` decides what becomes of a request; the default takes it. */
export function traceReceiver(answer: (request: Request) => Response | null | Promise<Response | null> = () => null) {
  const spans: ReceivedSpan[] = []
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
      const body = await request.text()
      text += body
      const fault = whyInvalid(JSON.parse(body))
      if (new URL(request.url).pathname !== '/v1/traces' || fault !== null) {
        faults.push(`${request.url}: ${fault}`)
        return new Response(fault, { status: 400 })
      }
      for (const { resource, scopeSpans } of JSON.parse(body).resourceSpans) {
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
    faults,
    /** What the last spans were of. */
    resource: () => lastResource,
    /** Everything that was received. */
    text: () => text,
    [Symbol.asyncDispose]: () => server.stop(true),
  }
}

function read(span: Received, service: string): ReceivedSpan {
  const { traceId, spanId, parentSpanId, name, kind, attributes, status } = span
  const values = attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue!])
  return {
    ...{ service, trace: traceId, id: spanId, parent: parentSpanId ?? null, name, kind },
    ms: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e6,
    failed: status?.code === 2,
    attributes: Object.fromEntries(values),
  }
}

/** What is wrong with a request, or null. In OTLP's JSON ids are in hexadecimal; all else is that of Protocol Buffers. */
function whyInvalid(body: unknown): string | null {
  const plain = JSON.parse(JSON.stringify(body), (key, value) =>
    /^(trace|span|parentSpan)Id$/i.test(key) ? Buffer.from(value, 'hex').toString('base64') : value,
  )
  try {
    const message = ExportTraceServiceRequest.fromObject(plain)
    const fault = ExportTraceServiceRequest.verify(message)
    if (fault) return fault
    const bytes = ExportTraceServiceRequest.encode(message).finish()
    const again = ExportTraceServiceRequest.toObject(ExportTraceServiceRequest.decode(bytes), {
      bytes: String,
      longs: String,
    })
    // A name that the definition does not have would be missing here.
    return Bun.deepEquals(again, plain) ? null : `${JSON.stringify(again)} is left of ${JSON.stringify(plain)}`
  } catch (error) {
    return String(error)
  }
}
