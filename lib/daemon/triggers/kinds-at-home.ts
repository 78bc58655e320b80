// The kinds of triggers that keep more in a home than their rows.

import type { Trigger } from '../../firing/trigger.ts'
import type { TriggerKind } from '../../wire/records/trigger-words.ts'
import type { AtHome } from './at-home.ts'
import { chain } from './chain-at-home.ts'
import { hook } from './hook-at-home.ts'
import { schedule } from './schedule-at-home.ts'
import { watch } from './watch-at-home.ts'

const AT_HOME: Readonly<Partial<Record<TriggerKind, AtHome>>> = { schedule, hook, watch, chain }

export const atHome = ({ kind }: Pick<Trigger, 'kind'>): AtHome => AT_HOME[kind] ?? {}
