// The teams that have run here, with their folders.

import { GetRun, ListRunTeams } from '../../wire/calls/runs.ts'
import { PlanTeam } from '../../wire/calls/teams.ts'
import { call } from '../kit/api.ts'
import { Cards, List, useList } from '../kit/lists.tsx'
import { useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import { TeamCard, WritesOutside } from '../teams/teams.tsx'
import { planAddress, teamRef } from './plan.tsx'

export function Teams() {
  const found = useList('teams', page => call(ListRunTeams, page))
  return (
    <main>
      <header class="top">
        <h1>Teams</h1>
      </header>
      <List
        of={found}
        none={
          <p>
            No team has run here yet: <a href={to('start')}>start one</a>.
          </p>
        }
      >
        {teams => (
          <Cards>
            {teams.map(team => (
              <TeamCard key={team} team={team} place={{}}>
                {newest => newest && <OfThisMachine team={team} run_id={newest.run_id} />}
              </TeamCard>
            ))}
          </Cards>
        )}
      </List>
    </main>
  )
}

/** Where its files are, as the newest run says, and what its next run would write. */
function OfThisMachine({ team, run_id }: { team: string; run_id: string }) {
  const { data } = useLoaded(`place ${run_id}`, async () => {
    const { folder = null } = await call(GetRun, { run_id })
    const named = folder ?? team
    const plan = await call(PlanTeam, teamRef(named)).catch(() => null)
    return { folder, named, plan }
  })
  if (!data) return null
  return (
    <>
      {data.plan ? (
        <WritesOutside of={data.plan.writes} />
      ) : (
        <p class="small quiet">Its files cannot be read, so nobody knows what it would write</p>
      )}
      {data.folder !== null && (
        <p class="small quiet wrap">
          <code>{data.folder}</code>
        </p>
      )}
      <p class="small">
        <a href={withQuery(to('start'), { team: data.named })}>Start</a> ·{' '}
        <a href={planAddress(data.named, {})}>Plan</a>
      </p>
    </>
  )
}
