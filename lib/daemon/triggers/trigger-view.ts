// What is seen of the triggers of a home: what they did and will do. It changes nothing, so that a command can read the
// database of a home that no process holds.

import type { Database } from 'bun:sqlite'
import type { Static, TSchema } from 'typebox'
import { CadreError } from '../../error.ts'
import { chainWords } from '../../firing/chain-kind.ts'
import { previewOfHook } from '../../firing/hook-preview.ts'
import { firingRecord, named, SHOWN, scheduleIn, scheduleOf, triggerRecord, type Which } from '../../firing/shown.ts'
import { bareTeam, type FiringFilter, type Trigger } from '../../firing/trigger.ts'
import { watchOf } from '../../firing/watch-kind.ts'
import { differences } from '../../firing/watch-rows.ts'
import type { Field } from '../../team/team.ts'
import { previewOf } from '../../triggers/schedule/preview.ts'
import { fileOf } from '../../triggers/watch/scan.ts'
import { type WatchSpec, watchWords } from '../../triggers/watch/spec.ts'
import { HOOKS_PATH, type ListFirings, type PreviewTrigger } from '../../wire/calls/triggers.ts'
import { counted, page } from '../../wire/page.ts'
import type { FiringRecord, PreviewRecord, TriggerRecord } from '../../wire/records/triggers.ts'
import { secretRecords } from '../home/hook-secrets.ts'
import { type Tables, tablesOf } from './tables.ts'
import type { ListedTriggers } from './trigger-table.ts'
import { whatIsThere } from './watch-at-home.ts'

export class TriggerView {
  readonly tables: Tables
  readonly #db: Database
  readonly #address: () => string | null

  /** `db`: the database of a home. `now`: the wall clock. `address`: where the home listens, if it does. */
  constructor(db: Database, now: () => number = Date.now, address: () => string | null = () => null) {
    this.#db = db
    this.#address = address
    this.tables = tablesOf(db, now)
  }

  get(which: Which): TriggerRecord {
    return this.record(this.find(which))
  }

  list({ team, ...filter }: ListedTriggers): { triggers: TriggerRecord[]; total: number } {
    const { triggers, total } = this.tables.triggers.list({ ...filter, team: team == null ? null : bareTeam(team) })
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
      return this.#withRuns(found.map(firing => firingRecord(firing, triggers.evenRemoved(firing.trigger_id)!.name)))
    }
    const { id, name } = this.#evenRemoved(of)
    return this.#withRuns(firings.list({ trigger_id: id, ...filter }, page).map(firing => firingRecord(firing, name)))
  }

  /** With what became of their runs. */
  #withRuns(records: readonly FiringRecord[]): FiringRecord[] {
    const states = this.tables.firings.runStates(records.flatMap(({ run_ids }) => run_ids))
    return records.map(record => ({ ...record, run_state: states.get(record.run_id ?? '') ?? null }))
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
  async previewFor({ trigger_id, name, ...body }: BodyOf<typeof PreviewTrigger>): Promise<PreviewRecord> {
    const known = trigger_id !== undefined || name !== undefined ? this.find({ trigger_id, name }) : null
    const now = this.tables.now()
    if (known?.kind === 'hook' || body.scheme !== undefined)
      return previewOfHook(known, body, { declaredBy: team => this.declaredBy(team), now })
    if (known?.kind === 'watch' || body.folder !== undefined) return this.#previewWatch(known, body)
    const { after = now, until = Infinity, limit = 10, ...fields } = body
    // The field that says after which team, in the words of a chain.
    if (typeof after === 'string') return { slots: [], notes: [], words: chainWords({ ...fields, after }) }
    if (known && known.kind !== 'schedule') return { slots: [], notes: [], words: this.record(known).words ?? '' }
    const schedule = known ? scheduleIn(known) : scheduleOf(fields, { tz: zoneHere(), now })
    return previewOf(schedule, after, until, limit)
  }

  /** Which files a watch would report now, once they rest. */
  async #previewWatch(known: Trigger | null, body: BodyOf<typeof PreviewTrigger>): Promise<PreviewRecord> {
    const own = known ? (known.spec.own as WatchSpec) : watchOf(body)
    const there = await whatIsThere(this.tables, known?.id ?? '', own)
    const all = differences(there).filter(({ what }) => what !== null && own.on.includes(what))
    const files = all
      .slice(0, body.limit ?? 10)
      .map(({ path, identity, what }) => ({ ...fileOf(there.root, path, identity, null), what: what! }))
    return { slots: [], notes: [], words: watchWords(own), files, total: all.length }
  }

  /** The inputs of a team, if they are known here: a database alone knows none. */
  protected async declaredBy(_team: string): Promise<readonly Field[] | null> {
    return null
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
    const last = this.tables.firings.newest(trigger.id, SHOWN)
    const { last: firings, ...shown } = triggerRecord(trigger, last, this.tables.now())
    const record = { ...shown, last: this.#withRuns(firings) }
    return trigger.kind === 'hook' ? { ...record, ...this.#hookOf(trigger, record) } : record
  }

  /** What a home keeps of a hook beside the trigger. */
  #hookOf({ id }: Trigger, { notes = [] }: TriggerRecord): Partial<TriggerRecord> {
    const here = {
      kind: 'hook',
      text: 'it is reachable on this machine only, where a daemon serves this home',
    } as const
    const path = `${HOOKS_PATH}/${this.tables.hooks.token(id)}`
    return {
      ...{ url: `${this.#address() ?? ''}${path}`, secrets: secretRecords(this.#db, id) },
      notes: [...notes, here],
    }
  }
}

type BodyOf<C extends { body: TSchema }> = Static<C['body']>

/** The name of the zone of this machine. */
export const zoneHere = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone
