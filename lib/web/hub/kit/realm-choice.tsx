// The realms and orgs of the user, and the realm that a page is about: the one in the address, or the last one that the
// user looked at.

import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { ListOrgs } from '../../../wire/calls/orgs.ts'
import { ListRealms } from '../../../wire/calls/realms.ts'
import type { Realm, RealmRole } from '../../../wire/records/hub-records.ts'
import { Select } from '../../kit/fields.tsx'
import { Empty, useLoaded } from '../../kit/parts.tsx'
import { route, setQuery, to } from '../../kit/route.ts'
import { hub } from './api.ts'

const KEY = 'cadre-realm'
const PAGE = 100

/** Null while they are not known. */
export const realms = signal<readonly Realm[] | null>(null)

export async function loadRealms(): Promise<void> {
  const all: Realm[] = []
  for (let total = 1; all.length < total; ) {
    const found = await hub(ListRealms, { limit: PAGE, offset: all.length })
    all.push(...found.realms)
    total = found.realms.length === 0 ? 0 : found.total
  }
  realms.value = all
}

export const realmName = (id: string): string => realms.value?.find(realm => realm.id === id)?.name ?? id

const RANK: Record<RealmRole, number> = { member: 0, operator: 1, admin: 2 }
/** Whether the role of the user in a realm is enough. The hub checks it again. */
export const may = (realm: Realm | undefined, need: RealmRole): boolean =>
  realm !== undefined && RANK[realm.my_role] >= RANK[need]

/** Why the user may not do something in a realm, and who may; null when they may. */
export function forbids(realm: Realm | undefined, need: RealmRole): string | null {
  if (may(realm, need)) return null
  const who = { member: 'Members', operator: 'Operators and admins', admin: 'Admins' }[need]
  return `${who} of ${realm?.name ?? 'its realm'} do this`
}

/** The realm of a page. */
export function useRealm(): Realm | undefined {
  const wanted = route.value.query.get('realm') ?? localStorage.getItem(KEY)
  return realms.value?.find(({ id }) => id === wanted) ?? realms.value?.[0]
}

/** One of the realms of the user, or `none` of them. */
export function RealmSelect({ none, ...chosen }: { none?: string; value: string; set(realm: string): void }) {
  const all = (realms.value ?? []).map(({ id, name }) => [id, name] as const)
  return <Select label="Realm" {...chosen} of={none === undefined ? all : [['', none], ...all]} />
}

export function RealmChoice({ children }: { children?: ComponentChildren }) {
  const chosen = useRealm()
  const all = realms.value ?? []
  if (all.length < 2 && !children) return null
  return (
    <search class="row filters">
      {all.length > 1 && (
        <RealmSelect
          value={chosen?.id ?? ''}
          set={realm => {
            localStorage.setItem(KEY, realm)
            setQuery({ ...Object.fromEntries(route.value.query), realm })
          }}
        />
      )}
      {children}
    </search>
  )
}

/** What a page says to somebody who is in no realm. */
export const NoRealm = () => (
  <Empty>
    <p>You are in no realm yet.</p>
    <p>
      Open the link of an invitation, or create a realm on the page <a href={to('realms')}>Realms</a>.
    </p>
  </Empty>
)

/** The orgs of which the user is an owner or admin. Only they create realms and read the audit log. */
export function useManagedOrgs() {
  const { data } = useLoaded('orgs', () => hub(ListOrgs, { limit: 100 }))
  return (data?.orgs ?? []).filter(({ my_role }) => my_role !== 'member')
}
