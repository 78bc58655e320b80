// The page of one trigger: when it is due, what became of its occasions, and what it starts.

import { REFRESH_MS } from '../kit/lists.tsx'
import { Failure, Json, LongText, useLoaded } from '../kit/parts.tsx'
import { to } from '../kit/route.ts'
import { State } from '../kit/state.tsx'
import { When } from '../kit/time.tsx'
import { TriggerButtons } from './buttons.tsx'
import { Firings } from './firings.tsx'
import { HookAddress, hookFacts } from './hook-parts.tsx'
import { MayNot } from './may-not.tsx'
import { getTrigger, type Place, type Shown } from './place.ts'
import { watchFacts } from './source-fields.tsx'
import { labelsText } from './spec-body.ts'
import { Notes, Slots } from './times.tsx'
import { TriggerForm } from './trigger-form.tsx'
import { Warnings } from './warnings.tsx'
import { CATCH_UPS, OVERLAPS, sourceOf, TRIGGER_SHAPES, wordOf } from './words.ts'

/** `placeOf` says what the user may do in the realm of the trigger. */
export function TriggerPage({
  id,
  tab,
  placeOf,
}: {
  id: string
  tab: string | undefined
  placeOf(realm_id: string | undefined): Place
}) {
  const { data: trigger, error, again } = useLoaded(`trigger ${id}`, () => getTrigger(id), REFRESH_MS)
  const isEdited = tab === 'edit'
  return (
    <main>
      <p class="crumbs">
        <a href={to('triggers')}>Triggers</a>
        {isEdited && trigger && (
          <>
            {' / '}
            <a href={to('triggers', id)}>{trigger.name}</a>
          </>
        )}
      </p>
      <Failure of={error} />
      {trigger &&
        (isEdited ? (
          <>
            <h1 class="wrap">Edit {trigger.name}</h1>
            <TriggerForm place={placeOf(trigger.realm_id)} trigger={trigger} done={again} />
          </>
        ) : (
          <Content of={trigger} place={placeOf(trigger.realm_id)} again={again} />
        ))}
    </main>
  )
}

function Content({ of: trigger, place, again }: { of: Shown; place: Place; again(): void }) {
  const { name, kind, state, team, words, created_at, created_by, revision, next, notes, owner } = trigger
  const source = sourceOf(trigger)
  return (
    <>
      <header class="top">
        <div>
          <h1 class="wrap">{name}</h1>
          <p class="facts">
            <State of={TRIGGER_SHAPES[state] ?? 'pending'} word={state} />
            {words !== undefined && <span class="wrap">{words}</span>}
          </p>
          <p class="facts quiet small">
            <span>{kind}</span>
            <span>
              made by <span class="wrap">{created_by}</span> <When at={created_at} />
            </span>
            <span>revision {revision}</span>
            {owner !== undefined && <span class="wrap">runs with the rights of {owner}</span>}
            {source !== null && <span class="wrap">stands in the team.yml of {source}</span>}
          </p>
        </div>
      </header>
      {place.mayChange ? <TriggerButtons of={trigger} place={place} done={again} /> : <MayNot place={place} />}
      <Warnings of={trigger} />
      <Trouble of={trigger} />
      <div class="columns">
        {kind === 'schedule' && (
          <section>
            <h2>Next</h2>
            {next.length > 0 && state === 'active' ? <Slots of={next} /> : <p class="quiet">{NONE[state] ?? ''}</p>}
            <Notes of={notes} />
          </section>
        )}
        {kind === 'hook' && (
          <div>
            <HookAddress of={trigger} place={place} done={again} />
            <Notes of={notes} />
          </div>
        )}
        <section>
          <h2>What it starts</h2>
          <p>
            <a class="wrap" href={place.teamPage(team)}>
              {team}
            </a>
          </p>
          <Spec of={trigger} />
        </section>
      </div>
      <Firings of={trigger} mayChange={place.mayChange} done={again} />
    </>
  )
}

/** Why it is not due. */
const NONE: Record<Shown['state'], string> = {
  active: 'It is not due any more.',
  paused: 'Nothing until it is resumed.',
  disabled: 'Nothing until it is enabled.',
  broken: 'Nothing until it is mended.',
}

/** What keeps it from starting runs. */
function Trouble({ of: { paused, problem, state } }: { of: Shown }) {
  return (
    <>
      {problem && state === 'broken' && (
        <div class="notice failed">
          <p>
            <LongText text={problem.text} />
          </p>
          <p class="quiet small">
            Since <When at={problem.since} /> it starts nothing. It goes on by itself when this is mended.
          </p>
        </div>
      )}
      {paused && (
        <div class="notice awaiting_input">
          <p>
            Paused by <span class="wrap">{paused.by}</span> <When at={paused.since} />
            {paused.reason === null ? '.' : ': '}
            {paused.reason !== null && <LongText text={paused.reason} />}
          </p>
        </div>
      )}
    </>
  )
}

function agentsText({ requires }: Shown): string {
  const agents = requires?.agents ?? []
  const names = Array.isArray(agents) ? agents : Object.entries(agents).map(([name, range]) => `${name} ${range}`)
  return names.join(', ')
}

/** What a trigger says of its runs, without what is as usual. */
function Spec({ of: trigger }: { of: Shown }) {
  const {
    overlap,
    queue_max,
    at_most,
    when,
    workspace,
    environment,
    run_name,
    inputs,
    catch_up,
    late_after,
    window,
    max,
    jitter,
  } = trigger
  const { priority = 0, queue_timeout } = trigger
  const late =
    catch_up === undefined
      ? ''
      : catch_up === 'none'
        ? `starts when it is at most ${late_after} late`
        : `${wordOf(CATCH_UPS, catch_up)}, at most ${window} late${catch_up === 'all' ? ` and ${max} of them` : ''}`
  const facts: [string, string][] = [
    [
      'While a run of it goes on',
      `${OVERLAPS[overlap] ?? overlap}${overlap === 'queue' ? `, at most ${queue_max}` : ''}`,
    ],
    ['What was due and missed', late],
    ['At most', at_most ? `${at_most.count} within ${at_most.per}` : ''],
    ['Starts are spread over', jitter ?? ''],
    ['Only when', when ?? ''],
    ['Workspace', workspace ?? ''],
    ['Environment', environment ?? ''],
    ['Name of its runs', run_name ?? ''],
    ...hookFacts(trigger),
    ...watchFacts(trigger),
    ['Labels of the daemon', labelsText(trigger)],
    ['Agents of the daemon', agentsText(trigger)],
    ['Waits for a daemon', queue_timeout ? `at most ${queue_timeout}` : ''],
    ['Priority', priority === 0 ? '' : String(priority)],
  ]
  return (
    <>
      <dl class="pairs">
        {facts.map(
          ([title, text]) =>
            text !== '' && (
              <div key={title}>
                <dt class="quiet small">{title}</dt>
                <dd>
                  <LongText text={text} />
                </dd>
              </div>
            ),
        )}
      </dl>
      {Object.keys(inputs).length > 0 && (
        <details class="part">
          <summary>Inputs</summary>
          <Json of={inputs} />
        </details>
      )}
    </>
  )
}
