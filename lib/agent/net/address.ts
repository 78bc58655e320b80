// Which addresses an agent may reach without a setting that allows them. Pure: names are resolved elsewhere.

import ipaddr from 'ipaddr.js'
import { Recent } from '../../recent.ts'

export type Verdict = 'public' | 'private' | 'metadata'

/** How many addresses each question remembers its answers for. */
const MOST_REMEMBERED = 256

/**
 * Addresses that hand out the cloud credentials of the machine, or configure it. They are never allowed, whatever the
 * settings say. The order is: AWS, Azure, GCP, Oracle and DigitalOcean, which share the first address; ECS tasks, EKS
 * pods, Tencent, Azure's wire server, Oracle Classic, Alibaba; then the IPv6 addresses of AWS, EKS pods and GCP.
 */
const METADATA = [
  '169.254.169.254',
  '169.254.170.2',
  '169.254.170.23',
  '169.254.0.23',
  '168.63.129.16',
  '192.0.0.192',
  '100.100.100.200',
  'fd00:ec2::254',
  'fd00:ec2::23',
  'fd20:ce::254',
]

const METADATA_NAMES = new Set([
  'metadata',
  'metadata.google.internal',
  'metadata.goog',
  'instance-data',
  'instance-data.ec2.internal',
  'metadata.tencentyun.com',
  'metadata.azure.internal',
])

/**
 * IPv6 ranges that carry an IPv4 address, and the byte at which it begins. Such an address is judged by the IPv4
 * address inside.
 */
const WRAPPED: readonly [range: string, at: number][] = [
  ['::ffff:0:0/96', 12],
  ['::ffff:0:0:0/96', 12],
  ['64:ff9b::/96', 12],
  ['2002::/16', 2],
  ['::/96', 12],
]

/**
 * Global unicast (RFC 4291) is the only block that IANA assigns. The ranges below lie in it but are not for ordinary
 * hosts.
 */
const GLOBAL = '2000::/3'
const NOT_GLOBAL = ['2001::/23', '2001:db8::/32', '3fff::/20', '3ffe::/16']

let parsedOnce: ReturnType<typeof parseKnown> | undefined

/** The addresses and ranges above. A command that reaches no address need not wait until they are parsed. */
const known = () => (parsedOnce ??= parseKnown())

function parseKnown() {
  const cidr6 = (text: string) => ipaddr.IPv6.parseCIDR(text)
  return {
    metadata: new Set(METADATA.map(address => ipaddr.parse(address).toNormalizedString())),
    wrapped: WRAPPED.map(([range, at]) => ({ range: cidr6(range), at })),
    global: cidr6(GLOBAL),
    notGlobal: NOT_GLOBAL.map(cidr6),
  }
}

/** The host of a URL in lower case, without brackets and without the trailing dot of the DNS root. */
export function bareHost(host: string): string {
  return host
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase()
}

/** Whether the host of a URL, or an address, is this machine itself. */
export function isLoopback(host: string): boolean {
  const plain = bareHost(host)
  return plain === 'localhost' || plain.endsWith('.localhost') || isLoopbackAddress(plain)
}

/**
 * Whether a literal address is in 127.0.0.0/8, also when it is mapped into IPv6, or is ::1. Other ranges that carry an
 * IPv4 address lead to a gateway, which is another machine.
 */
export const isLoopbackAddress = remembered((address: string): boolean => {
  const parsed = parse(address)
  return parsed !== null && ipaddr.process(parsed.toString()).range() === 'loopback'
})

/** Whether the host of a URL is a literal address. The URL parser has already normalised forms such as `0x7f.1`. */
export const isAddress = remembered((host: string): boolean => parse(host) !== null)

export function isMetadataName(host: string): boolean {
  return METADATA_NAMES.has(bareHost(host))
}

/**
 * Classifies an IP address. Everything that is not certainly public counts as private, including loopback, CGNAT,
 * multicast and documentation ranges.
 */
export const judge = remembered((address: string): Verdict => {
  const parsed = parse(address)
  if (parsed === null) return 'private'
  const { metadata, global, notGlobal } = known()
  if (metadata.has(parsed.toNormalizedString())) return 'metadata'
  if (parsed.kind() === 'ipv4') return (parsed as ipaddr.IPv4).range() === 'unicast' ? 'public' : 'private'
  const inner = unwrap(parsed as ipaddr.IPv6)
  if (inner) return judge(inner)
  const isGlobal = parsed.match(global) && !notGlobal.some(range => parsed.match(range))
  return isGlobal ? 'public' : 'private'
})

/**
 * Whether `network.allow` contains the host name, the address, or a CIDR that includes the address. Always false for
 * metadata addresses.
 */
export function isAllowed(host: string, address: string, allow: readonly string[]): boolean {
  if (judge(address) === 'metadata' || isMetadataName(host)) return false
  const parsed = parse(address)
  const inner = parsed?.kind() === 'ipv6' ? unwrap(parsed as ipaddr.IPv6) : null
  return allow.some(entry => {
    if (bareHost(entry) === bareHost(host)) return true
    const range = parseRange(entry)
    if (!range) return false
    return [parsed, inner && ipaddr.parse(inner)].some(
      candidate => candidate && candidate.kind() === range[0].kind() && candidate.match(range),
    )
  })
}

/**
 * Whether `entry` is valid in `network.allow`: a host name, an address or a CIDR. A name that ends in a number is an
 * address (https://url.spec.whatwg.org/#ends-in-a-number-checker), here one with a mistake.
 */
export function isAllowEntry(entry: string): boolean {
  if (parseRange(entry) !== null) return true
  return !/(^|\.)[0-9]+\.?$/.test(entry) && /^(?!-)[a-z0-9_-]+(\.[a-z0-9_-]+)*\.?$/i.test(entry)
}

function parse(address: string): ipaddr.IPv4 | ipaddr.IPv6 | null {
  const plain = bareHost(address).replace(/%.*$/, '')
  return ipaddr.IPv4.isValidFourPartDecimal(plain) || ipaddr.IPv6.isValid(plain) ? ipaddr.parse(plain) : null
}

function parseRange(entry: string): [ipaddr.IPv4 | ipaddr.IPv6, number] | null {
  const plain = parse(entry)
  if (plain) return [plain, plain.kind() === 'ipv4' ? 32 : 128]
  return entry.includes('/') && ipaddr.isValidCIDR(entry) ? ipaddr.parseCIDR(entry) : null
}

function unwrap(address: ipaddr.IPv6): string | null {
  const bytes = address.toByteArray()
  // `::` and `::1` match a range of wrapped addresses but carry no IPv4 address.
  if (bytes.slice(0, 15).every(byte => byte === 0)) return null
  const found = known().wrapped.find(({ range }) => address.match(range))
  return found ? bytes.slice(found.at, found.at + 4).join('.') : null
}

/** Every request asks about the same few addresses, and an answer takes up to 30 µs to find. */
function remembered<T extends NonNullable<unknown>>(find: (address: string) => T): (address: string) => T {
  const answers = new Recent<string, T>(MOST_REMEMBERED)
  return address => answers.get(address) ?? answers.set(address, find(address))
}
