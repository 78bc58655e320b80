// The page of what starts runs by itself: a list of all triggers, and a calendar of what they did and will do.

import type { ComponentChildren } from 'preact'
import { TRIGGER_KINDS } from '../../wire/records/trigger-words.ts'
import { command } from '../kit/api.ts'
import { nameChoices, Select } from '../kit/fields.tsx'
import { Rows, useList } from '../kit/lists.tsx'
import { filters, to, withQuery } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { UpcomingTime, When } from '../kit/time.tsx'
import { Calendar } from './calendar.tsx'
import { listTriggers, type Place, type Shown } from './place.ts'
import { Slot } from './times.tsx'
import { FATES, fateOf, KINDS, REASONS, TRIGGER_SHAPES, wordOf } from './words.ts'

/** `children`: more filters, before that of the kind. `tab`: the second part of the address. */
export function Triggers({
  place,
  tab,
  children,
}: {
  place: Place
  tab: string | undefined
  children?: ComponentChildren
}) {
  const { chosen, filter } = filters('kind', 'realm')
  const query = (address: string) => withQuery(address, chosen)
  const isCalendar = tab === 'calendar'
  const current = (is: boolean) => (is ? 'page' : undefined)
  return (
    <main>
      <header class="top">
        <div>
          <h1>Triggers</h1>
          <p class="quiet">What starts runs by itself.</p>
        </div>
        {place.mayChange && (
          <a class="button" href={query(to('triggers', 'new'))}>
            Add a trigger
          </a>
        )}
      </header>
      <nav class="tabs" aria-label="Views of the triggers">
        <a href={query(to('triggers'))} aria-current={current(!isCalendar)}>
          List
        </a>
        <a href={query(to('triggers', 'calendar'))} aria-current={current(isCalendar)}>
          Calendar
        </a>
      </nav>
      <search class="row filters">
        {children}
        <Select
          label="Kind"
          {...filter('kind')}
          of={nameChoices('all', TRIGGER_KINDS, chosen.kind).map(([kind, title]) => [kind, wordOf(KINDS, title)])}
        />
      </search>
      {isCalendar ? <Calendar place={place} kind={chosen.kind} /> : <TriggerList place={place} kind={chosen.kind} />}
    </main>
  )
}

function TriggerList({ place, kind }: { place: Place; kind: string }) {
  const found = useList(`triggers ${place.realm_id} ${kind}`, page => listTriggers(place, kind, page))
  return (
    <Rows
      of={found}
      none={<NoTriggers kind={kind} />}
      name={({ id }) => id}
      columns={[
        {
          title: 'Name',
          class: 'roomy',
          cell: trigger => (
            <>
              <TriggerLink of={trigger} />
              <span class="quiet small wrap block">{trigger.words ?? trigger.kind}</span>
            </>
          ),
        },
        { title: 'State', cell: trigger => <TriggerState of={trigger} /> },
        { title: 'Team', class: 'wrap roomy', cell: ({ team }) => team },
        { title: 'Next', cell: trigger => <Next of={trigger} /> },
        { title: 'Last', cell: ({ last: [firing] }) => <Last of={firing} /> },
      ]}
    />
  )
}

function NoTriggers({ kind }: { kind: string }) {
  if (kind !== '') return <p>There are no {wordOf(KINDS, kind)} here.</p>
  return (
    <>
      <p>Nothing starts runs by itself yet.</p>
      <p>
        <a href={to('triggers', 'new')}>Add a trigger</a>, or at a terminal:{' '}
        <code>{command} schedules add TEAM --cron "0 6 * * 1-5"</code>
      </p>
    </>
  )
}

const TriggerLink = ({ of: { id, name } }: { of: Shown }) => (
  <a class="wrap" href={to('triggers', id)}>
    {name}
  </a>
)

/** Its state, and what is wrong with it or why it is paused. */
function TriggerState({ of: { state, problem, paused } }: { of: Shown }) {
  const more = state === 'broken' ? problem?.text : state === 'paused' ? paused?.reason : null
  return (
    <div>
      <State of={TRIGGER_SHAPES[state] ?? 'pending'} word={state} />
      {more && <span class={`small wrap block brief ${state === 'broken' ? 'bad' : 'quiet'}`}>{more}</span>}
    </div>
  )
}

function Next({ of: { next, kind, state } }: { of: Shown }) {
  const [slot] = next
  if (slot && state === 'active') {
    return (
      <div>
        <UpcomingTime at={slot.at} />
        <span class="small block">
          <Slot of={slot} />
        </span>
      </div>
    )
  }
  return <span class="quiet">{kind === 'schedule' || state !== 'active' ? '–' : 'when something comes'}</span>
}

function Last({ of: firing }: { of: Shown['last'][number] | undefined }) {
  if (!firing) return <span class="quiet">–</span>
  const { at, until, run_id, reason } = firing
  const fate = fateOf(firing)
  return (
    <div>
      <State of={fate} word={FATES[fate]} /> <When at={until ?? at} />
      <span class="small block">
        {run_id !== null ? (
          <a href={to('runs', run_id)}>its run</a>
        ) : (
          <span class="quiet">{reason !== null && wordOf(REASONS, reason)}</span>
        )}
      </span>
    </div>
  )
}
