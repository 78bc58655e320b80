// A context like that of the daemon, with its own folder, for agents that are called directly.

import { join } from 'node:path'
import { type CallContext, type CallContextOptions, callContext } from '../../lib/testing/call-context.ts'
import { folder } from './folder.ts'

export type TestContext = CallContext

export function testContext({
  stateDir = folder(),
  workspace = folder(),
  ...options
}: Partial<CallContextOptions> = {}): TestContext {
  return callContext({ stateDir, workspace, ...options })
}

export const phaseFolder = ({ stateDir }: TestContext): string => join(stateDir, 'files', 'phase')
