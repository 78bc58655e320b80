// What is seen of the triggers of a home: what they did and will do. It changes nothing, so that a command can read the
// database of a home that no process holds.

import type { Database } from 'bun:sqlite'
import type { Static, TSchema } from 'typebox'
import { CadreError, messageOf } from '../../error.ts'
import { notesOf } from '../../triggers/schedule/notes.ts'
import { slotsOf } from '../../triggers/schedule/slots.ts'
import { checkSchedule, type ScheduleSpec } from '../../triggers/schedule/spec.ts'
import { wordsOf } from '../../triggers/schedule/words.ts'
import { localText } from '../../triggers/schedule/zone.ts'
import type { ListFirings, PreviewTrigger } from '../../wire/calls/triggers.ts'
import { page } from '../../wire/page.ts'
import type { FiringReason, FiringState, TriggerKind } from '../../wire/records/trigger-words.ts'
import type { FiringRecord, PreviewRecord, TriggerRecord } from '../../wire/records/triggers.ts'
import type { TriggerFields } from './check-trigger.ts'
import type { Tables } from './fire.ts'
import { FiringTable, firingRecord } from './firing-table.ts'
import { type Trigger, TriggerTable } from './trigger-table.ts'

/** How many slots and firings a record of a trigger has. */
const SHOWN = 5

export class TriggerView {
  readonly tables: Tables

  /** `db`: the database of a home. `now`: the wall clock. */
  constructor(db: Database, now: () => number = Date.now) {
    this.tables = { triggers: new TriggerTable(db), firings: new FiringTable(db), now }
  }

  get(which: Which): TriggerRecord {
    return this.record(this.find(which))
  }

  list(filter: { kind?: TriggerKind; limit: number; offset: number }): { triggers: TriggerRecord[]; total: number } {
    const { triggers, total } = this.tables.triggers.list(filter)
    return { triggers: triggers.map(trigger => this.record(trigger)), total }
  }

  /** Of one trigger, or those of all triggers whose id begins so. */
  firings(
    of: Which & { begins?: string | undefined },
    filter: { state?: FiringState; reason?: FiringReason; since?: number; until?: number },
    page: { limit: number; offset: number },
  ): FiringRecord[] {
    const { triggers, firings } = this.tables
    if (of.begins !== undefined) {
      const found = firings.beginning(of.begins.toLowerCase(), page)
      return found.map(firing => firingRecord(firing, triggers.evenRemoved(firing.trigger_id)!.name))
    }
    const { id, name } = this.#evenRemoved(of)
    return firings.list({ trigger_id: id, ...filter }, page).map(firing => firingRecord(firing, name))
  }

  /** Answers `triggers/firings`. */
  firingsFor(body: BodyOf<typeof ListFirings>): { firings: FiringRecord[] } {
    const { state, reason, since, until, begins, trigger_id, name } = body
    const filter = {
      ...(state !== undefined && { state }),
      ...(reason !== undefined && { reason }),
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until }),
    }
    const of = begins === undefined ? named({ trigger_id, name }) : { begins }
    return { firings: this.firings(of, filter, page(body)) }
  }

  /** Answers `triggers/preview`. */
  previewFor({ trigger_id, name, after, until, limit, ...fields }: BodyOf<typeof PreviewTrigger>): PreviewRecord {
    const range = { ...(after !== undefined && { after }), ...(until !== undefined && { until }), limit: limit ?? 10 }
    const isKnown = trigger_id !== undefined || name !== undefined
    return this.preview(isKnown ? { trigger_id, name } : { team: '', ...fields }, range)
  }

  /** The slots of a trigger, or of a schedule that is not added yet. */
  preview(of: Which | TriggerFields, { after = this.tables.now(), until = Infinity, limit = 10 }): PreviewRecord {
    return previewOf(isWhich(of) ? this.find(of).spec.schedule : scheduleOf(of, this.tables.now()), {
      after,
      until,
      limit,
    })
  }

  /** Throws `not_found`. */
  find({ trigger_id, name }: Which): Trigger {
    const { triggers } = this.tables
    const found = trigger_id !== undefined ? triggers.get(trigger_id) : triggers.byName(name ?? '')
    if (found) return found
    throw new CadreError('not_found', `there is no trigger ${trigger_id ?? name}; \`cadre triggers\` lists them`)
  }

  /** Those that were removed are found by their ids. */
  #evenRemoved(which: Which): Trigger {
    const { trigger_id: id } = which
    return (id !== undefined && this.tables.triggers.evenRemoved(id)) || this.find(which)
  }

  record(trigger: Trigger): TriggerRecord {
    const { spec, cursor: _, next_at, ...more } = trigger
    const { schedule, ...fields } = spec
    const now = this.tables.now()
    const last = this.tables.firings.list({ trigger_id: trigger.id }, { limit: SHOWN, offset: 0 })
    const { slots, notes, words } = shownOf(schedule, now)
    return {
      ...more,
      ...fields,
      ...schedule,
      state: stateOf(trigger),
      words,
      notes,
      next: next_at === null ? [] : slots,
      last: last.map(firing => firingRecord(firing, trigger.name)),
    }
  }
}

type BodyOf<C extends { body: TSchema }> = Static<C['body']>

/** Which trigger a body names. Throws `invalid_request` unless it is one of the two. */
export function named<B extends { trigger_id?: string | undefined; name?: string | undefined }>(body: B): B {
  if ((body.trigger_id === undefined) !== (body.name === undefined)) return body
  throw new CadreError('invalid_request', 'expected either `trigger_id` or `name`', {
    details: [{ path: '/trigger_id', message: 'set this, or `name`' }],
  })
}

/** By its id, or by its name. */
export interface Which {
  trigger_id?: string | undefined
  name?: string | undefined
}

const isWhich = (of: Which | TriggerFields): of is Which => !('team' in of)

function scheduleOf(fields: TriggerFields, now: number): ScheduleSpec {
  const around = { tz: zoneHere(), now, overlap: fields.overlap ?? 'skip' }
  const { spec, problems } = checkSchedule(fields, around)
  if (spec) return spec
  const text = problems.map(({ path, message }) => `${path.slice(1)}: ${message}`).join('; ')
  throw new CadreError('invalid_request', text, { details: problems })
}

function previewOf(schedule: ScheduleSpec, { after, until, limit }: { after: number; until: number; limit: number }) {
  const tz = 'tz' in schedule ? schedule.tz : 'UTC'
  return {
    slots: slotsOf(schedule, after, until, limit).map(at => ({ at, local: localText(at, tz) })),
    notes: notesOf(schedule, after),
    words: wordsOf(schedule),
  }
}

/** What a schedule does next; nothing where its zone is not known any more, which breaks it. */
function shownOf(schedule: ScheduleSpec, now: number): PreviewRecord {
  try {
    return previewOf(schedule, { after: now, until: Infinity, limit: SHOWN })
  } catch (error) {
    return { slots: [], notes: [], words: messageOf(error) }
  }
}

/** The name of the zone of this machine. */
export const zoneHere = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone

function stateOf({ enabled, paused, problem }: Trigger): TriggerRecord['state'] {
  if (!enabled) return 'disabled'
  return paused ? 'paused' : problem ? 'broken' : 'active'
}
