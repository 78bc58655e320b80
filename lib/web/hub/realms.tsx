// The realms of the user.

import { useSignal } from '@preact/signals'
import { CreateRealm } from '../../wire/calls/realms.ts'
import { FormCard } from '../kit/actions.tsx'
import { bound, Field, Select } from '../kit/fields.tsx'
import { Cards } from '../kit/lists.tsx'
import { go, to } from '../kit/route.ts'
import { When } from '../kit/time.tsx'
import { loadRealms, realms, useManagedOrgs } from './kit/realm-choice.tsx'

export function Realms() {
  const all = realms.value ?? []
  return (
    <main>
      <header class="top">
        <h1>Realms</h1>
      </header>
      {all.length === 0 ? (
        <p class="quiet">You are in no realm yet. Open the link of an invitation, or create a realm.</p>
      ) : (
        <Cards>
          {all.map(({ id, name, slug, my_role, created_at }) => (
            <li key={id} class="card">
              <h2>
                <a href={to('realms', id)}>{name}</a>
              </h2>
              <p class="small">
                <code>{slug}</code> · you are {my_role}
              </p>
              <p class="small quiet">
                created <When at={created_at} />
              </p>
            </li>
          ))}
        </Cards>
      )}
      <NewRealm />
    </main>
  )
}

function NewRealm() {
  const orgs = useManagedOrgs()
  const name = useSignal('')
  const slug = useSignal('')
  const org = useSignal('')
  const chosen = Number(org.value || orgs[0]?.id)
  if (orgs.length === 0) return null
  return (
    <FormCard
      label="New realm"
      submit="Create"
      send={async send => {
        const { id } = await send(CreateRealm, { org_id: chosen, slug: slug.value, name: name.value.trim() })
        await loadRealms()
        go(to('realms', id))
      }}
    >
      {orgs.length > 1 && (
        <Select
          label="Org"
          value={String(chosen)}
          set={value => {
            org.value = value
          }}
          of={orgs.map(({ id, display_name }) => [String(id), display_name] as const)}
        />
      )}
      <Field
        label="Name"
        required
        maxLength={200}
        value={name.value}
        set={value => {
          name.value = value
          slug.value = value
            .toLowerCase()
            .replaceAll(/[^a-z0-9]+/g, '-')
            .replaceAll(/^-|-$/g, '')
            .slice(0, 63)
        }}
      />
      <Field
        label="Slug"
        required
        pattern="[a-z0-9][a-z0-9\-]*"
        title="small letters, digits and -"
        maxLength={63}
        {...bound(slug)}
      />
    </FormCard>
  )
}
