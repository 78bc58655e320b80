// Protection against SSRF. Every URL, redirects included, passes `vet`, and every host of another protocol passes
// `vetHost`. The connection is made to exactly the address that was vetted, so that a second DNS answer cannot lead
// elsewhere. A proxy is given the name. Names of the settings and of vendors are resolved by the proxy alone, because this
// machine may have no DNS. Other names are vetted here as well, unless the operator trusts the proxy to do it.

import { messageOf } from '../../error.ts'
import { commandLine } from '../../program/called-as.ts'
import { AgentError } from '../core/agent-error.ts'
import { bareHost, isAddress, isAllowed, isMetadataName, judge } from './address.ts'
import type { VettedHost } from './requests.ts'

export interface Guard {
  /**
   * Whether an origin is always allowed: that of a URL in the agent's settings, of an address that the agent makes from
   * them or has by default, or of a literal `url` in a team that was started from a path.
   */
  knows(origin: string): boolean
  /** `network.allow` of settings.yml: CIDRs, addresses, host names. */
  allow: readonly string[]
  /** `network.proxy_resolves` of settings.yml: a proxy decides where names lead that are not known. */
  proxyResolves: boolean
  lookup: Lookup
  /** Read for HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY. */
  env: Record<string, string | undefined>
}

/** Resolves a name to all of its addresses. */
export type Lookup = (host: string) => Promise<string[]>

/**
 * IPv4 addresses come first: a host without an IPv6 route may still get IPv6 addresses, and each would cost a time-out.
 */
export const systemLookup: Lookup = async host => {
  // Most runs name no host.
  const { lookup } = await import('node:dns/promises')
  return (await lookup(host, { all: true, order: 'ipv4first' })).map(({ address }) => address)
}

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

/**
 * Whether `origin` is one of `addresses`, in which `*` stands for one label of a host name, such as a bucket in
 * `https://*.s3.eu-west-1.amazonaws.com`. Addresses that are no URL count for nothing.
 */
export function isOriginIn(addresses: readonly string[], origin: string): boolean {
  return addresses.some(address => {
    const pattern = /^https?:\/\/[^/?#]*/i.exec(address)?.[0]
    if (pattern === undefined) return false
    if (!pattern.includes('*')) return URL.parse(pattern)?.origin === origin
    return new RegExp(`^${pattern.split('*').map(RegExp.escape).join('[a-z0-9-]+')}$`, 'i').test(origin)
  })
}

/** Decides whether a URL may be reached, and how. Throws an AgentError `refused` or `dns`, both with `sent: 'no'`. */
export async function vet(url: URL, guard: Guard): Promise<Route> {
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    refuse(authorityOf(url), `the scheme must be http: or https:, not ${url.protocol}`)
  if (url.username || url.password)
    refuse(authorityOf(url), 'a URL must not contain credentials; put them into the agent’s settings')
  const host = bareHost(url.hostname)
  if (isMetadataName(host)) refuse(authorityOf(url), 'it is a cloud metadata service, which is never allowed')
  const proxy = proxyOf(url, guard.env)
  const byName = !isAddress(host)
  const known = guard.knows(url.origin)
  const alone = proxy !== null && byName && (known || isLeftToProxy(host, guard))
  const addresses = alone ? [] : byName ? await addressesOf(host, proxy, guard) : [host]
  for (const address of addresses) check(authorityOf(url), host, address, known, guard)
  if (!byName || proxy) return { urls: [url], name: null, proxy }
  return { urls: addresses.map(address => byAddress(url, address)), name: url.host, proxy: null }
}

/**
 * Decides whether a client of another protocol may connect to `target`, which is a host, `host:port` or a URL of any
 * scheme. `settings` are the agent's own: a host that they name is allowed unless it is a metadata service. The client
 * must connect to the returned address, because a second DNS answer could lead elsewhere. Throws an AgentError
 * `refused`, `dns` or `invalid_url`, all with `sent: 'no'`.
 */
export async function vetHost(target: string, settings: unknown, guard: Guard): Promise<VettedHost> {
  const url = urlOf(target)
  const host = bareHost(url?.hostname ?? '')
  if (!url || !host) {
    const hint = 'give a host, host:port or a URL'
    throw new AgentError(`${JSON.stringify(target)} names no host`, { code: 'invalid_url', hint, sent: 'no' })
  }
  const authority = url.host
  if (isMetadataName(host)) refuse(authority, 'it is a cloud metadata service, which is never allowed')
  const addresses = isAddress(host) ? [host] : await resolved(host, guard, null)
  const known = namesHost(settings, host, url.port)
  for (const address of addresses) check(authority, host, address, known, guard)
  return { host, port: url.port ? Number(url.port) : null, address: addresses[0]!, addresses }
}

/** Whether a value in the settings is this host, `host:port`, or a URL of it with that port or without one. */
function namesHost(value: unknown, host: string, port: string): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).some(each => namesHost(each, host, port))
  const named = typeof value === 'string' && !/\s/.test(value) ? urlOf(value) : null
  return named !== null && bareHost(named.hostname) === host && (named.port === '' || named.port === port)
}

function urlOf(target: string): URL | null {
  const isBareIpv6 = !target.includes('[') && target.split(':').length > 2 && !target.includes('//')
  return URL.parse(target.includes('://') ? target : `host://${isBareIpv6 ? `[${target}]` : target}`)
}

function check(authority: string, host: string, address: string, known: boolean, { allow }: Guard): void {
  const verdict = judge(address)
  const via = host === address ? `${address} is` : `${host} resolves to ${address},`
  if (verdict === 'metadata') refuse(authority, `${via} a cloud metadata service, which is never allowed`)
  if (verdict === 'public' || known || isAllowed(host, address, allow)) return
  refuse(authority, `${via} not a public address. If this is meant, allow it: ${allowing(host, allow)}`)
}

/** The command that allows a host. It does not say what is allowed already, because others read the errors of runs. */
function allowing(host: string, allow: readonly string[]): string {
  const command = commandLine('settings', 'set', 'network.allow', host)
  return allow.length === 0 ? command : `${command}, with what ${commandLine('settings', 'list')} says of it now`
}

/** What lets a name pass that only the proxy can resolve. */
function trusting(host: string, allow: readonly string[]): string {
  const all = commandLine('settings', 'set', 'network.proxy_resolves', 'true')
  return `allow it: ${allowing(host, allow)}; or leave all names to the proxy: ${all}`
}

function authorityOf(url: URL): string {
  return `${url.protocol}//${url.host}`
}

function refuse(authority: string, why: string): never {
  throw new AgentError(`refused to connect to ${authority}: ${why}`, { code: 'refused', sent: 'no' })
}

/** Names of the machine that resolves them are not left to a proxy, because they would reach its own services. */
function isLeftToProxy(host: string, { proxyResolves }: Guard): boolean {
  return proxyResolves && !/(^|\.)localhost\.?$/.test(host)
}

/** The addresses of the host. An allowed name that only the proxy can resolve may have none here. */
async function addressesOf(host: string, proxy: string | null, guard: Guard): Promise<string[]> {
  try {
    return await resolved(host, guard, proxy)
  } catch (error) {
    if (proxy && guard.allow.some(entry => bareHost(entry) === host)) return []
    throw error
  }
}

/** All addresses of a name. Throws an AgentError `dns` when there is none. */
async function resolved(host: string, guard: Guard, proxy: string | null): Promise<string[]> {
  let addresses: string[] = []
  let cause: unknown
  try {
    addresses = await guard.lookup(host)
  } catch (error) {
    cause = error
  }
  if (addresses.length > 0) return addresses
  const spelling = 'check the spelling of the host, and this machine’s DNS'
  throw new AgentError(`${host} has no address${cause ? `: ${messageOf(cause)}` : ''}`, {
    code: 'dns',
    hint: proxy ? `${spelling}; if only the proxy can resolve it, ${trusting(host, guard.allow)}` : spelling,
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
