// Requests of http in the name of another agent (`account: crm`). They have the address and the headers that this agent
// gives. The headers are sent to addresses below that one and nowhere else, and a team can neither read nor replace them.

import { AgentError } from '../core/agent-error.ts'
import type { ApiOptions } from './requests.ts'

/** What `account` of an agent's definition gives, with the reference by which the team names the agent. */
export interface Account extends ApiOptions {
  name: string
}

/**
 * The address of a request: a path below the account's address, or an address in full, which must lie below it, too.
 * Throws an AgentError `refused` for any other.
 */
export function addressBelow(account: Account, url: string): URL {
  const base = baseOf(account)
  const address = URL.parse(url.startsWith('/') ? base.origin + rootOf(base) + url : url)
  if (address && isBelow(account, address)) return address
  const given = address && address.origin !== base.origin ? `${address.protocol}//${address.host}` : 'the url'
  throw new AgentError(`${given} does not lie below the address of ${account.name}, ${base.origin}${rootOf(base)}`, {
    code: 'refused',
    hint: 'with `account`, write a path below that address, such as /v1/items, or leave out `account`',
    sent: 'no',
  })
}

/** Whether an address has the origin of the account's and a path below its path, however a server may read its dots. */
export function isBelow(account: Account, url: URL): boolean {
  const base = baseOf(account)
  if (url.origin !== base.origin || url.username || url.password) return false
  const root = rootOf(base)
  return (url.pathname === root || url.pathname.startsWith(`${root}/`)) && !CLIMBS.test(plain(url.pathname))
}

/** The headers of a request with those of the account. Throws an AgentError when the team sets one of them itself. */
export function withAccount(account: Account, url: URL, given: Headers): Headers {
  addressBelow(account, url.href)
  const headers = new Headers(given)
  const own = new Headers(account.headers)
  const taken = [...own.keys(), 'authorization'].find(name => given.has(name))
  if (taken !== undefined) {
    throw new AgentError(`the account ${account.name} authorizes the request, and \`headers\` has ${taken}, too`, {
      code: 'invalid_request',
      hint: `remove ${taken} from \`headers\`, or \`account\``,
      sent: 'no',
    })
  }
  for (const [name, value] of own) headers.set(name, value)
  return headers
}

function baseOf({ name, base }: Account): URL {
  const url = URL.parse(base)
  if (url && /^https?:$/.test(url.protocol)) return url
  throw new AgentError(`the account ${name} has no address that requests could be sent to`, {
    code: 'invalid_settings',
    sent: 'no',
  })
}

/** The path of an address without the slash at its end: empty for that of a host. */
const rootOf = ({ pathname }: URL): string => pathname.replace(/\/+$/, '')

/** A segment that leads upwards, also as servers see it that cut off what follows a semicolon. */
const CLIMBS = /(^|[/\\])\.\.(;[^/\\]*)?([/\\]|$)/

/** A path with its dots, slashes and backslashes decoded, however often they are encoded. */
function plain(path: string): string {
  const decoded = path.replace(/%25/g, '%').replace(/%2e/gi, '.').replace(/%2f/gi, '/').replace(/%5c/gi, '\\')
  return decoded === path ? path : plain(decoded)
}
