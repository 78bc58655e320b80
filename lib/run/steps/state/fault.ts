// A thrown error as a run or a phase records it.

import { SQLiteError } from 'bun:sqlite'
import { AgentError } from '../../../agent/core/agent-error.ts'
import { CadreError } from '../../../error.ts'
import { matches } from '../../../schema/schema.ts'
import { ErrorCode } from '../../../wire/names.ts'
import type { RunError } from '../../core/core.ts'

/** Converts a thrown value. Never throws, because agents may throw anything. */
export function errorOf(thrown: unknown): RunError {
  try {
    if (thrown instanceof AgentError) {
      const { code, message, hint } = thrown
      return { code: codeOf(code), message: String(message), ...(typeof hint === 'string' && { hint }) }
    }
    return { code: thrown instanceof CadreError ? thrown.code : 'internal', message: textOf(thrown) }
  } catch {
    return { code: 'internal', message: textOf(thrown) }
  }
}

/** A hub refuses a code that is not of this form. */
const codeOf = (code: string): string => (matches(ErrorCode, code) ? code : 'agent_error')

/**
 * The same inside a unit, for errors that a team's own values caused. A fault of the engine or of the database is
 * thrown again: it must not fail a phase, and its unit is undone.
 */
export function failureOf(thrown: unknown): RunError {
  if (thrown instanceof SQLiteError || (thrown instanceof CadreError && thrown.code === 'internal')) throw thrown
  return errorOf(thrown)
}

/** The text of any thrown value, even of one that cannot be converted to text. */
export function textOf(thrown: unknown): string {
  try {
    return thrown instanceof Error ? String(thrown.message) : String(thrown)
  } catch {
    return 'the thrown value cannot be converted to text'
  }
}
