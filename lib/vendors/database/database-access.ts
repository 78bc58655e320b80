// Where a database is and how to sign in, from the settings. Every value is passed to the client explicitly, because
// Bun's client would otherwise take what is missing from the environment of the daemon.

import { isAbsolute } from 'node:path'
import type { AgentContext } from '../../agent/agent-context.ts'
import { isLoopback } from '../../agent/net/address.ts'
import { fromHome, whyNoFile } from '../../files/home-path.ts'

export interface DatabaseSettings {
  url?: string
  provider?: 'postgres' | 'mysql' | 'sqlite'
  host?: string
  port?: number
  user?: string
  password?: string
  database?: string
  tls?: boolean
  ca_file?: string
}

export type Access =
  | { provider: 'sqlite'; file: string; label: string }
  | {
      provider: 'postgres' | 'mysql'
      host: string
      port: number
      user: string
      password: string
      database: string
      tls: boolean
      caFile: string | null
      /** The server and the database, for messages. */
      label: string
    }

const PORTS = { postgres: 5432, mysql: 3306 }
const SCHEMES: Record<string, 'postgres' | 'mysql' | 'sqlite'> = {
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
  'mysql:': 'mysql',
  'mariadb:': 'mysql',
  'sqlite:': 'sqlite',
  'file:': 'sqlite',
}

/** The settings with the parts of `url`, over which single settings take precedence. */
function merged({ url, ...own }: Given): Given {
  const given = Object.entries(own).filter(([, value]) => value !== undefined)
  return { ...(url === undefined ? null : partsOf(url)), ...Object.fromEntries(given) }
}
type Given = { [K in keyof DatabaseSettings]?: DatabaseSettings[K] | undefined }

/** What is wrong with the settings, in words that continue the key. */
export function whyNoAccess(settings: Given) {
  const { url, ca_file } = settings
  const { provider, host, database, tls } = merged(settings)
  const isExposed = tls === false && provider !== 'sqlite' && host !== undefined && !isLoopback(host)
  const instead = `because ${host} is another machine: remove it, and set ca_file where a private authority has signed its certificate`
  const isRelative = provider === 'sqlite' && database !== undefined && !isAbsolute(fromHome(database))
  return {
    url:
      (url !== undefined &&
        partsOf(url) === null &&
        'must be the address of a database: write it as postgres://user:password@host:5432/name, mysql://… or sqlite:///path/to/file, with %25 for a % in the password') ||
      (isExposed && settings.tls === undefined && `must not have sslmode=disable, ${instead}`),
    tls: isExposed && settings.tls === false && `must not be false, ${instead}`,
    database: isRelative && 'must be a whole path for SQLite: write it as /path/to/file or ~/path/to/file',
    host: host?.startsWith('-') && 'must be the name or the address of a server: write it without the dash in front',
    ca_file: ca_file !== undefined && whyNoFile(ca_file, 'the certificate of the authority, in PEM'),
  }
}

/**
 * The settings that are missing: the URL, which has everything, unless somebody has begun to set the parts of it. A URL
 * that is a reference may name the database.
 */
export function missingAccess(settings: DatabaseSettings): string[] {
  const { url, provider, host, port, user, password } = settings
  const isOpen = url !== undefined && partsOf(url) === null
  if (isOpen || merged(settings).database !== undefined) return []
  return [url, provider, host, port, user, password].some(part => part !== undefined) ? ['database'] : ['url']
}

/** The access that settings describe in which `whyNoAccess` finds nothing. */
export function accessOf({ settings }: Pick<AgentContext<DatabaseSettings>, 'settings'>): Access {
  const { provider = 'postgres', host = '127.0.0.1', port, user = '', password = '', ...rest } = merged(settings)
  const { database = '', ca_file, tls } = rest
  if (provider === 'sqlite') return { provider, file: fromHome(database), label: database }
  const at = { host, port: port ?? PORTS[provider] }
  return {
    provider,
    ...at,
    user,
    password,
    database,
    tls: tls ?? !isLoopback(host),
    caFile: ca_file === undefined ? null : fromHome(ca_file),
    label: `${at.host}:${at.port}/${database}`,
  }
}

/** The settings that a URL contains; null when it is not the address of a database. */
function partsOf(text: string): DatabaseSettings | null {
  try {
    return decodedParts(text)
  } catch {
    // A % that begins no escape.
    return null
  }
}

function decodedParts(text: string): DatabaseSettings | null {
  const path = /^(?:sqlite|file):(?:\/\/)?(~?\/.*)$/.exec(text)?.[1]
  if (path !== undefined) return { provider: 'sqlite', database: decodeURI(path) }
  const url = URL.parse(text)
  const provider = url ? SCHEMES[url.protocol] : undefined
  if (!url || !provider || provider === 'sqlite') return null
  return {
    provider,
    ...(url.hostname && { host: url.hostname.replace(/^\[|\]$/g, '') }),
    ...(url.port && { port: Number(url.port) }),
    ...(url.username && { user: decodeURIComponent(url.username) }),
    ...(url.password && { password: decodeURIComponent(url.password) }),
    ...(url.pathname.length > 1 && { database: decodeURIComponent(url.pathname.slice(1)) }),
    // The modes between no TLS and a verified certificate are not offered, so each of them asks for the latter.
    ...(url.searchParams.get('sslmode') === 'disable' && { tls: false }),
  }
}
