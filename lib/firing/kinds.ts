// The kinds of triggers by their names. To add one, write its object beside the others.

import { CadreError } from '../error.ts'
import type { TriggerKind } from '../wire/records/trigger-words.ts'
import { chain } from './chain-kind.ts'
import { hook } from './hook-kind.ts'
import type { Kind } from './kind.ts'
import { schedule } from './schedule-kind.ts'
import { watch } from './watch-kind.ts'

const KINDS: Readonly<Partial<Record<TriggerKind, Kind>>> = { schedule, hook, watch, chain }

export function kindOf({ kind: name }: { kind: TriggerKind }): Kind {
  const kind = KINDS[name]
  if (kind) return kind
  throw new CadreError('internal', `there are no triggers of the kind ${name} yet`)
}

export const ALL_KINDS: readonly (readonly [string, Kind])[] = Object.entries(KINDS)
