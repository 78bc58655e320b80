// The orgs of the user.

import { ListOrgs } from '../../../wire/calls/orgs.ts'
import { useLoaded } from '../../kit/parts.tsx'
import { hub } from './api.ts'

/** Those in which the user may create realms and read the audit log: as an owner or admin. */
export function useLedOrgs() {
  const { data } = useLoaded('orgs', () => hub(ListOrgs, { limit: 100 }))
  return (data?.orgs ?? []).filter(({ my_role }) => my_role !== 'member')
}
