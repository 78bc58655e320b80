// The teams that a realm may run.

import { useSignal } from '@preact/signals'
import { AddTeam, ListRealmTeams, RemoveTeam } from '../../wire/calls/realms.ts'
import type { Realm } from '../../wire/records/hub-records.ts'
import { ActionButton, FormCard } from '../kit/actions.tsx'
import { bound, Field } from '../kit/fields.tsx'
import { Rows, useList } from '../kit/lists.tsx'
import { to, withQuery } from '../kit/route.ts'
import { When } from '../kit/time.tsx'
import { hub } from './kit/api.ts'
import { forbids, may } from './kit/realm-choice.tsx'

export function ListedTeams({ realm }: { realm: Realm }) {
  const { id: realm_id } = realm
  const found = useList(`teams ${realm_id}`, page => hub(ListRealmTeams, { realm_id, ...page }))
  const team = useSignal('')
  const isOperator = may(realm, 'operator')
  return (
    <>
      <Rows
        of={found}
        none={
          <>
            <p>The realm may run no team yet.</p>
            <p>
              Publish one, then put it on this list: <a href={to('packages')}>packages</a>.
            </p>
          </>
        }
        name={each => each.team}
        columns={[
          { title: 'Team', cell: each => <a href={to('packages', each.team)}>{each.team}</a> },
          { title: 'No daemon has', cell: each => each.lacks ?? '' },
          { title: 'On the list since', cell: each => <When at={each.added_at} /> },
          {
            title: '',
            class: 'end',
            cell: each => (
              <>
                <a class="button plain" href={withQuery(to('dispatch'), { realm: realm_id, team: each.team })}>
                  Dispatch
                </a>
                <ActionButton
                  forbidden={forbids(realm, 'operator')}
                  question={`Remove ${each.team} from ${realm.name}? Nobody can dispatch it there, and its runs are not reported any more.`}
                  send={send => send(RemoveTeam, { realm_id, team: each.team })}
                  done={found.again}
                  undo={{
                    what: `${each.team} was removed from ${realm.name}.`,
                    send: send => send(AddTeam, { realm_id, team: each.team }),
                  }}
                >
                  Remove
                </ActionButton>
              </>
            ),
          },
        ]}
      />
      {isOperator && (
        <FormCard
          label="Put a team on the list"
          submit="Add"
          send={async send => {
            await send(AddTeam, { realm_id, team: team.value.trim() })
            team.value = ''
            found.again()
          }}
        >
          <Field label="Team" required placeholder="@scope/name" {...bound(team)} />
        </FormCard>
      )}
    </>
  )
}
