// The runs of all daemons, with filters.

import { HUB_RUN_STATES } from '../../wire/states.ts'
import { command } from '../kit/api.ts'
import { filters, to } from '../kit/route.ts'
import { RunFilters, RunList } from '../run/runs.tsx'
import { RealmSelect, realms } from './kit/realm-choice.tsx'

export function Runs() {
  const { chosen, filter } = filters('state', 'team', 'started_by', 'search', 'realm')
  const { state, team, started_by, search, realm } = chosen
  return (
    <main>
      <header class="top">
        <h1>Runs</h1>
        <a class="button" href={to('dispatch')}>
          Dispatch
        </a>
      </header>
      <RunFilters states={HUB_RUN_STATES} chosen={chosen} filter={filter} searched="name, team or id">
        {(realms.value?.length ?? 0) > 1 && <RealmSelect none="all" {...filter('realm')} />}
      </RunFilters>
      <RunList filter={{ state, team, started_by, search: search.trim(), realm_id: realm }}>
        <p>No daemon has reported a run yet.</p>
        <p>
          <a href={to('dispatch')}>Dispatch a team</a>, or at a terminal: <code>{command} dispatch @scope/name</code>
        </p>
      </RunList>
    </main>
  )
}
