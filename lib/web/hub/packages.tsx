// Published teams, the versions of one, and what changed between two versions.

import { sizeText } from '../../size.ts'
import { ListPackages, ListVersions, YankPackage } from '../../wire/calls/packages.ts'
import { AddTeam, ListRealmTeams } from '../../wire/calls/realms.ts'
import { ListScopes } from '../../wire/calls/scopes.ts'
import { ActionButton } from '../kit/actions.tsx'
import { command } from '../kit/api.ts'
import { Field, Select } from '../kit/fields.tsx'
import { Cards, List, Rows, useList } from '../kit/lists.tsx'
import { useLoaded } from '../kit/parts.tsx'
import { filters, route, setQuery, to, withQuery } from '../kit/route.ts'
import { When } from '../kit/time.tsx'
import { TeamTriggers } from '../triggers/team-triggers.tsx'
import { Comparison } from './comparison.tsx'
import { hub } from './kit/api.ts'
import { may, realms, useRealm } from './kit/realm-choice.tsx'

export function Packages() {
  const { chosen, filter } = filters('search')
  const { search } = chosen
  const found = useList(`packages ${search}`, page =>
    hub(ListPackages, { ...page, ...(search.trim() && { query: search.trim() }) }),
  )
  return (
    <main>
      <header class="top">
        <h1>Packages</h1>
      </header>
      <search class="row filters">
        <Field label="Search" type="search" maxLength={200} placeholder="name or description" {...filter('search')} />
      </search>
      <List
        of={found}
        none={
          search ? (
            <p>No package fits.</p>
          ) : (
            <>
              <p>Nothing is published in your scopes.</p>
              <p>
                <code>{command} publish examples/repo-report --scope SCOPE</code>
              </p>
            </>
          )
        }
      >
        {teams => (
          <Cards>
            {teams.map(team => (
              <li key={team.name} class="card">
                <h2 class="wrap">
                  <a href={to('packages', team.name)}>{team.name}</a>
                </h2>
                <p class="small quiet">
                  {team.version} · <When at={team.published_at} />
                </p>
                {team.description && <p class="wrap">{team.description}</p>}
              </li>
            ))}
          </Cards>
        )}
      </List>
    </main>
  )
}

export function PackagePage({ name }: { name: string }) {
  const { query } = route.value
  const realm = useRealm()
  const found = useList(`versions ${name}`, page => hub(ListVersions, { team: name, ...page }))
  const scopes = useLoaded('scopes', () => hub(ListScopes, { limit: 100 }))
  const role = scopes.data?.scopes.find(({ slug }) => name.startsWith(`@${slug}/`))?.my_role
  const versions = found.items?.map(({ version }) => version) ?? []
  const newer = query.get('to') ?? versions[0]
  const older = query.get('from') ?? versions[1]
  return (
    <main>
      <p class="crumbs">
        <a href={to('packages')}>Packages</a>
      </p>
      <header class="top">
        <div>
          <h1 class="wrap">{name}</h1>
          <p class="quiet wrap">{found.items?.[0]?.description}</p>
        </div>
        <RealmListing name={name} />
      </header>
      <Rows
        of={found}
        none={<p>Every version of this package was taken back.</p>}
        name={each => each.id}
        columns={[
          { title: 'Version', class: 'number', cell: each => each.version },
          { title: 'Published', cell: each => <When at={each.published_at} /> },
          { title: 'Size', class: 'number', cell: each => sizeText(each.bytes) },
          {
            title: 'Signed by',
            cell: ({ signature }) =>
              signature ? (
                <code title={signature.key}>{signature.key.slice(0, 16)}…</code>
              ) : (
                <span class="quiet">nobody</span>
              ),
          },
          {
            title: '',
            class: 'end',
            cell: each =>
              (role === 'member' || role === 'owned') && (
                <ActionButton
                  question={`Take back ${each.name}@${each.version}? No new run gets it, and nobody can publish this version again. What is pinned to it still works.`}
                  typed={each.version}
                  send={send => send(YankPackage, { team: `${each.name}@${each.version}` })}
                  done={found.again}
                >
                  Yank
                </ActionButton>
              ),
          },
        ]}
      />
      {realm && <TeamTriggers team={name} realm={realm} mayAdd={may(realm, 'operator')} />}
      <h2>What changed</h2>
      {versions.length < 2 ? (
        <p class="quiet">There is one version. From the second on, this shows what a new version does anew.</p>
      ) : (
        <>
          <div class="row filters">
            <Select
              label="From"
              value={older ?? ''}
              set={from => setQuery({ from, to: newer ?? '' })}
              of={versions.map(each => [each, each] as const)}
            />
            <Select
              label="To"
              value={newer ?? ''}
              set={next => setQuery({ from: older ?? '', to: next })}
              of={versions.map(each => [each, each] as const)}
            />
          </div>
          {older && newer && <Comparison key={`${older} ${newer}`} name={name} older={older} newer={newer} />}
        </>
      )}
    </main>
  )
}

/** Lets the realm run the package, or links to the form that dispatches it. */
function RealmListing({ name }: { name: string }) {
  const realm = useRealm()
  const { data, again } = useLoaded(`list ${realm?.id} ${name}`, async () =>
    realm ? (await hub(ListRealmTeams, { realm_id: realm.id, limit: 100 })).teams : [],
  )
  if (!realm || !data || !realms.value) return null
  const listed = data.some(({ team }) => team === name)
  if (!may(realm, 'operator')) return null
  return (
    <div class="row">
      {listed ? (
        <a class="button" href={withQuery(to('dispatch'), { realm: realm.id, team: name })}>
          Dispatch in {realm.name}
        </a>
      ) : (
        <ActionButton send={send => send(AddTeam, { realm_id: realm.id, team: name })} done={again}>
          Put on the list of {realm.name}
        </ActionButton>
      )}
    </div>
  )
}
