// How a server is reached: at addresses that the guard has judged, and with TLS unless it is on this machine.

import { isIP } from 'node:net'
import type { AgentContext } from '../../agent/agent-context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import { isLoopback } from '../../agent/net/address.ts'
import type { Access } from './database-access.ts'

export type Server = Exclude<Access, { provider: 'sqlite' }>

const CONNECT_SECONDS = 30

/** The addresses of the host, which the guard has judged. Throws for another machine unless TLS protects what is sent. */
export async function addressesOf(context: AgentContext<unknown>, { host, port, tls, label }: Server) {
  const { addresses } = await context.vet(`${bracketed(host)}:${port}`)
  if (tls || addresses.every(isLoopback)) return addresses
  const problem = `${label}: nothing is sent to another machine without TLS`
  const hint = `remove agents.${context.agent}.tls; for a private authority set agents.${context.agent}.ca_file`
  throw new AgentError(`[${context.callName}] ${problem}`, { code: 'refused', sent: 'no', hint })
}

/** What `connect` gives for the first address at which something answers. */
export async function firstReached<T>(
  addresses: readonly string[],
  connect: (address: string) => Promise<T>,
): Promise<T> {
  const [address, ...others] = addresses
  try {
    return await connect(address!)
  } catch (error) {
    const isSilent = error instanceof AgentError && error.code === 'network'
    if (!isSilent || others.length === 0) throw error
    return firstReached(others, connect)
  }
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

export function optionsOf(
  { provider, host, port, user, password, database, tls, caFile }: Server,
  address: string,
): Bun.SQL.PostgresOrMySQLOptions {
  // The certificate must name the host of the settings. One that is an address is checked as an address.
  const verified = {
    rejectUnauthorized: true,
    ...(!isIP(host) && { serverName: host }),
    ...(caFile && { ca: Bun.file(caFile) }),
  }
  return {
    adapter: provider,
    url: `${provider}://${bracketed(address)}:${port}`,
    hostname: address,
    port,
    username: user || (provider === 'mysql' ? 'root' : 'postgres'),
    password,
    database,
    max: 1,
    connectionTimeout: CONNECT_SECONDS,
    tls: tls ? verified : 'disable',
    ...(provider === 'postgres' && { prepare: false }),
    ...(provider === 'mysql' && { foundRows: true }),
  }
}
