// The teams of a realm: those that it may run, and those that ran in it.

import { ListHubRunTeams } from '../../wire/calls/hub-runs.ts'
import { GetPackage, GetReach } from '../../wire/calls/packages.ts'
import { ListRealmTeams } from '../../wire/calls/realms.ts'
import type { Realm } from '../../wire/records/hub-records.ts'
import type { Reach } from '../../wire/records/packages.ts'
import { Cards, List, useList } from '../kit/lists.tsx'
import { useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import { When } from '../kit/time.tsx'
import { TeamCard, WritesOutside } from '../teams/teams.tsx'
import { hub } from './kit/api.ts'
import { may, NoRealm, RealmChoice, useRealm } from './kit/realm-choice.tsx'

const PAGE = 100

export function Teams() {
  const realm = useRealm()
  return (
    <main>
      <header class="top">
        <h1>Teams</h1>
      </header>
      <RealmChoice />
      {realm ? <TeamsOf key={realm.id} realm={realm} /> : <NoRealm />}
    </main>
  )
}

function TeamsOf({ realm, realm: { id: realm_id } }: { realm: Realm }) {
  const found = useList(`teams of ${realm_id}`, async () => {
    const [listed, ran] = await Promise.all([allListed(realm_id), allThatRan(realm_id)])
    const names = [...new Set([...listed, ...ran])].sort()
    return { teams: names.map(team => ({ team, isListed: listed.includes(team) })) }
  })
  return (
    <List
      of={found}
      none={
        <p>
          The realm may run no team yet: <a href={to('realms', realm_id, 'teams')}>put one on its list</a>.
        </p>
      }
    >
      {teams => (
        <Cards>
          {teams.map(({ team, isListed }) => (
            <TeamCard key={team} team={team} place={{ realm_id }}>
              {() =>
                isListed ? (
                  <Published team={team} realm={realm} />
                ) : (
                  <p class="small quiet">It is not on the list of teams that the realm may run</p>
                )
              }
            </TeamCard>
          ))}
        </Cards>
      )}
    </List>
  )
}

async function allListed(realm_id: string): Promise<string[]> {
  return allOf(async page => {
    const { teams, total } = await hub(ListRealmTeams, { realm_id, ...page })
    return { names: teams.map(({ team }) => team), total }
  })
}

async function allThatRan(realm_id: string): Promise<string[]> {
  return allOf(async page => {
    const { teams, total } = await hub(ListHubRunTeams, { realm_id, ...page })
    return { names: teams, total }
  })
}

async function allOf(
  read: (page: { limit: number; offset: number }) => Promise<{ names: string[]; total: number }>,
): Promise<string[]> {
  const all: string[] = []
  for (;;) {
    const { names, total } = await read({ limit: PAGE, offset: all.length })
    all.push(...names)
    if (names.length === 0 || all.length >= total) return all
  }
}

const reaches = new Map<string, Promise<Reach>>()
let lastReach: Promise<unknown> = Promise.resolve()

/** A hub reads a few packages at once for a user, and refuses more. So one is asked for after the other, and each once. */
function reachOf(version: string): Promise<Reach> {
  const known = reaches.get(version)
  if (known) return known
  const found = lastReach.then(() => hub(GetReach, { team: version }))
  lastReach = found.catch(() => reaches.delete(version))
  reaches.set(version, found)
  return found
}

/** Who published it, and what it writes. Nothing of it where the user may not see the package. */
function Published({ team, realm }: { team: string; realm: Realm }) {
  const { data } = useLoaded(`package ${team}`, async () => {
    const found = await hub(GetPackage, { team })
    return { found, reach: await reachOf(`${team}@${found.version}`) }
  })
  return (
    <>
      {data && (
        <>
          <WritesOutside of={data.reach.writes} />
          <p class="small quiet">
            {data.found.version} published{data.found.published_by && ` by ${data.found.published_by}`}{' '}
            <When at={data.found.published_at} />
          </p>
        </>
      )}
      <p class="small">
        {may(realm, 'operator') && (
          <>
            <a href={withQuery(to('dispatch'), { realm: realm.id, team })}>Dispatch</a> ·{' '}
          </>
        )}
        <a href={to('packages', team)}>Package</a>
      </p>
    </>
  )
}
