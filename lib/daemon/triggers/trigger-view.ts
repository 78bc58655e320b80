// What is seen of the triggers of a home: what they did and will do. It changes nothing, so that a command can read the
// database of a home that no process holds.

import type { Database } from 'bun:sqlite'
import type { Static, TSchema } from 'typebox'
import { CadreError } from '../../error.ts'
import type { TriggerFields } from '../../firing/check-trigger.ts'
import { firingRecord, named, SHOWN, scheduleIn, scheduleOf, triggerRecord, type Which } from '../../firing/shown.ts'
import type { FiringFilter, Trigger } from '../../firing/trigger.ts'
import { previewOf } from '../../triggers/schedule/preview.ts'
import type { ListFirings, PreviewTrigger } from '../../wire/calls/triggers.ts'
import { counted, page } from '../../wire/page.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import type { FiringRecord, PreviewRecord, TriggerRecord } from '../../wire/records/triggers.ts'
import type { Tables } from './fire.ts'
import { FiringTable } from './firing-table.ts'
import { TriggerTable } from './trigger-table.ts'

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
    filter: FiringFilter,
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
  firingsFor(body: BodyOf<typeof ListFirings>) {
    const { state, reason, since, until, begins, trigger_id, name } = body
    const filter = {
      ...(state !== undefined && { state }),
      ...(reason !== undefined && { reason }),
      ...(since !== undefined && { since }),
      ...(until !== undefined && { until }),
    }
    const of = begins === undefined ? named({ trigger_id, name }) : { begins }
    return { firings: this.firings(of, filter, page(body)), ...counted(this.#count(of, filter)) }
  }

  #count(of: Which & { begins?: string | undefined }, filter: FiringFilter): number {
    const { firings } = this.tables
    if (of.begins !== undefined) return firings.countBeginning(of.begins.toLowerCase())
    return firings.count({ trigger_id: this.#evenRemoved(of).id, ...filter })
  }

  /** Answers `triggers/preview`. */
  previewFor({ trigger_id, name, after, until, limit, ...fields }: BodyOf<typeof PreviewTrigger>): PreviewRecord {
    const range = { ...(after !== undefined && { after }), ...(until !== undefined && { until }), limit: limit ?? 10 }
    const isKnown = trigger_id !== undefined || name !== undefined
    return this.preview(isKnown ? { trigger_id, name } : { team: '', ...fields }, range)
  }

  /** The slots of a trigger, or of a schedule that is not added yet. */
  preview(of: Which | TriggerFields, { after = this.tables.now(), until = Infinity, limit = 10 }): PreviewRecord {
    const around = { tz: zoneHere(), now: this.tables.now() }
    const schedule = isWhich(of) ? scheduleIn(this.find(of)) : scheduleOf(of, around)
    return previewOf(schedule, after, until, limit)
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
    const last = this.tables.firings.list({ trigger_id: trigger.id }, { limit: SHOWN, offset: 0 })
    return triggerRecord(trigger, last, this.tables.now())
  }
}

type BodyOf<C extends { body: TSchema }> = Static<C['body']>

const isWhich = (of: Which | TriggerFields): of is Which => !('team' in of)

/** The name of the zone of this machine. */
export const zoneHere = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone
