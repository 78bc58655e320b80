// The kinds of triggers, as a hub has them.

import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import type { RealmKind } from './realm-kind.ts'
import { schedules } from './schedules.ts'

const IN_REALM: Readonly<Partial<Record<TriggerKind, RealmKind>>> = { schedule: schedules }

export const inRealm = ({ kind }: { kind: TriggerKind }): RealmKind => IN_REALM[kind] ?? {}
