// Schedules: their occasions are slots of a clock, which looks find.

import { messageOf } from '../error.ts'
import { nextAt } from '../triggers/schedule/due.ts'
import { previewOf } from '../triggers/schedule/preview.ts'
import { checkSchedule, type ScheduleFields, type ScheduleSpec } from '../triggers/schedule/spec.ts'
import { wordsOf } from '../triggers/schedule/words.ts'
import { SCHEDULE } from '../wire/records/trigger-fields.ts'
import { OCCASION_VARIABLES } from '../wire/records/trigger-words.ts'
import type { PreviewRecord } from '../wire/records/triggers.ts'
import { given, type Kind, type OwnFields } from './kind.ts'
import { occasionOf, variablesOf } from './slot-rows.ts'

const MOST = { home: 200, realm: 1_000 }
/** How many slots a record has. */
const SHOWN = 5
const RULE = ['cron', 'every', 'at'] as const
const FIELDS = Object.keys(SCHEDULE)

export const schedule: Kind<ScheduleSpec> = {
  overlap: 'skip',
  variables: OCCASION_VARIABLES.schedule,
  fields: FIELDS,
  most: MOST,

  check(fields, around) {
    const { spec: own, problems } = checkSchedule(given(fields, FIELDS), around)
    if (own && around.isNew && 'at' in own && nextAt(own, around.now, '') === null) {
      return { problems: [{ path: '/at', message: 'has passed: nothing would start' }] }
    }
    return own ? { own } : { problems }
  },

  /** A new rule replaces the whole old one. An empty `jitter` removes it. */
  changed(own, changes) {
    const isNew = RULE.some(name => changes[name] !== undefined)
    const fields: OwnFields = { ...(isNew ? withoutRule(own, changes) : own), ...given(changes, FIELDS) }
    return { ...fields, jitter: fields.jitter === '' ? undefined : fields.jitter }
  },

  isSameRule: (one, other) => Bun.deepEquals(ruleOf(one), ruleOf(other)),

  meets: (one, other) => Bun.deepEquals(slotsOnly(one), slotsOnly(other)),

  words: wordsOf,

  shown({ spec: { own }, next_at }, now) {
    const { slots, notes, words } = shownOf(own, now)
    return { ...own, words, notes, next: next_at === null ? [] : slots }
  },

  variablesNow: now => variablesOf(now, now),

  startedBy({ id, name }, { id: firing, at, late_ms, manual }, isLater) {
    const by = manual && { manual: { by: manual.by } }
    const late = { late_ms: late_ms ?? 0, catch_up: isLater }
    return { kind: 'schedule', trigger: id, name, firing, slot: occasionOf(at), ...late, ...by }
  },

  nextAt: ({ spec, cursor, id }) => nextAt(spec.own, cursor, id),

  mostWaiting: ({ catch_up, max }) => (catch_up === 'all' ? max : 1),
}

/** What becomes of late slots, and the zone unless the new rule has none. */
function withoutRule(own: ScheduleSpec, changes: ScheduleFields): ScheduleFields {
  const { catch_up, window, max, late_after, jitter } = own
  return {
    ...{ catch_up, window, max, late_after, ...(jitter !== undefined && { jitter }) },
    // A rule without a zone of its own keeps that of the old one.
    ...('tz' in own && changes.every === undefined && { tz: own.tz }),
  }
}

/** What says when it is due. */
const ruleOf = ({ catch_up, window, max, late_after, ...rule }: ScheduleSpec) => rule

const slotsOnly = ({ jitter, ...own }: ScheduleSpec) => ruleOf(own as ScheduleSpec)

/** What a schedule does next; nothing where its zone is not known any more, which breaks it. */
function shownOf(own: ScheduleSpec, now: number): PreviewRecord {
  try {
    return previewOf(own, now, Infinity, SHOWN)
  } catch (error) {
    return { slots: [], notes: [], words: messageOf(error) }
  }
}
