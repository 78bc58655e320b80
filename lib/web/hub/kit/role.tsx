// The roles in a realm, and the fields by which somebody gets one.

import type { Signal } from '@preact/signals'
import type { RealmRole } from '../../../wire/records/hub-records.ts'
import { bound, Field, Select } from '../../kit/fields.tsx'

export const ROLES: readonly (readonly [RealmRole, string])[] = [
  ['member', 'member: reads'],
  ['operator', 'operator: starts and decides'],
  ['admin', 'admin: manages'],
]

/** Who gets which role. Where nobody need be named, `anyone` says what the name is for. */
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
