// A context like the daemon's, for an agent that is called directly. It keeps what the agent logs, and allows every
// address of this machine.

import type { AgentContext } from '../agent/agent-context.ts'
import { type ContextOptions, createContext } from '../agent/context.ts'
import { createRedactor } from '../secrets/redact.ts'
import { itemExpression } from '../team/team.ts'

export interface CallContext {
  context: AgentContext
  stateDir: string
  workspace: string
  lines: string[]
}

export type CallContextOptions = Partial<ContextOptions> &
  Pick<ContextOptions, 'stateDir' | 'workspace'> & { secrets?: readonly string[] }

export function callContext({ secrets = [], ...options }: CallContextOptions): CallContext {
  const lines: string[] = []
  const context = createContext({
    agent: 'agent',
    settings: {},
    network: { allow: ['127.0.0.1'], literalOrigins: [] },
    redactor: createRedactor(secrets),
    expression: (text, inputs = {}) => itemExpression(text, inputs),
    signal: new AbortController().signal,
    log: message => lines.push(message),
    outside: false,
    key: '00000000-0000-8000-a000-000000000000',
    attempt: 1,
    run: {
      id: '01900000-0000-7000-8000-000000000000',
      name: null,
      team: '@local/team',
      created_at: 0x0190_0000_0000,
      url: null,
    },
    phase: { name: 'phase' },
    effect: 'read',
    ...options,
  })
  return { context, stateDir: options.stateDir, workspace: options.workspace, lines }
}
