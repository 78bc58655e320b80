// The fields of the form of a trigger: what it starts, when, and what few triggers need.

import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import { boundTo, Field, Select } from '../kit/fields.tsx'
import { useLoaded } from '../kit/parts.tsx'
import type { Texts } from './own-fields.ts'
import type { Place, Shown } from './place.ts'
import { WatchOptions } from './source-fields.tsx'
import { newTexts, RULES, type Rule } from './spec-body.ts'
import { CATCH_UPS, OVERLAPS } from './words.ts'

/** What the page says of the kinds that it can add. */
const SOURCES: Readonly<Partial<Record<TriggerKind, string>>> = {
  schedule: 'at times of a clock',
  hook: 'when another program sends something',
  watch: 'when files come or change',
  chain: 'when a run of another team ends',
}

/** Another kind has other fields; the team and the name stay. */
export function KindChoice({ place, texts }: { place: Place; texts: Texts }) {
  const { kind = 'schedule', team = '', name = '' } = texts.value
  return (
    <div class="row fields-row">
      <Select
        label="It starts runs"
        value={kind}
        set={chosen => {
          texts.value = { ...newTexts(chosen as TriggerKind, place), team, name }
        }}
        of={place.kinds.map(each => [each, SOURCES[each] ?? each] as const)}
      />
    </div>
  )
}

export function What({ place, texts }: { place: Place; texts: Texts }) {
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
export function Rules({ texts }: { texts: Texts }) {
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

/** What few triggers need. */
export function Options({ texts, kind, isDispatched }: { texts: Texts; kind: Shown['kind']; isDispatched: boolean }) {
  const { overlap = kind === 'schedule' ? 'skip' : 'allow' } = texts.value
  const set = (name: string) => (value: string) => {
    texts.value = { ...texts.value, [name]: value }
  }
  return (
    <details class="part">
      <summary>More</summary>
      <div class="grid">
        <Select
          label="While a run of it goes on"
          name="overlap"
          value={overlap}
          set={set('overlap')}
          of={Object.entries(OVERLAPS) as [string, string][]}
        />
        {overlap === 'queue' && <Field label="How many wait" placeholder="1" {...boundTo(texts, 'queue_max')} />}
        {kind === 'schedule' && <Late texts={texts} set={set} />}
        {kind === 'watch' && <WatchOptions texts={texts} />}
        {kind !== 'hook' && <Field label="Only when (a CEL expression)" {...boundTo(texts, 'when')} />}
        <Field label="At most so many starts" placeholder="3" {...boundTo(texts, 'count')} />
        <Field label="within" placeholder="1h" {...boundTo(texts, 'per')} />
        <Field label="Workspace" {...boundTo(texts, 'workspace')} />
        <Field label="Environment" placeholder="staging" {...boundTo(texts, 'environment')} />
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

/** What becomes of slots that were missed, and how starts are spread. */
function Late({ texts, set }: { texts: Texts; set(name: string): (value: string) => void }) {
  const { catch_up = 'none' } = texts.value
  return (
    <>
      <Select
        label="Of what was due and missed, start"
        name="catch_up"
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
    </>
  )
}
