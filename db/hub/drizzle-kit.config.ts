// What drizzle-kit reads to write migrations (`generate.sh`): its configuration, and the tables of the dialect that the
// variable DIALECT names.

import { defineConfig } from 'drizzle-kit'
import { postgres, sqlite } from './columns.ts'
import { tables } from './schema.ts'

const isPostgres = process.env.DIALECT === 'postgres'

export default defineConfig({
  dialect: isPostgres ? 'postgresql' : 'sqlite',
  schema: './db/hub/drizzle-kit.config.ts',
  out: `./db/hub/migrations/${isPostgres ? 'postgres' : 'sqlite'}`,
})

export const {
  users,
  orgs,
  orgMembers,
  scopes,
  scopeSlugs,
  scopeMembers,
  realms,
  realmUse,
  openStreams,
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
  explanations,
  largeValues,
  logs,
  events,
  artifacts,
  keptFiles,
  receipts,
  reviews,
  jobs,
  concurrencyKeys,
  webhooks,
  webhookDeliveries,
  triggers,
  firings,
  runEnds,
  hooks,
  hookSecrets,
  hookBodies,
  tells,
  audit,
  auditChains,
  lineage,
  livedTime,
  commitCounts,
  hubProcesses,
  sealingKeys,
  refusedStarts,
  copies,
  confirmations,
  chores,
  news,
} = tables(isPostgres ? postgres : sqlite)
