// The hub's tables for SQLite, as drizzle-kit reads them.

import { sqlite } from './columns.ts'
import { tables } from './schema.ts'

export const {
  users,
  orgs,
  orgMembers,
  scopes,
  scopeSlugs,
  scopeMembers,
  realms,
  realmMembers,
  realmTeams,
  invitations,
  tokens,
  tokenRealms,
  dispatchKeys,
  signInFailures,
  daemons,
  packages,
  packageFiles,
  runs,
  phases,
  logs,
  events,
  artifacts,
  keptFiles,
  receipts,
  reviews,
  jobs,
  keyPlaces,
  webhooks,
  webhookDeliveries,
  audit,
} = tables(sqlite)
