// The runs of all daemons, with filters.

import { HUB_RUN_STATES } from '../../../wire/states.ts'
import { command } from '../command.ts'
import { useLoaded } from '../parts.tsx'
import { route, setQuery, to } from '../route.ts'
import { RunList } from '../runs.tsx'
import { wordOf } from '../state.tsx'
import { hub } from './api.ts'
import { Field, Select } from './asking.tsx'
import { realms } from './realm-choice.tsx'

export function Runs() {
  const { query } = route.value
  const [state, team, search, realm] = ['state', 'team', 'search', 'realm'].map(name => query.get(name) ?? '') as [
    string,
    string,
    string,
    string,
  ]
  const set = (change: object) => setQuery({ state, team, search, realm, ...change })
  const teams = useLoaded('teams', async () => {
    const { runs } = await hub('runs/list', { limit: 100 })
    return [...new Set(runs.map(each => each.team))].sort()
  })
  const names = [...new Set([...(teams.data ?? []), ...(team ? [team] : [])])]
  const all = realms.value ?? []
  return (
    <main>
      <header class="top">
        <h1>Runs</h1>
        <a class="button" href={to('dispatch')}>
          Dispatch
        </a>
      </header>
      <search class="row filters">
        {all.length > 1 && (
          <Select
            label="Realm"
            value={realm}
            set={realm => set({ realm })}
            of={[['', 'all'], ...all.map(({ id, name }) => [id, name] as const)]}
          />
        )}
        <Select
          label="State"
          value={state}
          set={state => set({ state })}
          of={[['', 'all'], ...HUB_RUN_STATES.map(each => [each, wordOf(each)] as const)]}
        />
        <Select
          label="Team"
          value={team}
          set={team => set({ team })}
          of={[['', 'all'], ...names.map(each => [each, each] as const)]}
        />
        <Field
          label="Search"
          type="search"
          maxLength={200}
          placeholder="name, team or id"
          value={search}
          set={search => set({ search })}
        />
      </search>
      <RunList filter={{ state, team, search: search.trim(), realm_id: realm }}>
        <p>No daemon has reported a run yet.</p>
        <p>
          <a href={to('dispatch')}>Dispatch a team</a>, or at a terminal: <code>{command} dispatch @scope/name</code>
        </p>
      </RunList>
    </main>
  )
}
