// A context as the daemon makes it, over a folder of its own, for agents that are called directly.

import { join } from 'node:path'
import { type ContextOptions, createContext } from '../../lib/agent/context.ts'
import type { AgentContext } from '../../lib/agent/define.ts'
import { createRedactor } from '../../lib/redact.ts'
import { folder } from './folder.ts'

export interface TestContext {
  context: AgentContext
  stateDir: string
  workspace: string
  lines: string[]
}

export function testContext(options: Partial<ContextOptions> & { secrets?: string[] } = {}): TestContext {
  const { secrets = [], ...rest } = options
  const lines: string[] = []
  const stateDir = options.stateDir ?? folder()
  const workspace = options.workspace ?? folder()
  const context = createContext({
    agent: 'agent',
    settings: {},
    network: { allow: ['127.0.0.1'], literalOrigins: [] },
    redactor: createRedactor(secrets),
    signal: new AbortController().signal,
    log: message => lines.push(message),
    stateDir,
    workspace,
    outside: false,
    key: '00000000-0000-8000-a000-000000000000',
    attempt: 1,
    run: { id: '01900000-0000-7000-8000-000000000000', name: null, team: '@local/team', url: null },
    phase: { name: 'phase' },
    effect: 'read',
    ...rest,
  })
  return { context, stateDir, workspace, lines }
}

export const phaseFolder = ({ stateDir }: TestContext): string => join(stateDir, 'files', 'phase')
