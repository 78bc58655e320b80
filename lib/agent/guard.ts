// Protection against SSRF. Every URL, redirects included, passes `vet`, and the connection is made to exactly the
// address that was vetted, so that a second DNS answer cannot lead elsewhere. A proxy is given the name: the name is
// vetted here as well, but the proxy resolves it again.

import { lookup as resolve } from 'node:dns/promises'
import { messageOf } from '../error.ts'
import { bareHost, isAddress, isAllowed, isMetadataName, judge } from './address.ts'
import { AgentError } from './define.ts'

export interface Guard {
  /**
   * Origins that are always allowed: those of URLs in the agent's settings, and those of literal `url`s in a team that
   * was started from a path.
   */
  origins: ReadonlySet<string>
  /** `network.allow` of settings.yml: CIDRs, addresses, host names. */
  allow: readonly string[]
  lookup: Lookup
  /** Read for HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY. */
  env: Record<string, string | undefined>
}

/** Resolves a name to all of its addresses. */
export type Lookup = (host: string) => Promise<string[]>

/**
 * IPv4 addresses come first: a host without an IPv6 route may still get IPv6 addresses, and each would cost a time-out.
 */
export const systemLookup: Lookup = async host =>
  (await resolve(host, { all: true, order: 'ipv4first' })).map(({ address }) => address)

/** How to reach a vetted URL: directly, with one URL for each address, tried in order, or by name through a proxy. */
export interface Route {
  urls: URL[]
  /** The name for the `host` header and the certificate; null when `urls` contains the URL as it was given. */
  name: string | null
  /** Null means no proxy, even if the environment names one. */
  proxy: string | null
}

/** The origins of all URLs in an agent's settings, at any depth. */
export function originsOf(value: unknown): string[] {
  if (typeof value === 'string') {
    const url = /^https?:\/\//i.test(value) ? URL.parse(value) : null
    return url ? [url.origin] : []
  }
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(originsOf) : []
}

/** Decides whether a URL may be reached, and how. Throws an AgentError `refused` or `dns`, both with `sent: 'no'`. */
export async function vet(url: URL, guard: Guard): Promise<Route> {
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    refuse(url, `the scheme must be http: or https:, not ${url.protocol}`)
  if (url.username || url.password)
    refuse(url, 'a URL must not contain credentials; put them into the agent’s settings')
  const host = bareHost(url.hostname)
  if (isMetadataName(host)) refuse(url, 'it is a cloud metadata service, which is never allowed')
  const proxy = proxyOf(url, guard.env)
  const byName = !isAddress(host)
  const addresses = byName ? await addressesOf(url, host, proxy, guard) : [host]
  for (const address of addresses) check(url, host, address, guard)
  if (!byName || proxy) return { urls: [url], name: null, proxy }
  return { urls: addresses.map(address => byAddress(url, address)), name: url.host, proxy: null }
}

function check(url: URL, host: string, address: string, { origins, allow }: Guard): void {
  const verdict = judge(address)
  const via = host === address ? `${address} is` : `${host} resolves to ${address},`
  if (verdict === 'metadata') refuse(url, `${via} a cloud metadata service, which is never allowed`)
  if (verdict === 'public' || origins.has(url.origin) || isAllowed(host, address, allow)) return
  const line = `network: {allow: [${JSON.stringify(host)}]}`
  refuse(url, `${via} not a public address. If this is meant, add to settings.yml: ${line}`)
}

function refuse(url: URL, why: string): never {
  throw new AgentError(`refused to connect to ${url.protocol}//${url.host}: ${why}`, { code: 'refused', sent: 'no' })
}

/** The addresses of the host. An allowed name that only the proxy can resolve may have none here. */
async function addressesOf(url: URL, host: string, proxy: string | null, guard: Guard): Promise<string[]> {
  let addresses: string[] = []
  let cause: unknown
  try {
    addresses = await guard.lookup(host)
  } catch (error) {
    cause = error
  }
  if (addresses.length > 0) return addresses
  const isKnown = guard.origins.has(url.origin) || guard.allow.some(entry => bareHost(entry) === host)
  if (proxy && isKnown) return []
  const spelling = 'check the spelling of the host, and this machine’s DNS'
  const line = `network: {allow: [${JSON.stringify(host)}]}`
  throw new AgentError(`${host} has no address${cause ? `: ${messageOf(cause)}` : ''}`, {
    code: 'dns',
    hint: proxy ? `${spelling}; if only the proxy can resolve it, add to settings.yml: ${line}` : spelling,
    retryable: true,
    sent: 'no',
    cause,
  })
}

function byAddress(url: URL, address: string): URL {
  const target = new URL(url)
  target.hostname = address.includes(':') ? `[${address.replace(/%.*$/, '')}]` : address
  return target
}

/** The proxy for a URL according to the usual environment variables. */
function proxyOf(url: URL, env: Guard['env']): string | null {
  const names = [url.protocol === 'https:' ? 'https_proxy' : 'http_proxy', 'all_proxy']
  const proxy = names.flatMap(name => env[name] || env[name.toUpperCase()] || [])[0]
  if (!proxy) return null
  const host = bareHost(url.hostname)
  const port = url.port || (url.protocol === 'https:' ? '443' : '80')
  const direct = (env.no_proxy || env.NO_PROXY || '').split(/[\s,]+/).some(entry => {
    const [, name = '', only] = /^(.*?)(?::(\d+))?$/.exec(entry.toLowerCase()) ?? []
    if (!name || (only && only !== port)) return false
    const suffix = name.replace(/^\*?\./, '')
    return name === '*' || host === suffix || host.endsWith(`.${suffix}`)
  })
  return direct ? null : proxy
}
