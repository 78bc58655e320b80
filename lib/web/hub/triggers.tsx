// The pages of the triggers of realms. They are loaded when somebody opens one.

import { GetPackage } from '../../wire/calls/packages.ts'
import { ListRealmTeams } from '../../wire/calls/realms.ts'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { to } from '../kit/route.ts'
import type { Place } from '../triggers/place.ts'
import { hub, me } from './kit/api.ts'
import { may, NoRealm, RealmChoice, realms, useRealm } from './kit/realm-choice.tsx'

/** `id`: of a trigger, or the name of another page. */
export function TriggersPage({ id }: { id: string | undefined }) {
  const realm = useRealm()
  const { data: pages, error } = useLoaded('pages of triggers', () => import('../triggers/pages.tsx'))
  if (!realm) {
    return (
      <main>
        <h1>Triggers</h1>
        <NoRealm />
      </main>
    )
  }
  if (!pages) {
    return (
      <main aria-busy="true">
        <Failure of={error} />
      </main>
    )
  }
  return (
    <pages.TriggerPages id={id} place={placeOf(realm.id)} placeOf={realm_id => placeOf(realm_id ?? realm.id)}>
      <RealmChoice />
    </pages.TriggerPages>
  )
}

function placeOf(realm_id: string): Place {
  const teams = async () => (await hub(ListRealmTeams, { realm_id, limit: 100 })).teams.map(({ team }) => team)
  return {
    realm_id,
    user: me.value?.username ?? '',
    mayChange: may(
      realms.value?.find(({ id }) => id === realm_id),
      'operator',
    ),
    tz: 'UTC',
    teamHint: '@scope/name, from the list of the realm',
    teamPage: team => to('packages', team.replace(/(?<=.)@.*$/, '')),
    kinds: ['schedule', 'hook', 'chain'],
    ran: teams,
    teams,
    fieldsOf: async team => (await hub(GetPackage, { team })).inputs,
  }
}
