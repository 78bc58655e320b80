// Which daemon may take a job: what the job needs, what a daemon lacks of it, and the key by which the queue finds the
// jobs that need the same. Pure.

import type { Tables } from '../../../db/hub/schema.ts'
import { listed } from '../../text/spelling.ts'
import type { Needs } from '../../wire/needs.ts'

/** What a waiting job needs: its run's needs, a workspace and an environment. */
export interface JobNeeds extends Needs {
  workspace: string | null
  /** Absent where the run has none. */
  environment?: string
}

export type Offer = Pick<Tables['daemons']['$inferSelect'], 'labels' | 'agents' | 'workspaces'> & {
  environments?: string[] | null
}

/** Null when any daemon will do. */
export function jobNeeds(needs: Needs, workspace: string | null, environment: string | null): JobNeeds | null {
  const { labels, agents, named } = needs
  const isOpen = named.length + Object.keys(labels).length + Object.keys(agents).length === 0
  if (isOpen && workspace === null && environment === null) return null
  const place = { workspace, ...(environment !== null && { environment }) }
  return { labels: sortedByName(labels), agents: sortedByName(agents), named, ...place }
}

/** The same for jobs that need the same. Empty for a job that any daemon may take. */
export function needsKeyOf(needs: JobNeeds | null): string {
  return needs === null ? '' : new Bun.CryptoHasher('sha256').update(JSON.stringify(needs)).digest('hex').slice(0, 32)
}

const sortedByName = (record: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)))

/** What the daemon lacks, in words that follow "a daemon with"; empty when it may take the job. */
export function missingNeeds(needs: JobNeeds | null, offer: Offer): string[] {
  if (needs === null) return []
  const { labels, agents, named, workspace, environment } = needs
  const own = offer.labels ?? {}
  return [
    ...Object.entries(labels).flatMap(([name, value]) => (own[name] === value ? [] : `label ${name}=${value}`)),
    ...Object.entries(agents).flatMap(([agent, range]) => whyUnfit(offer, agent, range) ?? []),
    ...named.flatMap(agent => (agent in agents || findAgent(offer, agent) ? [] : `agent ${agent}`)),
    ...(workspace === null || offer.workspaces.includes(workspace) ? [] : [`workspace ${workspace}`]),
    ...(environment === undefined || offer.environments?.includes(environment) ? [] : [`environment ${environment}`]),
  ]
}

function whyUnfit(offer: Offer, agent: string, range: string): string | null {
  const words = range === '*' ? `agent ${agent}` : `agent ${agent} ${range}`
  const known = findAgent(offer, agent)
  if (!known) return words
  if (range !== '*' && !(known.version !== null && Bun.semver.satisfies(known.version, range))) return words
  return isUnready(known.doctor) ? `${words} that its doctor finds ready` : null
}

/** The agents of phases that are not ready for work on this daemon. Another daemon is preferred then. */
export function unreadyAgents(needs: JobNeeds | null, offer: Offer): string[] {
  return needs?.named.filter(agent => isUnready(findAgent(offer, agent)?.doctor)) ?? []
}

const isUnready = (doctor: string | undefined): boolean => doctor === 'wrong' || doctor === 'unset'

/**
 * The agent on the daemon. Where the agent was asked by its doctor, an account that the daemon does not name (`issues@eu`)
 * is not set up. A daemon that sent no agents is not known to lack any.
 */
function findAgent(
  offer: Offer,
  reference: string,
): { version: string | null; doctor?: string | undefined } | undefined {
  if (offer.agents.length === 0) return { version: null }
  const [name] = reference.split('@', 1)
  const exact = offer.agents.find(agent => agent.name === reference)
  const agent = exact ?? offer.agents.find(agent => agent.name === name)
  if (!agent || agent === exact || agent.doctor === undefined || agent.doctor === 'settings') return agent
  return { version: agent.version, doctor: 'unset' }
}

/** What a job needs, in words that follow "a daemon with". */
export function describeNeeds(needs: JobNeeds | null): string {
  return listed(missingNeeds(needs, { labels: {}, agents: [{ name: '', version: '' }], workspaces: [] }))
}
