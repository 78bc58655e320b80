// What a run would write outside: each write with its phase, its credential, and where it goes, as far as the file and the
// settings of the run's environment say it. A secret is none of that.

import type { Catalogue } from '../../agent/catalogue.ts'
import type { Json, JsonObject } from '../../json.ts'
import type { Scope } from '../../settings/settings.ts'
import {
  accountIn,
  type Bundle,
  hasSubRuns,
  listenerWrites,
  type Phase,
  phaseWrites,
  type Write,
} from '../../team/team.ts'
import type { PlannedWrite } from '../../wire/records/plans.ts'

/** What a plan describes teams by. */
export interface Described {
  catalogue: Catalogue
  scope: Scope | null
}

/** The writes of a bundle, at every depth. */
export function plannedWrites(stock: Described, bundle: Bundle): PlannedWrite[] {
  return writesBelow(stock, bundle, bundle.root, [], [])
}

function writesBelow(
  stock: Described,
  bundle: Bundle,
  key: string,
  above: readonly string[],
  path: readonly string[],
): PlannedWrite[] {
  if (above.includes(key)) return []
  const { catalogue } = stock
  const team = bundle.team(key)
  return [
    ...listenerWrites(catalogue, team, path).map(write => planned(stock, write)),
    ...team.phases.flatMap(phase => writesOf(stock, bundle, phase, [...above, key], path)),
  ]
}

/** The writes of these phases of a team, and below them. */
export function writesOfPhases(
  stock: Described,
  bundle: Bundle,
  key: string,
  names: readonly string[],
): PlannedWrite[] {
  return bundle
    .team(key)
    .phases.flatMap(phase => (names.includes(phase.name) ? writesOf(stock, bundle, phase, [key], []) : []))
}

function writesOf(
  stock: Described,
  bundle: Bundle,
  phase: Phase,
  above: readonly string[],
  path: readonly string[],
): PlannedWrite[] {
  if (hasSubRuns(phase)) return writesBelow(stock, bundle, phase.team, above, [...path, phase.name])
  return phase.type === 'standard' ? phaseWrites(stock.catalogue, phase, path).map(write => planned(stock, write)) : []
}

const planned = (stock: Described, { entry, credentials, ...write }: Write): PlannedWrite => ({
  ...write,
  credentials: credentials.map(key => stock.scope?.placeOf(key) ?? key),
  to: target(stock, write.agent, entry),
})

/** Settings that name the system to which an agent writes; the first one that is set says it. */
const SYSTEMS = ['base_url', 'endpoint', 'smtp_host', 'host', 'subdomain', 'site', 'provider']
/** Fields of entries that say where something is written in that system. */
const PLACES = ['ref', 'parent', 'project_dir', 'branch', 'channels']

/** Such as `https://crm.example/items`, `web-1.example:22 /srv/www/`, or the name of the agent. */
function target(stock: Described, agent: string, entry: Json | undefined): string {
  const fields = (entry ?? {}) as JsonObject
  const account = entry === undefined ? null : accountIn(agent, entry)
  const { url } = fields
  if (typeof url === 'string') return account !== null && url.startsWith('/') ? `${account} ${url}` : url
  const places = PLACES.flatMap(name => {
    const value = fields[name]
    return (Array.isArray(value) ? value : [value]).filter(each => typeof each === 'string')
  })
  return [systemOf(stock, agent), ...places].join(' ')
}

function systemOf({ scope }: Described, agent: string): string {
  const setting = (name: string) => scope?.value(`agents.${agent}.${name}`)
  for (const name of SYSTEMS) {
    const value = setting(name)
    if (typeof value !== 'string') continue
    const port = name === 'host' ? setting('port') : undefined
    return port === undefined ? value : `${value}:${port}`
  }
  return agent
}
