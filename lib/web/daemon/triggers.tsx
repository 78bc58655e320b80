// The pages of the triggers of this home.

import { ValidateTeam } from '../../wire/calls/teams.ts'
import { call, token } from '../kit/api.ts'
import { zoneHere } from '../kit/time.tsx'
import { knownTeams } from '../run/runs.tsx'
import { TriggerPages } from '../triggers/pages.tsx'
import type { Place } from '../triggers/place.ts'
import { planAddress, teamRef } from './plan.tsx'

/** `id`: of a trigger, or the name of another page. */
export function TriggersPage({ id }: { id: string | undefined }) {
  const place: Place = {
    mayChange: token.value !== null,
    tz: zoneHere(),
    teamHint: '@scope/name, or the path of a folder with a team.yml',
    teamPage: team => planAddress(team, {}),
    kinds: ['schedule', 'hook', 'watch', 'chain'],
    ran: knownTeams,
    teams: async () => (await knownTeams()).filter(team => !team.startsWith('@local/')),
    fieldsOf: async team => (await call(ValidateTeam, teamRef(team))).inputs,
  }
  return <TriggerPages id={id} place={place} placeOf={() => place} />
}
