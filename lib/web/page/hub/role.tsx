// The roles in a realm.

import { Select } from './asking.tsx'
import type { Role } from './calls.ts'

export const ROLES: readonly (readonly [Role, string])[] = [
  ['member', 'member: reads'],
  ['operator', 'operator: starts and decides'],
  ['admin', 'admin: manages'],
]

export const RoleChoice = ({ value, set }: { value: Role; set(role: Role): void }) => (
  <Select label="Role" value={value} set={role => set(role as Role)} of={ROLES} />
)
