// The variables of OpenTelemetry's OTLP exporters (https://opentelemetry.io/docs/specs/otel/protocol/exporter/). Each may be
// set for one signal, which then replaces what is set for both. An empty one is as if it were not set, and a value that is
// not understood is named in the log and ignored, except for an address.

import { readFileSync } from 'node:fs'
import { CadreError, messageOf } from '../error.ts'
import { keyValues } from '../key-values.ts'
import type { Log } from './log.ts'

export type Signal = 'traces' | 'logs'

export interface OtlpTarget {
  url: string
  headers: Record<string, string>
  timeoutMs: number
  gzip: boolean
  tls?: { ca?: string; cert?: string; key?: string }
}

const TIMEOUT_MS = 10_000
const OPTIONS = [
  ...(['ENDPOINT', 'HEADERS', 'TIMEOUT', 'COMPRESSION', 'PROTOCOL'] as const),
  ...(['CERTIFICATE', 'CLIENT_CERTIFICATE', 'CLIENT_KEY'] as const),
]
type Environment = Record<string, string | undefined>

/** Where each signal goes; without those that are not exported. Throws `invalid_request`. */
export function otlpTargets(env: Environment, log: Pick<Log, 'warn'>): { traces?: OtlpTarget; logs?: OtlpTarget } {
  const traces = isExported('OTEL_TRACES_EXPORTER', env.OTEL_TRACES_EXPORTER, log) && targetOf('traces', env, log)
  const logs = isExported('OTEL_LOGS_EXPORTER', env.OTEL_LOGS_EXPORTER, log) && targetOf('logs', env, log)
  return { ...(traces && { traces }), ...(logs && { logs }) }
}

function isExported(name: string, value: string | undefined, log: Pick<Log, 'warn'>): boolean {
  const names = (value || 'otlp').split(',').map(each => each.trim())
  const unknown = names.filter(each => each !== 'otlp' && each !== 'none')
  if (unknown.length > 0) log.warn('an exporter that cadre does not have is ignored', { variable: name, unknown })
  return !names.includes('none')
}

function targetOf(signal: Signal, env: Environment, log: Pick<Log, 'warn'>): OtlpTarget | null {
  const option = (name: (typeof OPTIONS)[number]) => {
    const own = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_${name}`
    const common = `OTEL_EXPORTER_OTLP_${name}`
    return { variable: env[own] ? own : common, own: Boolean(env[own]), value: env[own] || env[common] || '' }
  }
  const ignore = (name: (typeof OPTIONS)[number], expected: string) =>
    log.warn('a variable is ignored', { variable: option(name).variable, expected })
  const endpoint = option('ENDPOINT')
  if (endpoint.value === '') return null
  const address = URL.parse(endpoint.value)
  if (!address || !/^https?:\/\//.test(endpoint.value)) {
    throw new CadreError('invalid_request', `${endpoint.variable}: expected http://host:4318 or https://…`)
  }
  // An address of one signal is taken as it is.
  if (!endpoint.own) address.pathname = `${address.pathname.replace(/\/+$/, '')}/v1/${signal}`
  const { value: protocol } = option('PROTOCOL')
  if (protocol !== '' && protocol !== 'http/json') ignore('PROTOCOL', 'http/json, in which cadre exports')
  const { value: compression } = option('COMPRESSION')
  if (!['', 'gzip', 'none'].includes(compression)) ignore('COMPRESSION', 'gzip or none')
  const timeout = option('TIMEOUT').value
  const isTimeout = /^\d{1,9}$/.test(timeout) && Number(timeout) > 0
  if (timeout !== '' && !isTimeout) ignore('TIMEOUT', 'milliseconds')
  const file = (name: (typeof OPTIONS)[number]) => readable(option(name))
  const [ca, cert, key] = [file('CERTIFICATE'), file('CLIENT_CERTIFICATE'), file('CLIENT_KEY')]
  return {
    url: address.href,
    headers: headersIn(option('HEADERS').value, () => ignore('HEADERS', 'name=value,… as HTTP has headers')),
    timeoutMs: isTimeout ? Number(timeout) : TIMEOUT_MS,
    gzip: compression === 'gzip',
    ...((ca || cert || key) && { tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) } }),
  }
}

/** Without those with which no request could be sent. Nothing is said of their names, which may be parts of values. */
function headersIn(text: string, ignored: () => void): Record<string, string> {
  const all = Object.entries(keyValues(text))
  const sent = all.filter(([name, value]) => {
    try {
      return new Headers([[name, value]])
    } catch {
      return false
    }
  })
  if (sent.length < all.length) ignored()
  return Object.fromEntries(sent)
}

function readable({ variable, value }: { variable: string; value: string }): string | null {
  if (value === '') return null
  try {
    return readFileSync(value, 'utf8')
  } catch (error) {
    throw new CadreError('invalid_request', `${variable}: its file cannot be read: ${messageOf(error)}`)
  }
}
