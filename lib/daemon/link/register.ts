// The enrolment call, and what the run database keeps of its answer, so that it is known without the hub too.

import { hostname } from 'node:os'
import type { Static } from 'typebox'
import { commit } from '../../program/version.ts'
import { HOME_FACTS, type Store } from '../../run/engine.ts'
import { Register, type Start } from '../../wire/calls/daemon-link.ts'
import { type Bulletin, PROTOCOL } from '../../wire/protocol.ts'
import type { HubClient } from './hub-client.ts'

/** What a daemon says of itself. */
export type Introduction = Pick<
  Static<typeof Register.body>,
  | 'name'
  | 'version'
  | 'capacity'
  | 'agents'
  | 'labels'
  | 'workspaces'
  | 'sandbox'
  | 'kinds'
  | 'accounts'
  | 'environments'
  | 'examined'
>

/** Which start of the home this is, as the daemon reports it to the hub. */
export function startOf({ facts }: Pick<Store, 'facts'>): Start {
  const [starts, start] = [facts.get(HOME_FACTS.starts), facts.get(HOME_FACTS.start)]
  return starts === null || start === null ? {} : { starts: Number(starts), start }
}

/**
 * Enrols the daemon of this database, with the id that it has. With `again` it enrols in the realm where it was: only a
 * person who starts it may take it to another one. Throws the hub's error, or `unavailable`.
 */
export async function register(
  client: HubClient,
  { facts }: Pick<Store, 'facts'>,
  introduction: Introduction,
  { again = false, signal }: { again?: boolean; signal?: AbortSignal } = {},
): Promise<Static<typeof Register.data>> {
  const known = facts.get('daemon_id')
  const realm = again ? facts.get('realm_id') : null
  const made = commit()
  const teams_version = facts.get('teams_version')
  const body = {
    ...(known !== null && { daemon_id: known }),
    ...(realm !== null && { realm_id: realm }),
    hostname: hostname(),
    protocol: PROTOCOL,
    ...(made !== null && { commit: made }),
    ...introduction,
    ...startOf({ facts }),
    ...(teams_version !== null && { teams_version }),
  }
  const enrolled = await client.call(Register, body, { ...(signal && { signal }) })
  facts.set('daemon_id', enrolled.daemon_id)
  facts.set('realm_id', enrolled.realm_id)
  facts.drop(HOME_FACTS.movedAway)
  keepTeams({ facts }, enrolled)
  return enrolled
}

/** Stores the team list of the realm where the hub has sent a new one. */
export function keepTeams({ facts }: Pick<Store, 'facts'>, { teams, teams_version }: Bulletin): void {
  if (!teams) return
  facts.set('teams', JSON.stringify(teams))
  facts.set('teams_version', teams_version)
}

/** The teams of the realm, as they were when the hub last sent them. */
export function knownTeams({ facts }: Pick<Store, 'facts'>): Set<string> {
  return new Set(JSON.parse(facts.get('teams') ?? '[]') as string[])
}
