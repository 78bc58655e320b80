// The AgentError with which a call fails.

import { expect } from 'bun:test'
import { AgentError } from '../../lib/agent/core/agent-error.ts'

export async function failureOf(work: Promise<unknown>): Promise<AgentError> {
  const error = await work.then(
    () => null,
    thrown => thrown,
  )
  expect(error).toBeInstanceOf(AgentError)
  return error as AgentError
}
