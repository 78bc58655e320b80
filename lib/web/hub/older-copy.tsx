// A notice that the hub runs on an older copy of its database: which daemons it waits for, and a button to go on without one.

import { ReconcileDaemons } from '../../wire/calls/daemons.ts'
import type { Realm } from '../../wire/records/hub-records.ts'
import type { Reconciliation } from '../../wire/records/older-copies.ts'
import { ActionButton } from '../kit/actions.tsx'
import { useLoaded } from '../kit/parts.tsx'
import { When } from '../kit/time.tsx'
import { hub } from './kit/api.ts'
import { may } from './kit/realm-choice.tsx'

const REFRESH_MS = 5_000

interface OlderCopyState {
  notice: string
  /** Only an admin of the realm may see this. */
  found: Reconciliation | null
}

async function readOlderCopy(realm: Realm | null | undefined): Promise<OlderCopyState | null> {
  const reply = await fetch('/ready')
  const { data } = (await reply.json()) as { data?: { older_copy?: string } }
  if (data?.older_copy === undefined) return null
  const asks = realm && may(realm, 'admin')
  return {
    notice: data.older_copy,
    found: asks ? await hub(ReconcileDaemons, { realm_id: realm.id }) : null,
  }
}

export function OlderCopy({ realm }: { realm: Realm | null | undefined }) {
  const { data, again } = useLoaded(`older copy ${realm?.id}`, () => readOlderCopy(realm), REFRESH_MS)
  if (data === null) return null
  const { notice, found } = data
  return (
    <section class="notice awaiting_input" aria-label="Older copy of the database">
      <p>{notice}.</p>
      {found?.older_copy && (
        <>
          <p>
            The copy was last written to <When at={found.older_copy.written_at} />. {found.held} jobs of this realm are
            held.
          </p>
          <ul>
            {found.awaited.map(({ daemon_id, name, why }) => (
              <li key={daemon_id}>
                {name}: {why}{' '}
                <ActionButton
                  question={`What ${name} has executed since will be executed again.`}
                  send={send => send(ReconcileDaemons, { realm_id: found.realm_id, without: daemon_id })}
                  done={again}
                >
                  Go on without it
                </ActionButton>
              </li>
            ))}
            {[...found.lost, ...found.came_back].map(each => (
              <li key={each} class="small quiet">
                {found.lost.includes(each) ? 'Lost' : 'Counts again'}: {each}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  )
}
