// The members of a realm, with their roles.

import { useSignal } from '@preact/signals'
import { AddRealmMember, ListRealmMembers, RemoveRealmMember } from '../../../wire/calls/realm-members.ts'
import type { Realm, RealmRole } from '../../../wire/records/hub-records.ts'
import { Ask } from '../../kit/actions.tsx'
import { Ending, Rows, useList } from '../../kit/lists.tsx'
import { to } from '../../kit/route.ts'
import { hub } from '../kit/api.ts'
import { may } from '../kit/realm-choice.tsx'
import { ROLES, RoleFor } from '../kit/role.tsx'

export function Members({ realm }: { realm: Realm }) {
  const { id: realm_id } = realm
  const found = useList(`members ${realm_id}`, page => hub(ListRealmMembers, { realm_id, ...page }))
  const username = useSignal('')
  const role = useSignal<RealmRole>('member')
  const leads = may(realm, 'admin')
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
            cell: member => (leads ? <MemberRole member={member} set={to => set(member.username, to)} /> : member.role),
          },
          leads && {
            title: '',
            class: 'end',
            cell: member => (
              <Ending
                list={found}
                question={`Remove ${member.username} from ${realm.name}?`}
                work={() => hub(RemoveRealmMember, { realm_id, username: member.username })}
              />
            ),
          },
        ]}
      />
      {leads && (
        <Ask
          label="Add a member"
          submit="Add"
          work={async () => {
            await set(username.value.trim(), role.value)
            username.value = ''
          }}
        >
          <RoleFor username={username} role={role} />
          <p class="small quiet whole">
            Somebody without an account needs an <a href={to('realms', realm_id, 'invitations')}>invitation</a>.
          </p>
        </Ask>
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
