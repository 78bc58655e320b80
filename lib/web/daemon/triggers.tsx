// The pages of the triggers of this home.

import { ValidateTeam } from '../../wire/calls/teams.ts'
import { call, token } from '../kit/api.ts'
import { route } from '../kit/route.ts'
import { planAddress, teamRef } from '../run/plan.tsx'
import { knownTeams } from '../run/runs.tsx'
import { Triggers } from '../triggers/list.tsx'
import type { Place } from '../triggers/place.ts'
import { NewSchedule } from '../triggers/schedule-form.tsx'
import { zoneHere } from '../triggers/times.tsx'
import { TriggerPage } from '../triggers/trigger-page.tsx'

/** `id`: of a trigger, or the name of another page. */
export function TriggersPage({ id }: { id: string | undefined }) {
  const place: Place = {
    mayChange: token.value !== null,
    tz: zoneHere(),
    teamHint: '@scope/name, or the path of a folder with a team.yml',
    teamPage: team => planAddress(team, {}),
    teams: async () => (await knownTeams()).filter(team => !team.startsWith('@local/')),
    fieldsOf: async team => (await call(ValidateTeam, teamRef(team))).inputs,
  }
  if (id === 'new') return <NewSchedule place={place} />
  if (id === undefined || id === 'calendar') return <Triggers place={place} tab={id} />
  return <TriggerPage key={id} id={id} tab={route.value.parts[2]} placeOf={() => place} />
}
