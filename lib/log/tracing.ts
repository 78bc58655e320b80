// Opens the export of traces. Without `OTEL_EXPORTER_OTLP_ENDPOINT` nothing of it is loaded.

import { CadreError } from '../error.ts'
import type { Log } from './log.ts'
import type { Tracer } from './trace.ts'

type Environment = Record<string, string | undefined>

/** `service` is the name of this program, unless `OTEL_SERVICE_NAME` names it. Throws `invalid_request`. */
export async function openTracer(
  env: Environment,
  service: string,
  log: Log,
  build: () => { version: string; commit: string | null },
): Promise<Tracer | null> {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_EXPORTER_OTLP_HEADERS: headers } = env
  if (!endpoint) return null
  if (!/^https?:\/\//.test(endpoint) || !URL.canParse(endpoint)) {
    throw new CadreError('invalid_request', 'OTEL_EXPORTER_OTLP_ENDPOINT: expected http://host:4318 or https://…')
  }
  const { OtlpTracer } = await import('./otlp.ts')
  const { version, commit } = build()
  const resource = {
    'service.name': env.OTEL_SERVICE_NAME || service,
    'service.version': version,
    // https://opentelemetry.io/docs/specs/semconv/registry/attributes/vcs/
    ...(commit !== null && { 'vcs.ref.head.revision': commit }),
  }
  const url = `${endpoint.replace(/\/+$/, '')}/v1/traces`
  return new OtlpTracer({ url, headers: tracingHeaders(headers), resource, log })
}

/** `name=value,…` with values that are percent-encoded. */
export function tracingHeaders(text: string | undefined): Record<string, string> {
  const pairs = (text ?? '').split(',').flatMap(pair => {
    const [, name, value] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? []
    return name === undefined ? [] : [[name, decoded(value!)] as const]
  })
  return Object.fromEntries(pairs)
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
