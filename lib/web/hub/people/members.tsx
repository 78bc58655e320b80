// The members of a realm, with their roles.

import { type Signal, useSignal } from '@preact/signals'
import { AddRealmMember, ListRealmMembers, RemoveRealmMember } from '../../../wire/calls/realm-members.ts'
import type { Realm, RealmRole } from '../../../wire/records/hub-records.ts'
import { ConfirmButton, FormCard } from '../../kit/actions.tsx'
import { bound, Field, Select } from '../../kit/fields.tsx'
import { Rows, useList } from '../../kit/lists.tsx'
import { to } from '../../kit/route.ts'
import { hub } from '../kit/api.ts'
import { may } from '../kit/realm-choice.tsx'

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
  const set = async (name: string, to: RealmRole) => {
    await hub(AddRealmMember, { realm_id, username: name, role: to })
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
              isAdmin ? <MemberRole member={member} set={to => set(member.username, to)} /> : member.role,
          },
          isAdmin && {
            title: '',
            class: 'end',
            cell: member => (
              <ConfirmButton
                question={`Remove ${member.username} from ${realm.name}?`}
                action={() => hub(RemoveRealmMember, { realm_id, username: member.username })}
                done={found.again}
              >
                Remove
              </ConfirmButton>
            ),
          },
        ]}
      />
      {isAdmin && (
        <FormCard
          label="Add a member"
          submit="Add"
          action={async () => {
            await set(username.value.trim(), role.value)
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

function MemberRole({
  member,
  set,
}: {
  member: { username: string; role: string }
  set(role: RealmRole): Promise<void>
}) {
  const error = useSignal<unknown>(null)
  return (
    <>
      <select
        aria-label={`Role of ${member.username}`}
        value={member.role}
        onChange={async event => {
          const select = event.currentTarget
          error.value = null
          try {
            await set(select.value as RealmRole)
          } catch (thrown) {
            error.value = thrown
            select.value = member.role
          }
        }}
      >
        {ROLES.map(([role]) => (
          <option key={role} value={role}>
            {role}
          </option>
        ))}
      </select>
      {error.value instanceof Error && (
        <p class="small bad" role="alert">
          {error.value.message}
        </p>
      )}
    </>
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
