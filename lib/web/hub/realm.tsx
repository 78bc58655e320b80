// One realm: its members, invitations, teams and webhooks.

import { sizeText } from '../../size.ts'
import { DeleteRealm, GetRealm } from '../../wire/calls/realms.ts'
import type { Realm, RealmRole } from '../../wire/records/hub-records.ts'
import { ActionButton } from '../kit/actions.tsx'
import { REFRESH_MS } from '../kit/lists.tsx'
import { useLoaded } from '../kit/parts.tsx'
import { go, route, to } from '../kit/route.ts'
import { hub } from './kit/api.ts'
import { forbids, loadRealms, may, realms } from './kit/realm-choice.tsx'
import { ListedTeams } from './listed-teams.tsx'
import { Invitations } from './people/invitations.tsx'
import { Members } from './people/members.tsx'
import { Webhooks } from './webhooks.tsx'

const TABS = { members: 'Members', invitations: 'Invitations', teams: 'Teams', webhooks: 'Webhooks' } as const
type Tab = keyof typeof TABS
/** The role that each tab needs. The hub refuses users with a lower role. */
const NEEDS: Record<Tab, RealmRole> = { members: 'member', invitations: 'admin', teams: 'member', webhooks: 'operator' }

const BYTES: readonly string[] = ['stored_bytes', 'log_bytes']
const TITLES: Record<string, string> = {
  waiting: 'waiting runs',
  dispatches_per_minute: 'dispatches this minute',
  stored_bytes: 'stored files',
  log_bytes: 'logs',
  streams: 'open streams',
}

/** What the realm uses of its quotas, where it has any. */
function Quotas({ realm_id }: { realm_id: string }) {
  const { data } = useLoaded(`quotas ${realm_id}`, () => hub(GetRealm, { realm_id }), REFRESH_MS)
  const { quotas, use } = data ?? {}
  if (!quotas || !use) return null
  const text = (name: string, value: number) => (BYTES.includes(name) ? sizeText(value) : value.toLocaleString('en'))
  const limited = Object.entries(quotas).filter(([, most]) => most !== null)
  if (limited.length === 0) return null
  return (
    <p class="facts quiet small">
      {limited.map(([name, most]) => (
        <span key={name}>
          {TITLES[name] ?? name}: {text(name, use[name as keyof typeof use] ?? 0)} of {text(name, most!)}
        </span>
      ))}
    </p>
  )
}

/** Nothing of a realm can be had back. */
const DeleteIt = ({ realm, realm: { id, name, slug } }: { realm: Realm }) => (
  <ActionButton
    forbidden={forbids(realm, 'admin')}
    question={`Delete ${name}? Its members, daemons, triggers, runs, logs and files are deleted with it. Runs that go on are told to nobody.`}
    typed={slug}
    confirm={`Delete ${name} and all that is in it`}
    send={send => send(DeleteRealm, { realm_id: id })}
    done={async () => {
      await loadRealms()
      go(to('realms'))
    }}
  >
    Delete
  </ActionButton>
)

export function RealmPage({ id }: { id: string }) {
  const realm = realms.value?.find(each => each.id === id)
  const name = route.value.parts[2]
  const tab: Tab = name !== undefined && name in TABS ? (name as Tab) : 'members'
  const names = (Object.keys(TABS) as Tab[]).filter(name => may(realm, NEEDS[name]))
  return (
    <main>
      <p class="crumbs">
        <a href={to('realms')}>Realms</a>
      </p>
      {realm ? (
        <>
          <header class="top">
            <div>
              <h1 class="wrap">{realm.name}</h1>
              <p class="facts quiet small">
                <code>{realm.slug}</code>
                <span>you are {realm.my_role}</span>
                <code>{realm.id}</code>
              </p>
              <Quotas realm_id={id} />
            </div>
            <DeleteIt realm={realm} />
          </header>
          <nav class="tabs" aria-label="Parts of the realm">
            {names.map(name => (
              <a key={name} href={to('realms', id, name)} aria-current={name === tab ? 'page' : undefined}>
                {TABS[name]}
              </a>
            ))}
          </nav>
          {tab === 'members' && <Members realm={realm} />}
          {tab === 'invitations' && <Invitations realm={realm} />}
          {tab === 'teams' && <ListedTeams realm={realm} />}
          {tab === 'webhooks' && <Webhooks realm={realm} />}
        </>
      ) : (
        <p class="quiet">There is no such realm, or you are not in it. An admin of the realm can invite you.</p>
      )}
    </main>
  )
}
