// The daemons of a realm: whether they answer, what they offer, and which of their agents are ready.

import { ListDaemons } from '../../wire/calls/daemons.ts'
import { ListRealmTeams } from '../../wire/calls/realms.ts'
import type { Daemon } from '../../wire/records/hub-records.ts'
import { command } from '../kit/api.ts'
import { Cards, List, useList } from '../kit/lists.tsx'
import { useLoaded } from '../kit/parts.tsx'
import { route, to } from '../kit/route.ts'
import { When } from '../kit/time.tsx'
import { hub } from './kit/api.ts'
import { AgentTable, Labels, Status, Worries } from './kit/daemon-state.tsx'
import { RealmChoice, useRealm } from './kit/realm-choice.tsx'
import { OlderCopy } from './older-copy.tsx'

export function Daemons() {
  const realm = useRealm()
  const found = useList(`daemons ${realm?.id}`, page =>
    realm ? hub(ListDaemons, { realm_id: realm.id, ...page }) : Promise.resolve({ daemons: [], total: 0 }),
  )
  const grid = route.value.query.get('show') === 'agents'
  return (
    <main>
      <header class="top">
        <h1>Daemons</h1>
      </header>
      <RealmChoice />
      <OlderCopy realm={realm} />
      {realm && <LackingTeams realm_id={realm.id} />}
      <List
        of={found}
        none={
          <>
            <p>No daemon is enrolled in {realm ? realm.name : 'your realms'}.</p>
            <p>
              Mint a <a href={to('tokens')}>realm token</a>, and on the machine that shall run teams:
            </p>
            <p>
              <code>
                {command} enrol --hub {location.origin}
              </code>
            </p>
          </>
        }
      >
        {daemons => (
          <>
            <nav class="tabs" aria-label="Views">
              <a href={to('daemons')} aria-current={grid ? undefined : 'page'}>
                Daemons
              </a>
              <a href={`${to('daemons')}?show=agents`} aria-current={grid ? 'page' : undefined}>
                Agents
              </a>
            </nav>
            {grid ? <AgentTable daemons={daemons} /> : <Overview daemons={daemons} />}
          </>
        )}
      </List>
    </main>
  )
}

/** How often teams are looked at, which change less often than daemons. */
const LOOK_MS = 60_000

/** The teams of the list of the realm that would wait for a daemon, or fail. */
function LackingTeams({ realm_id }: { realm_id: string }) {
  const { data } = useLoaded(`lacking teams ${realm_id}`, () => hub(ListRealmTeams, { realm_id, limit: 100 }), LOOK_MS)
  const teams = data?.teams.filter(({ lacks }) => lacks) ?? []
  if (teams.length === 0) return null
  return (
    <div class="notice awaiting_input">
      <p>No daemon could run these teams of the list:</p>
      <ul>
        {teams.map(({ team, lacks }) => (
          <li key={team}>
            {team} needs {lacks}
          </li>
        ))}
      </ul>
    </div>
  )
}

function Overview({ daemons }: { daemons: readonly Daemon[] }) {
  return (
    <Cards>
      {daemons.map(daemon => (
        <li key={daemon.id} class="card">
          <header class="row between">
            <h2 class="wrap">
              <a href={to('daemons', daemon.id)}>{daemon.name}</a>
            </h2>
            <Status of={daemon} />
          </header>
          <p class="small quiet">
            {daemon.hostname ?? 'unknown host'} · called <When at={daemon.last_seen_at} />
          </p>
          <Labels of={daemon} />
          <Worries of={daemon} />
        </li>
      ))}
    </Cards>
  )
}
