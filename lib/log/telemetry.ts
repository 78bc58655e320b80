// Opens the export of traces and logs by OpenTelemetry's protocol. Without an address for them nothing of it is loaded.

import { hostname } from 'node:os'
import type { Json } from '../json.ts'
import { keyValues } from '../key-values.ts'
import type { Masked } from '../secrets/masked.ts'
import type { Line, ProcessLog } from './log.ts'
import type { Attributes } from './otlp-forms.ts'
import type { Signal } from './otlp-options.ts'
import type { Tracer } from './trace.ts'

export interface Telemetry {
  /** Null where traces are not exported. */
  readonly tracer: Tracer | null
  /** Says more of this process than was known when it started. */
  describe(more: Attributes): void
  /** Exports the lines of the log, those since the start included. */
  exportLines(mask: <T extends Json>(value: T) => Masked<T>): void
  /** What is exported, and how much of it was dropped. */
  dropped(): readonly (readonly [Signal, number])[]
  /** Exports what is left, for 1.5 s at most. */
  close(): Promise<void>
}

type Environment = Record<string, string | undefined>

/** The most lines of a start that wait until secrets can be masked. */
const MOST_EARLY = 1_000

/**
 * `service` is the name of this program, unless the environment names it. Returns null where nothing is to be exported.
 * Throws `invalid_request`.
 */
export async function openTelemetry(
  env: Environment,
  service: string,
  log: ProcessLog,
  build: () => { version: string; commit: string | null },
): Promise<Telemetry | null> {
  if (!isAsked(env)) return null
  const { otlpTargets } = await import('./otlp-options.ts')
  const { traces, logs } = otlpTargets(env, log)
  const { OtlpExporter } = await import('./otlp.ts')
  const { lineAsRecord, lineForm, OF_LINES, OF_SPANS, requestWith, spanForm } = await import('./otlp-forms.ts')
  const { version, commit } = build()
  const known: Attributes = {
    'service.name': service,
    'service.version': version,
    // https://opentelemetry.io/docs/specs/semconv/registry/attributes/vcs/
    ...(commit !== null && { 'vcs.ref.head.revision': commit }),
    'host.name': hostname(),
  }
  const given = keyValues(env.OTEL_RESOURCE_ATTRIBUTES)
  if (env.OTEL_SERVICE_NAME) given['service.name'] = env.OTEL_SERVICE_NAME
  const request = (lists: typeof OF_SPANS) => (forms: readonly string[]) =>
    requestWith(forms, lists, { ...known, ...given })
  const spans =
    traces && new OtlpExporter({ target: traces, log, what: 'spans', form: spanForm, request: request(OF_SPANS) })
  const lines =
    logs && new OtlpExporter({ target: logs, log, what: 'log lines', form: lineForm, request: request(OF_LINES) })
  const early: Line[] = []
  let take = (line: Line) => {
    if (early.length < MOST_EARLY) early.push(line)
    else lines?.drop(1)
  }
  if (lines) log.follow(line => take(line))
  return {
    tracer: spans ?? null,
    describe: more => void Object.assign(known, more),
    exportLines(mask) {
      take = line => {
        lines?.add(mask(lineAsRecord(line)))
      }
      early.splice(0).forEach(take)
    },
    dropped: () => [
      ...(spans ? [['traces', spans.dropped] as const] : []),
      ...(lines ? [['logs', lines.dropped] as const] : []),
    ],
    close: async () => void (await Promise.all([spans?.close(), lines?.close()])),
  }
}

/** https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/ */
function isAsked(env: Environment): boolean {
  const addresses = [
    env.OTEL_EXPORTER_OTLP_ENDPOINT,
    env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT,
    env.OTEL_EXPORTER_OTLP_LOGS_ENDPOINT,
  ]
  return env.OTEL_SDK_DISABLED?.toLowerCase() !== 'true' && addresses.some(Boolean)
}
