// A thrown error as a run or a phase records it.

import { AgentError } from '../../agent/define.ts'
import { CadreError } from '../../error.ts'
import type { RunError } from '../store/rows.ts'

export function errorOf(thrown: unknown): RunError {
  if (thrown instanceof AgentError) {
    return { code: thrown.code, message: thrown.message, ...(thrown.hint !== undefined && { hint: thrown.hint }) }
  }
  return { code: thrown instanceof CadreError ? thrown.code : 'internal', message: textOf(thrown) }
}

/** The text of anything that was thrown; some of it cannot even be turned into text. */
export function textOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown)
  } catch {
    return 'something that cannot be shown was thrown'
  }
}
