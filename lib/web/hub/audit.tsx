// Who did what: the audit log, with filters.

import { ListAudit } from '../../wire/calls/hub-audit.ts'
import { Field, Select } from '../kit/fields.tsx'
import { Rows, useList } from '../kit/lists.tsx'
import { filters, to } from '../kit/route.ts'
import { When } from '../kit/time.tsx'
import { hub } from './kit/api.ts'
import { realmName, useManagedOrgs } from './kit/realm-choice.tsx'

const DAY_MS = 86_400_000
/** The actions that people look for most. Any other action can be typed. */
const ACTIONS = [
  'session/create',
  'session/create_failed',
  'auth/generate_token',
  'auth/revoke_token',
  'realms/invite',
  'realms/accept_invite',
  'realms/add_member',
  'realms/remove_member',
  'realms/webhook_take_over',
  'daemons/approve',
  'daemons/remove',
  'dispatch/run',
  'teams/publish',
]

/** Midnight of a date, in the time zone of the reader. */
const dayOf = (date: string): number | undefined => {
  const at = Date.parse(`${date}T00:00:00`)
  return Number.isNaN(at) ? undefined : at
}

export function Audit() {
  const { chosen, filter } = filters('org', 'action', 'since', 'until')
  const { org, action, since, until } = chosen
  const orgs = useManagedOrgs()
  const found = useList(`${org} ${action} ${since} ${until}`, page => {
    const [from, to] = [dayOf(since), dayOf(until)]
    return hub(ListAudit, {
      ...page,
      ...(org && { org_id: Number(org) }),
      ...(action && { action }),
      ...(from !== undefined && { since: from }),
      ...(to !== undefined && { until: to + DAY_MS }),
    })
  })
  return (
    <main>
      <header class="top">
        <h1>Audit</h1>
      </header>
      <search class="row filters">
        {orgs.length > 1 && (
          <Select
            label="Org"
            {...filter('org')}
            of={[['', 'all'], ...orgs.map(({ id, display_name }) => [String(id), display_name] as const)]}
          />
        )}
        <Field label="Action" type="search" list="actions" placeholder="all" {...filter('action')}>
          <datalist id="actions">
            {ACTIONS.map(each => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </Field>
        <Field label="From" type="date" {...filter('since')} />
        <Field label="To" type="date" {...filter('until')} />
      </search>
      <Rows
        of={found}
        none={
          action || since || until ? (
            <p>Nothing fits these filters.</p>
          ) : (
            <p>Nothing was recorded that you may see. Owners and admins of an org see what was done in it.</p>
          )
        }
        name={entry => entry.id}
        columns={[
          { title: 'When', cell: entry => <When at={entry.at} /> },
          { title: 'Who', cell: entry => entry.username ?? <span class="quiet">nobody</span> },
          { title: 'Did', cell: entry => entry.action },
          { title: 'What', class: 'wrap', cell: entry => entry.target ?? '–' },
          { title: 'Where', cell: entry => <Where realm={entry.realm_id} org={entry.org_id} /> },
          { title: 'From', class: 'number', cell: entry => entry.address ?? '–' },
        ]}
      />
    </main>
  )
}

function Where({ realm, org }: { realm: string | null; org: number | null }) {
  if (realm) return <a href={to('realms', realm)}>{realmName(realm)}</a>
  return org ? `org ${org}` : '–'
}
