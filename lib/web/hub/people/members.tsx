// The members of a realm, with their roles.

import { type Signal, useSignal } from '@preact/signals'
import { AddRealmMember, ListRealmMembers, RemoveRealmMember } from '../../../wire/calls/realm-members.ts'
import type { Realm, RealmRole } from '../../../wire/records/hub-records.ts'
import { ActionButton, FormCard } from '../../kit/actions.tsx'
import type { Send } from '../../kit/api.ts'
import { bound, Field, Select } from '../../kit/fields.tsx'
import { Rows, useList } from '../../kit/lists.tsx'
import { to } from '../../kit/route.ts'
import { hub } from '../kit/api.ts'
import { forbids, may } from '../kit/realm-choice.tsx'

const ROLES: readonly (readonly [RealmRole, string])[] = [
  ['member', 'member: reads'],
  ['operator', 'operator: starts and decides'],
  ['admin', 'admin: manages'],
]

export function Members({ realm }: { realm: Realm }) {
  const { id: realm_id } = realm
  const found = useList(`members ${realm_id}`, page => hub(ListRealmMembers, { realm_id, ...page }))
  const username = useSignal('')
  const role = useSignal<RealmRole>('member')
  const isAdmin = may(realm, 'admin')
  const set = async (send: Send, name: string, to: RealmRole) => {
    await send(AddRealmMember, { realm_id, username: name, role: to })
    found.again()
  }
  return (
    <>
      <Rows
        of={found}
        none={<p>The realm has no members of its own. Owners and admins of its org may use it.</p>}
        name={member => member.user_id}
        columns={[
          { title: 'User', cell: member => member.username },
          {
            title: 'Role',
            cell: member =>
              isAdmin ? <MemberRole member={member} set={(send, to) => set(send, member.username, to)} /> : member.role,
          },
          {
            title: '',
            class: 'end',
            cell: member => (
              <ActionButton
                forbidden={forbids(realm, 'admin')}
                question={`Remove ${member.username} from ${realm.name}? What they and their tokens may do there ends at once.`}
                undo={{
                  what: `${member.username} was removed from ${realm.name}.`,
                  send: send => set(send, member.username, member.role as RealmRole),
                }}
                send={send => send(RemoveRealmMember, { realm_id, username: member.username })}
                done={found.again}
              >
                Remove
              </ActionButton>
            ),
          },
        ]}
      />
      {isAdmin && (
        <FormCard
          label="Add a member"
          submit="Add"
          send={async send => {
            await set(send, username.value.trim(), role.value)
            username.value = ''
          }}
        >
          <RoleFor username={username} role={role} />
          <p class="small quiet full-width">
            Somebody without an account needs an <a href={to('realms', realm_id, 'invitations')}>invitation</a>.
          </p>
        </FormCard>
      )}
    </>
  )
}

/** What a role lets somebody do, as a sentence goes on. */
const MAY: Record<RealmRole, string> = {
  member: 'only read',
  operator: 'start and cancel runs, and answer reviews',
  admin: 'do everything here, and give roles to others',
}

/** Rights change by a button, never while somebody walks through the choices. */
function MemberRole({
  member: { username, role },
  set,
}: {
  member: { username: string; role: string }
  set(send: Send, role: RealmRole): Promise<void>
}) {
  const chosen = useSignal(role as RealmRole)
  return (
    <div class="row">
      <select
        aria-label={`Role of ${username}`}
        value={chosen.value}
        onChange={event => {
          chosen.value = event.currentTarget.value as RealmRole
        }}
      >
        {ROLES.map(([each]) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
      {chosen.value !== role && (
        <ActionButton
          key={chosen.value}
          question={`${username} may then ${MAY[chosen.value]}.`}
          confirm={`Make ${username} ${chosen.value}`}
          send={send => set(send, chosen.value)}
        >
          Save
        </ActionButton>
      )}
    </div>
  )
}

/** The user name and the role of a new member. With `anyone` the name is optional, and `anyone` says what it is for. */
export function RoleFor({
  username,
  role,
  anyone,
}: {
  username: Signal<string>
  role: Signal<RealmRole>
  anyone?: string
}) {
  const optional = anyone !== undefined
  return (
    <>
      <Field
        label={optional ? `User name (${anyone})` : 'User name'}
        required={!optional}
        placeholder={optional ? 'anyone' : ''}
        {...bound(username)}
      />
      <Select label="Role" {...bound(role)} of={ROLES} />
    </>
  )
}
