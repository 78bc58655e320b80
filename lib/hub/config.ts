// The configuration of the hub. Flags come first, then the environment, then the defaults.

import { homedir } from 'node:os'
import { join } from 'node:path'
import { isPostgres, type StoreOptions } from '../../db/hub/store.ts'
import { isAllowEntry, isLoopback } from '../agent/net/address.ts'
import { CadreError } from '../error.ts'
import { hookHostsFrom } from '../http/hook-hosts.ts'
import { drainSecondsIn } from '../http/listen.ts'
import { type MetricsOptions, metricsOptions } from '../http/metrics.ts'
import { wholeNumber } from '../whole-number.ts'
import type { QuotaValues } from '../wire/records/quotas.ts'
import { siteQuotas } from './access/quotas.ts'
import { artifactStore } from './artifacts/artifacts.ts'
import { type Backups, backupsIn } from './backups/backups.ts'
import type { ArtifactStore } from './core/artifact-store.ts'

export interface HubFlags {
  host?: string
  port?: string
  database?: string
}

export interface HubConfig {
  host: string
  port: number
  /** The path of a SQLite file, or `postgres://…`. */
  database: string
  /** Of PostgreSQL. */
  connections: StoreOptions
  home: string
  agentsFolder: string | undefined
  admin: { username: string; password: string | undefined }
  key: string | undefined
  trustProxy: boolean
  publicUrl: string | null
  hookHosts: string[]
  webhookAllow: string[]
  quotas: QuotaValues
  metricsToken: string | undefined
  metrics: MetricsOptions
  artifacts: ArtifactStore | null
  backups: Backups | null
  /** How long a hub still answers after it was asked to stop, as somebody wished. */
  drainSeconds: number
  keepRunsDays: number
  keepAuditDays: number
}

/** How long entries of the audit log are kept, unless `CADRE_KEEP_AUDIT_DAYS` says otherwise. */
const KEEP_AUDIT_DAYS = 400

type Environment = Record<string, string | undefined>

export function hubConfig(flags: HubFlags, env: Environment = process.env): HubConfig {
  const home = env.CADRE_HOME || join(homedir(), '.cadre')
  const username = env.CADRE_ADMIN_USERNAME || 'admin'
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(username)) {
    throw new CadreError(
      'invalid_request',
      `CADRE_ADMIN_USERNAME: ${username} is not a valid user name; it must match [a-z0-9][a-z0-9._-]*`,
    )
  }
  const database = databaseOf(flags.database || env.CADRE_HUB_DATABASE || join(home, 'hub.db'))
  return {
    host: flags.host || env.CADRE_HUB_HOST || '127.0.0.1',
    port: wholeNumber('--port', flags.port ?? env.CADRE_HUB_PORT ?? '7400', 65_535),
    database,
    connections: {
      pool: wholeNumber('CADRE_HUB_POOL', env.CADRE_HUB_POOL ?? '10', 1_000, 1),
      statementMs: wholeNumber('CADRE_HUB_STATEMENT_SECONDS', env.CADRE_HUB_STATEMENT_SECONDS ?? '5', 3_600, 1) * 1_000,
      isPooled: isPooled(env.CADRE_HUB_POOLER || undefined),
    },
    home,
    agentsFolder: env.CADRE_AGENTS || undefined,
    admin: { username, password: env.CADRE_ADMIN_PASSWORD || undefined },
    key: env.CADRE_HUB_KEY || undefined,
    trustProxy: ['1', 'true', 'yes'].includes(env.CADRE_TRUST_PROXY ?? ''),
    publicUrl: publicUrl(env.CADRE_HUB_PUBLIC_URL || undefined),
    hookHosts: hookHostsFrom(env.CADRE_HOOK_HOSTS),
    quotas: siteQuotas(env),
    webhookAllow: allowed('CADRE_WEBHOOK_ALLOW', env.CADRE_WEBHOOK_ALLOW ?? ''),
    metricsToken: metricsToken(env.CADRE_METRICS_TOKEN || undefined),
    metrics: metricsOptions(env),
    artifacts: artifactStore(env),
    backups: backupsIn(env, database),
    drainSeconds: drainSecondsIn(env),
    keepRunsDays: wholeNumber('CADRE_KEEP_RUNS_DAYS', env.CADRE_KEEP_RUNS_DAYS ?? '30', 36_500),
    keepAuditDays: wholeNumber('CADRE_KEEP_AUDIT_DAYS', env.CADRE_KEEP_AUDIT_DAYS ?? String(KEEP_AUDIT_DAYS), 36_500),
  }
}

/** Whether a pooler is before PostgreSQL that gives out connections for a transaction. One that gives out sessions is none. */
function isPooled(text: string | undefined): boolean {
  if (text === undefined || text === 'transaction') return text !== undefined
  throw new CadreError('invalid_request', `CADRE_HUB_POOLER: expected transaction, got ${text}`)
}

/** An address of another kind would be taken for the path of a new file. The error does not show a password in it. */
function databaseOf(location: string): string {
  const [, scheme] = /^([a-z][a-z0-9+.-]*):\//i.exec(location) ?? []
  if (scheme === undefined || isPostgres(location)) return location
  throw new CadreError(
    'invalid_request',
    `--database or CADRE_HUB_DATABASE: expected the path of a SQLite file or postgres://…, got an address that begins with ${scheme}:`,
  )
}

/** An address such as `https://hub.example.com`; http only on this machine. */
function publicUrl(text: string | undefined): string | null {
  if (text === undefined) return null
  const url = URL.parse(text)
  const isBare = url && url.search === '' && url.hash === '' && url.username === '' && url.password === ''
  const isFit = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (isBare && isFit) return url.href.replace(/\/+$/, '')
  throw new CadreError(
    'invalid_request',
    'CADRE_HUB_PUBLIC_URL: expected an address such as https://hub.example.com (http only on this machine)',
  )
}

function allowed(name: string, text: string): string[] {
  const entries = text.split(/[\s,]+/).filter(Boolean)
  const wrong = entries.find(entry => !isAllowEntry(entry))
  if (wrong === undefined) return entries
  throw new CadreError('invalid_request', `${name}: expected addresses, ranges or host names, got ${wrong}`)
}

/** A short token could be guessed: nothing limits the attempts. The error does not show it. */
function metricsToken(text: string | undefined): string | undefined {
  if (text === undefined || /^[\x21-\x7e]{16,500}$/.test(text)) return text
  throw new CadreError('invalid_request', 'CADRE_METRICS_TOKEN: expected at least 16 characters without spaces')
}
