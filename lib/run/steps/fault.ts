// A thrown error as a run or a phase records it.

import { AgentError } from '../../agent/define.ts'
import { CadreError } from '../../error.ts'
import type { RunError } from '../core/core.ts'

/** Never throws, whatever was thrown: agents are written by anybody. */
export function errorOf(thrown: unknown): RunError {
  try {
    if (thrown instanceof AgentError) {
      const { code, message, hint } = thrown
      return { code: String(code), message: String(message), ...(typeof hint === 'string' && { hint }) }
    }
    return { code: thrown instanceof CadreError ? thrown.code : 'internal', message: textOf(thrown) }
  } catch {
    return { code: 'internal', message: textOf(thrown) }
  }
}

/** The text of anything that was thrown, even of what cannot be turned into text. */
export function textOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown)
  } catch {
    return 'something that cannot be shown was thrown'
  }
}
