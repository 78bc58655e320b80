// Invitations to a realm: those that are open, and new ones, whose link is shown once.

import { useSignal } from '@preact/signals'
import { Invite, ListInvitations, RevokeInvitation } from '../../../wire/calls/realm-members.ts'
import type { Realm, RealmRole } from '../../../wire/records/hub-records.ts'
import { ActionButton, FormCard } from '../../kit/actions.tsx'
import { CopyableSecret } from '../../kit/copyable.tsx'
import { Rows, useList } from '../../kit/lists.tsx'
import { to } from '../../kit/route.ts'
import { UpcomingTime, When } from '../../kit/time.tsx'
import { hub } from '../kit/api.ts'
import { RoleFor } from './members.tsx'

const linkOf = (token: string): string => `${location.origin}/${to('join', token)}`

export function Invitations({ realm: { id: realm_id, name } }: { realm: Realm }) {
  const found = useList(`invitations ${realm_id}`, page => hub(ListInvitations, { realm_id, ...page }))
  const username = useSignal('')
  const role = useSignal<RealmRole>('member')
  const link = useSignal('')
  return (
    <>
      {link.value !== '' && (
        <CopyableSecret title="The link of the invitation." text={link.value}>
          <p class="small quiet">Send it to the person you invite. It admits one account, within 14 days.</p>
        </CopyableSecret>
      )}
      <Rows
        of={found}
        none={<p>No invitation is open. Create one below, and send its link.</p>}
        name={each => each.id}
        columns={[
          { title: 'For', cell: each => each.username ?? 'whoever has the link' },
          { title: 'Role', cell: each => each.role },
          { title: 'By', cell: each => each.created_by },
          { title: 'Created', cell: each => <When at={each.created_at} /> },
          { title: 'Ends', cell: each => <UpcomingTime at={each.expires_at} /> },
          {
            title: '',
            class: 'end',
            cell: each => (
              <ActionButton
                question={`Revoke the invitation of ${each.username ?? 'whoever has the link'}? Nobody can use the link any more.`}
                send={send => send(RevokeInvitation, { id: each.id })}
                done={found.again}
              >
                Revoke
              </ActionButton>
            ),
          },
        ]}
      />
      <FormCard
        label={`Invite to ${name}`}
        submit="Create a link"
        send={async send => {
          const name = username.value.trim()
          const { token } = await send(Invite, {
            realm_id,
            role: role.value,
            ...(name !== '' && { username: name }),
          })
          link.value = linkOf(token)
          username.value = ''
          found.again()
        }}
      >
        <RoleFor username={username} role={role} anyone="only this one may use it" />
      </FormCard>
    </>
  )
}
