// The types of phases. A type that is missing here does not compile.

import type { Phase } from '../../../team/team.ts'
import { gate } from './gate.ts'
import { map } from './map.ts'
import type { PhaseKind } from './phase-kind.ts'
import { standard } from './standard.ts'
import { team } from './team.ts'

const KINDS: { readonly [T in Phase['type']]: PhaseKind<Extract<Phase, { type: T }>> } = { standard, gate, team, map }

export const kindOf = (phase: Phase): PhaseKind => KINDS[phase.type]
