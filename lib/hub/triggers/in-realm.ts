// The kinds of triggers, as a hub has them.

import type { Firing } from '../../firing/trigger.ts'
import type { Json, JsonObject } from '../../json.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import { chains } from './chains.ts'
import { hooks } from './hooks.ts'
import type { RealmKind } from './realm-kind.ts'
import { schedules } from './schedules.ts'
import type { Look } from './trigger-table.ts'

const IN_REALM: Readonly<Partial<Record<TriggerKind, RealmKind>>> = { schedule: schedules, hook: hooks, chain: chains }

export const inRealm = ({ kind }: { kind: TriggerKind }): RealmKind => IN_REALM[kind] ?? {}

/** What its kind does about a firing of it, for `fire`. */
export const asItsKind = (look: Look) => ({
  recorded: async (settled: Firing) => inRealm(look.trigger).settled?.(look, settled),
  forbids: async (variables: JsonObject) => (await inRealm(look.trigger).forbids?.(look, variables)) ?? null,
  masked: async <T extends Json>(value: T): Promise<T> => {
    const mask = await inRealm(look.trigger).mask?.(look.hub, look.tx, look.trigger)
    return mask ? (mask(value) as T) : value
  },
})
