// The home or the realm whose triggers a page shows. The calls are the same; a hub also takes the realm.

import { GetTrigger, ListTriggers } from '../../wire/calls/triggers.ts'
import type { Field } from '../../wire/records/forms.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import type { RealmTriggerRecord, TriggerRecord } from '../../wire/records/triggers.ts'
import { call } from '../kit/api.ts'

export interface Place {
  /** Absent on a home. */
  realm_id?: string
  /** The name of the user; absent on a home. */
  user?: string
  /** Whether the user may change triggers here. The server checks it again. */
  mayChange: boolean
  /** The zone where none is written. */
  tz: string
  /** How a team is written here. */
  teamHint: string
  /** The address of the page of a team. */
  teamPage(team: string): string
  /** The kinds that can be added on a page. */
  kinds: readonly TriggerKind[]
  /** Names of teams of which runs end here. */
  ran(): Promise<readonly string[]>
  /** Teams to choose from. */
  teams(): Promise<readonly string[]>
  /** The inputs that a team asks for. */
  fieldsOf(team: string): Promise<readonly Field[]>
}

/** The part of a body that names the realm. */
export const inPlace = ({ realm_id }: Pick<Place, 'realm_id'>) => (realm_id === undefined ? {} : { realm_id })

export interface Page {
  limit: number
  offset: number
}

/** A trigger of a home, or of a realm. */
export type Shown = TriggerRecord & Partial<RealmTriggerRecord>

export const listTriggers = (place: Pick<Place, 'realm_id'>, kind: string, page: Page) =>
  call(ListTriggers, { ...inPlace(place), ...page, ...(kind !== '' && { kind: kind as TriggerKind }) })

export const getTrigger = (trigger_id: string): Promise<Shown> => call(GetTrigger, { trigger_id })
