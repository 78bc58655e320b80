// The form of a schedule, to add one or to change it. Before it is saved, it shows when the schedule would be due, and on
// which days a change of clocks moves that.

import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useLayoutEffect } from 'preact/hooks'
import { AddTrigger, PreviewTrigger, UpdateTrigger } from '../../wire/calls/triggers.ts'
import { useAction } from '../kit/actions.tsx'
import { call, Refusal } from '../kit/api.ts'
import { boundTo, Field, handleSubmit, Select } from '../kit/fields.tsx'
import { Fields, type Typed, typedOf } from '../kit/forms.tsx'
import { Failure, useLoaded } from '../kit/parts.tsx'
import { go, route, to } from '../kit/route.ts'
import { MayNot } from './may-not.tsx'
import { getTrigger, inPlace, type Place, type Shown } from './place.ts'
import {
  addBody,
  inputsOf,
  RULES,
  type Rule,
  rulePart,
  type SpecTexts,
  templated,
  textsOf,
  updateBody,
} from './spec-body.ts'
import { Notes, Slots } from './times.tsx'
import { CATCH_UPS, OVERLAPS } from './words.ts'

/** The page `#/triggers/new?team=…`. */
export function NewSchedule({ place, children }: { place: Place; children?: ComponentChildren }) {
  return (
    <main>
      <p class="crumbs">
        <a href={to('triggers')}>Triggers</a>
      </p>
      <header class="top">
        <h1>Add a schedule</h1>
      </header>
      {children && <div class="row filters">{children}</div>}
      {place.mayChange ? <ScheduleForm place={place} /> : <MayNot place={place} />}
    </main>
  )
}

/** How long the form waits for another letter before it asks for a preview. */
const PAUSE_MS = 250

/** Without `trigger` it adds one. A trigger that is read again while it is edited does not change what was typed. */
export function ScheduleForm({ place, trigger }: { place: Place; trigger?: Shown }) {
  const begun = useSignal(trigger)
  const texts = useSignal<SpecTexts>(
    trigger ? textsOf(trigger) : { rule: 'cron', tz: place.tz, team: route.value.query.get('team') ?? '' },
  )
  const typed = useSignal<Typed>({})
  const { busy, error, run } = useAction()
  const team = texts.value.team?.trim() ?? ''
  const fields = useTeam(place, team)
  const known = fields.data ?? []
  // An effect after the form is drawn would overwrite what the user types at once.
  useLayoutEffect(() => {
    if (fields.data) typed.value = { ...typedOf(known, begun.value?.inputs ?? {}), ...typed.value }
  }, [fields.data, begun.value])

  const save = async () => {
    // While nobody knows what the team asks for, its inputs stay as they are.
    const inputs = fields.data ? inputsOf(known, typed.value) : (begun.value?.inputs ?? {})
    const before = begun.value
    const { id } = before
      ? await call(UpdateTrigger, {
          ...{ trigger_id: before.id, revision: before.revision },
          ...updateBody(before, texts.value, inputs),
        })
      : await call(AddTrigger, { ...inPlace(place), kind: 'schedule', ...addBody(texts.value, inputs, place) })
    go(to('triggers', id))
  }
  return (
    <form class="columns" aria-label="Schedule" onSubmit={handleSubmit(() => run(save))}>
      <div>
        <What place={place} texts={texts} />
        <Rules texts={texts} />
        <Failure of={fields.error} />
        {known.length > 0 && (
          <>
            <h2>Inputs</h2>
            <p class="quiet small">
              A value may be a template: <code>{'{{ slot }}'}</code> is the time that was due.
            </p>
            <div class="grid">
              <Fields of={templated(known)} typed={typed} prefix="input" />
            </div>
          </>
        )}
        <SecretInputs of={known.filter(({ secret }) => secret).map(({ name }) => name)} />
        <Options texts={texts} isDispatched={place.realm_id !== undefined} />
        <Stale of={error} begun={begun} texts={texts} typed={typed} />
        <div class="row fields-row">
          <button type="submit" disabled={busy}>
            {trigger ? 'Save' : 'Add it'}
          </button>
          <a class="button plain" href={trigger ? to('triggers', trigger.id) : to('triggers')}>
            Leave it
          </a>
        </div>
      </div>
      <Preview texts={texts} place={place} before={begun.value} />
    </form>
  )
}

/** The inputs of the team that is typed, once it is one. */
function useTeam(place: Place, team: string) {
  const settled = useSignal(team)
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = team
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [team])
  return useLoaded(`fields ${settled.value}`, async () => (settled.value === '' ? [] : place.fieldsOf(settled.value)))
}

type Texts = Signal<SpecTexts>

function What({ place, texts }: { place: Place; texts: Texts }) {
  const teams = useLoaded(`teams ${place.realm_id}`, () => place.teams())
  return (
    <div class="row fields-row">
      <Field label="Team" required list="trigger-teams" placeholder={place.teamHint} {...boundTo(texts, 'team')}>
        <datalist id="trigger-teams">
          {(teams.data ?? []).map(each => (
            <option key={each} value={each} />
          ))}
        </datalist>
      </Field>
      <Field
        label="Name"
        required
        pattern="[a-z0-9][a-z0-9\-]{0,62}"
        title="small letters, digits and hyphens"
        placeholder="nightly"
        {...boundTo(texts, 'name')}
      />
    </div>
  )
}

const EXAMPLES = [
  ['0 6 * * 1-5', 'at 06:00, Monday to Friday'],
  ['30 2 * * *', 'at 02:30 every day'],
  ['0 * * * *', 'every hour'],
  ['*/15 * * * *', 'every 15 minutes'],
  ['0 8 * * MON#1', 'at 08:00 on the first Monday of a month'],
  ['0 22 L * *', 'at 22:00 on the last day of a month'],
] as const

const ZONES = ['UTC', ...Intl.supportedValuesOf('timeZone').filter(zone => zone.includes('/'))]

/** When it is due. */
function Rules({ texts }: { texts: Texts }) {
  const rule = texts.value.rule as Rule
  return (
    <div class="row fields-row">
      <Select
        label="It is due"
        value={rule}
        set={chosen => {
          texts.value = { ...texts.value, rule: chosen }
        }}
        of={Object.entries(RULES) as [Rule, string][]}
      />
      {rule === 'cron' && (
        <Field
          label="Minute, hour, day, month, weekday"
          required
          list="trigger-rules"
          maxLength={200}
          placeholder="0 6 * * 1-5"
          {...boundTo(texts, 'cron')}
        >
          <datalist id="trigger-rules">
            {EXAMPLES.map(([cron, words]) => (
              <option key={cron} value={cron}>
                {words}
              </option>
            ))}
          </datalist>
        </Field>
      )}
      {rule === 'every' && (
        <>
          <Field label="Every" required placeholder="90m" {...boundTo(texts, 'every')} />
          <Field label="Counted from" placeholder="now; or 2026-11-23T06:00Z" {...boundTo(texts, 'from')} />
        </>
      )}
      {rule === 'at' && <Field label="At" required placeholder="2026-12-01T09:00" {...boundTo(texts, 'at')} />}
      {rule !== 'every' && (
        <Field label="Zone of the times" list="trigger-zones" placeholder="Europe/Berlin" {...boundTo(texts, 'tz')}>
          <datalist id="trigger-zones">
            {ZONES.map(zone => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
        </Field>
      )}
    </div>
  )
}

/** When it would be due, beside what holds now. */
function Preview({ texts, place, before }: { texts: Texts; place: Place; before: Shown | undefined }) {
  const rule = texts.value.rule as Rule
  const asked = JSON.stringify(ruleOrNull(texts.value))
  const settled = useSignal(asked)
  useEffect(() => {
    const timer = setTimeout(() => {
      settled.value = asked
    }, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [asked])
  const body = JSON.parse(settled.value)
  const isComplete = body !== null && (texts.value[rule]?.trim() ?? '') !== '' && body[rule] !== undefined
  const found = useLoaded(`preview ${settled.value}`, async () =>
    isComplete ? call(PreviewTrigger, { ...inPlace(place), ...body, limit: 5 }) : null,
  )
  const isSame = before !== undefined && found.data?.words === before.words
  return (
    <section class="card preview" aria-label="Preview" aria-live="polite">
      <h2>When it would be due</h2>
      {!isComplete && <p class="quiet">Say when, and the next times stand here.</p>}
      {found.error !== null && <p class="bad wrap">{messageOf(found.error)}</p>}
      {found.data && (
        <>
          <p class="wrap">{found.data.words}</p>
          {found.data.slots.length === 0 && <p class="quiet">It is not due any more.</p>}
          <Slots of={found.data.slots} {...(before && !isSame && { known: before.next })} />
          <Notes of={found.data.notes} />
          {before && !isSame && (
            <>
              <h3>As it is now</h3>
              <p class="wrap quiet">{before.words}</p>
              <Slots of={before.next} />
            </>
          )}
        </>
      )}
    </section>
  )
}

function ruleOrNull(texts: SpecTexts): object | null {
  try {
    return rulePart(texts)
  } catch {
    return null
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function SecretInputs({ of: names }: { of: readonly string[] }) {
  if (names.length === 0) return null
  return (
    <p class="small quiet wrap">
      {names.join(', ')}: a trigger keeps its inputs, and so takes no secret. Use a named secret in the team.
    </p>
  )
}

/** What few schedules need. */
function Options({ texts, isDispatched }: { texts: Texts; isDispatched: boolean }) {
  const { catch_up = 'none', overlap = 'skip' } = texts.value
  const set = (name: string) => (value: string) => {
    texts.value = { ...texts.value, [name]: value }
  }
  return (
    <details class="part">
      <summary>More</summary>
      <div class="grid">
        <Select
          label="While a run of it goes on"
          value={overlap}
          set={set('overlap')}
          of={Object.entries(OVERLAPS) as [string, string][]}
        />
        {overlap === 'queue' && <Field label="How many wait" placeholder="1" {...boundTo(texts, 'queue_max')} />}
        <Select
          label="Of what was due and missed, start"
          value={catch_up}
          set={set('catch_up')}
          of={Object.entries(CATCH_UPS)}
        />
        {catch_up === 'none' ? (
          <Field label="Start it when it is late by at most" placeholder="5m" {...boundTo(texts, 'late_after')} />
        ) : (
          <Field label="Start it when it is late by at most" placeholder="24h" {...boundTo(texts, 'window')} />
        )}
        {catch_up === 'all' && <Field label="At most so many" placeholder="10" {...boundTo(texts, 'max')} />}
        <Field label="Spread the starts over" placeholder="5m" {...boundTo(texts, 'jitter')} />
        <Field label="Only when (a CEL expression)" {...boundTo(texts, 'when')} />
        <Field label="At most so many starts" placeholder="3" {...boundTo(texts, 'count')} />
        <Field label="within" placeholder="1h" {...boundTo(texts, 'per')} />
        <Field label="Workspace" {...boundTo(texts, 'workspace')} />
        <Field label="Name of its runs" maxLength={200} {...boundTo(texts, 'run_name')} />
        {isDispatched && (
          <>
            <Field label="Labels of the daemon" placeholder="gpu, region=eu" {...boundTo(texts, 'labels')} />
            <Field
              label="Wait for a daemon at most"
              placeholder="2h; empty: for ever"
              {...boundTo(texts, 'queue_timeout')}
            />
            <Field label="Priority" placeholder="0" {...boundTo(texts, 'priority')} />
          </>
        )}
      </div>
    </details>
  )
}

/** Why it could not be saved. Somebody else's change is told apart from other refusals. */
function Stale({
  of: error,
  begun,
  texts,
  typed,
}: {
  of: unknown
  begun: Signal<Shown | undefined>
  texts: Texts
  typed: Signal<Typed>
}) {
  const isConflict = error instanceof Refusal && error.code === 'conflict'
  const before = begun.value
  const found = useLoaded(`stale ${before?.revision} ${isConflict}`, async () =>
    isConflict && before ? getTrigger(before.id) : null,
  )
  const newer = found.data
  if (!isConflict || !newer || newer.revision === before?.revision) return <Failure of={error} />
  const load = () => {
    texts.value = textsOf(newer)
    typed.value = {}
    begun.value = newer
  }
  return (
    <div class="notice failed" role="alert">
      <p>
        Somebody changed this trigger after you opened it: it is at revision {newer.revision}, and you began at{' '}
        {before?.revision}. Nothing was saved.
      </p>
      <p class="row">
        <button type="button" class="plain" onClick={load}>
          Load it as it is now
        </button>
        <span class="quiet small">What you typed is lost then.</span>
      </p>
    </div>
  )
}
