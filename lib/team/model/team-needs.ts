// What a team needs from outside: the agents that it calls, and the addresses that are written out in its file.

import { isObject, type Json } from '../../json.ts'
import { allNeeds, type Needs, needsOf } from '../../wire/needs.ts'
import { accountsOf } from './accounts.ts'
import type { Bundle, Team, Template } from './compiled-team.ts'

/**
 * The agents that a team names itself, as written (`issues`, `issues@eu`), those in whose name it sends requests included;
 * each once.
 */
export function agentRefs(team: Team): string[] {
  const phases = team.phases.flatMap(phase => (phase.type === 'standard' ? [phase.agent] : []))
  return [...new Set([...phases, ...accountsOf(team), ...team.listeners.map(listener => listener.agent)])]
}

/** The teams of a bundle with their keys, the root first. */
export function teamsOf(bundle: Bundle): [key: string, team: Team][] {
  return bundle.keys().map(key => [key, bundle.team(key)])
}

/** Whose rights a team of a bundle has, such as to named secrets: those of its package or file, whatever it calls itself. */
export function secretReader(bundle: Bundle, key: string): { name: string; fromPath: boolean } {
  const place = bundle.package(key)
  return { name: place?.name ?? bundle.team(bundle.file(key).key).name, fromPath: place === null }
}

/**
 * What a run of the bundle needs of its daemon: what its teams require, and the agents that their phases name. Throws
 * `invalid_request` when two teams require what no daemon can have.
 */
export function needsOfBundle(bundle: Bundle): Needs {
  return allNeeds(teamsOf(bundle).map(([, team]) => needsOf(team.requires, agentRefs(team))))
}

/** The origin of each `url` of a team whose scheme, host and port contain no template: `https://status.example.com`. */
export function literalOrigins(team: Team): Set<string> {
  const origins = new Set<string>()
  for (const phase of team.phases) {
    if (phase.type !== 'standard') continue
    for (const { entry } of [...phase.sources, ...phase.targets]) addOrigins(entry, origins)
    addOrigins(phase.fields, origins)
  }
  for (const { fields, on } of team.listeners) {
    addOrigins(fields, origins)
    for (const event of Object.values(on)) addOrigins(event.options, origins)
  }
  return origins
}

function addOrigins({ source }: Template, origins: Set<string>): void {
  const url = isObject(source) ? (source.url as Json | undefined) : undefined
  if (typeof url !== 'string') return
  const authority = /^https?:\/\/[^/?#{}\s]+(?=[/?#]|$)/.exec(url)?.[0]
  if (authority && URL.canParse(authority)) origins.add(new URL(authority).origin)
}
