// What starts a team by itself, for the page of the team and its plan.

import { ListTriggers } from '../../wire/calls/triggers.ts'
import { call } from '../kit/api.ts'
import { useLoaded } from '../kit/parts.tsx'
import { to, withQuery } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { UpcomingTime } from '../kit/time.tsx'
import { inPlace, type Shown } from './place.ts'
import { TRIGGER_SHAPES } from './words.ts'

const SHOWN = 20

interface Props {
  /** `@scope/name` in whatever version, or the path of a folder or of its team.yml. */
  team: string
  /** Absent on a home. */
  realm?: { id: string; name: string }
  /** Whether the user may add a trigger here. */
  mayAdd: boolean
}

export function TeamTriggers({ team, realm, mayAdd }: Props) {
  const place = realm ? { realm_id: realm.id } : {}
  const { data, error } = useLoaded(`triggers of ${team} ${realm?.id}`, () =>
    call(ListTriggers, { ...inPlace(place), team, limit: SHOWN }),
  )
  if (!data) return error ? null : <div aria-busy="true" />
  const { triggers, total } = data
  return (
    <section aria-label="What starts it">
      <h2>What starts it{realm && ` in ${realm.name}`}</h2>
      {triggers.length === 0 && <p class="quiet">Nothing starts it by itself. People and programs do.</p>}
      <ul class="chain">
        {triggers.map(trigger => (
          <Line key={trigger.id} of={trigger} />
        ))}
      </ul>
      {total > triggers.length && (
        <p class="quiet">
          and {total - triggers.length} more: see <a href={to('triggers')}>all triggers</a>
        </p>
      )}
      {mayAdd && (
        <p class="small">
          <a href={withQuery(to('triggers', 'new'), { team, realm: realm?.id ?? '' })}>Add a trigger</a>
        </p>
      )}
    </section>
  )
}

function Line({ of: { id, name, kind, state, words, next } }: { of: Shown }) {
  const [slot] = next
  return (
    <li>
      <State of={TRIGGER_SHAPES[state] ?? 'pending'} bare word={state} />
      <div>
        <a href={to('triggers', id)}>{name}</a> <span class="wrap">{words ?? kind}</span>
        <p class="quiet small">
          {state}
          {state === 'active' && slot && (
            <>
              , next <UpcomingTime at={slot.at} />
            </>
          )}
        </p>
      </div>
    </li>
  )
}
